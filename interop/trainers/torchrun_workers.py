"""Two workers under torchrun, in the manner of nanoGPT; the first one saves."""

import os

import torch
from common import CHECKPOINT, STEPS, finish, path, pause

torch.set_num_threads(1)
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.GELU(), torch.nn.Linear(512, 1))
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
step = 0
if CHECKPOINT:
    saved = torch.load(CHECKPOINT, weights_only=True)
    net.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    step = saved["step"]
model = torch.nn.parallel.DistributedDataParallel(net)
while step < STEPS:
    step += 1
    x = torch.randn(16, 64, generator=torch.Generator().manual_seed(2 * step + rank))
    loss = torch.nn.functional.mse_loss(model(x)[:, 0], x.sum(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    pause()
    if rank == 0:
        print(f"iter {step}: loss {loss.item():.4f}, time 20.00ms, mfu -100.00%", flush=True)
        if step % 10 == 0:
            name = path(f"ckpt-{step}.pt")
            torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, name + ".tmp")
            os.replace(name + ".tmp", name)
torch.distributed.barrier()
if rank == 0:
    finish(p.detach().numpy() for p in net.parameters())
torch.distributed.destroy_process_group()
