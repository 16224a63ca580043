"""Where the bench of faults trains: hosts of the test bed, and a launcher whose lines are dated."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from dragoman import stacks
from dragoman.rundir import RunFolder
from testbed import Cluster
from testbed.host import TestbedError

HANG_SECONDS = 120.0  # without a step where one is due
DISK = "64m"
LOOK_SECONDS = 0.02
_RAISING = Path(__file__).with_name("raising")
_STEP = re.compile(r"\| step ([\d,]+)/")
_CONTINUED = re.compile(r"\| continuing (after|from) step ([\d,]+)")


class Hang(Exception):
    """No step for so long."""


class Lost(Exception):
    """The run ended where it should not have."""


@dataclass(frozen=True)
class Layout:
    """Where a run trains, and how."""

    workers: tuple[int, ...]  # of each host
    mode: str
    has_own_disks: bool = True
    is_launched_inside: bool = False  # on the first host; else on a host without ranks

    @property
    def ranks(self) -> int:
        return sum(self.workers)

    @property
    def hosts(self) -> str:
        return ",".join(f"h{number}:{workers}" for number, workers in enumerate(self.workers))


@dataclass(frozen=True)
class Line:
    moment: float
    text: str

    @property
    def step(self) -> int | None:
        return _number(match[1]) if (match := _STEP.search(self.text)) else None

    @property
    def continued(self) -> tuple[bool, int] | None:
        """Whether from memory, and after which step."""
        match = _CONTINUED.search(self.text)
        return (match[1] == "after", _number(match[2])) if match else None


def _number(text: str) -> int:
    return int(text.replace(",", ""))


class Site:
    """The hosts of one run, and what runs on them. The run folder has the same path on each."""

    def __init__(self, cluster: Cluster, layout: Layout, folder: Path):
        self.cluster, self.layout, self.folder = cluster, layout, folder
        self.hosts = range(len(layout.workers))
        self.run = folder / "disk" / "run"
        self._servers = {host: set(cluster.processes(host)) for host in self.hosts}
        self.launch_host = 0 if layout.is_launched_inside else len(layout.workers)

    def disk(self, host: int) -> RunFolder:
        """The run folder as this host sees it."""
        return RunFolder(Path(f"/proc/{self.cluster.first_process(host)}/root{self.run}"))

    def processes(self, host: int) -> list[psutil.Process]:
        """All but the ssh server."""
        return _known(set(self.cluster.processes(host)) - self._servers[host])

    def ranks(self, host: int) -> list[psutil.Process]:
        return [one for one in self.processes(host) if _is_rank(one)]

    def agents(self, host: int) -> list[psutil.Process]:
        return [one for one in self.processes(host) if "dragoman.launch.agent" in _words(one)]

    def with_ranks(self) -> list[int]:
        return [host for host in self.hosts if self.ranks(host)]


def _known(pids: set[int]) -> list[psutil.Process]:
    found = []
    for pid in sorted(pids):
        with suppress(psutil.Error):
            found.append(psutil.Process(pid))
    return found


def _words(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return list(process.cmdline())
    return []


def _is_rank(process: psutil.Process) -> bool:
    words = _words(process)
    return "train" in words and "dragoman" in words and "--hosts" not in words


def kill(processes: Sequence[psutil.Process], number: int = signal.SIGKILL) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)


@contextmanager
def site(layout: Layout, folder: Path) -> Iterator[Site]:
    (folder / "disk").mkdir(parents=True, exist_ok=True)
    hosts = len(layout.workers) + (not layout.is_launched_inside)
    variables = {"PYTHONPATH": str(_RAISING)}
    with Cluster(hosts, with_ssh=True, cores_per_host=1, ssh_variables=variables) as cluster:
        if layout.has_own_disks:
            for host in range(len(layout.workers)):
                mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder / "disk")]
                cluster.run(host, mount)
        yield Site(cluster, layout, folder)


@dataclass
class Launched:
    """The command under way, and all that it and its successors have said."""

    site: Site
    words: Sequence[str]
    lines: list[Line] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None
    launches: int = 0
    _reader: threading.Thread | None = None

    def start(self) -> None:
        self.process = self.site.cluster.popen(
            self.site.launch_host,
            self.words,
            env={"PYTHONPATH": str(_RAISING)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.launches += 1
        self.note(f"launched {' '.join(self.words[-2:])}")
        self._reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self._reader.start()

    def note(self, text: str) -> None:
        """Adds a line of our own."""
        self._add(f"# {text}")

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout
        with process.stdout:
            for text in process.stdout:
                self._add(text.rstrip("\n"))

    def _add(self, text: str) -> None:
        line = Line(time.monotonic(), text)
        self.lines.append(line)
        with (self.site.folder / "output.txt").open("a") as file:
            file.write(f"{time.time():.3f} {text}\n")

    def code(self) -> int | None:
        assert self.process
        return self.process.poll()

    def steps(self, since: int = 0) -> list[tuple[float, int]]:
        found = self.lines[since:]
        return [(line.moment, line.step) for line in found if line.step is not None]

    def newest_step(self) -> int:
        return max((step for _, step in self.steps()), default=0)

    def said(self, words: str, since: int = 0) -> bool:
        return any(words in line.text for line in self.lines[since:])

    def wait(self, is_so: Callable[[], object], what: str, may_end: bool = False) -> None:
        """Waits for something that steps or the command's end bring about."""
        moved, count = time.monotonic(), len(self.lines)
        while not is_so():
            if not may_end and self.code() is not None:
                time.sleep(0.3)  # for its last lines
                if is_so():
                    return
                raise Lost(f"ended with {self.code()} before {what}")
            if any(line.step is not None or line.continued for line in self.lines[count:]):
                moved, count = time.monotonic(), len(self.lines)
            if time.monotonic() - moved > HANG_SECONDS:
                raise Hang(what)
            time.sleep(LOOK_SECONDS)

    def wait_for_step_after(self, since: int, step: int = 0) -> None:
        self.wait(lambda: any(made > step for _, made in self.steps(since)), f"a step after {step}")

    def end(self) -> None:
        """Waits for the command to end by itself."""
        self.wait(lambda: self.code() is not None, "the end", may_end=True)
        if self._reader:
            self._reader.join(10)

    def kill(self) -> None:
        assert self.process and self._reader
        self.process.kill()
        self.process.wait()
        self._reader.join(10)

    def keep_stacks(self) -> None:
        """Writes where every process is to a file beside the output."""
        with (self.site.folder / "stacks.txt").open("a") as file:
            launch_host = {self.site.launch_host}
            for host in sorted(set(self.site.hosts) | launch_host):
                pids = set(self.site.cluster.processes(host))
                for one in _known(pids):
                    words = " ".join(_words(one))
                    if "dragoman" in words:
                        path = self.site.folder / "none"
                        file.write(f"h{host} {one.pid} {words}\n{stacks.of_process(one.pid, path)}\n")


PYTHON = [sys.executable, "-m", "dragoman"]

__all__ = ["PYTHON", "Hang", "Launched", "Layout", "Line", "Lost", "Site", "TestbedError", "kill", "site"]
