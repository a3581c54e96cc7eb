"""Summary writers of tf.summary in a graph: TensorBoard shows the same values for a run in this process as for TensorFlow's.

A run on servers that are killed gives one curve.
"""

import subprocess
import sys

import tensorflow as tf
from harness.commands import assert_success
from harness.logdirs import current_step
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer

tf1 = tf.compat.v1

STEPS = 5
PROGRAM = """
import sys, tensorflow as tf
tf1 = tf.compat.v1
tf1.disable_v2_behavior()
step = tf1.train.get_or_create_global_step()
w = tf1.get_variable("w", initializer=tf.constant([[3.0, 1], [2, -1]]), use_resource=True)
loss = tf.reduce_sum(tf.square(w))
train_writer = tf.summary.create_file_writer("curves")
eval_writer = tf.summary.create_file_writer("curves/eval", filename_suffix=".eval")
with train_writer.as_default(), tf.name_scope("scope"):
    ops = [tf.summary.scalar("loss", loss, step=step), tf.summary.histogram("w", w, step=step), tf.summary.text("text", tf.as_string(step), step=step)]
with eval_writer.as_default(), tf.summary.record_if(tf.equal(step %% 3, 0)):
    ops.append(tf.summary.scalar("half", loss / 2, step=step))
with tf.control_dependencies(ops):
    train = tf1.train.GradientDescentOptimizer(0.25).minimize(loss, step, name="train")
tf1.add_to_collection("train_op", train)
tf1.train.export_meta_graph("graph.meta")
with tf1.Session() as session:
    session.run([tf1.global_variables_initializer(), train_writer.init(), eval_writer.init()])
    for _ in range(%d):
        session.run(train)
    session.run([train_writer.close(), eval_writer.close()])
""" % STEPS


def shown(folder):
    """What TensorBoard has of each run and tag: the plugin, the steps and the values."""
    runs = EventMultiplexer().AddRunsFromDirectory(str(folder))
    runs.Reload()
    return {
        (run, tag): (acc.SummaryMetadata(tag).plugin_data.plugin_name, [(e.step, tf.make_ndarray(e.tensor_proto).tolist()) for e in acc.Tensors(tag)])
        for run in runs.Runs()
        for acc in [runs.GetAccumulator(run)]
        for tag in acc.Tags()["tensors"]
    }


def test_tensorboard_shows_the_values_of_tensorflow(bin_dir, tmp_path):
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, check=True, timeout=300)
    want = shown(tmp_path / "curves")
    assert len(want) == 4 and len(want["eval", "half"][1]) == 2, want
    (tmp_path / "curves").rename(tmp_path / "theirs")
    subprocess.run([bin_dir / "trainerd", "graph", "run", "graph.meta", "--steps", str(STEPS)], cwd=tmp_path, check=True, timeout=120)
    assert shown(tmp_path / "curves") == want


def export(path, folder):
    """Writes the graph of a training whose writer is on the parameter server, in a folder of that."""
    with tf.Graph().as_default(), tf1.device("/job:ps/task:0"):
        step = tf1.train.get_or_create_global_step()
        w = tf1.get_variable("w", initializer=tf.constant([[3.0, 1], [2, -1]]), use_resource=True)
        loss = tf.reduce_sum(tf.square(w))
        with tf.summary.create_file_writer(str(folder)).as_default():
            point = tf.summary.scalar("loss", loss, step=step)
        with tf.control_dependencies([point]):
            tf1.add_to_collection("train_op", tf1.train.GradientDescentOptimizer(1e-3).minimize(loss, step, name="train"))
        tf1.train.Saver()
        tf1.train.export_meta_graph(str(path))


def test_one_curve_of_servers_that_are_killed(replica, cluster, tmp_path):
    """First the chief is killed, then the server that writes, each some steps after a checkpoint."""
    meta, config, curves, steps = tmp_path / "graph.meta", tmp_path / "job.toml", tmp_path / "curves", 3000
    export(meta, curves)
    config.write_text(f'[graph]\nmeta = "{meta}"\n')
    settings = {"train__steps": steps, "train__eval_steps": None, "cluster__workers": 1}
    first = replica(0, config, **settings)
    first.wait_until(lambda: current_step(replica.logdir) >= 500, "checkpoint")
    first.kill()
    chief = replica(0, config, **settings)
    chief.wait_until(lambda: current_step(replica.logdir) >= 1500, "checkpoint of the next chief")
    cluster.kill("ps", 0)
    cluster.mend()
    assert_success(chief.wait())
    points = EventAccumulator(str(curves), size_guidance={"tensors": 0}).Reload().Tensors("loss")
    shown = [e.step for e in points]
    assert shown == sorted(shown) and set(shown) == set(range(steps))
    assert len(shown) <= steps + 1  # the checkpoint's own step, from which the second server continued
