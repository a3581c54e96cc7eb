"""Random tensors of every type that TensorFlow stores: written by it and read by us, and the other way round."""

import json
import pathlib
import shutil
import subprocess

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.training import py_checkpoint_reader

ROUNDS = 12
NOT_STORED = {"DT_INVALID", "DT_RESOURCE", "DT_VARIANT"}
STORED = [
    tf.as_dtype(number) for name, number in types_pb2.DataType.items() if number < 100 and name not in NOT_STORED
]  # fmt: skip
# The bits of an element of the types that are narrower than the byte that it takes.
NARROW = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4}
QUANTISED = {tf.qint8: np.int8, tf.quint8: np.uint8, tf.qint16: np.int16, tf.quint16: np.uint16, tf.qint32: np.int32}
V1 = [tf.float32, tf.float64, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8]  # that a CheckpointReader reads


@pytest.fixture(scope="module")
def emitckpt(tmp_path_factory):
    """The program that writes what a document describes, or describes what there is."""
    go = shutil.which("go")
    if not go:
        pytest.skip("no go here to build the program that writes checkpoints")
    program = tmp_path_factory.mktemp("emitckpt") / "emitckpt"
    root = pathlib.Path(__file__).parent.parent
    subprocess.run([go, "build", "-o", program, "./interop/emitckpt"], check=True, cwd=root)

    def run(command, prefix, document=None):
        done = subprocess.run(
            [program, command, prefix], input=json.dumps(document or {}).encode(), capture_output=True, timeout=60
        )
        assert done.returncode == 0, f"emitckpt {command}: {done.stderr.decode()}"
        return json.loads(done.stdout) if command == "read" else None

    return run


def random_shape(rng):
    return [int(n) for n in rng.integers(0, 6, size=rng.integers(0, 4))]


def elements(rng, dtype, shape):
    """A numpy array of any bits that the type has."""
    count = int(np.prod(shape))
    if dtype == tf.bool:
        return rng.integers(0, 2, size=shape).astype(bool)
    if dtype.name in NARROW:
        kind = getattr(ml_dtypes, dtype.name)
        if dtype.name.startswith("float"):
            return rng.integers(0, 16, size=count, dtype=np.uint8).view(kind).reshape(shape)
        low = -(1 << NARROW[dtype.name] - 1) if dtype.name.startswith("int") else 0
        return rng.integers(low, low + (1 << NARROW[dtype.name]), size=shape).astype(kind)
    kind = QUANTISED.get(dtype, dtype.as_numpy_dtype)
    return np.frombuffer(rng.bytes(count * np.dtype(kind).itemsize), dtype=kind).reshape(shape)


def random_tensor(rng, dtype):
    """A tensor, its bytes as they are stored, and its strings."""
    shape = random_shape(rng)
    if dtype == tf.string:
        flat = [rng.bytes(int(rng.choice([0, 1, 127, 128, 300]))) for _ in range(int(np.prod(shape)))]
        return tf.reshape(tf.constant(flat, tf.string), shape), b"", flat
    array = elements(rng, dtype, shape)
    if dtype in QUANTISED:
        return tf.bitcast(tf.constant(array), dtype), array.tobytes(), []
    return tf.constant(array, dtype), array.tobytes(), []


def random_tensors(rng, dtypes):
    """Tensors by name with what a document says of them, in any order."""
    out = {}
    for i in rng.permutation(len(dtypes)):
        tensor, data, strings = random_tensor(rng, dtypes[i])
        name = f"scope_{rng.integers(0, 3)}/{dtypes[i].name}" + "é/" * int(rng.integers(0, 2))
        out[name] = tensor, {
            "name": name, "dtype": dtypes[i].name, "shape": tensor.shape.as_list(), "data": data.hex(),
            "strings": [s.hex() for s in strings],
        }  # fmt: skip
    return out


def stored_bytes(tensor):
    if tensor.dtype in QUANTISED:
        return tf.bitcast(tensor, tf.as_dtype(QUANTISED[tensor.dtype])).numpy().tobytes()
    return np.ascontiguousarray(tensor.numpy()).tobytes()


def assert_same(got, want, said, note):
    assert got.dtype == want.dtype and got.shape == want.shape, note
    if want.dtype == tf.string:
        assert [s.hex() for s in np.array(got.numpy(), dtype=object).reshape(-1)] == said["strings"], note
    else:
        assert stored_bytes(got).hex() == said["data"], note


def save(prefix, tensors):
    tf.raw_ops.SaveV2(
        prefix=prefix, tensor_names=list(tensors), shape_and_slices=[""] * len(tensors),
        tensors=[t for t, _ in tensors.values()],
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_every_type_both_ways(emitckpt, tmp_path, seed):
    rng = np.random.default_rng(seed)
    tensors = random_tensors(rng, STORED)
    theirs, ours = str(tmp_path / "theirs"), str(tmp_path / "ours")
    save(theirs, tensors)
    got = {t["name"]: t for t in emitckpt("read", theirs)["tensors"]}
    assert set(got) == set(tensors)
    for name, (_, said) in tensors.items():
        assert {**got[name], "strings": got[name]["strings"] or []} == {**said, "slice": ""}, name

    plain = seed % 3 == 0  # then the bytes of the files are compared, too
    document = {"tensors": [said for _, said in tensors.values()], "stream": seed % 2 == 1}
    if not plain:
        document |= {"shards": int(rng.integers(1, 5)), "alignment": int(rng.choice([0, 1, 8, 64])), "snappy": True}
    emitckpt("write", ours, document)
    names = list(tensors)
    restored = tf.raw_ops.RestoreV2(
        prefix=ours, tensor_names=names, shape_and_slices=[""] * len(names), dtypes=[tensors[n][0].dtype for n in names]
    )
    for name, value in zip(names, restored):
        assert_same(value, *tensors[name], name)
    if plain:
        for suffix in (".index", ".data-00000-of-00001"):
            assert pathlib.Path(ours + suffix).read_bytes() == pathlib.Path(theirs + suffix).read_bytes(), suffix


@pytest.mark.parametrize("seed", range(4))
def test_slices_both_ways(emitckpt, tmp_path, seed):
    """Any slice of a tensor partitioned in any dimension is restored."""
    rng = np.random.default_rng(100 + seed)
    shape = [int(n) for n in rng.integers(2, 9, size=rng.integers(1, 4))]
    whole = rng.standard_normal(shape).astype(np.float32)
    axis = int(rng.integers(0, len(shape)))
    bounds = sorted({0, shape[axis], *(int(n) for n in rng.integers(1, shape[axis], size=2))})
    specs, parts = [], []
    for a, b in zip(bounds, bounds[1:]):
        cut = ":".join(f"{a},{b - a}" if i == axis else "-" for i in range(len(shape)))
        specs.append(" ".join(map(str, shape)) + " " + cut)
        parts.append(np.ascontiguousarray(np.take(whole, range(a, b), axis)))
    order = rng.permutation(len(parts))
    theirs, ours = str(tmp_path / "theirs"), str(tmp_path / "ours")
    tf.raw_ops.SaveV2(
        prefix=theirs, tensor_names=["w"] * len(parts), shape_and_slices=[specs[i] for i in order],
        tensors=[tf.constant(parts[i]) for i in order],
    )  # fmt: skip
    got = emitckpt("read", theirs)["tensors"]
    assert got[0]["shape"] == shape and got[0]["data"] == whole.tobytes().hex()

    document = [
        {"name": "w", "dtype": "float32", "shape": list(parts[i].shape), "slice": specs[i], "data": parts[i].tobytes().hex()}
        for i in order
    ]
    emitckpt("write", ours, {"tensors": document})
    for suffix in (".index", ".data-00000-of-00001"):
        assert pathlib.Path(ours + suffix).read_bytes() == pathlib.Path(theirs + suffix).read_bytes(), suffix
    start = [int(rng.integers(0, n)) for n in shape]
    length = [int(rng.integers(1, n - a + 1)) for n, a in zip(shape, start)]
    wanted = " ".join(map(str, shape)) + " " + ":".join(f"{a},{n}" for a, n in zip(start, length))
    (restored,) = tf.raw_ops.RestoreV2(prefix=ours, tensor_names=["w"], shape_and_slices=[wanted], dtypes=[tf.float32])
    np.testing.assert_array_equal(restored, whole[tuple(slice(a, a + n) for a, n in zip(start, length))])


@pytest.mark.parametrize("seed", range(4))
def test_old_format_both_ways(emitckpt, tmp_path, seed):
    rng = np.random.default_rng(200 + seed)
    tensors = {n: v for n, v in random_tensors(rng, V1).items() if 0 not in v[0].shape}
    theirs, ours = str(tmp_path / "theirs"), str(tmp_path / "ours")
    tf.raw_ops.SaveSlices(
        filename=theirs, tensor_names=list(tensors), shapes_and_slices=[""] * len(tensors),
        data=[t for t, _ in tensors.values()],
    )  # fmt: skip
    got = {t["name"]: t["data"] for t in emitckpt("read", theirs)["tensors"]}
    assert got == {n: said["data"] for n, (_, said) in tensors.items()}
    emitckpt("write", ours, {"v1": True, "tensors": [said for _, said in tensors.values()]})
    assert pathlib.Path(ours).read_bytes() == pathlib.Path(theirs).read_bytes()
    emitckpt("write", ours, {"v1": True, "snappy": True, "tensors": [said for _, said in tensors.values()]})
    reader = py_checkpoint_reader.NewCheckpointReader(ours)
    for name, (tensor, said) in tensors.items():
        assert_same(tf.constant(reader.get_tensor(name), tensor.dtype), tensor, said, name)


def test_a_manifest_does_not_disturb(emitckpt, tmp_path):
    """TensorFlow passes over the side file, and deletes what it knows of."""
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(2.0)), str(tmp_path), max_to_keep=1)
    path = manager.save()
    pathlib.Path(path + ".manifest.json").write_text('{"version": 1, "step": 1, "files": []}')
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    assert tf.train.load_checkpoint(path).get_tensor("v/.ATTRIBUTES/VARIABLE_VALUE") == 2.0
    assert manager.save() != path
