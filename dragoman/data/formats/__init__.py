"""The formats of parallel text, one file each; the name of a file tells which one it is."""

from __future__ import annotations

from pathlib import Path

from dragoman.data.compression import SUFFIXES
from dragoman.data.files import without_compression
from dragoman.data.formats import lines, po, tmx, tsv, xliff
from dragoman.data.formats.pair import RawPair, Reader
from dragoman.errors import UsageError

__all__ = ["RawPair", "Reader", "holds_both_languages", "lines", "reader"]

# Formats in which one file holds both languages.
_READERS: dict[str, Reader] = {
    ".tsv": tsv.read,
    ".tmx": tmx.read,
    ".xlf": xliff.read,
    ".xliff": xliff.read,
    ".po": po.read,
}


def holds_both_languages(path: Path) -> bool:
    return _suffix(path) in _READERS


def reader(path: Path) -> Reader:
    """What reads this file of two languages."""
    if not holds_both_languages(path):
        raise UsageError(
            f"found the suffix '{_suffix(path)}', expected one of a file with both languages: "
            f"{', '.join(_READERS)}, or these followed by {', '.join(SUFFIXES)}",
            path=path,
            hint="rename it, or name two plain files, one for each language: en=FILE de=FILE",
        )
    return _READERS[_suffix(path)]


def _suffix(path: Path) -> str:
    return Path(without_compression(path.name)).suffix.lower()
