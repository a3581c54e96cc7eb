"""A stop ends a step that waits on TensorFlow's servers for a queue, and lets one that computes finish.

INTEROP_NEMESIS=long tries every kind of wait.
"""

import contextlib
import itertools
import json
import os
import signal

import pytest
import tensorflow as tf
from harness import checkpoints
from harness.commands import assert_success

tf1 = tf.compat.v1
LONG = os.environ.get("INTEROP_NEMESIS") == "long"
PS = "/job:ps/task:0"
GRACE = 100_000  # seconds: a step that is not ended outlives the test


def number(name):
    """A resource whose name on the servers no other test has."""
    return dict(shared_name=f"blocked_steps_{name}")


def fifo(name, capacity=100):
    return tf1.FIFOQueue(capacity, [tf.float32], shapes=[[]], **number(name))


def dequeue(name):
    queue = fifo(name)
    tf.identity(queue.size(), "size")
    return queue.dequeue_many(2)[0], queue.enqueue(1.0, name="give")


def staged(name):
    values = dict(dtypes=[tf.float32], **number(name))
    give = tf1.group(tf.raw_ops.Stage(values=[1.0], **number(name)), name="give")
    tf.identity(tf.raw_ops.StageSize(**values), "size")
    return tf.raw_ops.Unstage(**values)[0], give


def read(name):
    """Of a reader that waits for the names of files."""
    files = tf1.FIFOQueue(100, [tf.string], shapes=[[]], **number(name))
    give = files.enqueue("/etc/hostname", name="give")
    tf.identity(files.size(), "size")
    reader = tf.raw_ops.WholeFileReaderV2(**number(name + "_reader"))
    text = tf.raw_ops.ReaderReadV2(reader_handle=reader, queue_handle=files.queue_ref).value
    return tf.cast(tf.strings.length(text), tf.float32) * 0 + 1, give


def full(name):
    """Not by what it takes: by the room in a queue that others should take from."""
    queue = fifo(name, capacity=12)
    tf.identity(queue.size(), "size")
    give = tf1.group(queue.dequeue(), name="give")
    with tf1.control_dependencies([queue.enqueue(1.0)]):
        return tf.constant(1.0), give


def called(name):
    """In a function."""
    queue = fifo(name)
    tf.identity(queue.size(), "size")
    give = queue.enqueue(1.0, name="give")
    return tf.function(lambda: queue.dequeue() * queue.dequeue())(), give


def branched(name):
    """In a branch, in a function."""
    queue = fifo(name)
    tf.identity(queue.size(), "size")
    give = queue.enqueue(1.0, name="give")
    on = tf1.placeholder_with_default(True, [])
    return tf.function(lambda x: tf.cond(x, lambda: queue.dequeue() * queue.dequeue(), lambda: 0.0))(on), give


def repeated(name):
    """In a loop, in a function: two elements a step, and it waits for its second turn."""
    queue = fifo(name)
    tf.identity(queue.size(), "size")
    give = queue.enqueue(1.0, name="give")

    @tf.function
    def product(n):
        return tf.while_loop(lambda i, p: i < n, lambda i, p: (i + 1, p * queue.dequeue()), [0, 1.0])[1]

    return product(tf1.placeholder_with_default(2, [])), give


def looped(name):
    """The same with the loops of TensorFlow 1."""
    queue = fifo(name)
    tf.identity(queue.size(), "size")
    give = queue.enqueue(1.0, name="give")
    tf1.disable_control_flow_v2()
    try:
        return tf1.while_loop(lambda i, _: i < 2, lambda i, p: (i + 1, p * queue.dequeue()), [0, 1.0])[1], give
    finally:
        tf1.enable_control_flow_v2()


def export(path, source):
    """A training that adds up what it takes. "give" lets it do a part of a step."""
    with tf.Graph().as_default(), tf1.device(tf1.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker")):
        with tf1.device(PS):
            value, _ = source(path.stem)
        total = tf1.get_variable("total", [], tf.float32, tf1.zeros_initializer())
        step = tf1.train.get_or_create_global_step()
        loss = tf.identity(value, "loss")
        with tf1.control_dependencies([tf1.assign_add(total, loss)]):
            tf.group(tf1.assign_add(step, 1), name="train")
        tf1.train.Saver()
        tf1.train.export_meta_graph(str(path))


def job(meta, loss="loss"):
    config = meta.with_suffix(".toml")
    config.write_text(f'[graph]\nmeta = "{meta}"\ntrain_op = "train"\nloss = "{loss}"\n')
    return config


@contextlib.contextmanager
def another_client(target, meta):
    with tf.Graph().as_default(), tf1.Session(target) as session:
        tf1.train.import_meta_graph(str(meta))
        yield session


def step_of(commands, logdir):
    result = commands.run("trainerd", "status", "--json", logdir)
    try:
        return json.loads(result.out).get("step")
    except ValueError:
        return None


# How many steps each can do.
SOURCES = {dequeue: 10, staged: 20, read: 20, full: 12, called: 10, branched: 10, repeated: 10, looped: 10}


def compute(name):
    """Waits for nothing that does not come: it takes what is there, and computes for longer than a step may wait."""
    queue = fifo(name)
    tf.identity(queue.size(), "size")
    give = queue.enqueue_many([[1.0] * 100], name="give")
    with tf1.control_dependencies([queue.dequeue()]):
        square = tf.random.stateless_uniform([500, 500], [1, 2])
        product = tf1.while_loop(lambda i, m: i < 400, lambda i, m: (i + 1, tf.nn.relu(m @ square) * 1e-3), [0, square])[1]
    return tf.minimum(tf.reduce_sum(product), 0) + 1, give


def take_turns(name):
    """Computes in a loop that takes something in each turn, so that it is often seen waiting for a moment."""
    queue = fifo(name, capacity=100_000)
    tf.identity(queue.size(), "size")
    give = queue.enqueue_many([[1.0] * 50_000], name="give")

    @tf.function
    def turns(n):
        return tf.while_loop(lambda i, p: i < n, lambda i, p: (i + 1, p * queue.dequeue()), [0, 1.0], parallel_iterations=1)[1]

    return turns(tf1.placeholder_with_default(50_000, [])), give


# TensorFlow's kernel takes an element out of a staging area even after the step was cancelled.
STAYS = {staged}


def start(commands, cluster, folder, source, via):
    meta = folder / f"{source.__name__}_{via}.meta"
    export(meta, source)
    with another_client(cluster.target(1), meta) as session:
        for _ in range({full: 0, compute: 1, take_turns: 1}.get(source, 20)):
            session.run("give")
    logdir = folder / meta.stem
    return logdir, commands.start_training(logdir, job(meta), master=cluster.target(), cluster__ps_tasks=1, train__steps=1000,
                                           cluster__checkpoint_via=via, supervisor__stop_grace_secs=GRACE)


@pytest.mark.parametrize(("source", "via"), list(itertools.product(SOURCES, ("server", "client"))) if LONG else [(dequeue, "server"), (full, "client"), (repeated, "server"), (looped, "client")])
def test_a_stop_ends_a_step_that_waits(source, via, commands, cluster, tmp_path):
    """The steps before it are saved, and nobody is left on the servers who would take what comes later."""
    logdir, process = start(commands, cluster, tmp_path, source, via)
    process.wait_until(lambda: step_of(commands, logdir) == SOURCES[source], "step that waits", poll=0.1)
    process.signal(signal.SIGTERM)
    assert_success(process.wait())
    saved = checkpoints.variables(checkpoints.latest(logdir))
    assert saved["global_step"] == saved["total"] == SOURCES[source]
    with another_client(cluster.target(1), logdir.with_suffix(".meta")) as session:
        before = session.run("size:0")
        session.run("give")
        assert session.run("size:0") == before + (-1 if source == full else 0 if source in STAYS else 1)


@pytest.mark.parametrize("source", [compute, take_turns])
def test_a_stop_lets_a_step_that_computes_finish(source, commands, cluster, tmp_path):
    logdir, process = start(commands, cluster, tmp_path, source, "server")
    process.wait_until(lambda: "training from the beginning" in process.text, "begin")
    process.signal(signal.SIGTERM)
    result = assert_success(process.wait())
    saved = checkpoints.variables(checkpoints.latest(logdir))
    assert saved["global_step"] == saved["total"], str(result)
    assert "waits on the servers" not in result.err
