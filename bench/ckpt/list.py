"""Lists a checkpoint with TensorFlow, one line for each tensor."""

import sys

import tensorflow as tf

for name, shape in tf.train.list_variables(sys.argv[1]):
    print(name, shape)
