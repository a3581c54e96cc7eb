"""Every model family with every optimizer trains alike in TensorFlow, as a model written in TensorFlow, and embedded.

All three save the same variables.
"""

import json

import numpy as np
import pytest
import tensorflow as tf

from harness.commands import assert_success
from test_model import emit, emitter  # noqa: F401 (fixtures)

tf1 = tf.compat.v1

STEPS = 5
BATCH = 8
CLASSES = 4
SEED = 7
IMAGE = [6, 5, 2]
BAG, VOCABULARY = 6, 20

FAMILIES = {
    "linear": {"Inputs": 7},
    "mlp_regressor": {"Inputs": 7, "Hidden": [9, 6], "Wide": True},
    "logistic": {"Inputs": 7},
    "softmax": {"Inputs": 7, "Classes": CLASSES},
    "mlp": {"Inputs": 7, "Classes": CLASSES, "Hidden": [9, 6], "Activation": "tanh"},
    "convnet": {"Inputs": int(np.prod(IMAGE)), "Image": IMAGE, "Filters": [4, 3], "Classes": CLASSES, "Hidden": [8]},
    "embedding_bag": {"Inputs": BAG, "Vocabulary": VOCABULARY, "Embedding": 5, "Classes": CLASSES},
}

REGRESSIONS = ["linear", "mlp_regressor"]

OPTIMIZERS = {
    "sgd": (0.1, lambda r: tf1.train.GradientDescentOptimizer(r)),
    "momentum": (0.05, lambda r: tf1.train.MomentumOptimizer(r, 0.9)),
    "nesterov": (0.05, lambda r: tf1.train.MomentumOptimizer(r, 0.9, use_nesterov=True)),
    "adagrad": (0.1, lambda r: tf1.train.AdagradOptimizer(r)),
    "adadelta": (0.5, lambda r: tf1.train.AdadeltaOptimizer(r)),
    "adam": (0.02, lambda r: tf1.train.AdamOptimizer(r)),
    "rmsprop": (0.01, lambda r: tf1.train.RMSPropOptimizer(r)),
    "ftrl": (0.1, lambda r: tf1.train.FtrlOptimizer(r, l1_regularization_strength=0.001)),
}

SCHEDULES = {
    "exponential": ({"DecaySteps": 2, "DecayRate": 0.5, "Staircase": True},
                    lambda r, s: tf1.train.exponential_decay(r, s, 2, 0.5, staircase=True)),
    "polynomial": ({"DecaySteps": 3, "EndLearningRate": 0.01, "Power": 2},
                   lambda r, s: tf1.train.polynomial_decay(r, s, 3, 0.01, power=2)),
    "piecewise": ({"Boundaries": [0, 2], "Rates": [0.1, 0.05, 0.02]},
                  lambda r, s: tf1.train.piecewise_constant(s, [0, 2], [0.1, 0.05, 0.02])),
    "cosine": ({"DecaySteps": 4, "EndLearningRate": 0.01},
               lambda r, s: tf1.train.cosine_decay(r, s, 4, alpha=0.1)),
    "inverse_time": ({"DecaySteps": 2, "DecayRate": 1.5},
                     lambda r, s: tf1.train.inverse_time_decay(r, s, 2, 1.5)),
}


def add_bias(name, x):
    with tf1.variable_scope(name):
        bias = tf1.get_variable("bias", [x.shape[-1]], initializer=tf1.zeros_initializer(), use_resource=True)
    return tf.nn.bias_add(x, bias)


def dense(name, x, size, finish=add_bias):
    with tf1.variable_scope(name):
        kernel = tf1.get_variable("kernel", [x.shape[1], size], use_resource=True)
    return finish(name, tf.matmul(x, kernel))


def convolution(name, x, filters, finish):
    with tf1.variable_scope(name):
        kernel = tf1.get_variable("kernel", [3, 3, x.shape[3], filters], use_resource=True)
    x = finish(name, tf.nn.conv2d(x, kernel, 1, "SAME"))
    return tf.nn.max_pool2d(tf.nn.relu(x), 2, 2, "SAME")


def embedding(x):
    with tf1.variable_scope("embedding"):
        table = tf1.get_variable("table", [VOCABULARY, 5], use_resource=True)
    present = tf.cast(x >= 0, tf.float32)
    rows = tf.nn.embedding_lookup(table, tf.maximum(x, 0)) * present[:, :, None]
    return tf.reduce_sum(rows, 1) / tf.maximum(tf.reduce_sum(present, 1, keepdims=True), 1)


def batch_norm(name, x, updates):
    """As TensorFlow's layer by parts in training, with its momentum."""
    with tf1.variable_scope(name + "/batch_normalization"):
        def get(part, initializer, trainable=True):
            return tf1.get_variable(part, [x.shape[-1]], initializer=initializer, trainable=trainable, use_resource=True)
        gamma, beta = get("gamma", tf1.ones_initializer()), get("beta", tf1.zeros_initializer())
        moving = get("moving_mean", tf1.zeros_initializer(), False), get("moving_variance", tf1.ones_initializer(), False)
    moments = tf.nn.moments(x, list(range(len(x.shape) - 1)))
    for average, value in zip(moving, moments):
        updates.append(average.assign_sub((average - value) * (1 - 0.99)))
    return tf.nn.batch_normalization(x, *moments, beta, gamma, 1e-3)


def reference(config, optimizer):
    """The same model in TensorFlow's own words."""
    family, updates, layer = config["Family"], [], iter(range(1, 9))
    step = tf1.train.create_global_step()
    shape = [None, *config.get("Image", [config["Inputs"]])]
    x = tf1.placeholder(tf.int64 if family == "embedding_bag" else tf.float32, shape, "x")
    y = tf1.placeholder(tf.float32 if family in REGRESSIONS else tf.int64, [None], "y")
    activation = {"relu": tf.nn.relu, "tanh": tf.tanh}[config.get("Activation", "relu")]
    finish = (lambda name, h: batch_norm(name, h, updates)) if config.get("BatchNorm") else add_bias

    def dropout(h):
        if not config.get("Dropout"):
            return h
        seed = tf.stack([tf.constant(SEED + (next(layer) << 32), tf.int64), step])
        keep = tf.random.stateless_uniform(tf.shape(h), seed) >= config["Dropout"]
        return tf.where(keep, h / (1 - config["Dropout"]), tf.zeros_like(h))

    h = x
    if family == "convnet":
        for i, filters in enumerate(config["Filters"]):
            h = convolution(f"conv_{i + 1}", h, filters, finish)
        h = tf.reshape(h, [-1, int(np.prod(h.shape[1:]))])
    elif family == "embedding_bag":
        h = embedding(x)
    hidden = config.get("Hidden", [])
    for i, size in enumerate(hidden):
        name = f"hidden_{i + 1}" if len(hidden) > 1 else "hidden"
        h = dropout(activation(dense(name, h, size, finish if family.startswith("mlp") else add_bias)))

    def predict(name, size):
        deep = dense(name, h, size)
        return deep + dense("wide", x, size, lambda _, product: product) if config.get("Wide") else deep

    if family in REGRESSIONS:
        values = predict("linear" if family == "linear" else "output", 1)
        loss = tf.reduce_mean(tf.square(tf.reshape(values, [-1]) - y))
    elif family == "logistic":
        logits = tf.reshape(dense("logits", h, 1), [-1])
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(y, tf.float32), logits=logits))
    else:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=predict("logits", CLASSES)))
    if config.get("L2"):
        kernels = [v for v in tf1.trainable_variables() if v.op.name.endswith("kernel")]
        loss += config["L2"] * tf.add_n([tf.nn.l2_loss(v) for v in kernels])
    rate = config["LearningRate"]
    if config.get("Schedule"):
        rate = SCHEDULES[config["Schedule"]][1](rate, step)
    with tf.control_dependencies(updates):
        train = OPTIMIZERS[optimizer][1](rate).minimize(loss, step)
    return loss, train


def batches(config):
    rng = np.random.RandomState(3)
    for _ in range(STEPS):
        if config["Family"] == "embedding_bag":
            x = rng.randint(-2, VOCABULARY, [BATCH, BAG])  # some ids missing, some twice
        else:
            x = rng.uniform(-1, 1, [BATCH, *config.get("Image", [config["Inputs"]])]).astype(np.float32)
        if config["Family"] in REGRESSIONS:
            y = rng.uniform(-1, 1, [BATCH]).astype(np.float32)
        else:
            y = rng.randint(0, config.get("Classes", 2), [BATCH])
        feed = {"x:0": x.astype(np.int64) if x.dtype.kind == "i" else x, "y:0": y}
        if config.get("Dropout") or config.get("BatchNorm"):
            feed["training:0"] = np.array(True)
        yield feed


def save_feeds(feeds, prefix):
    """Writes the feeds as a bundle that the command reads."""
    named = {f"step_{i:03d}/{k[:-2]}": v for i, feed in enumerate(feeds) for k, v in feed.items()}
    names = sorted(named)
    with tf.Graph().as_default(), tf1.Session() as session:
        session.run(tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names),
                                      tensors=[tf.constant(named[n]) for n in names]))


def train_in_tensorflow(ours, feeds, prefix):
    """Trains the imported MetaGraph; returns the losses and the variables, and leaves the first ones in prefix."""
    with tf.Graph().as_default(), tf1.Session() as session:
        saver = tf1.train.import_meta_graph(ours.meta)
        session.run(ours.InitOp)
        saver.save(session, prefix, write_meta_graph=False)
        losses = [session.run([ours.Loss, ours.TrainOp], feed)[0] for feed in feeds]
        return losses, {v.op.name: session.run(v) for v in tf1.global_variables()}


def train_reference(config, optimizer, feeds, prefix):
    with tf.Graph().as_default(), tf1.Session() as session:
        loss, train = reference(config, optimizer)
        tf1.train.Saver().restore(session, prefix)  # equal names, shapes and types, slots included
        feeds = [{k: v for k, v in feed.items() if k != "training:0"} for feed in feeds]
        losses = [session.run([loss, train], feed)[0] for feed in feeds]
        return losses, {v.op.name: session.run(v) for v in tf1.global_variables()}


def train_embedded(commands, ours, tmp_path, prefix):
    saved = tmp_path / "embedded"
    result = assert_success(commands.run("trainerd", "graph", "run", ours.meta, "--restore", prefix,
                                         "--feeds", tmp_path / "feeds", "--fetch", ours.Loss, "--target", ours.TrainOp,
                                         "--json", "--save", saved))
    losses = [json.loads(line)["fetches"][ours.Loss] for line in result.out.splitlines()]
    reader = tf.train.load_checkpoint(str(saved))
    return losses, {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}


def check(commands, emit, tmp_path, config, optimizer):
    ours, feeds, prefix = emit(config), list(batches(config)), str(tmp_path / "initial")
    save_feeds(feeds, str(tmp_path / "feeds"))
    losses, variables = train_in_tensorflow(ours, feeds, prefix)
    assert losses[0] != losses[-1]
    for who, (other_losses, other) in {
        "reference": train_reference(config, optimizer, feeds, prefix),
        "embedded runtime": train_embedded(commands, ours, tmp_path, prefix),
    }.items():
        np.testing.assert_allclose(other_losses, losses, rtol=2e-5, atol=1e-6, err_msg=who)
        assert other.keys() == variables.keys(), who
        for name, want in variables.items():
            np.testing.assert_allclose(other[name], want, rtol=1e-4, atol=1e-5, err_msg=f"{who}: {name}")


def config_of(family, optimizer, **more):
    config = {"Family": family, "Seed": SEED, "Optimizer": optimizer, "LearningRate": OPTIMIZERS[optimizer][0]}
    if optimizer == "ftrl":
        config["FtrlL1"] = 0.001
    return {**config, **FAMILIES[family], **more}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("family", FAMILIES)
def test_family_trains_alike(commands, emit, tmp_path, family, optimizer):
    check(commands, emit, tmp_path, config_of(family, optimizer), optimizer)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedule(commands, emit, tmp_path, schedule):
    config = config_of("softmax", "momentum", Schedule=schedule, **SCHEDULES[schedule][0])
    check(commands, emit, tmp_path, {**config, "LearningRate": 0.1}, "momentum")


@pytest.mark.parametrize("family, more", [
    ("mlp", {"Dropout": 0.4}),
    ("mlp", {"BatchNorm": True, "L2": 0.01}),
    ("mlp", {"Dropout": 0.3, "BatchNorm": True}),
    ("convnet", {"BatchNorm": True, "Dropout": 0.2, "L2": 0.01}),
    ("embedding_bag", {"Hidden": [6], "Dropout": 0.5, "L2": 0.01}),
], ids=lambda v: "-".join(v) if isinstance(v, dict) else v)
def test_parts_train_alike(commands, emit, tmp_path, family, more):
    check(commands, emit, tmp_path, config_of(family, "adam", **more), "adam")
