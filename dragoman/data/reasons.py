"""Why cleaning drops a pair."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a pair was dropped, in the order the rules are tried: the first that applies is counted."""

    INVALID_UTF8 = "invalid_utf8"
    LINE_SEPARATOR = "line_separator"
    CONTROL_CHARACTER = "control_character"
    EMPTY = "empty"
    LENGTH = "length"
    RATIO = "ratio"
    IDENTICAL = "identical"
    WRONG_SCRIPT = "wrong_script"
    WRONG_LANGUAGE = "wrong_language"
    DUPLICATE = "duplicate"  # this and leakage need the whole corpus: selection.py
    LEAKAGE = "leakage"


MEANING = {
    Reason.INVALID_UTF8: "bytes that are not UTF-8",
    Reason.LINE_SEPARATOR: "a hidden line break (U+2028, U+2029, U+0085)",
    Reason.CONTROL_CHARACTER: "a control character such as NUL",
    Reason.EMPTY: "one side empty",
    Reason.LENGTH: "too few or too many words on one side",
    Reason.RATIO: "one side much longer than the other",
    Reason.IDENTICAL: "source equals target",
    Reason.WRONG_SCRIPT: "most letters not in the language's script",
    Reason.WRONG_LANGUAGE: "recognised as another language",
    Reason.DUPLICATE: "the same pair occurred before",
    Reason.LEAKAGE: "its source also occurs in dev or test",
}
