"""Why cleaning drops a pair."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a pair was dropped, in the order the tests are made: the first that applies is counted."""

    INVALID_UTF8 = "invalid_utf8"
    LINE_SEPARATOR = "line_separator"
    CONTROL_CHARACTER = "control_character"
    EMPTY = "empty"
    LENGTH = "length"
    RATIO = "ratio"
    IDENTICAL = "identical"
    WRONG_SCRIPT = "wrong_script"
    WRONG_LANGUAGE = "wrong_language"
    DUPLICATE = "duplicate"  # these two are seen only over the whole corpus: selection.py
    LEAKAGE = "leakage"


MEANING = {
    Reason.INVALID_UTF8: "bytes that are not UTF-8",
    Reason.LINE_SEPARATOR: "a hidden line break (U+2028, U+2029, U+0085)",
    Reason.CONTROL_CHARACTER: "a control character such as NUL",
    Reason.EMPTY: "nothing on one side",
    Reason.LENGTH: "too few or too many words on one side",
    Reason.RATIO: "one side much longer than the other",
    Reason.IDENTICAL: "source equals target",
    Reason.WRONG_SCRIPT: "most letters not of the language's script",
    Reason.WRONG_LANGUAGE: "recognised as another language",
    Reason.DUPLICATE: "the same pair seen before",
    Reason.LEAKAGE: "its source stands in dev or test",
}
