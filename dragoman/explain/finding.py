"""A finding: an answer with its numbers, evidence, confidence and advice."""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import BaseModel, model_validator

from dragoman.explain.questions import QUESTIONS

SCHEMA = 1


class Finding(BaseModel):
    id: str
    verdict: str
    answer: str  # one or two sentences with numbers
    numbers: dict[str, Any] = {}  # named, with units in the names; absent when unknown
    evidence: list[str] = []  # where each number came from
    confidence: Literal["measured", "estimated", "unknown"] = "measured"
    advice: list[str] = []  # what to try, with the expected gain

    @model_validator(mode="after")
    def _answers_its_question(self) -> Finding:
        if self.id not in QUESTIONS:
            raise ValueError(f"unknown question {self.id!r}; known: {', '.join(QUESTIONS)}")
        if self.verdict not in (allowed := QUESTIONS[self.id].verdicts):
            raise ValueError(f"{self.id} has no verdict {self.verdict!r}; known: {', '.join(allowed)}")
        return self

    @property
    def question(self) -> str:
        return QUESTIONS[self.id].wording


def unknown(id: str, because: str, numbers: dict[str, Any] | None = None) -> Finding:
    """A finding that says why the question cannot be answered: "Unknown: X was not recorded"."""
    return Finding(
        id=id, verdict="unknown", answer=f"Unknown: {because}.", numbers=numbers or {}, confidence="unknown"
    )


def known(**numbers: Any) -> dict[str, Any]:
    """The numbers that are neither None nor NaN, as plain values for JSON."""
    plain = {name: _plain(value) for name, value in numbers.items()}
    return {name: value for name, value in plain.items() if value is not None}


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):  # a numpy scalar
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def document(run: dict[str, Any], findings: list[Finding]) -> dict[str, Any]:
    """The contents of findings.json and of every --json."""
    rows = [{"id": f.id, "question": f.question, **f.model_dump(exclude={"id"})} for f in findings]
    return {"schema": SCHEMA, "run": run, "findings": rows}
