"""A program in another language is kept alive: killed in the middle, it continues, and TensorBoard shows one curve."""

import os
import re
import signal
import sys

import pytest
from harness import events
from harness.commands import REPO, assert_success
from harness.tensorboard import LOADERS, TensorBoard

CONFIG = REPO / "examples" / "child" / "child.toml"
STEPS = 900  # seconds of work after the second kill, which must find the program alive


@pytest.fixture(scope="module")
def killed(commands, tmp_path_factory):
    """A run of the example whose program is killed twice: its logdir and its result."""
    logdir = tmp_path_factory.mktemp("child") / "logdir"
    settings = {"train__steps": STEPS, "child__backoff_secs": 0.05, "supervisor__save_summaries_secs": 0.2}
    process = commands.start_training(logdir, CONFIG, **settings)
    for attempt in (1, 2):
        pattern = rf"msg=started pid=(\d+) attempt={attempt}\b"
        process.wait_until(lambda: re.search(pattern, process.text), f"start {attempt}")
        pid = int(re.search(pattern, process.text).group(1))
        process.wait_until(lambda: _newest(logdir) >= attempt * 100, "a checkpoint")
        os.kill(pid, signal.SIGKILL)
    return logdir, assert_success(process.wait())


def test_it_is_started_again_from_its_checkpoint(killed):
    _, result = killed
    starts = [int(step) for step in re.findall(r'training continues" step=(\d+)', result.text)]
    assert len(starts) == 2 and 0 < starts[0] < starts[1] < STEPS, str(result)


def test_start_marks_precede_points_done_again(killed):
    logdir, _ = killed
    marks = events.session_logs(events.read_dir(logdir), events.SessionLog.START)
    assert len(marks) == 3


@pytest.mark.parametrize("loader", LOADERS)
def test_tensorboard_shows_one_curve(killed, loader):
    logdir, _ = killed
    with TensorBoard(logdir, loader) as board:
        (run,) = board.runs()
        tags = board.scalar_tags()[run]
        assert {"loss", "slope", "global_step/sec"} <= set(tags)
        for tag in ("loss", "slope"):
            assert [point[0] for point in board.scalars(run, tag)] == list(range(1, STEPS + 1))
        rates = [point[0] for point in board.scalars(run, "global_step/sec")]
        assert rates == sorted(set(rates))


def test_checkpoints_are_rotated(killed):
    logdir, _ = killed
    assert sorted(p.name for p in logdir.glob("ckpt-*")) == [f"ckpt-{STEPS - 40}.json", f"ckpt-{STEPS - 20}.json", f"ckpt-{STEPS}.json"]


def _newest(logdir):
    return max((int(p.stem.split("-")[1]) for p in logdir.glob("ckpt-*.json")), default=-1)


SUPERVISOR = """
import os, signal, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
logdir = os.environ["TRAINERD_LOGDIR"]
step = tf.train.create_global_step()
loss = tf.Variable(3.0, name="w")
train = tf.group(tf.assign(loss, loss * 0.99), tf.assign_add(step, 1))
tf.summary.scalar("loss", loss)
merged = tf.summary.merge_all()
sv = tf.train.Supervisor(logdir=logdir, save_model_secs=0, save_summaries_secs=0, summary_op=None)
with sv.managed_session() as session:
    n = session.run(step)
    while n < 60:
        session.run(train)
        n = session.run(step)
        sv.summary_computed(session, session.run(merged), n)
        print(f"step={n} printed={session.run(loss)}", flush=True)
        if n % 10 == 0:
            sv.saver.save(session, sv.save_path, global_step=step)
        if n == 35 and os.environ["TRAINERD_ATTEMPT"] == "1":
            sv.summary_writer.flush()
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def run_program(commands, tmp_path_factory):
    """Runs a program, whose first start is killed by itself, and returns its logdir."""

    def run(text, checkpoints):
        folder = tmp_path_factory.mktemp("program")
        program = folder / "train.py"
        program.write_text(text)
        logdir = folder / "logdir"
        settings = [f"child.checkpoints={checkpoints}", "child.backoff_secs=0.05", "child.max_restarts=1"]
        words = [word for setting in settings for word in ("--set", setting)]
        assert_success(commands.run("trainerd", "run", "--logdir", logdir, *words, "--", sys.executable, program))
        return logdir

    return run


@pytest.fixture(scope="module")
def supervised(run_program):
    """A run of a program on TensorFlow's own Supervisor, which writes events and checkpoints into the logdir, killed once."""
    return run_program(SUPERVISOR, "model.ckpt-*")


@pytest.mark.parametrize("loader", LOADERS)
def test_the_programs_own_curve_rises(supervised, loader):
    with TensorBoard(supervised, loader) as board:
        shown = [point[0] for point in board.scalars(".", "loss")]
        # TensorFlow's own START is at the step it resumes from, which the Python loader drops, too.
        assert [step for step in shown if step != 30] == [step for step in range(1, 61) if step != 30]
        assert shown == sorted(set(shown))
        assert [point[0] for point in board.scalars("trainerd", "printed")] == list(range(1, 61))


LINKED = """
import json, os, signal, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

os.chdir(os.environ["TRAINERD_LOGDIR"])
os.makedirs("store/a", exist_ok=True)
if not os.path.lexists("current"):
    os.symlink("store/a", "current")
writer = EventFileWriter("current")
for step in range(int(os.environ.get("TRAINERD_STEP", 0)) + 1, 61):
    value = Summary.Value(tag="loss", simple_value=1 / step)
    writer.add_event(Event(step=step, wall_time=time.time(), summary=Summary(value=[value])))
    print(f"step={step} printed={1 / step}", flush=True)
    if step % 10 == 0:
        with open("writing.tmp", "w") as file:
            json.dump({"step": step}, file)
        os.rename("writing.tmp", f"ckpt-{step}.json")
    if step == 35 and os.environ["TRAINERD_ATTEMPT"] == "1":
        writer.flush()
        os.kill(os.getpid(), signal.SIGKILL)
writer.close()
"""


@pytest.fixture(scope="module")
def linked(run_program):
    """A run of a program that writes events to a folder of the logdir by a link to that, killed once."""
    return run_program(LINKED, "ckpt-*.json")


@pytest.mark.parametrize("loader", LOADERS)
def test_curves_behind_a_link_rise(linked, loader):
    assert len(list((linked / "store" / "a").glob("*.restart-*.trainerd"))) == 1
    with TensorBoard(linked, loader) as board:
        for run in ("current", "store/a"):
            assert [point[0] for point in board.scalars(run, "loss")] == list(range(1, 61)), run
        assert [point[0] for point in board.scalars(".", "printed")] == list(range(1, 61))
