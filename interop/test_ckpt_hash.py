"""`ckpt hash` is what doc/formats/hash.md says, computed here from what the libraries read."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

keras = pytest.importorskip("keras")
DOC = Path(__file__).parent.parent / "doc/formats/hash.md"


def test_hash_is_the_documented_one(ckpt, tmp_path):
    scope = {}
    exec("import hashlib, struct\n" + re.search(r"```python\n(.*?)```", DOC.read_text(), re.S)[1], scope)
    safe = pytest.importorskip("safetensors.numpy")
    rng = np.random.default_rng(1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.BatchNormalization(), keras.layers.Dense(2, dtype="float16")])
    model.compile("adam", "mse")
    model.fit(rng.normal(size=(4, 3)).astype("f4"), np.ones((4, 2)), verbose=0)
    prefix = tf.train.Checkpoint(model, extra=tf.Variable(rng.normal(size=(2, 0, 3))), flag=tf.Variable([True, False])).write(str(tmp_path / "c"))
    reader = tf.train.load_checkpoint(prefix)
    arrays = {n: np.asarray(reader.get_tensor(n)) for n in reader.get_variable_to_shape_map() if n != "_CHECKPOINTABLE_OBJECT_GRAPH"}
    want = scope["total"](arrays)
    safe.save_file(arrays, tmp_path / "m.safetensors", metadata={"made": "elsewhere"})
    np.savez_compressed(tmp_path / "m.npz", **arrays)
    ckpt("cp", "--shards", 3, prefix, tmp_path / "shards")
    ckpt("cp", "--v1", prefix, tmp_path / "v1")
    ckpt("convert", prefix, tmp_path / "ours.safetensors")
    for name in ["c", "m.safetensors", "m.npz", "shards", "v1", "ours.safetensors"]:
        assert ckpt("hash", "--total", tmp_path / name).stdout.strip() == want, name
    each = {t["name"]: t["hash"] for t in json.loads(ckpt("hash", "--json", prefix).stdout)["tensors"]}
    assert each == {n: scope["tensor_hash"](a).hex() for n, a in arrays.items()}
    changed = dict(arrays, extra=arrays["flag/.ATTRIBUTES/VARIABLE_VALUE"])
    safe.save_file(changed, tmp_path / "other.safetensors")
    assert ckpt("hash", "--total", tmp_path / "other.safetensors").stdout.strip() != want
