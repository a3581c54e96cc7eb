"""A training begins with the values that TensorFlow, Keras, NumPy and safetensors saved, from each of their formats."""

import numpy as np
import pytest
import tensorflow as tf
from harness import checkpoints
from harness.commands import DIGITS_CONFIG, REPO, assert_success

keras = pytest.importorskip("keras")
safe = pytest.importorskip("safetensors.numpy")
v1 = tf.compat.v1


def model():
    keras.utils.set_random_seed(3)
    layers = keras.layers
    m = keras.Sequential([keras.Input((64,)), layers.Dense(128, activation="relu", name="hidden"), layers.Dense(10, name="logits")], name="net")
    m.compile("adam", "mse")
    m.optimizer.build(m.trainable_variables)
    return m


def save_by_name(values, folder, version):
    with tf.Graph().as_default(), v1.Session() as session:
        for name, value in values.items():
            v1.get_variable(name, initializer=value)
        v1.train.get_or_create_global_step()
        session.run(v1.global_variables_initializer())
        v1.train.Saver(write_version=version).save(session, str(folder / "model.ckpt"), global_step=5)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder with the same weights in every format, and these by their names."""
    folder, m = tmp_path_factory.mktemp("saved"), model()
    values = {v.path.removeprefix("net/"): v.numpy() for v in m.weights}
    m.save(folder / "m.keras")
    m.save(folder / "m.h5")
    m.save_weights(folder / "m.weights.h5")
    m.save_weights(folder / "few.weights.json", max_shard_size=40000 / 2**30)
    m.export(folder / "exported", verbose=False)
    tf.saved_model.save(m, str(folder / "saved"))
    tf.train.Checkpoint(model=m, optimizer=m.optimizer).save(str(folder / "objects/ckpt"))
    for version, name in [(v1.train.SaverDef.V1, "v1"), (v1.train.SaverDef.V2, "v2")]:
        (folder / name).mkdir()
        save_by_name(values, folder / name, version)
    np.savez(folder / "m.npz", **values)
    safe.save_file(values, folder / "m.safetensors")
    torch = {name.replace("/kernel", ".weight").replace("/", "."): np.ascontiguousarray(v.T) for name, v in values.items()}
    safe.save_file(torch, folder / "torch.safetensors")
    # As Lightning has them: a model in a module, next to its optimizer.
    wrapped = {f"state_dict.model.{name}": v for name, v in torch.items()} | {"optimizer_states.0.state.0.exp_avg": np.ones(3, np.float32)}
    safe.save_file(wrapped, folder / "wrapped.safetensors")
    return folder, values


SOURCES = {
    **dict.fromkeys(["m.keras", "m.h5", "m.weights.h5", "few.weights.json", "exported", "saved", "objects", "v1", "v2", "m.npz", "m.safetensors"]),
    "torch.safetensors": "torch-to-keras",
    "wrapped.safetensors": "torch-to-keras",
}


@pytest.mark.parametrize("job", ["family", "graph"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_training_begins_with_the_weights(commands, graph_job, saved, tmp_path, source, job):
    folder, values = saved
    settings = {"warm_start.from": folder / source, "train.steps": 2, "supervisor.max_to_keep": 0}
    if SOURCES[source]:
        settings["warm_start.map"] = SOURCES[source]
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    args = [DIGITS_CONFIG if job == "family" else graph_job, "--logdir", tmp_path / "log", *words]
    plan = assert_success(commands.run("trainerd", "check", *args))
    assert "4 taken, 0 of them reshaped; 0 initialised" in plan.text, plan
    assert_success(commands.run("trainerd", "run", *args))
    first = checkpoints.variables(tmp_path / "log" / "model.ckpt-0")
    for name, value in values.items():
        np.testing.assert_array_equal(first[name], value, err_msg=name)


@pytest.fixture(scope="module")
def graph_job(tmp_path_factory):
    """A job file of a graph with variables of the same names, and an optimizer's."""
    folder = tmp_path_factory.mktemp("graph")
    with tf.Graph().as_default():
        x, y = v1.placeholder(tf.float32, [None, 64], "pixels"), v1.placeholder(tf.int64, [None], "digit")
        for layer, size in [("hidden", 128), ("logits", 10)]:
            with v1.variable_scope(layer):
                kernel, bias = v1.get_variable("kernel", [x.shape[1], size]), v1.get_variable("bias", [size], use_resource=False)
            x = x @ kernel + bias
            x = tf.nn.relu(x) if layer == "hidden" else x
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x), name="loss")
        v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=v1.train.get_or_create_global_step(), name="train")
        v1.train.Saver()
        v1.train.export_meta_graph(str(folder / "model.meta"), clear_devices=True)
    job = folder / "graph.toml"
    job.write_text(f"""logdir = "log"
[data]
file = "{REPO}/examples/digits/digits.csv.gz"
scale = 16
batch_size = 32
[graph]
meta = "model.meta"
loss = "loss"
[graph.feeds]
pixels = "features"
digit = "label"
""")
    return job
