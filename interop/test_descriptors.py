"""The committed tables and golden messages of fixtures/proto are what the installed TensorFlow gives.

A Go test compares the project's .proto files with the table; this one compares the table with TensorFlow.
Together they show when the two drift apart.
"""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import pytest

tf = pytest.importorskip("tensorflow")

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "proto"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FIXTURES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def committed():
    return json.loads((FIXTURES / "tensorflow-2.21.0.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def installed():
    return load("make_descriptors").make_table()


@pytest.mark.parametrize("part", ["files", "files_from_library", "messages", "enums"])
def test_table_is_current(committed, installed, part):
    # Through JSON, so that both sides have the same types.
    assert json.loads(json.dumps(installed[part])) == committed[part]


def test_table_file_is_as_generated(installed):
    text = (FIXTURES / "tensorflow-2.21.0.json").read_text(encoding="utf-8")
    assert load("make_descriptors").encode(installed) == text


def header_field_numbers():
    """Returns {message: {field in camel case: number}} as master.pb.h declares them."""
    header = pathlib.Path(tf.sysconfig.get_include()) / "tensorflow" / "core" / "protobuf" / "master.pb.h"
    numbers, current = {}, None
    for line in header.read_text(encoding="utf-8").splitlines():
        if m := re.match(r"class PROTOBUF_EXPORT (\w+) final", line):
            current = numbers.setdefault(m[1], {})
        elif m := re.match(r"\s*k(\w+)FieldNumber = (\d+),", line):
            current[m[1]] = int(m[2])
    return numbers


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def test_master_agrees_with_the_header(committed):
    """master.proto has no Python module: its constants in C++ are a second witness."""
    header = header_field_numbers()
    assert "RunStepRequest" in header
    for name, fields in header.items():
        table = committed["messages"][f"tensorflow.{name}"]["fields"]
        assert {camel(f["name"]): f["number"] for f in table} == fields, name


def test_golden_messages_are_current(tmp_path):
    # In a process of its own: it builds graphs, whose names depend on what was built before.
    subprocess.run([sys.executable, str(FIXTURES / "make_text_golden.py"), str(tmp_path)], check=True)
    made = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    kept = {p.name: p.read_bytes() for p in (FIXTURES / "text").iterdir()}
    assert sorted(made) == sorted(kept)
    for name, data in made.items():
        assert data == kept[name], name
