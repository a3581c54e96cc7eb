"""Real TensorBoard, with each of its two loaders, serves exactly what is in the events file."""

import math

import numpy as np
import pytest
from google.protobuf import text_format
from harness import events
from tensorflow.core.framework import graph_pb2

RUN = "."  # TensorBoard's name for a logdir that holds events files itself
EVAL = "eval"
SERVED_HISTOGRAMS = 51  # its histogram plugin hands out a sample of this size at most, whatever it is told


@pytest.fixture(scope="module")
def written(digits):
    return events.read_dir(digits.logdir)


@pytest.fixture(scope="module")
def evaluated(digits):
    return events.read_dir(digits.logdir / EVAL)


def test_serves_the_training_and_the_evaluations(digits_board):
    assert sorted(digits_board.runs()) == [RUN, EVAL]


def test_serves_the_scalar_tags(digits_board, written, evaluated):
    assert digits_board.scalar_tags() == {RUN: set(events.scalars(written)), EVAL: set(events.scalars(evaluated))}
    assert set(events.scalars(evaluated)) == {"loss", "accuracy"}
    assert {"loss", "accuracy", "global_step/sec"} <= set(events.scalars(written))


def test_serves_every_scalar_point(digits_board, written):
    for tag, points in events.scalars(written).items():
        assert digits_board.scalars(RUN, tag) == points, tag


def test_serves_every_evaluation(digits_board, evaluated):
    for tag, points in events.scalars(evaluated).items():
        assert [step for step, _, _ in points] == list(range(200, 4001, 200)), tag
        assert digits_board.scalars(EVAL, tag) == points, tag


def test_curves_have_points_to_draw(written):
    """Enough points for a curve, strictly increasing steps; the loss falls, the accuracy rises."""
    scalars = events.scalars(written)
    for tag in ("loss", "accuracy", "global_step/sec"):
        steps = [step for step, _, _ in scalars[tag]]
        assert steps == sorted(set(steps)), tag
        assert len(steps) >= 3, f"{tag}: only {len(steps)} points"
    assert _values(scalars["loss"])[-1] < _values(scalars["loss"])[0] / 2
    assert _values(scalars["accuracy"])[-1] > _values(scalars["accuracy"])[0]


def test_serves_the_histograms(digits_board, written):
    histograms = events.histograms(written)
    assert digits_board.histogram_tags() == {RUN: set(histograms)}
    for tag, points in histograms.items():
        by_step = {step: histo for step, histo, _ in points}
        served = digits_board.histograms(RUN, tag)
        assert len(served) == min(len(points), SERVED_HISTOGRAMS), tag
        for step, buckets in served:
            _assert_same_histogram(f"{tag} at step {step}", buckets, by_step[step])


def test_histograms_are_those_of_the_weights(digits, written):
    """One for each trainable variable, each with as many values as the variable has elements."""
    counts = {int(points[-1][1].num) for points in events.histograms(written).values()}
    assert {64 * 128, 128, 128 * 10, 10} <= counts


def test_serves_the_graph(digits_board, written):
    (data,) = [e.graph_def for e in written if e.HasField("graph_def")]
    graph = graph_pb2.GraphDef.FromString(data)
    assert digits_board.runs_with_graph() == {RUN}
    served = text_format.Parse(digits_board.graph_text(RUN), graph_pb2.GraphDef())
    assert {(n.name, n.op) for n in served.node} == {(n.name, n.op) for n in graph.node}


def _values(points):
    return [value for _, value, _ in points]


def _assert_same_histogram(tag, buckets, histo):
    """Each loader cuts empty buckets off in its own way, but counts, limits and every filled bucket stay."""
    counts = [count for _, _, count in buckets if count]
    assert counts == [count for count in histo.bucket if count], tag
    assert math.isclose(sum(counts), histo.num), tag
    filled = [(left, right) for left, right, count in buckets if count]
    assert np.isclose(filled[0][0], histo.min, rtol=1e-5) or filled[0][0] <= histo.min, tag
    assert np.isclose(filled[-1][1], histo.max, rtol=1e-5) or filled[-1][1] >= histo.max, tag
