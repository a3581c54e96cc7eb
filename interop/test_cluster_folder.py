"""Servers that save, and a logdir that is deleted under them: one checkpoint is kept, and there is always one again."""

import contextlib
import shutil
import signal
import time

from harness import checkpoints
from harness.commands import assert_success
from harness.logdirs import announced_steps, current_step


def delete(folder):
    """Deletes a folder in which others write meanwhile."""
    while folder.exists():
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)


def test_a_folder_that_is_deleted_while_servers_save(replica):
    settings = {"cluster__checkpoint_via": "server", "supervisor__max_to_keep": 1, "supervisor__save_model_steps": 5}
    chief, worker = replica(0, **settings), replica(1, **settings)
    saved = 0
    for moment in range(6):
        chief.wait_until(lambda: current_step(replica.logdir) > saved, f"a checkpoint after step {saved}")
        time.sleep(moment / 50)
        saved = max(announced_steps(chief), default=saved)
        delete(replica.logdir)
    chief.wait_until(lambda: current_step(replica.logdir) > saved, f"a checkpoint after step {saved}")
    assert chief.running and worker.running
    for process in (worker, chief):
        process.signal(signal.SIGTERM)
    result, _ = assert_success(chief.wait()), assert_success(worker.wait())
    assert len(list(replica.logdir.glob("model.ckpt-*.index"))) == 1, sorted(replica.logdir.iterdir())
    with checkpoints.Model(checkpoints.latest(replica.logdir)) as model:
        assert model.step() >= announced_steps(result)[-1]
