"""What can happen to a file: for tests of who notices."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

Damage = Callable[[Path, Random], None]


def cut(path: Path, random: Random) -> None:
    path.write_bytes(path.read_bytes()[: random.randrange(path.stat().st_size)])


def flip(path: Path, random: Random) -> None:
    content = bytearray(path.read_bytes())
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def lengthen(path: Path, random: Random) -> None:
    path.write_bytes(path.read_bytes() + random.randbytes(7))


def empty(path: Path, random: Random) -> None:
    path.write_bytes(b"")


def lose(path: Path, random: Random) -> None:
    path.unlink()


def nest(path: Path, random: Random) -> None:
    path.write_bytes(b"[" * 100_000 + b"]" * 100_000)


def put_another_type(path: Path, random: Random) -> None:
    path.write_text(random.choice(["null", "3", '"files"', "[]", "{}", '{"files": 7, "step": []}']))


def put_a_folder(path: Path, random: Random) -> None:
    path.unlink()
    path.mkdir()


def put_a_pipe(path: Path, random: Random) -> None:
    """Whoever opens it waits for a writer, forever."""
    path.unlink()
    os.mkfifo(path)


def put_a_broken_link(path: Path, random: Random) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def put_an_endless_link(path: Path, random: Random) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


ALL: list[Damage] = [
    cut,
    flip,
    lengthen,
    empty,
    lose,
    nest,
    put_another_type,
    put_a_folder,
    put_a_pipe,
    put_a_broken_link,
    put_an_endless_link,
]
