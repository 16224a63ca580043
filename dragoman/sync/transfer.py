"""Sends files between hosts over the process group, and finds out which hosts share a disk."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import IO

import torch

from dragoman import atomic
from dragoman.errors import naming
from dragoman.sync.agree import decided_by_main, done_by, stop_all_if_one_failed
from dragoman.sync.world import World

_CHUNK_BYTES = 4 << 20  # a rank reads this much of a file before it passes it on
_CHUNKS_PER_CHECK = 16  # then all ranks share failures, and nobody waits longer than the timeout


def owners(world: World, leaders: Sequence[int], folder: Path) -> dict[int, int]:
    """For each leader, the first leader that sees the same folder. Collective.

    Each leader leaves a mark in the folder and looks for the others' marks by name: device and inode numbers
    differ between hosts, and on a network disk a listing may be minutes old.
    """
    token = decided_by_main(world, secrets.token_hex(8))
    marks = {rank: folder / f".seen-{token}-{rank}" for rank in leaders}
    is_leader = world.rank in leaders

    def leave_mark() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        marks[world.rank].touch()

    done_by(world, is_leader, leave_mark)
    first_seen = torch.zeros(world.size, dtype=torch.int64)
    if is_leader:
        first_seen[world.rank] = min(rank for rank, mark in marks.items() if mark.exists())
    world.sum_(first_seen)  # collective: all have looked before the first mark is removed
    if is_leader:
        marks[world.rank].unlink(missing_ok=True)
    return {rank: int(first_seen[rank]) for rank in leaders}


class Chain:
    """Sends files along a row of ranks, each passing on what it gets: no link carries a file twice.

    All ranks of the world call its methods, even those that neither send nor receive.
    """

    def __init__(self, world: World, source: int, receivers: Sequence[int]):
        row = [source, *receivers]
        place = row.index(world.rank) if world.rank in row else None
        self._world = world
        self._source = source
        self._is_source = place == 0
        self._before = row[place - 1] if place else None
        self._after = row[place + 1] if place is not None and place + 1 < len(row) else None
        self._receives = bool(place)

    def folder(self, path: Path, check: Callable[[Path], object]) -> int:
        """Sends a folder, which appears whole and checked or not at all; returns its bytes. Collective."""
        arriving = atomic.appearing(path) if self._receives else nullcontext(path)
        with arriving as place:
            names = sorted(each.name for each in path.iterdir()) if self._is_source else []
            sent = sum(self.file(path / name, place / name) for name in self._names_of_source(names))
            done_by(self._world, self._receives, lambda: check(place))
        return sent

    def files(self, folder: Path, names: Sequence[str]) -> int:
        """Sends the files below a folder that the source names, each as `replace` does. Collective."""
        return sum(self.replace(folder / name, folder / name) for name in self._names_of_source(names))

    def replace(self, origin: Path, to: Path) -> int:
        """Sends a file that replaces the one there in a single move; returns its bytes. Collective."""
        unfinished = to.with_name(to.name + atomic.UNFINISHED)
        done_by(self._world, self._receives, lambda: _make_room(unfinished))
        sent = self.file(origin, unfinished)
        done_by(self._world, self._receives, lambda: atomic.take_name(unfinished, to))
        return sent

    def file(self, origin: Path, to: Path) -> int:
        """Sends the source's file `origin` to `to` on the receivers; returns its bytes. Collective."""
        with ExitStack() as stack:
            path, mode = (origin, "rb") if self._is_source else (to, "wb")
            takes_part = self._is_source or self._receives
            opened = done_by(self._world, takes_part, lambda: stack.enter_context(_open(path, mode)))
            own_size = os.fstat(opened.fileno()).st_size if opened and self._is_source else 0
            size = int(self._world.sum([own_size])[0])
            self._content(opened, size)
        return size

    def _content(self, file: IO[bytes] | None, size: int) -> None:
        buffer = torch.zeros(min(size, _CHUNK_BYTES), dtype=torch.uint8)
        failure = None
        for number, start in enumerate(range(0, size, _CHUNK_BYTES), 1):
            if file:
                failure = self._pass_on(buffer[: size - start], file) or failure
            if number % _CHUNKS_PER_CHECK == 0:
                stop_all_if_one_failed(self._world, failure)
        stop_all_if_one_failed(self._world, failure)

    def _pass_on(self, chunk: torch.Tensor, file: IO[bytes]) -> Exception | None:
        """Passes a chunk on; returns a failure instead of raising it, as the next rank waits for this one."""
        failure = None
        if self._is_source:
            failure = _failure_of(lambda: chunk.copy_(_read(file, len(chunk))))
        if self._before is not None:
            self._world.receive_(chunk, self._before)
        if self._after is not None:
            self._world.send(chunk, self._after)
        if self._receives:
            failure = _failure_of(lambda: _write(file, chunk))
        return failure

    def _names_of_source(self, names: Sequence[str]) -> list[str]:
        """The source's names, on every rank. Collective."""
        content = self._world.broadcast_bytes(json.dumps(names).encode(), self._source)
        names_of_source: list[str] = json.loads(content)
        return names_of_source


def _open(path: Path, mode: str) -> IO[bytes]:
    return open(path, mode, opener=_no_link if mode == "wb" else None)  # closed by the caller's stack


def _no_link(path: str, flags: int) -> int:
    """Opens a file but follows no link: one that others put there must not lead the file elsewhere."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _make_room(unfinished: Path) -> None:
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    atomic.remove(unfinished)  # left by a killed process


def _write(file: IO[bytes], chunk: torch.Tensor) -> None:
    with naming(file.name):
        file.write(chunk.numpy().data)


def _read(file: IO[bytes], length: int) -> torch.Tensor:
    return torch.frombuffer(bytearray(file.read(length)), dtype=torch.uint8)


def _failure_of(action: Callable[[], object]) -> Exception | None:
    try:
        action()
    except Exception as error:
        return error
    return None
