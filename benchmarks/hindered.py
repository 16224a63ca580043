"""Runs dragoman with injected hindrances, for the truth bench.

    python hindered.py NAME=VALUE@FILE ... train CONFIG ...

Each hindrance is active while its file exists.

slow-reader=SECONDS          each microbatch of a step takes this much longer to read
slow-disk=BYTES_PER_SECOND   each fsync takes as long as a disk of this speed would
growing-memory=BYTES         memory kept for every microbatch read
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dragoman import cli
from dragoman.data import batches
from dragoman.data.batches import Microbatch
from dragoman.data.store import Part

LOOK_SECONDS = 0.05


def slow_reader(seconds: float, is_on: Callable[[], bool]) -> None:
    fast = batches.load

    def load(part: Part, rows: np.ndarray) -> Microbatch:
        if is_on():
            time.sleep(seconds)
        return fast(part, rows)

    batches.load = load


def slow_disk(bytes_per_second: float, is_on: Callable[[], bool]) -> None:
    fast = os.fsync

    def fsync(descriptor: int) -> None:
        ends = time.monotonic() + os.fstat(descriptor).st_size / bytes_per_second
        while is_on() and (left := ends - time.monotonic()) > 0:
            time.sleep(min(LOOK_SECONDS, left))
        fast(descriptor)

    os.fsync = fsync  # type: ignore[assignment]


def growing_memory(nbytes: float, is_on: Callable[[], bool]) -> None:
    plain, kept = batches.load, []

    def load(part: Part, rows: np.ndarray) -> Microbatch:
        if is_on():
            kept.append(np.ones(int(nbytes), dtype=np.uint8))
        return plain(part, rows)

    batches.load = load


HINDRANCES = {"slow-reader": slow_reader, "slow-disk": slow_disk, "growing-memory": growing_memory}


def main() -> None:
    while (name := sys.argv[1].partition("=")[0]) in HINDRANCES:
        value, _, switch = sys.argv.pop(1).partition("=")[2].partition("@")
        HINDRANCES[name](float(value), Path(switch).exists)
    cli.main()


if __name__ == "__main__":
    main()
