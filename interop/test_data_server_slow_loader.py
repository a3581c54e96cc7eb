"""Where TensorBoard's data server and its Python loader disagree, our data server answers as the loader does.

Also files that change in ways that neither of the two expects.
"""

import collections
import os
import shutil

import pytest
from harness.dataserver import KINDS, DataServer
from harness.writing import write
from tensorboard.backend.event_processing import plugin_event_multiplexer, tag_types
from tensorboard.compat.proto import event_pb2, summary_pb2

PLUGINS = "scalars images histograms text mine".split()


def scalar(tag, step, value=1.0):
    return event_pb2.Event(wall_time=1.7e9 + step, step=step, summary=summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)]))


def image(tag, step):
    value = summary_pb2.Summary.Value(tag=tag, image=summary_pb2.Summary.Image(width=1, height=1, encoded_image_string=b"png"))
    return event_pb2.Event(wall_time=1.7e9 + step, step=step, summary=summary_pb2.Summary(value=[value]))


def loader(logdir):
    """{(run, tag): steps} of the loader in Python, every point kept."""
    multiplexer = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance=dict.fromkeys(PLUGINS, 0))
    multiplexer.AddRunsFromDirectory(str(logdir))
    multiplexer.Reload()
    series = collections.defaultdict(list)
    for run in multiplexer.Runs():
        accumulator = multiplexer.GetAccumulator(run)
        for tag in accumulator.Tags()[tag_types.TENSORS]:
            series[run, tag] = [event.step for event in accumulator.Tensors(tag)]
    return dict(series)


def served(server):
    return {key: list(data.step) for plugin in server.plugins() for kind in KINDS for key, data in server.read(kind, plugin).items()}


LOGDIRS = {
    "steps that go back": {"r": [[scalar("a", s) for s in (1, 2, 3, 9, 4, 5, 2)] + [image("i", s) for s in (7, 8, 1)]]},
    "large and negative steps": {"r": [[scalar("a", s) for s in (-(2**63), -5, 0, 2**62, 2**63 - 1, 3)]]},
    "odd names": {".hidden": [[scalar("a", 1)]], "new\nline": [[scalar("a", 1)]]},
}


@pytest.mark.parametrize("what", LOGDIRS)
def test_as_the_loader(bin_dir, tmp_path, what):
    for run, files in LOGDIRS[what].items():
        for number, events in enumerate(files):
            write(tmp_path / run / f"events.out.tfevents.{1700000000 + number}.h", events)
    expected = loader(tmp_path)
    with DataServer(bin_dir / "tfevents", tmp_path) as server:
        server.wait_for(lambda s: len(s.runs()) == len(LOGDIRS[what]))
        assert served(server) == expected


def test_files_that_change_in_place(bin_dir, tmp_path):
    path, other = tmp_path / "r" / "events.out.tfevents.1700000000.h", tmp_path / "other"
    write(path, [scalar("a", s, 1) for s in range(20)])
    write(other, [scalar("b", s, 2) for s in range(100)])
    with DataServer(bin_dir / "tfevents", tmp_path / "r", reload="1") as server:
        server.wait_for(lambda s: served(s) == {(".", "a"): list(range(20))})
        inode = path.stat().st_ino
        with open(path, "r+b") as file:  # longer than before at each moment, as rsync --inplace leaves it
            file.write(other.read_bytes())
        assert path.stat().st_ino == inode
        server.wait_for(lambda s: served(s) == {(".", "b"): list(range(100))})
        os.truncate(path, 0)
        server.wait_for(lambda s: served(s) == {})
        shutil.copyfile(other, path)
        server.wait_for(lambda s: served(s) == {(".", "b"): list(range(100))})
        # Zeros in its middle, which are filled without a change of its size.
        whole = path.read_bytes()
        holes = bytearray(whole)
        holes[1000:2000] = bytes(1000)
        with open(path, "r+b") as file:
            file.write(holes)
        os.utime(path, (1, 1))
        server.wait_for(lambda s: len(served(s)[".", "b"]) == 100)
        write(tmp_path / "r" / "late" / "events.out.tfevents.1700000000.h", [])
        (tmp_path / "r" / "late" / "events.out.tfevents.1700000000.h").write_bytes(holes)
        server.wait_for(lambda s: 0 < len(served(s).get(("late", "b"), [])) < 100)
        with open(tmp_path / "r" / "late" / "events.out.tfevents.1700000000.h", "r+b") as file:
            file.write(whole)
        server.wait_for(lambda s: len(served(s)["late", "b"]) == 100)


def test_a_name_that_is_not_utf8(bin_dir, tmp_path):
    write(tmp_path / "x", [scalar("a", 1)])
    logs = os.path.join(os.fsencode(tmp_path), b"logs", b"caf\xe9")
    os.makedirs(logs)
    shutil.copyfile(os.fsencode(tmp_path / "x"), os.path.join(logs, b"events.out.tfevents.1700000000.h"))
    with DataServer(bin_dir / "tfevents", tmp_path / "logs") as server:
        server.wait_for(lambda s: served(s) == {("caf\ufffd", "a"): [1]})
