"""A run that is killed and started again continues where it was, and leaves no trace of it in the result.

One training runs to its end undisturbed, a second is killed once, a third twenty times at random moments. All three
must end with the same bits, and both loaders of TensorBoard must show the same curves for them.
"""

import os
import random
import re
import shutil
import time
import types

import pytest
from harness import checkpoints, events
from harness.commands import assert_no_crash, assert_success
from harness.logdirs import announced_steps, contents, current_step
from harness.tensorboard import LOADERS, TensorBoard

STEPS = 12_000
KILLS = 20
JOB = {
    "train__steps": STEPS,
    "supervisor__save_model_steps": 100,
    "supervisor__save_summaries_steps": 50,
    "supervisor__save_summaries_secs": 0.1,  # the points of global_step/sec
    "supervisor__max_to_keep": 3,
}
SUMMARY_STEPS = [1, *range(50, STEPS + 1, 50)]
DISTURBED = ("once", "often", "again")  # the runs that must look like the undisturbed one


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    """The folder of all runs, which TensorBoard shows together."""
    return tmp_path_factory.mktemp("resume")


@pytest.fixture(scope="module")
def never(commands, parent):
    """Never disturbed."""
    logdir = parent / "never"
    assert_success(commands.train(logdir, **JOB))
    return logdir


@pytest.fixture(scope="module")
def once(commands, parent):
    """Killed in the middle, then finished: the logdir, the checkpoint's step at the kill, and both results."""
    logdir = parent / "once"
    first = _kill_after(commands.start_training(logdir, **JOB), logdir, STEPS // 2)
    step = current_step(logdir)
    second = assert_success(commands.train(logdir, **JOB))
    return types.SimpleNamespace(logdir=logdir, step=step, first=first, second=second)


@pytest.fixture(scope="module")
def often(commands, parent):
    """Killed at random moments, then finished: the logdir, the seed, and what each start left behind."""
    logdir = parent / "often"
    seed = int(os.environ.get("INTEROP_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    print(f"the kills follow INTEROP_SEED={seed}")
    rng = random.Random(seed)
    goals = sorted(rng.randrange(STEPS * 2 // 3) for _ in range(KILLS))
    starts = [_kill_at_random(commands, logdir, goal, rng) for goal in goals]
    last = assert_success(commands.train(logdir, **JOB))
    return types.SimpleNamespace(logdir=logdir, seed=seed, starts=starts, last=last)


@pytest.fixture(scope="module")
def again(commands, parent, never):
    """A finished run started once more: the logdir, what it held before, and the result."""
    logdir = parent / "again"
    shutil.copytree(never, logdir)
    before = contents(logdir)
    result = commands.train(logdir, **JOB)
    return types.SimpleNamespace(logdir=logdir, before=before, result=result)


@pytest.fixture(scope="module", params=LOADERS)
def board(request, parent, never, once, often, again):
    with TensorBoard(parent, request.param) as running:
        yield running


def test_resumes_at_the_last_checkpoint(once):
    assert 0 < once.step < STEPS
    assert restored_step(once.second) == once.step


def test_what_was_announced_is_there(once):
    assert max(announced_steps(once.first)) <= once.step, str(once.first)


def test_each_start_has_an_events_file_of_its_own(once):
    assert len(events.files(once.logdir)) == 2


@pytest.mark.parametrize("start", [0, 1])
def test_events_file_begins_with_version_and_start(once, start):
    version, log, *_ = events.read(events.files(once.logdir)[start])
    assert version.file_version == "brain.Event:2"
    assert log.session_log.status == events.SessionLog.START
    assert log.step == (once.step + 1 if start else 0)


def test_resumed_run_begins_after_the_restored_step(once):
    resumed = events.read(events.files(once.logdir)[1])
    assert min(e.step for e in resumed if e.summary.value) > once.step


def test_every_moment_was_a_kill(often):
    assert [s.result.code for s in often.starts] == [-9] * KILLS, f"INTEROP_SEED={often.seed}"


def test_no_announced_step_is_lost(often):
    """Whatever was announced as saved before a kill is what the next start resumes from, or older than that."""
    for number, start in enumerate(often.starts):
        announced = max(announced_steps(start.result), default=-1)
        assert start.step >= announced, f"INTEROP_SEED={often.seed}, kill {number}:\n{start.result}"


def test_each_start_goes_on_from_the_last_checkpoint(often):
    results = [s.result for s in often.starts[1:]] + [often.last]
    for number, (start, following) in enumerate(zip(often.starts, results)):
        step = restored_step(following)
        if step == 0 and start.step == -1:
            continue  # the first checkpoint was whole, and not yet named
        if step is not None:
            assert step == start.step, f"INTEROP_SEED={often.seed}, after kill {number}:\n{following}"


def test_killed_runs_end_with_the_same_bits(never, once, often):
    expected = checkpoints.latest(never)
    assert checkpoints.step_of(expected) == STEPS
    assert checkpoints.same_bits(expected, checkpoints.latest(once.logdir)) == []
    assert checkpoints.same_bits(expected, checkpoints.latest(often.logdir)) == [], f"INTEROP_SEED={often.seed}"


def test_killed_runs_keep_to_the_retention(once, often):
    for logdir in (once.logdir, often.logdir):
        assert len(list(logdir.glob("*.index"))) <= JOB["supervisor__max_to_keep"], contents(logdir).keys()


def test_kills_leave_no_temporary_files(often):
    left = [name for name in contents(often.logdir) if re.search(r"\.tmp|tempstate|_temp", name)]
    assert not left, f"INTEROP_SEED={often.seed}"


def test_complete_job_says_so(again):
    assert_success(again.result)
    assert re.search(r"\bcomplete\b", again.result.text), str(again.result)


def test_complete_job_changes_no_file(again):
    after = contents(again.logdir)
    assert {name: after.get(name) for name in again.before} == again.before


def test_board_lists_every_run(board):
    runs = {"never", *DISTURBED}
    assert set(board.runs()) == runs | {f"{run}/eval" for run in runs}


@pytest.mark.parametrize("run", DISTURBED)
def test_board_shows_the_undisturbed_evaluations(board, run):
    for tag in ("loss", "accuracy"):
        expected = [(step, value) for step, value, _ in board.scalars("never/eval", tag)]
        assert expected and [(step, value) for step, value, _ in board.scalars(f"{run}/eval", tag)] == expected


@pytest.mark.parametrize("tag", ["loss", "accuracy"])
@pytest.mark.parametrize("run", DISTURBED)
def test_board_shows_the_undisturbed_curve(board, never, run, tag):
    """No step lost, none twice, none of the points that the killed run had beyond its last checkpoint."""
    written = events.scalars(events.read_dir(never))[tag]
    expected = [(step, value) for step, value, _ in written]
    assert [step for step, _ in expected] == SUMMARY_STEPS
    assert [(step, value) for step, value, _ in board.scalars(run, tag)] == expected


@pytest.mark.parametrize("run", DISTURBED)
def test_board_shows_every_curve_strictly_increasing(board, run):
    for tag in board.scalar_tags()[run]:
        steps = [step for step, _, _ in board.scalars(run, tag)]
        assert steps == sorted(set(steps)), tag


def test_board_shows_the_graph_of_every_run(board):
    assert board.runs_with_graph() == {"never", *DISTURBED}


def restored_step(result):
    """The step that a start says it resumes from; None when it was killed before it could say so."""
    found = re.search(r"\brestored\b.*\bstep=(\d+)", result.text)
    return int(found[1]) if found else None


def _kill_after(process, logdir, step):
    process.wait_until(lambda: current_step(logdir) >= step, f"checkpoint at step {step}")
    return assert_killed(process)


def _kill_at_random(commands, logdir, goal, rng):
    """Kills a run a random while after it has saved the step goal, or, one time in four, while it starts."""
    process = commands.start_training(logdir, **JOB)
    if rng.random() < 0.25:
        time.sleep(rng.uniform(0, 0.2))
    else:
        process.wait_until(lambda: current_step(logdir) >= goal, f"checkpoint at step {goal}")
        time.sleep(rng.uniform(0, 0.03))
    result = assert_killed(process)
    return types.SimpleNamespace(result=result, step=current_step(logdir))


def assert_killed(process):
    result = process.kill()
    assert_no_crash(result)
    return result
