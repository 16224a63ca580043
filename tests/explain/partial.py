"""Records that hold one part of a run, drawn at random: a step time and facts, or losses and scores.

A seed is a case, as in generate.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dragoman.measure.records import (
    Attempt,
    EvaluationRow,
    Event,
    Probe,
    Records,
    RunFacts,
    Table,
)
from tests.explain.build import BEGAN, PARAMETERS

PROGRAMS = ("OpenSeq2Seq", "fairseq", "Hugging Face Trainer", "given facts")
ORDERS = (1e8, 1e9, 10e9, 100e9)
Curve = Callable[[Any], Any]  # of the step
SCHEDULES = ("transformer", "inverse_sqrt", "linear", "cosine", "constant")


def facts_alone(seed: int) -> Records:
    """The step time of another program's run, and some of bytes, link, cost model and GPU meters."""
    random = np.random.default_rng(seed)

    def chance(share: float) -> bool:
        return bool(random.random() < share)

    def between(low: float, high: float) -> float:
        return float(np.exp(random.uniform(np.log(low), np.log(high))))

    hosts = int(random.choice([1, 2, 4], p=[0.1, 0.6, 0.3]))
    ranks = hosts * int(random.choice([1, 2, 4]))
    rank_hosts = [rank * hosts // ranks for rank in range(ranks)]
    moved = 4.0 * PARAMETERS * 2 * (1 - 1 / max(2, ranks))  # what a ring sends
    ordered, seconds = float(random.choice(ORDERS)), between(0.3, 60)
    if chance(0.3):  # a tenth of the link that was ordered is full
        seconds = 8 * moved / (0.1 * ordered * random.uniform(0.6, 1.0))
    elif chance(0.5):  # around the rate that was ordered
        seconds = 8 * moved / ordered * between(0.4, 8)
    facts: dict[str, Any] = {"ordered_link_bits_per_second": ordered if chance(0.8) else None}
    if chance(0.8):
        least = seconds * between(0.02, 1.4)
        facts |= {"computing_seconds": (least, least * random.uniform(1, 3)), "computing_inputs": "a GPU"}
    if chance(0.1):
        facts["nic_bytes_per_second"] = moved / seconds * random.uniform(0.5, 1.5)
    if chance(0.1):
        facts["origins"] = {"ranks": "assumed"}
    return Records(
        RunFacts(
            source=str(random.choice(PROGRAMS)),
            ranks=ranks,
            hosts=[f"node{host}" for host in range(hosts)],
            rank_hosts=rank_hosts if chance(0.9) else [],
            parameters=PARAMETERS if chance(0.9) else None,
            gradient_bytes=4 * PARAMETERS if chance(0.95) else None,
            flops_per_step=2e12 if chance(0.5) else None,
            one_mean="the given time per step",
            **facts,
        ),
        steps={"step": np.arange(1.0, 31), "seconds": np.full(30, seconds)},
        probes=[_link(between(1e8, 1e11))] if chance(0.2) else [],
        gpus=_meters(random) if chance(0.7) else None,
    )


def _link(bits_per_second: float) -> Probe:
    numbers = {"bits_per_second": bits_per_second, "round_trip_seconds": 2e-4}
    return Probe(time=0.0, attempt=1, step=0, kind="link", numbers=numbers)


def _meters(random: np.random.Generator) -> Table:
    """One reading off a screen, or a series."""
    count = int(random.choice([1, 4, 5, 9]))
    table = {"time": np.arange(float(count)), "host": np.zeros(count)}
    table["gpu"] = np.arange(count) % float(random.choice([1, 2]))
    if random.random() < 0.6:
        table["utilisation"] = np.full(count, random.choice([0.3, 0.88, 0.95, 1.0]))
    if random.random() < 0.85:
        watts = random.choice([40, 110, 130, 220]) + random.uniform(-9, 9, count)
        table |= {"power_watts": watts, "power_limit_watts": np.full(count, 250.0)}
    return table


def learning(seed: int) -> Records:
    """Losses, scores and rates of a run, with some of plan, settings, sample, BLEU and how it ended."""
    random = np.random.default_rng(seed)

    def chance(share: float) -> bool:
        return bool(random.random() < share)

    every, count = int(random.choice([50, 200])), int(random.integers(1, 15))
    steps = every * count + int(random.integers(0, every)) * chance(0.3)
    planned = int(steps * random.choice([0.5, 1, 1, 1.3, 1.9, 3, 20]))
    numbers = np.arange(1, steps + 1)
    held_out, sample = _losses(random, steps)
    facts: dict[str, Any] = {"source": str(random.choice(["dragoman", "fairseq"], p=[0.8, 0.2]))}
    settings: dict[str, Any] = {"evaluate.every": every, "model.dropout": 0.1}
    warmup = int(random.choice([0, 1, steps // 5 + 1, 2 * steps]))
    if chance(0.8):
        settings |= {"train.schedule": str(random.choice(SCHEDULES)), "train.rate": 0.001}
        settings |= {"train.warmup_steps": warmup, "train.steps": planned, "model.width": 512}
    if chance(0.3):
        settings["train.label_smoothing"] = 0.1
    table: Table = {"step": numbers, "seconds": np.full(steps, 0.5), "attempt": np.ones(steps)}
    if chance(0.9):
        table["loss"] = sample(numbers) + random.normal(0, 0.1, steps) + 0.2
        if chance(0.1):
            table["loss"] = np.where(numbers > 0.8 * steps, np.inf, table["loss"])
    if chance(0.5):
        peak = np.minimum(1, numbers / max(1, warmup))
        table["learning_rate"] = 0.001 * peak * (1 - numbers / steps if chance(0.5) else 1)
    if chance(0.1):
        table["is_bad"] = (random.random(steps) < 0.6).astype(float)
    events = []
    if chance(0.2):
        ways = [(0, "flat all-reduce in fp32"), (every * (2 * count // 3), "flat all-reduce in bf16")]
        facts["wire"] = "bf16"
        events = [Event(time=BEGAN, attempt=1, step=at, kind="exchange", detail=way) for at, way in ways]
    reasons = ["finished", "finished", "no improvement", "stopped by a signal", "diverged: no number"]
    reason = str(random.choice(reasons))
    ended = BEGAN + steps if chance(0.7) else None
    return Records(
        RunFacts(**facts, settings=settings, data_card={"vocabulary_pieces": 8_000} if chance(0.8) else {}),
        [Attempt(number=1, started=BEGAN, first_step=1, ranks=2, ended=ended, reason=ended and reason)],
        steps=table if chance(0.95) else None,
        evaluations=_evaluations(
            random, range(0 if chance(0.3) else every, steps + 1, every), held_out, sample
        ),
        events=events,
    )


def _losses(random: np.random.Generator, steps: int) -> tuple[Curve, Curve]:
    """Of held-out pairs and of training pairs: they fall on, have fallen, stand still, part or break."""
    low, kind = random.uniform(1, 3), random.choice(["falls", "fell", "stands", "parts", "breaks"])
    pace = steps * random.uniform(0.04, 0.3)
    rise = {"parts": random.uniform(0.05, 1.5), "breaks": 3.0}.get(str(kind), 0.0)

    def fallen(step: Any) -> Any:
        if kind == "stands":
            return low + 0.0 * step
        return low + (5 * (1.0 + step) ** -0.25 if kind == "falls" else 3 * np.exp(-step / pace))

    def back(step: Any) -> Any:
        return fallen(step) + rise * np.maximum(0, step - 0.4 * steps) / steps

    return back, fallen if kind == "parts" else back


def _evaluations(
    random: np.random.Generator, marks: range, held_out: Curve, sample: Curve
) -> list[EvaluationRow]:
    noise = float(random.choice([0.001, 0.01, 0.1]))
    gap, has_sample, has_bleu = random.uniform(0, 0.5), random.random() < 0.6, random.random() < 0.7
    best, sparse, gone = random.choice([0.5, 5, 30]), random.random() < 0.3, random.random() < 0.1
    rows = []
    for index, step in enumerate(marks):
        unlucky = noise * random.standard_normal()
        loss = float(held_out(step)) + unlucky
        row = EvaluationRow(step=step, attempt=1, time=BEGAN + step, eval_loss=loss)
        if has_sample:
            row.train_sample_loss = float(sample(step)) + unlucky - gap * step / max(1, marks[-1])
        if has_bleu and not (sparse and index % 2):
            learnt = float(held_out(marks[-1]) - sample(step))
            row.bleu = max(0.0, float(best * np.exp(learnt)) + random.normal(0, 0.2))
        rows.append(row)
    if rows and gone:
        rows[-1].eval_loss = float("nan")
    return rows
