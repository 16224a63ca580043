"""The clock of a run. Durations come from a clock that nobody can set; the wall clock only dates them.

Every time in the records is a reading of `seconds` plus an offset that a process fixes when it starts:
setting the wall clock later moves none of them. The attempts of a run share one time line. On the same boot
of a machine they share the offset as well. After a reboot or on another machine only the wall clock can tell
how long the pause was, and a pause is never negative.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.measure.records import Attempt

LEAST_JUMP_SECONDS = 2.0  # less is a leap second, or a time server's daily bread
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the first is Linux's alone
_IMPORTED = time.clock_gettime(_CLOCK)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def seconds() -> float:
    """Since the machine started, on Linux also while it slept. Setting the wall clock does not change it."""
    return time.clock_gettime(_CLOCK)


def process_began() -> float:
    """When this process was started, as a reading of `seconds`; without /proc, when it came to this file."""
    if not (stat := Path("/proc/self/stat")).exists():
        return _IMPORTED
    after_name = stat.read_text().rpartition(")")[2].split()
    return int(after_name[19]) / os.sysconf("SC_CLK_TCK")


def boot() -> str:
    """Another one after every start of a machine; empty where the kernel does not tell."""
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""


def wall_offset() -> float:
    """What the wall clock now says, less the reading."""
    return time.time() - seconds()


class RunClock:
    """Dates readings of this process, and notices when the wall clock is set."""

    def __init__(self, shift: float = 0.0):
        """`shift` is how far the run's times are ahead of this host's wall clock, from the start."""
        self._wall_offset = wall_offset()
        self.offset = self._wall_offset + shift

    def time(self, reading: float) -> float:
        return self.offset + reading

    def now(self) -> float:
        return self.time(seconds())

    def jump(self) -> float:
        """By how many seconds the wall clock was set since the last call; 0 if it was not."""
        before, now = self._wall_offset, wall_offset()
        if abs(now - before) < LEAST_JUMP_SECONDS:
            return 0.0
        self._wall_offset = now
        return now - before


class Shift(NamedTuple):
    seconds: float  # for the run's clock
    jump: float  # by how many seconds the wall clock was set since the last attempt; 0 if it was not


def since_last(attempts: Sequence[Attempt], last_time: float, began: float) -> Shift:
    """How an attempt that began at this reading follows the others, whose newest row is of `last_time`."""
    if not attempts:
        return Shift(0.0, 0.0)
    last, known = attempts[-1], -sum(sum(attempt.jumps) for attempt in attempts)
    wall = wall_offset()
    if last.clock_offset is not None and last.boot and last.boot == boot():
        shift = last.clock_offset - wall
    else:
        too_early = last_time - (wall + known + began)
        shift = known + max(0.0, too_early if math.isfinite(too_early) else 0.0)
    jump = known - shift
    return Shift(shift, jump if abs(jump) >= LEAST_JUMP_SECONDS else 0.0)
