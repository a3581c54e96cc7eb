"""Saves by TensorFlow's own Saver, step by step, and says so: tf_saver.py DIR"""

import os
import sys

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
weights = v1.get_variable("weights", initializer=np.zeros(50_000, np.int64), use_resource=False)
step_up = v1.assign_add(weights, np.arange(50_000, dtype=np.int64))
saver = v1.train.Saver(max_to_keep=3)
with v1.Session() as sess:
    sess.run(v1.global_variables_initializer())
    for step in range(1, 1_000_000):
        sess.run(step_up)
        saver.save(sess, os.path.join(sys.argv[1], "model.ckpt"), global_step=step, write_meta_graph=False)
        print("saved", step, flush=True)
