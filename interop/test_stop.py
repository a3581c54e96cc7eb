"""SIGTERM and SIGINT end a run well: a final checkpoint, exit code 0, and the next start resumes from there."""

import re
import signal
import types

import pytest
from harness import checkpoints, events
from harness.commands import assert_success
from harness.logdirs import announced_steps, current_step

# Far more steps than the test waits for; saves so rare that the last checkpoint can only be the final one.
ENDLESS = {"train__steps": 50_000_000, "supervisor__save_model_secs": 600, "supervisor__save_summaries_steps": 200}


@pytest.fixture(scope="module", params=[signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name)
def stopped(request, commands, tmp_path_factory):
    """A run that was told to stop: its logdir and its result."""
    logdir = tmp_path_factory.mktemp("stopped") / "logdir"
    process = commands.start_training(logdir, **ENDLESS)
    process.wait_until(lambda: current_step(logdir) >= 0 and _has_trained(process), "training")
    process.signal(request.param)
    return types.SimpleNamespace(logdir=logdir, result=process.wait())


def test_exit_code_is_0(stopped):
    assert_success(stopped.result)


def test_final_checkpoint_is_saved(stopped):
    step = current_step(stopped.logdir)
    assert step > 0, str(stopped.result)
    assert announced_steps(stopped.result)[-1] == step, str(stopped.result)
    assert checkpoints.variables(checkpoints.latest(stopped.logdir))["global_step"] == step


def test_events_file_ends_with_stop(stopped):
    *_, last = events.read_dir(stopped.logdir)
    assert last.session_log.status == events.SessionLog.STOP


def test_next_start_goes_on(commands, stopped):
    before = current_step(stopped.logdir)
    after = before + 100
    assert_success(commands.train(stopped.logdir, **{**ENDLESS, "train__steps": after}))
    assert current_step(stopped.logdir) == after


def _has_trained(process):
    """The log has its first line about the training itself, so that steps were made."""
    return re.search(r"msg=training\b.*\bstep=[1-9]", process.text)
