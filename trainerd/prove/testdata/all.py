"""A training with every kind of state, in plain Python. BUG names what it does not resume."""

import json
import math
import os
import random
import signal
import sys
import time

BUG = os.environ.get("BUG", "")
logdir = os.environ["TRAINERD_LOGDIR"]
steps = int(os.environ.get("TRAINERD_STEPS", "120"))
EPOCH = 16  # steps of an epoch
DIM = 4

data = [[random.Random(i).uniform(-1, 1) for _ in range(DIM)] for i in range(EPOCH)]
noise, dropout = random.Random(1), random.Random(2)


def order_of(seed, epoch):
    order = list(range(EPOCH))
    random.Random(seed * 1000 + epoch).shuffle(order)
    return order


state = {
    "step": 0, "w": [0.1] * DIM, "m": [0.0] * DIM, "v": [0.0] * DIM, "t": 0, "ema": [0.1] * DIM, "scaler": {"scale": 4.0, "good": 0},
    "sched": 0, "best": {"loss": 1e9, "step": 0}, "cursor": 0, "shuffle_seed": 7, "epoch": 0,
    "rng": noise.getstate(), "dropout_rng": dropout.getstate(),
}


def tuples(x):
    return tuple(tuples(y) for y in x) if isinstance(x, list) else x


if "TRAINERD_CHECKPOINT" in os.environ:
    fresh = dict(state)
    with open(os.environ["TRAINERD_CHECKPOINT"]) as file:
        state = json.load(file)
    lost = {
        "random state": ["rng"], "data order": ["cursor"], "schedule": ["sched"], "moments": ["m", "v", "t"], "ema": [], "best": ["best"],
        "scaler": ["scaler"], "dropout": ["dropout_rng"], "shuffle": [], "": [], "off by one": [],
    }[BUG]
    for name in lost:
        state[name] = fresh[name]
    if BUG == "ema":
        state["ema"] = list(state["w"])
    if BUG == "shuffle":
        state["shuffle_seed"] += 1
    if BUG == "off by one":
        state["step"] -= 1
    noise.setstate(tuples(json.loads(json.dumps(state["rng"]))))
    dropout.setstate(tuples(json.loads(json.dumps(state["dropout_rng"]))))

stopping = []
signal.signal(signal.SIGTERM, lambda *_: stopping.append(1))


def save():
    state["rng"], state["dropout_rng"] = noise.getstate(), dropout.getstate()
    path = os.path.join(logdir, f"ckpt-{state['step']}.json")
    with open(path + ".tmp", "w") as file:
        json.dump(state, file)
    os.replace(path + ".tmp", path)


while state["step"] < steps and not stopping:
    s = state
    s["step"] += 1
    if s["cursor"] == EPOCH:
        s["cursor"], s["epoch"] = 0, s["epoch"] + 1
    x = data[order_of(s["shuffle_seed"], s["epoch"])[s["cursor"]]]
    s["cursor"] += 1
    x = [a + 0.05 * noise.gauss(0, 1) for a in x]
    keep = [0.0 if dropout.random() < 0.2 else 1.25 for _ in x]
    y = sum(a * b for a, b in zip(x, [1, -2, 3, 0.5]))
    error = sum(w * a * k for w, a, k in zip(s["w"], x, keep)) - y
    s["sched"] += 1
    lr = 0.05 * 0.5 * (1 + math.cos(math.pi * min(s["sched"] / 200, 1)))
    s["scaler"]["good"] += 1
    if s["scaler"]["good"] == 30:
        s["scaler"] = {"scale": s["scaler"]["scale"] * 2, "good": 0}
    s["t"] += 1
    for i in range(DIM):
        g = error * x[i] * keep[i]
        s["m"][i] = 0.9 * s["m"][i] + 0.1 * g
        s["v"][i] = 0.99 * s["v"][i] + 0.01 * g * g
        s["w"][i] -= lr * (s["m"][i] / (1 - 0.9 ** s["t"])) / (math.sqrt(s["v"][i] / (1 - 0.99 ** s["t"])) + 1e-8)
        s["ema"][i] = 0.95 * s["ema"][i] + 0.05 * s["w"][i]
    loss = error * error
    if loss < s["best"]["loss"]:
        s["best"] = {"loss": loss, "step": s["step"]}
    print(json.dumps({"step": s["step"], "loss": loss, "lr": lr, "time": time.time()}), flush=True)
    time.sleep(float(os.environ.get("PAUSE", "0.002")))
    if s["step"] % 15 == 0:
        save()
if state["step"] % 15:
    save()
