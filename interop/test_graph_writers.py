"""Summary writers of tf.summary in a graph: TensorBoard shows the same values of a run in this process as of TensorFlow's."""

import subprocess
import sys

import tensorflow as tf
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer

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
