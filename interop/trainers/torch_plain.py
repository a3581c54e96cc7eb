"""Plain PyTorch: a loop of its own, which saves in place, so that a kill leaves half a file."""

import torch
from common import CHECKPOINT, STEPS, finish, path, pause

torch.set_num_threads(1)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(512, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
step = 0
if CHECKPOINT:
    saved = torch.load(CHECKPOINT, weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    torch.set_rng_state(saved["rng"])
    step = saved["step"]
while step < STEPS:
    step += 1
    x = torch.randn(32, 64, generator=torch.Generator().manual_seed(step))
    loss = torch.nn.functional.mse_loss(model(x)[:, 0], x.sum(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.6f}", flush=True)
    pause()
    if step % 10 == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state(), "step": step}, path(f"ckpt-{step}.pt"))
finish(p.detach().numpy() for p in model.parameters())
