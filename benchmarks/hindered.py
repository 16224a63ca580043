"""dragoman with something in its way, for the truth bench. A program of the benchmark, not of the product.

    python hindered.py NAME=VALUE@FILE ... train CONFIG ...

Each hindrance is there while its file exists.

slow-reader=SECONDS          a microbatch of a step takes so much longer to read
slow-disk=BYTES_PER_SECOND   whatever must be safe on the disk waits for one that writes no faster
growing-memory=BYTES         are kept of every microbatch that was read
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
    lean, kept = batches.load, []

    def load(part: Part, rows: np.ndarray) -> Microbatch:
        if is_on():
            kept.append(np.ones(int(nbytes), dtype=np.uint8))
        return lean(part, rows)

    batches.load = load


HINDRANCES = {"slow-reader": slow_reader, "slow-disk": slow_disk, "growing-memory": growing_memory}


def main() -> None:
    while (name := sys.argv[1].partition("=")[0]) in HINDRANCES:
        value, _, switch = sys.argv.pop(1).partition("=")[2].partition("@")
        HINDRANCES[name](float(value), Path(switch).exists)
    cli.main()


if __name__ == "__main__":
    main()
