"""Which steps speak for how ranks were placed and met: hosts may come and go between attempts of a run.

What a rank waits for depends on who else there is. Steps of two placements, taken together, would be judged
by the hosts of one and the seconds of the other.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from dragoman.explain import words
from dragoman.measure.records import Attempt, Records, RunFacts, Table

# Facts that make a placement another one. Buckets are sized by a measurement at each start: those may differ.
DECISIVE = ("ranks", "hosts", "rank_hosts", "device", "mode", "exchange", "wire", "exchange_every")


@dataclass(frozen=True)
class Placed:
    """The records of the steps made in one placement, and a sentence on the others, if there were any."""

    records: Records
    others: str = ""


def longest(records: Records) -> Placed:
    """Those of the placement in which most steps were made."""
    steps = {
        attempt.number: int((records.steps["attempt"] == attempt.number).sum())
        for attempt in records.attempts
    }
    groups: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in records.attempts:
        if steps[attempt.number]:
            groups[_key(attempt)].append(attempt)
    if len(groups) < 2:
        return Placed(records)

    def made(group: list[Attempt]) -> int:
        return sum(steps[attempt.number] for attempt in group)

    last = max(attempt.number for group in groups.values() for attempt in group)
    # Before placements were kept with attempts, that of the last one was the only one written down.
    known = [group for group in groups.values() if group[-1].placement or group[-1].number == last]
    chosen = max(known, key=made)
    facts = records.facts.model_copy(update=chosen[-1].placement)
    rest = [group for group in groups.values() if group is not chosen]
    others = words.listed([f"{made(group):,} by {_described(group[-1])}" for group in rest])
    sentence = (
        f"This is of the {made(chosen):,} steps by {_described(chosen[-1])}; the run also made {others}."
    )
    return Placed(_only(records, chosen, facts), sentence)


def _key(attempt: Attempt) -> str:
    decisive = {name: attempt.placement.get(name) for name in DECISIVE}
    return json.dumps(decisive | {"ranks": attempt.ranks})


def _described(attempt: Attempt) -> str:
    text = f"{attempt.ranks} rank{'s' * (attempt.ranks > 1)}"
    if hosts := attempt.placement.get("hosts"):
        text += f" on {words.hosts(hosts)}"
        text += f" ({RunFacts.model_validate(attempt.placement).way})" if len(hosts) > 1 else ""
    return text


def _only(records: Records, attempts: list[Attempt], facts: RunFacts) -> Records:
    numbers = [attempt.number for attempt in attempts]
    starts = [attempt.started for attempt in records.attempts] + [np.inf]
    spans = [(attempt.started, min(s for s in starts if s > attempt.started)) for attempt in attempts]

    def of_attempts(table: Table) -> Table:
        chosen = np.isin(table["attempt"], numbers)
        return {name: values[chosen] for name, values in table.items()}

    def meanwhile(table: Table) -> Table:
        chosen = np.zeros(len(table["time"]), dtype=bool)
        for start, end in spans:
            chosen |= (table["time"] >= start) & (table["time"] < end)
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
    )
