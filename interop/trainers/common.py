"""What the trainers share: where they save, and the digest of what they end with."""

import hashlib
import os
import time

LOGDIR = os.environ.get("TRAINERD_LOGDIR", ".")
CHECKPOINT = os.environ.get("TRAINERD_CHECKPOINT")
STEPS = int(os.environ.get("TRAINERD_STEPS", "120"))


def path(name):
    return os.path.join(LOGDIR, name)


def pause():
    """Makes a step take as long as one of a training that is worth killing."""
    time.sleep(float(os.environ.get("PAUSE", "0.02")))


def finish(arrays):
    """Writes the digest of the arrays that a training ends with."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    with open(path("final.txt"), "w") as file:
        file.write(digest.hexdigest())
