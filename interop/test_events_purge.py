"""The points of killed and resumed trainings, of every kind of summary: ours equal those that both loaders serve."""

import json
import math
import os
import random
import shutil
import subprocess
import time

import numpy as np
import pytest
from harness import commands as cmd
from harness import tensorboard as tb
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.histogram import summary as histogram
from tensorboard.plugins.text import summary as text
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util import tensor_util

RUNS = 16
WILD_RUNS = 25
TAGS = {"loss": "scalars", "new": "scalars", "old_h": "histograms", "new_h": "histograms", "words": "text"}


class Training:
    """Writes events files as a training does that is killed at random and resumed from its last checkpoint.

    start says which step a session's START carries: the restored one plus this number; None writes none at all.
    """

    def __init__(self, directory, rng, start):
        self.directory, self.rng, self.start = directory, rng, start
        self.wall, self.step = 1.7e9, 0
        self.meant = {}  # {(tag, step): wall time}: what a training that was never killed would show
        directory.mkdir(parents=True)

    def run(self):
        for number in range(self.rng.randint(2, 4)):
            with open(self.directory / f"events.out.tfevents.{1700000000 + 1000 * number}.h", "wb") as file:
                self.session(RecordWriter(file))
            self.wall += 500

    def session(self, writer):
        def write(**fields):
            self.wall += 1
            writer.write(event_pb2.Event(wall_time=self.wall, **fields).SerializeToString())

        write(file_version="brain.Event:2")
        self.meant = {(tag, step): wall for (tag, step), wall in self.meant.items() if step <= self.step}
        if self.start is not None:
            write(step=self.step + self.start, session_log=event_pb2.SessionLog(status=1))
        # All tags at the first step, so that the data server, which knows no START, overtakes what was there.
        steps, saved = self.rng.randint(1, 12), self.step
        for number in range(steps):
            self.step += 1
            if self.rng.random() < 0.3:
                saved = self.step
            tags = [tag for tag in TAGS if not number or self.rng.random() < 0.7]
            values = [value(tag, self.rng) for tag in tags]
            if self.rng.random() < 0.5:  # together, or interleaved
                write(step=self.step, summary=summary_pb2.Summary(value=values))
            else:
                for one in values:
                    write(step=self.step, summary=summary_pb2.Summary(value=[one]))
                    self.meant[one.tag, self.step] = self.wall
            self.meant.update({(tag, self.step): self.meant.get((tag, self.step), self.wall) for tag in tags})
        self.step = saved


def value(tag, rng):
    data = np.array([rng.random() for _ in range(5)])
    match tag:
        case "loss":
            return summary_pb2.Summary.Value(tag=tag, simple_value=data[0])
        case "new":
            made = summary_pb2.Summary.Value(tag=tag, tensor=tensor_util.make_tensor_proto(np.float32(data[0])))
            made.metadata.plugin_data.plugin_name = "scalars"
        case "old_h":
            limits = [0.25, 0.5, 1.0]
            counts = np.histogram(data, [0, *limits])[0].tolist()
            made = summary_pb2.Summary.Value(tag=tag)
            made.histo.min, made.histo.max, made.histo.num, made.histo.sum = data.min(), data.max(), 5, data.sum()
            made.histo.bucket_limit.extend(limits)
            made.histo.bucket.extend(counts)
        case "new_h":
            made = histogram.pb("h", data, 3).value[0]
        case "words":
            made = text.pb("t", "some words").value[0]
    made.tag = tag
    return summary_pb2.Summary.Value.FromString(made.SerializeToString())  # the plugins use another copy of the class


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
def trainings(tmp_path_factory):
    seed = int(os.environ.get("INTEROP_SEED") or time.time())
    print(f"INTEROP_SEED={seed}")
    rng = random.Random(seed)
    logdir = tmp_path_factory.mktemp("trainings")
    made = {}
    for number in range(RUNS):
        start = (1, 1, 0, None)[number % 4]
        name = f"run{number:02}"
        made[name] = Training(logdir / name, rng, start)
        made[name].run()
    for number in range(WILD_RUNS):
        random_run(logdir / f"wild{number:02}", rng)
    return logdir, made


@pytest.fixture(scope="module", params=tb.LOADERS)
def board(request, trainings):
    with tb.TensorBoard(trainings[0], request.param) as board:
        yield board


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


def served_scalars(board, names):
    return {
        (run, tag): rows
        for run, tags in board.scalar_tags().items()
        if run in names
        for tag in tags
        if (rows := points(board.scalars(run, tag)))  # a tag whose points were all purged stays listed
    }


@pytest.fixture(scope="module")
def ours(trainings, tmp_path_factory):
    """Reads the points by a mode: {(run, tag): [(step, wall time), ...]}."""
    go = shutil.which("go")
    if not go:
        pytest.skip("no Go here to build the reader with")
    program = tmp_path_factory.mktemp("series") / "series"
    subprocess.run([go, "build", "-o", program, "./interop/series"], cwd=cmd.REPO, check=True)

    def read(mode):
        lines = subprocess.run([program, trainings[0], mode], check=True, capture_output=True, text=True).stdout
        series = {}
        for run, tag, _, step, wall in map(json.loads, lines.splitlines()):
            series.setdefault((run, tag), []).append((step, wall))
        return series

    return read


def served(board, names):
    """The same from TensorBoard."""
    series = {}
    for run in names:
        for tag, plugin in TAGS.items():
            answer = board.json(f"plugin/{plugin}/{plugin}", run=run, tag=tag)
            if plugin == "text":
                points = [(p["step"], p["wall_time"]) for p in answer]
            else:
                points = [(p[1], p[0]) for p in answer]
            if points:
                series[run, tag] = points
    return series


def test_every_kind_equals_the_loader(trainings, ours, board):
    _, made = trainings
    assert {key: points for key, points in ours(board.loader).items() if key[0] in made} == served(board, made)


def test_values_equal_the_loader(commands, trainings, board):
    """Point by point, `--purge` shows what TensorBoard shows, also of files that no good writer leaves."""
    names = {path.name for path in trainings[0].iterdir()}
    assert exported(commands, trainings[0], "--purge", board.loader) == served_scalars(board, names)


def meant(made, starts):
    series = {}
    for name, training in made.items():
        if training.start in starts:
            for (tag, step), wall in sorted(training.meant.items(), key=lambda item: item[0][1]):
                series.setdefault((name, tag), []).append((step, wall))
    return series


def test_exact_is_what_was_meant(trainings, ours):
    """Whether START carries the restored step or the one after it, no point is lost and none shown twice."""
    _, made = trainings
    wanted = meant(made, {0, 1})
    assert {key: points for key, points in ours("exact").items() if key in wanted} == wanted


def test_both_loaders_show_what_was_meant(trainings, ours):
    """With START behind the restored step in every session, as our writers do it, both loaders agree."""
    _, made = trainings
    wanted = meant(made, {1})
    for mode in ("python", "data-server"):
        assert {key: points for key, points in ours(mode).items() if key in wanted} == wanted, mode
