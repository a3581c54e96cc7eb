"""Matrix products in numpy, that is, OpenBLAS."""
import common

o = common.options("size", "times")
np = common.need("numpy")

n = o.size
i = np.arange(n * n)
a, b, c = (i % 7).astype(np.float32).reshape(n, n), (i % 5).astype(np.float32).reshape(n, n), np.empty((n, n), np.float32)
np.dot(a, b, out=c)


def loop():
    for _ in range(o.times):
        np.dot(a, b, out=c)


r = common.timed(loop)
common.report(r, "%d products of %d by %d, sum %d" % (o.times, n, n, c.astype(np.int64).sum()), gflops=2 * n ** 3 * o.times / r["seconds"] / 1e9)
