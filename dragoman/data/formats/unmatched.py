"""Reports a file in which no unit has one of the requested languages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dragoman.errors import DataError

_NAMED_LANGUAGES = 20  # a damaged file can have a new "language" in each unit


class Unmatched:
    """Collects the languages seen in a file, to report at its end which requested one never occurred."""

    def __init__(self, path: Path, source_language: str, target_language: str):
        self.path = path
        self.missing = {source_language, target_language}
        self.source_language = source_language
        self.target_language = target_language
        self.seen: dict[str, None] = {}  # a set that keeps the order
        self.first_line: int | None = None

    def note(self, languages: Iterable[str], has_source: bool, has_target: bool, line: int) -> None:
        """Records a unit: its languages, and whether the requested ones are among them."""
        self.first_line = self.first_line or line
        if has_source:
            self.missing.discard(self.source_language)
        if has_target:
            self.missing.discard(self.target_language)
        if self.missing and len(self.seen) < _NAMED_LANGUAGES:
            self.seen.update(dict.fromkeys(languages))

    def check(self) -> None:
        """Raises at the end of the file if it has units and a requested language is in none of them."""
        if self.first_line is None or not self.missing:
            return
        raise DataError(
            f"no unit has {' or '.join(sorted(self.missing))}; "
            f"found {', '.join(filter(None, self.seen)) or 'no language'}",
            path=self.path,
            line=self.first_line,
            hint=f"name two languages that the file has: LANGUAGE:LANGUAGE={self.path.name}",
        )
