"""Reads the pace of an earlier run from its records, to plan the next one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dragoman import config
from dragoman.config import Training
from dragoman.cost.step import ring_bytes
from dragoman.data.card import Card
from dragoman.errors import RecordsError, reading
from dragoman.explain import placement
from dragoman.explain.counterfactual import cost, link_rate, without_exchange
from dragoman.explain.step_breakdown import StepParts, settled, step_parts
from dragoman.measure import database
from dragoman.measure.records import Records, RunFacts
from dragoman.plan import pace as paces
from dragoman.plan.cluster import PlannedLink, named
from dragoman.plan.estimate import Estimate, spread
from dragoman.plan.pace import Pace
from dragoman.plan.work import CorpusSize, Work
from dragoman.rundir import RunFolder

_LEAST_DOUBT = 0.10  # how much two runs on the same machines differ
_EVENT_DOUBT = 0.25
_LINK_DOUBT = 0.05
_DRAG_DOUBT = 0.5
_SOME_SECONDS = 1e-6  # the least computing in a step, whatever odd clocks say


@dataclass(frozen=True)
class Observed:
    pace: Pace
    settings: Training
    corpus: CorpusSize


def observe(path: Path) -> Observed:
    """The pace, settings and corpus of the run in this folder."""
    file = RunFolder(path).records
    records = placement.longest(database.read(file)).records
    parts = step_parts(records)
    if parts is None or parts.computing is None:
        raise RecordsError(
            "has no timed steps to plan by", path=path, hint="give --from a run that has made some steps"
        )
    with reading(file, RecordsError, hint="give --from a run of this version: it records what is needed"):
        settings = Training.model_validate(config.nested(records.facts.settings))
        corpus = CorpusSize.of(Card.model_validate(records.facts.data_card))
    return Observed(_pace(records, parts, Work(settings, corpus), path.name), settings, corpus)


@dataclass(frozen=True)
class Split:
    """A step's seconds, divided as in the cost model."""

    computing: float
    exchange: float  # how much shorter the step would be without it
    optimizer: float
    data: float


def split(records: Records, parts: StepParts) -> Split:
    """Divides the mean step as the cost model does."""
    without = without_exchange(records, parts) if (records.facts.ranks or 1) > 1 else None
    data, optimizer = parts.data or 0.0, parts.optimizer or 0.0
    if without:
        computing = max(_SOME_SECONDS, without.seconds - data - optimizer)
        return Split(computing, max(0.0, parts.seconds - without.seconds), optimizer, data)
    computing = max(_SOME_SECONDS, (parts.computing or 0.0) - optimizer)
    # One rank exchanges nothing: time outside all phases is spent once per step.
    return Split(computing, 0.0, parts.seconds - computing - data, data)


@dataclass(frozen=True)
class ActualStep:
    """The mean step on the ranks and hosts that made most of a run's steps."""

    facts: RunFacts  # of those ranks and hosts
    seconds: float
    split: Split | None  # None where the phases were not recorded


def actual_step(records: Records) -> ActualStep | None:
    """The step to compare with a planned one; None if no step was timed."""
    placed = placement.longest(records).records
    parts = step_parts(placed)
    if parts is None:
        return None
    return ActualStep(placed.facts, parts.seconds, None if parts.computing is None else split(placed, parts))


def _pace(records: Records, parts: StepParts, work: Work, name: str) -> Pace:
    facts, ranks = records.facts, records.facts.ranks or 1
    spent_on = split(records, parts)
    computing = spent_on.computing
    share = math.ceil(work.microbatches / ranks) / work.microbatches  # of the rank that has the most
    where = f"measured in {name}, {parts.steps:,} steps"
    doubt = max(_LEAST_DOUBT, spread(records.steps["seconds"][settled(records)]))

    def measured(value: float, doubt: float = doubt) -> Estimate:
        return Estimate.within(value, doubt, where)

    per_flop = measured(computing / (work.computed_flops_per_step() * share))
    startup = _mean_of(records, "startup")
    saving = _mean_of(records, "checkpoint")
    return Pace(
        device=facts.device or "unknown",
        seconds_per_flop=per_flop,
        data_share=measured(spent_on.data / computing),
        serial_seconds_per_parameter=measured(spent_on.optimizer / work.parameters),
        drag_seconds_per_byte=_drag(records, parts, work, where),
        decoding=_decoding(records, work, per_flop, where),
        saving_seconds_per_parameter=(
            measured(saving / work.parameters, _EVENT_DOUBT) if saving else paces.SAVING_SECONDS
        ),
        startup_seconds=measured(startup, _EVENT_DOUBT) if startup else paces.STARTUP_SECONDS,
        link=_link(records, where),
    )


def _drag(records: Records, parts: StepParts, work: Work, where: str) -> Estimate:
    """The cost of an exchange besides its time on the link, per byte that a rank sends."""
    facts, ranks = records.facts, records.facts.ranks or 1
    without = without_exchange(records, parts)
    usual = paces.CPU_DRAG_SECONDS if facts.device == "cpu" else paces.DRAG_SECONDS
    if ranks == 1 or without is None:
        return usual
    model = cost(records, parts, without)
    seconds = model.drag_seconds if model else split(records, parts).exchange
    way = facts.way
    sent = ring_bytes(ranks, way.gradient_bytes(work.parameters)) / way.steps_per_round
    if way.is_sharded:
        hosts = len(set(facts.rank_hosts))
        microbatches = math.ceil(work.microbatches / ranks)
        sent = way.bytes_inside(ranks // hosts, work.parameters, microbatches)
        sent += ring_bytes(hosts, way.gradient_bytes(work.parameters))
    return Estimate.within(seconds / sent, _DRAG_DOUBT, f"{where}, by steps with and without exchange")


def _decoding(records: Records, work: Work, per_flop: Estimate, where: str) -> Estimate:
    """How many times slower than training an evaluation does the same work."""
    seconds = _mean_of(records, "evaluation")
    by_pace = work.decoding_flops() / (records.facts.ranks or 1) * per_flop.value
    if not seconds or not by_pace:
        return paces.DECODING
    return Estimate.within(seconds / by_pace, _EVENT_DOUBT, f"{where}: {_count(records, 'evaluation')}")


def _link(records: Records, where: str) -> PlannedLink | None:
    rate = link_rate(records)
    if rate is None:
        return None
    round_trips = [probe.numbers.get("round_trip_seconds", 0.0) for probe in records.probes_of("link")]
    return PlannedLink(
        Estimate.within(rate, _LINK_DOUBT, f"bursts {where}"),
        Estimate.within(min(round_trips), _EVENT_DOUBT, where),
        f"{named(rate)} measured",
    )


def _mean_of(records: Records, kind: str) -> float | None:
    seconds = [event.seconds for event in records.events if event.kind == kind]
    return float(np.mean(seconds)) if seconds else None


def _count(records: Records, kind: str) -> str:
    count = sum(event.kind == kind for event in records.events)
    return f"{count} {kind}{'s' * (count != 1)}"
