"""What every reader produces: pairs, and a count of the units that hold no pair."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol


class RawPair(NamedTuple):
    """A source and a target sentence as in the file: bytes, so that bad UTF-8 can be counted."""

    source: bytes
    target: bytes
    line: int  # of its file, on which the pair begins, counted from 1


class Reader(Protocol):
    """Reads one file that holds both languages."""

    def __call__(
        self, path: Path, source_language: str, target_language: str, skipped: Counter[str]
    ) -> Iterator[RawPair]: ...


# The reasons under which `skipped` counts units that hold no pair. Cards store them as keys.
NO_SOURCE_LANGUAGE = "unit without the source language"
NO_TARGET_LANGUAGE = "unit without the target language"
EMPTY_SOURCE = "unit with an empty source"
UNTRANSLATED = "untranslated unit"
FUZZY = "fuzzy unit"
OBSOLETE = "obsolete unit"


def pair_up(source: str, target: str, line: int, skipped: Counter[str]) -> Iterator[RawPair]:
    """Yields the pair. If a side is empty, counts the unit in `skipped` instead."""
    source, target = one_line(source), one_line(target)
    if not source:
        skipped[EMPTY_SOURCE] += 1
    elif not target:
        skipped[UNTRANSLATED] += 1
    else:
        yield RawPair(source.encode(), target.encode(), line)


def one_line(text: str) -> str:
    """The text on one line: each line break or tab, with the spaces around it, becomes one space."""
    parts = (part.strip(" ") for part in re.split(r"[\t\r\n]+", text))
    return " ".join(part for part in parts if part)
