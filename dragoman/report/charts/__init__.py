"""The charts of each answer as plain data, which the page's script draws."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from dragoman.explain.finding import Finding
from dragoman.explain.questions import QUESTIONS
from dragoman.measure.records import Records
from dragoman.report.charts.figure import TEMPLATE, Chart, Missing, legend

__all__ = ["TEMPLATE", "Chart", "Missing", "legend", "of"]


def of(records: Records, finding: Finding) -> list[Chart | Missing]:
    """Returns the charts of an answer, or what is missing for them."""
    return [_maker(name)(records, finding) for name in QUESTIONS[finding.id].charts]


def _maker(name: str) -> Callable[[Records, Finding], Chart | Missing]:
    """Returns the function that a question's row names."""
    module, function = name.split(".")
    maker: Callable[[Records, Finding], Chart | Missing]
    maker = getattr(import_module(f"dragoman.report.charts.{module}"), function)
    return maker
