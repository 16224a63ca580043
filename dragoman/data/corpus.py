"""Parallel text as the user names it: its files, languages and formats."""

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
    "en=FILE de=FILE for two files that match line by line, en:de=FILE for one file with both languages; "
    "weight=2 after either"
)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*")


@dataclass(frozen=True)
class Files:
    """One piece of parallel text: two files that match line by line, or one file with both languages."""

    source: Path
    target: Path | None = None  # None: `source` holds both sides (TSV, TMX, XLIFF, PO)


@dataclass(frozen=True)
class Corpus:
    """Files that share one name and one weight."""

    name: str
    source_language: str
    target_language: str
    files: tuple[Files, ...]
    weight: float = 1.0  # 2.0: each pair comes twice per epoch


def read(corpus: Corpus, files: Files, skipped: Counter[str]) -> Iterator[RawPair]:
    """The pairs of one piece of a corpus, in order. Units that hold no pair are counted in `skipped`."""
    if files.target is not None:
        return formats.lines.read(files.source, files.target)
    reader = formats.reader(files.source)
    return reader(files.source, corpus.source_language, corpus.target_language, skipped)


class _Side(NamedTuple):
    """One language's argument, such as `en=data/train-*.en`."""

    language: str
    pattern: str

    def __str__(self) -> str:
        return f"{self.language}={self.pattern}"

    def files(self) -> list[Path]:
        """The files that the name or glob stands for, sorted by name."""
        # No file has a NUL in its name, and looking for one raises.
        pattern = "" if "\0" in self.pattern else os.path.expanduser(self.pattern)
        # The name of an existing file is not taken as a pattern, even if it has a bracket in it.
        names = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
        files = [Path(name) for name in names if not os.path.isdir(name)]
        if not files:
            what = "this is a directory" if names else "no such file"
            raise UsageError(f"{self}: {what}", hint="name a file, or files with a glob such as 'data/*.en'")
        for path in files:
            if not _is_utf8(str(path)):  # the card could not name it
                raise UsageError(f"{self}: a file name is not UTF-8", path=path, hint="rename the file")
        return files


def _is_utf8(name: str) -> bool:
    """Is a file name valid UTF-8? Python shows its other bytes as lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def parse(arguments: Sequence[str]) -> list[Corpus]:
    """The corpora named by `en=FILE de=FILE`, `en:de=FILE` and `weight=2`. FILE may be a glob.

    The first language named is the source. A weight applies to the corpus before it.
    """
    corpora: list[Corpus] = []
    source: _Side | None = None  # a source side whose target has not come yet
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
    return UsageError(f"{source} is not followed by the files of another language", hint=_USAGE)


def _set_weight(corpora: list[Corpus], value: str) -> None:
    if not corpora:
        raise UsageError(f"weight={value} comes before any corpus", hint=_USAGE)
    try:
        weight = float(value)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise UsageError(
            f"found weight={value}, expected a number above zero", hint="such as weight=2 or weight=0.5"
        )
    corpora[-1] = dataclasses.replace(corpora[-1], weight=weight)


def _files_of_both(side: _Side) -> tuple[Files, ...]:
    paths = side.files()
    for path in paths:
        formats.reader(path)  # reports an unknown format now instead of an hour into the work
    return tuple(Files(path) for path in paths)


def _files_side_by_side(source: _Side, target: _Side) -> tuple[Files, ...]:
    sources, targets = source.files(), target.files()
    for path in (*sources, *targets):
        if formats.holds_both_languages(path):
            hint = f"name it as {source.language}:{target.language}={path}"
            raise UsageError("a file of this kind holds both languages", path=path, hint=hint)
    if len(sources) != len(targets):
        raise UsageError(
            f"{source} names {len(sources)} files, {target} names {len(targets)}; expected equal numbers",
            hint="files are paired in the order of their names: list both sides and see which has no partner",
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
            "expected the same two languages in the same order for every corpus",
            hint=_USAGE,
        )
    name = _name(pattern, {source.lower(), target.lower()}, {corpus.name for corpus in corpora})
    corpora.append(Corpus(name, source, target, files))


def _name(pattern: str, languages: set[str], taken: set[str]) -> str:
    """A corpus name: `train` for `data/train.en.gz`, `part` for `part-*.en`, with a number if it is taken."""
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
