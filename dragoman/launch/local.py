"""Starts ranks on this machine only."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.launch import ranks
from dragoman.launch.ranks import Node


def run(arguments: Sequence[str], workers: int) -> int:
    """Runs `dragoman ARGUMENTS` as this many ranks and returns their exit code."""
    return ranks.run(["-m", "dragoman", *arguments], Node(workers))
