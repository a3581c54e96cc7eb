"""TensorFlow 1: tf.train.Supervisor, which restores by itself and writes events into its logdir."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow.compat.v1 as tf
from common import LOGDIR, STEPS, finish, pause

tf.disable_eager_execution()
tf.set_random_seed(1)
step = tf.train.create_global_step()
x = tf.random.stateless_normal((32, 64), tf.stack([tf.cast(step, tf.int32), 1]))
w = tf.get_variable("w", (64, 256), initializer=tf.glorot_uniform_initializer(seed=1))
v = tf.get_variable("v", (256, 1), initializer=tf.glorot_uniform_initializer(seed=2))
loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(x, w)), v)[:, 0] - tf.reduce_sum(x, 1)))
train = tf.train.AdamOptimizer(1e-3).minimize(loss, step)
with tf.control_dependencies([train]):
    trained = step.read_value()  # fetched as it is, the step may be that before or after the update, or twice the same
tf.summary.scalar("own_loss", loss)
merged = tf.summary.merge_all()
sv = tf.train.Supervisor(logdir=LOGDIR, summary_op=None, save_model_secs=0)
with sv.managed_session() as session:
    n = session.run(step)
    while n < STEPS and not sv.should_stop():
        _, value, summary, n = session.run([train, loss, merged, trained])
        sv.summary_computed(session, summary, n)
        print(f"INFO:tensorflow:loss = {value:.6f}, step = {n} (0.02 sec)", flush=True)
        pause()
        if n % 10 == 0:
            sv.saver.save(session, sv.save_path, global_step=step)
    finish(session.run(tf.trainable_variables()))
