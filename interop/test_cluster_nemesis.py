"""A training on TensorFlow's servers continues by itself, no matter which process is killed or frozen.

Nothing announced is lost, and no log is silent for more than 30 s. INTEROP_NEMESIS=long tries every combination and
random sequences (half an hour); INTEROP_SEED plays one of them again.
"""

import functools
import itertools
import os
import random

import pytest
from harness.nemesis import CHIEF, DEEDS, WORKER, Blow, Nemesis, choose
from test_cluster_jobs import synchronous_jobs

LONG = os.environ.get("INTEROP_NEMESIS") == "long"
SEED = int(os.environ.get("INTEROP_SEED") or random.SystemRandom().randrange(1, 1 << 32))
SYNC, CLIENT = {"cluster__sync": "true"}, {"cluster__checkpoint_via": "client"}
MODES = {"sync": SYNC, "async": {}, "sync-client": SYNC | CLIENT, "async-client": CLIENT, "exported": {"train__eval_steps": None}}


@pytest.fixture(scope="module", autouse=True)
def memory(servers):
    """No test after these needs the servers."""
    yield
    servers.rest()


@pytest.fixture
def suffer(replica, cluster, commands, tmp_path):
    """Lets a training suffer blows, which are made for its victims."""

    def run(mode, blows):
        configs = synchronous_jobs(tmp_path) if mode == "exported" else None
        nemesis = Nemesis(replica, cluster, commands, configs, **MODES[mode])
        nemesis.await_progress(0)
        for blow in blows(nemesis.victims):
            took = nemesis.strike(blow)
            print(f"{mode}: {blow}: a save and steps of both workers after {took:.1f} s", flush=True)
        nemesis.end()
        return nemesis

    return run


@pytest.mark.parametrize("task", [0, 1])
def test_a_synchronous_workers_server_that_is_killed(suffer, task):
    """What the server held for its worker alone is made again; no step of the model is lost."""
    nemesis = suffer("sync", lambda _: [Blow("kill", (("worker", task),), 0.1)])
    chief = nemesis.lives[0].process.text
    assert "restored checkpoint" not in chief and "msg=restored " not in chief
    assert ("the model is alive" in chief) == (task == 0)


@pytest.mark.parametrize("seed", [3, SEED] if LONG else [3])
def test_random_blows(suffer, seed):
    print(f"the blows follow INTEROP_SEED={seed}", flush=True)
    mode = sorted(MODES)[seed % len(MODES)]
    suffer(mode, functools.partial(choose, seed, 12 if LONG else 2, 45 if LONG else 2))


if LONG:

    @pytest.mark.parametrize("deed", DEEDS)
    @pytest.mark.parametrize("mode", MODES)
    def test_each_blow(suffer, mode, deed):
        """One victim for a moment, and for longer than any log may be silent; and two at the same time."""
        pairs = [(CHIEF, WORKER), (CHIEF, ("worker", 0)), (("ps", 0), CHIEF), (("worker", 0), ("worker", 1))]

        def blows(victims):
            alone = itertools.product(victims, (0.2, 5 if deed == "kill" else 33))
            return [*(Blow(deed, (v,), pause) for v, pause in alone), *(Blow(deed, pair, 3) for pair in pairs)]

        suffer(mode, blows)
