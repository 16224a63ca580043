"""dragoman with something in its way, for the truth bench. A program of the benchmark, not of the product.

    python hindered.py slow-reader=SECONDS slow-disk=BYTES_PER_SECOND train CONFIG ...

slow-reader  every microbatch of a step takes so much longer to read
slow-disk    whatever must be safe on the disk waits for one that writes no faster
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from dragoman import cli
from dragoman.data import batches
from dragoman.data.batches import Microbatch
from dragoman.data.store import Part


def slow_reader(seconds: float) -> None:
    fast = batches.load

    def load(part: Part, rows: np.ndarray) -> Microbatch:
        time.sleep(seconds)
        return fast(part, rows)

    batches.load = load


def slow_disk(bytes_per_second: float) -> None:
    fast = os.fsync

    def fsync(descriptor: int) -> None:
        time.sleep(os.fstat(descriptor).st_size / bytes_per_second)
        fast(descriptor)

    os.fsync = fsync  # type: ignore[assignment]


HINDRANCES = {"slow-reader": slow_reader, "slow-disk": slow_disk}


def main() -> None:
    while (name := sys.argv[1].partition("=")[0]) in HINDRANCES:
        HINDRANCES[name](float(sys.argv.pop(1).partition("=")[2]))
    cli.main()


if __name__ == "__main__":
    main()
