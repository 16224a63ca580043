"""Parallel text as the user names it: which files, which languages, in which format."""

from __future__ import annotations

import dataclasses
import glob
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dragoman.data import formats
from dragoman.data.files import without_compression
from dragoman.data.formats import RawPair
from dragoman.errors import UsageError

__all__ = ["Corpus", "Files", "RawPair", "parse", "read"]

_USAGE = (
    "en=FILE de=FILE for two files line by line, en:de=FILE for one that holds both, weight=2 after either"
)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*")


@dataclass(frozen=True)
class Files:
    """One piece of parallel text: two files line by line, or one file that holds both languages."""

    source: Path
    target: Path | None = None  # None: `source` holds both sides (TSV, TMX, XLIFF, PO)


@dataclass(frozen=True)
class Corpus:
    """Files that belong together and are drawn with one weight."""

    name: str
    source_language: str
    target_language: str
    files: tuple[Files, ...]
    weight: float = 1.0  # 2.0: each pair is seen twice as often as the size of the corpus alone would give


def read(corpus: Corpus, files: Files, skipped: Counter[str]) -> Iterator[RawPair]:
    """The pairs of one piece of a corpus, in order. Units that are no pair are counted in `skipped`."""
    if files.target is not None:
        return formats.lines.read(files.source, files.target)
    reader = formats.reader(files.source)
    return reader(files.source, corpus.source_language, corpus.target_language, skipped)


class _Side(NamedTuple):
    """What the user gave for one language: `en=data/train-*.en`."""

    language: str
    pattern: str

    def __str__(self) -> str:
        return f"{self.language}={self.pattern}"

    def files(self) -> list[Path]:
        """The files that the name or glob stands for, in the order of their names."""
        pattern = os.path.expanduser(self.pattern)
        # A file that exists is meant as it stands, even with a bracket in its name.
        found = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
        files = [Path(name) for name in found if not os.path.isdir(name)]
        if not files:
            what = "this is a directory" if found else "no such file"
            raise UsageError(f"{self}: {what}", hint="name a file, or files with a glob such as 'data/*.en'")
        for path in files:
            if not _is_utf8(str(path)):  # a card could not name it
                raise UsageError(f"{self}: the name of a file is not UTF-8", path=path, hint="rename it")
        return files


def _is_utf8(name: str) -> bool:
    """Bytes of a file name that are no UTF-8 come as lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def parse(arguments: Sequence[str]) -> list[Corpus]:
    """The corpora named by `en=FILE de=FILE`, `en:de=FILE` and `weight=2`; FILE may be a glob.

    The first language named is the source. A weight belongs to the corpus before it.
    """
    corpora: list[Corpus] = []
    source: _Side | None = None  # still waiting for its target
    for argument in arguments:
        key, _, value = argument.partition("=")
        if not value:
            raise UsageError(f"found '{argument}', expected LANGUAGE=FILE", hint=_USAGE)
        if source and (key in (source.language, "weight") or ":" in key):
            raise _without_target(source)
        if key == "weight":
            _set_weight(corpora, value)
        elif ":" in key:
            source_language, _, target_language = key.partition(":")
            files = _files_of_both(_Side(key, value))
            _add(corpora, source_language, target_language, value, files)
        elif source:
            files = _files_side_by_side(source, _Side(key, value))
            _add(corpora, source.language, key, source.pattern, files)
            source = None
        else:
            source = _Side(key, value)
    if source:
        raise _without_target(source)
    if not corpora:
        raise UsageError("no files named", hint=_USAGE)
    return corpora


def _without_target(source: _Side) -> UsageError:
    return UsageError(f"{source} is not followed by its translation into another language", hint=_USAGE)


def _set_weight(corpora: list[Corpus], value: str) -> None:
    if not corpora:
        raise UsageError(f"weight={value} comes before any corpus", hint=_USAGE)
    try:
        weight = float(value)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise UsageError(f"found weight={value}, expected a number above zero", hint="weight=2 or weight=0.5")
    corpora[-1] = dataclasses.replace(corpora[-1], weight=weight)


def _files_of_both(side: _Side) -> tuple[Files, ...]:
    paths = side.files()
    for path in paths:
        formats.reader(path)  # an unknown format is better found now than an hour into the work
    return tuple(Files(path) for path in paths)


def _files_side_by_side(source: _Side, target: _Side) -> tuple[Files, ...]:
    sources, targets = source.files(), target.files()
    for path in (*sources, *targets):
        if formats.holds_both_languages(path):
            hint = f"{source.language}:{target.language}={path}"
            raise UsageError("a file of this kind holds both languages", path=path, hint=hint)
    if len(sources) != len(targets):
        raise UsageError(
            f"{source} is {len(sources)} files, {target} is {len(targets)}; the same number was expected",
            hint="they are paired in the order of their names: list both and see which has no partner",
        )
    return tuple(Files(*both) for both in zip(sources, targets, strict=True))


def _add(corpora: list[Corpus], source: str, target: str, pattern: str, files: tuple[Files, ...]) -> None:
    for language in (source, target):
        if not _LANGUAGE.fullmatch(language):
            raise UsageError(f"found '{language}', expected a language such as en, de or pt-BR", hint=_USAGE)
    if source.lower() == target.lower():
        raise UsageError(f"both sides are {source}, expected two languages", hint=_USAGE)
    first = corpora[0] if corpora else None
    if first and (source, target) != (first.source_language, first.target_language):
        raise UsageError(
            f"found {source} to {target} after {first.source_language} to {first.target_language}; "
            "expected the same languages in the same order for all corpora",
            hint=_USAGE,
        )
    name = _name(pattern, {source.lower(), target.lower()}, {corpus.name for corpus in corpora})
    corpora.append(Corpus(name, source, target, files))


def _name(pattern: str, languages: set[str], taken: set[str]) -> str:
    """`train` for `data/train.en.gz`, `part` for `part-*.en`; a number is added to a name already taken."""
    stem = without_compression(Path(pattern).name)
    base, _, ending = stem.rpartition(".")
    if base and (ending.lower() in languages or formats.holds_both_languages(Path(stem))):
        stem = base
    stem = re.sub(r"[^\w.-]+", "-", re.sub(r"\[.*?\]|[*?]", "", stem)).strip("-._") or "corpus"
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name
