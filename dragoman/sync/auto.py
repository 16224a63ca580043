"""`sync.mode = "auto"`: times a few exchanges of each kind and picks the way with the shortest step.

All ways that it can pick compute the same mean: fp32 or bf16 on the wire, flat or hierarchical, bucket size
and flows. It never picks what changes the mathematics of synchronous training (DiLoCo, larger steps).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from dragoman.config import Sync
from dragoman.cost.step import BUCKET_BYTES, BUCKET_SIZES, buckets, exposed_after
from dragoman.exchange_way import ExchangeWay, open_ways
from dragoman.sync.allreduce import Flat
from dragoman.sync.bucket_sender import Pipeline, Route
from dragoman.sync.hierarchical import Groups, ThroughLeaders
from dragoman.sync.topology import Topology
from dragoman.sync.world import World

_WORTH = 0.03  # of a step: how much a way further from plain fp32 must save
# The best counts: a time says nothing about the link if a rank had to wait for its core, or if NCCL had to
# connect the ranks first.
_REPEATS = 3
_LONG_SECONDS = 0.7  # no size is tried after one that took this long: larger ones scale with the bytes
_FLOWS = (1, 2, 4)


@dataclass(frozen=True)
class Tried:
    """A kind of exchange and its measured times."""

    way: ExchangeWay  # without a bucket size yet
    seconds: dict[int, float]  # by bytes of fp32 gradients

    def seconds_of(self, nbytes: int) -> float:
        """The time for this many bytes: interpolated between tried sizes, in proportion above the largest."""
        sizes = sorted(self.seconds)
        if nbytes > sizes[-1]:
            return self.seconds[sizes[-1]] * nbytes / sizes[-1]
        return float(np.interp(nbytes, sizes, [self.seconds[size] for size in sizes]))


@dataclass(frozen=True)
class ComputedStep:
    """The slowest rank's step without its exchange."""

    compute_seconds: float
    window_seconds: float  # the backward pass that can hide an exchange
    gradient_bytes: list[int]  # of each tensor, in the order in which they are ready


@dataclass(frozen=True)
class Expected:
    """A way with its bucket size, and how long a step should take with it."""

    way: ExchangeWay
    step_seconds: float


def expect(step: ComputedStep, tried: Tried, bucket_bytes: int) -> Expected:
    """The expected step time of this kind of exchange with this bucket size."""
    filled = buckets(step.gradient_bytes, bucket_bytes)
    exposed_seconds = exposed_after(filled, step.window_seconds, tried.seconds_of)
    way = tried.way.model_copy(update={"bucket_bytes": bucket_bytes})
    return Expected(way, step.compute_seconds + exposed_seconds)


def pick(step: ComputedStep, tried: Sequence[Tried], bucket_sizes: Sequence[int]) -> tuple[Expected, str]:
    """The way closest to plain fp32 of those about as fast as the fastest, and the reason in words."""
    expected = [expect(step, each, size) for each in tried for size in bucket_sizes]
    fastest = min(each.step_seconds for each in expected)
    good = [each for each in expected if each.step_seconds <= (1 + _WORTH) * fastest]
    chosen = min(good, key=lambda each: _distance_from_plain(each.way))
    return chosen, _why(step, expected, chosen)


def _distance_from_plain(way: ExchangeWay) -> tuple[bool, bool, int, int]:
    return way.wire != "fp32", way.is_hierarchical, way.flows, -(way.bucket_bytes or 0)


def _why(step: ComputedStep, expected: Sequence[Expected], chosen: Expected) -> str:
    text = f"a step is expected to take {chosen.step_seconds:.3g} s"
    text += f", {step.compute_seconds:.3g} s of it computing"
    others: dict[ExchangeWay, float] = {}
    for each in expected:
        if (kind := each.way.kind) != chosen.way.kind:
            others[kind] = min(each.step_seconds, others.get(kind, each.step_seconds))
    compared = [f"{kind.shape} {kind.wire} {seconds:.3g} s" for kind, seconds in others.items()]
    return f"{text}; {', '.join(compared)}" if compared else text


def measure(world: World, topology: Topology, settings: Sync, gradient_bytes: int) -> list[Tried]:
    """Times the ways that the settings leave open, which takes seconds in all. Collective."""
    ways = open_ways(settings, topology.rank_hosts)
    is_any_hierarchical = any(way.is_hierarchical for way in ways)
    groups = Groups(world, topology, max(_FLOWS)) if is_any_hierarchical else None
    sizes = sorted({min(size, gradient_bytes) for size in BUCKET_SIZES})
    tried = [Tried(way, _seconds(_route(world, groups, way), world, sizes)) for way in ways]
    if groups:
        tried = [_with_flows(each, world, groups) for each in tried]
        groups.close()
    return tried


def bucket_sizes(settings: Sync, gradient_bytes: int) -> list[int]:
    """The bucket sizes to choose from."""
    if settings.bucket_bytes:
        return [settings.bucket_bytes]
    return [size for size in BUCKET_SIZES if size < gradient_bytes] or [BUCKET_BYTES]


def _route(world: World, groups: Groups | None, way: ExchangeWay) -> Route:
    if way.is_hierarchical and groups:
        return ThroughLeaders(groups, way)
    return Flat(world, way)


def _seconds(route: Route, world: World, sizes: Sequence[int]) -> dict[int, float]:
    """The seconds of an exchange of each size on the slowest rank, the best of three. Collective."""
    seconds: dict[int, float] = {}
    for nbytes in sizes:
        if seconds and max(seconds.values()) > _LONG_SECONDS:
            break
        gradients = torch.zeros(nbytes // 4, device=world.device)
        seconds[nbytes] = min(_once(route, world, gradients) for _ in range(_REPEATS))
    return seconds


def _once(route: Route, world: World, gradients: torch.Tensor) -> float:
    world.sum([0.0])  # all begin together
    began = time.perf_counter()
    pipeline = Pipeline(route)
    pipeline.send(gradients)
    pipeline.flush()
    if world.device.type == "cuda":
        torch.cuda.synchronize()
    return world.most([time.perf_counter() - began])[0]  # the same on every rank, and so is what follows


def _with_flows(tried: Tried, world: World, groups: Groups) -> Tried:
    """The same kind of exchange with enough connections between two hosts to fill the link. Collective."""
    if not tried.way.is_hierarchical:
        return tried
    largest = max(tried.seconds)
    for flows in _FLOWS[1:]:
        way = tried.way.model_copy(update={"flows": flows})
        seconds = _seconds(ThroughLeaders(groups, way), world, [largest])[largest]
        if seconds > (1 - 2 * _WORTH) * tried.seconds[largest]:
            break
        tried = Tried(
            way, {size: took * seconds / tried.seconds[largest] for size, took in tried.seconds.items()}
        )
    return tried
