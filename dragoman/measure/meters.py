"""What a host does, by the second: bytes on every interface, CPU, memory, disk, GPUs. A thread on one rank.

Now and then some seconds are sampled at 50 Hz with the step and phase under way: the lens, which shows where
in a step the traffic flows. A reading costs about 0.2 ms of one core, one of the lens 10 microseconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection

import numpy as np
import psutil

from dragoman.measure import clock
from dragoman.measure.gpus import Gpus
from dragoman.measure.phases import Phases

_LENS_SECONDS = 4.0
_LENS_PERIOD = 0.02
_LENS_EVERY = 1800.0
_LENS_AFTER = 5.0  # of training: the first steps are not typical

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

    def __init__(self, interface: str, phases: Phases, gpus: Collection[str] = ()):
        """`interface` carries the gradients; `gpus` are the UUIDs of those its ranks compute on."""
        self.interfaces = sorted(interface_bytes())  # rows name an interface by its place in this list
        self.cores = psutil.cpu_count() or 1
        self.cost_seconds = 0.0  # CPU time of the thread
        self._interface = interface
        self._phases = phases
        self._gpus = Gpus(gpus)
        self._lock = threading.Lock()
        self._nics: Rows = []
        self._hosts: Rows = []
        self._gpu_rows: Rows = []
        self._lens: Rows = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="meter", daemon=True)
        self._thread.start()

    def take(self) -> dict[str, np.ndarray]:
        """The rows since the last call: nics, hosts, gpus, lens. Each begins with a reading of the clock."""
        with self._lock:
            taken = {"nics": self._nics, "hosts": self._hosts, "gpus": self._gpu_rows, "lens": self._lens}
            self._nics, self._hosts, self._gpu_rows, self._lens = [], [], [], []
        return {name: np.array(rows, dtype=np.float64) for name, rows in taken.items()}

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        psutil.cpu_percent(percpu=True)  # the first call only sets its reference
        before, since = _Counters(), clock.seconds()
        lens_at = since + _LENS_AFTER
        while not self._stop.wait(max(0.0, since + 1.0 - clock.seconds())):
            now = clock.seconds()
            after = _Counters()
            self._second(before, after, since, now - since)
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
            self._hosts.append((when, span, share, max(cores), memory, read, written, *cores[: self.cores]))
            self._gpu_rows += [(when, span, *row) for row in self._gpus.read()]

    def _sample_lens(self) -> None:
        ends = clock.seconds() + _LENS_SECONDS
        while clock.seconds() < ends and not self._stop.wait(_LENS_PERIOD):
            received, sent = interface_bytes().get(self._interface, (0, 0))
            row = (clock.seconds(), sent, received, self._phases.step, self._phases.current)
            with self._lock:
                self._lens.append(row)


class _Counters:
    """Everything that only ever rises."""

    def __init__(self) -> None:
        self.nics = interface_bytes()
        disk = psutil.disk_io_counters()
        self.disk = (disk.read_bytes, disk.write_bytes) if disk else (0, 0)
