"""What tests run as a rank with GPUs: `python -m tests.cards.rank GPUS tests.sync.card_ranks WHAT`."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any, get_args

import torch
import torch.distributed as dist

from dragoman.config import Sync
from dragoman.errors import DragomanError
from dragoman.exchange_way import ExchangeWay, Wire
from dragoman.leave import leave
from dragoman.measure import probes
from dragoman.sync import choice
from dragoman.sync import topology as topologies
from dragoman.sync import world as worlds
from dragoman.sync.failures import explained
from dragoman.sync.world import World
from tests.cards import nccl

SECONDS = 20.0  # of every wait for another rank


def meeting(world: World) -> None:
    """Gradients and small numbers, each over its own backend."""
    made_at_start = len(nccl.interfaces)
    gradients = torch.full((4,), float(world.rank + 1), device=world.device)
    dist.all_reduce(gradients)
    half = world.group(range(world.size))
    dist.broadcast(gradients, src=0, group=half)
    print(
        json.dumps(
            {
                "device": str(world.device),
                "backend": dist.get_backend(),
                "made_at_start": made_at_start,
                "interfaces": nccl.interfaces,
                "gradients": gradients.tolist(),
                "sum": world.sum([world.rank]),
            }
        )
    )


def failing(world: World) -> None:
    """Rank 1 finds something while the others wait for it in an exchange."""
    gradients = torch.ones(4, device=world.device)
    dist.all_reduce(gradients)
    if world.rank == 1:
        raise DragomanError("rank 1 found something")
    dist.all_reduce(gradients)


def probing(world: World) -> None:
    """An all-reduce is timed, of which the first takes longer than a probe should."""
    nccl.startup_seconds = 2 * probes._BURST_SECONDS
    nbytes, _ = probes.all_reduce(world)
    print(json.dumps({"bytes": nbytes}))


def buckets(world: World) -> None:
    """What one exchange of 9 MB of gradients sends, for each number format."""
    sent: list[tuple[str, int]] = []
    allreduce = nccl.LazyGroup.allreduce

    def noting(group: nccl.LazyGroup, tensors: list[torch.Tensor], *rest: Any) -> dist.Work:
        sent.append((str(tensors[0].dtype), tensors[0].numel()))
        return allreduce(group, tensors, *rest)

    nccl.LazyGroup.allreduce = noting
    for wire in get_args(Wire):
        layer = torch.nn.Linear(1500, 1500, bias=False)
        exchange = choice.build(layer, world, topologies.find(world), ExchangeWay(wire=wire), Sync())
        sent.clear()
        with exchange.microbatch(is_last=True):
            exchange.model(torch.full((1, 1500), float(world.rank + 1))).sum().backward()
        threads = [thread.name for thread in threading.enumerate()]
        mean = layer.weight.grad.unique().tolist()
        print(json.dumps({"wire": wire, "sent": sent, "mean": mean, "threads": threads}), flush=True)
        exchange.close()


def main(what: str) -> None:
    with explained(), worlds.join(SECONDS) as world:
        globals()[what](world)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except DragomanError as error:
        print(f"error: {error}\n", end="", file=sys.stderr, flush=True)
        leave(error.exit_code)
