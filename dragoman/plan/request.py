"""The request of `dragoman plan`, and the plan that answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman import kinds
from dragoman.config import Training
from dragoman.data.card import Card
from dragoman.errors import UsageError
from dragoman.exchange_way import open_ways
from dragoman.plan import forecast, observed
from dragoman.plan.cluster import Cluster, PlannedLink
from dragoman.plan.forecast import Forecast
from dragoman.plan.observed import Observed
from dragoman.plan.pace import Pace, of_gpu
from dragoman.plan.work import CorpusSize, Work

_OTHER_MODEL = 0.3  # how far off a pace may be for a model or microbatch it was not measured with


@dataclass(frozen=True)
class PlanRequest:
    settings: Training
    hosts: int = 1
    workers: int = 1  # on each
    link: str | None = None  # as ordered
    gpu: str | None = None
    run: Path | None = None  # an earlier run of ours, whose pace is used
    calibrate: Callable[[Work], Pace] | None = None  # measures this machine
    data: Path | None = None
    pairs: int | None = None
    epochs: float | None = None
    price_per_hour: float | None = None
    currency: str = ""  # of the price


@dataclass(frozen=True)
class Plan:
    forecast: Forecast
    assumptions: list[str]
    currency: str = ""


def plan(request: PlanRequest) -> Plan:
    """The forecast of the fastest way the settings leave open, and what it assumes."""
    past = observed.observe(request.run) if request.run else None
    corpus = _corpus(request, past)
    work = Work(request.settings, corpus)
    work.steps(request.epochs)  # raises if --epochs has no corpus, before half a minute of measuring
    pace, assumptions = _pace(request, past, work), list(corpus.assumptions)
    cluster = Cluster(request.hosts, request.workers, _link(request, pace))
    fastest = forecast.fastest(
        [
            Forecast(work, pace, cluster, way, epochs=request.epochs, price_per_hour=request.price_per_hour)
            for way in open_ways(request.settings.sync, cluster.rank_hosts)
        ]
    )
    if fastest.idle_ranks:
        idle, size = fastest.idle_ranks, work.microbatches
        assumptions.append(
            f"a step of {size} microbatches leaves {idle} of {cluster.ranks} ranks idle (data.microbatch)"
        )
    return Plan(fastest, assumptions, request.currency)


def _corpus(request: PlanRequest, past: Observed | None) -> CorpusSize:
    if request.data:
        try:
            card = Card.load(request.data / "card.json")
        except (FileNotFoundError, NotADirectoryError):
            raise kinds.refused(request.data, "data set") from None
        return CorpusSize.of(card)
    if past:
        assumptions = ["the same corpus as in the earlier run (--data DATA for another)"]
        return replace(past.corpus, pairs=request.pairs or past.corpus.pairs, assumptions=assumptions)
    return CorpusSize.usual(request.pairs)


def _pace(request: PlanRequest, past: Observed | None, work: Work) -> Pace:
    sources = [bool(request.gpu), bool(past), bool(request.calibrate)]
    if sum(sources) != 1:
        wrong = "nothing says how fast a rank computes" if not any(sources) else "the pace is given twice"
        hint = "give one of --gpu V100 (a table), --calibrate (measures here) or --from RUN (its records)"
        raise UsageError(wrong, hint=hint)
    if request.gpu:
        return of_gpu(request.gpu, request.settings.train.precision)
    if request.calibrate:
        return request.calibrate(work)
    assert past
    if _microbatch(past.settings, past.corpus) == _microbatch(request.settings, work.corpus):
        return past.pace
    per_flop = past.pace.seconds_per_flop.wider(_OTHER_MODEL, "with another model or microbatch")
    return replace(past.pace, seconds_per_flop=per_flop)


def _microbatch(settings: Training, corpus: CorpusSize) -> tuple[object, ...]:
    """The values that decide what a microbatch costs."""
    return (
        settings.model,
        settings.data.unit,
        settings.data.microbatch,
        settings.data.split,
        settings.train.recompute,
        corpus.vocabulary,
    )


def _link(request: PlanRequest, pace: Pace) -> PlannedLink | None:
    if request.hosts == 1:
        return PlannedLink.parse(request.link) if request.link else None
    if request.link:
        return PlannedLink.parse(request.link)
    if pace.link is None:
        raise UsageError(
            f"the link between the {request.hosts} hosts is not given",
            hint="add --link 1gbit (the ordered rate), or --from RUN with a run that measured the link",
        )
    return pace.link
