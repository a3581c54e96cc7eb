"""A loop with accelerate, with every kind of state, all of it resumed."""

import json
import math
import os
import time

import numpy
import torch
from accelerate import Accelerator, skip_first_batches

LOGDIR = os.environ["TRAINERD_LOGDIR"]
CHECKPOINT = os.environ.get("TRAINERD_CHECKPOINT")
STEPS = int(os.environ["TRAINERD_STEPS"])
SEED = 7
torch.set_num_threads(1)
torch.manual_seed(1)
accelerator = Accelerator(cpu=True)
data = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))
order = torch.Generator()
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, generator=order)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 1))
optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 0.5 * (1 + math.cos(math.pi * n / 100)))
net, optimizer, loader, scheduler = accelerator.prepare(net, optimizer, loader, scheduler)


class Averages:
    def __init__(self):
        self.ema = {name: p.detach().clone() for name, p in net.named_parameters()}

    def update(self):
        for name, p in net.named_parameters():
            self.ema[name] = 0.9 * self.ema[name] + 0.1 * p.detach()

    def state_dict(self):
        return self.ema

    def load_state_dict(self, state):
        self.ema = state


class Progress:
    def __init__(self):
        self.step, self.best_score = 0, 0.0
        self.noise = numpy.random.default_rng(3)

    def state_dict(self):
        return {"step": self.step, "best_score": self.best_score, "noise_rng": json.dumps(self.noise.bit_generator.state)}

    def load_state_dict(self, state):
        self.step, self.best_score = state["step"], state["best_score"]
        self.noise.bit_generator.state = json.loads(state["noise_rng"])


progress, averages = Progress(), Averages()
accelerator.register_for_checkpointing(progress, averages)
if CHECKPOINT:
    accelerator.load_state(CHECKPOINT)
per_epoch = len(loader)
for epoch in range(progress.step // per_epoch, STEPS // per_epoch):
    done = progress.step - epoch * per_epoch
    order.manual_seed(SEED + epoch)
    for batch in skip_first_batches(loader, done) if done else loader:
        x = batch + 0.05 * torch.from_numpy(progress.noise.normal(size=tuple(batch.shape)).astype("float32"))
        loss = torch.nn.functional.mse_loss(net(x)[:, 0], batch.sum(1))
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
        averages.update()
        progress.step += 1
        progress.best_score = max(progress.best_score, loss.item() % 1)
        print(f"step {progress.step} loss {loss.item():.7f}", flush=True)
        time.sleep(float(os.environ.get("PAUSE", "0.02")))
        if progress.step % 5 == 0:
            accelerator.save_state(os.path.join(LOGDIR, f"step_{progress.step}"))
torch.save(averages.ema, os.path.join(LOGDIR, "ema.pt"))
