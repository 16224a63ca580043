"""Temporary folders that are removed whatever ends the process, but for SIGKILL."""

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
    """An empty folder for as long as the block lasts. What the system refuses in it names it."""
    with _ending_in_order(), tempfile.TemporaryDirectory(prefix=prefix) as name, naming(name):
        yield Path(name)


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """SIGTERM and SIGHUP would end the process on the spot: here it leaves the block first, then ends so."""
    heard: list[int] = []

    def leave(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) == 1:  # a second one does not break into the removal
            raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()  # no other thread may set handlers
    wanted = (signal.SIGTERM, signal.SIGHUP) if is_main else ()
    handled = [number for number in wanted if signal.getsignal(number) == signal.SIG_DFL]
    for number in handled:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
        if heard:
            signal.raise_signal(heard[0])
