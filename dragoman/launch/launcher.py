"""Which process trains a run: RUN/launcher.json on each of its hosts.

A launcher writes the file before it starts ranks, and so do its agents on the other hosts. It is true while
the process that it names lives: what a killed launcher or a machine that went down leaves behind does not
count. A process is known by its pid and by when it began, counted from the start of the machine, because
clocks may be set.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import psutil
from pydantic import BaseModel, ConfigDict, Field

from dragoman import atomic, kinds
from dragoman.errors import DragomanError, RecordsError, UsageError, reading
from dragoman.launch import environment
from dragoman.launch.hosts import is_this_machine
from dragoman.rundir import RunFolder

_OWNER_ALONE = 0o600
_SAME_START_SPAN = 0.5  # processes with one pid start further apart
_LAST_LINES = 20
_MOST_BYTES = 1 << 16  # of output in one answer

Pid = Annotated[int, Field(ge=0, lt=1 << 31)]
Seconds = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]


class Launcher(BaseModel):
    """The process that trains a run."""

    model_config = ConfigDict(frozen=True, strict=True)

    host: str
    pid: Annotated[int, Field(ge=1, lt=1 << 31)]
    since_boot_seconds: Seconds  # from the start of its machine to its own
    command: str = ""  # as typed
    request: str = ""  # a digest of what the command asks for
    is_detached: bool = False
    output_start: Count = 0  # where its part of RUN/output.txt begins
    stops: Count = 0  # how often `dragoman stop` was called
    exit_code: int | None = None
    # On the hosts that are not the launcher's own: its agent there, which lives as long as the connection.
    agent_pid: Pid = 0
    agent_since_boot_seconds: Seconds = 0.0

    @classmethod
    def of_process(cls, pid: int, command: str, request: str) -> Launcher:
        """A process of this machine."""
        since = _since_boot_seconds(psutil.Process(pid))
        return cls(
            host=socket.gethostname(), pid=pid, since_boot_seconds=since, command=command, request=request
        )

    @property
    def is_of_agent(self) -> bool:
        """Was this written by an agent, because the launcher is on another machine?"""
        return self.agent_pid > 0

    @property
    def is_here(self) -> bool:
        """Can this machine say whether it lives?"""
        return self.is_of_agent or is_this_machine(self.host)

    @property
    def is_this_process(self) -> bool:
        return self.pid == os.getpid() and self.is_here and self.lives()

    def lives(self) -> bool:
        """Whether the launcher, or its agent here, is still running on this machine."""
        since = self.agent_since_boot_seconds if self.is_of_agent else self.since_boot_seconds
        try:
            process = psutil.Process(self.agent_pid or self.pid)
            is_same = abs(_since_boot_seconds(process) - since) < _SAME_START_SPAN
            is_ours = any(
                "dragoman" in word for word in process.cmdline()
            )  # the file may come from elsewhere
            return is_same and is_ours and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def is_same_as(self, other: Launcher) -> bool:
        return (self.pid, self.since_boot_seconds) == (other.pid, other.since_boot_seconds)


def _since_boot_seconds(process: psutil.Process) -> float:
    """When a process began, by a clock that nobody can set."""
    stat = Path(f"/proc/{process.pid}/stat")
    if not stat.exists():
        return float(process.create_time() - psutil.boot_time())  # both move when the clock is set
    return int(stat.read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")


def read(folder: RunFolder) -> Launcher | None:
    """What RUN/launcher.json says; None if there is none."""
    path = folder.launcher
    with reading(path, RecordsError, hint="if nothing trains this run any more, remove the file"):
        try:
            return Launcher.model_validate_json(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None


def being_trained(folder: RunFolder, launcher: Launcher) -> UsageError:
    """The error for a command that would be the second launcher of a run."""
    kind = "detached process" if launcher.is_detached else "process"
    end = f"dragoman stop {folder.path}" if launcher.is_detached else "Ctrl-C there"
    same = "; exactly that command joins it" if launcher.is_detached else ""
    return UsageError(
        f"{kind} {launcher.pid} on {launcher.host} is training this run: {launcher.command}",
        path=folder.path,
        hint=f"wait until it ends, or end it with {end}{same}",
    )


def run_registered(folder: RunFolder, own: Launcher, run: Callable[[Launcher], int]) -> int:
    """Runs a training as the run's only launcher, and notes its exit code."""
    own, code = _claim(folder, own), 1
    try:
        code = run(own)
    except DragomanError as error:
        code = error.exit_code
        raise
    finally:
        with suppress(OSError, DragomanError), _changing(folder) as before:  # a full disk, a removed folder
            if before and before.is_same_as(own):
                _write(folder, before.model_copy(update={"exit_code": code}))
    return code


def start(
    words: Sequence[str],
    folder: RunFolder,
    command: str,
    request: str,
    variables: Mapping[str, str] | None = None,
    config: str = "",
) -> Launcher:
    """Starts `dragoman WORDS` in the background, as the launcher of the run.

    It is in a session of its own, closed terminals do not reach it, and what it prints is added to
    RUN/output.txt. `config` is written to RUN/launcher.toml first.
    """
    _check_place(folder)
    with _changing(folder) as before:
        if before and before.is_here and before.lives():
            raise being_trained(folder, before)
        if config:
            atomic.write(folder.sent_config, config.encode(), _OWNER_ALONE)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        output = os.open(folder.output, flags, _OWNER_ALONE)
        try:
            output_start = os.fstat(output).st_size
            process = subprocess.Popen(
                [sys.executable, "-m", "dragoman", *words],
                env=os.environ | dict(variables or {}) | environment.with_command(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_heed_signals,
            )
        finally:
            os.close(output)
        _started.append(process)
        started = Launcher.of_process(process.pid, command, request)
        started = started.model_copy(update={"is_detached": True, "output_start": output_start})
        _write(folder, started)
    return started


_started: list[subprocess.Popen[bytes]] = []  # Python warns of one that is forgotten while it runs


def _heed_signals() -> None:
    """No closed terminal ends the launcher, but `dragoman stop` does, even if a shell started us with `&`."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def point_to(folder: RunFolder, launcher: Launcher) -> None:
    """Notes on the launching machine where the launcher is, unless both machines share the folder."""
    _check_place(folder)
    with _changing(folder) as before:
        if not before or not before.is_same_as(launcher):
            _write(folder, launcher)


def note_on_host(folder: RunFolder, launcher: Mapping[str, Any]) -> None:
    """Notes, as an agent, which launcher on another machine this agent works for.

    Another launcher that lives keeps its file: the lock of the ranks decides between the two.
    """
    told, agent = Launcher.model_validate(launcher), Launcher.of_process(os.getpid(), "", "")
    _check_place(folder)
    with _changing(folder) as before:
        if before and (
            before.is_here and before.lives() or not before.is_of_agent and before.is_same_as(told)
        ):
            return
        found = {"agent_pid": agent.pid, "agent_since_boot_seconds": agent.since_boot_seconds}
        _write(folder, told.model_copy(update=found))


# --- called directly, or through the agent of the launcher's machine ----------------------------------------


def living_launcher(run: str) -> dict[str, Any] | None:
    """The launcher that trains this run on this machine, or whose agent works for it here."""
    found = read(RunFolder(Path(run)))
    return found.model_dump() if found and found.is_here and found.lives() else None


def launcher_news(run: str, pid: int, offset: int) -> dict[str, Any]:
    """The lines that a detached launcher has printed after this offset, and whether it lives.

    A negative offset asks for its last lines.
    """
    folder = RunFolder(Path(run))
    launcher = read(folder)
    if not launcher or launcher.pid != pid:
        return {"lines": [], "offset": offset, "is_alive": False, "exit_code": None}
    is_alive = launcher.lives()  # first: what it printed before its end is then read below
    lines: list[str] = []
    if launcher.is_detached:
        offset = _offset_of_last_lines(folder.output, launcher.output_start) if offset < 0 else offset
        lines, offset = _lines_after(folder.output, offset, is_alive)
    return {"lines": lines, "offset": offset, "is_alive": is_alive, "exit_code": launcher.exit_code}


def stop_launcher(run: str, pid: int) -> bool:
    """Asks a launcher to stop as Ctrl-C does, the second time without scoring; False if it has ended."""
    folder = RunFolder(Path(run))
    with _changing(folder) as launcher:
        if not launcher or launcher.pid != pid or not launcher.lives():
            return False
        os.kill(pid, signal.SIGTERM if launcher.stops else signal.SIGINT)
        _write(folder, launcher.model_copy(update={"stops": launcher.stops + 1}))
    return True


# --- the files ----------------------------------------------------------------------------------------------


def _claim(folder: RunFolder, own: Launcher) -> Launcher:
    """Makes this process the run's launcher; a detached one was registered by the process that started it."""
    _check_place(folder)
    with _changing(folder) as before:
        if before and before.is_this_process:
            return before
        if before and before.is_here and before.lives():
            raise being_trained(folder, before)
        _write(folder, own)
    return own


def _check_place(folder: RunFolder) -> None:
    folder.check_place()
    kinds.check_for_run(folder.path)
    folder.make()


@contextmanager
def _changing(folder: RunFolder) -> Iterator[Launcher | None]:
    """What the file says now. In the block no other process changes it."""
    with open(folder.launcher_lock, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield read(folder)


def _write(folder: RunFolder, launcher: Launcher) -> None:
    content = launcher.model_dump_json(indent=2, exclude_defaults=True) + "\n"
    atomic.write(folder.launcher, content.encode(), _OWNER_ALONE)


def _offset_of_last_lines(path: Path, start: int) -> int:
    with suppress(OSError), path.open("rb") as file:
        start = max(start, file.seek(0, os.SEEK_END) - _MOST_BYTES)
        file.seek(start)
        lines = file.read().splitlines(keepends=True)
        return start + sum(map(len, lines[:-_LAST_LINES]))
    return start


def _lines_after(path: Path, offset: int, is_alive: bool) -> tuple[list[str], int]:
    """Whole lines after this offset, and the offset after them; a dead one may have left half a line."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            content = file.read(_MOST_BYTES)
    except FileNotFoundError:
        return [], offset
    is_full, end = len(content) == _MOST_BYTES, content.rfind(b"\n") + 1
    if is_full and end or is_alive and not is_full:
        content = content[:end]
    text = content.decode(errors="replace").removesuffix("\n")
    return text.split("\n") if content else [], offset + len(content)
