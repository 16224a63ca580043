"""Answers for kept runs stay as they were, word for word and to four digits, unless somebody means it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.explain import kept

WITHIN = 2e-4  # of a number


@pytest.mark.parametrize("case", kept.cases())
def test_the_answers_for_a_kept_run_are_what_they_were(case: str) -> None:
    before, now = json.loads(kept.file(case).read_text()), kept.answers(case)
    changed = [
        f"{question}.{field}: was {before[question].get(field)}, is {value}"
        for question, answer in now.items()
        for field, value in answer.items()
        if not _same(before[question].get(field), value)
    ]
    assert not changed, "\n".join([*changed, "if this is right: python -m tests.explain.kept"])
    assert before.keys() == now.keys()


def test_every_kept_file_belongs_to_a_case() -> None:
    assert {path.stem for path in kept.FOLDER.iterdir()} == set(kept.cases())


def _same(before: Any, now: Any) -> bool:
    if isinstance(before, float) or isinstance(now, float):
        return (
            before is not None and now is not None and now == pytest.approx(before, rel=WITHIN, nan_ok=True)
        )
    if isinstance(before, dict) and isinstance(now, dict):
        return before.keys() == now.keys() and all(_same(before[key], now[key]) for key in now)
    if isinstance(before, list) and isinstance(now, list):
        return len(before) == len(now) and all(map(_same, before, now))
    return bool(before == now)
