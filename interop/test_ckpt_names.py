"""`ckpt` shows and takes the names that Keras and TensorFlow gave to variables."""

import json

import numpy as np
import pytest
import tensorflow as tf

keras = pytest.importorskip("keras")


def sequential():
    return keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(3, name="d1"), keras.layers.BatchNormalization(name="bn"), keras.layers.Dense(2, name="d2")], name="net"
    )


def functional():
    x = keras.Input((5, 4))
    y = keras.layers.Bidirectional(keras.layers.LSTM(3), name="both")(x)
    return keras.Model(x, keras.layers.Dense(2, name="head")(y))


def nested():
    x = keras.Input((4,))
    inner = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="a"), keras.layers.Dense(3, name="b")], name="inner")
    return keras.Model(x, keras.layers.Dense(2, name="head")(inner(x)))


class Shared(keras.Model):
    """Two layers whose kernels have one name."""

    def __init__(self):
        super().__init__()
        self.first, self.second = keras.layers.Dense(3), keras.layers.Dense(2)

    def call(self, x):
        return self.second(self.first(x))


def trained(make, optimizer):
    model = make()
    shape = (8, 5, 4) if make is functional else (8, 4)
    model.compile(optimizer, "mse")
    model.fit(np.random.default_rng(0).normal(size=shape).astype("f4"), np.ones((8, 2), "f4"), verbose=0)
    return model


@pytest.mark.parametrize(
    "make,scope,optimizer,how",
    [
        (sequential, "net/", "adam", "model"),
        (sequential, "net/", "rmsprop", "saved_model"),
        (functional, "", "rmsprop", "both"),
        (functional, "", "adam", "saved_model"),
        (nested, "", "adam", "both"),
    ],
)
def test_names_are_those_of_keras(ckpt, tmp_path, make, scope, optimizer, how):
    model = trained(make, optimizer)
    prefix = tmp_path / "c"
    if how == "saved_model":
        tf.saved_model.save(model, str(prefix))
    else:
        saver = tf.train.Checkpoint(model) if how == "model" else tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        prefix = saver.write(str(prefix))
    listed = {row.split()[0] for row in ckpt("ls", prefix).stdout.splitlines()[1:]} - {"_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter"}
    slots = {"adam": ["momentum", "velocity"], "rmsprop": ["velocity"]}[optimizer]
    short = {v.path.removeprefix(scope): v for v in model.weights}
    want = set(short) | {"optimizer/iteration", "optimizer/learning_rate"}
    want |= {f"optimizer/{v.path.removeprefix(scope)}/{s}" for v in model.trainable_variables for s in slots}
    assert listed == want
    for name, v in short.items():
        for given in {name, v.path}:
            got = np.array(json.loads(ckpt("cat", "--json", prefix, given).stdout), np.float32)
            np.testing.assert_array_equal(got, v.numpy(), err_msg=given)


def test_slot_has_the_values_of_its_variable(ckpt, tmp_path):
    model = trained(sequential, "adam")
    prefix = tf.train.Checkpoint(model=model, optimizer=model.optimizer).write(str(tmp_path / "c"))
    for i, v in enumerate(model.trainable_variables):
        short = v.path.removeprefix("net/")
        for slot, values in {"momentum": model.optimizer._momentums, "velocity": model.optimizer._velocities}.items():
            got = np.array(json.loads(ckpt("cat", "--json", prefix, f"optimizer/{short}/{slot}").stdout), np.float32)
            np.testing.assert_array_equal(got, values[i].numpy())


def test_shared_names_are_paths(ckpt, tmp_path):
    model = trained(Shared, "sgd")
    prefix = tf.train.Checkpoint(model=model, optimizer=model.optimizer).write(str(tmp_path / "c"))
    got = np.array(json.loads(ckpt("cat", "--json", prefix, "model/first/kernel").stdout), np.float32)
    np.testing.assert_array_equal(got, model.first.kernel.numpy())
    assert "model/second/bias " in ckpt("ls", prefix).stdout


def test_export_and_checkpoint_have_one_name(ckpt, tmp_path):
    model = trained(sequential, "sgd")
    prefix = tf.train.Checkpoint(model).write(str(tmp_path / "c"))
    model.export(tmp_path / "sm", verbose=False)
    said = ckpt("diff", prefix, tmp_path / "sm", code=4).stdout
    assert "kernel" not in said and "bn" not in said, said
    assert "d1/kernel " in ckpt("ls", tmp_path / "sm").stdout


def test_converted_under_names(ckpt, tmp_path):
    safe = pytest.importorskip("safetensors.numpy")
    model = trained(functional, "adam")
    prefix = tf.train.Checkpoint(model).write(str(tmp_path / "c"))
    ckpt("convert", "--names", "keras", "--drop-optimizer", prefix, tmp_path / "m.safetensors")
    got = safe.load_file(tmp_path / "m.safetensors")
    assert set(got) == {v.path for v in model.weights}
    for v in model.weights:
        np.testing.assert_array_equal(got[v.path], v.numpy())
