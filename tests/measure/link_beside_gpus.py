"""A rank whose gradients' group takes no CPU tensors, as NCCL: `python -m tests.measure.link_beside_gpus`."""

import os

import torch
import torch.distributed as dist

from dragoman.measure import probes
from dragoman.sync import world as worlds
from dragoman.sync.topology import Placement, Topology

if __name__ == "__main__":
    dist.init_process_group("cuda:gloo")
    worlds._control_group = dist.new_group(backend="gloo")
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    world = worlds.World(rank, size, 0, 1, torch.device("cpu"))
    hosts = [f"host{number}" for number in range(size)]
    print(*probes.link(Placement(world, Topology(hosts, list(range(size)), ["lo"] * size))))
    dist.destroy_process_group()
