"""Files from host to host over the process group, for hosts that share no disk; and which of them do."""

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

_CHUNK_BYTES = 4 << 20  # what a rank holds of a file before it passes it on
_CHUNKS_PER_BEAT = 16  # then all ranks meet: a failure is heard, and nobody waits longer than the timeout


def owners(world: World, leaders: Sequence[int], folder: Path) -> dict[int, int]:
    """For each of these ranks, the first of them that sees the same folder. Collective.

    Each leaves a mark in the folder and looks for the others' marks by name: device and inode numbers differ
    between hosts, and a listing may be minutes old on a network disk.
    """
    token = decided_by_main(world, secrets.token_hex(8))
    marks = {rank: folder / f".seen-{token}-{rank}" for rank in leaders}
    is_leader = world.rank in leaders

    def leave_mark() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        marks[world.rank].touch()

    done_by(world, is_leader, leave_mark)
    found = torch.zeros(world.size, dtype=torch.int64)
    if is_leader:
        found[world.rank] = min(rank for rank, mark in marks.items() if mark.exists())
    world.sum_(found)  # collective: all have looked before the first mark goes
    if is_leader:
        marks[world.rank].unlink(missing_ok=True)
    return {rank: int(found[rank]) for rank in leaders}


class Chain:
    """From one rank to others in a row, each passing on what it gets: no link carries a file twice.

    All ranks of the world call its methods, also those that neither send nor receive.
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
        """The files of a folder. It appears whole and checked, or not at all; how many bytes. Collective."""
        arriving = atomic.appearing(path) if self._receives else nullcontext(path)
        with arriving as place:
            own = sorted(each.name for each in path.iterdir()) if self._is_source else []
            sent = sum(self.file(path / name, place / name) for name in self._heard(own))
            done_by(self._world, self._receives, lambda: check(place))
        return sent

    def files(self, folder: Path, names: Sequence[str]) -> int:
        """Files below a folder that the source names, each replaced in one move; their bytes. Collective."""
        return sum(self.replace(folder / name, folder / name) for name in self._heard(names))

    def replace(self, origin: Path, to: Path) -> int:
        """A file in place of the one that is there, in one move; how many bytes. Collective."""
        unfinished = to.with_name(to.name + atomic.UNFINISHED)
        done_by(self._world, self._receives, lambda: _make_room(unfinished))
        sent = self.file(origin, unfinished)
        done_by(self._world, self._receives, lambda: atomic.take_name(unfinished, to))
        return sent

    def file(self, origin: Path, to: Path) -> int:
        """The source's file `origin` as `to` on the receivers; how many bytes. Collective."""
        with ExitStack() as stack:
            path, way = (origin, "rb") if self._is_source else (to, "wb")
            takes_part = self._is_source or self._receives
            opened = done_by(self._world, takes_part, lambda: stack.enter_context(_open(path, way)))
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
            if number % _CHUNKS_PER_BEAT == 0:
                stop_all_if_one_failed(self._world, failure)
        stop_all_if_one_failed(self._world, failure)

    def _pass_on(self, chunk: torch.Tensor, file: IO[bytes]) -> Exception | None:
        """A failure is returned, not raised: the next in the row waits for this rank, whatever happens."""
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

    def _heard(self, names: Sequence[str]) -> list[str]:
        """What the source says, on every rank. Collective."""
        heard: list[str] = json.loads(self._world.broadcast_bytes(json.dumps(names).encode(), self._source))
        return heard


def _open(path: Path, way: str) -> IO[bytes]:
    return open(path, way, opener=_no_link if way == "wb" else None)  # closed by the stack of its caller


def _no_link(path: str, flags: int) -> int:
    """A link that others put where a file arrives must not lead it elsewhere."""
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
