"""The kernel's counters at the edges of each step: bytes on the gradients' interface, and this rank's CPU.

What is sent and computed between steps (probes, evaluations, records) is in no step and is not counted. The
threads of a process tell how long they ran and how long they were ready to run while something else had the
core: other programs, other ranks, or a limit on this process's group (/proc/PID/task/TID/schedstat).
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from dragoman.measure.records import COUNTED

_SAMPLE_EVERY = 0.1  # seconds: threads are looked at in a step at most so often, at 1 microsecond each
_THREADS_EVERY = 1.0  # and searched for, at 10 microseconds each
_MOST_THREADS = 256
_WORKER = 0.1  # a thread that runs for a tenth of the busiest one's time, or more, does a step's work
_STATISTICS = Path("/sys/class/net")
_NANOSECOND = 1e-9


class Counters:
    """Counts nothing: what a step has whose counters nobody asked for."""

    def begin(self) -> None:
        """A step, or a part of one, begins."""

    def end(self) -> None:
        """And ends; there may be more of it."""

    def take(self) -> np.ndarray:
        """What was counted since the last call, in the order of COUNTED; NaN where nothing could be."""
        return np.full(len(COUNTED), np.nan)


class KernelCounters(Counters):
    def __init__(self, interface: str | None = None):
        """`interface` carries the gradients of this rank's host; one rank of each host is told."""
        self._interface = InterfaceCounters(interface) if interface else None
        self._threads = ThreadTimes()
        self._bytes_before = self._bytes()
        self._times_before: dict[int, tuple[int, int]] | None = None
        self._sampled_at = -np.inf
        self._began = 0.0
        self._counted = self._nothing()

    def begin(self) -> None:
        self._began = time.perf_counter()
        if self._began - self._sampled_at >= _SAMPLE_EVERY:
            self._sampled_at = self._began
            self._times_before = self._threads.read()
        self._bytes_before = self._bytes()

    def end(self) -> None:
        self._counted[:2] += self._bytes() - self._bytes_before
        before, self._times_before = self._times_before, None
        if before is not None:
            after = self._threads.read()
            grown = [np.subtract(times, before.get(thread, (0, 0))) for thread, times in after.items()]
            self._counted[2:] += *_of_workers(grown), time.perf_counter() - self._began

    def take(self) -> np.ndarray:
        counted, self._counted = self._counted, self._nothing()
        return counted

    def _bytes(self) -> np.ndarray:
        return self._interface.read() if self._interface else np.full(2, np.nan)

    def _nothing(self) -> np.ndarray:
        sampled = 0.0 if self._threads.are_known else np.nan
        return np.array([0.0, 0.0, sampled, sampled, sampled])


def _of_workers(times: list[np.ndarray]) -> np.ndarray:
    """Seconds of the threads that compute, together: those that hardly run only wait beside them."""
    if not times:
        return np.full(2, np.nan)
    grown = np.array(times) * _NANOSECOND
    return grown[grown[:, 0] >= _WORKER * grown[:, 0].max()].sum(0)


class InterfaceCounters:
    """Bytes sent and received by an interface since it came up, 2 microseconds a reading."""

    def __init__(self, name: str):
        self._files: list[int] = []
        with suppress(OSError):  # not on Linux, or another namespace's /sys
            for way in ("tx", "rx"):
                path = _STATISTICS / name / "statistics" / f"{way}_bytes"
                self._files.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def read(self) -> np.ndarray:
        with suppress(OSError, ValueError):  # it may go down
            if len(self._files) == 2:
                return np.array([float(os.pread(file, 32, 0)) for file in self._files])
        return np.full(2, np.nan)


class ThreadTimes:
    """Nanoseconds for which each thread that works on steps ran, and was ready to run but did not."""

    def __init__(self) -> None:
        self.are_known = Path("/proc/self/schedstat").exists()
        self._files: dict[int, int] = {}
        self._searched = -np.inf

    def read(self) -> dict[int, tuple[int, int]]:
        if time.perf_counter() - self._searched >= _THREADS_EVERY:
            self._search()
        times = {}
        for thread, file in list(self._files.items()):
            try:
                ran, queued, _ = os.pread(file, 96, 0).split()
                times[thread] = int(ran), int(queued)
            except (OSError, ValueError):  # it has ended
                os.close(self._files.pop(thread))
        return times

    def _search(self) -> None:
        """Threads of our own beside the steps (meter, records, checkpoints) are left out."""
        self._searched = time.perf_counter()
        beside = {thread.native_id for thread in threading.enumerate()} - {threading.main_thread().native_id}
        with suppress(OSError):
            for thread in map(int, os.listdir("/proc/self/task")):
                if thread in self._files or thread in beside or len(self._files) >= _MOST_THREADS:
                    continue
                with suppress(OSError):
                    path = f"/proc/self/task/{thread}/schedstat"
                    self._files[thread] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
