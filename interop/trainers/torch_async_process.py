"""torch_async.py with the saves in a process of their own, which may outlive the training."""

import os
import socket

import torch.distributed as dist
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from torch_async import train


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


if __name__ == "__main__":  # the process that saves imports this file, too
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(free_port()), RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    dist.init_process_group("cpu:gloo")
    train(async_checkpointer_type=AsyncCheckpointerType.PROCESS)
