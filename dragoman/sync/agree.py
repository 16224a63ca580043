"""Decisions are taken once and heard by all: a rank that leaves alone leaves the others waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from dragoman.sync.world import World

Result = TypeVar("Result")


def any_rank(world: World, wish: bool) -> bool:
    """Does any rank wish this? Collective."""
    return world.sum([float(wish)])[0] > 0


def decided_by_main(world: World, text: str) -> str:
    """What rank 0 says, on every rank. Collective."""
    return world.broadcast_bytes(text.encode()).decode()


def done_by(world: World, is_mine: bool, action: Callable[[], Result]) -> Result | None:
    """What only some ranks can do; None on the others. If one fails all stop, and it says why. Collective."""
    result, failure = None, None
    if is_mine:
        try:
            result = action()
        except Exception as error:
            failure = error
    stop_all_if_one_failed(world, failure)
    return result


def done_by_main(world: World, action: Callable[[], Result]) -> Result | None:
    """What only rank 0 can do, likewise. Collective."""
    return done_by(world, world.is_main, action)


def stop_all_if_one_failed(world: World, failure: Exception | None) -> None:
    """The rank that failed raises why; the others leave silently. Collective."""
    if any_rank(world, failure is not None):
        raise failure or SystemExit(1)


def ranks_that(world: World, say_yes: bool) -> list[int]:
    """The ranks that say yes, on every rank. Collective."""
    table = torch.zeros(world.size, dtype=torch.int64)
    table[world.rank] = int(say_yes)
    world.sum_(table)
    return [rank for rank, answer in enumerate(table.tolist()) if answer]
