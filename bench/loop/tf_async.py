"""Steps during saves of an asynchronous tf.train.Checkpoint."""
import threading

from tf_state import np, options, quantile, report, tf, time, values

o = options()
ckpt = tf.train.Checkpoint(weights=[tf.Variable(a) for a in values(o)], hot=tf.Variable(np.zeros(1000, np.float32)))
step = tf.Variable(0, dtype=tf.int64)


@tf.function
def train():
    ckpt.hot.assign_add(tf.ones([1000]))
    step.assign_add(1)


opts = tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)
train()
ckpt.save(o.dir + "/warm-up", options=opts)
ckpt.sync()
started = time.time()
bare, beside, calls = [], [], []
for _ in range(5000):
    t = time.perf_counter()
    train()
    bare.append(time.perf_counter() - t)
for n in range(o.saves):
    t = time.perf_counter()
    ckpt.save(f"{o.dir}/model-{n}", options=opts)
    calls.append(time.perf_counter() - t)
    waiter = threading.Thread(target=ckpt.sync)
    waiter.start()
    while waiter.is_alive():
        t = time.perf_counter()
        train()
        beside.append(time.perf_counter() - t)
report(o, time.time() - started, {"caller_ms": max(calls) * 1e3, "worst_ms": max(beside) * 1e3, "p999_ms": quantile(beside, 0.999), "bare_p999_ms": quantile(bare, 0.999)})
