"""Plain PyTorch: writes ckpt-N.pt under another name, renames it, keeps two, and resumes from the newest."""

import os
import time

from race import EVERY, LOGDIR, STEPS, checkpoints, done, finish

import torch
from torch_model import make_model, make_optimizer, train_step, weights

PATTERN = r"ckpt-(\d+)\.pt"
model = make_model()
optimizer = make_optimizer(model)
step = 0
newest = os.environ.get("TRAINERD_CHECKPOINT") or next(reversed(checkpoints(PATTERN)), None)
if newest:
    saved = torch.load(newest, weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    step = saved["step"]
    del saved
while step < STEPS:
    begin = time.time()
    step += 1
    train_step(model, optimizer, step)
    done(step, begin)
    if step % EVERY == 0:
        name = os.path.join(LOGDIR, f"ckpt-{step}.pt")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, name + ".tmp")
        os.replace(name + ".tmp", name)
        if "TRAINERD_LOGDIR" not in os.environ:
            for old in checkpoints(PATTERN)[:-2]:
                os.remove(old)
finish(weights(model))
