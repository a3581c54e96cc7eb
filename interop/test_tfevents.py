"""Package tfevents and the command of that name against real TensorBoard: every kind of value."""

import base64
import json

import pytest
from harness import commands as cmd
from harness import tensorboard as tb
from tensorboard.plugins.hparams import plugin_data_pb2


@pytest.fixture(params=tb.LOADERS)
def kinds_board(request, kinds_boards):
    return kinds_boards(request.param)


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
