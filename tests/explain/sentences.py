"""What every sentence of a finding must keep to, however it is worded: known numbers, and nothing ugly."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.explain.finding import Finding
from dragoman.measure.records import Records

UGLY = [
    r"\bnan\b", r"\binf\b", r"\bNone\b", r"-0(?:\.0+)?(?![\d.])", r"\[\]", r"\{\}", r"  ", r"\.\.(?!\.)",
    # "1 steps", but neither "21 steps" nor "0.1 times" nor "rank 1 was"
    r"(?<![\d.,])1 (?!less\b|across\b|was\b)[a-z]{2,}s\b",
    r"(?<![\d.=])\d{6,}",  # a number that long is rounded, or has commas; not that of an option
]  # fmt: skip


def ugly(finding: Finding) -> Iterator[str]:
    """Each place where a sentence has what no sentence may have."""
    for text in (finding.answer, *finding.evidence, *finding.advice):
        for pattern in UGLY:
            if found := re.search(pattern, text, re.IGNORECASE if "nan" in pattern else 0):
                yield f"{found.group()!r} in {text!r}"


# --- numbers in sentences ---------------------------------------------------------------------------------

_NUMBER = r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?"
_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SCALES = {
    "bytes": {"bytes": 1e0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15},
    "bits_per_second": {"bit/s": 1e0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12},
    "": {"million": 1e6, "billion": 1e9},
}
_UNITS = {unit: (kind, scale) for kind, units in _SCALES.items() for unit, scale in units.items()}
_TOKEN = re.compile(
    rf"(?<![\w.^])(?:(?P<long>{_NUMBER}) (?P<large>min|h|d)(?: (?P<rest>\d+) (?P<small>s|min|h))?(?!\w)"
    rf"|(?P<number>{_NUMBER})(?P<percent> ?%)?(?: (?P<unit>ms|s|{'|'.join(_UNITS)})(?![\w]))?)"
)
_EXPONENT_OR_CLOCK = re.compile(r"\^-?[\d.]+|\d\d:\d\d:\d\d")
# Numbers of a definition, a formula or a threshold, in whatever words: by finding, as unit and value.
_DEFINED = {
    # Points of a curve; BLEU below which nothing was learnt; the interval of a prediction.
    "convergence": {("", 4.0), ("", 1.0), ("share", 0.9)},
    "overfitting": {("", 4.0), ("", 1000.0)},  # points of a trend; steps that it is told for
    "learning_rate": {("", 0.0)},  # where a schedule ends
    "checkpoint_size": {("bytes", 4.0), ("", 4.0), ("", 3.0)},  # of a number; weights and two moments
    "step_time": {("share", 0.95)},  # the percentile
    "step_network": {("share", 0.25)},  # of an even flow in a quarter of the step
}


@dataclass(frozen=True)
class Stated:
    text: str
    kind: str  # seconds, share, bytes, bits_per_second, or nothing
    value: float
    tolerance: float


def stated(sentence: str) -> Iterator[Stated]:
    """Every number in a sentence as its unit and its digits give it."""
    for found in _TOKEN.finditer(_EXPONENT_OR_CLOCK.sub(" ", sentence)):
        text = found.group()
        if found["long"]:
            value = _number(found["long"]) * _SECONDS[found["large"]]
            value += float(found["rest"] or 0) * _SECONDS.get(found["small"] or "s", 1.0)
            finest = _SECONDS[found["small"]] if found["small"] else _finer(found["large"])
            yield Stated(text, "seconds", value, 0.5 * finest)
            continue
        value, unit = _number(found["number"]), found["unit"]
        if found["percent"]:
            yield Stated(text, "share", value / 100, _half(found["number"]) / 100)
        elif unit in ("ms", "s"):
            yield Stated(text, "seconds", value * _SECONDS[unit], _third_digit(value) * _SECONDS[unit])
        elif unit in _UNITS:
            kind, scale = _UNITS[unit]
            half = _third_digit(value) if kind else max(_third_digit(value), _half(found["number"]))
            yield Stated(text, kind, value * scale, half * scale)
        else:
            yield Stated(text, "", value, _half(found["number"]))


def wording(sentence: str) -> str:
    """The sentence without its numbers and their units: two that say different things differ in it."""
    return _TOKEN.sub("#", sentence)


def gains(advice: str) -> list[float]:
    """How many times faster it says that steps would be: figures without a unit, to a tenth."""
    return [one.value for one in stated(advice) if not one.kind and "." in one.text]


class Known:
    """Names and numbers that a run's sentences may have from its records: gathered once for all of them."""

    def __init__(self, records: Records) -> None:
        facts = records.facts
        names = {
            *facts.hosts,
            *facts.gradient_interfaces,
            *(file.get("name", "") for file in facts.checkpoint_files),
            *(attempt.reason or "" for attempt in records.attempts),
            *(fault.host for fault in records.faults),
            *map(str, records.nics["interface"]),
        }
        longest_first = sorted(names - {""}, key=len, reverse=True)
        one_of_them = "|".join(map(re.escape, longest_first)) or "(?!)"  # which matches nothing
        self._names = re.compile(rf"(?<!\w)(?:{one_of_them})(?!\w)")
        self.numbers = [*_leaves(facts.model_dump(exclude={"origins"}))]
        for attempt in records.attempts:
            self.numbers += _leaves(attempt.placement)

    def without_names(self, sentence: str) -> str:
        return self._names.sub(" ", sentence)


def unfounded(finding: Finding, known: Known) -> Iterator[str]:
    """Each number of the answer that is neither in the finding's numbers nor a fact of the run."""
    found = [*_leaves(finding.numbers), *known.numbers]
    for one in stated(known.without_names(finding.answer)):
        if (one.kind, one.value) in _DEFINED.get(finding.id, ()):
            continue
        if not any(_is(one, name, value) for name, value in found):
            yield f"{one.text!r} is not in the numbers of {finding.answer!r}"


def _is(one: Stated, name: str, value: float) -> bool:
    margin = one.tolerance * 1.0001 + 1e-9 * abs(value)
    name = f"{name}_share" if name.endswith("utilisation") else name
    return one.kind in name and (
        abs(one.value - value) <= margin or not one.kind and abs(one.value + value) <= margin
    )


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(part, f"{name}.{key}")
    elif isinstance(value, list | tuple):
        yield f"{name}.count", float(len(value))
        for part in value:
            yield from _leaves(part, name)
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        yield name, float(value)


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _half(text: str) -> float:
    """Of the last digit that is written."""
    mantissa, _, exponent = text.partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def _third_digit(value: float) -> float:
    """Half of it: numbers with units have three digits, with the zeros at the end left out."""
    return 0.5 * 10.0 ** (math.floor(math.log10(abs(value))) - 2) if value else 1e-6


def _finer(unit: str) -> float:
    return {"min": 1.0, "h": 60.0, "d": 3600.0}[unit]


# --- numbers themselves -----------------------------------------------------------------------------------


def not_numbers(finding: Finding) -> Iterator[str]:
    try:
        json.dumps(finding.numbers, allow_nan=False)
    except (ValueError, TypeError) as error:
        yield f"{error}: {finding.numbers}"
