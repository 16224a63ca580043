"""The clock of a run. Durations come from a clock that nobody can set; the wall clock only dates them.

Every time in the records is a reading of `seconds` plus an offset that a process fixes when it starts, so
setting the wall clock later changes no recorded time. All attempts of a run share one time line. Attempts on
the same boot of a machine also share the offset. After a reboot or on another machine, the length of the
pause comes from the wall clock, but is never negative.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.measure.records import Attempt

LEAST_JUMP_SECONDS = 2.0  # smaller jumps are leap seconds or ordinary corrections by a time server
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # CLOCK_BOOTTIME exists only on Linux
_IMPORTED = time.clock_gettime(_CLOCK)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def seconds() -> float:
    """Seconds since the machine started (on Linux including sleep). Setting the wall clock has no effect."""
    return time.clock_gettime(_CLOCK)


def process_began() -> float:
    """When this process started, as a reading of `seconds`; without /proc, when it imported this module."""
    if not (stat := Path("/proc/self/stat")).exists():
        return _IMPORTED
    after_name = stat.read_text().rpartition(")")[2].split()
    return int(after_name[19]) / os.sysconf("SC_CLK_TCK")


def boot() -> str:
    """An id that changes with every boot of the machine; empty if the kernel has none."""
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""


def wall_offset() -> float:
    """The wall clock's time minus `seconds`, now."""
    return time.time() - seconds()


class RunClock:
    """Turns readings of `seconds` into times, and notices when the wall clock is set."""

    def __init__(self, shift: float = 0.0):
        """`shift`: by how many seconds the run's times are ahead of this host's wall clock."""
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
    seconds: float  # the `shift` of the run's clock
    jump: float  # by how many seconds the wall clock was set since the last attempt; 0 if it was not


def since_last(attempts: Sequence[Attempt], last_time: float, began: float) -> Shift:
    """The clock shift of an attempt that began at this reading, after the run's earlier attempts.

    `last_time` is the time of the newest recorded row.
    """
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
