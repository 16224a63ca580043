"""Why a rank of this machine ended, or why it does not answer."""

from __future__ import annotations

import signal
import time
from typing import NamedTuple

import psutil

from dragoman import stacks
from dragoman.faults import FaultKind
from dragoman.launch.out_of_memory import Kills

_MOMENT_SECONDS = 0.4  # the kernel counts CPU time in steps of 0.01 s


class Cause(NamedTuple):
    kind: FaultKind
    detail: str


class Watch:
    """Tells why ranks ended. Make it before they start: it notes how often memory had run out by then."""

    def __init__(self) -> None:
        self._kills = Kills()

    def cause(self, pid: int, code: int) -> Cause:
        """Why this process ended. `code` is as in subprocess: negative for the signal that ended it."""
        if code >= 0:
            return Cause("exception", f"exit code {code}")
        if -code == signal.SIGKILL and (told := self._kills.told_of(pid)):
            return Cause("out_of_memory", told)
        return Cause("killed", _name(-code))


def why_silent(pid: int) -> Cause | None:
    """Why a process does not answer, or None if it has ended. Watches it for a moment (0.4 s)."""
    before, cores, after = stacks.status(pid), _cores(pid), stacks.status(pid)
    if cores is None or after is None:
        return None
    # A debugger, and so py-spy, stops a process for a moment; a write to disk takes one.
    if before == after == psutil.STATUS_STOPPED:
        return Cause("stopped", "stopped by a signal (state T)")
    if before == after == psutil.STATUS_TRACING_STOP:
        return Cause("stopped", "stopped by a debugger (state t)")
    if before == after == psutil.STATUS_DISK_SLEEP:
        return Cause("slow_rank", "waits for a disk or a device")
    return Cause("slow_rank", f"uses {cores:.2f} cores")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _cores(pid: int) -> float | None:
    """How many cores the threads of a process use together; None if it has ended."""
    try:
        process = psutil.Process(pid)
        began, before = time.monotonic(), process.cpu_times()
        time.sleep(_MOMENT_SECONDS)
        after = process.cpu_times()
    except psutil.Error:
        return None
    used = after.user + after.system - before.user - before.system
    return float(used) / (time.monotonic() - began)
