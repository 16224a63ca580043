"""Runs with known causes, drawn at random over the whole range, and records of them with pieces missing.

A seed is a case: `draw(seed)` is the same run every time, so that a failing seed can be looked at by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from dragoman.explain.outages import HARMLESS_KINDS, SIDE_KINDS
from dragoman.faults import FaultKind
from dragoman.measure.records import Records, RunFacts
from tests.explain import build
from tests.explain.build import Run
from tests.explain.faulty import Lost

Curve = Callable[[np.ndarray], np.ndarray]
TABLES = ("steps", "windows", "nics", "hosts", "gpus", "lens")
ROWS = ("attempts", "evaluations", "events", "probes")
SCHEDULES = ("transformer", "inverse_sqrt", "linear", "cosine", "constant")
MOST_ROWS = 120  # of a counter: longer runs are counted by the minute or coarser, as the recorder does


def draw(seed: int) -> Run:
    """1 to 64 ranks on 1 to 32 hosts, steps of 5 ms to 60 s, any mix of causes, any way of exchanging."""
    random = np.random.default_rng(seed)

    def chance(share: float) -> bool:
        return bool(random.random() < share)

    def amount(share: float) -> float:
        """A cause takes from nothing worth telling to several times what computing takes."""
        return computing * float(np.exp(random.uniform(np.log(0.02), np.log(3)))) * chance(share)

    ranks = int(
        random.choice([1, 2, 3, 4, 6, 8, 16, 24, 64], p=[0.1, 0.2, 0.1, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05])
    )
    hosts = 1 if chance(0.2) else int(np.exp(random.uniform(0, np.log(min(32, ranks) + 1 - 1e-9))))
    computing = float(np.exp(random.uniform(np.log(0.003), np.log(30))))
    backward = random.uniform(0.5, 0.7)
    way = _way(random, ranks, hosts)
    often = int(random.choice([3, 20, 50, 100, 1000]))
    run = {
        "seed": seed,
        "steps": int(random.choice([5, 30, 60, 100, 200, 400], p=[0.05, 0.15, 0.2, 0.3, 0.2, 0.1])),
        "ranks": ranks,
        "hosts": hosts,
        "forward": computing * (0.95 - backward),
        "backward": computing * backward,
        "optimizer": computing * 0.05,
        "data": computing * 0.01 + amount(0.2),
        "exchange": computing * 0.01 + amount(0.5) if ranks > 1 else 0.0,
        "jitter": random.uniform(0.0, 0.04),
        "slow_rank": int(random.integers(ranks)) if ranks > 1 and chance(0.3) else None,
        "slow_by": float(np.exp(random.uniform(0, np.log(4)))) if chance(0.6) else 1.0,
        "slow_data": amount(0.5),
        "checkpoint_every": often,
        "checkpoint_seconds": amount(0.5) * min(often, 20),
        "evaluate_every": int(random.choice([5, 10, 20, 50])),
        "evaluation_seconds": computing * random.uniform(0.0, 20),
        "link_bits_per_second": float(random.choice([1e8, 1e9, 10e9, 100e9])),
        "gpu_watts": float(random.uniform(30, 240)) if chance(0.3) else None,
        "schedule": str(random.choice(SCHEDULES)),
        "warmup_steps": int(random.choice([1, 10, 100, 1000])),
        "wanted_steps": 2_000 if chance(0.2) else None,
        "reason": None
        if chance(0.2)
        else str(random.choice(["finished", "no improvement", "stopped by a signal"])),
        **way,
        **_learning(random),
    }
    made = Run(**run)
    step_seconds = sum(float(value.mean()) for value in build.phase_seconds(made).values())
    length = made.steps * step_seconds + sum(made.steps // every * each for every, each in _pauses(made))
    spans = [span for span in (1.0, 60.0, 600.0, 3600.0) if length / span <= MOST_ROWS] or [3600.0]
    extra: dict[str, Any] = {"nic_span": spans[0]}
    extra["peak_flops_per_second"] = build.FLOPS / step_seconds / random.uniform(0.05, 0.95)
    if chance(0.15) and made.wire_bytes:
        extra["other_bytes_per_second"] = (
            made.wire_bytes * made.exchanges.mean() / step_seconds * random.uniform(0.5, 3)
        )
    if chance(0.6):  # with a few per cent of headers, at the edges of steps
        other = extra.get("other_bytes_per_second", 0.0) * step_seconds
        extra["counted_bytes"] = made.wire_bytes * float(made.exchanges.mean()) * 1.05 + other
    elif chance(0.2):
        extra["recorded_interface"] = "eth0"  # they leave by eth1
    return replace(made, **extra)


def losses(run: Run, seed: int) -> list[Lost]:
    """What went wrong in some of the runs: up to six faults of any kind that ends an attempt, and joins."""
    random = np.random.default_rng([seed, 1])
    if random.random() < 0.7 or run.steps < 30:
        return []
    kinds = [kind for kind in get_args(FaultKind) if kind not in (*HARMLESS_KINDS, *SIDE_KINDS)]
    steps = np.unique(random.integers(10, run.steps, int(random.integers(1, 7)))).tolist()
    found = []
    for before, step in zip([1, *steps], steps, strict=False):
        host = int(random.integers(run.hosts))
        ranks = [rank for rank, place in enumerate(run.rank_hosts) if place == host]
        found.append(
            Lost(
                step=step,
                still_seconds=float(1 + np.exp(random.uniform(-1, 6))),
                repeated=int(min(random.choice([0, 0, 1, 8, 50]), step - before - 1)) if step > before else 0,
                kind=kinds[int(random.integers(len(kinds)))],
                host=f"host{host}",
                rank=int(random.choice(ranks)) if random.random() < 0.7 else None,
                detail=str(random.choice(["", "SIGKILL", "SIGTERM", "no sign of life for 5 s"])),
                joins=f"host{host}" if random.random() < 0.2 else "",
            )
        )
    return found


def _pauses(run: Run) -> list[tuple[int, float]]:
    return [
        (run.evaluate_every, run.evaluation_seconds),
        (run.checkpoint_every, run.checkpoint_seconds),
    ]


def _way(random: np.random.Generator, ranks: int, hosts: int) -> dict[str, Any]:
    """How gradients meet, and how ranks stand on hosts."""
    way: dict[str, Any] = {"wire": str(random.choice(["fp32", "bf16"]))}
    if ranks > hosts > 1:
        way["shape"] = str(random.choice(["allreduce", "hierarchical"]))
        way["in_turns"] = way["shape"] == "allreduce" and ranks % hosts == 0 and bool(random.random() < 0.2)
    if ranks > 1 and random.random() < 0.2:
        way |= {"mode": "diloco", "exchange_every": int(random.choice([4, 16, 64]))}
    return way


def _learning(random: np.random.Generator) -> dict[str, Curve]:
    """Losses and BLEU of one of the things that may come of a training, or nothing scored."""
    low, pace, step = random.uniform(1, 4), random.uniform(20, 200), random.uniform(0.0005, 0.01)
    # Fitting curves costs more than all else together: one case in four has any.
    kinds = ["learns", "overfits", "diverges", "no sample", "nothing"]
    kind = random.choice(kinds, p=[0.08, 0.06, 0.06, 0.05, 0.75])
    falls: Curve = lambda s: low + 5 * np.exp(-s / pace)  # noqa: E731
    if kind == "nothing":
        return {}
    if kind == "overfits":
        return {"eval_loss": lambda s: falls(s) + step * s, "sample_loss": falls}
    if kind == "diverges":
        return {
            "eval_loss": lambda s: falls(s) + (s / pace) ** 3,
            "loss": lambda s: falls(s) + (s / pace) ** 3,
        }
    curves: dict[str, Curve] = {"eval_loss": falls, "bleu": lambda s: 30 - 29 * np.exp(-s / pace)}
    return curves if kind == "no sample" else {**curves, "sample_loss": lambda s: falls(s) - 0.1}


def with_a_true_link(run: Run) -> Run:
    """The same run without other waits, on a link whose rate follows from the bytes, some of them hidden."""
    random = np.random.default_rng(run.seed)
    hidden = random.uniform(0, 2 / 3) * (run.forward + run.backward)
    plain = replace(run, slow_rank=None, data=0.0, jitter=0.0, optimizer=0.0, exchange_jitter=0.0)
    plain = replace(plain, mode="allreduce", exchange_every=1, other_bytes_per_second=0.0, counted_bytes=None)
    # A GPU that computes draws most of its power; where it is neither nor, the meters say nothing here.
    share = 1 - run.exchange / (run.exchange + run.forward + run.backward)
    watts = 60.0 if share < 0.3 else 220.0 if share > 0.75 else None
    plain = replace(plain, gpu_watts=watts if random.random() < 0.5 else None)
    return replace(plain, link_bits_per_second=8 * run.wire_bytes / max(1e-9, run.exchange + hidden))


def bare(run: Run) -> Records:
    """Its records as a log of another program has them: step times, and some of bytes, link, GPUs, cost."""
    random, whole = np.random.default_rng(run.seed), build.records(**vars(run))
    computing = run.forward + run.backward
    facts: dict[str, Any] = {"source": "OpenSeq2Seq", "gradient_bytes": run.gradient_bytes}
    if random.random() < 0.6:
        bounds = computing * random.uniform(0.4, 1.0), computing * random.uniform(1.0, 2.5)
        facts |= {"computing_seconds": bounds, "computing_inputs": "what the cost model was given"}
    probes = [probe for probe in whole.probes if probe.kind == "link"] if random.random() < 0.6 else []
    if not probes and random.random() < 0.6:
        facts["ordered_link_bits_per_second"] = run.link_bits_per_second
    steps = {name: whole.steps[name] for name in ("step", "seconds", "ended", "loss", "attempt")}
    return Records(
        whole.facts.model_copy(update=facts), whole.attempts, steps=steps, probes=probes, gpus=whole.gpus
    )


def with_holes(records: Records, seed: int) -> Records:
    """The same run where some tables, columns, values and facts were never recorded."""
    random = np.random.default_rng(seed)
    kept: dict[str, Any] = {}
    for name in TABLES:
        table = {column: values for column, values in getattr(records, name).items() if random.random() < 0.9}
        kept[name] = {} if random.random() < 0.15 else {c: _pierced(v, random) for c, v in table.items()}
    for name in ROWS:
        rows = getattr(records, name)
        kept[name] = [] if random.random() < 0.15 else [row for row in rows if random.random() < 0.95]
    if random.random() < 0.2:
        kept["attempts"] = []
    other = np.random.default_rng([seed, 2])  # so that runs without faults are as before
    kept["faults"] = [fault for fault in records.faults if other.random() < 0.8]
    kept["repeated"] = {name: _pierced(values, other) for name, values in records.repeated.items()}
    return Records(_facts(records.facts, random), **kept)


def _pierced(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    if values.dtype.kind != "f" or random.random() < 0.8:
        return values
    return np.where(random.random(values.shape) < 0.1, np.nan, values)


def _facts(facts: RunFacts, random: np.random.Generator) -> RunFacts:
    """Each fact may be absent; so may each setting, and each part of the data set's card."""
    known = {name: value for name, value in facts.model_dump().items() if random.random() < 0.9}
    for name in ("settings", "data_card"):
        known[name] = {k: v for k, v in known.get(name, {}).items() if random.random() < 0.9}
    return RunFacts(**known)
