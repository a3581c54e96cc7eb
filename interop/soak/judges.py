"""What TensorFlow and both loaders of TensorBoard say of a logdir."""

import contextlib
import re
import threading
import time
import types

import tensorflow as tf
from harness import checkpoints, dataserver
from tensorboard.backend.event_processing import plugin_event_multiplexer

TEMPORARY = re.compile(r"^\.trainerd-|tempstate|_temp")  # ours; what a killed program leaves of its own is not for us to remove
TIMINGS = re.compile(r"global_step/sec$|^trainerd/|fraction_of_\d+_full$")  # what depends on the clock, and on threads


def load_all(logdir):
    """Has TensorFlow read all of every checkpoint that the logdir names, and returns their prefixes."""
    prefixes = []
    for folder in (logdir, logdir / "best"):
        state = tf.train.get_checkpoint_state(str(folder))
        prefixes += state.all_model_checkpoint_paths if state else []
    for prefix in prefixes:
        assert checkpoints.variables(prefix), f"{prefix} is empty"
    return prefixes


class PythonLoader:
    """TensorBoard's loader in Python, which reads on as a logdir grows."""

    def __init__(self, logdir):
        self._logdir = str(logdir)
        guidance = {"scalars": 0, "tensors": 0, "histograms": 1, "images": 1, "audio": 1}
        self._all = plugin_event_multiplexer.EventMultiplexer(size_guidance=guidance, tensor_size_guidance={"scalars": 0})

    def curves(self):
        """{(run, tag): [(step, value)]} of all scalars, up to now."""
        self._all.AddRunsFromDirectory(self._logdir)
        self._all.Reload()
        return {(run, tag): [(e.step, float(tf.make_ndarray(e.tensor_proto))) for e in self._all.Tensors(run, tag)]
                for run in self._all.Runs() for tag in self._all.PluginRunToTagToContent("scalars").get(run, {})}


def served_curves(server):
    """The same as a data server has them."""
    return {key: [(int(step), float(value)) for step, value in zip(data.step, data.value)]
            for key, data in server.read("Scalars", "scalars").items()}


def curves(logdir, lossy=False):
    """The curves that both loaders show. They rise, and are the same; but a full disk may lose the points that overtake others,
    which the data server then still shows."""
    with dataserver.DataServer(dataserver.theirs(), logdir) as server:
        server.wait_until_loaded()
        shown = {"the data server": served_curves(server), "the Python loader": PythonLoader(logdir).curves()}
    for loader, of in shown.items():
        for key, points in of.items():
            steps = [step for step, _ in points]
            assert steps == sorted(set(steps)), f"{loader} shows {key} out of order: {steps}"
    served, loaded = shown.values()
    for key in () if lossy else served.keys() | loaded.keys():
        assert same(served.get(key), loaded.get(key)), f"the loaders disagree about {key}:\n{served.get(key)}\n{loaded.get(key)}"
    return served


def same(a, b):
    """Whether two curves are equal, NaNs too."""
    return a is not None and b is not None and repr(a) == repr(b)


def assert_holds(got, want, lost):
    """Wants each point of an undisturbed training, with its value, but for steps whose points may be lost."""
    for key, points in want.items():
        if TIMINGS.search(key[1]):
            continue
        there = dict(got.get(key, []))
        missing = [(step, value) for step, value in points if step not in lost and not same([there.get(step, "none")], [value])]
        assert not missing, f"points of {key} are missing or differ: {missing[:5]}\nthere are {got.get(key)}"


def assert_no_temporary(logdir):
    left = [str(path) for path in logdir.rglob("*") if TEMPORARY.search(path.name)]
    assert not left, f"temporary files are left: {left}"


@contextlib.contextmanager
def onlooker(place, dice):
    """Somebody who looks at the logdir from the first moment, or nobody. Yields what fails unless they see some curves in the end."""
    who = dice.choice(("nobody", "our data server", "their data server", "the Python loader"))
    if who == "nobody":
        yield lambda curves: None
    elif who == "the Python loader":
        with _python_onlooker(place) as loader:
            yield lambda curves: _assert_equal(who, loader.curves(), curves)
    else:
        binary = place.worlds.bins / "tfevents" if who == "our data server" else dataserver.theirs()
        with dataserver.DataServer(binary, place.logdir, reload="1") as server:
            yield lambda curves: _await_equal(who, lambda: served_curves(server), curves)


@contextlib.contextmanager
def _python_onlooker(place):
    place.logdir.mkdir(exist_ok=True)
    loader, over = PythonLoader(place.logdir), threading.Event()

    def look():
        while not over.wait(0.5):
            loader.curves()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield types.SimpleNamespace(curves=lambda: (over.set(), thread.join(), loader.curves())[-1])
    finally:
        over.set()
        thread.join()


def _await_equal(who, shown, curves):
    deadline = time.monotonic() + 60
    while shown() != curves and time.monotonic() < deadline:
        time.sleep(0.5)
    _assert_equal(who, shown(), curves)


def _assert_equal(who, shown, curves):
    for key in shown.keys() | curves.keys():
        assert same(shown.get(key), curves.get(key)), f"{who} saw all and shows other points of {key}:\n{shown.get(key)}\n{curves.get(key)}"
