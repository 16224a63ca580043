"""Out-of-memory kills, by what the kernel tells of them: its log names processes, a cgroup counts kills.

The killed process only sees SIGKILL, as after `kill -9`. In a container the log is rarely readable, and names
processes by numbers of the host; the counter works there too.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

_KILLED = re.compile(r"\w[\w ]*: Killed process (\d+).*")
_KMSG = Path("/dev/kmsg")
_MOST_BYTES = 8192  # of one message; the kernel refuses to read into less than it needs
_CGROUPS = Path("/sys/fs/cgroup")
_LOG_SECONDS = 0.5  # the kernel counts a kill before it sends the signal, and writes its log after that
_POLL_SECONDS = 0.02
_DMESG_SECONDS = 2.0


class Kills:
    """The kernel's out-of-memory kills since this was made."""

    def __init__(self, log: Log | None = None) -> None:
        self._log = log or _kernel_log()
        self._told: dict[int, str] = {}
        self._counter = counter_file()
        self._explained = _count(self._counter)  # kills before our time, and those told of

    def told_of(self, pid: int) -> str:
        """What the kernel tells of having killed this process, which SIGKILL has ended; empty if it did not.

        A kill that was counted, but that the log does not tell of, explains one death.
        """
        until = time.monotonic() + _LOG_SECONDS
        counted = _count(self._counter)
        while True:
            self._told |= self._log.kills()
            if pid in self._told or counted <= self._explained or time.monotonic() >= until:
                break
            time.sleep(_POLL_SECONDS)
        is_counted = counted > self._explained
        self._explained += is_counted
        if pid in self._told:
            return self._told.pop(pid)  # another process may get the same number
        return "the kernel counted an out-of-memory kill in the launcher's cgroup" if is_counted else ""


class Log(Protocol):
    def kills(self) -> dict[int, str]:
        """The processes killed since the last call, with the kernel's message about each."""


def _kernel_log() -> Log:
    try:
        return _Messages(os.open(_KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return Dmesg()


class _Messages:
    """The kernel's log as a stream. A descriptor has a position of its own in it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        os.lseek(descriptor, 0, os.SEEK_END)

    def kills(self) -> dict[int, str]:
        return _kills("\n".join(self._new()))

    def _new(self) -> Iterator[str]:
        while True:
            try:
                message = os.read(self._descriptor, _MOST_BYTES)
            except BrokenPipeError:  # messages were overwritten before we read them; the rest follows
                continue
            except OSError:  # there are no more for now
                return
            if not message:  # containers may have /dev/null here
                return
            yield message.decode(errors="replace").partition(";")[2]

    def __del__(self) -> None:
        os.close(self._descriptor)


class Dmesg:
    """The kernel's log as the command `dmesg` prints it. Without permission it prints nothing."""

    def __init__(self) -> None:
        self._known = self._lines()

    def kills(self) -> dict[int, str]:
        lines = self._lines()
        new, self._known = lines - self._known, self._known | lines
        return _kills("\n".join(new))

    def _lines(self) -> set[str]:
        """The messages about kills; their times tell them apart."""
        with suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(
                ["dmesg"], capture_output=True, text=True, errors="replace", timeout=_DMESG_SECONDS
            )
            return {line for line in done.stdout.splitlines() if _KILLED.search(line)}
        return set()


def _kills(text: str) -> dict[int, str]:
    return {int(match[1]): match[0] for match in _KILLED.finditer(text)}


def counter_file(own: str | None = None, root: Path = _CGROUPS) -> Path | None:
    """The file in which the kernel counts kills in this process's cgroup, or None if there is none.

    `own` is the text of /proc/self/cgroup. A container may see its own cgroup as the root.
    """
    if own is None:
        try:
            own = Path("/proc/self/cgroup").read_text()
        except OSError:
            return None
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        name = "memory.oom_control" if controllers else "memory.events"  # version 1, version 2
        for mount in (root / "memory",) if controllers else (root, root / "unified"):
            for file in (mount / path.lstrip("/") / name, mount / name):
                if file.exists():
                    return file
    return None


def _count(file: Path | None) -> int:
    with suppress(OSError):
        for line in file.read_text().splitlines() if file else ():
            name, _, number = line.partition(" ")
            if name == "oom_kill":
                return int(number)
    return 0
