"""Collects the facts of this host. Nothing here contacts another host or writes anything."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

import dragoman
from dragoman import kinds
from dragoman.data.parallel import cores
from dragoman.data.store import DataSet
from dragoman.doctor import gpus
from dragoman.doctor.facts import DataFacts, GpuFacts, HostFacts, Interface, OtherProgram
from dragoman.errors import DragomanError, UsageError
from dragoman.measure.clock import boot
from dragoman.measure.neighbours import Neighbours
from dragoman.rundir import RunFolder

_LOOK_SECONDS = 0.5  # the kernel counts CPU time in ticks of 10 ms
_MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # containers


def inspect(data: str | None = None, run: str = ".", with_peak: bool = False) -> dict[str, Any]:
    """The facts of this host as JSON values; see `facts.HostFacts`. With the peak it takes a few seconds."""
    neighbours, began = Neighbours(), time.monotonic()
    collected = facts(Path(data) if data else None, Path(run), with_peak)
    time.sleep(max(0.0, began + _LOOK_SECONDS - time.monotonic()))
    collected.programs = programs(neighbours)
    return collected.model_dump()


def programs(neighbours: Neighbours) -> list[OtherProgram]:
    """The busiest other programs since `neighbours` was made."""
    return [OtherProgram(name=name, cores=cores) for name, cores in neighbours.busiest()]


def facts(data: Path | None, run: Path, with_peak: bool = False) -> HostFacts:
    """All facts of this host but those that need time or other hosts."""
    disk = _existing(run)
    memory = psutil.virtual_memory()
    limit = _memory_limit()
    devices = gpus.inspect()
    return HostFacts(
        name=socket.gethostname(),
        boot=boot(),
        versions=versions(),
        data=_data(data) if data else None,
        interfaces=interfaces(),
        disk_path=str(disk),
        disk_free_bytes=shutil.disk_usage(disk).free,
        run_problem=_run_problem(run),
        checkpoint_bytes=_bytes_below(run / "checkpoints"),
        memory_bytes=min(memory.total, limit),
        memory_available_bytes=min(memory.available, limit),
        cores=cores(),
        core_numbers=sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
        load=os.getloadavg()[0],
        gpus=devices,
        peaks=_peaks(devices) if with_peak else [],
    )


def versions() -> dict[str, str]:
    """The versions; Dragoman's has a checksum, as a number says little about code being worked on."""
    return {
        "python": platform.python_version(),
        "torch": version("torch"),
        "dragoman": f"{dragoman.__version__} (code {_code_checksum()})",
    }


def clock() -> dict[str, float]:
    return {"unix_seconds": time.time()}


def resolve(names: Sequence[str]) -> dict[str, list[str]]:
    """The addresses that names resolve to on this host; an empty list for one that does not resolve."""
    return {name: _addresses(name) for name in names}


def interfaces() -> list[Interface]:
    """The interfaces with an IP address, except loopback."""
    states = psutil.net_if_stats()
    with_address = []
    for name, entries in psutil.net_if_addrs().items():
        addresses = [
            entry.address.split("%")[0]
            for entry in entries
            if entry.family in (socket.AF_INET, socket.AF_INET6)
        ]
        if addresses and name != "lo" and name in states:
            state = states[name]
            with_address.append(
                Interface(name=name, is_up=state.isup, addresses=addresses, reported_megabits=state.speed)
            )
    return with_address


def _data(path: Path) -> DataFacts:
    try:
        card = DataSet(path).card
    except DragomanError as error:
        return DataFacts(path=str(path), problem=f"{error.where}: {error.what}", hint=error.hint)
    except OSError as error:
        return DataFacts(path=str(path), problem=f"{path}: {error.strerror or error}")
    train = card.parts["train"]
    return DataFacts(
        path=str(path),
        fingerprint=card.fingerprint,
        vocabulary=card.vocabulary_pieces,
        sentence_tokens=(train.source.tokens + train.target.tokens) / 2 / train.pairs,
    )


def _run_problem(path: Path) -> str:
    try:
        RunFolder(path).check_place()
        kinds.check_for_run(path)
    except UsageError as error:
        return f"{error.where}: {error.what}"
    return ""


def _addresses(name: str) -> list[str]:
    try:
        entries = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def _existing(path: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(place for place in (path.absolute(), *path.absolute().parents) if place.exists())


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # another training is writing there; the lock reports that later
            total += path.stat().st_size
    return total


def _memory_limit() -> int:
    """The memory limit of the container that this process may be in."""
    for path in map(Path, _MEMORY_LIMITS):
        if path.exists() and (text := path.read_text().strip()).isdigit():
            return int(text)
    return sys.maxsize


def _code_checksum() -> str:
    whole = hashlib.sha256()
    folder = Path(dragoman.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        whole.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return whole.hexdigest()[:8]


def _peaks(devices: GpuFacts) -> list[float]:
    """The peak FLOP/s of each GPU that torch has kernels for, or of all cores together."""
    import torch

    from dragoman.measure import probes

    if devices.usable:
        able = [number for number, gpu in enumerate(devices.usable) if devices.has_kernels(gpu)]
        return [probes.own_peak(torch.device("cuda", number)) for number in able]
    torch.set_num_threads(cores())
    return [probes.own_peak(torch.device("cpu"))]
