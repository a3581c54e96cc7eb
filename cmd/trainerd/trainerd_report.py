"""Reports of a training program to trainerd, in one file without dependencies.

    import trainerd_report as report

    start = report.step()                  # 0, or the step to resume from
    if report.checkpoint():
        load(report.checkpoint())
    for step in range(start + 1, report.steps(10000) + 1):
        loss = train(step)
        report.scalars(step, loss=loss, lr=lr)
        if step % 100 == 0 or report.stopping():
            save(report.path(f"ckpt-{step}.pt"))
        if report.stopping():
            break

Without trainerd everything does nothing, and the training starts at step 0.
`trainerd init --python` prints this file.
"""

import json
import os
import signal
import socket
import threading
import time

_lock = threading.Lock()
_connection = None
_stop = threading.Event()


def logdir(default="."):
    """The folder for checkpoints."""
    return os.environ.get("TRAINERD_LOGDIR", default)


def path(name):
    """The path of a file in the logdir."""
    return os.path.join(logdir(), name)


def checkpoint():
    """The checkpoint to resume from, or None."""
    return os.environ.get("TRAINERD_CHECKPOINT")


def step():
    """The step to resume from, 0 without a checkpoint."""
    return int(os.environ.get("TRAINERD_STEP", 0))


def steps(default):
    """How far to train."""
    return int(os.environ.get("TRAINERD_STEPS", default))


def stopping():
    """Whether to save and end: SIGTERM has come since the first call, in the main thread."""
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: _stop.set())
    return _stop.is_set()


def scalars(step, **values):
    """Adds a point at a step to the curve of each name; "__" in a name stands for "/"."""
    named = {name.replace("__", "/"): float(value) for name, value in values.items()}
    _send({"step": int(step), "wall_time": time.time(), **named})


def _send(report):
    global _connection
    name = os.environ.get("TRAINERD_SOCKET")
    with _lock:
        if not name:
            if "TRAINERD_ATTEMPT" in os.environ:  # where unix sockets are forbidden
                print(json.dumps(report), flush=True)
            return
        line = json.dumps(report).encode() + b"\n"
        for _ in range(2):  # a connection that has broken is made again
            try:
                if _connection is None:
                    _connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                    _connection.connect(name)
                _connection.sendall(line)
                return
            except OSError:
                if _connection is not None:
                    _connection.close()
                _connection = None

