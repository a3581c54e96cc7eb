"""A program in another language is kept alive: killed in the middle, it goes on, and TensorBoard shows one curve."""

import os
import re
import signal

import pytest
from harness import events
from harness.commands import REPO, assert_success
from harness.tensorboard import LOADERS, TensorBoard

CONFIG = REPO / "examples" / "child" / "child.toml"
STEPS = 400


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
    return logdir, assert_success(process.wait(60))


def test_it_is_started_again_from_its_checkpoint(killed):
    _, result = killed
    starts = [int(step) for step in re.findall(r'training goes on" step=(\d+)', result.text)]
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
