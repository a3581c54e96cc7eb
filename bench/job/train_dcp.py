"""A worker of torchrun with torch.distributed.checkpoint: folders ckpt-N, whole once they have .metadata."""

import os
import shutil
import time

from race import EVERY, LOGDIR, STEPS, checkpoints, done, finish

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch_model import make_model, make_optimizer, train_step, weights

PATTERN = r"ckpt-(\d+)"
torch.distributed.init_process_group("gloo")
model = make_model()
optimizer = make_optimizer(model)


def state():
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments}


step = 0
whole = [name for name in checkpoints(PATTERN) if os.path.exists(os.path.join(name, ".metadata"))]
if whole:
    saved = state()
    dcp.load(saved, checkpoint_id=whole[-1])
    set_state_dict(model, optimizer, model_state_dict=saved["model"], optim_state_dict=saved["optimizer"])
    step = int(whole[-1].rpartition("-")[2])
while step < STEPS:
    begin = time.time()
    step += 1
    train_step(model, optimizer, step)
    done(step, begin)
    if step % EVERY == 0:
        dcp.save(state(), checkpoint_id=os.path.join(LOGDIR, f"ckpt-{step}"))
        for old in checkpoints(PATTERN)[:-2]:
            shutil.rmtree(old)
finish(weights(model))
torch.distributed.destroy_process_group()
