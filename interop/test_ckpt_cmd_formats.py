"""`ckpt` takes what Keras, safetensors, NumPy and SavedModel write: it reads it, or says what it is."""

import importlib.util
import json
import pathlib
import pickle
import subprocess
import zipfile

import numpy as np
import pytest
import tensorflow as tf

safetensors = pytest.importorskip("safetensors")
keras = pytest.importorskip("keras")
st_numpy = pytest.importorskip("safetensors.numpy")


@pytest.fixture(scope="module")
def model():
    m = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(4, name="d1"), keras.layers.Dense(2, name="d2")])
    m.compile("adam", "mse")
    m.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    return m


def human(v):
    """The name that ckpt gives a variable: Keras begins it with the model's, unless the model was made of calls."""
    return v.path.partition("/")[2] if v.path.startswith("sequential") else v.path


def test_keras_files_are_read(ckpt, model, tmp_path):
    model.save_weights(tmp_path / "m.weights.h5")
    model.save(tmp_path / "m.keras")
    model.save(tmp_path / "m.h5")
    want = {human(v): np.asarray(v) for v in model.weights}
    for name in ["m.weights.h5", "m.keras", "m.h5"]:
        path = tmp_path / name
        listed = [t["name"] for t in json.loads(ckpt("ls", "--json", path).stdout)]
        assert set(want) <= set(listed), (name, listed)
        assert "all intact" in ckpt("verify", path).stderr
        ckpt("convert", path, tmp_path / f"{name}.npz")
        ckpt("convert", path, tmp_path / f"{name}.ckpt")
        reader = tf.train.load_checkpoint(str(tmp_path / f"{name}.ckpt"))
        with np.load(tmp_path / f"{name}.npz") as got:
            for key, value in want.items():
                assert got[key].tobytes() == value.tobytes(), (name, key)
                assert reader.get_tensor(key).tobytes() == value.tobytes(), (name, key)
    assert ckpt("cat", tmp_path / "m.keras", "layers/dense/vars/0").stdout == ckpt("cat", tmp_path / "m.h5", "d1/kernel").stdout
    for verb in ["select", "rm"]:
        said = ckpt(verb, tmp_path / "m.keras", code=1).stderr
        assert "model of Keras 3" in said and "sstable" not in said


def build():
    """A model with variables of several types, in layers in layers; two calls give two models of the same structure."""
    keras.backend.clear_session()  # the same names as in another process
    x = keras.Input((6, 4))
    y = keras.layers.Bidirectional(keras.layers.GRU(2))(x)
    y = keras.layers.BatchNormalization(scale=False)(keras.layers.Dense(3, name="head")(y))
    y = keras.layers.Dense(1, dtype=keras.DTypePolicy("bfloat16"), name="small")(y)
    m = keras.Model(x, y)
    m.compile("adam", "mse")
    m.optimizer.build(m.trainable_variables)
    for v in m.weights + m.optimizer.variables:
        v.assign(np.random.rand(*v.shape))
    return m


def bits(m):
    return [np.asarray(keras.ops.convert_to_numpy(v)).tobytes() for v in m.weights + m.optimizer.variables]


def test_keras_loads_what_ckpt_writes(ckpt, tmp_path):
    saved, other = build(), build()
    saved.save(tmp_path / "saved.keras")
    saved.save_weights(tmp_path / "saved.weights.h5")
    other.save(tmp_path / "other.keras")
    for source in ["saved.keras", "saved.weights.h5"]:
        ckpt("convert", tmp_path / source, tmp_path / f"{source}.out.weights.h5")
        ckpt("convert", "--like", tmp_path / "other.keras", tmp_path / source, tmp_path / f"{source}.out.keras")
        loaded = build()
        assert bits(loaded) != bits(saved)
        loaded.load_weights(tmp_path / f"{source}.out.weights.h5")
        assert bits(loaded) == bits(saved), source
        assert bits(keras.models.load_model(tmp_path / f"{source}.out.keras")) == bits(saved), source
    # There and back through other formats, by names alone.
    for middle in ["m.npz", "m.safetensors", "m.pt", "m.h5", "bundle"]:
        ckpt("convert", tmp_path / "saved.keras", tmp_path / middle)
        ckpt("convert", "--like", tmp_path / "other.keras", tmp_path / middle, tmp_path / f"{middle}.keras")
        assert bits(keras.models.load_model(tmp_path / f"{middle}.keras")) == bits(saved), middle
    ckpt("convert", "--exclude", "^optimizer/", tmp_path / "saved.keras", tmp_path / "bare.weights.h5")
    loaded = build()
    loaded.load_weights(tmp_path / "bare.weights.h5")
    n = len(saved.weights)
    assert bits(loaded)[:n] == bits(saved)[:n] and bits(loaded)[n:] != bits(saved)[n:]


def test_keras_files_need_a_model(ckpt, tmp_path):
    build().save(tmp_path / "m.keras")
    ckpt("convert", tmp_path / "m.keras", tmp_path / "m.npz")
    assert "--like" in ckpt("convert", tmp_path / "m.npz", tmp_path / "x.keras", code=1).stderr
    assert "--like" in ckpt("convert", tmp_path / "m.npz", tmp_path / "x.weights.h5", code=1).stderr
    said = ckpt("convert", "--exclude", "head/bias", "--like", tmp_path / "m.keras", tmp_path / "m.npz", tmp_path / "x.weights.h5", code=1).stderr
    assert "there is no head/bias" in said
    said = ckpt("convert", "--rename", "s/head/tail/", "--like", tmp_path / "m.keras", tmp_path / "m.npz", tmp_path / "x.keras", code=1).stderr
    assert "it has no tail/bias, tail/kernel" in said
    assert not (tmp_path / "x.keras").exists() and not (tmp_path / "x.weights.h5").exists()


def test_sharded_safetensors_that_ckpt_writes(ckpt, tmp_path):
    rng = np.random.default_rng(3)
    want = {f"layer.{i}.w": rng.normal(size=(i, 7)).astype(np.float32) for i in range(12)}
    st_numpy.save_file(want, tmp_path / "whole.safetensors")
    ckpt("convert", "--max-shard-size", "500B", tmp_path / "whole.safetensors", tmp_path / "out" / "model.safetensors")
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(v.nbytes for v in want.values())
    got = {}
    for file in sorted(set(index["weight_map"].values())):
        tensors = st_numpy.load_file(tmp_path / "out" / file)
        assert all(index["weight_map"][name] == file for name in tensors)
        assert sum(t.nbytes for t in tensors.values()) <= 500
        got |= tensors
    assert set(got) == set(want) and all(got[k].tobytes() == want[k].tobytes() for k in want)
    ckpt("diff", tmp_path / "whole.safetensors", tmp_path / "out")
    assert "already exists" in ckpt("convert", "--max-shard-size", "500B", tmp_path / "whole.safetensors", tmp_path / "out" / "model.safetensors", code=1).stderr


def test_hdf5_that_ckpt_writes(ckpt, tmp_path):
    h5py = pytest.importorskip("h5py")
    want = {f"many/{i}": np.float32(i) for i in range(700)}  # a tree of several levels
    for dtype in ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16", "?"]:
        for j, shape in enumerate([(), (0, 2), (5,), (3, 2, 4)]):
            want[f"types/{dtype}/{j}"] = np.ones(shape, dtype)
    np.savez(tmp_path / "m.npz", **want)
    ckpt("convert", tmp_path / "m.npz", tmp_path / "m.h5")
    got = {}
    with h5py.File(tmp_path / "m.h5") as f:
        f.visititems(lambda name, o: got.update({name: o[()]}) if isinstance(o, h5py.Dataset) else None)
    assert set(got) == set(want)
    for name, value in want.items():
        assert got[name].dtype == value.dtype and got[name].shape == value.shape and got[name].tobytes() == value.tobytes(), name


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_hdf5_as_h5py_writes_it(ckpt, tmp_path, libver):
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(7)
    want = {}
    with h5py.File(tmp_path / "f.h5", "w", libver=libver) as f:
        for i, dtype in enumerate(["f2", "f4", "f8", ">f4", ">i8", "i1", "u2", "u8", "c8", "c16", "?"]):
            for j, shape in enumerate([(), (0, 2), (5,), (7, 3, 2)]):
                for k, options in enumerate([{}, {"chunks": True}, {"chunks": True, "compression": "gzip", "shuffle": True, "fletcher32": True}]):
                    if options and (not shape or 0 in shape):
                        continue
                    name = f"g{i}/{j}/{k}"
                    f.create_dataset(name, data=(rng.normal(size=shape) * 50).astype(dtype), **options)
                    want[name] = f[name][()]
        for i in range(300):  # more than one node of a tree
            f[f"many/{i}"] = want[f"many/{i}"] = np.float32(i)
    assert "all intact" in ckpt("verify", tmp_path / "f.h5").stderr
    ckpt("convert", tmp_path / "f.h5", tmp_path / "f.npz")
    with np.load(tmp_path / "f.npz") as got:
        assert set(got) == set(want)
        for name, value in want.items():
            value = np.asarray(value)
            assert got[name].shape == value.shape and got[name].tobytes() == value.astype(value.dtype.newbyteorder("<")).tobytes(), name


def test_saved_model_folder_is_a_checkpoint(ckpt, model, tmp_path):
    model.export(tmp_path / "sm", verbose=False)
    tf.saved_model.save(tf.Module(), tmp_path / "bare")
    reader = tf.train.load_checkpoint(str(tmp_path / "sm/variables/variables"))
    want = sorted(reader.get_variable_to_shape_map())
    for arg in ["sm", "sm/variables", "sm/saved_model.pb", "sm/variables/variables.index", "sm/variables/variables.data-00000-of-00001"]:
        path = tmp_path / arg
        if arg != "sm/variables":  # a folder of checkpoints to ls
            listed = json.loads(ckpt("ls", "--json", path).stdout)
            assert [t["name"] for t in listed] == want, arg
        ckpt("diff", path, tmp_path / "sm")
    assert "all intact" in ckpt("verify", tmp_path / "sm").stderr
    ckpt("convert", tmp_path / "sm", tmp_path / "sm.npz")
    with np.load(tmp_path / "sm.npz") as got:
        for name in want:
            if reader.get_variable_to_dtype_map()[name] != tf.string:
                np.testing.assert_array_equal(got[name], reader.get_tensor(name))


def test_sharded_safetensors_as_transformers_save_them(ckpt, tmp_path):
    rng = np.random.default_rng(5)
    tensors = {f"layer.{i}.w": rng.normal(size=(3, i + 1)).astype(np.float32) for i in range(5)}
    weight_map = {}
    for i, name in enumerate(tensors):
        file = f"model-{i % 2 + 1:05d}-of-00002.safetensors"
        weight_map[name] = file
    for file in set(weight_map.values()):
        st_numpy.save_file({n: t for n, t in tensors.items() if weight_map[n] == file}, tmp_path / file, metadata={"format": "pt"})
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    for arg in [tmp_path, tmp_path / "model.safetensors.index.json"]:
        assert [t["name"] for t in json.loads(ckpt("ls", "--json", arg).stdout)] == sorted(tensors)
    ckpt("cp", tmp_path, tmp_path / "out" / "bundle")
    reader = tf.train.load_checkpoint(str(tmp_path / "out" / "bundle"))
    for name, want in tensors.items():
        assert reader.get_tensor(name).tobytes() == want.tobytes()
    assert "no checksums" in ckpt("verify", tmp_path).stderr


def test_torch_pickle_that_would_run_a_command(ckpt, tmp_path):
    class Evil:
        def __reduce__(self):
            return __import__("os").system, (f"touch {tmp_path}/ran",)

    for protocol in (2, 4):
        with zipfile.ZipFile(tmp_path / "evil.pt", "w") as z:
            z.writestr("evil/data.pkl", pickle.dumps({"w": Evil()}, protocol))
        for verb, *rest in [["ls"], ["stat"], ["verify"]]:
            said = ckpt(verb, tmp_path / "evil.pt", *rest, code=1).stderr
            assert 'system" is not one that a state dict needs' in said and "offset" in said
    assert not (tmp_path / "ran").exists()


def test_folder_of_torch_distributed_checkpoint(ckpt, tmp_path):
    """The folder is a fixture, written by torch on two ranks: CI has no torch."""
    folder = pathlib.Path(__file__).parents[1] / "fixtures" / "dcp"
    assert "CRC-32 of every piece" in ckpt("verify", folder / "folder").stderr
    ckpt("convert", folder / "folder", tmp_path / "m.safetensors")
    with safetensors.safe_open(tmp_path / "m.safetensors", "np") as got, np.load(folder / "want.npz") as want:
        assert set(got.keys()) == set(want)
        assert got.metadata()["step"] == "7"
        for name in set(want) - {"model.half"}:
            np.testing.assert_array_equal(got.get_tensor(name), want[name])


# PyTorch is too large for the environment of the suite: where it is installed, it is asked too.
if importlib.util.find_spec("torch"):

    def test_torch_writes_what_ckpt_reads(ckpt, tmp_path):
        torch = importlib.import_module("torch")
        base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
        value = {"model": {"base": torch.nn.Parameter(base), "t": base.T, "steps": base[::2, 1::2], "half": base.bfloat16()}, "epoch": 7}
        torch.save(value, tmp_path / "m.pt")
        ckpt("verify", tmp_path / "m.pt")
        ckpt("convert", tmp_path / "m.pt", tmp_path / "m.safetensors")
        got = pytest.importorskip("safetensors.torch").load_file(tmp_path / "m.safetensors")
        for name, want in value["model"].items():
            assert torch.equal(got["model." + name], want.detach())

    def test_torch_loads_what_ckpt_writes(ckpt, tmp_path):
        torch = importlib.import_module("torch")
        plain = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64", "complex128"]
        bare = ["uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"]
        want = {t: torch.arange(6).reshape(2, 3).to(getattr(torch, t)) for t in plain + bare}
        want |= {"scalar": torch.tensor(2.5), "empty": torch.zeros(0, 4)}
        torch.save(want, tmp_path / "a.pt")
        ckpt("convert", tmp_path / "a.pt", tmp_path / "b.pt")
        for mmap in [False, True]:
            got = torch.load(tmp_path / "b.pt", weights_only=True, mmap=mmap)
            assert set(got) == set(want)
            for name, value in want.items():
                assert got[name].dtype == value.dtype and got[name].shape == value.shape
                assert bytes(got[name].untyped_storage()) == bytes(value.untyped_storage()), name
        ckpt("diff", tmp_path / "a.pt", tmp_path / "b.pt")


def test_variable_names_are_those_of_keras(ckpt, model, tmp_path):
    from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

    prefix = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(str(tmp_path / "ck"))
    shown = {t["name"] for t in json.loads(ckpt("ls", "--json", "--names", "variable", prefix).stdout)}
    keys = {t["name"] for t in json.loads(ckpt("ls", "--json", prefix).stdout)}
    assert len(shown) == len(keys) and shown != keys
    reader = tf.train.load_checkpoint(prefix)
    names = {}
    for node in TrackableObjectGraph.FromString(reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")).nodes:
        for a in node.attributes:
            if a.full_name and a.checkpoint_key in keys:
                names.setdefault(a.full_name, set()).add(a.checkpoint_key)
    for name, of in names.items():
        if len(of) > 1:
            assert name not in shown
            continue
        assert name in shown
        printed = json.loads(ckpt("cat", "--json", prefix, name).stdout)
        np.testing.assert_allclose(printed, reader.get_tensor(next(iter(of))), rtol=1e-6)


def test_weights_of_keras_in_several_files(ckpt, tmp_path):
    keras.backend.clear_session()
    x = keras.Input((6, 8))
    y = keras.layers.MultiHeadAttention(2, 4)(x, x)
    y = keras.layers.Bidirectional(keras.layers.LSTM(8))(y)
    m = keras.Model(x, keras.layers.Dense(30)(y))
    m.compile("adam", "mse")
    m.optimizer.build(m.trainable_variables)
    m.save_weights(tmp_path / "one.weights.h5")
    m.save_weights(tmp_path / "several.weights.json", max_shard_size=0.000004)
    assert len(list(tmp_path.glob("several_*.weights.h5"))) > 2
    ckpt("verify", tmp_path / "several.weights.json")
    ckpt("diff", tmp_path / "several.weights.json", tmp_path / "one.weights.h5")
    ckpt("convert", "--like", tmp_path / "one.weights.h5", tmp_path / "several.weights.json", tmp_path / "again.weights.h5")
    want = bits(m)
    for v in m.weights:
        v.assign(keras.ops.zeros_like(v))
    m.load_weights(tmp_path / "again.weights.h5")
    assert bits(m) == want


def test_hdf5_that_grows(ckpt, tmp_path):
    h5py = pytest.importorskip("h5py")
    table = np.random.default_rng(3).normal(size=(37, 21)).astype("f4")
    with h5py.File(tmp_path / "f.h5", "w", libver="latest", userblock_size=1024) as f:
        for name, options in {
            "rows": {"maxshape": (None, 21), "chunks": (5, 7)},
            "columns": {"maxshape": (100, None), "chunks": (5, 7), "compression": "gzip"},
            "both": {"maxshape": (None, None), "chunks": (5, 7), "shuffle": True, "fletcher32": True},
            "limited": {"maxshape": (60, 60), "chunks": (5, 7)},
        }.items():
            f.create_dataset(name, data=table, **options)
        f.create_dataset("shrunk", data=table, maxshape=(None, 21), chunks=(5, 7)).resize((11, 21))
        paged = f.create_dataset("paged", shape=(400_000,), maxshape=(None,), chunks=(1,), dtype="u1")  # pages in data blocks
        paged[250_000:251_500], paged[399_990:] = np.arange(1500) % 251, 9
        f["type"] = np.dtype("f8")
        f.create_dataset("named", data=np.ones(3), dtype=f["type"])
        f["enum"] = np.array([3, 1], dtype=h5py.enum_dtype({"A": 1, "B": 3}, basetype="i2"))
        want = {name: f[name][()] for name in f if isinstance(f[name], h5py.Dataset)}
    ckpt("verify", tmp_path / "f.h5")
    ckpt("convert", tmp_path / "f.h5", tmp_path / "f.npz")
    with np.load(tmp_path / "f.npz") as got:
        assert set(got) == set(want)
        for name, value in want.items():
            assert got[name].shape == value.shape and got[name].tobytes() == value.tobytes(), name


def test_sums_next_to_a_file(ckpt, tmp_path):
    st_numpy.save_file({"w": np.ones(1000, np.float32)}, tmp_path / "m.safetensors")
    path = tmp_path / "m.safetensors"
    (tmp_path / "SHA256SUMS").write_text(subprocess.run(["sha256sum", path.name], cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
    assert "SHA-256 of 1 of 1 files by SHA256SUMS" in ckpt("verify", path).stderr
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert "SHA-256 checksum mismatch" in ckpt("verify", path, code=3).stdout


def test_what_is_no_tensor_hinders_no_other(ckpt, tmp_path):
    good = np.arange(6, dtype=">f4").reshape(2, 3)
    for name, bad in {
        "record": np.zeros(2, [("a", "f4"), ("b", "i2")]), "object": np.array([None, 1], dtype=object),
        "date": np.array(["2020-01-01"], "M8[D]"), "long": np.ones(2, np.longdouble),
    }.items():
        np.savez_compressed(tmp_path / f"{name}.npz", good=np.asfortranarray(good), bad=bad)
        assert "bad\t" in ckpt("verify", tmp_path / f"{name}.npz", code=1).stdout
        assert "not supported" in ckpt("ls", tmp_path / f"{name}.npz", code=1).stdout
        ckpt("convert", "--salvage", tmp_path / f"{name}.npz", tmp_path / f"{name}.safetensors", code=3)
        assert st_numpy.load_file(tmp_path / f"{name}.safetensors")["good"].tobytes() == good.astype("<f4").tobytes()
