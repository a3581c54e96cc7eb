"""What trains on a cluster: model families with synchronous workers, and graphs that TensorFlow programs have exported.

The exported graphs keep the devices that they give to their parts.
"""

import pathlib
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
from harness import checkpoints, events
from harness.commands import REPO, assert_success
from harness.logdirs import current_step, steps_shown

tf1 = tf.compat.v1

STEPS = 120
SYNC = {"cluster__sync": "true", "model__learning_rate": 0.01, "supervisor__save_summaries_steps": 10}
GRAPH = """
[data]
file = "{data}"
label = -1
scale = 16
seed = 1
test_fraction = 0.2
batch_size = 32
[graph]
meta = "{meta}"
feeds = {{ x = "features", y = "label" }}
loss = "loss"
[eval]
fetches = ["accuracy", "loss"]
[train]
steps = {steps}
"""


def evaluations(logdir):
    return {tag: {step: value for step, value, _ in points}
            for tag, points in events.scalars(events.read_dir(logdir / "eval")).items()}


@pytest.fixture
def together(replica):
    """A training in which the gradients of two workers make each update."""
    settings = SYNC | {"train__steps": STEPS, "train__eval_steps": 20}
    worker, chief = replica(1, **settings), replica(0, **settings)
    for process in (chief, worker):
        assert_success(process.wait())
    return replica.logdir


def test_synchronous_workers_make_the_steps_of_twice_the_batch(together, commands, tmp_path):
    """The mean of the gradients of two batches is the gradient of both as one."""
    alone = tmp_path / "alone"
    assert_success(commands.train(
        alone, data__batch_size=64, train__steps=STEPS, train__eval_steps=20, model__learning_rate=0.01))
    here, there = checkpoints.variables(checkpoints.latest(alone)), checkpoints.variables(checkpoints.latest(together))
    assert here["global_step"] == there["global_step"] == STEPS
    want, got = evaluations(alone), evaluations(together)
    assert set(got["loss"]) == set(want["loss"]) == set(range(20, STEPS + 1, 20))
    for step, value in want["loss"].items():
        np.testing.assert_allclose(got["loss"][step], value, rtol=1e-3, err_msg=f"step {step}")
    for name, value in here.items():
        if np.issubdtype(value.dtype, np.floating):
            np.testing.assert_allclose(there[name], value, rtol=0.02, atol=2e-4, err_msg=name)
    training = events.scalars(events.read_dir(together))["loss"]
    assert [step for step, _, _ in training] == [1, *range(10, STEPS + 1, 10)]


def test_a_synchronous_worker_is_waited_for(replica):
    """The chief says for whom; the worker's successor does the step that was left."""
    chief, worker = replica(0, **SYNC), replica(1, **SYNC)
    chief.wait_until(lambda: current_step(replica.logdir) >= 50, "checkpoint")
    worker.kill()
    said = re.compile(r"waiting for others to do their part of the step.*\bworker 1 \(its last step was (\d+)\)")
    chief.wait_until(lambda: said.search(chief.text), "word of who is waited for")
    reached = int(said.search(chief.text)[1])
    again = replica(1, **SYNC)
    again.wait_until(lambda: current_step(replica.logdir) >= reached + 50, "step after the wait")
    assert chief.running and max(steps_shown(chief.text)) >= reached


def test_a_synchronous_worker_that_stays_away(replica):
    chief, worker = (replica(task, **SYNC, cluster__patience_secs=10) for task in (0, 1))
    chief.wait_until(lambda: current_step(replica.logdir) >= 50, "checkpoint")
    worker.kill()
    result = chief.wait()
    assert result.code != 0
    assert re.search(r"waited \d+s for worker 1 \(its last step was \d+\); start what is missing, or set cluster.patience_secs", result.err)


def export(path, optimizer, device):
    """Writes the graph of a softmax regression as a worker of a cluster builds it. Returns the names of its variables."""
    with tf.Graph().as_default(), tf1.device(device):
        x = tf1.placeholder(tf.float32, [None, 64], "x")
        y = tf1.placeholder(tf.int64, [None], "y")
        weights = tf1.get_variable("weights", [64, 10], initializer=tf1.zeros_initializer())
        bias = tf1.get_variable("bias", [10], initializer=tf1.zeros_initializer(), use_resource=True)
        logits = tf.matmul(x, weights) + bias
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
        tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32), name="accuracy")
        tf1.summary.scalar("loss", loss)
        step = tf1.train.get_or_create_global_step()
        optimizer(loss, step)
        tf1.train.Saver()
        tf1.train.export_meta_graph(str(path))
        return {v.op.name for v in tf1.global_variables()}


def plain(loss, step):
    tf1.train.MomentumOptimizer(0.5, 0.9).minimize(loss, step, name="train")


def setter(worker):
    return tf1.train.replica_device_setter(ps_tasks=1, worker_device=worker)


def job(folder, meta, steps):
    path = folder / f"{meta.stem}.toml"
    path.write_text(GRAPH.format(data=REPO / "examples" / "digits" / "digits.csv.gz", meta=meta, steps=steps))
    return path


def homes(target, prefix):
    """For each variable of a checkpoint's graph the servers that have a value of it in their memory."""
    variables = [n for n in checkpoints.graph_def(prefix).node if n.op in ("VarHandleOp", "VariableV2")]
    asked = {}
    with tf.Graph().as_default():
        for server in ("/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"):
            with tf1.device(server):
                for n in variables:
                    shape = [d.size for d in n.attr["shape"].shape.dim]
                    is_known = dict(dtype=n.attr["dtype"].type, shape=shape, shared_name=n.attr["shared_name"].s or n.name)
                    if n.op == "VarHandleOp":
                        asked[n.name, server] = tf.raw_ops.VarIsInitializedOp(resource=tf.raw_ops.VarHandleOp(**is_known))
                    else:
                        asked[n.name, server] = tf.raw_ops.IsVariableInitialized(ref=tf.raw_ops.VariableV2(**is_known))
        with tf1.Session(target, config=tf1.ConfigProto(operation_timeout_in_ms=60_000)) as session:
            found = session.run(asked)
    return {n.name: [server for (name, server), has in found.items() if name == n.name and has] for n in variables}


def test_the_client_saves_what_the_servers_save(cluster, commands, tmp_path):
    """Same names, and the same bytes for the same values."""
    saved = {}
    for via in ("server", "client"):
        logdir = tmp_path / via
        assert_success(commands.train(
            logdir, master=cluster.target(), cluster__ps_tasks=1, cluster__checkpoint_via=via, train__steps=60,
            supervisor__save_model_steps=30, supervisor__save_model_secs=0))
        saved[via] = {p.name: p.read_bytes() for p in logdir.iterdir() if re.search(r"\.(index|meta|data-.*)$", p.name)}
    assert {"model.ckpt-30.index", "model.ckpt-60.index", "model.ckpt-60.data-00000-of-00001", "model.ckpt-60.meta"} <= set(saved["server"])
    assert saved["client"] == saved["server"]


@pytest.fixture
def demonstration(bin_dir, tmp_path):
    """What `make cluster` runs."""
    log = tmp_path / "log"
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [sys.executable, REPO / "interop" / "cluster.py", "--trainerd", bin_dir / "trainerd", "--logdir", tmp_path / "logdir",
             "--set", "train.steps=1000000", REPO / "examples" / "cluster" / "graph.toml"], stdout=out, stderr=out, cwd=REPO)
    process.log = log
    yield process
    process.kill()
    process.wait()


def test_the_cluster_of_make_ends_with_ctrl_c(demonstration, tmp_path):
    deadline = time.monotonic() + 500

    def until(condition, what):
        while not condition():
            assert demonstration.poll() is None and time.monotonic() < deadline, f"no {what}:\n{demonstration.log.read_text()}"
            time.sleep(0.05)

    def pids():
        return [int(pid) for pid in re.findall(r"process (\d+)$", demonstration.log.read_text(), re.MULTILINE)]

    until(lambda: current_step(tmp_path / "logdir") >= 250, "checkpoint")
    until(lambda: len(pids()) == 5 and re.search(r"worker 1 \| .*step", demonstration.log.read_text()), "second worker at work")
    demonstration.send_signal(signal.SIGINT)
    assert demonstration.wait(deadline - time.monotonic()) == 0, demonstration.log.read_text()
    assert "and saved" in demonstration.log.read_text()
    assert [pid for pid in pids() if pathlib.Path(f"/proc/{pid}").exists()] == []


def test_a_family_is_placed_on_the_parameter_server(together, cluster):
    places = homes(cluster.target(), checkpoints.latest(together))
    assert len(places) > 5
    assert places.pop("sync_rep_local_step") == ["/job:worker/task:0", "/job:worker/task:1"]  # each worker's own
    assert {name: place for name, place in places.items() if place != ["/job:ps/task:0"]} == {}


def test_an_exported_graph_keeps_its_places(replica, cluster, tmp_path):
    """Each worker has the same file: its device is any worker's, and the session knows which one it is."""
    meta = tmp_path / "softmax.meta"
    names = export(meta, plain, setter("/job:worker"))
    config = job(tmp_path, meta, 300)
    own = {"config": config, "train__steps": 300, "train__eval_steps": None}
    worker, chief = replica(1, **own), replica(0, **own)
    results = [assert_success(p.wait()) for p in (chief, worker)]
    prefix = checkpoints.latest(replica.logdir)
    assert 300 <= checkpoints.variables(prefix)["global_step"] <= 301
    assert float(re.search(r"test accuracy: (\d\.\d+)", results[0].out)[1]) > 0.9
    assert homes(cluster.target(), prefix) == {name: ["/job:ps/task:0"] for name in names}


def test_an_exported_graph_without_places_is_refused_to_workers(replica, tmp_path):
    meta = tmp_path / "bare.meta"
    export(meta, plain, None)
    result = replica(1, config=job(tmp_path, meta, 10), train__eval_steps=None).wait()
    assert result.code != 0
    assert "replica_device_setter" in result.err


def test_an_exported_graph_reads_on(commands, cluster, tmp_path):
    """Its queue is new in each session, though the server still has the old one: nothing is left out, nothing read twice."""
    meta = tmp_path / "sum.meta"
    with tf.Graph().as_default(), tf1.device(setter("/job:worker")):
        number = tf1.train.input_producer(tf.range(1000, dtype=tf.int64), shuffle=False).dequeue()
        total = tf1.get_variable("total", [], tf.int64, tf1.zeros_initializer())
        tf.group(tf1.assign_add(total, number), tf1.assign_add(tf1.train.get_or_create_global_step(), 1), name="train")
        tf1.train.Saver()
        tf1.train.export_meta_graph(str(meta))
    config = tmp_path / "sum.toml"
    config.write_text(f'[graph]\nmeta = "{meta}"\ntrain_op = "train"\n')
    for steps in (10, 30):
        assert_success(commands.train(tmp_path / "logdir", config, master=cluster.target(), cluster__ps_tasks=1, train__steps=steps))
        saved = checkpoints.variables(checkpoints.latest(tmp_path / "logdir"))
        assert (saved["global_step"], saved["total"]) == (steps, sum(range(steps)))


@pytest.fixture
def together_by_tensorflow(tmp_path):
    return synchronous_jobs(tmp_path)


def synchronous_jobs(tmp_path):
    """The jobs of the two workers of a program with SyncReplicasOptimizer: the chief's has the runner of its updates."""
    def config(chief):
        meta = tmp_path / f"sync{'-chief' if chief else ''}.meta"

        def optimizer(loss, step):
            sync = tf1.train.SyncReplicasOptimizer(tf1.train.GradientDescentOptimizer(0.5), replicas_to_aggregate=2, total_num_replicas=2)
            sync.minimize(loss, step, name="train")
            tf1.add_to_collection(tf1.GraphKeys.READY_FOR_LOCAL_INIT_OP, sync.ready_for_local_init_op)
            tf1.add_to_collection(tf1.GraphKeys.LOCAL_INIT_OP, sync.chief_init_op if chief else sync.local_step_init_op)
            if chief:
                tf1.train.add_queue_runner(sync.get_chief_queue_runner())

        export(meta, optimizer, setter("/job:worker"))
        return job(tmp_path, meta, 1000)

    return [config(chief) for chief in (True, False)]


def test_an_exported_graph_whose_workers_wait_for_each_other(replica, together_by_tensorflow):
    """To step 60, and again to step 120. Then one of them is not there, whom the chief names."""
    def start(task, **settings):
        return replica(task, config=together_by_tensorflow[task], train__eval_steps=None, **settings)

    for steps in (60, 120):
        for process in [start(task, train__steps=steps) for task in (0, 1)]:
            assert_success(process.wait())
        assert checkpoints.variables(checkpoints.latest(replica.logdir))["global_step"] == steps
    result = start(0, cluster__patience_secs=10).wait()
    assert result.code != 0
    assert "has not ended within 10s: all servers answer; it waits for worker 1 (its last step was 120)" in result.err, str(result)


def test_a_stop_ends_a_step_that_waits_for_others(replica, together_by_tensorflow):
    """No process waits for gradients that nobody gives any more, whatever its grace: not the worker, not the chief, which
    saves, and not one that begins again on the same servers. Evaluations between the steps change nothing of that, and what
    they gave is kept."""
    def start(task):
        return replica(task, config=together_by_tensorflow[task], train__eval_steps=20, train__steps=1_000_000,
                       supervisor__stop_grace_secs=100_000)

    for alone in (1, 0):
        processes = [start(task) for task in (0, 1)]
        wanted = max(current_step(replica.logdir), 0) + 100
        processes[0].wait_until(lambda: current_step(replica.logdir) >= wanted, "checkpoint")
        processes[1 - alone].kill()
        processes[1 - alone].wait()
        blocked = processes[alone]
        blocked.signal(signal.SIGTERM)
        assert_success(blocked.wait())
    assert current_step(replica.logdir) >= wanted and "and saved" in blocked.text
    evaluated = sorted(evaluations(replica.logdir)["accuracy"])
    assert 0 <= current_step(replica.logdir) - evaluated[-1] <= 20 and len(evaluated) >= wanted // 20, evaluated
