"""The facts of another program's run as a whole: read, worked out or estimated, each with its origin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dragoman.cost.step import bytes_per_host
from dragoman.figures import best
from dragoman.foreign import computing, tensorboard
from dragoman.foreign.log_facts import ASSUMED, ESTIMATED, GIVEN, Gathered
from dragoman.measure.records import RunFacts, Table

BUSY_SHARE = 0.5  # of the busiest tenth's rate: rows above it are training, the others its start and end
PER_MACHINE = (1, 2, 4, 8)  # usual numbers of GPUs in a rented machine
# Bytes per parameter: frameworks exchange gradients in fp32, even in mixed precision, unless a log says
# otherwise.
GRADIENT_BYTES = 4


def run_facts(run: Gathered, name: str, intervals: Table, per_row: int) -> RunFacts:
    """The run's facts for its records. `per_row` is the number of steps that a row stands for."""
    _gradients(run)
    timed = intervals["seconds"][np.isfinite(intervals["seconds"])]
    step = float(timed.mean()) if len(timed) else run.value("given_step_seconds")
    ranks, machines = run.value("ranks"), run.value("machines")
    if machines is None and ranks == 1:
        machines = 1
    if ranks is None and machines and not run.source:
        ranks = _usual_ranks(run, machines, step)
    hosts = run.value("hosts") or [f"machine {number}" for number in range(1, (machines or 0) + 1)]
    rank_hosts = run.value("rank_hosts") or _placed(ranks, machines)
    _step_settings(run)
    estimate = computing.estimate(run)
    interval = intervals["steps"][np.isfinite(intervals["seconds"])]
    facts = RunFacts(
        name=name,
        source=run.source or "given facts",
        ranks=ranks,
        hosts=hosts,
        rank_hosts=rank_hosts,
        device=run.value("device"),
        parameters=run.value("parameters"),
        gradient_bytes=run.value("gradient_bytes"),
        gradient_interfaces=run.value("gradient_interfaces") or [],
        flops_per_step=run.value("flops_per_step"),
        settings=run.settings,
        data_card=_card(run),
        checkpoint_files=run.value("checkpoint_files") or [],
        ordered_link_bits_per_second=run.value("link_bits_per_second"),
        computing_seconds=(estimate.low, estimate.high) if estimate else None,
        computing_inputs=estimate.inputs if estimate else "",
        step_interval=int(np.median(interval)) if len(interval) else None,
        seconds_include_evaluations=bool(run.value("seconds_include_evaluations")),
        one_mean=run.value("one_mean") or "",
        end_is_known=run.source not in ("", tensorboard.NAME) or any(start.reason for start in run.starts),
        steps_per_row=per_row,
    )
    _traffic(run, facts, step)
    facts.nic_bytes_per_second = run.value("nic_bytes_per_second")
    facts.origins = {name: origin for name, (_, origin) in run.facts.items() if name in ORIGINS}
    return facts


# The facts whose origin the report shows.
ORIGINS = (
    "ranks", "machines", "device", "parameters", "gradient_bytes", "precision", "pairs_per_rank",
    "link_bits_per_second", "nic_bytes_per_second", "gpu_meters", "given_steps", "given_step_seconds",
    "wall_seconds", "computing_inputs",
)  # fmt: skip


def _placed(ranks: int | None, machines: int | None) -> list[int]:
    """The machine of each rank. Launchers fill one machine before the next."""
    if not ranks or not machines:
        return []
    return [rank * machines // ranks for rank in range(ranks)]


def _usual_ranks(run: Gathered, machines: int, step: float | None) -> int:
    """Guesses the number of ranks: the one per machine that fits a network reading best, else one each.

    One rank per machine sends the least, so the guess cannot invent a network bottleneck.
    """
    gradients, rate = run.value("gradient_bytes"), run.value("nic_bytes_per_second")
    each, origin = 1, ASSUMED
    if machines > 1 and gradients and rate and step:
        origin = ESTIMATED
        sent = {n: bytes_per_host(_placed(n * machines, machines), gradients) for n in PER_MACHINE}
        each = min(PER_MACHINE, key=lambda n: abs(math.log((sent[n] or math.nan) / (rate * step))))
    run.fact("ranks", each * machines, origin)
    return each * machines


def _gradients(run: Gathered) -> None:
    if run.value("gradient_bytes") is None and run.value("parameters"):
        each = run.value("gradient_bytes_per_parameter") or GRADIENT_BYTES
        run.fact("gradient_bytes", each * run.value("parameters"), ESTIMATED)


def _step_settings(run: Gathered) -> None:
    """Describes the size of a step with our own settings."""
    pairs, ranks = run.value("pairs_per_rank"), run.value("ranks")
    if pairs and ranks:
        each = int(pairs / (run.value("microbatches_per_rank") or 1))
        run.settings |= {"data.unit": "pairs", "data.microbatch": each, "data.step": int(pairs * ranks)}


def _card(run: Gathered) -> dict[str, Any]:
    lines = run.value("training_lines")
    return {"parts": {"train": {"pairs": lines}}} if lines else {}


def _traffic(run: Gathered, facts: RunFacts, step: float | None) -> None:
    """Adds a network rate for runs whose network counters are missing or not recorded during the steps."""
    moved = (
        bytes_per_host(facts.rank_hosts, facts.gradient_bytes)
        if facts.rank_hosts and facts.gradient_bytes
        else None
    )
    if run.nics and run.origin("nic_bytes_per_second") != GIVEN:
        run.fact("nic_bytes_per_second", _plateau(run))
    written = run.value("nic_readings")
    if written and moved and step and run.value("nic_bytes_per_second") is None:
        meaning = best(written, moved / step)[1]
        if meaning:
            origin = run.origin("nic_readings") if meaning.as_written else ASSUMED
            run.fact("nic_bytes_per_second", meaning.bytes_per_second, origin)


def _plateau(run: Gathered) -> float | None:
    """The rate of the busiest interface while busy: the median of rows above half of its busiest tenth."""
    by_interface: dict[tuple[str, str], list[float]] = {}
    for row in run.nics:
        if row["interface"] != "lo" and row["sent_bytes"] == row["sent_bytes"]:
            by_interface.setdefault((row["host"], row["interface"]), []).append(row["sent_bytes"])
    if not by_interface:
        return None
    rates = np.array(max(by_interface.values(), key=sum))
    busy = rates[rates > BUSY_SHARE * np.percentile(rates, 90)]
    return float(np.median(busy)) if len(busy) else None
