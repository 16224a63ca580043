"""Where the threads of a process are, asked from outside: their stacks in Python and, with py-spy, in C.

A rank that hangs in C code never returns to Python, so it cannot answer for itself. py-spy reads its memory;
without py-spy, a signal handler written in C prints the Python stacks.
"""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

_POLL_SECONDS = 0.05
_PY_SPY_SHARE = 0.7  # of the time; the rest is left for the signal
_MOST_HEADING_BYTES = 100
_MOST_BYTES = 200_000  # of a file of stacks that are shown, its last ones
_HELD = {  # in these states a process handles no signal, and py-spy cannot pause it
    psutil.STATUS_STOPPED: "stopped (state T): it handles no signal until it is continued with SIGCONT",
    psutil.STATUS_TRACING_STOP: "stopped by a debugger (state t)",
    psutil.STATUS_DISK_SLEEP: "waiting for a disk or a device (state D)",
}


def arm(path: Path) -> None:
    """Makes this process write the stacks of all its threads to the file at SIGUSR2 and at fatal signals."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("ab", buffering=0)  # stays open: faulthandler keeps it
    file.write(_heading(os.getpid()).encode())  # an earlier process may have written to the same file
    faulthandler.enable(file)
    faulthandler.register(signal.SIGUSR2, file, all_threads=True, chain=False)


def remove_unless_used(path: Path) -> None:
    """Removes the file of a process that has ended, if nobody asked for its stacks and it did not crash."""
    with suppress(OSError):
        if path.stat().st_size <= _MOST_HEADING_BYTES:
            path.unlink()


def of_process(pid: int, path: Path, seconds: float = 5.0) -> str:
    """The stacks of a process as text, or else what the kernel tells of it; takes about this long at most.

    `path` is the file with which the process called `arm`. Of a process that has ended, what it left there.
    """
    began = time.monotonic()
    if (found := status(pid)) is None:
        return _of_ended(pid, path)
    text = _by_py_spy(pid, found in _HELD, began + _PY_SPY_SHARE * seconds)
    if not text and found not in _HELD:
        text = _by_signal(pid, path, began + seconds)
    if not text:
        text = _by_kernel(pid)
    if status(pid) is None:
        return text + _of_ended(pid, path)
    return f"Process {pid} is {_HELD.get(found, found)}\n{text}"


def status(pid: int) -> str | None:
    """The state of a process as psutil names it, or None if it has ended (also as a zombie)."""
    with suppress(psutil.Error):
        found: str = psutil.Process(pid).status()
        if found not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return found
    return None


def _by_py_spy(pid: int, is_held: bool, until: float) -> str:
    """Empty without py-spy, where it may not look into other processes, or if it takes too long."""
    if not (program := _py_spy()):
        return ""
    # Only `--native` shows frames of C code, and it pauses the process for the moment that it looks.
    for options in (["--nonblocking"],) if is_held else (["--native"], []):
        with suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(
                [program, "dump", *options, "--pid", str(pid)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=max(0.0, until - time.monotonic()),
            )
            if done.returncode == 0:
                return done.stdout
    return ""


def _py_spy() -> str | None:
    return shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))


def _by_signal(pid: int, path: Path, until: float) -> str:
    """What the process adds to its file at SIGUSR2. Empty if it has not called `arm`."""
    if not _handles(pid, signal.SIGUSR2):  # the signal would end it
        return ""
    before = size = _size(path)
    with suppress(OSError):
        os.kill(pid, signal.SIGUSR2)
    while time.monotonic() < until and status(pid):
        time.sleep(_POLL_SECONDS)
        last, size = size, _size(path)
        if size == last > before:  # nothing says that it has written everything
            break
    return _read(path, before)


def _handles(pid: int, number: int) -> bool:
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, mask = line.partition(":")
            if name == "SigCgt":
                return bool(int(mask, 16) >> (number - 1) & 1)
    return False


def _by_kernel(pid: int) -> str:
    """Where in the kernel each thread waits. Only root may read the kernel's stacks."""
    lines = []
    with suppress(OSError):
        for thread in sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda thread: int(thread.name)):
            with suppress(OSError):
                name, place = ((thread / file).read_text().strip() for file in ("comm", "wchan"))
                lines.append(f"Thread {thread.name} ({name}) is in the kernel's {place}")
                lines += [f"    {line}" for line in (thread / "stack").read_text().splitlines()]
    return "".join(f"{line}\n" for line in lines)


def _of_ended(pid: int, path: Path) -> str:
    _, _, left = _read(path, 0).rpartition(_heading(pid))
    return f"Process {pid} has ended. It left {'these stacks:' if left else 'no stacks.'}\n{left}"


def _heading(pid: int) -> str:
    return f"Stacks of process {pid}\n"


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _read(path: Path, start: int) -> str:
    """The file from this byte on, or its end if that is long."""
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(start, _size(path) - _MOST_BYTES))
        return file.read(_MOST_BYTES).decode(errors="replace")
    return ""
