"""Steps during the saves of tf.train.Supervisor's checkpoint service."""
from tf_state import options, quantile, report, tf, time, values

o = options()
v1 = tf.compat.v1
v1.disable_eager_execution()
v1.disable_resource_variables()

placeholders, assigns, arrays = [], [], list(values(o))
for i, a in enumerate(arrays):
    v = v1.get_variable(f"weights/{i:03d}", shape=a.shape, dtype=tf.float32, initializer=v1.zeros_initializer())
    p = v1.placeholder(tf.float32, a.shape)
    placeholders.append(p)
    assigns.append(v1.assign(v, p).op)
hot = v1.get_variable("hot", shape=[1000], dtype=tf.float32, initializer=v1.zeros_initializer())
step = v1.train.get_or_create_global_step()
train = tf.group(v1.assign_add(hot, tf.ones([1000])), v1.assign_add(step, 1))


class Counting(v1.train.Saver):
    """Says when its saves begin and end."""
    begun = ended = 0

    def save(self, *args, **kwargs):
        self.begun += 1
        try:
            return super().save(*args, **kwargs)
        finally:
            self.ended += 1


def fill(sess):
    for p, op, a in zip(placeholders, assigns, arrays):
        sess.run(op, {p: a})


saver = Counting(max_to_keep=1)
sv = v1.train.Supervisor(logdir=o.dir, saver=saver, save_model_secs=2, save_summaries_secs=0, summary_op=None, init_fn=fill)
started = time.time()
beside, bare = [], []
with sv.managed_session() as sess:
    run = sess.make_callable(train)
    while saver.ended < o.saves + 1:  # the first is that of the service's start
        saving = saver.begun > saver.ended and saver.begun > 1
        t = time.perf_counter()
        run()
        (beside if saving else bare).append(time.perf_counter() - t)
report(o, time.time() - started, {"worst_ms": max(beside) * 1e3, "p999_ms": quantile(beside, 0.999), "bare_p999_ms": quantile(bare, 0.999)})
