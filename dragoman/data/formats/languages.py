"""Which of the languages in a file is the one asked for."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable


def matches(asked: str, found: str) -> bool:
    """`en` matches en, EN, en-GB and en_US.UTF-8; `en-GB` does not match en or en-US."""
    return _subtags(found)[: len(_subtags(asked))] == _subtags(asked)


def choose(asked: str, found: Iterable[str]) -> str | None:
    """The language among those found that is meant: an exact match before the first longer one."""
    matching = [language for language in found if matches(asked, language)]
    return min(matching, key=lambda language: len(_subtags(language)), default=None)


@functools.lru_cache(maxsize=1000)  # a translation memory asks for the same few in each of its units
def _subtags(language: str) -> tuple[str, ...]:
    return tuple(re.split(r"[-_.@]", language.strip().lower()))
