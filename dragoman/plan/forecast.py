"""Forecasts a run on a cluster: the seconds of a step by part, then the run's time, money and bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from dragoman.cost.flops import backward_share
from dragoman.cost.step import (
    BUCKET_BYTES,
    StepCost,
    bucket_bytes_for,
    buckets,
    ring_bytes,
    ring_latency_seconds,
)
from dragoman.exchange_way import ExchangeWay
from dragoman.plan.cluster import Cluster
from dragoman.plan.estimate import CASES, Case, Estimate
from dragoman.plan.pace import Pace
from dragoman.plan.work import Work

_NO_LINK = 1e15  # bits per second, where nothing crosses between hosts


@dataclass(frozen=True)
class Forecast:
    work: Work
    pace: Pace
    cluster: Cluster
    way: ExchangeWay  # an open bucket size is chosen by the link, as a run does
    tokens: int = 1  # of a step, as a multiple of the config's; the run then has fewer steps
    epochs: float | None = None
    price_per_hour: float | None = None  # of one host

    @cached_property
    def costs(self) -> Mapping[Case, StepCost]:
        """The cost of a step with every cause as expected, at its best and at its worst."""
        return {case: _cost(self, case) for case in CASES}

    @property
    def step_seconds(self) -> Estimate:
        return self._of_step(lambda cost: cost.seconds)

    @property
    def step_parts(self) -> dict[str, Estimate]:
        """Seconds of a step by part."""
        return {
            "computing": self._of_step(lambda cost: cost.compute_seconds, self.pace.seconds_per_flop),
            "exchange": self._of_step(lambda cost: cost.exposed_seconds, self._link_source),
            "optimizer": self._of_step(
                lambda cost: cost.serial_seconds, self.pace.serial_seconds_per_parameter
            ),
            "data": self._of_step(lambda cost: cost.data_seconds, self.pace.data_share),
        }

    @property
    def steps(self) -> Estimate:
        return self.work.steps(self.epochs).times(1 / self.tokens)

    @property
    def run_parts(self) -> dict[str, Estimate]:
        """Seconds of the whole run by part."""
        steps, settings = self.steps, self.work.settings
        evaluations = math.ceil(steps.value / settings.evaluate.every)
        checkpoints = math.ceil(steps.value / settings.checkpoint.every)
        training = Estimate.of(lambda case: steps.at(case) * self.costs[case].seconds)
        return {
            "training": training,
            "evaluation": self.evaluation_seconds.times(evaluations),
            "checkpoint": self.checkpoint_seconds.times(checkpoints),
            "startup": self.pace.startup_seconds,
        }

    @property
    def evaluation_seconds(self) -> Estimate:
        """Seconds of one evaluation: every rank translates its share of the held-out pairs."""
        pace, work = self.pace, self.work.decoding_flops() / self.cluster.ranks
        return Estimate.of(
            lambda case: work * pace.seconds_per_flop.at(case) * pace.decoding.at(case), pace.decoding.source
        )

    @property
    def checkpoint_seconds(self) -> Estimate:
        """Seconds for which training stands still at one checkpoint."""
        return self.pace.saving_seconds_per_parameter.times(self.work.parameters)

    @property
    def seconds(self) -> Estimate:
        parts = self.run_parts.values()
        return Estimate.of(lambda case: sum(part.at(case) for part in parts))

    @property
    def money(self) -> Estimate | None:
        if self.price_per_hour is None:
            return None
        return self.seconds.times(self.price_per_hour * self.cluster.hosts / 3600)

    @property
    def binds(self) -> str:
        """The part of the run that takes longest."""
        run, step = self.run_parts, self.step_parts
        whole = self.step_seconds.value
        shares = {name: run["training"].value * part.value / whole for name, part in step.items()}
        shares |= {name: part.value for name, part in run.items() if name != "training"}
        return max(shares, key=lambda name: shares[name])

    @property
    def idle_ranks(self) -> int:
        """The number of ranks without a microbatch to compute."""
        return max(0, self.cluster.ranks - self.work.microbatches * self.tokens)

    def _of_step(self, part: Callable[[StepCost], float], source: Estimate | str = "") -> Estimate:
        text = source.source if isinstance(source, Estimate) else source
        return Estimate.of(lambda case: part(self.costs[case]), text)

    @property
    def _link_source(self) -> str:
        if self.cluster.ranks == 1:
            return "one rank exchanges nothing"
        sources = [self.pace.drag_seconds_per_byte.source]
        if self.cluster.hosts > 1 and self.cluster.link:
            sources.append(f"link: {self.cluster.link.bits_per_second.source}")
        return "; ".join(sources)


def fastest(forecasts: list[Forecast]) -> Forecast:
    return min(forecasts, key=lambda forecast: forecast.step_seconds.value)


def _cost(plan: Forecast, case: Case) -> StepCost:
    """The cost of a step with every cause at its expected, least or most seconds."""
    work, pace, cluster, way = plan.work, plan.pace, plan.cluster, plan.way
    microbatches = work.microbatches * plan.tokens
    per_rank = math.ceil(microbatches / cluster.ranks)  # of the rank that has the most
    flops = work.computed_flops_per_step(case) * plan.tokens * per_rank / microbatches
    compute = flops * pace.seconds_per_flop.at(case)
    gradient_bytes = way.gradient_bytes(work.parameters)
    members = way.ring_members(cluster.rank_hosts)
    bits_per_second, round_trip = _link(cluster, case)
    backward = backward_share(work.settings.train.recompute) * compute / per_rank
    filled = buckets(work.gradient_tensors, way.bucket_bytes or _bucket_bytes(cluster, case))
    drag = pace.drag_seconds_per_byte.at(case)
    cost = StepCost(
        compute_seconds=compute,
        data_seconds=compute * pace.data_share.at(case),
        serial_seconds=work.parameters * pace.serial_seconds_per_parameter.at(case),
        wire_bytes=way.bytes_per_host(cluster.rank_hosts, gradient_bytes) or 0.0,
        link_bits_per_second=bits_per_second,
        latency_seconds=len(filled) * ring_latency_seconds(members, round_trip),
        drag_seconds=drag * ring_bytes(members, gradient_bytes),
        # The first bucket is sent when it is full, the last when backward is over (cost/step.py).
        window_seconds=backward * (1 - filled[0] / sum(filled)),
        tail=filled[-1] / sum(filled),
    )
    if way.steps_per_round > 1:
        cost = cost.every(way.steps_per_round)
    # The ranks of a host also exchange among themselves, in every step and in single precision.
    inside = drag * way.bytes_inside(cluster.workers, work.parameters, per_rank)
    return replace(cost, drag_seconds=cost.drag_seconds + inside)


def _link(cluster: Cluster, case: Case) -> tuple[float, float]:
    """The link's bits per second and round trip in seconds; the best case has the fastest link."""
    if cluster.hosts == 1 or cluster.link is None:
        return _NO_LINK, 0.0
    link = cluster.link
    return 1 / link.bits_per_second.inverse().at(case), link.round_trip_seconds.at(case)


def _bucket_bytes(cluster: Cluster, case: Case) -> int:
    """The bucket size that a run chooses once it has measured its link."""
    return bucket_bytes_for(cluster.ranks, *_link(cluster, case)) if cluster.hosts > 1 else BUCKET_BYTES
