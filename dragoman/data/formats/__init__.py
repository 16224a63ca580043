"""The formats of parallel text, one module each. A file's name decides its format."""

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
    """The reader for this file, which must be of a format that holds both languages."""
    if not holds_both_languages(path):
        raise UsageError(
            f"found the suffix '{_suffix(path)}', expected a format that holds both languages: "
            f"{', '.join(_READERS)}, optionally followed by {', '.join(SUFFIXES)}",
            path=path,
            hint="rename the file, or give one plain file per language: en=FILE de=FILE",
        )
    return _READERS[_suffix(path)]


def _suffix(path: Path) -> str:
    return Path(without_compression(path.name)).suffix.lower()
