"""A recipe: a corpus with a name, where its files come from, and its known counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dragoman.data.corpus import Corpus


class Fetch(Protocol):
    """The signature of `Downloader.fetch`."""

    def __call__(self, url: str, *, sha256: str | None = None, md5: str | None = None) -> Path: ...


@dataclass(frozen=True)
class Collected:
    """The text of a recipe, on disk and ready to read."""

    train: tuple[Corpus, ...]
    dev: Corpus | None = None
    test: Corpus | None = None


@dataclass(frozen=True)
class Recipe:
    name: str
    description: str  # one line
    source_language: str
    target_language: str
    collect: Callable[[Path, Fetch], Collected]  # fetches the files and unpacks them into the folder
    settings: Mapping[str, object] = field(default_factory=dict)  # those that differ from prepare's defaults
    expected_raw_pairs: int | None = None  # of the training set, if known
    expected_clean_pairs: int | None = None
