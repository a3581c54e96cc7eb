"""Values of forms that a page does not expect: what both loaders make of them, and that `tfevents check` says so."""

import json
import os

import numpy as np
import pytest
import tensorflow as tf
from harness import commands as cmd
from harness import tensorboard as tb
from harness import writing
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.compat.proto import event_pb2
from tensorboard.util import tensor_util

PAGES = {"images": "images/images", "audio": "audio/audio", "histograms": "histograms/histograms", "text": "text/text", "scalars": "scalars/scalars"}  # fmt: skip


def strings(*shape, text=b"x"):
    return np.full(shape, text, dtype=object)


# Those that are shown by both loaders have no word for what `tfevents check` says.
FORMS = {
    "histogram": ("histograms", np.zeros((2, 3)), None),
    "flat": ("histograms", np.zeros(3), "no rows of three numbers"),
    "row": ("images", strings(1, 3), "not lists of width, height and images"),
    "numbers": ("images", np.zeros(3, np.float32), "not lists of width, height and images"),
    "labelled": ("audio", strings(1, 2), None),
    "clip": ("audio", strings(1), None),
    "float clip": ("audio", np.zeros((1, 2), np.float32), "not lists of clips"),
    "silence": ("audio", strings(0, 2), "hold no clip"),
    "text": ("text", strings(2, 2), None),
    "number": ("text", np.float32(1), "are not texts"),
    "latin-1": ("text", strings(text=b"\xff"), "not UTF-8"),
    "scalar": ("scalars", np.float32(1), None),
    "double": ("scalars", np.float64(1), "not single float32 values"),
    "pair": ("scalars", np.zeros(2, np.float32), "not single numbers"),
}


def write(directory, plugin, value, content=b""):
    event = event_pb2.Event(wall_time=1.7e9, step=1)
    made = event.summary.value.add(tag="t")
    made.metadata.plugin_data.plugin_name = plugin
    made.metadata.plugin_data.content = content
    made.tensor.CopyFrom(tensor_util.make_tensor_proto(value))
    writing.write(directory / "events.out.tfevents.1700000000.h", [event])


def findings(commands, logdir):
    result = commands.run("tfevents", "check", "--json", logdir)
    cmd.assert_no_crash(result)
    return {f["run"]: f["problem"] for f in json.loads(result.out)}


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    logdir = tmp_path_factory.mktemp("forms")
    for name, (plugin, value, _) in FORMS.items():
        write(logdir / name, plugin, value)
    return logdir


def test_check_names_them(commands, forms):
    found = findings(commands, forms)
    assert set(found) == {name for name, (_, _, words) in FORMS.items() if words}
    for name, problem in found.items():
        assert FORMS[name][2] in problem, name


@pytest.mark.parametrize("loader", tb.LOADERS)
def test_the_points_are_those_that_the_loader_has(commands, forms, loader):
    """A page lists a tag if its loader has points of it; so do we."""
    result = cmd.assert_success(commands.run("tfevents", "ls", "--json", "--purge", loader, forms))
    ours = {(run["run"], t["plugin"]) for run in json.loads(result.out) for t in run["tags"]}
    with tb.TensorBoard(forms, loader) as board:
        theirs = {(run, plugin) for plugin in PAGES for run, tags in board.json(f"plugin/{plugin}/tags").items() if tags}
        failing = {name for name, (plugin, _, _) in FORMS.items() if (name, plugin) in theirs and not answers(board, plugin, name)}
    assert ours == theirs
    assert failing <= {name for name, (_, _, words) in FORMS.items() if words}


def answers(board, plugin, run):
    try:
        board.json(f"plugin/{PAGES[plugin]}", run=run, tag="t", **({"sample": 0} if plugin in ("images", "audio") else {}))
    except AssertionError:
        return False
    return True


def test_foreign_plugin_data_breaks_the_page_for_all_runs(commands, tmp_path):
    write(tmp_path / "good", "scalars", np.float32(1))
    with tb.TensorBoard(tmp_path) as board:
        assert board.scalar_tags() == {"good": {"t"}}
    write(tmp_path / "bad", "scalars", np.float32(1), content=b"\xff")
    with tb.TensorBoard(tmp_path) as board, pytest.raises(AssertionError, match="HTTP 500"):
        board.scalar_tags()
    assert "the whole page fails, for all runs" in findings(commands, tmp_path)["bad"]


@pytest.mark.parametrize("name", ["bad/tfevents", b"caf\xe9", "bad/up"])
def test_directories_that_mislead_the_python_loader(commands, tmp_path, name):
    """The loader with TensorFlow ends its walk at such a name, or walks in circles."""
    write(tmp_path / "bad", "scalars", np.float32(1))
    write(tmp_path / "good", "scalars", np.float32(1))
    assert loaded(tmp_path) == {"bad", "good"}
    path = os.path.join(os.fsencode(tmp_path), os.fsencode(name))
    if name == "bad/up":
        os.symlink("..", path)
    else:
        os.mkdir(path)
    if name == "bad/tfevents":  # an empty one does no harm
        assert loaded(tmp_path) == {"bad", "good"}
        assert commands.run("tfevents", "check", tmp_path).code == 0
        write(tmp_path / name / "run", "scalars", np.float32(1))
        (tmp_path / name / "run" / "events.out.tfevents.1700000000.h").rename(tmp_path / name / "events.out.tfevents.1700000000.h")
    assert loaded(tmp_path) != {"bad", "good"}
    result = commands.run("tfevents", "check", tmp_path)
    assert result.code == 4 and "the Python loader" in result.out


def loaded(logdir):
    """The runs that have scalars, "" if loading them fails."""
    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    try:
        multiplexer.AddRunsFromDirectory(str(logdir))
        multiplexer.Reload()
    except (tf.errors.OpError, UnicodeDecodeError):
        return ""
    return set(multiplexer.Runs())


@pytest.mark.parametrize("loader", tb.LOADERS)
def test_metadata_that_come_late(commands, tmp_path, loader):
    """The data server asks the first value of a tag what it shows; after a merge that value says it."""
    run, name = tmp_path / "run", "events.out.tfevents.1700000000.h"
    write(run, "scalars", np.float32(2))
    os.rename(run / name, run / "events.out.tfevents.1700000100.h")
    event = event_pb2.Event(wall_time=1.7e9, step=0)
    event.summary.value.add(tag="t").tensor.CopyFrom(tensor_util.make_tensor_proto(np.float32(1)))
    writing.write(run / name, [event])
    (tmp_path / "merged").mkdir()
    cmd.assert_success(commands.run("tfevents", "merge", run, tmp_path / "merged" / name))
    with tb.TensorBoard(tmp_path, loader) as board:
        assert ("run" in board.scalar_tags()) == (loader == "python")
        assert [step for step, *_ in board.scalars("merged", "t")] == [0, 1]
