"""Reads the kernel's counters before and after each step: bytes on the gradients' interface, and CPU time.

Traffic and computing between steps (probes, evaluations, records) are not counted. For each thread of this
process, the kernel counts how long it ran and how long it was ready to run but had to wait, because other
programs, other ranks or a limit on this process's group had the core (/proc/PID/task/TID/schedstat).
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from dragoman.measure.records import COUNTED

_SAMPLE_EVERY = 0.1  # seconds between steps whose threads are read, at 1 microsecond per thread
_THREADS_EVERY = 1.0  # seconds between searches for new threads, at 10 microseconds per thread
_MOST_THREADS = 256
_WORKER = 0.1  # threads that run at least this share of the busiest thread's time compute; others only wait
_STATISTICS = Path("/sys/class/net")
_NANOSECOND = 1e-9


class Counters:
    """Counts nothing; used if no counters are wanted."""

    def begin(self) -> None:
        """Starts counting, for a step or a part of one."""

    def end(self) -> None:
        """Stops counting; the step may continue with another part."""

    def take(self) -> np.ndarray:
        """The counts since the last call, in the order of COUNTED; NaN if they cannot be read."""
        return np.full(len(COUNTED), np.nan)

    def close(self) -> None:
        """Closes its files."""


class KernelCounters(Counters):
    def __init__(self, interface: str | None = None):
        """`interface` carries the gradients of this host; only one rank per host gets it."""
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

    def close(self) -> None:
        self._threads.close()
        if self._interface:
            self._interface.close()

    def _bytes(self) -> np.ndarray:
        return self._interface.read() if self._interface else np.full(2, np.nan)

    def _nothing(self) -> np.ndarray:
        sampled = 0.0 if self._threads.are_known else np.nan
        return np.array([0.0, 0.0, sampled, sampled, sampled])


def _of_workers(times: list[np.ndarray]) -> np.ndarray:
    """The summed seconds, running and waiting, of the threads that compute; idle threads are left out."""
    if not times:
        return np.full(2, np.nan)
    grown = np.array(times) * _NANOSECOND
    return grown[grown[:, 0] >= _WORKER * grown[:, 0].max()].sum(0)


class InterfaceCounters:
    """Bytes sent and received by an interface since it came up. A reading takes 2 microseconds."""

    def __init__(self, name: str):
        self._files: list[int] = []
        with suppress(OSError):  # not Linux, or /sys is another namespace's
            for direction in ("tx", "rx"):
                path = _STATISTICS / name / "statistics" / f"{direction}_bytes"
                self._files.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def close(self) -> None:
        while self._files:
            os.close(self._files.pop())

    def read(self) -> np.ndarray:
        with suppress(OSError, ValueError):  # the interface may have gone down
            if len(self._files) == 2:
                return np.array([float(os.pread(file, 32, 0)) for file in self._files])
        return np.full(2, np.nan)


class ThreadTimes:
    """For each thread that works on steps: nanoseconds that it ran, and that it was ready but had to wait."""

    def __init__(self) -> None:
        self.are_known = Path("/proc/self/schedstat").exists()
        self._files: dict[int, int] = {}
        self._searched = -np.inf

    def close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])

    def read(self) -> dict[int, tuple[int, int]]:
        if time.perf_counter() - self._searched >= _THREADS_EVERY:
            self._search()
        times = {}
        for thread, file in list(self._files.items()):
            try:
                ran, queued, _ = os.pread(file, 96, 0).split()
                times[thread] = int(ran), int(queued)
            except (OSError, ValueError):  # the thread has ended
                os.close(self._files.pop(thread))
        return times

    def _search(self) -> None:
        """Adds new threads, except Python's own (meter, records, checkpoints), which do no work on steps."""
        self._searched = time.perf_counter()
        pythons = {thread.native_id for thread in threading.enumerate()} - {threading.main_thread().native_id}
        with suppress(OSError):
            for thread in map(int, os.listdir("/proc/self/task")):
                if thread in self._files or thread in pythons or len(self._files) >= _MOST_THREADS:
                    continue
                with suppress(OSError):
                    path = f"/proc/self/task/{thread}/schedstat"
                    self._files[thread] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
