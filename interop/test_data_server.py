"""Our data server against TensorBoard's own: the same answers where that is right, and right ones where it is not."""

import os
import random
import shutil

import grpc
import numpy as np
import pytest
from harness import commands as cmd
from harness.dataserver import KINDS, DataServer, theirs
from harness.strange import write_logdir
from harness.tensorboard import OURS, TensorBoard
from harness.writing import write
from tensorboard.compat.proto import event_pb2, summary_pb2, types_pb2
from tensorboard.data.proto import data_provider_pb2 as pb
from tensorboard.plugins.audio import plugin_data_pb2 as audio_pb2

START = event_pb2.Event(session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START))


@pytest.fixture
def ours(bin_dir):
    return bin_dir / "tfevents"


def name(directory, number):
    return directory / f"events.out.tfevents.{1700000000 + number}.host"


def scalar(tag, step, value, wall=None):
    wall = 1700000000.0 + step if wall is None else wall
    return event_pb2.Event(wall_time=wall, step=step, summary=summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)]))


def start(step, wall):
    event = event_pb2.Event()
    event.CopyFrom(START)
    event.step, event.wall_time = step, wall
    return event


def curve(server, tag="loss", run="."):
    data = server.read("Scalars", "scalars").get((run, tag))
    return dict(zip(data.step, data.value)) if data else {}


def everything(server):
    """All that a server answers, as {question: answer}. Both are asked in the same words."""
    answers = {("runs",): sorted(server.runs().items()), ("plugins",): sorted(server.plugins())}
    for plugin in sorted(server.plugins()):
        for kind in KINDS:
            for key, metadata in server.list(kind, plugin).items():
                answers["list", kind, *key] = metadata
            for key, data in server.read(kind, plugin).items():
                answers["read", kind, *key] = data
                for step, sequence in zip(data.step, data.values if kind == "BlobSequences" else ()):
                    answers["blobs", *key, step] = blobs(server, sequence)
    return answers


def blobs(server, sequence):
    try:
        return [server.blob(ref.blob_key) for ref in sequence.blob_refs]
    except grpc.RpcError as error:
        return error.code().name


def theirs_refuses(key):
    """It does not take back its own keys of blobs whose tags JSON must escape."""
    return key[0] == "blobs" and any(c in key[2] for c in '"\\\n')


def plain(metadata):
    """Metadata without what ours says beyond theirs: how old audio is encoded, and the names of old scalars."""
    metadata = type(metadata).FromString(metadata.SerializeToString())
    summary = metadata.summary_metadata
    if summary.plugin_data.plugin_name == "audio":
        content = audio_pb2.AudioPluginData.FromString(summary.plugin_data.content)
        content.encoding = 0
        summary.plugin_data.content = content.SerializeToString()
    return metadata


def assert_same(a, b, but=lambda key: False):
    for key in sorted(set(a) | set(b), key=str):
        if but(key):
            continue
        one, other = a.get(key), b.get(key)
        if key[0] == "list" and one is not None and other is not None:
            one, other = plain(one), plain(other)
        assert repr(one) == repr(other), key  # as text: NaN is not equal to itself


def compare(ours, logdir, but=lambda key: False):
    with DataServer(theirs(), logdir) as a, DataServer(ours, logdir) as b:
        a.wait_until_loaded()
        b.wait_until_loaded()
        one, other = everything(a), everything(b)
    assert not {key: answer for key, answer in other.items() if isinstance(answer, str)}, "ours refuses its own keys"
    assert_same(one, other, but)


# What ours shows and theirs does not: scalars of other types, names of simple values, records after damage, and what a
# START in the middle of a file says.
RICHER = {"both", "newstyle", "raw", ""}


def test_golden_logdirs(ours):
    compare(ours, cmd.REPO / "fixtures" / "events", lambda key: "damaged" in key or key[-1] in RICHER)


def test_every_kind(ours, kinds):
    compare(ours, kinds)


@pytest.mark.parametrize("seed", range(6))
def test_random_logdirs(ours, tmp_path, seed):
    """Among them several points at one step, and files that begin before the end of the one before: of other writers,
    or of trainings that write no START."""
    rng = random.Random(seed)
    for run in range(rng.randint(1, 4)):
        directory = tmp_path.joinpath(*rng.choices(["a", "b", "c"], k=run))
        step = 0
        for number in range(rng.randint(1, 3)):
            events = []
            step = rng.choice([step, rng.randint(0, step), 0])
            for _ in range(rng.randint(0, 300)):
                step += rng.choice([0, 1, 1, 1, 10**9])
                events.append(random_event(rng, step, 1700000000 + 1000 * number + len(events)))
            write(name(directory, number), events)
    compare(ours, tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_strange_logdirs(ours, tmp_path, seed):
    write_logdir(random.Random(seed), tmp_path)
    compare(ours, tmp_path, theirs_refuses)


def random_event(rng, step, wall):
    values = []
    for tag in rng.sample(["loss", "a/b", "ü", "x" * 300], rng.randint(1, 3)):
        values.append(summary_pb2.Summary.Value(tag=tag, simple_value=rng.choice([rng.random(), float("nan"), float("-inf"), 0])))
    if rng.random() < 0.2:
        tensor = summary_pb2.Summary.Value(tag="tf2").tensor
        tensor.dtype = types_pb2.DT_FLOAT
        tensor.tensor_content = np.float32(rng.random()).tobytes()
        value = summary_pb2.Summary.Value(tag="tf2", tensor=tensor)
        value.metadata.plugin_data.plugin_name = "scalars"
        values.append(value)
    if rng.random() < 0.1:
        counts = [rng.randint(0, 3) for _ in range(rng.randint(1, 20))]
        histo = summary_pb2.HistogramProto(min=-1, max=99, num=sum(counts), bucket=counts, bucket_limit=range(len(counts)))
        values.append(summary_pb2.Summary.Value(tag="histo", histo=histo))
    if rng.random() < 0.05:
        image = summary_pb2.Summary.Image(width=2, height=3, colorspace=3, encoded_image_string=rng.randbytes(rng.randint(1, 5000)))
        values.append(summary_pb2.Summary.Value(tag="image", image=image))
    return event_pb2.Event(wall_time=wall, step=step, summary=summary_pb2.Summary(value=values))


def test_restarts_vanish_while_it_runs(ours, tmp_path):
    write(name(tmp_path, 0), [start(0, 1700000000), *[scalar("loss", s, 1) for s in range(1, 21)], *[scalar("gone", s, 1) for s in range(1, 21)]])
    with DataServer(ours, tmp_path, reload="1") as server:
        server.wait_for(lambda s: len(curve(s)) == 20)
        write(name(tmp_path, 100), [start(11, 1700000100)])
        # Whether the START means step 11 or the one after it, is known with the first point.
        server.wait_for(lambda s: max(curve(s)) == 11 and max(curve(s, "gone")) == 11)
        write(name(tmp_path, 100), [scalar("loss", s, 2, 1700000100 + s) for s in range(11, 31)], append=True)
        server.wait_for(lambda s: len(curve(s)) == 30)
        assert curve(server) == {s: 1 if s <= 10 else 2 for s in range(1, 31)}
        assert max(curve(server, "gone")) == 10


def test_files_that_change(ours, tmp_path):
    run = tmp_path / "run"
    write(name(run, 0), [scalar("loss", s, 1) for s in range(10)])
    with DataServer(ours, tmp_path, reload="1") as server:
        server.wait_for(lambda s: len(curve(s, run="run")) == 10)
        # It grows, by a record that comes in two parts.
        whole = name(run, 0).read_bytes()
        write(name(run, 0), [scalar("loss", 10, 1)], append=True)
        grown = name(run, 0).read_bytes()
        name(run, 0).write_bytes(grown[: len(whole) + 9])
        name(run, 0).write_bytes(grown)
        server.wait_for(lambda s: len(curve(s, run="run")) == 11)
        # Another one takes its place, as rsync does it.
        write(name(tmp_path / "elsewhere", 0), [scalar("loss", s, 2) for s in range(5)])
        os.replace(name(tmp_path / "elsewhere", 0), name(run, 0))
        server.wait_for(lambda s: list(curve(s, run="run").values()) == [2] * 5)
        # Zeros, which are filled later.
        events = name(run, 1)
        write(events, [scalar("loss", s, 3) for s in range(5, 30)])
        whole = events.read_bytes()
        events.write_bytes(whole[:300] + bytes(len(whole) - 300))
        server.wait_for(lambda s: 5 < len(curve(s, run="run")) < 30)
        events.write_bytes(whole)
        server.wait_for(lambda s: len(curve(s, run="run")) == 30)
        # A run that appears, is hidden, and is gone.
        write(name(tmp_path / "other" / "deep", 0), [scalar("loss", 1, 1)])
        server.wait_for(lambda s: set(s.runs()) == {"run", "other/deep"})
        (tmp_path / "other" / ".hide").touch()
        server.wait_for(lambda s: set(s.runs()) == {"run"})
        shutil.rmtree(run)
        server.wait_for(lambda s: not s.runs())


def test_few_descriptors(ours, tmp_path):
    for run in range(150):
        write(name(tmp_path / f"{run:03}", 0), [scalar(tag, s, 1) for s in range(3) for tag in ("a", "b")])
    with DataServer(ours, tmp_path, reload="1", files=64) as server:
        server.wait_for(lambda s: len(s.list("Scalars", "scalars")) == 300)


def test_filters_and_thinning(ours, tmp_path):
    values = np.sin(np.arange(5000) / 100)
    values[2345] = 1000
    write(name(tmp_path, 0), [event for s, v in enumerate(values) for event in (scalar("loss", s, v), scalar("other", s, 0))])
    with DataServer(ours, tmp_path) as server:
        server.wait_for(lambda s: len(curve(s)) == 5000)
        only = {"run_tag_filter": pb.RunTagFilter(tags=pb.TagFilter(names=["loss"]))}
        assert list(server.read("Scalars", "scalars", **only)) == [(".", "loss")]
        assert server.read("Scalars", "scalars", run_tag_filter=pb.RunTagFilter(runs=pb.RunFilter())) == {}
        for points in (0, 1, 2, 3, 10, 1000):
            data = server.read("Scalars", "scalars", points, **only)[".", "loss"]
            steps = list(data.step)
            assert len(steps) <= points and steps == sorted(set(steps))
            assert points == 0 or steps[-1] == 4999
            assert points < 4 or (steps[0] == 0 and max(data.value) == 1000)
        with pytest.raises(grpc.RpcError) as error:
            server.stub.ListScalars(pb.ListScalarsRequest())
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        for key, code in {"?": "INVALID_ARGUMENT", "WyIiLCJydW4iLCJ0YWciLDAsMF0": "NOT_FOUND"}.items():
            with pytest.raises(grpc.RpcError) as error:
                server.blob(key)
            assert error.value.code().name == code


@pytest.mark.parametrize("logdir", ["gs://bucket/logs", "file"])
def test_a_logdir_that_is_not_supported(ours, tmp_path, logdir):
    (tmp_path / "file").touch()
    server = DataServer(ours, logdir if "://" in logdir else tmp_path / logdir)
    with pytest.raises(AssertionError, match="ended with 8"), server:
        pass
    assert logdir in server.error_file.read_text()


def test_it_ends_with_its_parent(ours, tmp_path):
    with DataServer(ours, tmp_path) as server:
        pass
    assert server.popen.returncode == 0


def test_tensorboard_starts_it(ours, kinds, kinds_boards):
    """TensorBoard's own API, on our data server and on theirs."""
    with TensorBoard(kinds, OURS) as board:
        other = kinds_boards("data-server")
        assert "tfevents" in " ".join(processes(board)), "TensorBoard runs another data server"
        assert sorted(board.runs()) == sorted(other.runs())
        one, two = board.json("plugins_listing"), other.json("plugins_listing")
        assert one.pop("projector") and two.pop("projector")  # it makes up its mind in a thread of its own
        assert one == two
        for plugin in ("scalars", "histograms", "images", "audio", "text", "pr_curves", "mesh"):
            assert in_order(board.json(f"plugin/{plugin}/tags")) == in_order(other.json(f"plugin/{plugin}/tags")), plugin
        for run, tags in other.scalar_tags().items():
            for tag in tags:
                assert repr(board.scalars(run, tag)) == repr(other.scalars(run, tag))
        for run, tags in other.histogram_tags().items():
            for tag in tags:
                assert board.histograms(run, tag) == other.histograms(run, tag)


def in_order(tags):
    """Tags of runs; those of texts come as lists in any order."""
    return {run: sorted(of_run) if isinstance(of_run, list) else of_run for run, of_run in tags.items()}


def processes(board):
    """The command lines of what a TensorBoard has started."""
    lines = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode()
            if os.getpgid(int(pid)) == board.group:
                lines.append(line)
        except OSError:
            pass  # it has just ended
    return lines


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    """What the demos of TensorBoard's plugins write, by the same functions: several runs of each kind."""
    import tensorflow as tf
    from tensorboard.plugins.custom_scalar import layout_pb2
    from tensorboard.plugins.custom_scalar import summary as custom_summary
    from tensorboard.plugins.hparams import api as hp
    from tensorboard.plugins.mesh import summary as mesh_summary
    from tensorboard.plugins.pr_curve import summary as pr_summary

    logdir, rng = tmp_path_factory.mktemp("demos"), np.random.default_rng(5)

    def writer(*names):
        return tf.summary.create_file_writer(str(logdir.joinpath(*names))).as_default()

    for temperature in (270.0, 310.0):  # scalars: a cooling body
        with writer("scalars", f"t0={temperature}"):
            for step in range(30):
                value = 260 + (temperature - 260) * np.exp(-step / 10)
                tf.summary.scalar("temperature/current", value, step=step, description="in *kelvin*")
                tf.summary.scalar("heat_diff", rng.normal(), step=step)
    with writer("histograms"):
        for step in range(10):
            tf.summary.histogram("moving/mean", rng.normal(5 * step, 1, 200), step=step, description="it moves")
            tf.summary.histogram("none", np.zeros(0), step=step)
    with writer("pictures", "box"):
        for step in range(9):  # theirs keeps ten of such
            tf.summary.image("blur", rng.random((2, 10, 10, 3)), step=step)
            tf.summary.audio("wave/sine", np.sin(np.arange(400, dtype=np.float32) * step / 9)[None, :, None], 8000, step=step)
            tf.summary.text("table", [["*a*", "b"], ["c", f"{step}"]], step=step)
    for trial in range(3):
        with writer("hparams", str(trial)):
            hp.hparams({"units": 16 * trial, "optimizer": "adam", "dropout": 0.1}, trial_id=f"trial {trial}")
            tf.summary.scalar("accuracy", 0.5 + 0.1 * trial, step=1)
    with writer("hparams"):
        hp.hparams_config(hparams=[hp.HParam("units", hp.Discrete([0, 16, 32]))], metrics=[hp.Metric("accuracy")])
    with writer("curves"):
        for step in range(5):
            curve = pr_summary.pb("green", labels=rng.random(80) > 0.5, predictions=rng.random(80), num_thresholds=11)
            tf.summary.experimental.write_raw_pb(curve.SerializeToString(), step=step)
        chart = layout_pb2.Chart(title="all", multiline=layout_pb2.MultilineChartContent(tag=["temperature/.*"]))
        layout = layout_pb2.Layout(category=[layout_pb2.Category(title="c", chart=[chart])])
        tf.summary.experimental.write_raw_pb(custom_summary.pb(layout).SerializeToString(), step=0)
        points = rng.random((1, 9, 3)).astype(np.float32)
        mesh = mesh_summary.pb("shape", vertices=points, faces=rng.integers(0, 9, (1, 4, 3), dtype=np.int32))
        tf.summary.experimental.write_raw_pb(mesh.SerializeToString(), step=1)

    @tf.function
    def layer(x):
        return tf.nn.relu(tf.matmul(x, x))

    with writer("graphs"):
        tf.summary.trace_on(graph=True)
        layer(tf.ones((2, 2)))
        tf.summary.trace_export("a function", step=0)
        tf.summary.graph(layer.get_concrete_function(tf.ones((2, 2))).graph)
    with tf.compat.v1.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32)
        merged = tf.compat.v1.summary.merge([tf.compat.v1.summary.scalar("old", x), tf.compat.v1.summary.histogram("old_histogram", x * tf.range(5.0))])
        with tf.compat.v1.summary.FileWriter(str(logdir / "old"), session.graph) as old:
            for step in range(20):
                old.add_summary(session.run(merged, {x: step}), step)
    return logdir


def test_demo_logdirs(ours, demos):
    compare(ours, demos)
