"""Documents whose targets are filled in, one format to a file; the name of a document tells which it is."""

from __future__ import annotations

from pathlib import Path

from dragoman.data.files import without_compression
from dragoman.decode.documents import lines, po, tsv, xliff
from dragoman.decode.documents.document import Format, Tally, Translate, Writer

__all__ = ["Format", "Tally", "Translate", "Writer", "format_of", "is_plain"]

_FORMATS: dict[str, Format] = {
    ".tsv": tsv.fill,
    ".xlf": xliff.fill,
    ".xliff": xliff.fill,
    ".po": po.fill,
}


def format_of(path: Path) -> Format:
    """What translates this file; a name that says nothing is plain text, a line at a time."""
    return _FORMATS.get(_suffix(path), lines.fill)


def is_plain(path: Path) -> bool:
    return _suffix(path) not in _FORMATS


def _suffix(path: Path) -> str:
    return Path(without_compression(path.name)).suffix.lower()
