"""Real TensorFlow lists, loads and continues what trainerd wrote, and trains to the same numbers."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from harness import checkpoints, digits as data, events
from harness.checkpoints import Model
from harness.commands import assert_success

tf1 = tf.compat.v1

ADAM_SLOTS = ("Adam", "Adam_1")

# A short run on rows in the file's order, so that TensorFlow can be fed the very batches that trainerd used.
REPLAYED_STEPS = 60
BATCH = 32
REPLAYED = {
    "train__steps": REPLAYED_STEPS,
    "data__shuffle": "false",
    "data__test_fraction": 0,
    "data__batch_size": BATCH,
    "supervisor__save_model_steps": 20,
    "supervisor__save_summaries_secs": 0,
    "supervisor__save_summaries_steps": 1,
}
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def prefix(digits):
    return checkpoints.latest(digits.logdir)


@pytest.fixture(scope="module")
def rows():
    return data.load()


@pytest.fixture(scope="module")
def replayed(commands, tmp_path_factory):
    logdir = tmp_path_factory.mktemp("replayed") / "logdir"
    assert_success(commands.train(logdir, **REPLAYED))
    return logdir


def test_latest_checkpoint_is_the_last_step(digits, prefix):
    assert prefix == checkpoints.on_disk(digits.logdir)[-1]


def test_state_file_lists_what_is_there(digits, prefix):
    state = tf.train.get_checkpoint_state(str(digits.logdir))
    assert state.model_checkpoint_path == prefix
    assert list(state.all_model_checkpoint_paths) == checkpoints.on_disk(digits.logdir)


def test_checkpoint_holds_the_model(prefix):
    """Weights and biases of both layers, Adam's two slots of each, its powers, and the step."""
    values = checkpoints.variables(prefix)
    weights = {n: v for n, v in values.items() if v.dtype == np.float32 and v.ndim and not n.endswith(ADAM_SLOTS)}
    assert sorted(v.shape for v in weights.values()) == [(10,), (64, 128), (128,), (128, 10)]
    for name, value in weights.items():
        for slot in ADAM_SLOTS:
            assert values[f"{name}/{slot}"].shape == value.shape
    assert {"beta1_power", "beta2_power"} <= set(values)
    assert values["global_step"].dtype == np.int64 and values["global_step"].shape == ()
    assert values["global_step"] == checkpoints.step_of(prefix)
    assert all(np.isfinite(v).all() for v in values.values())


def test_restored_model_knows_the_digits(prefix, rows):
    with Model(prefix) as model:
        assert model.run(model.accuracy, *rows) >= 0.95


def test_trains_one_more_step(prefix, rows):
    x, y = rows
    with Model(prefix) as model:
        before = model.step()
        loss, _ = model.run([model.loss, model.train_op], x[:BATCH], y[:BATCH])
        assert np.isfinite(loss)
        assert model.step() == before + 1 == checkpoints.step_of(prefix) + 1


def test_tensorflow_saves_and_lists_what_it_continued(prefix, rows, tmp_path):
    """The saver in the meta graph also writes; what it writes has the variables that trainerd wrote."""
    x, y = rows
    with Model(prefix) as model:
        model.run(model.train_op, x[:BATCH], y[:BATCH])
        saved = model.saver.save(model.session, str(tmp_path / "model.ckpt"), global_step=model.step())
    assert _own(checkpoints.variables(saved)) == _own(checkpoints.variables(prefix))


def test_losses_are_those_of_tensorflow(replayed, rows):
    """From the same initial values and the same batches TensorFlow goes through the same losses."""
    written = {step: loss for step, loss, _ in events.scalars(events.read_dir(replayed))["loss"]}
    computed = _train_in_tensorflow(checkpoints.latest(replayed), rows)
    assert set(written) <= set(computed) and len(written) >= REPLAYED_STEPS - 1
    for step, loss in written.items():
        assert loss == pytest.approx(computed[step], abs=TOLERANCE), f"step {step}"


def test_list_of_tensors_is_that_of_tensorflow(commands, prefix):
    listed = _json(commands.run("ckpt", "ls", prefix, "--json"))
    reader = tf.train.load_checkpoint(prefix)
    dtypes = reader.get_variable_to_dtype_map()
    expected = {
        name: (dtypes[name].name, shape, int(np.prod(shape)) * dtypes[name].size)
        for name, shape in reader.get_variable_to_shape_map().items()
    }
    assert {t["name"]: (t["dtype"], t["shape"], t["bytes"]) for t in listed} == expected
    assert [t["name"] for t in listed] == sorted(expected)


def test_list_of_checkpoints_is_the_state(commands, digits, prefix):
    listed = _json(commands.run("ckpt", "ls", str(digits.logdir), "--json"))
    present = checkpoints.on_disk(digits.logdir)
    assert [(c["prefix"], c["step"]) for c in listed] == [(p, checkpoints.step_of(p)) for p in present]
    assert [c["prefix"] for c in listed if c["latest"]] == [prefix]
    assert [c["bytes"] for c in listed] == [_size(p) for p in present]


def test_lists_for_people_name_everything(commands, digits, prefix):
    tensors = assert_success(commands.run("ckpt", "ls", prefix)).out
    assert all(name in tensors for name in checkpoints.variables(prefix)), tensors
    listed = assert_success(commands.run("ckpt", "ls", str(digits.logdir))).out
    assert all(str(checkpoints.step_of(p)) in listed for p in checkpoints.on_disk(digits.logdir)), listed


def _train_in_tensorflow(prefix, rows):
    """{step: loss after that many steps} of a run by TensorFlow alone."""
    losses = {}
    with Model(prefix, restore=False) as model:
        for step in range(REPLAYED_STEPS):
            loss, _ = model.run([model.loss, model.train_op], *_batch(rows, step))
            losses[step + 1] = loss
    return losses


def _batch(rows, step):
    """Rows in the file's order, from the last row on to the first."""
    x, y = rows
    chosen = np.arange(step * BATCH, (step + 1) * BATCH) % len(y)
    return x[chosen], y[chosen]


def _own(values):
    """Names, types and shapes of the model's variables, without the state that trainerd keeps with them."""
    return {(n, v.dtype, v.shape) for n, v in values.items() if not n.startswith("_trainerd/")}


def _size(prefix):
    """The bytes of a checkpoint's files."""
    path = pathlib.Path(prefix)
    return sum(p.stat().st_size for p in path.parent.glob(path.name + ".*"))


def _json(result):
    return json.loads(assert_success(result).out)
