"""Indexes with correct checksums and wrong content: `ckpt verify` reports what TensorFlow refuses, and the rest is readable."""

import json
import struct

import numpy as np
import pytest
import tensorflow as tf


def crc32c_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


TABLE = crc32c_table()


def masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def block(body, restarts):
    content = body + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts)) + b"\0"
    return content + struct.pack("<I", masked(content))


def entry(key, value):
    return varint(0) + varint(len(key)) + varint(len(value)) + key + value


def write(prefix, blocks, index_keys=None, data=b""):
    """A bundle of blocks, each a list of pairs and, unless it is None, its restarts."""
    file, handles = b"", []
    for pairs, restarts in blocks:
        body, starts = b"", []
        for pair in pairs:
            starts.append(len(body))
            body += entry(*pair)
        raw = block(body, starts[:1] if restarts is None else restarts(starts, len(body)))
        handles.append(varint(len(file)) + varint(len(raw) - 5))
        file += raw
    keys = index_keys or [pairs[-1][0] for pairs, _ in blocks]
    index = b"".join(entry(k, h) for k, h in zip(keys, handles))
    starts = np.cumsum([0] + [len(entry(k, h)) for k, h in zip(keys, handles)])[:-1].tolist()
    at, raw = len(file), block(index, starts)
    footer = b"\0\0" + varint(at) + varint(len(raw) - 5)
    prefix.with_suffix(".index").write_bytes(file + raw + footer.ljust(40, b"\0") + bytes.fromhex("57fb808b247547db"))
    prefix.with_suffix(".data-00000-of-00001").write_bytes(data)


HEADER = (b"", b"\x08\x01\x1a\x02\x08\x01")
ONE = struct.pack("<f", 1.0)


def scalar(i, size=4, shard=0):
    """The entry of the i-th float32 in the data."""
    e = b"\x08\x01\x12\x00" + (b"\x18" + varint(shard) if shard else b"") + (b"\x20" + varint(4 * i) if i else b"")
    return e + b"\x28" + varint(size) + b"\x35" + struct.pack("<I", masked(ONE))


PAIRS = [HEADER] + [(bytes([97 + i]), scalar(i)) for i in range(4)]


def tensorflow_reads(prefix):
    """The names that TensorFlow lists and reads, None where it cannot open the checkpoint."""
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        names = sorted(reader.get_variable_to_shape_map())
    except (tf.errors.OpError, ValueError):
        return None
    read = []
    for name in names:
        try:
            reader.get_tensor(name)
            read.append(name)
        except (tf.errors.OpError, ValueError, RuntimeError):
            pass
    return read


RESTARTS = {
    "good": lambda starts, end: starts[:1],
    "many": lambda starts, end: starts,
    "twice": lambda starts, end: [0, 0, starts[2]],
    "none": lambda starts, end: [],
    "first is the second": lambda starts, end: starts[1:2],
    "within an entry": lambda starts, end: [0, starts[2] + 1],
    "after the entries": lambda starts, end: [0, end],
    "past the block": lambda starts, end: [0, end + 9],
}


@pytest.mark.parametrize("kind", RESTARTS)
def test_restarts(ckpt, tmp_path, kind):
    write(tmp_path / "m", [(PAIRS, RESTARTS[kind])], data=ONE * 4)
    done = ckpt("verify", tmp_path / "m", code=None)
    if tensorflow_reads(tmp_path / "m") == ["a", "b", "c", "d"]:
        assert done.returncode == 0, done
    else:
        assert done.returncode == 3 and "all intact" not in done.stderr, done
        assert str(tmp_path / "m.index") in done.stdout + done.stderr


@pytest.mark.parametrize("keys", [[b"b", b"d"], [b"a", b"d"], [b"c", b"d"], [b"d", b"d\0"], [b"b", b"c"]])
def test_index_keys(ckpt, tmp_path, keys):
    """A key of the index block that does not separate two data blocks hides tensors from TensorFlow."""
    write(tmp_path / "m", [(PAIRS[:3], None), (PAIRS[3:], None)], keys, data=ONE * 4)
    whole = tensorflow_reads(tmp_path / "m") == ["a", "b", "c", "d"]
    assert whole == (keys in ([b"b", b"d"], [b"c", b"d"]))
    ckpt("verify", tmp_path / "m", code=0 if whole else 3)


@pytest.mark.parametrize("bad", [scalar(1, size=5), scalar(1, shard=3)])
def test_one_bad_entry(ckpt, tmp_path, bad):
    """TensorFlow lists them all and reads the others, and so do ls, stat, diff and cp."""
    write(tmp_path / "good", [(PAIRS, None)], data=ONE * 4)
    write(tmp_path / "m", [([(k, bad if k == b"b" else v) for k, v in PAIRS], None)], data=ONE * 4)
    assert tensorflow_reads(tmp_path / "m") == ["a", "c", "d"]
    listed = json.loads(ckpt("ls", "--json", tmp_path / "m", code=3).stdout)
    assert [x["name"] for x in listed] == [n for n, _ in tf.train.list_variables(str(tmp_path / "m"))]
    assert [x["name"] for x in listed if "error" in x] == ["b"]
    assert [x["name"] for x in json.loads(ckpt("stat", "--json", tmp_path / "m", code=3).stdout)] == ["a", "c", "d"]
    assert [(x["name"], x["kind"]) for x in json.loads(ckpt("diff", "--json", tmp_path / "m", tmp_path / "good", code=3).stdout)] == [("b", "damaged")]
    ckpt("cp", tmp_path / "m", tmp_path / "x", code=3)
    ckpt("cp", tmp_path / "m", tmp_path / "x", "--exclude", "^b$")
    ckpt("cp", tmp_path / "m", tmp_path / "y", "--salvage", code=3)
    for copy in ("x", "y"):
        assert tensorflow_reads(tmp_path / copy) == ["a", "c", "d"]


def test_missing_part(ckpt, tmp_path):
    """Of a tensor whose part is not in the index TensorFlow reads nothing, and it is not copied."""
    table = tf.reshape(tf.range(8.0), [4, 2])
    for name, specs in {"m": ["4 2 0,2:-", "4 2 2,2:-"], "part": ["4 2 0,2:-"]}.items():
        tf.raw_ops.SaveV2(prefix=str(tmp_path / name), tensor_names=["t"] * len(specs), shape_and_slices=specs, tensors=[table[:2], table[2:]][: len(specs)])
    assert tensorflow_reads(tmp_path / "m") == ["t"] and tensorflow_reads(tmp_path / "part") == []
    ckpt("cp", tmp_path / "m", tmp_path / "copy")
    done = ckpt("cp", tmp_path / "part", tmp_path / "x", code=3)
    assert "missing: 2,2:0,2" in done.stderr
    assert "all intact" not in ckpt("verify", tmp_path / "part", code=3).stderr
    for args in (["convert", tmp_path / "part", tmp_path / "x.npz"], ["merge", tmp_path / "part", tmp_path / "x"]):
        ckpt(*args, code=3)


def test_merge_of_parts(ckpt, tmp_path):
    table = tf.reshape(tf.range(8.0), [4, 2])
    for name, spec, value in (("p", "4 2 0,2:-", table[:2]), ("q", "4 2 2,2:-", table[2:])):
        tf.raw_ops.SaveV2(prefix=str(tmp_path / name), tensor_names=["t"], shape_and_slices=[spec], tensors=[value])
    ckpt("merge", tmp_path / "p", tmp_path / "q", tmp_path / "m")
    assert tensorflow_reads(tmp_path / "m") == ["t"]


def test_cp_has_the_same_bytes(ckpt, tmp_path):
    """With several shards, and with an index that TensorFlow compressed long ago."""
    for i in range(3):
        tf.raw_ops.SaveV2(prefix=str(tmp_path / f"p{i}"), tensor_names=[f"t{i}"], shape_and_slices=[""], tensors=[tf.range(i, i + 4)])
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[str(tmp_path / f"p{i}") for i in range(3)], destination_prefix=str(tmp_path / "m"))
    ckpt("cp", tmp_path / "m", tmp_path / "copy")
    files = [".index"] + [f".data-0000{i}-of-00003" for i in range(3)]
    for suffix in files:
        assert (tmp_path / f"copy{suffix}").read_bytes() == (tmp_path / f"m{suffix}").read_bytes()
    assert tensorflow_reads(tmp_path / "copy") == ["t0", "t1", "t2"]
