"""What the Python contestants share: the pseudo-random values, the clock and the
line for the driver. A contestant is told its threads before numpy is loaded."""
import argparse
import json
import os
import resource
import sys
import time

WARM_UP = 5
NETS = {"mlp784": ([784, 256, 10], 128), "mlp1024": ([1024, 1024, 1024, 10], 256)}


def options(*names):
    p = argparse.ArgumentParser()
    p.add_argument("--threads", type=int, default=1)
    for name in names:
        p.add_argument("--" + name, type=int if name in ("size", "times", "steps") else str)
    o = p.parse_args()
    for name in "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS":
        os.environ[name] = str(o.threads)
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    return o


def need(module):
    """Ends with the exit code that means: not installed."""
    try:
        return __import__(module)
    except ImportError:
        print(module, "is not installed", file=sys.stderr)
        sys.exit(77)


def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def timed(f):
    c, t = cpu(), time.perf_counter()
    f()
    return {"seconds": time.perf_counter() - t, "cpu_seconds": cpu() - c, "metrics": {}}


def report(r, work):
    r["work"] = work
    print(json.dumps(r))


def uniform(n, salt=0):
    import numpy as np
    with np.errstate(over="ignore"):
        h = (np.arange(n, dtype=np.int64) + salt * 1000003).astype(np.uint32) * np.uint32(2654435761)
        h ^= h >> np.uint32(15)
        h *= np.uint32(2246822519)
        h ^= h >> np.uint32(13)
    return h / 2.0 ** 32


def floats(salt, scale, *shape):
    import numpy as np
    n = int(np.prod(shape))
    return ((uniform(n, salt) - .5) * scale).astype(np.float32).reshape(shape)


def net_values(name):
    import numpy as np
    sizes, _ = NETS[name]
    return [(floats(i + 1, 2 * (3 / n) ** .5, n, m), np.zeros(m, np.float32)) for i, (n, m) in enumerate(zip(sizes, sizes[1:]))]


def net_feeds(name):
    import numpy as np
    sizes, batch = NETS[name]
    return floats(100, 1, batch, sizes[0]), np.arange(batch, dtype=np.int64) % 10


def train(step, steps):
    for _ in range(WARM_UP):
        step()
    best = [1e9]

    def loop():
        for _ in range(steps):
            t = time.perf_counter()
            step()
            best[0] = min(best[0], time.perf_counter() - t)
    r = timed(loop)
    r["metrics"] = {"steps_per_second": steps / r["seconds"], "best_step_us": best[0] * 1e6}
    return r


def report_net(r, o, loss):
    report(r, "%s, %d steps, loss %.3f" % (o.net, o.steps, loss))
