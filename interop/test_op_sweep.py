"""Ops that compute element by element give what TensorFlow gives: zeros, infinities, NaN, the ends of each type.

Ordinary numbers of 16 bits, which are rounded at every step, agree to the last bit.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

HERE = pathlib.Path(__file__).parent

# Ops and types whose results differ somewhere, and why.
SERIES = "series that TensorFlow ends early, and numbers so small that it takes them for zero"
OTHERS = {
    ("Erf", "float64"): "TensorFlow has NaN at infinity",
    ("SigmoidGrad", "float32"): "TensorFlow overflows for outputs that no sigmoid has",
    **{(op, dtype): SERIES for op in ("Erfinv", "Igamma", "Igammac", "IgammaGradA", "Zeta", "Polygamma") for dtype in ("float32", "float64")},
    **{("Expm1", dtype): "TensorFlow has NaN where the exponential is infinite" for dtype in ("complex64", "complex128")},
    **{("Log1p", dtype): "TensorFlow has NaN for the angle of zero" for dtype in ("complex64", "complex128")},
    ("Pow", "complex64"): "TensorFlow has the angles of large powers in single precision",
    **{("Betainc", dtype): "TensorFlow has a number for parameters that are not finite" for dtype in ("float32", "float64")},
    **{(op, dtype): "TensorFlow's sums depend on the processor" for op in ("Softmax", "LogSoftmax") for dtype in ("float16", "bfloat16")},
}

TOLERANCES = {"float32": 1e-4, "complex64": 1e-4, "float64": 1e-10, "complex128": 1e-10, "float16": 0, "bfloat16": 0}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """The folders of what TensorFlow gave and of what the embedded runtime did, and its words on each graph."""
    go = shutil.which("go")
    if not go:
        pytest.skip("no go here to build the program that runs graphs")
    recorded, replayed = (tmp_path_factory.mktemp(name) for name in ("swept", "again"))
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
    subprocess.run([sys.executable, "-m", "graphs.sweep", recorded], check=True, cwd=HERE, env=env)
    tool = tmp_path_factory.mktemp("replay") / "replay"
    subprocess.run([go, "build", "-o", tool, "./interop/replay"], check=True, cwd=HERE.parent)
    done = subprocess.run([tool, replayed, *sorted(recorded.iterdir())], check=True, capture_output=True, text=True, timeout=240)
    return recorded, replayed, [json.loads(line) for line in done.stdout.splitlines()]


@np.errstate(all="ignore")
def differences(got, want):
    """How many elements differ, and the first that does."""
    assert got.dtype == want.dtype
    if got.shape != want.shape:
        return f"the shape {got.shape} for {want.shape}"
    if got.dtype.kind not in "fcV":
        wrong = got != want
    else:
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        name = tf.as_dtype(want.dtype).name
        least = 0 if name == "float16" else 1.2e-38  # what is less is zero to TensorFlow's threads
        wrong = ~np.isclose(got.astype(wide), want.astype(wide), TOLERANCES[name], least, equal_nan=True)
    if not wrong.any():
        return None
    first = np.argwhere(wrong)[0]
    return f"{wrong.sum()} of {wrong.size}, the first at {first}: {got[tuple(first)]} for {want[tuple(first)]}"


def test_elements(swept):
    recorded, replayed, outcomes = swept
    ran, found = 0, {}
    for outcome in outcomes:
        name = outcome["program"]
        if outcome.get("code") == "UNIMPLEMENTED":  # doc/ops.md has the types without kernels
            continue
        assert "error" not in outcome, f"{name}: {outcome['error']}"
        got, want = (tf.train.load_checkpoint(str(p)) for p in (replayed / name, recorded / name / "record"))
        ran += 1
        for key in got.get_variable_to_shape_map():
            if text := differences(got.get_tensor(key), want.get_tensor(key)):
                found[name] = text
    assert ran > 600, "most ops and types have kernels"
    named = {tuple(name.split(".")[:2]) for name in found}
    unexplained = [f"{name}: {text}" for name, text in found.items() if tuple(name.split(".")[:2]) not in OTHERS]
    assert not unexplained, "\n".join(unexplained)
    assert set(OTHERS) - named == set(), "these do not differ: take them out of OTHERS"
