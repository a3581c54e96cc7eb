"""A trainer from PyPI, real Keras, is killed under trainerd, which knows its lines and its checkpoints by a recipe.

`make trainers` does this to twelve trainers, and more often.
"""

import os
import re
import signal
import sys

import pytest
from harness.commands import REPO, assert_success
from harness.tensorboard import LOADERS, TensorBoard

SCRIPT = REPO / "interop" / "trainers" / "keras_fit.py"
EPOCHS = 30


@pytest.fixture(scope="module")
def keras_runs(commands, tmp_path_factory):
    """The logdirs of a run that is not disturbed, and of one that is killed once."""
    folder = tmp_path_factory.mktemp("keras")
    settings = ["child.recipe=keras", f"train.steps={EPOCHS}", "child.backoff_secs=0.05", "supervisor.max_to_keep=3"]
    words = [word for setting in settings for word in ("--set", setting)]
    program = ["--", "env", f"PYTHONPATH={SCRIPT.parent}", "PAUSE=0.05", sys.executable, SCRIPT]
    assert_success(commands.run("trainerd", "run", "--logdir", folder / "whole", *words, *program, timeout=300))
    process = commands.start("trainerd", "run", "--logdir", folder / "killed", *words, *program)
    process.wait_until(lambda: re.search(r"ckpt-01\d\.keras", process.text), "a checkpoint")
    os.killpg(int(re.search(r"msg=started pid=(\d+)", process.text).group(1)), signal.SIGKILL)
    assert_success(process.wait(200))
    return folder / "whole", folder / "killed"


def test_the_end_has_the_same_bits(keras_runs):
    whole, killed = keras_runs
    assert (killed / "final.txt").read_text() == (whole / "final.txt").read_text()


@pytest.mark.parametrize("loader", LOADERS)
def test_tensorboard_shows_each_epoch_once(keras_runs, loader):
    with TensorBoard(keras_runs[1], loader) as board:
        shown = [point[0] for point in board.scalars(".", "loss")]
        assert shown == sorted(set(shown)) and shown[0] == 1 and shown[-1] == EPOCHS
        # Keras saves before it prints, so that a kill in between takes the line of an epoch that is not done again.
        assert len(shown) >= EPOCHS - 1
