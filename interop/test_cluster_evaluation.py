"""What evaluates, saves and records a training on TensorFlow's servers changes no bit of its weights."""

import numpy as np
import pytest
import tensorflow as tf
from harness import checkpoints
from harness.commands import assert_success
from test_cluster_jobs import evaluations, job, setter

tf1 = tf.compat.v1

STEPS = 24
QUIET = {"eval__steps": 0, "eval__fetches": "['accuracy']", "supervisor__save_model_steps": STEPS,
         "supervisor__save_summaries_steps": 1000, "supervisor__save_model_secs": 0}
BUSY = {
    "evaluations": {"eval__steps": 1},
    "other evaluations": {"eval__steps": 3, "eval__batch_size": 7, "eval__keep_best": 2, "eval__fetches": "['loss', 'streaming', 'drawn']"},
    "saves": {"supervisor__save_model_steps": 1, "supervisor__save_model_secs": 0.01},
    "summaries": {"supervisor__save_summaries_steps": 1},
    "all by the client": {"eval__steps": 2, "supervisor__save_model_steps": 5, "supervisor__save_summaries_steps": 4,
                          "cluster__checkpoint_via": "client"},
}


@tf.function
def noise(shape):
    return tf.random.normal(shape, stddev=0.1, seed=5)


def export(path):
    """Random numbers from ops, a function and a generator, which is a variable; and tensors that assign variables of both
    kinds."""
    with tf.Graph().as_default(), tf1.device(setter("/job:worker")):
        tf1.set_random_seed(11)
        x = tf1.placeholder(tf.float32, [None, 64], "x")
        y = tf1.placeholder(tf.int64, [None], "y")
        weights = tf1.get_variable("weights", [64, 10], initializer=tf1.zeros_initializer(), use_resource=False)
        bias = tf1.get_variable("bias", [10], initializer=tf1.zeros_initializer(), use_resource=True)
        generator = tf1.get_variable("generator", initializer=np.array([1, 2, 3], np.int64), use_resource=True, trainable=False)
        drawn = tf.raw_ops.StatefulUniform(resource=generator.handle, algorithm=1, shape=[10], dtype=tf.float32)
        tf.reduce_mean(drawn, name="drawn")
        rows = tf.nn.dropout(x + noise(tf.shape(x)), rate=0.3)
        logits = tf.matmul(rows, weights) + bias * drawn
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
        average = tf1.get_variable("average", initializer=0.0, use_resource=False, trainable=False)
        total = tf1.get_variable("streamed", initializer=0.0, use_resource=True, trainable=False)
        follow = tf1.assign_add(average, 0.1 * (loss - average))
        tf.add(follow, tf1.assign_add(total, follow), name="streaming")
        tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32), name="accuracy")
        tf1.summary.scalar("loss", loss)
        step = tf1.train.get_or_create_global_step()
        tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, step, name="train")
        tf1.train.Saver()
        tf1.train.export_meta_graph(str(path))


@pytest.fixture
def train(cluster, commands, tmp_path):
    """Trains with settings. Returns the logdir."""
    meta = tmp_path / "noisy.meta"
    export(meta)
    config = job(tmp_path, meta, STEPS)
    made = []

    def run(**settings):
        logdir = tmp_path / f"run{len(made)}"
        made.append(logdir)
        assert_success(commands.train(logdir, config, master=cluster.target(), cluster__ps_tasks=1, **(QUIET | settings)))
        return logdir

    return run


def test_nothing_but_the_training_changes_the_weights(train):
    want = checkpoints.variables(checkpoints.latest(train()))
    assert want["global_step"] == STEPS and want["average"] == want["streamed"] == 0
    assert list(want["generator"]) != [1, 2, 3] and want["weights"].any()
    for name, settings in BUSY.items():
        got = checkpoints.variables(checkpoints.latest(train(**settings)))
        assert set(got) == set(want)
        assert [v for v in want if got[v].tobytes() != want[v].tobytes()] == [], name


def test_an_evaluation_is_a_function_of_the_model_and_the_step(train):
    """However often it was made before."""
    often, once = (evaluations(train(eval__fetches="['loss', 'streaming', 'drawn']", eval__steps=steps)) for steps in (1, STEPS))
    assert set(often) == set(once) == {"loss", "streaming", "drawn"}
    for tag, points in once.items():
        assert points[STEPS] == often[tag][STEPS]
    assert len(set(often["loss"].values())) == STEPS
