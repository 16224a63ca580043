"""Temporary folders that are removed however the process ends, except by SIGKILL."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from dragoman.errors import naming


@contextmanager
def folder(prefix: str) -> Iterator[Path]:
    """An empty folder that exists as long as the block. System errors inside the block name it."""
    with _signals_leave_the_block(), tempfile.TemporaryDirectory(prefix=prefix) as name, naming(name):
        yield Path(name)


@contextmanager
def _signals_leave_the_block() -> Iterator[None]:
    """On SIGTERM or SIGHUP, leaves the block in order, and only then ends the process by that signal."""
    received: list[int] = []

    def leave(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1:  # a second signal must not interrupt the removal
            raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()  # other threads may not set handlers
    ending = (signal.SIGTERM, signal.SIGHUP) if is_main else ()
    handled = [number for number in ending if signal.getsignal(number) == signal.SIG_DFL]
    for number in handled:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
        if received:
            signal.raise_signal(received[0])
