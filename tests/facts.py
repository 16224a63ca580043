"""Facts in a sentence: numbers, names, options and paths, which stay when its wording changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from dragoman.explain.finding import Finding


def lacking(text: str, *facts: object) -> list[str]:
    """Those of the facts that the text does not hold whole: 4 is neither in 40 nor in 4,000."""
    return [str(fact) for fact in facts if not _at(str(fact)).search(text)]


@contextmanager
def raising(kind: type[Exception], *facts: object) -> Iterator[pytest.ExceptionInfo[Any]]:
    """An error of this class that holds all these facts."""
    with pytest.raises(kind) as caught:
        yield caught
    assert not lacking(str(caught.value), *facts)


def only(texts: Sequence[str], *facts: object) -> str:
    """The one text that holds all these facts."""
    found = [text for text in texts if not lacking(text, *facts)]
    assert len(found) == 1, f"{len(found)} with {facts} of {list(texts)}"
    return found[0]


def failed(findings: Sequence[Finding]) -> list[str]:
    """The answers of those whose explainer failed: they name the class of the error."""
    error = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Warning|Iteration)\b")
    return [f.answer for f in findings if f.verdict == "unknown" and error.search(f.answer)]


def _at(fact: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.,]){re.escape(fact)}(?!\w|[.,]\d)")
