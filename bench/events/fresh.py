"""Lets a writer add a scalar every 100 ms for a while, kills it, and prints how old the newest point was that
a reader saw, and how many points are lost.

    fresh.py DIR ours BINARY|tf2|tf2-with|tensorboardx|tf1 -n SECONDS

The writer says on its standard output which step it has added. A reader looks into the file every 10 ms, as
TensorBoard may at any time: the age of the newest visible point is the time since it was added.
"""

import json
import pathlib
import random
import signal
import statistics
import struct
import subprocess
import sys
import threading
import time

PAUSE = 0.1  # between two points
LOOK = 0.01
TAG = "train/loss"


def tf2(folder):
    import tensorflow as tf

    tf.summary.create_file_writer(folder).set_as_default()
    return lambda step: tf.summary.scalar(TAG, step / 2, step=step)


def tf2_with(folder):
    """The end of as_default flushes: a system call for each point."""
    import tensorflow as tf

    writer = tf.summary.create_file_writer(folder)

    def add(step):
        with writer.as_default():
            tf.summary.scalar(TAG, step / 2, step=step)

    return add


def tf1(folder):
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    writer = tf.summary.FileWriter(folder)
    return lambda step: writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag=TAG, simple_value=step / 2)]), step)


def tensorboardx(folder):
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(folder)
    return lambda step: writer.add_scalar(TAG, step / 2, step)


def write(which, folder):
    """What the process that will be killed does."""
    try:
        add = {"tf1": tf1, "tf2": tf2, "tf2-with": tf2_with, "tensorboardx": tensorboardx}[which](folder)
    except ImportError as e:
        print(e, file=sys.stderr)
        sys.exit(77)
    step = 0
    while True:
        add(step)
        print(step, flush=True)
        step += 1
        time.sleep(PAUSE)


class Reader:
    """Counts the records with a summary that are complete in the files of a folder."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        self._at = {}
        self.points = 0

    def look(self):
        for path in self._folder.rglob("*tfevents*"):
            with open(path, "rb") as file:
                file.seek(self._at.get(path, 0))
                data = file.read()
            used = 0
            while len(data) - used >= 16:
                (size,) = struct.unpack_from("<Q", data, used)
                if len(data) - used < size + 16:
                    break
                self.points += TAG.encode() in data[used + 12 : used + 12 + size]
                used += size + 16
            self._at[path] = self._at.get(path, 0) + used
        return self.points


def race(command, folder, seconds):
    """Returns the ages that were seen of the newest visible point, the points that were added, and those left."""
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    added = []  # when
    listener = threading.Thread(target=lambda: [added.append(time.perf_counter()) for _ in writer.stdout])
    listener.start()
    while not added:  # a framework takes its time to be imported
        if writer.poll() is not None:
            sys.exit(writer.returncode)
        time.sleep(LOOK)
    reader, ages = Reader(folder), []
    end = added[0] + seconds + random.random()  # no writer knows when
    while (now := time.perf_counter()) < end:
        visible = reader.look()
        # Before anything is visible, the first point is what is missing.
        seen = min(visible, len(added)) - 1
        ages.append(now - added[max(seen, 0)])
        time.sleep(LOOK)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    listener.join()
    return ages, len(added), reader.look()


def main(folder, which, *rest):
    if which == "writer":
        write(rest[0], folder)
    command = [rest[0], "fresh", "-dir", folder] if which == "ours" else [sys.executable, __file__, folder, "writer", which]
    ages, added, left = race(command, folder, float(rest[-1]))
    metrics = {"median_age_ms": statistics.median(ages) * 1e3, "worst_age_ms": max(ages) * 1e3, "lost": max(added - left, 0)}
    print(json.dumps({"work": f"a scalar every {PAUSE} s for {rest[-1]} s", "seconds": float(rest[-1]), "cpu_seconds": 0, "metrics": metrics}))


main(*sys.argv[1:])
