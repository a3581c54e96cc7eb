"""Package tfevents and the command of that name against real TensorBoard: every kind of value, and resumed runs."""

import base64
import json
import math
import os
import random
import time

import numpy as np
import pytest
from harness import commands as cmd
from harness import tensorboard as tb
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util import tensor_util

RUNS = 25


def random_run(directory, rng):
    """Events files as trainings leave them that were killed and resumed, with and without the marks that tell."""
    directory.mkdir(parents=True)
    tags = ["loss", "acc", "a/b"][: rng.randint(1, 3)]
    wall, step = 1700000000.0, 0
    for number in range(rng.randint(1, 5)):
        with open(directory / f"events.out.tfevents.{1700000000 + number}.h", "wb") as file:
            writer = RecordWriter(file)

            def write(**fields):
                nonlocal wall
                wall += 1
                writer.write(event_pb2.Event(wall_time=wall, **fields).SerializeToString())

            version = rng.choice(["brain.Event:2"] * 6 + ["brain.Event:1", None, "foo"])
            if version:
                write(file_version=version)
            step = max(0, step - rng.randint(0, 8)) if number else 0
            if rng.random() < 0.6:
                write(step=step + rng.choice([0, 0, 1]), session_log=event_pb2.SessionLog(status=1))
            for _ in range(rng.randint(0, 15)):
                step = max(0, step + (rng.choice([1, 1, 1, 0, 2]) if rng.random() < 0.95 else -2))
                if rng.random() < 0.05:
                    log = event_pb2.SessionLog(status=rng.choice([1, 2, 3]))
                    write(step=rng.randint(0, step), session_log=log)
                write(step=step, summary=random_summary(tags, rng))


def random_summary(tags, rng):
    summary = summary_pb2.Summary()
    for tag in tags:
        kind = rng.random()
        if kind < 0.3:
            continue
        value = summary.value.add(tag=tag)
        if kind < 0.8:
            value.simple_value = rng.choice([rng.random(), rng.random(), float("nan"), float("inf")])
        else:
            dtype = np.float32 if kind < 0.95 else np.float64  # the data server does not show the latter
            value.tensor.CopyFrom(tensor_util.make_tensor_proto(dtype(rng.random())))
            value.metadata.plugin_data.plugin_name = "scalars"
    return summary


@pytest.fixture(scope="module")
def resumed(tmp_path_factory):
    seed = int(os.environ.get("INTEROP_SEED") or time.time())
    print(f"INTEROP_SEED={seed}")
    logdir = tmp_path_factory.mktemp("resumed")
    rng = random.Random(seed)
    for number in range(RUNS):
        random_run(logdir / f"run{number:02}", rng)
    return logdir


def points(series):
    """Points that can be compared: NaN equals itself, and all values are float32."""
    rows = [(step, wall, float(np.float32(value))) for step, value, wall in series]
    return [(step, wall, "NaN" if math.isnan(value) else value) for step, wall, value in rows]


def exported(commands, logdir, *flags):
    """{(run, tag): points} as `tfevents export` prints them."""
    result = cmd.assert_success(commands.run("tfevents", "export", logdir, "--format", "json", *flags))
    series = {}
    for p in json.loads(result.out):
        series.setdefault((p["run"], p["tag"]), []).append((p["step"], float(p["value"]), p["wall_time"]))
    return {key: points(rows) for key, rows in series.items()}


def served(board):
    return {
        (run, tag): rows
        for run, tags in board.scalar_tags().items()
        for tag in tags
        if (rows := points(board.scalars(run, tag)))  # a tag whose points were all purged stays listed
    }


@pytest.mark.parametrize("loader", tb.LOADERS)
def test_purge_equals_the_loader(commands, resumed, loader):
    """Point by point, `--purge` shows what TensorBoard shows, for both of its loaders."""
    with tb.TensorBoard(resumed, loader) as board:
        assert exported(commands, resumed, "--purge", loader) == served(board)


@pytest.fixture(scope="module", params=tb.LOADERS)
def kinds_board(request, kinds):
    with tb.TensorBoard(kinds, request.param) as board:
        yield board


def test_every_plugin_has_data(kinds_board):
    listing = kinds_board.json("plugins_listing")
    wanted = ["scalars", "custom_scalars", "images", "audio", "graphs", "distributions", "histograms", "text"]
    wanted += ["pr_curves", "hparams", "mesh", "timeseries"]
    assert [name for name in wanted if not listing[name]["enabled"]] == []


@pytest.mark.parametrize(
    "plugin, v1, v2",
    [
        ("scalars", {"scalar"}, {"scalar"}),
        ("histograms", {"histogram", "buckets"}, {"histogram", "buckets"}),
        ("images", {"picture/image/0", "picture/image/1", "film"}, {"picture"}),
        ("audio", {"audio"}, {"audio"}),
        ("text", {"text", "table"}, {"text"}),
        ("pr_curves", set(), {"curve"}),
        ("mesh", set(), {"mesh"}),
    ],
)
def test_tags(kinds_board, plugin, v1, v2):
    answer = kinds_board.json(f"plugin/{plugin}/tags")
    assert {run: set(answer.get(run, ())) for run in ("v1", "v2")} == {"v1": v1, "v2": v2}


def test_values(kinds_board):
    for run in ("v1", "v2"):
        assert [(step, value) for step, value, _ in kinds_board.scalars(run, "scalar")] == [(0, 1.5), (1, 1.5)]
        (_, buckets), _ = kinds_board.histograms(run, "histogram")
        assert sum(count for _, _, count in buckets) == 4
        assert f"node_of_{run}" in kinds_board.graph_text(run)


@pytest.mark.parametrize("run, tag, kind", [("v1", "film", b"GIF89a"), ("v2", "picture", b"\x89PNG")])
def test_images_can_be_fetched(kinds_board, run, tag, kind):
    answer = kinds_board.json("plugin/images/images", run=run, tag=tag, sample=0)
    assert [image["step"] for image in answer] == [0, 1]
    data = kinds_board.get("plugin/images/individualImage?" + answer[0]["query"])
    assert data.startswith(kind)


def test_texts_and_layout(kinds_board):
    texts = kinds_board.json("plugin/text/text", run="v1", tag="table")
    assert "<table>" in texts[0]["text"]
    layout = kinds_board.json("plugin/custom_scalars/layout")
    assert layout["category"][0]["chart"][0]["title"] == "chart"


def test_curve_and_mesh(kinds_board):
    curve = kinds_board.json("plugin/pr_curves/pr_curves", run="v2", tag="curve")["v2"]
    assert len(curve[0]["precision"]) == 11
    meshes = kinds_board.json("plugin/mesh/meshes", run="v2", tag="mesh", sample=0)
    assert {m["content_type"] for m in meshes} == {1, 2, 3}  # vertices, faces, colours


def test_hparams_in_json_lines(commands, kinds):
    """`tfevents cat --json` prints what TensorBoard's own protobuf reads."""
    (file,) = (kinds / "v2").glob("*tfevents*")
    lines = cmd.assert_success(commands.run("tfevents", "cat", file, "--json")).out
    for line in lines.splitlines():
        for value in json.loads(line).get("summary", {}).get("value", ()):
            if value["tag"] == "_hparams_/session_start_info":
                content = base64.b64decode(value["metadata"]["plugin_data"]["content"])
                data = plugin_data_pb2.HParamsPluginData.FromString(content)
                assert data.session_start_info.hparams["rate"].number_value == 0.25
                return
    raise AssertionError("no hyperparameters in the file")
