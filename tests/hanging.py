"""Processes that hang in known ways, for tests that ask where they are."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from dragoman import stacks

WAIT_SECONDS = 20.0  # for what takes a moment: the machine may be busy


def waits_in_c() -> None:
    while True:  # a signal ends this sleep
        ctypes.CDLL(None).usleep(600_000_000)


def keeps_the_gil_in_c() -> None:
    while True:
        ctypes.PyDLL(None).usleep(600_000_000)


def computes() -> None:
    while True:
        pass


def waits_in_a_thread() -> None:
    time.sleep(600)


@contextmanager
def started(hang: Callable[[], None], path: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process that hangs in this function, with `path` for its stacks, and in a thread of its own."""
    command = [sys.executable, "-m", "tests.hanging", hang.__name__, str(path or "")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == "up\n"
            time.sleep(0.2)  # until it is where it hangs
            yield process
        finally:
            process.kill()


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)


@contextmanager
def waiting_in_the_kernel(folder: Path) -> Iterator[int]:
    """A process in state D, as one that waits for a disk.

    Until its child starts a program, the two share their memory, and the child first opens a pipe to which
    nobody writes.
    """
    os.mkfifo(pipe := folder / "pipe")
    opens = f"(os.POSIX_SPAWN_OPEN, 9, {str(pipe)!r}, os.O_RDONLY, 0)"
    script = f"import os; os.posix_spawn('/bin/true', ['true'], {{}}, file_actions=[{opens}])"
    with subprocess.Popen([sys.executable, "-c", script], start_new_session=True) as process:
        try:
            until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_DISK_SLEEP)
            yield process.pid
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def main(hang: str, path: str) -> None:
    if path:
        stacks.arm(Path(path))
    threading.Thread(target=waits_in_a_thread, daemon=True).start()
    print("up", flush=True)
    globals()[hang]()


if __name__ == "__main__":
    main(*sys.argv[1:])
