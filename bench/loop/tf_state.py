"""What the programs of this folder share: options, state, and the line of the result."""
import argparse
import json
import os
import resource
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
try:
    import numpy as np
    import tensorflow as tf
except ImportError:
    sys.exit(77)

TENSOR_MIB = 16


def options():
    p = argparse.ArgumentParser()
    for name, default in (("-dir", ""), ("-mib", 1024), ("-saves", 3)):
        p.add_argument(name, type=type(default), default=default)
    return p.parse_args()


def values(o):
    """The large tensors, which no step changes."""
    for i in range(o.mib // TENSOR_MIB):
        yield np.arange(i, i + (TENSOR_MIB << 20) // 4, dtype=np.float32)


def report(o, seconds, metrics):
    usage = resource.getrusage(resource.RUSAGE_SELF)
    metrics["max_rss_mib"] = usage.ru_maxrss / 1024
    print(json.dumps({
        "work": f"{o.mib} MiB in {o.mib // TENSOR_MIB} tensors, {o.saves} saves during the steps",
        "seconds": seconds, "cpu_seconds": usage.ru_utime + usage.ru_stime, "metrics": metrics,
    }))


def quantile(times, q):
    times = sorted(times)
    return times[int(q * (len(times) - 1))] * 1e3


__all__ = ["options", "quantile", "report", "tf", "np", "time", "values"]
