"""NumPy: a loop of its own, which saves in place and picks its newest checkpoint by itself."""

import glob
import re

import numpy as np
from common import STEPS, finish, path, pause

w, m, step = np.zeros((64, 64)), np.zeros((64, 64)), 0
saved = {int(re.search(r"-(\d+)\.npz$", name).group(1)): name for name in glob.glob(path("state-*.npz"))}
if saved:
    step = max(saved)
    with np.load(saved[step]) as state:
        w, m = state["w"], state["m"]
while step < STEPS:
    step += 1
    x = np.random.default_rng(step).normal(size=(16, 64))
    error = x @ w - x[:, ::-1]
    m = 0.9 * m + x.T @ error / 16
    w = w - 0.01 * m
    print(f"Iteration {step} - loss: {np.mean(error**2):.6f}", flush=True)
    pause()
    if step % 10 == 0:
        np.savez(path(f"state-{step}.npz"), w=w, m=m, padding=np.zeros(1 << 18))
finish([w])
