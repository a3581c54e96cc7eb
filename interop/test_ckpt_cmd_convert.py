"""`ckpt convert`: NumPy, the safetensors library and TensorFlow load what it writes, and it reads what they write."""


import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

st = pytest.importorskip("safetensors")
st_numpy = pytest.importorskip("safetensors.numpy")

SHAPES = [(), (1,), (3, 4), (0, 2), (2, 1, 5)]
NUMPY = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128"]
EIGHT_BITS = ["float8_e5m2", "float8_e4m3fn"]
FOUR_BITS = ["int4", "uint4"]


def np_type(name):
    return getattr(ml_dtypes, name, None) or np.dtype(name).type


def arrays(names):
    rng = np.random.default_rng(4)
    out = {}
    for name in names:
        for shape in SHAPES:
            n = int(np.prod(shape))
            if name == "bool":
                a = rng.integers(0, 2, size=shape).astype(bool)
            elif name in FOUR_BITS:
                a = np.array(rng.integers(0, 8, size=shape), np.int8).astype(np_type(name))
            else:
                a = np.frombuffer(rng.bytes(n * np.dtype(np_type(name)).itemsize), np_type(name)).reshape(shape)
            out[f"{name}/{'x'.join(map(str, shape))}"] = a
    return out


def save(prefix, values):
    tensors = [tf.constant(v) for v in values.values()]
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=list(values), shape_and_slices=[""] * len(values), tensors=tensors)
    return str(prefix)


def same_tensors(prefix, values):
    types = [tf.constant(v).dtype for v in values.values()]
    got = tf.raw_ops.RestoreV2(prefix=str(prefix), tensor_names=list(values), shape_and_slices=[""] * len(values), dtypes=types)
    for name, tensor in zip(values, got):
        assert tensor.shape == values[name].shape and tensor.numpy().tobytes() == values[name].tobytes(), name


def test_numpy_reads_npz(ckpt, tmp_path):
    values = arrays(NUMPY) | {"text": np.array([b"", "naïve".encode(), b"a\x00b"], dtype=object), "é/weird name": np.float32([1])}
    ckpt("convert", save(tmp_path / "m", values), tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as npz:
        assert set(npz.files) == set(values)
        for name, want in values.items():
            got = npz[name]
            if name == "text":
                assert got.tolist() == want.tolist()
                continue
            if want.dtype == ml_dtypes.bfloat16:
                got = got.view(ml_dtypes.bfloat16)
            assert got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes(), name


def test_each_array_has_numpys_bytes(ckpt, tmp_path):
    import io
    import zipfile

    values = arrays(NUMPY)
    ckpt("convert", save(tmp_path / "m", values), tmp_path / "m.npz")
    with zipfile.ZipFile(tmp_path / "m.npz") as z:
        for name, value in values.items():
            want = io.BytesIO()
            np.save(want, value)
            assert z.read(name + ".npy") == want.getvalue(), name


@pytest.mark.parametrize("numpy_save", [np.savez, np.savez_compressed])
def test_reads_what_numpy_saves(ckpt, tmp_path, numpy_save):
    values = arrays(NUMPY + ["float8_e5m2"])
    values["fortran"] = np.asfortranarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    values["big-endian"] = np.arange(5, dtype=">i4")
    numpy_save(tmp_path / "m.npz", **values)
    ckpt("convert", tmp_path / "m.npz", tmp_path / "m")
    values["big-endian"] = values["big-endian"].astype("<i4")
    values["fortran"] = np.ascontiguousarray(values["fortran"])
    same_tensors(tmp_path / "m", values)


def test_npz_refuses_what_it_cannot_take(ckpt, tmp_path):
    np.savez(tmp_path / "o.npz", a=np.array([{}], dtype=object))
    assert "pickled" in ckpt("convert", tmp_path / "o.npz", tmp_path / "o", code=1).stderr
    np.savez(tmp_path / "f.npz", a=np.zeros(2, ml_dtypes.float8_e4m3fn))
    assert "unspecified type" in ckpt("convert", tmp_path / "f.npz", tmp_path / "f", code=1).stderr


ZEROS = {"one": [b"a\x00"], "scalar": b"graph\x00\x00", "same": [[b"a\x00"], [b"bc"]], "ragged": [b"", b"a\x00", b"\x00", b"long\x00\x00x\x00"]}


def test_strings_that_end_in_zeros(ckpt, tmp_path):
    """NumPy loads them, and they come back byte for byte; so do the files."""
    values = {n: tf.constant(v) for n, v in ZEROS.items()}
    tf.raw_ops.SaveV2(prefix=str(tmp_path / "z"), tensor_names=list(values), shape_and_slices=[""] * len(values), tensors=list(values.values()))
    ckpt("convert", tmp_path / "z", tmp_path / "z.npz")
    with np.load(tmp_path / "z.npz") as npz:
        assert npz["scalar"].shape == () and npz["scalar"].tobytes() == ZEROS["scalar"]
        assert npz["same"].shape == (2, 1) and [x.tobytes() for x in npz["same"].flat] == [b"a\x00", b"bc"]
        elements = [x.tobytes() for x in npz["ragged"].flat]
        assert [e[: int.from_bytes(e[-8:], "little")] for e in elements] == ZEROS["ragged"]
    ckpt("convert", tmp_path / "z.npz", tmp_path / "back")
    for name, value in values.items():
        got = tf.raw_ops.RestoreV2(prefix=str(tmp_path / "back"), tensor_names=[name], shape_and_slices=[""], dtypes=[tf.string])[0]
        assert got.shape == value.shape and bool(tf.reduce_all(got == value)), name
    for suffix in (".index", ".data-00000-of-00001"):
        assert (tmp_path / ("back" + suffix)).read_bytes() == (tmp_path / ("z" + suffix)).read_bytes()
    assert ckpt("cat", tmp_path / "z", "same", "--npy", text=False).stdout[-4:] == b"a\x00bc"


def test_object_graph_of_a_saved_model(ckpt, tmp_path):
    """Many graphs of objects end in a zero byte."""
    module = tf.Module()
    module.w, module.b = tf.Variable([1.0, 2.0]), tf.Variable(3)
    tf.saved_model.save(module, str(tmp_path / "sm"))
    prefix = tmp_path / "sm" / "variables" / "variables"
    graph = tf.train.load_variable(str(prefix), "_CHECKPOINTABLE_OBJECT_GRAPH")
    ckpt("convert", prefix, tmp_path / "m.npz")
    assert np.load(tmp_path / "m.npz")["_CHECKPOINTABLE_OBJECT_GRAPH"].tobytes() == graph
    ckpt("convert", tmp_path / "m.npz", tmp_path / "back")
    for suffix in (".index", ".data-00000-of-00001"):
        assert (tmp_path / ("back" + suffix)).read_bytes() == (prefix.parent / ("variables" + suffix)).read_bytes()


def test_npz_there_and_back(ckpt, tmp_path):
    path = save(tmp_path / "m", arrays(NUMPY + EIGHT_BITS + FOUR_BITS) | {"s": np.array([b"x", b"yz"], dtype=object)})
    ckpt("convert", path, tmp_path / "m.npz")
    ckpt("convert", tmp_path / "m.npz", tmp_path / "back")
    ckpt("diff", path, tmp_path / "back")


SAFE = [n for n in NUMPY if n != "complex128"]


def test_safetensors_reads(ckpt, tmp_path):
    values = arrays(SAFE)
    ckpt("convert", save(tmp_path / "m", values), tmp_path / "m.safetensors")
    got = st_numpy.load_file(tmp_path / "m.safetensors")
    assert set(got) == set(values)
    for name, want in values.items():
        assert got[name].dtype == want.dtype and got[name].shape == want.shape and got[name].tobytes() == want.tobytes(), name


def test_safetensors_bytes_are_the_librarys(ckpt, tmp_path):
    values = arrays(SAFE) | {'q"uote\\\t\x01\u2028é': np.float32([1])}
    ckpt("convert", save(tmp_path / "m", values), tmp_path / "m.safetensors")
    assert (tmp_path / "m.safetensors").read_bytes() == st_numpy.save(values)


def test_reads_safetensors(ckpt, tmp_path):
    values = arrays(SAFE)
    st_numpy.save_file(values, tmp_path / "m.safetensors", metadata={"format": "tf"})
    ckpt("convert", tmp_path / "m.safetensors", tmp_path / "m", "--shards", 3)
    same_tensors(tmp_path / "m", values)


def test_safetensors_there_and_back(ckpt, tmp_path):
    path = save(tmp_path / "m", arrays(SAFE + EIGHT_BITS))
    ckpt("convert", path, tmp_path / "m.safetensors")
    with st.safe_open(tmp_path / "m.safetensors", "np") as f:
        assert len(f.keys()) == (len(SAFE) + len(EIGHT_BITS)) * len(SHAPES)
    ckpt("convert", tmp_path / "m.safetensors", tmp_path / "back")
    ckpt("diff", path, tmp_path / "back")


@pytest.mark.parametrize("name", ["complex128", "int4", "string"])
def test_safetensors_refuses(ckpt, tmp_path, name):
    value = np.array([b"a"], dtype=object) if name == "string" else arrays([name])[f"{name}/3x4"]
    path = save(tmp_path / "m", {"bad": value, "good": np.float32([1])})
    assert "--exclude" in ckpt("convert", path, tmp_path / "m.safetensors", code=1).stderr
    assert not (tmp_path / "m.safetensors").exists()
    ckpt("convert", path, tmp_path / "m.safetensors", "--exclude", "bad")
    assert list(st_numpy.load_file(tmp_path / "m.safetensors")) == ["good"]


def test_to_bfloat16_on_the_way(ckpt, tmp_path):
    value = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    ckpt("convert", save(tmp_path / "m", {"w": value}), tmp_path / "m.safetensors", "--dtype", "bf16", "--rename", "s/^/model./")
    got = st_numpy.load_file(tmp_path / "m.safetensors")["model.w"]
    assert got.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(got, value.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("middle", ["m.npz", "m.safetensors"])
def test_objects_survive(ckpt, tmp_path, middle):
    """A checkpoint of tf.train.Checkpoint restores after it went through another format."""
    path = tf.train.Checkpoint(step=tf.Variable(5), w=tf.Variable([1.0, 2.0])).save(str(tmp_path / "ckpt"))
    ckpt("convert", path, tmp_path / middle)
    ckpt("convert", tmp_path / middle, tmp_path / "back")
    fresh = tf.train.Checkpoint(step=tf.Variable(0), w=tf.Variable([0.0, 0.0]))
    fresh.restore(str(tmp_path / "back")).assert_consumed()
    assert fresh.step.numpy() == 5 and fresh.w.numpy().tolist() == [1, 2]


def test_partitioned_tensor_becomes_whole(ckpt, tmp_path):
    table = np.arange(36, dtype=np.float32).reshape(9, 4)
    for name, specs in {"rows": {"9 4 4,5:-": table[4:], "9 4 0,4:-": table[:4]}, "columns": {"9 4 -:0,3": table[:, :3], "9 4 -:3,1": table[:, 3:]}}.items():
        tf.raw_ops.SaveV2(prefix=str(tmp_path / name), tensor_names=["t"] * 2, shape_and_slices=list(specs), tensors=[tf.constant(v) for v in specs.values()])
        ckpt("convert", tmp_path / name, tmp_path / (name + ".npz"))
        np.testing.assert_array_equal(np.load(tmp_path / (name + ".npz"))["t"], table)
