"""Is this text of the language it is said to be? Asked only on request: both checks cost time."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import regex

from dragoman.errors import UsageError

_SHORTEST_TO_TELL = 20  # characters
# Some languages are written in several of Unicode's scripts.
_WRITTEN_IN = {
    "Jpan": ("Hani", "Hira", "Kana"),
    "Kore": ("Hang", "Hani"),
    "Hans": ("Hani",),
    "Hant": ("Hani",),
}


class ScriptCheck:
    """At least half of the letters belong to the language's script; a text without letters passes.

    The script is the one named (`sr-Latn`) or the likely one of the language (`sr`: Cyrillic).
    """

    def __init__(self, language: str):
        import langcodes  # here and below, as the other commands do without: its tables take 0.1 s to load

        try:
            script = langcodes.Language.get(language).maximize().script or "Latn"
        except ValueError:
            raise UsageError(
                f"clean.check_script: of {language} it cannot be told how it is written",
                hint="name language, script and region in this order: sr-Latn-RS",
            ) from None
        own = "".join(rf"\p{{{name}}}" for name in _WRITTEN_IN.get(script, (script,)))
        self._own = regex.compile(f"[{own}]")
        self._letter = regex.compile(r"\p{L}")

    def fits(self, text: str) -> bool:
        letters = len(self._letter.findall(text))
        return 2 * len(self._own.findall(text)) >= letters


class LanguageCheck:
    """py3langid takes the text for this language, or the text is too short to tell."""

    def __init__(self, language: str):
        self._language = primary(language)
        self._classify = _classifier()
        if self._language not in _recognised():
            raise UsageError(
                f"clean.check_language: {self._language} is not among the languages that can be recognised",
                hint="leave clean.check_language off, or use clean.check_script",
            )

    def fits(self, text: str) -> bool:
        return len(text) < _SHORTEST_TO_TELL or self._classify(text)[0] == self._language


def primary(language: str) -> str:
    """The language without script or region, in two letters where it has such a code: `pt` of `por-BR`."""
    import langcodes

    try:
        return langcodes.Language.get(language).language or language
    except ValueError:  # it minds the order of script and region: zh-TW-Hant
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
