"""Finds the requested language among those in a file."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable


def matches(wanted: str, language: str) -> bool:
    """Is this the wanted language? `en` matches en, EN, en-GB and en_US.UTF-8; `en-GB` not en or en-US."""
    return _subtags(language)[: len(_subtags(wanted))] == _subtags(wanted)


def choose(wanted: str, available: Iterable[str]) -> str | None:
    """The available language that matches best: an exact match before the first longer one."""
    matching = [language for language in available if matches(wanted, language)]
    return min(matching, key=lambda language: len(_subtags(language)), default=None)


@functools.lru_cache(maxsize=1000)  # every unit of a translation memory names the same few languages
def _subtags(language: str) -> tuple[str, ...]:
    return tuple(re.split(r"[-_.@]", language.strip().lower()))
