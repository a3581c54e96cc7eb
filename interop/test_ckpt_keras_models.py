"""Models of Keras that nobody had in mind: what `ckpt` makes of their files is loaded by Keras, equal to the bit."""

import json

import numpy as np
import pytest
import tensorflow as tf

keras = pytest.importorskip("keras")
layers = keras.layers


def compiled(model, optimizer):
    model.compile(optimizer, "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def nested():
    x = keras.Input((4,))
    inner = keras.Model(x, layers.Dense(3, name="d")(layers.Dense(5)(x)), name="inner")
    tail = keras.Sequential([layers.Dense(2), keras.Sequential([layers.Dense(2), layers.BatchNormalization(center=False)], name="deep")], name="tail")
    x = keras.Input((4,))
    return compiled(keras.Model(x, tail(layers.add([inner(x), inner(layers.Dense(4, name="outer")(x))]))), keras.optimizers.Adam(amsgrad=True))


def attention():
    x = keras.Input((5, 8))
    y = layers.GroupQueryAttention(4, 4, 2)(x, x)
    y = layers.RNN([layers.LSTMCell(3), layers.GRUCell(4)])(layers.Attention(use_scale=True)([y, y]))
    return compiled(keras.Model(x, layers.Dense(2)(y)), keras.optimizers.SGD(momentum=0.9))


def quantised():
    x = keras.Input((16,))
    model = keras.Model(x, layers.Dense(4, use_bias=False)(layers.Dense(8, activation="relu")(x)))
    model.quantize("int8")
    return model


def fresh(build):
    """A model with the names of another process, and values of its own."""
    keras.backend.clear_session()
    model = build()
    for v in variables(model):
        v.assign(tf.cast(np.random.uniform(0, 100, v.shape), v.dtype))
    return model


def variables(model):
    return model.weights + (model.optimizer.variables if getattr(model, "optimizer", None) else [])


def bits(model, build):
    """By path where Keras orders variables in another way after loading, else in order: paths depend on the process."""
    values = [np.asarray(keras.ops.convert_to_numpy(v)).tobytes() for v in variables(model)]
    return dict(zip((v.path for v in variables(model)), values)) if build is quantised else values


@pytest.mark.parametrize("build", [nested, attention, quantised])
def test_each_form_becomes_each_other(ckpt, tmp_path, build):
    saved = fresh(build)
    saved.save(tmp_path / "m.keras")
    saved.save_weights(tmp_path / "m.weights.h5")
    saved.save_weights(tmp_path / "few.weights.json", max_shard_size=2000 / 2**30)
    tf.train.Checkpoint(model=saved).write(str(tmp_path / "bundle"))
    sources = ["m.keras", "m.weights.h5", "few.weights.json", "bundle"]
    if build is attention:  # Keras cannot save the others: two layers of one name
        saved.save(tmp_path / "m.h5")
        sources.append("m.h5")
    for source in sources:
        assert "all intact" in ckpt("verify", tmp_path / source).stderr
    ckpt("convert", tmp_path / "m.keras", tmp_path / "x.safetensors")
    targets = [("m.weights.h5", "new.weights.h5"), ("m.keras", "new.weights.json"), ("m.keras", "new.keras")]
    for i, source in enumerate([*sources, "x.safetensors"]):
        like, to = targets[i % len(targets)]
        extra = ["--max-shard-size", "300B"] if to.endswith("json") else []
        ckpt("convert", "--force", *extra, "--like", tmp_path / like, tmp_path / source, tmp_path / to)
        if to.endswith(".keras"):
            loaded = keras.models.load_model(tmp_path / to)
        else:
            loaded = fresh(build)
            loaded.load_weights(tmp_path / to)
        assert bits(loaded, build) == bits(saved, build), (source, like, to)
    index = json.loads((tmp_path / "new.weights.json").read_text())
    files = {f for v in index["weight_map"].values() for f in ([v] if isinstance(v, str) else v)}
    assert files == {f.name for f in tmp_path.glob("new_*.weights.h5")} and (len(files) > 1 or build is quantised)


def test_names_of_variables(ckpt, tmp_path):
    for build, want in [
        (nested, "deep/batch_normalization/gamma"), (attention, "attention/scale"),
        (attention, "grouped_query_attention/query/kernel"), (quantised, "dense_1/kernel_scale"),
    ]:
        fresh(build).save(tmp_path / "m.keras")
        names = [t["name"] for t in json.loads(ckpt("ls", "--json", tmp_path / "m.keras").stdout)]
        assert any(n.endswith(want) for n in names), (want, names)


def test_optimizer_of_an_old_file_is_dropped(ckpt, tmp_path):
    saved = fresh(attention)
    saved.save(tmp_path / "m.h5")
    saved.save(tmp_path / "m.keras")
    for source in ["m.h5", "m.keras"]:
        ckpt("convert", "--force", "--drop-optimizer", tmp_path / source, tmp_path / "bare.safetensors")
        names = [t["name"] for t in json.loads(ckpt("ls", "--json", tmp_path / "bare.safetensors").stdout)]
        assert len(names) == len(saved.weights), (source, names)


class Own(layers.Layer):
    """Variables of one shape, some of them in a list, whose names only this program knows."""

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1], shape[-1]), name="w")
        self.more = [self.add_weight(shape=(shape[-1],), name=f"e{i}") for i in range(3)]

    def call(self, x):
        return x @ self.w + self.more[0]


class Subclassed(keras.Model):
    """Layers in a list and a dict, and a variable of its own."""

    def __init__(self):
        super().__init__(name="sub")
        self.blocks, self.named = [layers.Dense(4, name=f"blk{i}") for i in range(2)], {"a": layers.Dense(4), "b": Own()}
        self.head, self.scale = layers.Dense(2), self.add_weight(shape=(1,), name="scale")

    def call(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(self.named["a"](x) + self.named["b"](x)) * self.scale


def subclassed():
    model = Subclassed()
    model(np.zeros((1, 4), "f4"))
    return compiled(model, keras.optimizers.RMSprop(momentum=0.9))


def stacked():
    x = keras.Input((5, 4))
    y = layers.RNN([layers.LSTMCell(3), layers.GRUCell(4)])(x)
    return compiled(keras.Model(x, layers.Dense(2)(layers.BatchNormalization(scale=False)(Own()(y)))), keras.optimizers.Adafactor())


class Pair(layers.Layer):
    """Layers in a layer."""

    def __init__(self):
        super().__init__()
        self.first, self.second = layers.Dense(4), layers.Dense(4, use_bias=False)

    def build(self, shape):
        self.first.build(shape)
        self.second.build((*shape[:-1], 4))

    def call(self, x):
        return self.second(self.first(x))


class Pairs(keras.Model):
    """A list of them: a checkpoint has the names of their variables with underscores for the slashes."""

    def __init__(self):
        super().__init__(name="pairs")
        self.blocks = [Pair(), Pair()]

    def call(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def paired():
    model = Pairs()
    model(np.zeros((1, 4), "f4"))
    return compiled(model, keras.optimizers.Adam())


def twins():
    """Two models with layers of the same names: a checkpoint has only numbers for their variables."""
    def inner(name):
        x = keras.Input((4,))
        deep = keras.Sequential([keras.Input((5,)), layers.Dense(4, name="d"), layers.BatchNormalization(name="bn")], name="deep")
        return keras.Model(x, deep(layers.Dense(5, name="d")(x)), name=name)

    x = keras.Input((4,))
    return compiled(keras.Model(x, inner("b")(inner("a")(x))), keras.optimizers.Adam())


@pytest.mark.parametrize("build", [subclassed, stacked, paired, twins])
def test_layers_of_a_program_go_from_checkpoints_to_weights_and_back(ckpt, tmp_path, build):
    saved = fresh(build)
    saved.save_weights(tmp_path / "m.weights.h5")
    tf.train.Checkpoint(model=saved).save(str(tmp_path / "c"))
    other = fresh(build)
    other.save_weights(tmp_path / "other.weights.h5")
    template = tf.train.Checkpoint(model=other).write(str(tmp_path / "other"))
    ckpt("convert", "--exclude", "save_counter", "--like", tmp_path / "other.weights.h5", tmp_path / "c-1", tmp_path / "new.weights.h5")
    other.load_weights(tmp_path / "new.weights.h5")
    assert bits(other, build) == bits(saved, build)
    if build not in (paired, twins):
        ckpt("diff", template, tmp_path / "other.weights.h5")
    ckpt("convert", "--like", template, tmp_path / "m.weights.h5", tmp_path / "back")
    loaded = fresh(build)
    tf.train.Checkpoint(model=loaded).read(str(tmp_path / "back")).assert_consumed()
    assert bits(loaded, build) == bits(saved, build)
    listed = ckpt("ls", template).stdout
    assert "_variables/" not in listed and "ATTRIBUTES" not in listed, listed


def scaled():
    x = keras.Input((4,))
    return compiled(keras.Model(x, layers.Dense(2)(x)), keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam()))


def test_an_optimizer_within_another(ckpt, tmp_path):
    """Files of Keras have the variables of the inner one twice."""
    saved, other = fresh(scaled), fresh(scaled)
    other.save_weights(tmp_path / "other.weights.h5")
    prefix = tf.train.Checkpoint(model=saved).write(str(tmp_path / "c"))
    ckpt("convert", "--like", tmp_path / "other.weights.h5", prefix, tmp_path / "new.weights.h5")
    other.load_weights(tmp_path / "new.weights.h5")
    assert bits(other, scaled) == bits(saved, scaled)
    assert "optimizer/adam/dense/kernel/momentum " in ckpt("ls", prefix).stdout
    third = fresh(scaled)
    template = tf.train.Checkpoint(model=third).write(str(tmp_path / "third"))
    ckpt("convert", "--like", template, tmp_path / "new.weights.h5", tmp_path / "back")
    tf.train.Checkpoint(model=third).read(str(tmp_path / "back")).assert_consumed()
    assert bits(third, scaled) == bits(saved, scaled)
    # An .h5 file has them once.
    saved.save(tmp_path / "m.h5")
    assert ckpt("diff", tmp_path / "m.h5", prefix).stdout == ""
    assert "optimizer/adam/dense/kernel/momentum " in ckpt("ls", "--names", "keras", tmp_path / "m.h5").stdout
    ckpt("convert", "--force", "--like", tmp_path / "other.weights.h5", tmp_path / "m.h5", tmp_path / "new.weights.h5")
    fourth = fresh(scaled)
    fourth.load_weights(tmp_path / "new.weights.h5")
    assert bits(fourth, scaled) == bits(saved, scaled)
