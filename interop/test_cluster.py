"""A job on TensorFlow's own distributed runtime, whose parameter server, chief and worker are killed in turn."""

import re
import signal
import time

import pytest
from harness import checkpoints
from harness.commands import assert_success
from harness.logdirs import announced_steps, current_step, steps_shown
from harness.tensorboard import LOADERS, TensorBoard


def wait_for_step(process, step):
    process.wait_until(lambda: max(steps_shown(process.text), default=-1) >= step, f"step {step}")


def wait_for_save(process, logdir, step):
    process.wait_until(lambda: current_step(logdir) >= step, f"checkpoint of step {step}")


@pytest.mark.parametrize("via", ["server", "client"])
def test_two_workers_train_one_model(replica, via):
    settings = {"train__steps": 400, "cluster__checkpoint_via": via}
    worker = replica(1, **settings)
    worker.wait_until(lambda: "waiting for the chief" in worker.text, "word of the chief")
    chief = replica(0, **settings)
    results = [assert_success(p.wait()) for p in (chief, worker)]
    prefix = checkpoints.latest(replica.logdir)
    saved = checkpoints.variables(prefix)
    assert 400 <= saved["global_step"] <= 401  # the other worker may be one step ahead
    with checkpoints.Model(prefix) as model:
        assert model.step() == saved["global_step"]
    assert float(re.search(r"test accuracy: (\d\.\d+)", results[0].out)[1]) > 0.9
    # Both did their share: neither could have made all the steps.
    assert all(len(set(steps_shown(p.text))) > 0 for p in (chief, worker))


def test_a_worker_that_is_killed_comes_back(replica):
    chief, worker = replica(0), replica(1)
    wait_for_step(worker, 1)
    worker.kill()
    began = time.monotonic()
    again = replica(1)
    wait_for_step(again, max(steps_shown(chief.text)) + 1)
    print(f"a killed worker: training continues after {time.monotonic() - began:.1f} s")
    assert chief.running


def test_a_chief_that_is_killed_finds_the_model_alive(replica):
    chief = replica(0, supervisor__save_model_steps=100)
    wait_for_save(chief, replica.logdir, 100)
    wait_for_step(chief, 120)
    reached = max(steps_shown(chief.text))
    chief.kill()
    began = time.monotonic()
    again = replica(0, supervisor__save_model_steps=100)
    wait_for_step(again, reached + 1)
    print(f"a killed chief: training continues after {time.monotonic() - began:.1f} s")
    assert "the model is alive, and continues as it is" in again.text
    resumed = int(re.search(r"restored; training continues.*?\bstep=(\d+)", again.text)[1])
    assert resumed >= reached, "steps were lost though the servers had them"


def test_another_runs_model_is_not_taken_over(replica, cluster, commands, tmp_path):
    """The servers still have a model of a run with another logdir, in variables of the same names."""
    first = replica(0)
    wait_for_step(first, 20)
    first.kill()
    other = tmp_path / "other"
    result = assert_success(commands.train(
        other, master=cluster.target(0), cluster__ps_tasks=1, train__steps=5, supervisor__save_model_steps=1))
    assert "training from the beginning" in result.text
    assert announced_steps(result)[-1] == 5


def test_a_parameter_server_that_is_lost(replica, cluster):
    """The chief puts the last checkpoint into its successor, the worker waits for that; then both go on."""
    chief, worker = replica(0), replica(1)
    wait_for_save(chief, replica.logdir, 100)
    wait_for_step(worker, 1)
    cluster.kill("ps", 0)
    chief.wait_until(lambda: "session was lost" in chief.text, "word of the loss")
    saved = current_step(replica.logdir)
    began = time.monotonic()
    cluster.start("ps", 0)
    back = time.monotonic()
    wait_for_save(chief, replica.logdir, saved + 50)
    print(f"a killed parameter server: back after {back - began:.1f} s, a new checkpoint {time.monotonic() - back:.1f} s later")
    resumed = [int(step) for step in re.findall(r"restored; training continues.*?\bstep=(\d+)", chief.text)]
    assert resumed and resumed[-1] >= saved
    before = max(steps_shown(worker.text))
    wait_for_step(worker, max(before, current_step(replica.logdir)) + 1)
    assert chief.running and worker.running


def test_a_workers_server_that_is_lost(replica, cluster):
    """The model is on the parameter server: a new session finds it alive. The other worker continues meanwhile."""
    chief, worker = replica(0), replica(1)
    wait_for_save(chief, replica.logdir, 50)
    wait_for_step(worker, 1)
    reached = max(steps_shown(chief.text))
    cluster.kill("worker", 0)
    chief.wait_until(lambda: "session was lost" in chief.text, "word of the loss")
    wait_for_step(worker, max(steps_shown(worker.text)) + 1)
    cluster.start("worker", 0)
    began = time.monotonic()
    wait_for_step(chief, max(steps_shown(worker.text)) + 1)
    print(f"a killed worker's server: training continues {time.monotonic() - began:.1f} s after it is back")
    assert "the model is alive, and continues as it is" in chief.text
    resumed = [int(step) for step in re.findall(r"restored; training continues.*?\bstep=(\d+)", chief.text)]
    assert resumed[-1] >= reached, "steps were lost though the parameter server had them"
    assert worker.running


def test_synchronous_workers_survive_the_chief_and_the_parameter_server(replica, cluster):
    settings = {"cluster__sync": "true"}
    chief, worker = replica(0, **settings), replica(1, **settings)
    wait_for_save(chief, replica.logdir, 50)
    chief.kill()
    reached = current_step(replica.logdir)
    began = time.monotonic()
    chief = replica(0, **settings)
    wait_for_save(chief, replica.logdir, reached + 50)
    print(f"a killed chief of synchronous workers: a new checkpoint after {time.monotonic() - began:.1f} s")
    assert "the model is alive, and continues as it is" in chief.text
    cluster.kill("ps", 0)
    chief.wait_until(lambda: "session was lost" in chief.text, "word of the loss")
    saved = current_step(replica.logdir)
    cluster.start("ps", 0)
    began = time.monotonic()
    wait_for_save(chief, replica.logdir, saved + 50)
    print(f"a killed parameter server of synchronous workers: a new checkpoint {time.monotonic() - began:.1f} s after it is back")
    assert chief.running and worker.running


def test_servers_that_stay_away(replica, cluster, commands, tmp_path):
    """Nobody waits in silence, nor for ever."""
    result = commands.train(tmp_path / "nobody", master="grpc://127.0.0.1:1", cluster__patience_secs=7)
    assert result.code != 0
    assert "waiting for the servers to answer" in result.text and "127.0.0.1:1" in result.text
    worker = replica(1, cluster__patience_secs=15, model__hidden="[7]", cluster__task=1)
    worker.wait_until(lambda: "waiting for the chief" in worker.text, "word of the wait")
    status = assert_success(commands.run("trainerd", "status", "--worker", "1", replica.logdir))
    assert re.search(r"preparing, .* waits for the chief: .*has not made the model of the logdir", status.out)
    result = worker.wait()
    assert result.code != 0 and "is the chief running?" in result.text


def test_a_server_that_is_frozen(replica, cluster):
    """It breaks no connection and answers nothing; the error says which one it is."""
    chief = replica(0, cluster__patience_secs=6, cluster__workers=1)
    wait_for_save(chief, replica.logdir, 50)
    cluster.signal("ps", 0, signal.SIGSTOP)
    try:
        result = chief.wait()
    finally:
        cluster.signal("ps", 0, signal.SIGCONT)
    assert result.code != 0
    assert re.search("has not ended within 6s: no answer from /job:ps/task:0; check it", result.err), str(result)


@pytest.fixture(scope="module")
def moved(servers, commands, tmp_path_factory):
    """One run that began in its own process, went on on servers, and came back."""
    logdir = tmp_path_factory.mktemp("moved") / "logdir"
    servers.mend()
    job = {"supervisor__save_model_steps": 50, "supervisor__save_summaries_steps": 10}
    assert_success(commands.train(logdir, train__steps=100, **job))
    assert_success(commands.train(
        logdir, train__steps=200, master=servers.target(0), cluster__ps_tasks=1, **job))
    assert_success(commands.train(logdir, train__steps=300, **job))
    return logdir


@pytest.mark.parametrize("loader", LOADERS)
def test_a_run_that_moves_is_one_curve(moved, loader):
    with TensorBoard(moved, loader) as board:
        for tag in ("loss", "accuracy"):
            steps = [step for step, _, _ in board.scalars(".", tag)]
            assert steps == [1, *range(10, 301, 10)]


def test_a_run_that_moves_loses_nothing(moved, commands, tmp_path):
    """Its variables are what training in one place gives, as far as two runtimes round alike."""
    logdir = tmp_path / "still"
    assert_success(commands.train(logdir, train__steps=300))
    here, there = (checkpoints.variables(checkpoints.latest(d)) for d in (logdir, moved))
    assert set(here) == set(there)
    for name, value in here.items():
        assert abs(value - there[name]).max() < 1e-3, name


def test_a_warm_started_training_that_loses_its_parameter_server(replica, cluster, commands, tmp_path):
    """It begins with the weights of another run, once: the successor of the server gets those of the last checkpoint."""
    source = tmp_path / "source"
    assert_success(commands.train(source, train__steps=200))
    settings = {"warm_start__from": source, "cluster__checkpoint_via": "client", "supervisor__max_to_keep": 0}
    chief, worker = replica(0, **settings), replica(1, **settings)
    wait_for_save(chief, replica.logdir, 50)
    cluster.kill("ps", 0)
    chief.wait_until(lambda: "session was lost" in chief.text, "word of the loss")
    saved = current_step(replica.logdir)
    cluster.start("ps", 0)
    wait_for_save(chief, replica.logdir, saved + 50)
    assert chief.running and worker.running
    assert chief.text.count('msg="warm start"') == 1, chief.text
    first, before = checkpoints.variables(replica.logdir / "model.ckpt-0"), checkpoints.variables(checkpoints.latest(source))
    for name in ("hidden/kernel", "hidden/bias", "logits/kernel", "logits/bias"):
        assert (first[name] == before[name]).all(), name
