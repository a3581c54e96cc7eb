"""Fits a line to points by gradient descent, in plain Python, for trainerd to keep alive: see README.md."""

import json
import os
import random
import signal
import time

logdir = os.environ.get("TRAINERD_LOGDIR", ".")
steps = int(os.environ.get("TRAINERD_STEPS", "200"))
state = {"step": 0, "slope": 0.0, "offset": 0.0}

if "TRAINERD_CHECKPOINT" in os.environ:  # go on where the last start has saved
    with open(os.environ["TRAINERD_CHECKPOINT"]) as file:
        state = json.load(file)

stopping = False


def stop(number, frame):  # trainerd asks to stop: finish the step, save, and end
    global stopping
    stopping = True


def save():
    path = os.path.join(logdir, f"ckpt-{state['step']}.json")
    with open(path + ".tmp", "w") as file:  # nobody ever sees half a checkpoint
        json.dump(state, file)
    os.replace(path + ".tmp", path)


signal.signal(signal.SIGTERM, stop)
while state["step"] < steps and not stopping:
    batch = random.Random(state["step"])  # the same batch for the same step
    x = batch.uniform(-1, 1)
    error = state["slope"] * x + state["offset"] - (3 * x - 1)
    state = {"step": state["step"] + 1, "slope": state["slope"] - 0.1 * error * x, "offset": state["offset"] - 0.1 * error}
    print(json.dumps({"step": state["step"], "loss": error**2, "slope": state["slope"]}))
    if state["step"] % 20 == 0:
        save()
    time.sleep(float(os.environ.get("PAUSE", "0")))
save()
