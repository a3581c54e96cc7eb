"""Writes scalars with one of the writers of Python and prints what that took.

    py_writer.py DIR tf1|cpp|tensorboardx -n N
"""

import json
import sys
import time

TAG = "train/loss"


def tf1(folder):
    """TensorFlow 1's FileWriter: a queue and a thread around EventsWriter."""
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    writer = tf.summary.FileWriter(folder)
    summary = tf.Summary

    def add(i):
        writer.add_summary(summary(value=[summary.Value(tag=TAG, simple_value=i / 2)]), i)

    return add, writer.close


def cpp(folder):
    """The EventsWriter of C++, called from Python."""
    from tensorflow.core.framework import summary_pb2
    from tensorflow.core.util import event_pb2
    from tensorflow.python.client._pywrap_events_writer import EventsWriter

    writer = EventsWriter(f"{folder}/events")
    value = summary_pb2.Summary.Value

    def add(i):
        summary = summary_pb2.Summary(value=[value(tag=TAG, simple_value=i / 2)])
        writer._WriteSerializedEvent(event_pb2.Event(wall_time=1.7e9, step=i, summary=summary).SerializeToString())

    return add, writer.Close


def tensorboardx(folder):
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(folder)

    def add(i):
        writer.add_scalar(TAG, i / 2, i)

    return add, writer.close


def main(folder, which, n):
    try:
        add, close = {"tf1": tf1, "cpp": cpp, "tensorboardx": tensorboardx}[which](folder)
    except ImportError as e:
        print(e, file=sys.stderr)
        sys.exit(77)
    begin, cpu = time.perf_counter(), time.process_time()
    for i in range(n):
        add(i)
    close()
    seconds, spent = time.perf_counter() - begin, time.process_time() - cpu
    print(json.dumps({"work": f"{n} scalars", "seconds": seconds, "cpu_seconds": spent}))


main(sys.argv[1], sys.argv[2], int(sys.argv[4]))
