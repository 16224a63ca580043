"""Decisions that all ranks take together: a rank that leaves alone leaves the others waiting."""

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
    """Rank 0's text, on every rank. Collective."""
    return world.broadcast_bytes(text.encode()).decode()


def done_by(world: World, is_mine: bool, action: Callable[[], Result]) -> Result | None:
    """The action's result on the ranks that do it, None on the others. If one fails, all stop. Collective."""
    result, failure = None, None
    if is_mine:
        try:
            result = action()
        except Exception as error:
            failure = error
    stop_all_if_one_failed(world, failure)
    return result


def done_by_main(world: World, action: Callable[[], Result]) -> Result | None:
    """The action's result on rank 0, None on the others. If it fails, all stop. Collective."""
    return done_by(world, world.is_main, action)


def stop_all_if_one_failed(world: World, failure: Exception | None) -> None:
    """If a rank failed, it raises its failure and the others exit silently. Collective."""
    if any_rank(world, failure is not None):
        raise failure or SystemExit(1)


def ranks_that(world: World, say_yes: bool) -> list[int]:
    """The ranks that say yes, known to every rank. Collective."""
    table = torch.zeros(world.size, dtype=torch.int64)
    table[world.rank] = int(say_yes)
    world.sum_(table)
    return [rank for rank, answer in enumerate(table.tolist()) if answer]
