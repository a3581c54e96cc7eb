"""Two jobs on the same servers, which have one variable of a name: each must end with its own model."""

import signal
import time

from harness import checkpoints
from harness.commands import assert_success
from harness.logdirs import current_step, steps_shown
from harness.replica import Replica

WAITS = "waiting for another run that trains its model on the same servers"


def wait_for_step(process, step):
    process.wait_until(lambda: max(steps_shown(process.text), default=-1) >= step, f"step {step}")


def final(job):
    prefix = checkpoints.latest(job.logdir)
    return prefix, checkpoints.variables(prefix)["global_step"]


def test_the_second_waits_for_the_first(cluster, commands, tmp_path):
    jobs = [Replica(cluster, commands, tmp_path / name) for name in ("first", "second", "alone")]
    settings = {"cluster__workers": 1, "data__seed": 7}
    first = jobs[0](**settings, train__steps=2000)
    wait_for_step(first, 100)
    second = jobs[1](**settings, train__steps=200)
    second.wait_until(lambda: WAITS in second.text, "word of the other run")
    assert first.running and not steps_shown(second.text)
    for process in first, second:
        assert_success(process.wait())
    assert_success(jobs[2](**settings, train__steps=200).wait())
    assert [final(job)[1] for job in jobs] == [2000, 200, 200]
    assert not checkpoints.same_bits(final(jobs[1])[0], final(jobs[2])[0])


def test_a_job_whose_model_was_replaced_saves_no_other(cluster, commands, tmp_path):
    """The chief of the first is frozen for so long that the second takes the servers."""
    jobs = [Replica(cluster, commands, tmp_path / name) for name in ("first", "second", "alone")]
    settings = {"cluster__workers": 1, "data__seed": 7, "supervisor__save_model_steps": 50}
    first = jobs[0](**settings, train__steps=1000)
    first.wait_until(lambda: current_step(jobs[0].logdir) >= 500, "checkpoint of step 500")
    first.signal(signal.SIGSTOP)
    second = jobs[1](**settings, train__steps=1500)
    wait_for_step(second, 100)
    first.signal(signal.SIGCONT)
    for process in first, second:
        assert_success(process.wait())
    assert "another run has put its model on the servers" in first.text
    assert_success(jobs[2](**settings, train__steps=1000).wait())
    ends = [final(job)[1] for job in jobs]
    assert ends[0] == ends[2] == 1000 and 1500 <= ends[1] <= 1501  # with the step in which the first was frozen
    assert not checkpoints.same_bits(final(jobs[0])[0], final(jobs[2])[0])


def test_a_paused_job_keeps_its_servers(cluster, commands, tmp_path):
    """It makes no step for longer than servers of a job that has ended are left alone."""
    jobs = [Replica(cluster, commands, tmp_path / name) for name in ("first", "second", "alone")]
    settings = {"cluster__workers": 1, "data__seed": 7}
    first = jobs[0](**settings, train__steps=2000)
    wait_for_step(first, 100)
    assert_success(commands.run("trainerd", "pause", jobs[0].logdir))
    second = jobs[1](**settings, train__steps=200)
    second.wait_until(lambda: WAITS in second.text, "word of the other run")
    time.sleep(15)
    assert first.running and not steps_shown(second.text)
    assert_success(commands.run("trainerd", "resume", jobs[0].logdir))
    for process in first, second:
        assert_success(process.wait())
    assert_success(jobs[2](**settings, train__steps=2000).wait())
    assert not checkpoints.same_bits(final(jobs[0])[0], final(jobs[2])[0])


def test_of_two_jobs_that_start_together_one_waits(cluster, commands, tmp_path):
    jobs = [Replica(cluster, commands, tmp_path / name) for name in ("first", "second", "alone")]
    settings = {"cluster__workers": 1, "data__seed": 7, "train__steps": 500}
    for process in [job(**settings) for job in jobs[:2]]:
        assert_success(process.wait())
    assert_success(jobs[2](**settings).wait())
    ends = [final(job) for job in jobs]
    assert [step for _, step in ends] == [500] * 3
    assert not any(checkpoints.same_bits(prefix, ends[2][0]) for prefix, _ in ends[:2])
