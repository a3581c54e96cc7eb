"""`tfevents export` of what TensorFlow writes, compared with what TensorBoard's own reader makes of the same files."""

import csv
import io
import json
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from tensorboard import data_compat, dataclass_compat
from tensorboard.backend.event_processing import event_file_loader
from tensorboard.plugins.hparams import api as hp
from tensorboard.plugins.pr_curve import summary as pr_summary


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    logdir = tmp_path_factory.mktemp("export")
    rng = np.random.default_rng(7)
    with tf.summary.create_file_writer(str(logdir / "a" / "train")).as_default():
        for step in range(3):
            tf.summary.histogram("weights/kernel", rng.normal(size=500), step=step, buckets=12)
            tf.summary.image("picture", rng.random((3, 8, 6, 3)), step=step, max_outputs=3)
            tf.summary.text("words", [["a|b", "ü\n\n*c*"], ["", "d"]], step=step)
            tf.summary.scalar("loss", 1 / (step + 1), step=step)
        tf.summary.histogram("empty", np.array([]), step=0)
        tf.summary.histogram("constant", np.full(10, 2.5), step=0)
        tf.summary.audio("sound", (rng.random((2, 100, 1)) * 2 - 1).astype(np.float32), 8000, step=5, encoding="wav")
        curve = pr_summary.pb("quality", labels=rng.random(100) > 0.5, predictions=rng.random(100), num_thresholds=7)
        tf.summary.experimental.write_raw_pb(curve.SerializeToString(), step=4)
        hp.hparams({"lr": 0.5, "opt": "adam", "bn": True}, trial_id="t1", start_time_secs=1.5)
    with tf.compat.v1.Graph().as_default(), tf.compat.v1.Session() as session:
        old = tf.compat.v1.summary.merge(
            [
                tf.compat.v1.summary.histogram("old", tf.constant(rng.normal(size=100))),
                tf.compat.v1.summary.image("old_picture", tf.constant(rng.random((2, 4, 4, 1)))),
            ]
        )
        with tf.compat.v1.summary.FileWriter(str(logdir / "b")) as writer:
            writer.add_summary(session.run(old), 3)
    return logdir


def values(logdir, plugin):
    """What TensorBoard reads: run, tag, step, tensor."""
    for path in sorted(logdir.rglob("*tfevents*")):
        metadata = {}
        for event in event_file_loader.LegacyEventFileLoader(str(path)).Load():
            event = data_compat.migrate_event(event)
            for event in dataclass_compat.migrate_event(event, metadata):
                for value in event.summary.value:
                    if metadata[value.tag].plugin_data.plugin_name == plugin:
                        run = str(path.parent.relative_to(logdir))
                        yield run, value.tag, event.step, tf.make_ndarray(value.tensor)


def export(bin_dir, logdir, plugin, *args):
    done = subprocess.run([bin_dir / "tfevents", "export", logdir, "--plugin", plugin, *args], capture_output=True, check=True)
    return done.stdout.decode()


def rows(bin_dir, logdir, plugin, *args):
    """The rows of JSON and CSV, which must be the same."""
    listed = json.loads(export(bin_dir, logdir, plugin, "--json", *args))
    if not args:
        table = list(csv.DictReader(io.StringIO(export(bin_dir, logdir, plugin))))
        assert [[str(v) if v is not None else "" for v in row.values()] for row in table] == [
            ["" if v is None else v if isinstance(v, str) else repr(v).removesuffix(".0") for v in row.values()] for row in listed
        ]
    return listed


def test_histograms(bin_dir, logdir):
    want = [(run, tag, step, *map(float, bucket)) for run, tag, step, t in values(logdir, "histograms") for bucket in t]
    got = [tuple(r[k] for k in ("run", "tag", "step", "bucket_left", "bucket_right", "bucket_count")) for r in rows(bin_dir, logdir, "histograms")]
    # TensorBoard rounds old histograms to float32.
    assert [(*g[:3], *np.float32(g[3:])) for g in sorted(got)] == [(*w[:3], *np.float32(w[3:])) for w in sorted(want)]
    assert len(got) > 60


def test_texts(bin_dir, logdir):
    want = [(run, tag, step, i, text.decode()) for run, tag, step, t in values(logdir, "text") for i, text in enumerate(t.flat)]
    got = [tuple(r[k] for k in ("run", "tag", "step", "index", "text")) for r in json.loads(export(bin_dir, logdir, "text", "--json"))]
    assert got == want and len(got) == 12


def test_pr_curves(bin_dir, logdir):
    ((run, tag, step, curve),) = values(logdir, "pr_curves")
    names = ("true_positives", "false_positives", "true_negatives", "false_negatives", "precision", "recall")
    got = rows(bin_dir, logdir, "pr_curves")
    assert [[r[n] for n in names] for r in got] == [[float(x) for x in column] for column in curve.T]
    assert [r["threshold"] for r in got] == pytest.approx([i / 6 for i in range(7)])
    assert {(r["run"], r["tag"], r["step"]) for r in got} == {(run, tag, step)}


@pytest.mark.parametrize("plugin, first", [("images", 2), ("audio", 0)])
def test_files(bin_dir, logdir, tmp_path, plugin, first):
    want = {}
    for run, tag, step, t in values(logdir, plugin):
        for i, data in enumerate((t[:, 0] if t.ndim == 2 else t)[first:]):
            want[run, tag, step, i] = data
    got = rows(bin_dir, logdir, plugin, "--files", tmp_path / "files")
    assert {(r["run"], r["tag"], r["step"], r["index"]): (tmp_path / "files" / r["file"]).read_bytes() for r in got} == want
    if plugin == "images":
        assert {(r["width"], r["height"]) for r in got} == {(6, 8), (4, 4)}
    again = subprocess.run([bin_dir / "tfevents", "export", logdir, "--plugin", plugin, "--files", tmp_path / "files"], capture_output=True, text=True)
    assert again.returncode == 1 and "exists" in again.stderr


def test_hparams(bin_dir, logdir):
    got = {r["hparam"]: (r["number"], r["text"], r["trial"], r["run"], r["start_time"]) for r in rows(bin_dir, logdir, "hparams")}
    assert got == {n: (x, t, "t1", "a/train", 1.5) for n, x, t in [("lr", 0.5, "0.5"), ("opt", None, "adam"), ("bn", 1, "true")]}
    (wide,) = csv.DictReader(io.StringIO(export(bin_dir, logdir, "hparams", "--wide")))
    assert (wide["lr"], wide["opt"], wide["bn"], wide["status"]) == ("0.5", "adam", "true", "running")
    assert float(wide["loss"]) == pytest.approx(1 / 3)
