"""Selects the steps of one placement of ranks, as hosts may come and go between attempts of a run.

What a rank waits for depends on the other ranks. Judging the steps of two placements together would combine
the hosts of one with the seconds of the other.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from dragoman import format_units
from dragoman.measure.records import Attempt, Records, RunFacts, Table

# Placements differ if one of these facts does. Bucket sizes are measured at each start and may differ.
DECISIVE = (
    "ranks", "hosts", "rank_hosts", "gradient_interfaces", "device",
    "mode", "exchange", "wire", "exchange_every",
)  # fmt: skip
MOST_OTHERS = 3  # placements named beside the one that is answered for


@dataclass(frozen=True)
class Placed:
    """The records of one placement, and a sentence on the others if there were any."""

    records: Records
    others: str = ""


def longest(records: Records) -> Placed:
    """Returns the records of the placement with most steps."""
    groups: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in records.attempts:
        groups[_key(attempt)].append(attempt)
    numbers, counts = np.unique(records.steps["attempt"], return_counts=True)
    made = dict(zip(numbers.tolist(), counts.tolist(), strict=True))

    def steps(group: list[Attempt]) -> int:
        return sum(made.get(number, 0) for number in {attempt.number for attempt in group})

    # An attempt records its placement before its first step. In early records attempts have none, and only
    # that of the newest is known, from the facts of the run.
    known = [group for group in groups.values() if group[-1].placement or group[-1] is records.attempts[-1]]
    if len(groups) < 2 or not any(map(steps, known)):
        return Placed(records)
    chosen = max(known, key=steps)
    facts = records.facts.model_copy(update=chosen[-1].placement)
    rest = [group for group in groups.values() if group is not chosen and steps(group)]
    return Placed(_only(records, chosen, facts), _sentence([(steps(g), g[-1]) for g in (chosen, *rest)]))


def _sentence(placements: list[tuple[int, Attempt]]) -> str:
    """Names steps and placement of the answer, then the others; each comes with one of its attempts."""
    (chosen, attempt), *rest = placements
    if not rest:
        return ""
    told = rest
    if len(rest) > MOST_OTHERS:
        told = sorted(rest, key=lambda placement: -placement[0])[: MOST_OTHERS - 1]
    parts = [f"{steps:,} by {_described(attempt)}" for steps, attempt in told]
    if len(told) < len(rest):
        left = sum(steps for steps, _ in rest) - sum(steps for steps, _ in told)
        parts.append(f"{left:,} in {len(rest) - len(told)} other configurations")
    others = format_units.listed(parts)
    return f"This covers the {chosen:,} steps by {_described(attempt)}; the run also made {others}."


def _key(attempt: Attempt) -> str:
    decisive = {name: attempt.placement.get(name) for name in DECISIVE}
    return json.dumps(decisive | {"ranks": attempt.ranks})


def _described(attempt: Attempt) -> str:
    text = format_units.counted(attempt.ranks, "rank")
    if hosts := attempt.placement.get("hosts"):
        text += f" on {format_units.hosts(hosts)}"
        text += f" ({RunFacts.model_validate(attempt.placement).way})" if len(hosts) > 1 else ""
    return text


def _only(records: Records, attempts: list[Attempt], facts: RunFacts) -> Records:
    numbers = {attempt.number for attempt in attempts}
    starts = np.unique([attempt.started for attempt in records.attempts])
    is_ours = np.isin(starts, [attempt.started for attempt in attempts])

    def of_attempts(table: Table) -> Table:
        chosen = np.isin(table["attempt"], list(numbers))
        return {name: values[chosen] for name, values in table.items()}

    def meanwhile(table: Table) -> Table:
        places = np.searchsorted(starts, table["time"], side="right") - 1  # of the attempt under way
        chosen = (places >= 0) & is_ours[places] & ~np.isnan(table["time"])
        return {name: values[chosen] for name, values in table.items()}

    return Records(
        facts,
        attempts,
        steps=of_attempts(records.steps),
        windows=of_attempts(records.windows),
        evaluations=[row for row in records.evaluations if row.attempt in numbers],
        events=[row for row in records.events if row.attempt in numbers],
        probes=[row for row in records.probes if row.attempt in numbers],
        nics=meanwhile(records.nics),
        hosts=meanwhile(records.hosts),
        gpus=meanwhile(records.gpus),
        lens=meanwhile(records.lens),
        programs=meanwhile(records.programs),
        faults=[fault for fault in records.faults if fault.attempt in numbers],
        repeated=of_attempts(records.repeated),
    )
