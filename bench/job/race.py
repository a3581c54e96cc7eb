"""What the programs of the race share: their task and the journal from which a run is judged."""

import hashlib
import os
import re
import time

LOGDIR = os.environ["RACE_LOGDIR"]
STEPS = int(os.environ["RACE_STEPS"])
EVERY = int(os.environ["RACE_EVERY"])  # steps between two checkpoints
WIDTH = int(os.environ["RACE_WIDTH"])  # of the two hidden layers
BATCH = 16

# A line is one write, so a kill leaves it whole or not at all.
_journal = open(os.environ["RACE_JOURNAL"], "a", buffering=1)


def note(*words):
    _journal.write(" ".join(map(str, words)) + "\n")


note("start", os.getpid(), time.time())


def done(step, begin):
    """Notes a step that began at that time, and lets a supervisor know."""
    note("step", step, begin, time.time())
    print(f"step={step}", flush=True)


def finish(arrays):
    """Notes the digest of the arrays that the training ends with."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    note("end", digest.hexdigest())


def checkpoints(pattern):
    """Returns the names in the logdir that match, with the step as their group, oldest first."""
    found = [(int(m.group(1)), name) for name in os.listdir(LOGDIR) if (m := re.fullmatch(pattern, name))]
    return [os.path.join(LOGDIR, name) for _, name in sorted(found)]
