"""PyTorch with async_save of torch.distributed.checkpoint in a process of its own, which may outlive the training."""

import os
import socket

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from common import CHECKPOINT, STEPS, finish, path, pause
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def main():  # the process that saves imports this file, too
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(free_port()), RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    dist.init_process_group("cpu:gloo")
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(64, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1))
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)

    def train(step):
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
        train(0)  # makes the optimizer's state, into which the saved one is loaded
        saved = state(0)
        dcp.load(saved, checkpoint_id=CHECKPOINT)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        step = int(saved["step"])
    saving = None
    while step < STEPS:
        step += 1
        print(f"step {step} loss {train(step):.5f}", flush=True)
        pause()
        if step % 10 == 0:
            if saving:
                saving.result()
            saving = dcp.async_save(state(step), checkpoint_id=path(f"step_{step}"), async_checkpointer_type=AsyncCheckpointerType.PROCESS)
    if saving:
        saving.result()
    finish(p.detach().numpy() for p in net.parameters())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
