"""A loop in plain PyTorch, with every kind of state, all of it resumed."""

import math
import os
import time

import numpy
import torch

LOGDIR = os.environ["TRAINERD_LOGDIR"]
CHECKPOINT = os.environ.get("TRAINERD_CHECKPOINT")
STEPS = int(os.environ["TRAINERD_STEPS"])
SEED = 7
torch.set_num_threads(1)
torch.manual_seed(1)
noise = numpy.random.default_rng(3)
data = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 0.5 * (1 + math.cos(math.pi * n / 100)))
scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=7)
ema = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
step, best_score = 0, 0.0


def save(name):
    state = {
        "step": step, "best_score": best_score, "net": net.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
        "scaler": scaler.state_dict(), "ema": ema.state_dict(), "torch_rng": torch.get_rng_state(), "noise_rng": noise.bit_generator.state,
    }
    torch.save(state, name + ".tmp")
    os.replace(name + ".tmp", name)


if CHECKPOINT:
    saved = torch.load(CHECKPOINT, weights_only=False)
    step = saved["step"]
    best_score = saved["best_score"]
    net.load_state_dict(saved["net"])
    optimizer.load_state_dict(saved["optimizer"])
    scheduler.load_state_dict(saved["scheduler"])
    scaler.load_state_dict(saved["scaler"])
    ema.load_state_dict(saved["ema"])
    torch.set_rng_state(saved["torch_rng"])
    noise.bit_generator.state = saved["noise_rng"]

while step < STEPS:
    epoch, index = divmod(step, 8)
    order = torch.randperm(64, generator=torch.Generator().manual_seed(SEED + epoch))
    batch = data[order[8 * index : 8 * index + 8]]
    x = batch + 0.05 * torch.from_numpy(noise.normal(size=tuple(batch.shape)).astype("float32"))
    loss = torch.nn.functional.mse_loss(net(x)[:, 0], batch.sum(1))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    ema.update_parameters(net)
    step += 1
    best_score = max(best_score, loss.item() % 1)
    print(f"step {step} loss {loss.item():.7f}", flush=True)
    time.sleep(float(os.environ.get("PAUSE", "0.02")))
    if step % 5 == 0:
        save(os.path.join(LOGDIR, f"ckpt-{step}.pt"))
