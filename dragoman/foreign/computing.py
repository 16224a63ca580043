"""Estimates the computing time of a step with the cost model, from a GPU's best to its worst pace."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.cost import flops, gpu_types
from dragoman.foreign.log_facts import ASSUMED, ESTIMATED, Gathered
from dragoman.plan.work import USUAL_TOKENS

# Pairs per rank and step, assumed if facts were given without the batch: published runs have 1,500 to 8,000
# tokens per GPU, and some half as many again.
USUAL_PAIRS = (50.0, 400.0)


@dataclass(frozen=True)
class Computing:
    low: float  # seconds of forward and backward
    high: float
    inputs: str  # the inputs of the estimate, in words


def estimate(run: Gathered) -> Computing | None:
    """The computing time of one rank's step; None if the batch or the model is not known."""
    pairs, parameters = _pairs(run), run.value("parameters")
    if not pairs or not parameters:
        return None
    work, what = _flops(run, pairs, parameters)
    kinds, which = _gpus(run)
    precision = run.value("precision")
    rates = [kind.reached_flops(precision) for kind in kinds]
    # Every rank waits for the slowest: with several GPU types in one run, the slower type sets the best case.
    slow, fast = min(rate[0] for rate in rates), min(rate[1] for rate in rates)
    if not run.value("device") or run.origin("device") == ASSUMED:
        fast = max(rate[1] for rate in rates)
    shares = f"{gpu_types.REACHED[0]:.0%} of its fp32 peak at worst"
    inputs = f"{what} on {which}, {shares}, {precision or 'precision unknown'}"
    run.fact("computing_inputs", inputs, ESTIMATED)
    return Computing(work[0] / fast, work[1] / slow, inputs)


def _pairs(run: Gathered) -> tuple[float, float] | None:
    """The fewest and most pairs of one rank's step. If a log does not name its batch, it may be any size."""
    if pairs := run.value("pairs_per_rank"):
        return pairs, pairs
    if run.source:
        return None
    run.fact("usual_pairs_per_rank", USUAL_PAIRS, ASSUMED)
    return USUAL_PAIRS


def _flops(run: Gathered, pairs: tuple[float, float], parameters: float) -> tuple[tuple[float, float], str]:
    """The least and most FLOPs of one rank's step, with their inputs in words."""
    counted = [run.value(f"{side}_tokens_per_pair") for side in ("source", "target")]
    ends = (counted, counted) if all(counted) else ([USUAL_TOKENS[0]] * 2, [USUAL_TOKENS[1]] * 2)
    how = f"{counted[0]:.0f} + {counted[1]:.0f} tokens" if all(counted) else "25 to 32 tokens a side (usual)"
    low, high = (
        _one(run, each, parameters, source, target)
        for each, (source, target) in zip(pairs, ends, strict=True)
    )
    many = f"{pairs[0]:,.0f}" if pairs[0] == pairs[1] else f"{pairs[0]:,.0f} to {pairs[1]:,.0f} (usual)"
    return (low, high), f"{many} pairs of {how} per rank"


def _one(run: Gathered, pairs: float, parameters: float, source: float, target: float) -> float:
    try:
        shape = flops.Shape.of(run.settings)
        vocabulary = _vocabulary(shape, parameters)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):  # the shape is missing or impossible
        # 2 per weight and token forward, twice that backward; each token passes about half of the weights.
        return 6 * parameters * pairs * (source + target) / 2
    return flops.step(shape, vocabulary, pairs * source, pairs * target, pairs)


def _vocabulary(shape: flops.Shape, parameters: float) -> int:
    """The vocabulary size. Parameters that are not in the layers are the embedding, one for all its uses."""
    square, feedforward = shape.width**2, 2 * shape.width * shape.feedforward
    layers = shape.encoder_layers * (4 * square + feedforward) + shape.decoder_layers * (
        8 * square + feedforward
    )
    return max(0, round((parameters - layers) / shape.width))


def _gpus(run: Gathered) -> tuple[list[gpu_types.GpuType], str]:
    named = gpu_types.named(run.value("device"))
    if named:
        taken = " (assumed, as in the other rows)" if run.origin("device") == ASSUMED else ""
        return named, " and ".join(kind.name for kind in named) + taken
    return gpu_types.rented(), f"an unnamed GPU ({', '.join(gpu_types.RENTED)})"
