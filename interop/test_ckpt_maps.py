"""Maps of names and layouts: what Keras and TensorFlow make of the results."""


import numpy as np
import pytest
import tensorflow as tf
from harness.commands import REPO

keras = pytest.importorskip("keras")
safe = pytest.importorskip("safetensors.numpy")
k = keras.layers


def model(seed):
    keras.utils.set_random_seed(seed)
    x = keras.Input((8, 6))
    y = k.Conv1D(5, 3, name="c")(x)
    y = k.BatchNormalization(name="bn")(y)
    y = k.GRU(4, return_sequences=True, name="gru")(y)
    y = k.LSTM(3, name="lstm")(y)
    m = keras.Model(x, k.Dense(2, name="fc")(y))
    m.compile("adam", "mse")
    m.fit(np.random.default_rng(seed).normal(size=(8, 8, 6)).astype("f4"), np.ones((8, 2), "f4"), verbose=0)
    return m


def small(seed):
    keras.utils.set_random_seed(seed)
    m = keras.Sequential([keras.Input((3,)), k.Dense(4, name="d1"), k.BatchNormalization(name="bn"), k.Dense(2, name="d2")])
    m.compile("adam", "mse")
    m.fit(np.random.default_rng(seed).normal(size=(8, 3)).astype("f4"), np.ones((8, 2), "f4"), verbose=0)
    return m


@pytest.fixture(scope="module")
def trained():
    return model(1)


def test_torch_has_its_layout(ckpt, trained, tmp_path):
    prefix = tf.train.Checkpoint(trained).write(str(tmp_path / "c"))
    ckpt("convert", "--map", "keras-to-torch", prefix, tmp_path / "t.safetensors")
    got = safe.load_file(tmp_path / "t.safetensors")
    w = {v.path: v.numpy() for v in trained.weights}
    z, r, n = np.split(w["gru/gru_cell/kernel"], 3, axis=1)
    want = {
        "fc.weight": w["fc/kernel"].T,
        "fc.bias": w["fc/bias"],
        "c.weight": w["c/kernel"].transpose(2, 1, 0),
        "bn.running_var": w["bn/moving_variance"],
        "lstm.weight_ih_l0": w["lstm/lstm_cell/kernel"].T,
        "lstm.bias_ih_l0": w["lstm/lstm_cell/bias"],
        "lstm.bias_hh_l0": 0 * w["lstm/lstm_cell/bias"],
        "gru.weight_ih_l0": np.concatenate([r, z, n], axis=1).T,
    }
    for name, values in want.items():
        np.testing.assert_array_equal(got[name], values, err_msg=name)
    assert len(got) == len(trained.weights) + 2  # two biases of the LSTM and of the GRU


def test_values_of_torch_are_restored(ckpt, trained, tmp_path):
    prefix = tf.train.Checkpoint(trained).write(str(tmp_path / "c"))
    ckpt("convert", "--map", "keras-to-torch", prefix, tmp_path / "t.safetensors")
    fresh = model(2)
    template = tf.train.Checkpoint(fresh).write(str(tmp_path / "fresh"))
    ckpt("convert", "--map", "torch-to-keras", "--like", template, tmp_path / "t.safetensors", tmp_path / "x", code=1)  # Adam's
    ckpt("convert", "--map", "torch-to-keras", "--like", template, "--missing", "template", tmp_path / "t.safetensors", tmp_path / "back")
    momentum = fresh.optimizer._momentums[0].numpy().copy()
    for v in fresh.weights:
        v.assign(v * 0)
    tf.train.Checkpoint(fresh).read(str(tmp_path / "back")).assert_consumed()
    for a, b in zip(trained.weights, fresh.weights):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=a.path)
    np.testing.assert_array_equal(fresh.optimizer._momentums[0].numpy(), momentum)


def test_name_based_checkpoint_becomes_object_based(ckpt, trained, tmp_path):
    v1 = tf.compat.v1
    values = {v.path: v.numpy() for v in trained.weights}
    with tf.Graph().as_default(), v1.Session() as session:
        for path, value in values.items():
            v1.get_variable("old/" + path, initializer=value, use_resource=True)
        session.run(v1.global_variables_initializer())
        name_based = v1.train.Saver().save(session, str(tmp_path / "v1/model.ckpt"), global_step=7)
    (tmp_path / "m.toml").write_text("[[rule]]\nfrom = 'old/(.*)'\nto = '$1'\n")
    fresh = model(3)
    template = tf.train.Checkpoint(model=fresh).write(str(tmp_path / "fresh"))
    ckpt("cp", "--map", tmp_path / "m.toml", "--like", template, "--missing", "template", name_based, tmp_path / "v2")
    tf.train.Checkpoint(model=fresh).read(str(tmp_path / "v2")).assert_consumed()
    for a, b in zip(trained.weights, fresh.weights):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    # And back: names that a Saver finds.
    ckpt("cp", "--names", "variable", "--drop-optimizer", "--rename", "s|^|old/|", tmp_path / "v2", tmp_path / "again")
    reader = tf.train.load_checkpoint(str(tmp_path / "again"))
    assert {n for n in reader.get_variable_to_shape_map()} == {"old/" + v.path for v in trained.weights}


def test_names_as_objects(ckpt, tmp_path):
    safe.save_file({"net.layer.kernel": np.arange(6, dtype="f4").reshape(2, 3), "net.scale": np.array(2, "f4")}, tmp_path / "x.safetensors")
    ckpt("convert", "--objects", "--rename", r"s|\.|/|g", tmp_path / "x.safetensors", tmp_path / "o")
    net = tf.Module()
    net.layer = tf.Module()
    net.layer.kernel, net.scale = tf.Variable(tf.zeros((2, 3))), tf.Variable(0.0)
    tf.train.Checkpoint(net=net).read(str(tmp_path / "o")).assert_consumed()
    np.testing.assert_array_equal(net.layer.kernel.numpy(), np.arange(6).reshape(2, 3))
    assert net.scale.numpy() == 2


def test_checkpoints_and_files_of_keras(ckpt, tmp_path):
    """Weights and the optimizer's state go from a checkpoint into Keras' file and back."""
    trained = small(3)
    prefix = tf.train.Checkpoint(trained).write(str(tmp_path / "c"))
    other = small(4)
    other.save_weights(tmp_path / "other.weights.h5")
    ckpt("convert", "--like", tmp_path / "other.weights.h5", prefix, tmp_path / "ours.weights.h5")
    other.load_weights(tmp_path / "ours.weights.h5")
    for a, b in zip(trained.weights + trained.optimizer.variables, other.weights + other.optimizer.variables):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=a.path)
    fresh = small(5)
    template = tf.train.Checkpoint(fresh).write(str(tmp_path / "fresh"))
    ckpt("cp", "--like", template, tmp_path / "ours.weights.h5", tmp_path / "back")
    tf.train.Checkpoint(fresh).read(str(tmp_path / "back")).assert_consumed()
    for a, b in zip(trained.weights + trained.optimizer.variables, fresh.weights + fresh.optimizer.variables):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=a.path)
    # Another program has the same objects under other names.
    fresh = small(6)
    two = tf.train.Checkpoint(net=fresh, optimizer=fresh.optimizer)
    ckpt("cp", "--like", two.write(str(tmp_path / "two")), prefix, tmp_path / "moved")
    two.read(str(tmp_path / "moved")).assert_consumed()
    for a, b in zip(trained.weights + trained.optimizer.variables, fresh.weights + fresh.optimizer.variables):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=a.path)


def recurrent(seed):
    keras.utils.set_random_seed(seed)
    x = keras.Input((6, 8))
    y = k.MultiHeadAttention(2, 4, name="mha")(x, x)
    y = k.Bidirectional(k.LSTM(3, return_sequences=True, name="lstm"), name="first")(y)
    y = k.Bidirectional(k.GRU(3, return_sequences=True, name="gru"), name="second")(y)
    y = k.Bidirectional(k.SimpleRNN(3, return_sequences=True, name="simple_rnn"), name="third")(y)
    y = k.LayerNormalization(name="norm")(k.Conv1DTranspose(4, 3, name="up")(y))
    m = keras.Model(x, y)
    for v in m.weights:
        v.assign(np.random.default_rng(seed).normal(size=v.shape))
    return m


def test_layers_of_two_directions_and_heads_there_and_back(ckpt, tmp_path):
    m = recurrent(1)
    m.save_weights(tmp_path / "m.weights.h5")
    ckpt("convert", "--map", "keras-to-torch", tmp_path / "m.weights.h5", tmp_path / "t.safetensors")
    got = safe.load_file(tmp_path / "t.safetensors")
    w = {v.path: v.numpy() for v in m.weights}
    q, key, v = (w[f"mha/{part}/kernel"].reshape(8, 8).T for part in ["query", "key", "value"])
    np.testing.assert_array_equal(got["mha.in_proj_weight"], np.concatenate([q, key, v]))
    z, r, n = np.split(w["second/backward_gru/gru_cell/recurrent_kernel"].T, 3)
    np.testing.assert_array_equal(got["second.weight_hh_l0_reverse"], np.concatenate([r, z, n]))
    other = recurrent(2)
    other.save_weights(tmp_path / "other.weights.h5")
    back = ["convert", "--map", "torch-to-keras", "--like", tmp_path / "other.weights.h5", tmp_path / "t.safetensors", tmp_path / "back.weights.h5"]
    ckpt(*back, code=1)
    ckpt(*back, "--heads", "2")
    other.load_weights(tmp_path / "back.weights.h5")
    for a, b in zip(m.weights, other.weights):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=a.path)


EXPECTED = REPO / "fixtures" / "torch"


def layers_of_torch():
    """Those of fixtures/torch/make_layers.py, by their names."""
    return {
        "dense": k.Dense(5), "conv1": k.Conv1D(5, 3), "conv2": k.Conv2D(5, (3, 2)), "up2": k.Conv2DTranspose(4, 3, strides=2),
        "lstm": k.LSTM(5, return_sequences=True), "gru": k.GRU(5, return_sequences=True), "rnn": k.SimpleRNN(5, return_sequences=True),
        "bilstm": k.Bidirectional(k.LSTM(3, return_sequences=True)), "bigru": k.Bidirectional(k.GRU(3, return_sequences=True)),
        "norm": k.LayerNormalization(), "bn": k.BatchNormalization(), "emb": k.Embedding(11, 4), "mha": k.MultiHeadAttention(2, 4),
    }


def test_layers_compute_in_keras_what_they_do_in_torch(ckpt, tmp_path):
    expected = dict(np.load(EXPECTED / "layers.npz"))
    inputs, outputs = {}, {}
    for name, layer in layers_of_torch().items():
        layer.name = name
        x = inputs[name] = keras.Input(expected[name + "/x"].shape[1:], name=name + "_x")
        outputs[name] = layer(x, x) if name == "mha" else layer(x)
    m = keras.Model(inputs, outputs)
    m.save_weights(tmp_path / "like.weights.h5")
    back = ["convert", "--map", "torch-to-keras", "--heads", "2", "--like", tmp_path / "like.weights.h5"]
    ckpt(*back, EXPECTED / "layers.pt", tmp_path / "m.weights.h5")
    m.load_weights(tmp_path / "m.weights.h5")
    got = m({name: tf.constant(expected[name + "/x"]) for name in inputs})
    for name in inputs:
        np.testing.assert_allclose(got[name], expected[name + "/y"], rtol=1e-5, atol=1e-6, err_msg=name)
    # Back in torch's form they are its values, but for the two biases of a recurrent layer, which Keras has one for.
    ckpt("convert", "--map", "keras-to-torch", tmp_path / "m.weights.h5", tmp_path / "t.safetensors")
    ckpt("convert", "--exclude", "num_batches", EXPECTED / "layers.pt", tmp_path / "want.safetensors")
    got, want = (safe.load_file(tmp_path / f) for f in ["t.safetensors", "want.safetensors"])
    assert got.keys() == want.keys()
    for name, values in want.items():
        layer, _, part = name.partition(".")
        if layer in ("lstm", "rnn", "bilstm") and part.startswith("bias_ih"):
            values = values + want[name.replace("bias_ih", "bias_hh")]
        elif layer in ("lstm", "rnn", "bilstm") and part.startswith("bias_hh"):
            values = 0 * values
        np.testing.assert_array_equal(got[name], values, err_msg=name)
