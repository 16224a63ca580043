"""Parses figures as people write them down: `about 1.9`, `22-24`, `120K`, `1000 Mbps`, `17.3 Gb/5 min`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.errors import UsageError

LONGEST_TEXT = 2_000  # characters; nobody writes more beside a figure
MOST = 1e15  # the largest figure accepted, in its own unit
LINKS = (1e3, 1e14)  # bits per second, from a modem to the largest switch
# Possessive, and never starting inside a longer row of digits: otherwise a search takes time quadratic in
# the length of that row.
_NUMBER = r"(?<!\d)(?:\d{1,3}(?:,\d{3})++(?:\.\d+)?|\d++(?:\.\d+)?)(?:[eE][+-]?\d+)?"
_FIGURE = re.compile(rf"(?<![\w.,])~?({_NUMBER})\s*([kKmM](?![a-zA-Z]))?")
_RANGE = re.compile(rf"(?<![\w.,])({_NUMBER})\s*(?:-|–|to)\s*({_NUMBER})(?![\w])")
_SCALES = {"k": 1e3, "m": 1e6}
_RATE = re.compile(
    rf"({_NUMBER})\s*([kKmMgG])?(?:i(?=[bB])|ilo|ega|iga)?\s*(bits?|bytes?|bps|Bps|b|B)(?![a-zA-Z])\s*"
    r"(?:/\s*s(?:ec(?:ond)?)?|ps|per second|/\s*(\d+)?\s*min)?"
)
_DURATION = re.compile(
    rf"(?:({_NUMBER})\s*d(?:ays?)?(?![a-z])[\s,and]*)?(?:({_NUMBER})\s*h(?:(?:ou)?rs?)?(?![a-z])[\s,and]*)?"
    rf"(?:({_NUMBER})\s*m(?:in(?:ute)?s?)?(?![a-z])[\s,and]*)?(?:({_NUMBER})\s*s(?:ec(?:ond)?s?)?(?![a-z]))?"
)
# `23:36`, `1 day, 2:24:00` as Python shows it, `1-02:24:00` as Slurm does
_CLOCK = re.compile(r"(?<![\d:.])(?:(\d+)(?:\s*d(?:ays?)?,?\s*|-))?(\d+):(\d\d)(?::(\d\d))?(?![\d:])")
_ORDER = re.compile(
    rf"({_NUMBER}) ?(k|m|g|t|kilo|mega|giga|tera)?(?:bits?|bytes?|bps|b|be)?"
    r"(?:/s(?:ec(?:ond)?)?| per second)?",
    re.IGNORECASE,
)
_LOWER_END = 40  # characters before a rate in which to look for the lower end of a range
_STEPS = r"(?:global[_ ])?(?:steps?|it(?:eration)?s?)"
_HOURS = (24.0, 1.0, 1 / 60, 1 / 3600)
_PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


def figure(text: str | None) -> float | None:
    """The first figure in a text, or the middle of the range it begins with; None without a usable figure."""
    text = _tidy(text)
    first = _FIGURE.search(text)
    if not first:
        return None
    if (both := _RANGE.search(text)) and both.start() == first.start():
        return _in_bounds((_number(both[1]) + _number(both[2])) / 2)
    return _in_bounds(_number(first[1]) * _SCALES.get((first[2] or "").lower(), 1.0))


def hours(text: str | None) -> float | None:
    """A duration in hours, read from its units or from a clock display; a bare figure counts as hours."""
    text = _tidy(text)
    value = figure(text)
    if clock := _CLOCK.search(text):
        fields = [float(part or 0) for part in clock.groups()]
        return _in_bounds(sum(part * unit for part, unit in zip(fields, _HOURS, strict=True)))
    for match in _DURATION.finditer(text):
        parts = [(_number(part), unit) for part, unit in zip(match.groups(), _HOURS, strict=True) if part]
        if not parts:
            continue
        total = sum(part * unit for part, unit in parts)
        both = _RANGE.search(text)
        is_range = both and both.start(2) == match.start() and len(parts) == 1
        return _in_bounds((value or 0.0) * parts[0][1] if is_range else total)
    return value


def step_seconds(text: str | None) -> float | None:
    """Seconds per step: `1.7 s`, `300ms`, `0.6 steps/s`, `4 min for 100 steps`, `100 steps: 190 s`, `1,7`."""
    # No step takes thousands of seconds, so a comma is a decimal comma.
    text = re.sub(r"(?<![\d,])(\d),(\d+)(?![\d,])", r"\1.\2", _tidy(text))
    value, first = figure(text), _FIGURE.search(text)
    if not value or not first:
        return None
    after = text[first.end() :]
    if rate := re.match(rf"(?:\s*-\s*(?:{_NUMBER}))?\s*{_STEPS}\s*(?:/|per)\s*(s|min)", after):
        return _in_bounds((60 if rate[1] == "min" else 1) / value)
    if taken := re.match(rf"\s*{_STEPS}\s*(?:[:=]|in|took|take)\s*(.+)", after):
        seconds = step_seconds(taken[1])
        return _in_bounds(seconds / value) if seconds else None
    unit = re.match(r"\s*(ms|milli|min)", after)
    value *= {"ms": 1e-3, "milli": 1e-3, "min": 60.0}[unit[1]] if unit else 1.0
    many = re.match(r"\s*[a-zA-Z]*\s*(?:for|per|/|every)\s*(\d+)\s*(?:steps|it)", after)
    steps = float(many[1]) if many else 1.0
    return _in_bounds(value / steps) if steps else None


def rounding(text: str | None) -> float:
    """How exact the first figure is, as a share of it: half its last digit, or half the width of its range.

    1.0 if there is no usable figure.
    """
    text = _tidy(text)
    first = _FIGURE.search(text)
    if not first or not _in_bounds(_number(first[1])):
        return 1.0
    if (both := _RANGE.search(text)) and both.start() == first.start():
        low, high = _number(both[1]), _number(both[2])
        return abs(high - low) / (high + low) if _in_bounds(high) else 1.0
    digits = first[1].lower().partition("e")[0].replace(",", "")
    last = 10.0 ** -len(digits.partition(".")[2]) if "." in digits else 1.0
    return last / 2 / float(digits)


def figures(text: str | None) -> list[float]:
    """Every figure of a list such as `43,44; 158,192 at 79%`, except percentages and memory sizes.

    Here a comma separates figures.
    """
    numbers = re.findall(r"(?<![\w.])(\d+(?:\.\d+)?)(?![\w%.]|\s*(?:%|[MG]i?B))", _tidy(text))
    return [value for number in numbers if (value := _in_bounds(float(number))) is not None]


def bits_per_second(text: str | None) -> float | None:
    """The link that a text describes: 1000 (megabits, as clouds write it), 1GB (a gigabit), 2 x 1 Gbps."""
    text = _decimal(_tidy(text))
    # In `2 x 1 Gbps` the figure with a unit counts. In `1 to 10 Gbit` the t of `to` is no unit.
    with_unit = rf"({_NUMBER})\s*([kKmMgG]|[tT](?=[bB]))"
    match = re.search(with_unit, text) or re.search(f"{with_unit}?", text)
    return _link(match[1], match[2]) if match and not text.startswith("-") else None


def ordered_link(text: str) -> float:
    """Bits per second of --link, which takes a rate and nothing else: 1gbit, 1000 Mbps, 1000, 1e3mbit.

    A remark in brackets may follow: `1gbps (not obtained)`.
    """
    match = _ORDER.fullmatch(_decimal(_tidy(text)).partition(" (")[0])
    rate = _link(match[1], match[2]) if match else None
    if rate is None:
        what = "not a rate" if not match else "not between 1 kbit/s and 100 Tbit/s"
        raise UsageError(
            f"--link {text[:_LOWER_END]}: {what}", hint="write the ordered rate, such as 1gbit or 100mbit"
        )
    return rate


def _link(number: str, prefix: str | None) -> float | None:
    """A link's rate in bits per second, or None if no link has it.

    Links are sold in bits: a capital B in an order is a slip of the shift key.
    """
    rate = _number(number) * (_PREFIX | {"t": 1e12})[(prefix or "m")[0].lower()]
    return rate if LINKS[0] <= rate <= LINKS[1] else None


@dataclass(frozen=True)
class Reading:
    """A rate that somebody read off a screen, and the unit they wrote beside it."""

    value: float
    prefix: str  # k, m, g or nothing
    is_bytes: bool
    text: str

    @property
    def bytes_per_second(self) -> float:
        return self.value * _PREFIX[self.prefix] / (1 if self.is_bytes else 8)


@dataclass(frozen=True)
class Consistent:
    """The unit in which a reading agrees with the traffic the exchange must have sent."""

    unit: str
    bytes_per_second: float
    as_written: bool


def readings(text: str | None) -> list[Reading]:
    """Every rate in a text; a range counts as its middle."""
    text = _tidy(text)
    rates: list[Reading] = []
    for match in _RATE.finditer(text):
        value = _number(match[1])
        before = text[max(0, match.start() - _LOWER_END) : match.start()]
        if lower := re.search(rf"({_NUMBER})\s*(?:[kKmMgG]\w*)?\s*(?:-|to)\s*$", before):
            value = (value + _number(lower[1])) / 2
            rates = rates[:-1] if rates and rates[-1].value == _number(lower[1]) else rates
        is_bytes = match[3][0] == "B" or match[3].startswith("byte")
        minutes = re.search(r"/\s*(\d+)?\s*min", match[0])
        per = 60 * float(minutes[1] or 1) if minutes else 1
        if per and 0 < value <= MOST:
            rates.append(Reading(value / per, (match[2] or "").lower(), is_bytes, match[0].strip()))
    return rates


AGREES = 1.5  # times more or less: screens show a moment, and units differ by 8 or by 1,000


def best(
    candidates: Sequence[Reading], expected_bytes_per_second: float
) -> tuple[Reading, Consistent | None]:
    """The reading that fits the expected traffic best: people also note other rates, such as the link's."""
    fits = [(reading, consistent(reading, expected_bytes_per_second)) for reading in candidates]
    return min(fits, key=lambda fit: (fit[1] is None, fit[1] is not None and not fit[1].as_written))


def consistent(reading: Reading, expected_bytes_per_second: float) -> Consistent | None:
    """The unit in which the reading comes closest to the expected traffic; None if no unit makes it agree."""
    tried = []
    for prefix, factor in _PREFIX.items():
        for is_bytes in (True, False):
            rate = reading.value * factor / (1 if is_bytes else 8)
            off = max(rate / expected_bytes_per_second, expected_bytes_per_second / max(rate, 1e-9))
            as_written = prefix == reading.prefix and is_bytes == reading.is_bytes
            unit = f"{prefix.upper()}{'B' if is_bytes else 'bit'}/s"
            tried.append((off, not as_written, unit, rate))
    off, is_other, unit, rate = min(tried)
    return Consistent(unit, rate, not is_other) if off <= AGREES else None


def _tidy(text: str | None) -> str:
    """The text cut to the longest length, with single spaces.

    A pattern that scans a row of spaces twice takes time quadratic in its length.
    """
    return " ".join((text or "")[:LONGEST_TEXT].split())


def _decimal(text: str) -> str:
    """The text with decimal commas, as half of Europe writes them, turned into points."""
    return re.sub(r"(?<![\d,.])(\d+),(\d{1,2})(?!\d)", r"\1.\2", text)


def _in_bounds(value: float) -> float | None:
    return value if value == 0 or 1 / MOST <= value <= MOST else None


def _number(text: str) -> float:
    return float(text.replace(",", ""))
