"""Prints the step of the newest checkpoint as TensorFlow reads it: tf_read.py DIR"""

import sys

import tensorflow as tf

reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(sys.argv[1]))
weights = reader.get_tensor("weights")
assert all(weights == weights[1] * range(len(weights)))
print(weights[1])
