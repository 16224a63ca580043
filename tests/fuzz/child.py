"""The process that feeds an entrance its inputs, and judges what comes of each."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import logging
import os
import re
import resource
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

import dragoman
from dragoman.errors import DragomanError
from tests.fuzz import mutate
from tests.fuzz.entrances import Entrance

STUCK_SECONDS = 60.0  # without computing, or in a library that no signal reaches
MOST_BYTES = 500 * 2**20  # for one input
_GUARD_BYTES = 3 * 2**30  # nothing may take the machine's memory meanwhile
_NOTABLE_BYTES = 50 * 2**20
_MOST_LEFT_BEHIND = 2**30  # by all inputs so far, in libraries that keep what they had

ACCEPTED, REFUSED, SYSTEM = "accepted", "refused", "system"  # system: an OSError that names its file
LAST_INPUT = "last-input"  # a file
OUTCOMES = (ACCEPTED, REFUSED, SYSTEM, "find")

_PACKAGE = f"{Path(dragoman.__file__).parent}/"
PLACE = re.compile(rf'File "{re.escape(_PACKAGE)}(.+?)", line (\d+),? in (\S+)')  # in a traceback


@dataclass(frozen=True)
class Find:
    entrance: str
    number: int  # -1: an input that was given as it is
    kind: str  # the type of the exception, or what else went wrong
    place: str  # the innermost line of ours
    said: str
    data: bytes = field(default=b"", repr=False, compare=False)  # the input; of the first of its kind

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.place

    def __str__(self) -> str:
        where = f"{self.place or 'no line of ours'} ({self.entrance}, number {self.number})"
        return f"{self.kind} at {where}: {self.said}"


class TooSlow(BaseException):
    """Not an Exception: nobody on the way may take it for an error of a file."""


def work(
    entrance: Entrance,
    inputs: Sequence[int | bytes],
    places: tuple[Path, Path],
    seconds: float | None,
    say: Connection,
    at: Any,
    counts: Any,
) -> None:
    crash = open(places[1] / "crash.txt", "w")  # noqa: SIM115  open as long as the process lives
    faulthandler.enable(crash)
    warnings.simplefilter("ignore")
    logging.disable()
    content, feed = entrance.open(*places)
    fresh = _memory()[0]
    resource.setrlimit(resource.RLIMIT_AS, (fresh + _GUARD_BYTES,) * 2)
    watch = _Watch(entrance.slow_seconds)
    told: set[tuple[str, str]] = set()
    deadline = None if seconds is None else time.monotonic() + seconds
    for index, chosen in enumerate(inputs):
        at.value = index
        number, data = (
            (-1, chosen) if isinstance(chosen, bytes) else (chosen, made(entrance, content, chosen))
        )
        (places[1] / LAST_INPUT).write_bytes(data)  # for the parent, if this is the end
        outcome = _outcome(entrance, number, watch.feeding(feed, data), str(places[1]))
        if watch.grown():
            outcome = Find(entrance.name, number, "memory", "", f"{len(data):,} bytes of input")
        if isinstance(outcome, Find):
            say.send(outcome if outcome.key in told else replace(outcome, data=data))
            told.add(outcome.key)
        counts[OUTCOMES.index("find" if isinstance(outcome, Find) else outcome)] += 1
        if (deadline and time.monotonic() > deadline) or _memory()[0] > fresh + _MOST_LEFT_BEHIND:
            break  # the parent starts another for the rest
    say.send(None)
    os._exit(0)  # threads of the server may wait for ever


def made(entrance: Entrance, content: Sequence[bytes], number: int) -> bytes:
    return mutate.make(entrance.name, entrance.kind, content, number)


class _Watch:
    """Over the time and the memory of one input, and over threads that die of it."""

    def __init__(self, slow_seconds: float) -> None:
        self._slow_seconds = slow_seconds
        self._is_feeding = False
        self._died: BaseException | None = None
        self._main = threading.get_ident()
        signal.signal(signal.SIGPROF, self._too_slow)
        signal.signal(signal.SIGALRM, self._too_slow)
        signal.signal(signal.SIGUSR1, self._thread_died)
        threading.excepthook = self._in_thread
        gc.freeze()
        self._floor = _memory()[1]

    def feeding(self, feed: Any, data: bytes) -> BaseException | None:
        """What came of it."""
        self._is_feeding = True
        signal.setitimer(signal.ITIMER_PROF, self._slow_seconds)  # computing: other programs share the cores
        signal.setitimer(signal.ITIMER_REAL, STUCK_SECONDS / 2)
        try:
            feed(data)
        except BaseException as error:
            return error
        else:
            return None
        finally:
            self._is_feeding = False
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)

    def grown(self) -> bool:
        """Did it take more memory than one input may, at any moment?"""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if peak < self._floor + _NOTABLE_BYTES:
            return False
        is_much = peak > self._floor + MOST_BYTES
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        self._floor = _memory()[1]
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > self._floor + _NOTABLE_BYTES:
            self._floor = peak  # where that may not be done
        return is_much

    def _too_slow(self, number: int, frame: FrameType | None) -> None:
        if self._is_feeding:
            raise TooSlow("computing" if number == signal.SIGPROF else "waiting")

    def _in_thread(self, died: threading.ExceptHookArgs) -> None:
        self._died = died.exc_value
        signal.pthread_kill(self._main, signal.SIGUSR1)

    def _thread_died(self, number: int, frame: FrameType | None) -> None:
        died, self._died = self._died, None
        if self._is_feeding and died:
            raise died


def _memory() -> tuple[int, int]:
    """Bytes that are mapped, and those of them that are in use."""
    mapped, used, *_ = Path("/proc/self/statm").read_text().split()
    return int(mapped) * resource.getpagesize(), int(used) * resource.getpagesize()


def _outcome(entrance: Entrance, number: int, error: BaseException | None, own: str) -> str | Find:
    if error is None:
        return ACCEPTED
    if isinstance(error, OSError) and error.filename is not None:
        return SYSTEM
    kind, lines = type(error).__name__, str(error).strip().splitlines() or [""]
    if isinstance(error, DragomanError):
        if _wanted_memory(error):
            kind = "memory refused"
        elif entrance.names_file and own not in str(error):
            kind = "no file named"
        else:
            return REFUSED
    if kind == "ServerFailed":  # the last line of what it wrote names the cause
        kind, lines = f"HTTP 500: {lines[-1].partition(':')[0]}", lines[-1:]
    return Find(entrance.name, number, kind, _place(error), " ".join(lines)[:200])


def _wanted_memory(error: BaseException) -> bool:
    """Refused in good words, but only because this process may not have three gigabytes more."""
    inner = error.__cause__ or error.__context__
    return inner is not None and (
        isinstance(inner, MemoryError) or "allocate memory" in str(inner) or _wanted_memory(inner)
    )


def _place(error: BaseException) -> str:
    """The innermost line of ours, also in what a server wrote."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [(frame.filename, frame.lineno, frame.name) for frame in frames]
    inside = [frame for frame in inside if frame[0].startswith(_PACKAGE)] or PLACE.findall(str(error))
    return place(*inside[-1]) if inside else ""


def place(file: str, line: int | str | None, function: str) -> str:
    return f"dragoman/{file.removeprefix(_PACKAGE)}:{line} {function}"
