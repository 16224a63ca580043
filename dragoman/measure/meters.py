"""Meters a host once per second, in a thread of one rank: bytes on every interface, CPU, memory, disk, GPUs.

While ranks wait for a core, the meter also looks for other programs in the process table, at growing
intervals. Every half hour it takes a burst of samples (4 s at 50 Hz) with the step and phase that the device
is in, which shows when in a step the traffic flows. A reading costs about 0.2 ms of one core, a sample 10
microseconds.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Collection
from contextlib import suppress

import numpy as np
import psutil

from dragoman.measure import clock
from dragoman.measure.gpus import GpuReader
from dragoman.measure.neighbours import Neighbours, RunningProgram
from dragoman.measure.phases import Phases

_CLOSE_SECONDS = 0.5
_BURST_SECONDS = 4.0
_BURST_PERIOD = 0.02
_BURST_EVERY = 1800.0
_BURST_AFTER = 5.0  # seconds of training before the first burst, as the first steps are not typical

_QUEUED = 0.05  # seconds per second that a rank waits for a core; less is normal scheduling
_FIRST_PAUSE, _LONGEST_PAUSE = 3.0, 300.0  # seconds between two searches of the process table
# The throttling counters of a container's cgroup: version 2, then version 1.
_LIMITS = (
    ("/sys/fs/cgroup/cpu.stat", "throttled_usec", 1e-6),
    ("/sys/fs/cgroup/cpu/cpu.stat", "throttled_time", 1e-9),
)

Rows = list[tuple[float, ...]]


def interface_bytes() -> dict[str, tuple[int, int]]:
    """Bytes received and sent by each interface since it came up."""
    counters = {}
    with open("/proc/net/dev") as file:
        for line in file.readlines()[2:]:
            name, _, numbers = line.partition(":")
            fields = numbers.split()
            counters[name.strip()] = (int(fields[0]), int(fields[8]))
    return counters


class HostMeter:
    """Meters this host until `close`. The recorder takes the rows at its intervals and dates them."""

    def __init__(
        self, interface: str, phases: Phases, gpus: Collection[str] = (), ranks: Collection[int] = ()
    ):
        """`interface` carries the gradients; `gpus` are the UUIDs of the GPUs that the ranks use.

        `ranks` are the process ids of the run's ranks that this process can see.
        """
        self.interfaces = sorted(interface_bytes())  # rows name an interface by its index in this list
        self.cores = psutil.cpu_count() or 1
        self.cost_seconds = 0.0  # CPU time of the thread
        self._interface = interface
        self._phases = phases
        self._gpus = GpuReader(gpus)
        self._lock = threading.Lock()
        self._nics: Rows = []
        self._hosts: Rows = []
        self._gpu_rows: Rows = []
        self._burst_samples: Rows = []
        self.programs: list[str] = []  # rows name a program by its index in this list
        self._program_rows: Rows = []
        self._ranks = {os.getpid(), *ranks}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="meter", daemon=True)
        self._thread.start()

    def take(self) -> dict[str, np.ndarray]:
        """The rows since the last call, by table. Each row begins with a reading of the clock."""
        with self._lock:
            taken = {
                "nics": self._nics,
                "hosts": self._hosts,
                "gpus": self._gpu_rows,
                "lens": self._burst_samples,
                "programs": self._program_rows,
            }
            self._nics, self._hosts, self._gpu_rows = [], [], []
            self._burst_samples, self._program_rows = [], []
        return {name: np.array(rows, dtype=np.float64) for name, rows in taken.items()}

    def close(self) -> None:
        self._stop.set()
        self._thread.join(_CLOSE_SECONDS)  # a burst of samples takes longer: nobody waits for its end

    def _run(self) -> None:
        psutil.cpu_percent(percpu=True)  # the first call only sets the reference for the next one
        before, since = _Counters(self._ranks), clock.seconds()
        burst_at = since + _BURST_AFTER
        watch = _Watch(self._ranks)
        while not self._stop.wait(max(0.0, since + 1.0 - clock.seconds())):
            now = clock.seconds()
            after = _Counters(self._ranks)
            self._second(before, after, since, now - since)
            if observed := watch.second(now, before.queued(after)):
                self._note_programs(*observed)
            before, since = after, now
            if now >= burst_at and self._phases.step:
                burst_at = now + _BURST_EVERY
                self._sample_burst()
            self.cost_seconds = time.thread_time()

    def _second(self, before: _Counters, after: _Counters, when: float, span: float) -> None:
        cores = [percent / 100 for percent in psutil.cpu_percent(percpu=True)]
        with self._lock:
            for number, name in enumerate(self.interfaces):
                if name in after.nics and name in before.nics:
                    received, sent = np.subtract(after.nics[name], before.nics[name]) / span
                    self._nics.append((when, span, number, sent, received))
            read, written = np.subtract(after.disk, before.disk) / span
            memory = psutil.virtual_memory().used
            share = sum(cores) / len(cores)
            stolen, throttled = (after.stolen - before.stolen, after.throttled - before.throttled)
            kept_away = (stolen / span / len(cores), throttled / span)
            row = (when, span, share, max(cores), memory, read, written, *kept_away)
            self._hosts.append((*row, *cores[: self.cores]))
            self._gpu_rows += [(when, span, *row) for row in self._gpus.read()]

    def _note_programs(self, when: float, span: float, programs: list[RunningProgram]) -> None:
        with self._lock:
            for program in programs:
                if program.name not in self.programs:
                    self.programs.append(program.name)
                self._program_rows.append((when, span, self.programs.index(program.name), program.cores))

    def _sample_burst(self) -> None:
        ends = clock.seconds() + _BURST_SECONDS
        while clock.seconds() < ends and not self._stop.wait(_BURST_PERIOD):
            received, sent = interface_bytes().get(self._interface, (0, 0))
            row = (clock.seconds(), sent, received, *self._phases.position())
            with self._lock:
                self._burst_samples.append(row)


class _Counters:
    """The host's counters at one moment. They only increase."""

    def __init__(self, ranks: Collection[int]) -> None:
        self.nics = interface_bytes()
        disk = psutil.disk_io_counters()
        self.disk = (disk.read_bytes, disk.write_bytes) if disk else (0, 0)
        self.stolen = float(getattr(psutil.cpu_times(), "steal", np.nan))  # seconds, over all cores
        self.throttled = _throttled_seconds()
        self.queued_by = {rank: seconds for rank in ranks if (seconds := _queued_seconds(rank)) is not None}

    def queued(self, after: _Counters) -> float:
        """The longest that any rank's main thread waited for a core between the two moments, in seconds."""
        waited = [
            after.queued_by[rank] - self.queued_by[rank]
            for rank in self.queued_by.keys() & after.queued_by.keys()
        ]
        return max(waited, default=0.0)


class _Watch:
    """Watches the process table for a second at a time while ranks wait for a core, at growing intervals."""

    def __init__(self, ranks: Collection[int]):
        self._ranks = ranks
        self._neighbours: Neighbours | None = None
        self._began = 0.0
        self._again_at = 0.0
        self._pause = _FIRST_PAUSE

    def second(self, now: float, queued: float) -> tuple[float, float, list[RunningProgram]] | None:
        """The time, length and result of a watch that began a second ago; may begin a new one."""
        if self._neighbours:
            began, programs = self._began, self._neighbours.busiest()
            self._neighbours = None
            return began, now - began, programs
        if queued >= _QUEUED and now >= self._again_at:
            self._neighbours, self._began = Neighbours(self._ranks), now
            self._again_at, self._pause = now + self._pause, min(_LONGEST_PAUSE, 1.5 * self._pause)
        return None


def _queued_seconds(process: int) -> float | None:
    """Seconds for which a process's main thread was ready but had no core; None if not known."""
    with suppress(OSError, ValueError), open(f"/proc/{process}/schedstat") as file:
        return int(file.read().split()[1]) * 1e-9
    return None


def _throttled_seconds() -> float:
    """Seconds for which a limit on this process's cgroup has held it back; NaN if that cannot be read."""
    for path, name, unit in _LIMITS:
        with suppress(OSError, ValueError), open(path) as file:
            for line in file:
                key, _, value = line.partition(" ")
                if key == name:
                    return int(value) * unit
    return math.nan
