"""Checks whether a text is in its stated language. Both checks are off by default, because they take time."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import regex

from dragoman.errors import UsageError

_SHORTEST_TO_RECOGNISE = 20  # characters
# Some languages are written in several of Unicode's scripts.
_WRITTEN_IN = {
    "Jpan": ("Hani", "Hira", "Kana"),
    "Kore": ("Hang", "Hani"),
    "Hans": ("Hani",),
    "Hant": ("Hani",),
}


class ScriptCheck:
    """Accepts a text if at least half of its letters are of the language's script, or if it has no letters.

    The script is the one named (`sr-Latn`) or the language's most likely one (`sr`: Cyrillic).
    """

    def __init__(self, language: str):
        import langcodes  # here and below, because its tables take 0.1 s to load and few commands need them

        try:
            script = langcodes.Language.get(language).maximize().script or "Latn"
        except ValueError:
            raise UsageError(
                f"clean.check_script: the script of {language} is unknown",
                hint="name language, script and region in this order: sr-Latn-RS",
            ) from None
        in_script = "".join(rf"\p{{{name}}}" for name in _WRITTEN_IN.get(script, (script,)))
        self._in_script = regex.compile(f"[{in_script}]")
        self._letter = regex.compile(r"\p{L}")

    def fits(self, text: str) -> bool:
        letters = len(self._letter.findall(text))
        return 2 * len(self._in_script.findall(text)) >= letters


class LanguageCheck:
    """Accepts a text if py3langid recognises it as this language, or if it is too short to recognise."""

    def __init__(self, language: str):
        self._language = primary(language)
        self._classify = _classifier()
        if self._language not in _recognised():
            raise UsageError(
                f"clean.check_language cannot recognise {self._language}",
                hint="leave clean.check_language off, or use clean.check_script",
            )

    def fits(self, text: str) -> bool:
        return len(text) < _SHORTEST_TO_RECOGNISE or self._classify(text)[0] == self._language


def primary(language: str) -> str:
    """The language without script or region, as a two-letter code if it has one: `pt` for `por-BR`."""
    import langcodes

    try:
        return langcodes.Language.get(language).language or language
    except ValueError:  # langcodes insists on script before region, and refuses zh-TW-Hant
        return re.split("[-_]", language)[0].lower()


def _classifier() -> Callable[[str], tuple[str, float]]:
    try:
        import py3langid
    except ImportError:
        raise UsageError(
            "clean.check_language needs the package py3langid", hint="pip install 'dragoman[language]'"
        ) from None
    return py3langid.classify


@cache
def _recognised() -> frozenset[str]:
    import py3langid

    return frozenset(language for language, _ in py3langid.rank("any text"))
