"""ckpt cp --drop-optimizer and --drop-slots: TensorFlow and Keras say what belongs to an optimizer."""


import numpy as np
import pytest
import tensorflow as tf

tf1 = tf.compat.v1


def names(prefix):
    return {n for n, _ in tf.train.list_variables(str(prefix)) if not n.startswith("_CHECKPOINTABLE")}


TF1 = {
    "momentum": lambda: tf1.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: tf1.train.AdamOptimizer(),
    "adagrad": lambda: tf1.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf1.train.AdadeltaOptimizer(),
    "rmsprop": lambda: tf1.train.RMSPropOptimizer(0.1, centered=True),
    "ftrl": lambda: tf1.train.FtrlOptimizer(0.1),
    "named": lambda: tf1.train.AdamOptimizer(name="generator"),
}


@pytest.mark.parametrize("kind", TF1)
def test_tf1_savers(ckpt, tmp_path, kind):
    """Two optimizers in one graph, one of them below a name scope: what stays is what was there before them."""
    with tf.Graph().as_default(), tf1.Session() as sess:
        w = tf1.get_variable("net/w", initializer=np.float32([1, 2]))
        beta = tf1.get_variable("net/beta", initializer=np.float32(3))
        step = tf1.train.get_or_create_global_step()
        weights = {v.op.name for v in tf1.global_variables()}
        loss = tf.reduce_sum(w * w) * beta
        TF1[kind]().minimize(loss, global_step=step)
        with tf.name_scope("train"):
            TF1[kind]().minimize(loss)
        sess.run(tf1.global_variables_initializer())
        prefix = tf1.train.Saver().save(sess, str(tmp_path / "m"))
    assert names(prefix) > weights
    ckpt("cp", prefix, tmp_path / "bare", "--drop-optimizer")
    assert names(tmp_path / "bare") == weights
    said = ckpt("cp", prefix, tmp_path / "slots", "--drop-slots").stderr
    left = names(tmp_path / "slots") - weights
    assert all(n in said for n in left) and ("--drop-optimizer" in said) == bool(left), said
    assert bool(left) == (kind in ("adam", "named"))


def keras_model(optimizer):
    keras = tf.keras
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="d1"), keras.layers.BatchNormalization(), keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    model.fit(np.ones((4, 3), np.float32), np.ones((4, 1), np.float32), verbose=0)
    return model


KERAS = {
    "sgd": lambda: tf.keras.optimizers.SGD(0.1),
    "momentum": lambda: tf.keras.optimizers.SGD(0.1, momentum=0.9),
    "adam": lambda: tf.keras.optimizers.Adam(amsgrad=True),
    "ema": lambda: tf.keras.optimizers.Adam(use_ema=True),
    "scaled": lambda: tf.keras.optimizers.LossScaleOptimizer(tf.keras.optimizers.Adam()),
}


@pytest.mark.parametrize(
    "kind, layout",
    [("sgd", "compiled"), ("momentum", "apart"), ("adam", "optimizer first"), ("ema", "apart"), ("scaled", "compiled")],
)
def test_keras_3(ckpt, tmp_path, kind, layout):
    model = keras_model(KERAS[kind]())
    objects = {"compiled": {"net": model}, "apart": {"model": model, "opt": model.optimizer}, "optimizer first": {"a": model.optimizer, "model": model}}[layout]
    prefix = tf.train.Checkpoint(**objects).write(str(tmp_path / "m"))
    ckpt("cp", prefix, tmp_path / "bare", "--drop-optimizer")
    left = names(tmp_path / "bare")
    # What is left restores the model's weights, all of them, and nothing else is there but what compile() adds.
    fresh = keras_model("sgd")
    for w in fresh.weights:
        w.assign(tf.zeros_like(w))
    key = {"compiled": "net", "apart": "model", "optimizer first": "model"}[layout]
    tf.train.Checkpoint(**{key: fresh}).read(str(tmp_path / "bare")).expect_partial()
    for a, b in zip(model.weights, fresh.weights):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=a.path)
    values = {n: tf.train.load_variable(str(tmp_path / "bare"), n) for n in left}
    own = [v for v in model.optimizer.variables if v.shape.rank and np.any(v.numpy())]
    assert not [n for n in left if any(k in n for k in ("_iterations", "_learning_rate", "/_variables/", "velocit", "momentum"))], left
    for v in own:
        same = [n for n, x in values.items() if x.shape == v.shape and np.array_equal(x, v.numpy())]
        weights = [w for w in model.weights if w.shape == v.shape and np.array_equal(w.numpy(), v.numpy())]
        assert len(same) <= len(weights), (v.path, same)


class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable([1.0, 2.0], name="w")
        self.b = tf.Variable(3.0, name="b")


@pytest.mark.parametrize("name", ["optimizer", "o", "model/trainer"])
def test_tf1_optimizer_as_an_object(ckpt, tmp_path, name):
    model, optimizer = Model(), tf1.train.AdamOptimizer()
    optimizer.minimize(lambda: tf.reduce_sum(model.w**2) + model.b**2, var_list=[model.w, model.b])
    step = tf.Variable(7)
    holder = tf.train.Checkpoint(**{name.split("/")[-1]: optimizer}) if "/" in name else optimizer
    prefix = tf.train.Checkpoint(model=model, step=step, **{name.split("/")[0] + "_": holder}).save(str(tmp_path / "m"))
    ckpt("cp", prefix, tmp_path / "bare", "--drop-optimizer")
    assert names(tmp_path / "bare") == {f"{n}/.ATTRIBUTES/VARIABLE_VALUE" for n in ("model/w", "model/b", "step", "save_counter")}
    fresh = Model()
    fresh.w.assign([0, 0])
    tf.train.Checkpoint(model=fresh).read(str(tmp_path / "bare")).expect_partial()
    assert fresh.w.numpy().tolist() == model.w.numpy().tolist()


def test_a_trainer_is_no_optimizer(ckpt, tmp_path):
    """A module of one's own with a step, a learning rate and weights keeps its weights."""
    trainer = tf.Module()
    trainer.iter, trainer.learning_rate, trainer.model, trainer.kernel = tf.Variable(1), tf.Variable(0.5), Model(), tf.Variable([1.0])
    prefix = tf.train.Checkpoint(trainer=trainer).write(str(tmp_path / "m"))
    ckpt("cp", prefix, tmp_path / "bare", "--drop-optimizer")
    assert {n.split("/.ATT")[0] for n in names(tmp_path / "bare")} >= {"trainer/model/w", "trainer/model/b", "trainer/kernel"}
