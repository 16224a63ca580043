"""Inputs that once were finds, in files: a number makes another input as soon as a seed changes."""

from __future__ import annotations

import lzma
import re
from pathlib import Path

from tests.fuzz.child import Find
from tests.fuzz.entrances import ENTRANCES

FOLDER = Path(__file__).with_name("finds")


def keep(find: Find) -> None:
    """Makes a test of it."""
    path = FOLDER / _folder(find.entrance) / f"{find.number}.xz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(find.data))


def kept() -> dict[str, list[bytes]]:
    """The inputs of each entrance that has some."""
    paths = {entrance.name: sorted((FOLDER / _folder(entrance.name)).glob("*.xz")) for entrance in ENTRANCES}
    return {
        name: [lzma.decompress(path.read_bytes()) for path in some] for name, some in paths.items() if some
    }


def _folder(entrance: str) -> str:
    return re.sub(r"[^\w.]+", "-", entrance).strip("-")
