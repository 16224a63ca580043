"""The provenance of a run as rows of a table."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dragoman import format_units
from dragoman.errors import RecordsError
from dragoman.measure import provenance
from dragoman.measure.records import FIRST_DATE, Records
from dragoman.report import units
from dragoman.rundir import RunFolder

ATTEMPTS_HEADER = ("attempt", "began", "first step", "ranks", "ended", "why")


def load(folder: Path) -> dict[str, Any]:
    """Returns the run folder's provenance.json, or what is wrong with it; no answer depends on it."""
    path = RunFolder(folder).provenance
    try:
        return provenance.load(path)
    except RecordsError as error:
        return {path.name: error.what}


def fact_rows(records: Records) -> list[tuple[str, str]]:
    """Returns names and values of the known facts of a run."""
    facts = records.facts
    rows = [
        ("name", facts.name),
        ("recorded by", facts.source),
        ("ranks", units.shown("ranks", facts.ranks)),
        ("hosts", format_units.hosts(facts.hosts)),
        ("device", facts.device),
        ("computes in", facts.precision),
        ("chosen as", facts.precision_why),
        ("parameters", units.shown("parameters", facts.parameters)),
        ("exchange", facts.way if facts.source == "dragoman" else facts.exchange),
        ("chosen because", facts.exchange_why),
        ("gradients per rank", units.shown("gradient_bytes", facts.gradient_bytes)),
        ("gradients leave by", format_units.listed(sorted(set(facts.gradient_interfaces)))),
        ("data fingerprint", facts.data_card.get("fingerprint")),
        ("link, as ordered", units.shown("link_bits_per_second", facts.ordered_link_bits_per_second)),
        *(
            ((f"{origin} facts"), _having(facts.origins, origin))
            for origin in sorted(set(facts.origins.values()))
        ),
    ]
    return [(name, str(value)) for name, value in rows if value and value != units.NOT_KNOWN]


def _having(origins: Mapping[str, str], wanted: str) -> str:
    return ", ".join(name.replace("_", " ") for name, origin in origins.items() if origin == wanted)


def attempt_rows(records: Records) -> list[tuple[str, ...]]:
    """Returns number, start, first step, ranks, end and reason of each attempt, dated by the wall clock."""
    rows: list[tuple[str, ...]] = []
    ahead = 0.0  # how far the wall clock is ahead of the times in the records
    for attempt in records.attempts:
        began = moment(attempt.started + ahead + attempt.jump_before)
        ahead += sum(attempt.jumps)
        rows.append(
            (
                str(attempt.number),
                began,
                f"{attempt.first_step:,}",
                str(attempt.ranks),
                units.NOT_KNOWN if attempt.ended is None else moment(attempt.ended + ahead),
                attempt.reason or "not recorded",
            )
        )
    return rows


def flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Returns nested values as text under dotted keys."""
    return list(_flat(values, prefix))


def _flat(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
            yield from _flat({str(index): inner for index, inner in enumerate(value, start=1)}, f"{name}.")
        else:
            yield (
                name,
                value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str),
            )


def moment(unix_seconds: float) -> str:
    """Returns a time in UTC, or since the start for a log without dates, whose times are small."""
    if not math.isfinite(unix_seconds):
        return units.NOT_KNOWN
    if unix_seconds < FIRST_DATE:
        return f"{format_units.seconds(unix_seconds)} after the start"
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(unix_seconds))
