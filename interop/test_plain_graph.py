"""A graph without saver, init and ready ops is trained by a Go program, on a real TensorFlow server and in its own process.

TensorFlow reads the checkpoints and what the profiler recorded.
"""

import json
import pathlib
import shutil
import subprocess

import pytest
import tensorflow as tf
from tensorflow.python.client import timeline

tf1 = tf.compat.v1

REPO = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def plainchief(tmp_path_factory):
    go = shutil.which("go")
    if not go:
        pytest.skip("no go here to build the program that trains")
    program = tmp_path_factory.mktemp("plainchief") / "plainchief"
    subprocess.run([go, "build", "-o", program, "./interop/plainchief"], check=True, cwd=REPO)
    return program


@pytest.fixture(scope="module", params=["reference", "resource"])
def plain_graph(request, tmp_path_factory):
    """A MetaGraph with w, which goes half of the way to 4 in each step, and the values of w after each."""
    name = str(tmp_path_factory.mktemp("graph") / "plain.meta")
    with tf.Graph().as_default():
        resource = request.param == "resource"
        keys = [tf1.GraphKeys.GLOBAL_STEP, tf1.GraphKeys.GLOBAL_VARIABLES]
        step = tf1.get_variable("global_step", initializer=tf.constant(0, tf.int64), use_resource=resource, trainable=False,
                                collections=keys)
        w = tf1.get_variable("w", initializer=0.0, use_resource=resource)
        loss = tf.square(w - 4.0, name="loss")
        tf1.summary.scalar("loss", loss)
        train = tf1.train.GradientDescentOptimizer(0.25).minimize(loss, global_step=step, name="train")
        tf1.train.export_meta_graph(name)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            values = [session.run(w)]
            for _ in range(5):
                session.run(train)
                values.append(session.run(w))
    return name, values


@pytest.mark.parametrize("remote", [False, True], ids=["process", "server"])
def test_a_plain_graph_is_trained_and_restored(plainchief, plain_graph, remote, tmp_path):
    name, values = plain_graph
    master = tf1.train.Server.create_local_server().target if remote else ""
    for last in (3, 5):  # the second run continues where the first one ended
        subprocess.run([plainchief, name, master, tmp_path, str(last)], check=True, timeout=120)
    saved = {p: tf.train.load_checkpoint(p) for p in tf.train.get_checkpoint_state(tmp_path).all_model_checkpoint_paths}
    got = {int(r.get_tensor("global_step")): r.get_tensor("w") for r in saved.values()}
    assert got == {step: values[step] for step in (0, 2, 3, 4, 5)}
    losses, traced = {}, []
    for events in sorted(tmp_path.glob("events.out.tfevents.*")):
        for event in tf1.train.summary_iterator(str(events)):
            losses.update({event.step: v.simple_value for v in event.summary.value})
            if event.HasField("tagged_run_metadata"):
                traced.append(event.tagged_run_metadata.tag)
                check_timeline(event.tagged_run_metadata.run_metadata, tmp_path / f"timeline-{event.step}.json")
    assert set(losses) == {1, 3, 4}, "each run's first step, and each second one after it"
    assert traced == ["step_2", "step_5"]


def check_timeline(run_metadata, file):
    """TensorFlow makes the same timeline of what was recorded: the same ops of the same nodes."""
    metadata = tf1.RunMetadata.FromString(run_metadata)
    theirs = json.loads(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())
    assert ops_of(json.loads(file.read_text())) == ops_of(theirs) != []


def ops_of(trace):
    return sorted((e["name"], e["args"]["name"]) for e in trace["traceEvents"] if e["ph"] == "X")
