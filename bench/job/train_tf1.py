"""TensorFlow 1: tf.train.Supervisor, which restores by itself; the loop saves by the step."""

import time

from race import BATCH, EVERY, LOGDIR, STEPS, WIDTH, done, finish

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.set_random_seed(1)
step = tf.train.create_global_step()
x = tf.random.stateless_normal((BATCH, WIDTH), tf.stack([tf.cast(step, tf.int32), 1]))
w = tf.get_variable("w", (WIDTH, WIDTH), initializer=tf.glorot_uniform_initializer(seed=1))
v = tf.get_variable("v", (WIDTH, WIDTH), initializer=tf.glorot_uniform_initializer(seed=2))
loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(x, w)), v) - tf.roll(x, 1, 1)))
train = tf.train.AdamOptimizer(1e-4).minimize(loss, step)
saver = tf.train.Saver(max_to_keep=2)
sv = tf.train.Supervisor(logdir=LOGDIR, summary_op=None, save_model_secs=0, saver=saver)
one = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
with sv.managed_session(config=one) as session:
    n = session.run(step)
    while n < STEPS:
        begin = time.time()
        session.run(train)
        n = session.run(step)
        done(n, begin)
        if n % EVERY == 0:
            saver.save(session, sv.save_path, global_step=step, write_meta_graph=False)
    finish(session.run([w, v]))
