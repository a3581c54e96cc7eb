"""Programs of many kinds train on the embedded runtime as in TensorFlow.

Every fetch of every step is compared, and every variable before and after; also where attributes that have the op's
default are not in the graph. LACKING lists the programs whose kernels are missing.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from graphs import recorder
from graphs.programs import PROGRAMS

HERE = pathlib.Path(__file__).parent

# What the embedded runtime lacks: by program, the ops without a kernel, those without one for a type with the type.
# A program that gains its kernels fails here until its line goes.
LACKING = {}


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """The folder of the programs as TensorFlow ran them. One that it did not end has another try, as its own schedulers
    may wait for each other; one that it cannot run at all is missing here."""
    folder = tmp_path_factory.mktemp("recorded")
    tries = dict.fromkeys(PROGRAMS, 2)
    while names := [n for n in PROGRAMS if tries[n] and not (folder / n / "program.json").exists()]:
        done = subprocess.run([sys.executable, "-m", "graphs", folder, *names], cwd=HERE, capture_output=True, text=True)
        if done.returncode == 0:
            break
        failed = re.findall(r"^recording (\w+)$", done.stderr, re.MULTILINE)[-1:]
        assert failed, done.stderr
        print(done.stderr)
        tries[failed[0]] -= 1
        shutil.rmtree(folder / failed[0], ignore_errors=True)
    return folder


@pytest.fixture(scope="session")
def replayed(recorded, tmp_path_factory):
    """The folder of the bundles that the embedded runtime wrote, and its words on each program."""
    go = shutil.which("go")
    if not go:
        pytest.skip("no go here to build the program that runs graphs")
    folder = tmp_path_factory.mktemp("replayed")
    tool = tmp_path_factory.mktemp("replay") / "replay"
    subprocess.run([go, "build", "-o", tool, "./interop/replay"], check=True, cwd=HERE.parent)
    programs = sorted(recorded.iterdir())
    done = subprocess.run([tool, folder, *programs], check=True, capture_output=True, text=True, timeout=240)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    return folder, {o["program"]: o for o in outcomes}


def lacking_ops(message):
    """The ops in an error that says which kernels are lacking."""
    assert "lacks the kernels of: " in message, message
    listed = message.split("lacks the kernels of: ")[1]
    return set(re.findall(r"\((\w+(?:: no kernel for \w+=\w+)?)\)", listed))


def compare(key, got, want, rtol, atol):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype.kind == want.dtype.kind and got.shape == want.shape, key
    if want.dtype.kind in "fcV":
        np.testing.assert_allclose(got.astype(np.complex128), want.astype(np.complex128), rtol, atol, err_msg=key)
        return
    np.testing.assert_array_equal(got, want, err_msg=key)


def parts_of(summary):
    """A summary as a list that may be compared: pictures by their pixels, numbers apart from the rest."""
    out = []
    for value in tf.compat.v1.Summary.FromString(summary).value:
        if value.HasField("image"):
            pixels = tf.io.decode_png(value.image.encoded_image_string).numpy()
            value.image.ClearField("encoded_image_string")
            out.append((value.SerializeToString(deterministic=True), pixels.astype(float)))
        elif value.WhichOneof("value") == "simple_value":
            number = value.simple_value
            value.ClearField("simple_value")
            out.append((value.SerializeToString(deterministic=True), np.float64(number)))
        else:
            out.append((value.SerializeToString(deterministic=True), np.float64(0)))
    return out


def test_lacking_names_programs():
    assert set(LACKING) <= set(PROGRAMS)


def test_list_of_ops_is_current(recorded):
    """doc/ops.md goes by it."""
    if {path.name for path in recorded.iterdir()} == PROGRAMS.keys():
        assert recorder.OPS.read_text() == recorder.ops(recorded), "record all programs: python -m graphs DIR"


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, recorded, replayed):
    assert (recorded / name).exists(), f"TensorFlow did not run {name}: see what its setup printed"
    outcome = replayed[1][name]
    want_folder, got_bundle = recorded / name, replayed[0] / name
    if name in LACKING:
        assert outcome.get("code") == "UNIMPLEMENTED", f"{name} is in LACKING, but: {outcome}"
        assert lacking_ops(outcome["error"]) == LACKING[name]
        return
    assert "error" not in outcome, outcome["error"]
    manifest = json.loads((want_folder / "program.json").read_text())
    got, want = (tf.train.load_checkpoint(str(p)) for p in (got_bundle, want_folder / "record"))
    keys = {k for k in want.get_variable_to_shape_map() if not k.startswith("feeds/")}
    assert set(got.get_variable_to_shape_map()) == keys
    for key in sorted(keys):
        a, b = got.get_tensor(key), want.get_tensor(key)
        if not key.endswith("/summary"):
            compare(f"{name}: {key}", a, b, manifest["rtol"], manifest["atol"])
            continue
        for (text_a, number_a), (text_b, number_b) in zip(parts_of(a), parts_of(b), strict=True):
            assert text_a == text_b, key
            np.testing.assert_allclose(number_a, number_b, manifest["rtol"], manifest["atol"], err_msg=key)
