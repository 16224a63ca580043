"""Ranks on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.launch import elastic
from dragoman.launch.elastic import Node


def run(arguments: Sequence[str], workers: int) -> int:
    """Starts `dragoman ARGUMENTS` as so many ranks; their exit code."""
    return elastic.run(arguments, Node(workers))
