"""Formats the numbers of findings for people.

A number's name ends with its unit and so decides its format; a question's row names the exceptions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dragoman import format_units
from dragoman.explain.questions import QUESTIONS

NOT_KNOWN = "–"


def _share(value: float) -> str:
    return format_units.share(0.0 if abs(value) < 1e-6 else value)


_BY_ENDING: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("bits_per_second", format_units.rate),
    ("bytes_per_second", lambda value: format_units.rate(8 * value)),  # of networks, whose unit is bits
    ("tokens_per_second", lambda value: f"{round(value):,}"),
    ("seconds", format_units.seconds),
    ("share", _share),
    ("watts", lambda value: f"{value:.3g} W"),
    ("bytes_per_parameter", lambda value: f"{value:.3g} bytes"),
    ("bytes_per_step_per_host", format_units.size),
    ("bytes_per_step", format_units.size),
    ("bytes", format_units.size),
)
_LISTED = 16  # longer lists are curves, not numbers to read
_BOUNDS = ("_low", "_high", "_least", "_most", "_mean", "_median")
_UNITS = ("_bits_per_second", "_bytes_per_second", "_flops_per_second", "_seconds", "_bytes", "_watts")


def shown(name: str, value: Any) -> str:
    """Returns a finding's number as text, with the unit that its name gives."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return NOT_KNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return _writer(name)(value)
    if isinstance(value, dict):
        return ", ".join(
            f"{label(key)} {shown(_unit_of(str(key), name), inner)}" for key, inner in value.items()
        )
    if isinstance(value, (list, tuple)):
        if len(value) > _LISTED or any(isinstance(inner, (list, tuple, dict)) for inner in value):
            return f"{len(value)} values, in findings.json"
        return ", ".join(shown(name, inner) for inner in value)
    return str(value)


def label(name: Any) -> str:
    """Returns a name without its unit: `step_seconds_without_exchange` -> "step without exchange"."""
    text, bound = str(name), ""
    for ending in _BOUNDS:
        if text.endswith(ending):
            text, bound = text.removesuffix(ending), ending
    unit = next((unit for unit in _UNITS if text.endswith(unit)), "") if _writer(text) is not plain else ""
    text = text.removesuffix(unit).replace("_seconds_", "_") + bound
    return (
        text.replace("_", " ").replace("bleu", "BLEU").replace("chrf", "chrF").replace("startup", "start-up")
    )


def plain(value: float) -> str:
    """Returns a number with four significant digits, or whole."""
    if 1e4 <= abs(value) < 1e15 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _unit_of(key: str, parent: str) -> str:
    """Returns the name that gives a key's unit: the key or, as for "forward" in phase_seconds, its parent."""
    return parent if _writer(key) is plain else key


def _writer(name: str) -> Callable[[float], str]:
    name = name.lower()
    for bound in _BOUNDS:
        name = name.removesuffix(bound)
    for question in QUESTIONS.values():
        if name in question.units:
            return _writer_of(question.units[name])
    for ending, writer in _BY_ENDING:
        if name.endswith(ending):
            return writer
    if "_seconds_" in name and "per" not in name:  # step_seconds_without_exchange
        return format_units.seconds
    return plain


def _writer_of(unit: str) -> Callable[[float], str]:
    """Returns the format for a unit that a question's row names."""
    if not unit:
        return plain
    return dict(_BY_ENDING).get(unit) or (lambda value: f"{plain(value)} {unit}")
