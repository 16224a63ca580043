"""Is this text of the language it is said to be? Asked only on request: both checks cost time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import regex

from dragoman.errors import UsageError

# Languages written in another script than Latin, by ISO 639-1 (CLDR's likely subtags).
_SCRIPTS = {
    "am": "Ethiopic", "ar": "Arabic", "be": "Cyrillic", "bg": "Cyrillic", "bn": "Bengali", "el": "Greek",
    "fa": "Arabic", "gu": "Gujarati", "he": "Hebrew", "hi": "Devanagari", "hy": "Armenian", "ja": "Japanese",
    "ka": "Georgian", "kk": "Cyrillic", "km": "Khmer", "kn": "Kannada", "ko": "Hangul", "ky": "Cyrillic",
    "lo": "Lao", "mk": "Cyrillic", "ml": "Malayalam", "mn": "Cyrillic", "mr": "Devanagari", "my": "Myanmar",
    "ne": "Devanagari", "pa": "Gurmukhi", "ps": "Arabic", "ru": "Cyrillic", "sd": "Arabic", "si": "Sinhala",
    "ta": "Tamil", "te": "Telugu", "tg": "Cyrillic", "th": "Thai", "ti": "Ethiopic", "ug": "Arabic",
    "uk": "Cyrillic", "ur": "Arabic", "yi": "Hebrew", "zh": "Han",
}  # fmt: skip
_SHORTEST_TO_TELL = 20  # characters
_JAPANESE = r"[\p{Han}\p{Hiragana}\p{Katakana}]"


class ScriptCheck:
    """At least half of the letters belong to the language's script; a text without letters passes."""

    def __init__(self, language: str):
        script = _SCRIPTS.get(primary(language), "Latin")
        letters = _JAPANESE if script == "Japanese" else rf"\p{{{script}}}"
        self._own = regex.compile(letters)
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
    code = language.replace("_", "-").split("-")[0].lower()
    return _two_letters().get(code, code) if len(code) == 3 else code


def _classifier() -> Callable[[str], tuple[str, float]]:
    try:
        import py3langid
    except ImportError:
        raise UsageError(
            "clean.check_language needs the package py3langid", hint="pip install 'dragoman[language]'"
        ) from None
    return py3langid.classify


@cache
def _two_letters() -> dict[str, str]:
    from mtdata.iso.iso639_1 import ISO693_1_to_3

    return {three: two for two, three in ISO693_1_to_3.items()}


@cache
def _recognised() -> frozenset[str]:
    import py3langid

    return frozenset(language for language, _ in py3langid.rank("any text"))
