"""Finds other programs that use this machine's cores, by name.

The ranks, the processes that started them and the processes they started belong to the run; every other
process that this one can see is another program. Other containers and virtual machines cannot be seen.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from dragoman.measure.clock import boot
from dragoman.sync.world import World

LEAST_CORES = 0.05  # a program that uses fewer cores does no harm
MOST_NAMED = 3
_TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")
_LONGEST_NAME = 40


class RunningProgram(NamedTuple):
    name: str
    cores: float  # mean number of cores that it used


# Interpreters: the script they run says more than their own name.
_INTERPRETERS = ("python", "java", "perl", "ruby", "node", "bash", "sh", "Rscript", "julia")


class _Process(NamedTuple):
    name: str
    parent: int
    seconds: float  # CPU time so far
    began: int  # distinguishes processes, because the kernel reuses process ids


class Neighbours:
    """Compares the process table with its state at the last call. Costs about 15 microseconds per process."""

    def __init__(self, ranks: Collection[int] = ()):
        """`ranks` are the process ids of the run's ranks that this process can see."""
        self._ranks = {os.getpid(), *ranks}
        self._looked = time.perf_counter()
        self._before = _processes()

    def busiest(self) -> list[RunningProgram]:
        """The programs that used most CPU since the last call; processes of one name are added up."""
        now, after = time.perf_counter(), _processes()
        span, before = now - self._looked, self._before
        self._looked, self._before = now, after
        ours, used = _family(after, self._ranks), dict[str, float]()
        for number, process in after.items():
            earlier = before.get(number)
            if number not in ours and span > 0:
                known = earlier.seconds if earlier and earlier.began == process.began else 0.0
                spent = (process.seconds - known) / span
                if spent > 0:
                    name = _running(number, process.name)
                    used[name] = used.get(name, 0.0) + spent
        programs = [RunningProgram(name, cores) for name, cores in used.items() if cores >= LEAST_CORES]
        return sorted(programs, key=lambda program: -program.cores)[:MOST_NAMED]


def ranks_here(world: World) -> list[int]:
    """The process ids of all ranks that this rank can see, whatever their host names. Collective."""
    view = f"{boot()} {_pid_namespace()}"
    views = [text.rsplit(" ", 1) for text in world.gather_text(f"{view} {os.getpid()}")]
    return [int(number) for other, number in views if other == view]


def _pid_namespace() -> str:
    """The id of this process's PID namespace. Processes that share it see each other."""
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


def _processes() -> dict[int, _Process]:
    """All visible processes by id; empty without /proc."""
    processes = {}
    with suppress(OSError):
        for number in filter(str.isdigit, os.listdir(_PROC)):
            with suppress(OSError, ValueError, IndexError):
                file = os.open(f"/proc/{number}/stat", os.O_RDONLY)
                try:
                    processes[int(number)] = _parsed(os.read(file, 1024).decode(errors="replace"))
                finally:
                    os.close(file)
    return processes


def _parsed(stat: str) -> _Process:
    """Parses /proc/PID/stat. The name in it may contain spaces and brackets."""
    before, _, after = stat.rpartition(")")
    fields = after.split()
    seconds = (int(fields[11]) + int(fields[12])) * _TICK_SECONDS
    return _Process(before.partition("(")[2][:_LONGEST_NAME], int(fields[1]), seconds, int(fields[19]))


def _running(number: int, name: str) -> str:
    """A process's name, for an interpreter with its script or module. Other arguments may hold secrets."""
    if not name.startswith(_INTERPRETERS):
        return name
    with suppress(OSError):
        words = (_PROC / str(number) / "cmdline").read_bytes().decode(errors="replace").split("\0")[1:]
        while words and words[0].startswith("-") and words[0] not in ("-m", "-c", "-"):
            words = words[1:]
        if words[:1] == ["-m"]:
            words = words[1:]
        if words and words[0] and not words[0].startswith("-"):
            return f"{name} {Path(words[0]).name}"[:_LONGEST_NAME]
    return name


def _family(processes: dict[int, _Process], ranks: Collection[int]) -> set[int]:
    """The process ids of the ranks, their ancestors and their descendants."""
    ancestors: set[int] = set()
    for rank in ranks:
        number = rank
        while number in processes and number not in ancestors:
            ancestors.add(number)
            number = processes[number].parent
    family = set(ranks)
    for number in processes:
        line = []
        while number in processes and number not in family and number not in line:
            line.append(number)
            number = processes[number].parent
        if number in family:
            family.update(line)
    return family | ancestors
