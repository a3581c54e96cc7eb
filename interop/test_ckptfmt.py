"""Checkpoints of every kind, between TensorFlow and the ckpt command: what one writes, the other reads."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.training import py_checkpoint_reader

# Every type that SaveV2 stores, with the shapes that are written in their own ways.
DTYPES = [
    tf.float32, tf.float64, tf.half, tf.bfloat16, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32,
    tf.uint64, tf.bool, tf.complex64, tf.complex128, tf.dtypes.experimental.float8_e5m2,
    tf.dtypes.experimental.float8_e4m3fn, tf.dtypes.experimental.int4, tf.dtypes.experimental.uint4,
]  # fmt: skip
SHAPES = [[], [1], [3, 4], [0, 2], [2, 1, 5]]
V1_DTYPES = [tf.float32, tf.float64, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8]  # that a CheckpointReader reads


def random_tensor(rng, dtype, shape):
    if dtype == tf.bool:
        return tf.constant(rng.integers(0, 2, size=shape).astype(bool))
    if dtype in (tf.dtypes.experimental.int4, tf.dtypes.experimental.uint4):
        return tf.cast(tf.constant(rng.integers(0, 8, size=shape, dtype=np.int32)), dtype)
    bits = rng.bytes(int(np.prod(shape)) * dtype.size)
    return tf.constant(np.frombuffer(bits, dtype=dtype.as_numpy_dtype).reshape(shape), dtype)


@pytest.fixture(scope="module")
def tensors():
    rng = np.random.default_rng(7)
    values = {
        f"t/{dtype.name}/{'x'.join(map(str, shape))}": random_tensor(rng, dtype, shape) for dtype in DTYPES for shape in SHAPES
    }
    values["text"] = tf.constant(["", "naïve", b"\x00\xff", "x" * 300])
    values["one text"] = tf.constant("only")
    return values


@pytest.fixture(scope="module")
def saved(tensors, tmp_path_factory):
    """A bundle that TensorFlow wrote, with a partitioned variable in it."""
    prefix = str(tmp_path_factory.mktemp("tensorflow") / "model.ckpt-7")
    table = np.arange(24, dtype=np.float32).reshape(8, 3)
    names, values = list(tensors), list(tensors.values())
    specs = [""] * len(names)
    for start, size in ((0, 3), (3, 3), (6, 2)):
        names.append("table")
        specs.append(f"8 3 {start},{size}:-")
        values.append(tf.constant(table[start : start + size]))
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=specs, tensors=values)
    return prefix


def raw(tensor):
    """The bytes that `ckpt cat --raw` prints."""
    if tensor.dtype == tf.string:
        flat = np.array(tensor.numpy(), dtype=object).reshape(-1)
        return b"".join(len(s).to_bytes(8, "little") + s for s in flat)
    return np.ascontiguousarray(tensor.numpy()).tobytes()


def test_lists_what_tensorflow_wrote(ckpt, saved, tensors):
    listed = {t["name"]: t for t in json.loads(ckpt("ls", saved, "--json").stdout)}
    assert set(listed) == set(tensors) | {"table"}
    for name, value in tensors.items():
        assert (listed[name]["dtype"], listed[name]["shape"]) == (value.dtype.name, value.shape.as_list()), name
    assert listed["table"]["shape"] == [8, 3] and listed["table"]["bytes"] == 96
    ckpt("verify", saved)


def test_reads_every_type(ckpt, saved, tensors):
    for name, value in list(tensors.items())[::4] + [("text", tensors["text"])]:
        assert ckpt("cat", "--raw", saved, name, text=False).stdout == raw(value), name


def test_numpy_reads_tensors(ckpt, saved, tensors, tmp_path):
    for name in ("t/float32/3x4", "t/complex64/", "t/int64/1", "t/bool/2x1x5", "t/float64/0x2"):
        (tmp_path / "t.npy").write_bytes(ckpt("cat", "--npy", saved, name, text=False).stdout)
        got = np.load(tmp_path / "t.npy")
        assert got.dtype == tensors[name].numpy().dtype and got.shape == tensors[name].shape, name
        assert got.tobytes() == raw(tensors[name]), name


def test_reads_slices(ckpt, saved):
    got = json.loads(ckpt("cat", saved, "table", "--slice", "2,5:1,1", "--json").stdout)
    assert got == [[float(3 * i + 1)] for i in range(2, 7)]


@pytest.mark.parametrize("options", [[], ["--shards", "3"]], ids=["one shard", "three shards"])
def test_tensorflow_reads_a_copy(ckpt, saved, tensors, tmp_path, options):
    copy = str(tmp_path / "copy")
    ckpt("cp", saved, copy, *options)
    names = list(tensors)
    restored = tf.raw_ops.RestoreV2(
        prefix=copy, tensor_names=names + ["table"], shape_and_slices=[""] * len(names) + ["8 3 1,6:-"],
        dtypes=[t.dtype for t in tensors.values()] + [tf.float32],
    )  # fmt: skip
    for name, got in zip(names, restored):
        assert raw(got) == raw(tensors[name]) and got.shape == tensors[name].shape, name
    np.testing.assert_array_equal(restored[-1], np.arange(24, dtype=np.float32).reshape(8, 3)[1:7])


def test_a_copy_has_the_same_bytes(ckpt, saved, tmp_path):
    copy = tmp_path / "copy"
    ckpt("cp", saved, copy)
    for suffix in (".index", ".data-00000-of-00001"):
        with open(saved + suffix, "rb") as a, open(str(copy) + suffix, "rb") as b:
            assert a.read() == b.read(), suffix


def test_v1_both_ways(ckpt, saved, tensors, tmp_path):
    old = str(tmp_path / "old")
    wanted = [n for n, t in tensors.items() if t.dtype in V1_DTYPES and 0 not in t.shape] + ["one text"]
    ckpt("cp", saved, old, "--v1", "--only", "^(" + "|".join(wanted) + ")$")
    reader = py_checkpoint_reader.NewCheckpointReader(old)
    assert set(reader.get_variable_to_shape_map()) == set(wanted)
    for name in wanted:
        assert raw(tf.constant(reader.get_tensor(name), tensors[name].dtype)) == raw(tensors[name]), name

    theirs = str(tmp_path / "theirs")
    tf.raw_ops.SaveSlices(
        filename=theirs, tensor_names=wanted, shapes_and_slices=[""] * len(wanted), data=[tensors[n] for n in wanted]
    )
    with open(old, "rb") as a, open(theirs, "rb") as b:
        assert a.read() == b.read()
    ckpt("diff", old, theirs)


def test_merges_and_removes_as_tensorflow_sees_it(ckpt, tmp_path):
    for part in "ab":
        tf.raw_ops.SaveV2(prefix=str(tmp_path / part), tensor_names=[part], shape_and_slices=[""], tensors=[tf.constant(1.0)])
    ckpt("merge", tmp_path / "a", tmp_path / "b", tmp_path / "both")
    assert [n for n, _ in tf.train.list_variables(str(tmp_path / "both"))] == ["a", "b"]

    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(2.0)), str(tmp_path / "run"), max_to_keep=3)
    paths = [manager.save() for _ in range(3)]
    ckpt("rm", paths[-1])
    assert tf.train.latest_checkpoint(str(tmp_path / "run")) == paths[-2]
    assert ckpt("latest", tmp_path / "run").stdout.strip() == paths[-2]


def test_rewritten_object_based_checkpoint_restores(ckpt, tmp_path):
    model = tf.train.Checkpoint(step=tf.Variable(5), w=tf.Variable([1.0, 2.0]))
    path = model.save(str(tmp_path / "ckpt"))
    ckpt("cp", path, tmp_path / "copy")
    fresh = tf.train.Checkpoint(step=tf.Variable(0), w=tf.Variable([0.0, 0.0]))
    fresh.restore(str(tmp_path / "copy")).assert_consumed()
    assert fresh.step.numpy() == 5 and fresh.w.numpy().tolist() == [1.0, 2.0]


def test_agrees_on_damage(ckpt, saved, tmp_path):
    """One flipped bit in each of many places: damage to TensorFlow is damage to us."""
    with open(saved + ".index", "rb") as f:
        index = f.read()
    with open(saved + ".data-00000-of-00001", "rb") as f:
        (tmp_path / "bad.data-00000-of-00001").write_bytes(f.read())
    rng = np.random.default_rng(3)
    for at in rng.integers(0, len(index), size=12):
        damaged = bytearray(index)
        damaged[at] ^= 1 << rng.integers(0, 8)
        (tmp_path / "bad.index").write_bytes(damaged)
        try:
            tf.train.list_variables(str(tmp_path / "bad"))
            theirs = "intact"
        except (tf.errors.OpError, ValueError):
            theirs = "damaged"
        ours = "intact" if ckpt("ls", tmp_path / "bad", code=None).returncode == 0 else "damaged"
        assert ours == theirs, f"bit flipped at {at}"


def test_tensors_in_shards_of_a_size(ckpt, tmp_path):
    """MaxShardSizePolicy cuts a tensor into slices of several files; JSON keeps the signs of zeros for Python."""
    rng = np.random.default_rng(3)
    values = {"a": rng.random((100, 30)).astype(np.float32), "b": np.array([-0.0, 0.0, np.nan]), "c": np.arange(3)}
    policy = tf.train.experimental.MaxShardSizePolicy(1000)
    prefix = tf.train.Checkpoint(**{n: tf.Variable(v) for n, v in values.items()}).write(
        str(tmp_path / "model"), options=tf.train.CheckpointOptions(experimental_sharding_callback=policy)
    )
    assert len(list(tmp_path.glob("model.data-*"))) > 10
    ckpt("verify", prefix)
    ckpt("cp", "--shards", 2, prefix, tmp_path / "copy")
    for name, value in values.items():
        key = name + "/.ATTRIBUTES/VARIABLE_VALUE"
        assert ckpt("cat", "--raw", prefix, key, text=False).stdout == value.tobytes()
        assert tf.train.load_variable(str(tmp_path / "copy"), key).tobytes() == value.tobytes()
        listed = np.array(json.loads(ckpt("cat", "--json", prefix, key).stdout), value.dtype)  # numpy reads "NaN"
        assert listed.tobytes() == value.tobytes()
