"""What a host does, by the second: bytes on every interface, CPU, memory, disk, GPUs. A thread on one rank.

While ranks wait for a core, the process table is looked at as well, less and less often.
Now and then some seconds are sampled at 50 Hz with the step and phase under way: the lens, which shows where
in a step the traffic flows. A reading costs about 0.2 ms of one core, one of the lens 10 microseconds.
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

_LENS_SECONDS = 4.0
_LENS_PERIOD = 0.02
_LENS_EVERY = 1800.0
_LENS_AFTER = 5.0  # of training: the first steps are not typical

_QUEUED = 0.05  # of a second that a rank waits for a core: less is the scheduler's own
_FIRST_PAUSE, _LONGEST_PAUSE = 3.0, 300.0  # seconds between two looks at the process table
# Of the group that a container's processes are in, as they see it: version 2, then version 1.
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
    """Samples until told to stop. Rows are taken by the recorder at its intervals, and dated there."""

    def __init__(
        self, interface: str, phases: Phases, gpus: Collection[str] = (), ranks: Collection[int] = ()
    ):
        """`interface` carries the gradients; `gpus` are the UUIDs of those its ranks compute on.

        `ranks` are the processes of the run that this one can see.
        """
        self.interfaces = sorted(interface_bytes())  # rows name an interface by its place in this list
        self.cores = psutil.cpu_count() or 1
        self.cost_seconds = 0.0  # CPU time of the thread
        self._interface = interface
        self._phases = phases
        self._gpus = GpuReader(gpus)
        self._lock = threading.Lock()
        self._nics: Rows = []
        self._hosts: Rows = []
        self._gpu_rows: Rows = []
        self._lens: Rows = []
        self.programs: list[str] = []  # rows name a program by its place in this list
        self._program_rows: Rows = []
        self._ranks = {os.getpid(), *ranks}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="meter", daemon=True)
        self._thread.start()

    def take(self) -> dict[str, np.ndarray]:
        """The rows since the last call, by table. Each begins with a reading of the clock."""
        with self._lock:
            taken = {"nics": self._nics, "hosts": self._hosts, "gpus": self._gpu_rows, "lens": self._lens}
            taken["programs"] = self._program_rows
            self._nics, self._hosts, self._gpu_rows, self._lens = [], [], [], []
            self._program_rows = []
        return {name: np.array(rows, dtype=np.float64) for name, rows in taken.items()}

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        psutil.cpu_percent(percpu=True)  # the first call only sets its reference
        before, since = _Counters(self._ranks), clock.seconds()
        lens_at = since + _LENS_AFTER
        watch = _Watch(self._ranks)
        while not self._stop.wait(max(0.0, since + 1.0 - clock.seconds())):
            now = clock.seconds()
            after = _Counters(self._ranks)
            self._second(before, after, since, now - since)
            if found := watch.second(now, before.queued(after)):
                self._note_programs(*found)
            before, since = after, now
            if now >= lens_at and self._phases.step:
                lens_at = now + _LENS_EVERY
                self._sample_lens()
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

    def _sample_lens(self) -> None:
        ends = clock.seconds() + _LENS_SECONDS
        while clock.seconds() < ends and not self._stop.wait(_LENS_PERIOD):
            received, sent = interface_bytes().get(self._interface, (0, 0))
            row = (clock.seconds(), sent, received, self._phases.step, self._phases.current)
            with self._lock:
                self._lens.append(row)


class _Counters:
    """Everything that only ever rises."""

    def __init__(self, ranks: Collection[int]) -> None:
        self.nics = interface_bytes()
        disk = psutil.disk_io_counters()
        self.disk = (disk.read_bytes, disk.write_bytes) if disk else (0, 0)
        self.stolen = float(getattr(psutil.cpu_times(), "steal", np.nan))  # seconds, over all cores
        self.throttled = _throttled_seconds()
        self.queued_by = {rank: seconds for rank in ranks if (seconds := _queued_seconds(rank)) is not None}

    def queued(self, after: _Counters) -> float:
        """Seconds for which the main thread of a rank wanted a core and had none: the most of any rank."""
        waited = [
            after.queued_by[rank] - self.queued_by[rank]
            for rank in self.queued_by.keys() & after.queued_by.keys()
        ]
        return max(waited, default=0.0)


class _Watch:
    """Looks at the process table while ranks wait for a core: for a second, less and less often."""

    def __init__(self, ranks: Collection[int]):
        self._ranks = ranks
        self._neighbours: Neighbours | None = None
        self._began = 0.0
        self._again_at = 0.0
        self._pause = _FIRST_PAUSE

    def second(self, now: float, queued: float) -> tuple[float, float, list[RunningProgram]] | None:
        """What a look that began a second ago has found, and for which time."""
        if self._neighbours:
            began, programs = self._began, self._neighbours.busiest()
            self._neighbours = None
            return began, now - began, programs
        if queued >= _QUEUED and now >= self._again_at:
            self._neighbours, self._began = Neighbours(self._ranks), now
            self._again_at, self._pause = now + self._pause, min(_LONGEST_PAUSE, 1.5 * self._pause)
        return None


def _queued_seconds(process: int) -> float | None:
    """For which its main thread was ready to run and did not; None where the kernel does not tell."""
    with suppress(OSError, ValueError), open(f"/proc/{process}/schedstat") as file:
        return int(file.read().split()[1]) * 1e-9
    return None


def _throttled_seconds() -> float:
    """For which a limit on this process's group held it back so far; NaN where that cannot be read."""
    for path, name, unit in _LIMITS:
        with suppress(OSError, ValueError), open(path) as file:
            for line in file:
                key, _, value = line.partition(" ")
                if key == name:
                    return int(value) * unit
    return math.nan
