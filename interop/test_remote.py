"""The client of TensorFlow's distributed runtime against a real tf.distribute.Server: training, errors, a killed server."""

import contextlib
import json
import os
import pathlib
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
import types

import numpy as np
import pytest
import tensorflow as tf
from harness.commands import PATIENCE

tf1 = tf.compat.v1

REPO = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = REPO / "fixtures" / "graphs" / "softmax_ref"
MANIFEST = json.loads((PROGRAM / "manifest.json").read_text())

# Imports TensorFlow, which takes the time, and begins to serve when it is told to.
SERVER = """
import sys
import tensorflow as tf
sys.stdin.readline()
server = tf.distribute.Server({"local": ["127.0.0.1:" + sys.argv[1]]}, job_name="local", task_index=0)
print("serving", flush=True)
server.join()
"""


class Peer:
    """A process in a group of its own with which a test talks line by line."""

    def __init__(self, args, log):
        self._log = log
        with open(log, "wb") as err:
            self._popen = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err,
                                           start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def tell(self):
        self._popen.stdin.write(b"\n")
        self._popen.stdin.flush()

    def line(self):
        """The next line that the process writes."""
        text, deadline = b"", time.monotonic() + PATIENCE
        with selectors.DefaultSelector() as ready:
            ready.register(self._popen.stdout, selectors.EVENT_READ)
            while not text.endswith(b"\n"):
                assert ready.select(max(0, deadline - time.monotonic())), f"no line within {PATIENCE} s\n{self.log}"
                byte = os.read(self._popen.stdout.fileno(), 1)
                assert byte, f"ended instead of writing a line\n{self.log}"
                text += byte
        return text.decode()

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        self._popen.stdin.close()
        self._popen.stdout.close()

    def end(self):
        code = self._popen.wait(PATIENCE)
        assert code == 0, self.log

    @property
    def log(self):
        return self._log.read_text(errors="replace")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """What the client saw, by event, and what a Python client then found on the server."""
    go = shutil.which("go")
    if not go:
        pytest.skip("no go here to build the program that drives the server")
    folder = tmp_path_factory.mktemp("remote")
    work = folder / "work"
    work.mkdir()
    port = free_port()
    target = f"grpc://127.0.0.1:{port}"
    serve = [sys.executable, "-c", SERVER, str(port)]
    with Peer(serve, folder / "server1.log") as first, Peer(serve, folder / "server2.log") as second:
        subprocess.run([go, "build", "-o", folder / "remotecheck", "./interop/remotecheck"], check=True, cwd=REPO)
        first.tell()
        assert first.line() == "serving\n"
        events = {}
        with Peer([folder / "remotecheck", target, PROGRAM, work], folder / "client.log") as client:

            def hear(event):
                facts = json.loads(client.line())
                assert facts["event"] == event
                events[event] = facts

            hear("checked")
            hear("trained")
            hear("copied")
            time.sleep(0.2)  # the step that waits for ever is on its way now, or meets a server that is gone
            first.kill()
            client.tell()
            hear("lost")
            second.tell()
            assert second.line() == "serving\n"
            client.tell()
            hear("back")
            hear("recovered")
            variables = read_variables(target)
            client.tell()
            hear("reset")
            client.end()
    return types.SimpleNamespace(work=work, variables=variables, **events)


def read_variables(target):
    """The variables on the server, as a Python session of its own sees them."""
    with tf.Graph().as_default():
        tf1.train.import_meta_graph(str(PROGRAM / "graph.meta"))
        with tf1.Session(target, config=tf1.ConfigProto(operation_timeout_in_ms=60_000)) as session:
            return {v.op.name: session.run(v) for v in tf1.global_variables()}


def losses(first, last):
    return [step["loss"] for step in MANIFEST["per_step"][first:last]]


def test_trains_to_the_recorded_losses(story):
    assert len(story.trained["losses"]) == MANIFEST["steps"]
    np.testing.assert_allclose(story.trained["losses"], losses(0, None), MANIFEST["rtol"], MANIFEST["atol"])


def test_saves_through_the_savers_ops(story):
    assert story.trained["saved"] == str(story.work / "model.ckpt-10")
    assert tf.train.latest_checkpoint(str(story.work)) == story.trained["saved"]
    reader = tf.train.load_checkpoint(story.trained["saved"])
    assert reader.get_tensor("global_step") == 10
    assert set(reader.get_variable_to_shape_map()) == set(story.variables)


def test_goes_on_after_the_server_was_killed(story):
    assert story.recovered["restored"] == story.trained["saved"]
    assert story.recovered["losses"] == story.trained["losses"][10:]
    final = tf.train.load_checkpoint(str(PROGRAM / "final" / f"model.ckpt-{MANIFEST['steps']}"))
    for name, value in story.variables.items():
        np.testing.assert_allclose(value, final.get_tensor(name), MANIFEST["rtol"], MANIFEST["atol"], err_msg=name)


@pytest.mark.parametrize("event, name, code, node, op, text", [
    ("checked", "uninitialized", "FAILED_PRECONDITION", "w/read", "Identity", "uninitialized value w"),
    ("checked", "unfed", "INVALID_ARGUMENT", "x", "Placeholder", "You must feed a value"),
    ("checked", "no such node", "NOT_FOUND", "", "", "nosuch:0"),
    ("checked", "no such op", "UNIMPLEMENTED", "", "", "NoSuchOp"),
    ("checked", "extended twice", "INVALID_ARGUMENT", "", "", "check/queue"),
    ("checked", "deadline", "DEADLINE_EXCEEDED", "", "", "context deadline exceeded"),
    ("checked", "end of input", "OUT_OF_RANGE", "check/wait", "QueueDequeueV2", "is closed"),
    ("lost", "in flight", "UNAVAILABLE", "", "", "grpc://127.0.0.1:"),
    ("lost", "down", "UNAVAILABLE", "", "", "grpc://127.0.0.1:"),
    ("back", "gone", "ABORTED", "", "", "is not found"),
    ("recovered", "empty", "FAILED_PRECONDITION", "w/read", "Identity", "uninitialized value w"),
    ("reset", "released", "CANCELLED", "", "", "the callable is closed"),
    ("reset", "old session", "ABORTED", "", "", "is not found"),
    ("reset", "empty", "FAILED_PRECONDITION", "w/read", "Identity", "uninitialized value w"),
])
def test_errors_have_code_node_and_op(story, event, name, code, node, op, text):
    error = getattr(story, event)[name]
    assert (error["Code"], error["Node"], error["Op"]) == (code, node, op), error
    assert text in error["Text"]


def test_closing_a_lost_session_is_no_error(story):
    assert story.back["closed"] == "<nil>"
    assert story.reset["closed"] == "<nil>"


def test_the_client_saves_what_the_server_saves(story):
    """Same names, and the same bytes for the same values."""
    server, client = (pathlib.Path(story.copied[name]) for name in ("server", "client"))
    assert server.name == client.name == f"model.ckpt-{MANIFEST['steps']}"
    files = {p.name for p in server.parent.iterdir()}
    assert files == {p.name for p in client.parent.iterdir()}
    assert {f"{server.name}.index", f"{server.name}.data-00000-of-00001"} <= files
    for name in files - {f"{server.name}.manifest.json"}:
        assert (client.parent / name).read_bytes() == (server.parent / name).read_bytes(), name


def test_other_calls(story):
    assert story.checked["parts"] == [-2.0, -10.0]
    assert story.checked["graph version"] == 1
    assert story.checked["device"] == "/job:local/replica:0/task:0/device:CPU:0"
    assert story.checked["large"] == 8 << 20
    assert (story.reset["devices"], story.reset["other devices"]) == (1, 0)
