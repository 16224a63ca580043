"""Runs every explainer over the records of one run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

from dragoman.explain import placement
from dragoman.explain.finding import Finding, unknown
from dragoman.explain.outages import outside_outages
from dragoman.explain.questions import QUESTIONS, Question
from dragoman.measure.records import Records

Explainer = Callable[..., Finding]  # takes the records


def explain(records: Records, price_per_hour: float | None = None) -> list[Finding]:
    """Returns a finding for every question, in their order; `price_per_hour` is for one host."""
    placed = placement.longest(outside_outages(records))
    findings = []
    for id, question in QUESTIONS.items():
        explainer = explainer_of(question)
        if id == "duration":
            explainer = partial(explainer, price_per_hour=price_per_hour)
        finding = _answer(id, explainer, placed.records if question.of_one_placement else records)
        if question.of_one_placement and placed.others:
            finding.answer += f" {placed.others}"
        findings.append(finding)
    return findings


def explainer_of(question: Question) -> Explainer:
    """Returns the function that the question's row names."""
    module, function = question.explainer.split(".")
    explainer: Explainer = getattr(import_module(f"dragoman.explain.{module}"), function)
    return explainer


def _answer(id: str, explainer: Explainer, records: Records) -> Finding:
    """Returns the explainer's finding; if it fails, the answer says so and the others are unaffected."""
    try:
        return explainer(records)
    except Exception as error:
        return unknown(id, f"the records could not be explained ({type(error).__name__}: {error})")
