"""`tfevents cat --json F | tfevents write G` makes the same bytes, whichever program wrote F, and however odd it is."""

import gzip
import random
import signal
import struct
import zlib

import numpy as np
import pytest
import tensorboardX
import tensorflow as tf
from harness import commands as cmd
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.summary.writer.record_writer import RecordWriter


def only(directory):
    (path,) = (p for p in directory.rglob("*") if "tfevents" in p.name)
    return path


def tf1(directory):
    """TensorFlow 1's FileWriter, which hands everything to the EventsWriter in C++."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None], name="x")
        tf.compat.v1.summary.scalar("loss", tf.reduce_sum(x))
        tf.compat.v1.summary.histogram("x", x)
        tf.compat.v1.summary.text("words", tf.strings.as_string(x))
        merged = tf.compat.v1.summary.merge_all()
        writer = tf.compat.v1.summary.FileWriter(str(directory), session.graph)
        writer.add_session_log(tf.compat.v1.SessionLog(status=1), 3)
        for step in range(5):
            options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
            metadata = tf.compat.v1.RunMetadata()
            writer.add_summary(session.run(merged, {x: np.random.rand(7)}, options, metadata), step)
            writer.add_run_metadata(metadata, f"step{step}", step)
        writer.close()


def tf2(directory):
    with tf.summary.create_file_writer(str(directory)).as_default():
        for step in range(3):
            tf.summary.scalar("s", float("nan") if step else 0.5, step)
            tf.summary.histogram("h", np.random.randn(100), step)
            tf.summary.image("i", np.random.rand(2, 3, 4, 3), step)
            tf.summary.audio("a", np.random.rand(2, 50, 1).astype(np.float32) * 2 - 1, 8000, step)
            tf.summary.text("t", "caf\u00e9 *x*", step)
        tf.summary.flush()


def tensorboard_x(directory):
    writer = tensorboardX.SummaryWriter(str(directory))
    for step in range(3):
        writer.add_scalar("s", np.float64(step) / 3, step)
        writer.add_histogram("h", np.random.randn(100), step)
        writer.add_text("t", "text", step)
        writer.add_image("i", np.random.rand(3, 4, 5), step)
        writer.add_pr_curve("p", np.array([1, 0, 1]), np.array([0.5, 0.25, 1]), step)
    writer.close()


def tensorboard(directory):
    """The writer behind torch.utils.tensorboard."""
    writer = EventFileWriter(str(directory))
    summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="a", simple_value=-0.0)])
    for step in (-1, 0, 2**62):
        writer.add_event(event_pb2.Event(wall_time=step / 7, step=step, summary=summary))
    writer.close()


def odd(directory):
    """Records that no program of this list writes, but that the wire format allows."""
    nan = struct.pack("<d", float("nan"))
    signalling = b"\x01\x00\x00\x00\x00\x00\xf4\x7f"
    event = event_pb2.Event(wall_time=1.5, step=3, file_version="brain.Event:2").SerializeToString()
    rng = random.Random(3)
    records = [
        b"",
        event,
        event + b"\xa2\x06\x03abc",  # an unknown field
        b"\xa2\x06\x03abc" + event,  # in an unusual place
        event[9:] + event[:9],  # fields out of order
        event + event,  # each twice
        b"\x09" + nan,
        b"\x09" + signalling,
        b"\x10\x83\x80\x80\x00",  # a number longer than it must be
        b"\x1a\x02\xff\xfe",  # not UTF-8
        b"\x2a\x09\x0a\x07\x0a\x00\x15\x00\x00\xa0\x7f",  # an empty tag that is written, and a signalling NaN
        b"\x2a\x06\x0a\x04\x0a\x02\xc3\x28",  # a tag that is not UTF-8
        b"\x2a\x00",
        b"\x22\x00",
        b"\x1a\x01a\x22\x01b",  # two members of one oneof
        bytes(rng.randrange(256) for _ in range(300)),  # no message at all
        b"not an event",
    ]
    with open(directory / "events.out.tfevents.1700000000.odd", "wb") as file:
        writer = RecordWriter(file)
        for record in records:
            writer.write(record)


@pytest.mark.parametrize("write", [tf1, tf2, tensorboard_x, tensorboard, odd], ids=lambda f: f.__name__)
def test_same_bytes(commands, tmp_path, write):
    source = tmp_path / "source"
    source.mkdir()
    write(source)
    path = only(source)
    lines = cmd.assert_success(commands.run("tfevents", "cat", path, "--json"))
    copy = tmp_path / "copy"
    cmd.assert_success(commands.run("tfevents", "write", copy, stdin=lines.out))
    assert copy.read_bytes() == path.read_bytes()

    # Compressed, it has the same events.
    for kind, compress in (("gzip", gzip.compress), ("zlib", zlib.compress)):
        packed = tmp_path / kind
        packed.write_bytes(compress(path.read_bytes()))
        assert cmd.assert_success(commands.run("tfevents", "cat", "--json", packed)).out == lines.out


def test_damage_is_told_and_the_rest_kept(commands, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    tensorboard(source)
    data = only(source).read_bytes()
    damaged = tmp_path / "damaged.tfevents"
    damaged.write_bytes(data[:-3])
    result = commands.run("tfevents", "cat", "--json", damaged)
    assert result.code == 3, result
    copy = tmp_path / "copy"
    cmd.assert_success(commands.run("tfevents", "write", copy, stdin=result.out))
    repaired = tmp_path / "repaired"
    cmd.assert_success(commands.run("tfevents", "repair", damaged, repaired))
    assert data.startswith(copy.read_bytes()) and repaired.read_bytes() == copy.read_bytes()


def test_colours_only_on_a_terminal(bin_dir, commands, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    tensorboard(source)
    code, shown = cmd.on_terminal([bin_dir / "tfevents", "ls", source])
    assert code == 0 and "\x1b[1m" in shown
    code, shown = cmd.on_terminal([bin_dir / "tfevents", "ls", source], env={"NO_COLOR": "1"})
    assert code == 0 and "\x1b" not in shown
    assert "\x1b" not in cmd.assert_success(commands.run("tfevents", "ls", source)).text


def test_interrupt_ends_with_130(commands, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    tensorboard(source)
    process = commands.start("tfevents", "tail", source)
    process.wait_until(lambda: "-0" in process.text, "first events")
    process.signal(signal.SIGINT)
    assert process.wait().code == 130
