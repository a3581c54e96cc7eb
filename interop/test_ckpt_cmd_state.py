"""`ckpt state` and `ckpt latest` see in a `checkpoint` file what TensorFlow sees.

The exit code is 0, 5 where TensorFlow finds no checkpoint, and 3 where it raises.
"""

import json
import random
import subprocess

import pytest
from google.protobuf import json_format
from tensorflow.python.checkpoint import checkpoint_management

TEXTS = {
    "missing": None, "empty": b"", "blank": b"\n \n", "comment": b"# hi\n", "plain": b'model_checkpoint_path: "m-1"\n', "not UTF-8": b'model_checkpoint_path: "\xff"\n',
    "comment not UTF-8": b'# \xff\nmodel_checkpoint_path: "m"\n', "escape not UTF-8": b'model_checkpoint_path: "\\377"\n', "zero": b'model_checkpoint_path: "a\\000b"\n',
    "mark": b'\xef\xbb\xbfmodel_checkpoint_path: "m"\n', "binary": b"\x0a\x03m-1", "unknown": b'model_checkpoint_path: "m"\nfoo: 1\n', "no path": b'model_checkpoint_path: ""\n',
    "only all": b'all_model_checkpoint_paths: "m"\n', "huge": b'model_checkpoint_path: "m"\nall_model_checkpoint_timestamps: 1e400\nlast_preserved_timestamp: nan\n',
    "absolute": b'model_checkpoint_path: "/x/m"\n', "dots": b'model_checkpoint_path: "../x/m"\nall_model_checkpoint_paths: "./m"\n', "number": b"model_checkpoint_path: 5\n",
    "twice": b'model_checkpoint_path: "a"\nmodel_checkpoint_path: "b"\n', "semicolons": b'model_checkpoint_path: "a";;\n', "list": b'all_model_checkpoint_paths: ["a","b"] model_checkpoint_path: "b"',
    "trailing comma": b'all_model_checkpoint_paths: ["a",] model_checkpoint_path: "b"', "empty list": b'all_model_checkpoint_paths: [] model_checkpoint_path: "b"',
    "separators": 'model_checkpoint_path:\u00a0"a\u2028b\u0085"\x1c\x0c\n'.encode(), "grouped": b'model_checkpoint_path: "a"\nlast_preserved_timestamp: 1_0\n',
    "minus zero": b'model_checkpoint_path: "a" last_preserved_timestamp: -0', "hexadecimal": b'model_checkpoint_path: "a"\nlast_preserved_timestamp: 0x1p3\n',
    "quotes": b"model_checkpoint_path: 'a\"b'", "side by side": b"model_checkpoint_path: \"a\" 'b'\n\"c\"", "unicode": b'model_checkpoint_path: "\\u00e9\\U0001F680"',
    "surrogates": b'model_checkpoint_path: "\\ud83d\\ude80"', "lone surrogate": b'model_checkpoint_path: "\\ud83d"', "octal": b'model_checkpoint_path: "\\1012"',
    "by number": b'1: "a"', "open": b'model_checkpoint_path: "a\nb"', "braces": b'model_checkpoint_path: "a"\n}', "home": b'model_checkpoint_path: "~/a"',
}  # fmt: skip
PIECES = [b'"', b"'", b"\\", b"#", b",", b";", b":", b"[", b"]", b"0", b"1.5", b"nan", b"\\x4", b"\xc2\x85", b"\xe2\x80\xa8", b"\x1d", b"\r\n"]


def edited(seed):
    """A file of the list after a few careless edits."""
    rng = random.Random(seed)
    text = bytearray(rng.choice([t for t in TEXTS.values() if t]))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(3):
            case 0:
                text[at : at + 1] = bytes([rng.choice(b"\"'\\\n#:;,[]{}<> 0x1.-+eE_uU\xff\xc3\xa9\x00\x85")])
            case 1:
                text[at:at] = rng.choice(PIECES)
            case 2:
                del text[at : at + 1]
    return bytes(text)


def theirs(dir):
    try:
        state = checkpoint_management.get_checkpoint_state(str(dir))
    except (ValueError, UnicodeDecodeError):
        return 3, None
    return (5, None) if state is None else (0, state)


def numbers(value):
    return [numbers(v) for v in value] if isinstance(value, list) else value if isinstance(value, str) else float(value)


def as_json(state):
    out = {"all_model_checkpoint_paths": []} | json_format.MessageToDict(state, preserving_proto_field_name=True)
    return {k: numbers(v) for k, v in out.items()}


@pytest.mark.parametrize("texts", [TEXTS, {f"edited {i}": edited(i) for i in range(150)}], ids=["chosen", "random"])
def test_state(bin_dir, tmp_path, texts):
    for name, text in texts.items():
        dir = tmp_path / name.replace(" ", "-")
        dir.mkdir()
        if text is not None:
            (dir / "checkpoint").write_bytes(text)
        code, state = theirs(dir)
        done = subprocess.run([bin_dir / "ckpt", "state", "--json", dir], capture_output=True, timeout=20)
        assert done.returncode == code, (name, text, done)
        if state is not None:
            assert {k: numbers(v) for k, v in json.loads(done.stdout).items()} == as_json(state), (name, text)
            code = 5  # for there are no files
        latest = subprocess.run([bin_dir / "ckpt", "latest", dir], capture_output=True, timeout=20)
        assert latest.returncode == code, (name, text, latest)
