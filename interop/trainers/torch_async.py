"""PyTorch with async_save of torch.distributed.checkpoint, which writes while the training steps on."""

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from common import CHECKPOINT, STEPS, finish, path, pause


def train(**saves):
    """Trains in the process group that there is; saves are more arguments of async_save."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(64, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1))
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)

    def make(step):
        x = torch.randn(16, 64, generator=torch.Generator().manual_seed(step))
        loss = torch.nn.functional.mse_loss(net(x)[:, 0], x.sum(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    def state(step):
        return {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": torch.tensor(step)}

    step = 0
    if CHECKPOINT:
        make(0)  # makes the optimizer's state, into which the saved one is loaded
        saved = state(0)
        dcp.load(saved, checkpoint_id=CHECKPOINT)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        step = int(saved["step"])
    saving = None
    while step < STEPS:
        step += 1
        print(f"step {step} loss {make(step):.5f}", flush=True)
        pause()
        if step % 10 == 0:
            if saving:
                saving.result()
            saving = dcp.async_save(state(step), checkpoint_id=path(f"step_{step}"), **saves)
    if saving:
        saving.result()
    finish(p.detach().numpy() for p in net.parameters())
    dist.destroy_process_group()


if __name__ == "__main__":
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    train()
