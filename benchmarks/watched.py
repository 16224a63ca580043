"""Watches a training from outside: CPU-seconds and memory of its processes, measured alike for every trainer.

The training itself reports when a step ended; its cost until then is read from /proc, 20 times a second.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

_SAMPLE_SECONDS = 0.05
_MOST_SECONDS = 3600


@dataclass(frozen=True)
class Watched:
    started: float  # Unix time at which the command started
    times: np.ndarray  # Unix time of each sample
    cpu_seconds: np.ndarray  # until then, of all processes that train
    peak_bytes: np.ndarray  # until then, of the process with the most resident memory

    def cpu_between(self, begin: float, end: float) -> float:
        begun, ended = np.interp((begin, end), self.times, self.cpu_seconds)
        return float(ended - begun)

    def peak_until(self, end: float) -> float:
        return float(self.peak_bytes[np.searchsorted(self.times, end) - 1])


def watch(
    command: Sequence[str],
    trains: Callable[[psutil.Process], bool],
    processes: int,
    environment: Mapping[str, str],
    cores: Sequence[int],
    log: Path,
) -> Watched:
    """Run a command to its end on these cores; `trains` tells which of its processes count."""
    pinned = ["taskset", "-c", ",".join(map(str, cores)), *command]
    with open(log, "w") as output:
        started = time.time()
        process = psutil.Popen(
            pinned, env=dict(environment), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            samples = _sample(process, trains, processes, started + _MOST_SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
    if code or not samples:
        raise RuntimeError(f"{' '.join(command)}: ended with {code}\n{log.read_text()[-4000:]}")
    times, cpu_seconds, peak_bytes = np.array(samples).T
    return Watched(started, times, cpu_seconds, peak_bytes)


def _sample(
    process: psutil.Popen, trains: Callable[[psutil.Process], bool], processes: int, until: float
) -> list[tuple[float, float, float]]:
    samples: list[tuple[float, float, float]] = []
    training: list[psutil.Process] = []
    while process.poll() is None and time.time() < until:
        with suppress(psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):
            if len(training) < processes:
                training = [each for each in (process, *process.children(recursive=True)) if trains(each)]
            else:
                times = [each.cpu_times() for each in training]
                cpu_seconds = sum(used.user + used.system for used in times)
                samples.append((time.time(), cpu_seconds, max(map(_peak_bytes, training))))
        time.sleep(_SAMPLE_SECONDS)
    return samples


def _peak_bytes(process: psutil.Process) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return 1024 * next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
