"""Ranks on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.launch import ranks
from dragoman.launch.ranks import Node


def run(arguments: Sequence[str], workers: int) -> int:
    """Runs `dragoman ARGUMENTS` as this many ranks; their exit code."""
    return ranks.run(["-m", "dragoman", *arguments], Node(workers))
