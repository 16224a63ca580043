"""The text a model is scored on: part of a data set, a pair of files, or one of sacreBLEU's test sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.data import files
from dragoman.data.formats import lines
from dragoman.data.store import DataSet
from dragoman.errors import DataError, UsageError

Languages = tuple[str, str]  # source, target


@dataclass(frozen=True)
class HeldOut:
    """Sentences with their reference translations."""

    name: str
    sources: list[str]
    references: list[list[str]]  # one list for each reference, as long as `sources`
    languages: Languages | None = None

    def __post_init__(self) -> None:
        if not self.sources:
            raise DataError(f"{self.name} has no sentences")


def of_part(data: DataSet, part: str) -> HeldOut:
    if part not in data.parts or part == "train":
        held_out = ", ".join(name for name in data.parts if name != "train")
        raise UsageError(f"no held-out part {part}", path=data.path, hint=f"--part {held_out}")
    pairs = data.parts[part]
    languages = (data.card.source_language, data.card.target_language)
    return HeldOut(f"{part} of {data.path}", pairs.text("source"), [pairs.text("target")], languages)


def of_files(source: Path, reference: Path, languages: Languages | None) -> HeldOut:
    pairs = list(lines.read(source, reference))
    sources = _decoded([pair.source for pair in pairs], source)
    references = _decoded([pair.target for pair in pairs], reference)
    return HeldOut(f"{source} and {reference}", sources, [references], languages)


def sentences(path: Path) -> list[str]:
    """The lines of a file, plain or compressed."""
    return _decoded(list(files.lines(path)), path)


def _decoded(rows: Sequence[bytes], path: Path) -> list[str]:
    texts = []
    for number, row in enumerate(rows, start=1):
        try:
            texts.append(row.decode())
        except UnicodeDecodeError:
            raise DataError("bytes that are not UTF-8", path=path, line=number) from None
    return texts
