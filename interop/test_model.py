"""Real TensorFlow imports the models that trainerd builds and trains them as it trains the same models of its own."""

import json
import os
import pathlib
import shutil
import subprocess
import types

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import variable_pb2

tf1 = tf.compat.v1

STEPS = 8
BATCH = 16
INPUTS = 12

OPTIMIZERS = {
    "sgd": lambda rate: tf1.train.GradientDescentOptimizer(rate),
    "momentum": lambda rate: tf1.train.MomentumOptimizer(rate, 0.9),
    "nesterov": lambda rate: tf1.train.MomentumOptimizer(rate, 0.9, use_nesterov=True),
    "adagrad": lambda rate: tf1.train.AdagradOptimizer(rate),
    "adam": lambda rate: tf1.train.AdamOptimizer(rate),
    "rmsprop": lambda rate: tf1.train.RMSPropOptimizer(rate),
}

RATE = 0.05

MLP = {"Family": "mlp", "Classes": 5, "Hidden": [9]}
DEEP = {"Family": "mlp", "Classes": 5, "Hidden": [9, 7]}
SOFTMAX = {"Family": "softmax", "Classes": 5}
LOGISTIC = {"Family": "logistic"}
LINEAR = {"Family": "linear"}
DECAY = {"DecaySteps": 3, "DecayRate": 0.5}

CASES = [(f"mlp-{name}", MLP, name) for name in OPTIMIZERS]
CASES += [(f"{family['Family']}-{name}", family, name)
          for family in (SOFTMAX, LOGISTIC, LINEAR) for name in ("sgd", "adam")]
CASES += [
    ("mlp-l2", {**MLP, "L2": 0.01}, "adam"),
    ("mlp-deep-tanh", {**DEEP, "Activation": "tanh", "Initializer": "glorot_normal", "L2": 0.01}, "sgd"),
    ("mlp-sigmoid", {**MLP, "Activation": "sigmoid", "Initializer": "truncated_normal"}, "rmsprop"),
    ("softmax-zeros", {**SOFTMAX, "Initializer": "zeros"}, "sgd"),
    ("softmax-decay", {**SOFTMAX, **DECAY}, "momentum"),
    ("linear-staircase-l2", {**LINEAR, **DECAY, "Staircase": True, "L2": 0.1}, "sgd"),
    ("wide", {"Family": "mlp", "Classes": 3, "Hidden": [128]}, "adam"),
]


@pytest.fixture(scope="session")
def emitter(tmp_path_factory):
    """The program that writes MetaGraphDefs."""
    go = shutil.which("go")
    if not go:
        pytest.skip("no go here to build the program that writes models")
    program = tmp_path_factory.mktemp("emit") / "emit"
    root = pathlib.Path(__file__).parent.parent
    subprocess.run([go, "build", "-o", program, "./interop/emit"], check=True, cwd=root)
    return program


@pytest.fixture
def emit(emitter, tmp_path):
    """Returns a function that builds a model from its config and gives its .meta file and names."""

    def run(config):
        config_file, meta = tmp_path / "config.json", tmp_path / "family.meta"
        config_file.write_text(json.dumps(config))
        out = subprocess.run([emitter, config_file, meta], check=True, capture_output=True)
        return types.SimpleNamespace(meta=str(meta), **json.loads(out.stdout))

    return run


def config_of(family, optimizer):
    config = {"Inputs": INPUTS, "Seed": 7, "LearningRate": RATE, "Optimizer": optimizer, **family}
    if optimizer == "nesterov":
        config.update(Optimizer="momentum", Nesterov=True)
    return config


def batches(config):
    rng = np.random.RandomState(3)
    for _ in range(STEPS):
        x = rng.rand(BATCH, INPUTS).astype(np.float32)
        if config["Family"] == "linear":
            yield {"x:0": x, "y:0": x.sum(1)}
        else:
            yield {"x:0": x, "y:0": rng.randint(0, config.get("Classes", 2), BATCH)}


def build_reference(config, optimizer):
    """The same model, made by TensorFlow's own functions."""
    family = config["Family"]
    x = tf1.placeholder(tf.float32, [None, INPUTS], "x")
    y = tf1.placeholder(tf.float32 if family == "linear" else tf.int64, [None], "y")
    step = tf1.train.create_global_step()
    initializer = {
        "glorot_uniform": tf1.glorot_uniform_initializer(),
        "glorot_normal": tf1.glorot_normal_initializer(),
        "truncated_normal": tf1.truncated_normal_initializer(stddev=0.1),
        "zeros": tf1.zeros_initializer(),
    }[config.get("Initializer", "glorot_uniform")]

    def dense(name, x, size):
        with tf1.variable_scope(name):
            kernel = tf1.get_variable("kernel", [x.shape[1], size], initializer=initializer, use_resource=True)
            bias = tf1.get_variable("bias", [size], initializer=tf1.zeros_initializer(), use_resource=True)
        return tf.nn.bias_add(tf.matmul(x, kernel), bias)

    activation = {"relu": tf.nn.relu, "tanh": tf.tanh, "sigmoid": tf.sigmoid}[config.get("Activation", "relu")]
    layers = config.get("Hidden", [])
    hidden = x
    for i, size in enumerate(layers):
        hidden = activation(dense(f"hidden_{i + 1}" if len(layers) > 1 else "hidden", hidden, size))
    if family == "linear":
        loss = tf.reduce_mean(tf.square(tf.reshape(dense("linear", x, 1), [-1]) - y))
    elif family == "logistic":
        logits = tf.reshape(dense("logits", x, 1), [-1])
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(y, tf.float32), logits=logits))
    else:
        logits = dense("logits", hidden, config["Classes"])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    if config.get("L2"):
        kernels = [v for v in tf1.trainable_variables() if v.op.name.endswith("kernel")]
        loss += config["L2"] * tf.add_n([tf.nn.l2_loss(v) for v in kernels])
    rate = config["LearningRate"]
    if config.get("DecaySteps"):
        rate = tf1.train.exponential_decay(rate, step, config["DecaySteps"], config["DecayRate"],
                                           config.get("Staircase", False))
    train = OPTIMIZERS[optimizer](rate).minimize(loss, step)
    return loss, train


def variable_defs(graph, collection):
    """The collection's VariableDefs as an export of the graph has them."""
    with graph.as_default():
        meta = tf1.train.export_meta_graph()
    return [variable_pb2.VariableDef.FromString(b) for b in meta.collection_def[collection].bytes_list.value]


def values_of(session, graph):
    with graph.as_default():
        return {v.op.name: session.run(v) for v in tf1.global_variables()}


def only(graph, collection):
    items = graph.get_collection(collection)
    assert len(items) == 1, f"{collection}: {items}"
    return items[0]


@pytest.mark.parametrize("family, optimizer", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_trains_as_tensorflow_does(emit, tmp_path, family, optimizer):
    config = config_of(family, optimizer)
    ours = emit(config)
    graph, reference = tf.Graph(), tf.Graph()
    with graph.as_default():
        saver = tf1.train.import_meta_graph(ours.meta)
    with reference.as_default():
        ref_loss, ref_train = build_reference(config, optimizer)
        ref_saver = tf1.train.Saver()
    for collection in ("variables", "trainable_variables", "global_step"):
        assert variable_defs(graph, collection) == variable_defs(reference, collection)
    assert saver.saver_def == ref_saver.saver_def

    with tf1.Session(graph=graph) as session, tf1.Session(graph=reference) as ref_session:
        assert session.run(only(graph, "ready_op")).size == len(graph.get_collection("variables"))
        session.run(only(graph, "init_op"))
        assert session.run(only(graph, "ready_for_local_init_op")).size == 0
        session.run(only(graph, "local_init_op"))
        assert session.run(only(graph, "ready_op")).size == 0

        # TensorFlow's saver reads what the imported one wrote: equal names, shapes and types.
        ref_saver.restore(ref_session, saver.save(session, str(tmp_path / "initial")))
        for i, feed in enumerate(batches(config)):
            loss, _ = session.run([ours.Loss, only(graph, "train_op")], feed)
            want, _ = ref_session.run([ref_loss, ref_train], feed)
            assert loss == pytest.approx(want, rel=1e-5, abs=1e-6), f"step {i}"
        got, want = values_of(session, graph), values_of(ref_session, reference)
        assert got.keys() == want.keys()
        for name in want:
            np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-5, err_msg=name)
        assert session.run(ours.GlobalStep) == got["global_step"] == STEPS

        prefix = saver.save(session, str(tmp_path / "model.ckpt"), global_step=STEPS)
        session.run(ours.TrainOp, feed)
        saver.restore(session, prefix)
        for name, value in values_of(session, graph).items():
            np.testing.assert_array_equal(value, got[name], err_msg=name)


def test_summaries_name_loss_accuracy_and_weights(emit):
    config = config_of({**MLP, **DECAY}, "adam")
    ours = emit(config)
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        tf1.train.import_meta_graph(ours.meta)
        session.run(ours.InitOp)
        feed = next(batches(config))
        text, loss, accuracy = session.run([only(graph, "summary_op"), ours.Loss, ours.Accuracy], feed)
        values = {v.tag: v for v in tf1.Summary.FromString(text).value}
        assert list(values) == ["loss", "accuracy", "learning_rate",
                                "hidden/kernel", "hidden/bias", "logits/kernel", "logits/bias"]
        assert values["loss"].simple_value == loss
        assert values["accuracy"].simple_value == accuracy
        assert values["learning_rate"].simple_value == pytest.approx(RATE)
        assert values["hidden/kernel"].histo.num == INPUTS * MLP["Hidden"][0]
        assert values["hidden/kernel"].histo.sum_squares == pytest.approx(
            np.square(session.run("hidden/kernel/Read/ReadVariableOp:0"), dtype=np.float64).sum())


RECORD = pathlib.Path(__file__).parent.parent / "trainerd/model/testdata/losses.json"


def recorded_batch(config):
    """The batch that the embedded runtime's test makes by the same rule."""
    i, j = np.indices((BATCH, config["Inputs"]))
    x = ((i * 7 + j * 3 + i * j) % 11).astype(np.float32) / np.float32(11)
    if config["Family"] == "linear":
        return {"x:0": x, "y:0": (np.arange(BATCH) % 3).astype(np.float32)}
    return {"x:0": x, "y:0": np.arange(BATCH) * 3 % config.get("Classes", 2)}


def test_recorded_losses_are_tensorflows(emit):
    """The losses to which the embedded runtime is held, from the seed's initial values on.

    UPDATE_GOLDEN=1 writes them again."""
    record = json.loads(RECORD.read_text())
    for case in record:
        ours = emit(case["config"])
        feed = recorded_batch(case["config"])
        with tf.Graph().as_default(), tf1.Session() as session:
            tf1.train.import_meta_graph(ours.meta)
            session.run(ours.InitOp)
            losses = [float(session.run([ours.Loss, ours.TrainOp], feed)[0]) for _ in range(STEPS)]
        if os.environ.get("UPDATE_GOLDEN"):
            case["losses"] = losses
        assert case["losses"] == pytest.approx(losses, rel=1e-5), case["config"]
    if os.environ.get("UPDATE_GOLDEN"):
        RECORD.write_text("[\n" + ",\n".join(json.dumps(case) for case in record) + "\n]\n")


@pytest.mark.parametrize("family", [MLP, SOFTMAX, LOGISTIC, LINEAR], ids=lambda f: f["Family"])
def test_predictions(emit, family):
    config = config_of(family, "sgd")
    ours = emit(config)
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.train.import_meta_graph(ours.meta)
        session.run(ours.InitOp)
        feed = next(batches(config))
        predictions = session.run(ours.Predictions, feed)
        assert predictions.shape == (BATCH,)
        if family is LINEAR:
            assert session.run(ours.Loss, feed) == pytest.approx(np.square(predictions - feed["y:0"]).mean(), rel=1e-5)
            return
        logits, accuracy = session.run([ours.Logits, ours.Accuracy], feed)
        classes = logits.argmax(1) if logits.ndim == 2 else (logits > 0).astype(np.int64)
        np.testing.assert_array_equal(predictions, classes)
        assert accuracy == pytest.approx((classes == feed["y:0"]).mean())


def test_seed_decides_the_initial_values(emit):
    def initial(seed):
        ours = emit({**config_of(DEEP, "sgd"), "Seed": seed})
        with tf.Graph().as_default() as graph, tf1.Session() as session:
            tf1.train.import_meta_graph(ours.meta)
            session.run(ours.InitOp)
            return values_of(session, graph)

    one, again, other = initial(0), initial(0), initial(1)
    for name in ("hidden_1/kernel", "hidden_2/kernel", "logits/kernel"):
        np.testing.assert_array_equal(one[name], again[name])
        assert (one[name] != other[name]).all()
        limit = np.sqrt(6 / sum(one[name].shape))
        assert 0.7 * limit < np.abs(one[name]).max() <= limit


def test_tensorflows_supervisor_runs_it(emit, tmp_path):
    """The collections are those that the original Supervisor looks for."""
    config = config_of(MLP, "adam")
    ours = emit(config)
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(ours.meta)
        supervisor = tf1.train.Supervisor(logdir=str(tmp_path), save_model_secs=0, save_summaries_secs=0)
        assert supervisor.init_op == graph.get_operation_by_name(ours.InitOp)
        assert supervisor.ready_op.name == ours.ReadyOp
        assert supervisor.summary_op.name == ours.SummaryOp
        with supervisor.managed_session() as session:
            for feed in batches(config):
                session.run(ours.TrainOp, feed)
            supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith(f"model.ckpt-{STEPS}")


def bare_program(resource):
    """A training without saver, init op or any other part that a Supervisor would have to make."""
    x = tf1.placeholder(tf.float32, [None, INPUTS], "x")
    y = tf1.placeholder(tf.int64, [None], "y")
    step = tf1.train.create_global_step()
    w = tf1.get_variable("w", [INPUTS, 5], initializer=tf1.zeros_initializer(), use_resource=resource)
    parts = tf1.get_variable("parts", [8, 5], initializer=tf1.ones_initializer(), use_resource=resource,
                             partitioner=tf1.fixed_size_partitioner(3))
    seen = tf1.get_variable("seen", [], initializer=tf1.zeros_initializer(), use_resource=resource,
                            collections=[tf1.GraphKeys.LOCAL_VARIABLES], trainable=False)
    logits = tf.matmul(x, w) + tf.reduce_sum(tf.convert_to_tensor(parts), 0) + 0 * seen
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
    tf1.summary.scalar("the_loss", loss)
    tf1.summary.scalar("half", loss / 2)
    tf1.train.AdamOptimizer(RATE).minimize(loss, step, name="train")


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_completed_graph_saves_what_tensorflows_saver_saves(emitter, tmp_path, resource):
    with tf.Graph().as_default():
        bare_program(resource)
        names = sorted(v.op.name for v in tf1.global_variables())
        local = [v.op.name for v in tf1.local_variables()]
        tf1.train.export_meta_graph(str(tmp_path / "bare.meta"))
    subprocess.run([emitter, tmp_path / "bare.meta", tmp_path / "completed.meta"], check=True)

    with tf.Graph().as_default() as graph, tf1.Session() as session:
        saver = tf1.train.import_meta_graph(str(tmp_path / "completed.meta"))
        ready = only(graph, "ready_op")
        assert sorted(n.decode() for n in session.run(ready)) == sorted(names + local)
        session.run(only(graph, "init_op"))
        assert [n.decode() for n in session.run(ready)] == local
        session.run(only(graph, "local_init_op"))
        assert session.run(ready).size == 0
        feed = next(batches({"Family": "softmax", "Classes": 5}))
        summary = tf1.Summary.FromString(session.run(only(graph, "summary_op"), feed))
        assert [v.tag for v in summary.value] == ["the_loss", "half"]
        session.run("train", feed)
        ours = saver.save(session, str(tmp_path / "ours"))
        theirs = tf1.train.Saver().save(session, str(tmp_path / "theirs"))
        after = values_of(session, graph)
        session.run("train", feed)
        saver.restore(session, theirs)
        for name, value in values_of(session, graph).items():
            np.testing.assert_array_equal(value, after[name], err_msg=name)

    got, want = tf.train.load_checkpoint(ours), tf.train.load_checkpoint(theirs)
    assert got.get_variable_to_shape_map() == want.get_variable_to_shape_map()
    assert "parts" in want.get_variable_to_shape_map()
    for name in want.get_variable_to_shape_map():
        np.testing.assert_array_equal(got.get_tensor(name), want.get_tensor(name), err_msg=name)
