"""A worker for torchrun: all_reduces, and how many bytes its host's eth0 sent during each."""

import sys
from pathlib import Path

import torch
import torch.distributed as dist

SENT = Path("/sys/class/net/eth0/statistics/tx_bytes")

dist.init_process_group("gloo")
for _ in range(3):
    tensor = torch.ones(int(sys.argv[1]) // 4)
    dist.barrier()
    before = int(SENT.read_text())
    dist.all_reduce(tensor)
    dist.barrier()  # done here is not sent yet: the last of it is in the queue of the link
    print(f"sent {int(SENT.read_text()) - before}", flush=True)
    assert tensor.eq(dist.get_world_size()).all()
dist.barrier()
dist.destroy_process_group()
