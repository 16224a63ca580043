"""A file in which no unit has a language that was asked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dragoman.errors import DataError

_NAMED_LANGUAGES = 20  # a damaged file can hold a new "language" in each unit


class Unmatched:
    """Remembers the languages seen in a file, to say at its end which one was never there."""

    def __init__(self, path: Path, source_language: str, target_language: str):
        self.path = path
        self.missing = {source_language, target_language}
        self.source_language = source_language
        self.target_language = target_language
        self.found: dict[str, None] = {}  # a set that keeps the order
        self.first_line: int | None = None

    def note(self, languages: Iterable[str], has_source: bool, has_target: bool, line: int) -> None:
        """One unit: its languages, and whether those asked for are among them."""
        self.first_line = self.first_line or line
        if has_source:
            self.missing.discard(self.source_language)
        if has_target:
            self.missing.discard(self.target_language)
        if self.missing and len(self.found) < _NAMED_LANGUAGES:
            self.found.update(dict.fromkeys(languages))

    def check(self) -> None:
        """At the end of the file: an error if it has units and none of them has a language asked for."""
        if self.first_line is None or not self.missing:
            return
        raise DataError(
            f"no unit has the language asked for: found {', '.join(filter(None, self.found)) or 'none'}; "
            f"expected {' and '.join(sorted(self.missing))}",
            path=self.path,
            line=self.first_line,
            hint=f"name two languages that the file has: LANGUAGE:LANGUAGE={self.path.name}",
        )
