"""What the tests of collectives run as a rank: `python -m tests.sync.ranks WHAT` under torchrun."""

from __future__ import annotations

import sys

import torch

from dragoman.errors import DragomanError
from dragoman.sync import world as worlds
from dragoman.sync.agree import any_rank, decided_by_main, done_by_main
from dragoman.sync.failures import explained
from dragoman.sync.world import World


def all_collectives(world: World) -> None:
    assert world.sum([1.0, float(world.rank)]) == [2.0, 1.0]
    assert any_rank(world, world.rank == 1)
    assert not any_rank(world, False)
    assert decided_by_main(world, "grüße" if world.is_main else "something else") == "grüße"
    assert decided_by_main(world, "" if world.is_main else "something else") == ""
    assert done_by_main(world, lambda: world.rank + 5) == (5 if world.is_main else None)
    tensor = torch.full((3,), float(world.rank))
    world.broadcast_(tensor)
    assert tensor.tolist() == [0, 0, 0]
    print(f"rank {world.rank} is through\n", end="", flush=True)


def failing_main(world: World) -> None:
    def fail() -> None:
        raise DragomanError("rank 0 found something")

    done_by_main(world, fail)


def leaving(world: World) -> None:
    if world.rank == 1:
        sys.exit(3)
    world.sum([1.0])


if __name__ == "__main__":
    try:
        with explained(), worlds.join(60) as world:
            globals()[sys.argv[1]](world)
    except DragomanError as error:
        print(f"error: {error}\n", end="", file=sys.stderr, flush=True)
        sys.exit(1)
