"""Limits the processes of one host to a share of one core by stopping and continuing them.

    python dutycycle.py HOST_PID SHARE

Runs until its input is closed, then continues the processes it stopped. Every tick it adds the host's share
of the elapsed time to a budget, subtracts the CPU time used, and lets the processes run while budget is left.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress

_TICK_SECONDS = 0.005
_SCAN_SECONDS = 0.1  # between searches for new processes
_MOST_BUDGET_SECONDS = 0.01  # of CPU time that an idle host may save up


def main() -> None:
    first, share = int(sys.argv[1]), float(sys.argv[2])
    used = {pid: _cpu_seconds(pid) for pid in _processes(first)}
    budget, running = 0.0, True
    last = scanned = time.monotonic()
    try:
        while not select.select([sys.stdin], [], [], _TICK_SECONDS)[0]:
            now = time.monotonic()
            budget = min(_MOST_BUDGET_SECONDS, budget + share * (now - last))
            last = now
            scan = now - scanned > _SCAN_SECONDS
            if scan:
                used = {pid: used.get(pid, 0.0) for pid in _processes(first)}
                scanned = now
            for pid, before in used.items():
                used[pid] = _cpu_seconds(pid) or before
                budget -= used[pid] - before
            if scan or running != (budget > 0):
                running = budget > 0
                _signal(list(used), signal.SIGCONT if running else signal.SIGSTOP)
    finally:
        _signal(_processes(first), signal.SIGCONT)


def _processes(first: int) -> list[int]:
    """The processes in the process namespace of `first`, except `first` itself."""
    namespace = _namespace(first)
    if namespace is None:
        return []
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in numbers if pid != first and _namespace(pid) == namespace]


def _namespace(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def _cpu_seconds(pid: int) -> float:
    """CPU time of all threads, to the nanosecond, by the clock that clock_getcpuclockid(3) would return."""
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0.0


def _signal(processes: list[int], number: signal.Signals) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


if __name__ == "__main__":
    main()
