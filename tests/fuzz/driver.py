"""Runs inputs, every entrance in a process of its own: a crash or a hang is a find, and not the end."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz import seeds
from tests.fuzz.child import LAST_INPUT, OUTCOMES, PLACE, STUCK_SECONDS, Find, place, work
from tests.fuzz.entrances import Entrance

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.fuzz.driver"])  # torch is imported once, not for each entrance


@dataclass
class Tally:
    """Of one entrance."""

    name: str
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    finds: dict[tuple[str, str], Find] = field(default_factory=dict)  # the first of each kind and place
    times: dict[tuple[str, str], int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def inputs(self) -> int:
        return sum(self.counts.values())

    def add(self, find: Find) -> bool:
        """Whether it is the first of its kind."""
        self.times[find.key] = self.times.get(find.key, 0) + 1
        return self.finds.setdefault(find.key, find) is find


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """A folder with the seeds in it; in memory where possible, as it is written to all the time."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=place, ignore_cleanup_errors=True) as folder:
        (shared := Path(folder) / "seeds").mkdir()
        writer = _processes.Process(target=seeds.write, args=(shared,))
        writer.start()
        writer.join()
        if writer.exitcode:
            raise RuntimeError(f"the seeds could not be made: exit code {writer.exitcode}")
        yield Path(folder)


def run(
    entrance: Entrance, inputs: Sequence[int | bytes], folder: Path, seconds: float | None = None
) -> Iterator[Find | Tally]:
    """Every find as it comes, the tally last. Inputs are numbers, or bytes as they are."""
    tally = Tally(entrance.name)
    began = time.monotonic()
    at = 0
    while at < len(inputs) and (seconds is None or time.monotonic() - began < seconds):
        left = None if seconds is None else seconds - (time.monotonic() - began)
        with _child(entrance, inputs[at:], folder, left) as child:
            yield from (find for find in child.finds() if tally.add(find))
            for name, count in zip(OUTCOMES, child.counts, strict=True):
                tally.counts[name] += count
            if child.at.value < 0:
                raise RuntimeError(f"{entrance.name} could not be opened: {child.end}")
            at += child.at.value + 1
            if child.end is None:
                continue
            number = inputs[at - 1]
            data = (child.own / LAST_INPUT).read_bytes()
            find = Find(entrance.name, number if isinstance(number, int) else -1, *child.end, data)
            tally.counts["find"] += 1
            if tally.add(find):
                yield find
    tally.seconds = time.monotonic() - began
    yield tally


class _Child:
    def __init__(
        self, entrance: Entrance, inputs: Sequence[int | bytes], folder: Path, seconds: float | None
    ):
        self.own = Path(tempfile.mkdtemp(dir=folder))
        self.at = _processes.RawValue("q", -1)  # index of the input that it is at
        self.counts = _processes.RawArray("q", len(OUTCOMES))
        self._hear, say = _processes.Pipe(duplex=False)
        places = (folder / "seeds", self.own)
        self._process = _processes.Process(
            target=work, args=(entrance, inputs, places, seconds, say, self.at, self.counts), daemon=True
        )
        self._process.start()
        say.close()
        self.end: tuple[str, str, str] | None = None  # how it ended, if badly

    def finds(self) -> Iterator[Find]:
        """Until it is done, has crashed, or hangs."""
        before, since = -2, time.monotonic()
        while True:
            if self._hear.poll(0.5):
                try:
                    message = self._hear.recv()
                except EOFError:
                    break
                if message is None:
                    self._process.join()
                    return
                yield message
            if self.at.value != before:
                before, since = self.at.value, time.monotonic()
            elif time.monotonic() - since > STUCK_SECONDS:
                os.kill(self._process.pid, signal.SIGABRT)  # faulthandler writes where it stands
                self._process.join(10)
                self.end = ("hangs", *self._last_words())
                return
        self._process.join()
        code = self._process.exitcode or 0
        kind = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        self.end = (kind, *self._last_words())

    def _last_words(self) -> tuple[str, str]:
        """Where it stood, by what faulthandler wrote; it names the innermost line first."""
        written = (self.own / "crash.txt").read_text(errors="replace")
        found = PLACE.search(written.partition("Current thread")[2] or written)
        return place(*found.groups()) if found else "", written.partition("\n")[0][:200]

    def close(self) -> None:
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._hear.close()
        shutil.rmtree(self.own, ignore_errors=True)


@contextlib.contextmanager
def _child(
    entrance: Entrance, inputs: Sequence[int | bytes], folder: Path, seconds: float | None
) -> Iterator[_Child]:
    child = _Child(entrance, inputs, folder, seconds)
    try:
        yield child
    finally:
        child.close()
