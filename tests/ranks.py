"""Starts ranks without a launcher, here or on the hosts of a test bed, and commands; reads what they say.

To start Python and to import torch takes longer than the short runs of tests do. So where a test is about
what ranks or a command do, and not about how they start or end, they are forks of a process that has all of
that imported: processes with sockets between them all the same. (Forks run no `atexit`.)
"""

from __future__ import annotations

import json
import multiprocessing
import os
import runpy
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from dragoman.launch import environment
from testbed import Cluster
from testbed.host import become

WAIT_SECONDS = 120  # for what takes seconds: the machine may be busy
PORT = 29_400  # on hosts of a test bed, where everything is free
_FORKS = multiprocessing.get_context("forkserver")
# dynamo: torch imports it when the first optimizer is made, and that takes as long as all the rest
_FORKS.set_forkserver_preload(
    ["torch._dynamo", "dragoman.cli", "dragoman.train.run", "dragoman.engines", "sacrebleu", "tests.ranks"]
)
# These would put escape codes into the text.
_COLOURS = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS")


@dataclass(frozen=True)
class Ended:
    """What a rank, or all of them, came to."""

    returncode: int
    stdout: str
    stderr: str

    def said(self) -> str:
        assert self.returncode == 0, self.stderr
        return self.stdout

    def answers(self) -> list[dict[str, Any]]:
        """Its lines of JSON."""
        return [json.loads(line) for line in self.said().splitlines()]


def place(rank: int, size: int, local_rank: int, local_size: int, address: str, port: int) -> dict[str, str]:
    """What a launcher tells a rank."""
    told = environment.place(rank, size, local_rank, local_size, address, port)
    return told | {"OMP_NUM_THREADS": "1"}


def command(*words: object, text: str = "", folder: Path | None = None, columns: int = 200) -> Ended:
    """`dragoman WORDS` with a text as its standard input, as if on a terminal this wide."""
    told = {name: value for name, value in os.environ.items() if name not in _COLOURS}
    told |= {"COLUMNS": str(columns)}
    with tempfile.TemporaryDirectory() as own:
        (given := Path(own, "in")).write_text(text)
        said = Path(own, "out"), Path(own, "err")
        start = _Start("dragoman", [str(word) for word in words], told, _core(1), given, folder)
        fork = Fork(_FORKS.Process(target=_be, args=(start, *said)), *said)
        fork.process.start()
        try:
            fork.process.join(WAIT_SECONDS)
            return fork.ended()
        finally:
            fork.process.kill()
            fork.process.join()
            fork.process.close()


def run(module: str, arguments: Sequence[object], count: int) -> Ended:
    """`python -m MODULE ARGUMENTS` as so many ranks: all that they said, and the first bad exit code."""
    ended = each(module, arguments, count)
    code = next((rank.returncode for rank in ended if rank.returncode), 0)
    return Ended(code, "".join(rank.stdout for rank in ended), "".join(rank.stderr for rank in ended))


def each(module: str, arguments: Sequence[object], count: int) -> list[Ended]:
    """The same, rank by rank."""
    with started(module, arguments, count) as forks:
        return _ended(forks)


@dataclass(frozen=True)
class Fork:
    """A rank under way, and where what it says goes."""

    process: multiprocessing.process.BaseProcess
    out: Path
    err: Path

    def ended(self) -> Ended:
        assert self.process.exitcode is not None, f"still running after {WAIT_SECONDS} s"
        return Ended(self.process.exitcode, self.out.read_text(), self.err.read_text())


@contextmanager
def started(module: str, arguments: Sequence[object], count: int) -> Iterator[list[Fork]]:
    """So many ranks under way; at the end of the block what is left of them is killed."""
    words = [str(argument) for argument in arguments]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    starts = []
    for rank in range(count):
        environment = dict(os.environ) | place(rank, count, rank, count, "127.0.0.1", port)
        starts.append(_Start(module, words, environment, _core(count)))
    with _forked(starts) as forks:
        yield forks


@contextmanager
def _forked(starts: Sequence[_Start]) -> Iterator[list[Fork]]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        forks = []
        for rank, start in enumerate(starts):
            said = Path(folder, f"{rank}.out"), Path(folder, f"{rank}.err")
            process = _FORKS.Process(target=_be, args=(start, *said))
            process.start()
            stack.callback(process.close)
            stack.callback(process.join)
            stack.callback(process.kill)
            forks.append(Fork(process, *said))
        yield forks


def _ended(forks: Sequence[Fork]) -> list[Ended]:
    deadline = time.monotonic() + WAIT_SECONDS
    for fork in forks:
        fork.process.join(max(0.0, deadline - time.monotonic()))
    return [fork.ended() for fork in forks]


def on_hosts(
    cluster: Cluster, module: str, arguments: Sequence[object], per_host: Sequence[int]
) -> list[Ended]:
    """So many on each host of a test bed; the first host's address is where they meet."""
    words = [str(argument) for argument in arguments]
    places = [(host, local) for host, ranks in enumerate(per_host) for local in range(ranks)]
    cores = sorted(os.sched_getaffinity(0))
    starts = []
    for rank, (host, local) in enumerate(places):
        told = place(rank, len(places), local, per_host[host], cluster.addresses[0], PORT)
        core = {cores[rank % len(cores)]}
        pid = cluster.first_process(host)
        starts.append(_Start(module, words, dict(os.environ) | told, core, host=pid))
    with _forked(starts) as forks:
        return _ended(forks)


def _core(count: int) -> set[int]:
    """A core of its own for a rank alone: two threads that wait for each other crawl on a busy machine."""
    cores = sorted(os.sched_getaffinity(0))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    return {cores[worker % len(cores)]} if count == 1 else set(cores)


@dataclass(frozen=True)
class _Start:
    """How a fork begins."""

    module: str
    words: Sequence[str]
    environment: Mapping[str, str]
    cores: set[int]
    given: Path | None = None  # its standard input
    folder: Path | None = None
    host: int | None = None  # the first process of the host of a test bed that it is to run on


def _be(start: _Start, out: Path, err: Path) -> NoReturn:
    """In the fork: one rank, or a command."""
    os.environ.clear()
    os.environ.update(start.environment)
    os.sched_setaffinity(0, start.cores)
    if start.host:
        become(start.host)
    if start.folder:
        os.chdir(start.folder)
    if start.given:
        _become(0, start.given, os.O_RDONLY)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - multiprocessing has closed it, and it stays open
    _become(1, out, os.O_WRONLY | os.O_CREAT)
    _become(2, err, os.O_WRONLY | os.O_CREAT)
    sys.argv = [start.module, *start.words]
    runpy.run_module(start.module, run_name="__main__", alter_sys=True)
    sys.exit()


def _become(descriptor: int, path: Path, flags: int) -> None:
    file = os.open(path, flags)
    os.dup2(file, descriptor)
    if file != descriptor:
        os.close(file)
