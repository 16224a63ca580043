"""The languages that a document names, against those that the model translates."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dragoman.data.formats.languages import matches
from dragoman.errors import UsageError


def check(path: Path, named: Iterable[tuple[str, str]], model: tuple[str, str]) -> None:
    """Refuses a document for other languages. `named` are its source and target; empty where it is silent."""
    for pair in named:
        if not all(_are_same(language, known) for language, known in zip(pair, model, strict=True)):
            of_file = " to ".join(language or "any language" for language in pair)
            raise UsageError(
                f"this file is {of_file}, but the model translates {' to '.join(model)}",
                path=path,
                hint="use a model for these languages, or correct the languages that the file names",
            )


def _are_same(named: str, known: str) -> bool:
    """`en` and `en-GB` are; a file that names no language fits every model."""
    return not named or matches(named, known) or matches(known, named)
