"""Matrix products in numpy, that is, OpenBLAS."""
import time

import common

o = common.options("size", "times")
np = common.need("numpy")

n = o.size
i = np.arange(n * n)
a, b, c = (i % 7).astype(np.float32).reshape(n, n), (i % 5).astype(np.float32).reshape(n, n), np.empty((n, n), np.float32)
np.dot(a, b, out=c)


best = 1e9


def loop():
    global best
    for _ in range(o.times):
        t = time.perf_counter()
        np.dot(a, b, out=c)
        best = min(best, time.perf_counter() - t)


r = common.timed(loop)
work = 2 * n ** 3 / 1e9
r["metrics"] = {"gflops": work * o.times / r["seconds"], "best_gflops": work / best}
common.report(r, "%d products of %d by %d, sum %d" % (o.times, n, n, c.astype(np.int64).sum()))
