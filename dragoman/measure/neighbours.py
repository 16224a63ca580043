"""Which other programs use this machine's cores, by name.

A rank, the programs that started it and those that it started are the run; everything else that this process
can see is another program. What runs in other containers or virtual machines cannot be seen.
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

LEAST_CORES = 0.05  # a program that uses less takes nothing away
MOST_NAMED = 3
_TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")
_LONGEST_NAME = 40


class RunningProgram(NamedTuple):
    name: str
    cores: float  # that it used, on average


# Programs that run others: what they run says more than their own name.
_INTERPRETERS = ("python", "java", "perl", "ruby", "node", "bash", "sh", "Rscript", "julia")


class _Process(NamedTuple):
    name: str
    parent: int
    seconds: float  # of CPU so far
    began: int  # a process number may be given again


class Neighbours:
    """Compares each look at the process table with the one before: about 15 microseconds per process."""

    def __init__(self, ranks: Collection[int] = ()):
        """`ranks` are the process numbers of the run's ranks that this process can see."""
        self._ranks = {os.getpid(), *ranks}
        self._looked = time.perf_counter()
        self._before = _processes()

    def busiest(self) -> list[RunningProgram]:
        """Those that used most CPU since the last look, processes of one name together."""
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
    """Process numbers of the ranks that this rank can see, whatever hosts they call theirs. Collective."""
    view = f"{boot()} {_view()}"
    told = [text.rsplit(" ", 1) for text in world.gather_text(f"{view} {os.getpid()}")]
    return [int(number) for other, number in told if other == view]


def _view() -> str:
    """The same for processes that see each other."""
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


def _processes() -> dict[int, _Process]:
    """Empty where there is no /proc."""
    found = {}
    with suppress(OSError):
        for number in filter(str.isdigit, os.listdir(_PROC)):
            with suppress(OSError, ValueError, IndexError):
                file = os.open(f"/proc/{number}/stat", os.O_RDONLY)
                try:
                    found[int(number)] = _parsed(os.read(file, 1024).decode(errors="replace"))
                finally:
                    os.close(file)
    return found


def _parsed(stat: str) -> _Process:
    """The name may hold spaces and brackets."""
    before, _, after = stat.rpartition(")")
    fields = after.split()
    seconds = (int(fields[11]) + int(fields[12])) * _TICK_SECONDS
    return _Process(before.partition("(")[2][:_LONGEST_NAME], int(fields[1]), seconds, int(fields[19]))


def _running(number: int, name: str) -> str:
    """The name, and of an interpreter also the file or module that it runs; no other arguments: secrets."""
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
    """The ranks, those that started them, and whatever was started by ranks."""
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
