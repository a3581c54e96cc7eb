"""Prints the step of the newest checkpoint as TensorFlow reads it, all of its tensors: tf_read.py DIR"""

import sys

import tensorflow as tf

reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(sys.argv[1]))
values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
step = values["global_step"]
if "weights" in values:  # of TestWriter, which computes them from the step
    assert all(values["weights"] == step * range(len(values["weights"])))
print(step)
