"""The embedded runtime served as MasterService, used by TensorFlow's own Python client.

All clients have one graph and one set of variables, also those of a training that continues.
"""

import pathlib
import re
import shutil
import signal
import subprocess
import threading

import numpy as np
import pytest
import tensorflow as tf
from harness import checkpoints
from harness.commands import assert_success

tf1 = tf.compat.v1

REPO = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    go = shutil.which("go")
    if not go:
        pytest.skip("no go here to build the program that serves")
    path = tmp_path_factory.mktemp("serve") / "serve"
    subprocess.run([go, "build", "-o", path, "./interop/serve"], check=True, cwd=REPO)
    return path


@pytest.fixture
def target(program):
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        # A server that is gone ends whatever waits for it.
        watchdog = threading.Timer(60, server.kill)
        watchdog.start()
        try:
            yield server.stdout.readline().strip()
            server.stdin.close()
            assert server.wait(30) == 0
        finally:
            watchdog.cancel()
            server.kill()


def session(target, graph=None):
    """A session none of whose calls takes longer than a minute."""
    return tf1.Session(target, graph=graph, config=tf1.ConfigProto(operation_timeout_in_ms=60_000))


def regression():
    """A training of a line, with a queue, a moving average and a summary."""
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [None, 3], "x")
        y = tf1.placeholder(tf.float32, [None], "y")
        w = tf1.get_variable("w", [3, 1], initializer=tf1.random_normal_initializer(seed=7))
        b = tf1.get_variable("b", [], initializer=tf1.zeros_initializer(), use_resource=True)
        step = tf1.train.get_or_create_global_step()
        loss = tf.reduce_mean(tf1.squared_difference(tf.squeeze(tf.matmul(x, w), 1) + b, y), name="loss")
        train = tf1.train.AdamOptimizer(0.1).minimize(loss, global_step=step, name="train")
        summary = tf1.summary.scalar("loss", loss)
        init = tf1.global_variables_initializer()
        saver = tf1.train.Saver()
    return graph, dict(x=x, y=y, w=w, b=b, step=step, loss=loss, train=train, summary=summary, init=init, saver=saver)


def batches(n):
    rng = np.random.default_rng(3)
    for _ in range(n):
        x = rng.normal(size=(8, 3)).astype(np.float32)
        yield x, x @ np.float32([1, -2, 3]) + 0.5


def train(target):
    graph, m = regression()
    losses = []
    with session(target, graph) as sess:
        sess.run(m["init"])
        for x, y in batches(20):
            loss, _ = sess.run([m["loss"], m["train"]], {m["x"]: x, m["y"]: y})
            losses.append(loss)
        return losses, sess.run([m["w"], m["b"], m["step"]])


def test_trains_as_tensorflow_does(target):
    losses, (w, b, step) = train(target)
    want, (want_w, want_b, want_step) = train("")
    np.testing.assert_allclose(losses, want, rtol=1e-5)
    np.testing.assert_allclose(w, want_w, rtol=1e-5)
    np.testing.assert_allclose(b, want_b, rtol=1e-5)
    assert step == want_step == 20


def test_clients_share_variables_and_checkpoints(target, tmp_path):
    graph, m = regression()
    with session(target, graph) as first:
        first.run(m["init"])
        feeds = dict(zip((m["x"], m["y"]), next(batches(1))))
        first.run(m["train"], feeds)
        w = first.run(m["w"])
        prefix = m["saver"].save(first, str(tmp_path / "model.ckpt"), global_step=1)
    with session(target, graph) as second:
        np.testing.assert_array_equal(second.run(m["w"]), w)
        second.run(m["train"], feeds)
        assert second.run(m["step"]) == 2
        m["saver"].restore(second, prefix)
        assert second.run(m["step"]) == 1
        np.testing.assert_array_equal(second.run(m["w"]), w)
    np.testing.assert_array_equal(tf.train.load_checkpoint(prefix).get_tensor("w"), w)


def test_a_graph_that_grows(target):
    with tf.Graph().as_default(), session(target) as sess:
        a = tf.constant(3.0)
        assert sess.run(a) == 3
        assert sess.run(a * 2) == 6
        make = sess.make_callable(a + 1)
        assert make() == 4
        assert [d.device_type for d in sess.list_devices()] == ["CPU"]


def test_errors_name_the_op(target):
    with tf.Graph().as_default(), session(target) as sess:
        v = tf1.get_variable("v", [2])
        with pytest.raises(tf.errors.FailedPreconditionError) as uninitialised:
            sess.run(v)
        assert uninitialised.value.op.name == "v" or "v" in str(uninitialised.value)
        queue = tf1.train.input_producer([1.0, 2.0], num_epochs=1, shuffle=False)
        sess.run([tf1.local_variables_initializer(), tf1.global_variables_initializer()])
        coord = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(sess, coord)
        item = queue.dequeue()
        assert [sess.run(item), sess.run(item)] == [1.0, 2.0]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(item)
        coord.request_stop()
        coord.join(threads)


def test_timeout(target):
    with tf.Graph().as_default(), session(target) as sess:
        item = tf1.FIFOQueue(1, [tf.float32]).dequeue()
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(item, options=tf1.RunOptions(timeout_in_ms=100))


@pytest.fixture
def training(commands, tmp_path):
    """A training without an end whose master is "local"."""
    logdir = tmp_path / "logdir"
    process = commands.start_training(logdir, master="local", train__steps=1_000_000, supervisor__save_model_steps=100)
    process.logdir = logdir
    yield process
    if process.running:
        process.kill()


def test_python_looks_into_a_training(training, commands, tmp_path):
    served = re.compile(r"the model is served at (grpc://127\.0\.0\.1:\d+)$", re.MULTILINE)
    training.wait_until(lambda: served.search(training.text) and tf.train.latest_checkpoint(str(training.logdir)), "checkpoint")
    saved = tf.train.latest_checkpoint(str(training.logdir))
    graph = tf.Graph()
    with graph.as_default():
        tf1.train.import_meta_graph(f"{saved}.meta")
        trained = {v.op.name: v for v in tf1.trainable_variables()}
        step = tf1.train.get_global_step()
    with session(served.search(training.text)[1], graph) as sess:
        reached, seen = sess.run([step, trained])
        training.wait_until(lambda: sess.run(step) > reached, "further step")
        assert training.running
    training.signal(signal.SIGTERM)
    assert_success(training.wait())
    # What was seen is what a training of its own has at that step, bit for bit.
    assert_success(commands.train(tmp_path / "alone", train__steps=reached))
    alone = checkpoints.variables(checkpoints.latest(tmp_path / "alone"))
    assert len(seen) >= 4
    for name, value in seen.items():
        np.testing.assert_array_equal(value, alone[name], err_msg=name)
