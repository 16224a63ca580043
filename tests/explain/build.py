"""Records of runs that never were, with a known cause for everything in them.

Each rank's phases are drawn step by step; the step ends when the slowest rank has computed and the exchange
has run. What the recorder would have seen follows from that: statistics over ranks, windows, counters of
interfaces, the lens, events and probes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dragoman.cost.step import WIRE_BYTES, bytes_per_host
from dragoman.exchange_way import ExchangeWay
from dragoman.explain.placement import DECISIVE
from dragoman.measure.records import PHASES, Attempt, EvaluationRow, Event, Probe, Records, RunFacts, Table

BEGAN = 1_700_000_000.0
WINDOW = 50
PARAMETERS = 60_880_896
RATE = 2.0
FLOPS = 2e12  # of a step


@dataclass(frozen=True)
class Run:
    """Seconds are those of one step on a rank that is not slow."""

    steps: int = 400
    ranks: int = 4
    hosts: int = 2
    data: float = 0.01
    forward: float = 0.3
    backward: float = 0.6
    exchange: float = 0.02  # exposed, of the network itself
    optimizer: float = 0.05
    jitter: float = 0.02  # of computing, on each rank and step
    exchange_jitter: float = 0.05
    slow_rank: int | None = None
    slow_by: float = 1.0  # times, in forward and backward
    slow_data: float = 0.0  # more seconds of waiting for data, on the slow rank only
    evaluate_every: int = 50
    evaluation_seconds: float = 2.0
    checkpoint_every: int = 100
    checkpoint_seconds: float = 0.5
    link_bits_per_second: float = 1e10
    other_bytes_per_second: float = 0.0  # of another program, on the link of every host
    interface: str = "eth1"  # carries the gradients
    recorded_interface: str = "eth1"  # is believed to
    counted_bytes: float | None = None  # per step and host, at the edges of steps; None: an older run
    counted_cores: Sequence[float] | None = None  # of the CPU time that each rank wanted, what it got
    nic_span: float = 1.0  # seconds that a row of the counters stands for
    mode: str = "allreduce"  # or sharded, or diloco
    exchange_every: int = 1  # steps, for DiLoCo
    shape: str = "allreduce"  # or hierarchical
    wire: str = "fp32"  # or bf16
    in_turns: bool = False  # ranks dealt out to hosts one by one, not in blocks
    schedule: str = "transformer"
    warmup_steps: int = 100
    probes: bool = True
    peak_flops_per_second: float = 4e12
    gpu_watts: float | None = None  # of 250
    reason: str | None = "finished"
    wanted_steps: int | None = None
    seed: int = 1
    eval_loss: Callable[[np.ndarray], np.ndarray] | None = None
    sample_loss: Callable[[np.ndarray], np.ndarray] | None = None
    bleu: Callable[[np.ndarray], np.ndarray] | None = None
    loss: Callable[[np.ndarray], np.ndarray] | None = None  # of the steps themselves
    loss_noise: float = 0.003
    bleu_noise: float = 0.15
    changes: dict[str, Any] = field(default_factory=dict)  # of the facts

    @property
    def rank_hosts(self) -> list[int]:
        blocks = [rank * self.hosts // self.ranks for rank in range(self.ranks)]
        return [rank % self.hosts for rank in range(self.ranks)] if self.in_turns else blocks

    @property
    def gradient_bytes(self) -> int:
        return WIRE_BYTES[self.wire] * PARAMETERS

    @property
    def wire_bytes(self) -> float:
        """Of one exchange."""
        return bytes_per_host(self.rank_hosts, self.gradient_bytes, self.shape == "hierarchical")

    @property
    def exchanges(self) -> np.ndarray:
        """1 for a step that ends with an exchange, else 0."""
        way = ExchangeWay(mode="diloco", steps_per_round=self.exchange_every)
        ends = np.array([float(way.ends_round(step)) for step in range(1, self.steps + 1)])
        ends[-1] = max(ends[-1], self.reason is not None)  # the last round ends where the run stops
        return ends


def records(**changes: Any) -> Records:
    """The records of a run like `Run()`, but for the changes."""
    run = replace(Run(), **changes)
    random = np.random.default_rng(run.seed)
    phases = _phases(run, random)
    steps = _steps(run, phases, random)
    events, evaluations = _events(run, steps, random)
    return Records(
        _facts(run),
        [_attempt(run, steps)],
        steps=steps,
        windows=_windows(run, phases),
        evaluations=evaluations,
        events=events,
        probes=_probes(run, steps) if run.probes else [],
        nics=_nics(run, steps),
        hosts={
            "host": np.zeros(1),
            "time": np.array([BEGAN]),
            "span": np.ones(1),
            "cpu_share": np.array([0.9]),
        },
        gpus=_gpus(run, steps),
        lens=_lens(run, steps, phases),
    )


def in_turn(first: Run, then: Run) -> Records:
    """A run that was stopped after its first steps and went on in another placement."""
    before, after = records(**vars(first)), records(**vars(then))
    gap = float(before.steps["ended"][-1]) + 60 - BEGAN
    later = {"step": first.steps, "first_step": first.steps, "last_step": first.steps, "attempt": 1}
    later |= {"time": gap, "ended": gap, "started": gap}

    def moved(table: Table) -> Table:
        return {
            name: values + later.get(name, 0) if name in later else values for name, values in table.items()
        }

    def moved_row(row: Any) -> Any:
        return row.model_copy(
            update={name: getattr(row, name) + by for name, by in later.items() if getattr(row, name, None)}
        )

    tables = ("steps", "windows", "nics", "hosts", "gpus", "lens")
    joined = {
        name: {
            column: np.concatenate((values, moved(getattr(after, name))[column]))
            for column, values in getattr(before, name).items()
        }
        for name in tables
    }
    attempts = [
        *before.attempts,
        *(moved_row(attempt).model_copy(update={"number": 2}) for attempt in after.attempts),
    ]
    rows = {
        name: [*getattr(before, name), *map(moved_row, getattr(after, name))]
        for name in ("evaluations", "events", "probes")
    }
    return Records(after.facts, attempts, **joined, **rows)


def phase_seconds(run: Run) -> dict[str, np.ndarray]:
    """What every rank spent on each step of `records(**vars(run))`, ranks x steps."""
    return _phases(run, np.random.default_rng(run.seed))


def _phases(run: Run, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Seconds, ranks x steps."""
    shape = (run.ranks, run.steps)
    slow = np.ones(shape)
    late = np.zeros(shape)
    if run.slow_rank is not None:
        slow[run.slow_rank] = run.slow_by
        late[run.slow_rank] = run.slow_data
    data = run.data * random.uniform(0.9, 1.1, shape) + late
    forward, backward = (
        seconds * slow * (1 + run.jitter * random.uniform(-1, 1, shape))
        for seconds in (run.forward, run.backward)
    )
    optimizer = np.full(shape, run.optimizer)
    wire = run.exchange * (1 + run.exchange_jitter * random.uniform(-1, 1, run.steps)) * run.exchanges
    busy = data + forward + backward
    exchange = busy.max(0) + wire - busy
    return dict(zip(PHASES, (data, forward, backward, exchange, optimizer), strict=True))


def _steps(run: Run, phases: dict[str, np.ndarray], random: np.random.Generator) -> Table:
    number = np.arange(1, run.steps + 1)
    seconds = np.stack(list(phases.values())).sum(0)[0]  # the same on every rank
    pauses = np.zeros(run.steps)
    pauses[number % run.evaluate_every == 0] += run.evaluation_seconds
    pauses[number % run.checkpoint_every == 0] += run.checkpoint_seconds
    before = np.concatenate(([0.0], np.cumsum(pauses)[:-1]))
    table = {
        "step": number,
        "attempt": np.ones(run.steps),
        "ended": BEGAN + 10 + np.cumsum(seconds) + before,
        "seconds": seconds,
        "loss": run.loss(number) if run.loss else 9 * number**-0.2,
        "target_tokens": np.full(run.steps, 24_000.0),
        "pairs": np.full(run.steps, 900.0),
        "learning_rate": _rates(run, number),
        "gradient_norm": random.uniform(0.5, 1.0, run.steps),
        "is_bad": np.zeros(run.steps),
    }
    for name, values in phases.items():
        table[f"{name}_mean"], table[f"{name}_least"] = values.mean(0), values.min(0)
        table[f"{name}_most"], table[f"{name}_slowest"] = values.max(0), values.argmax(0).astype(float)
    return table


def _rates(run: Run, step: np.ndarray) -> np.ndarray:
    """Written down once more, as a report is read: not by the code under test."""
    first = np.minimum(1.0, step / run.warmup_steps)
    share = np.clip(
        (step - run.warmup_steps) / max(1, (run.wanted_steps or run.steps) - run.warmup_steps), 0, 1
    )
    return (
        RATE
        * {
            "transformer": 512**-0.5 * np.minimum(step * run.warmup_steps**-1.5, step**-0.5),
            "inverse_sqrt": np.minimum(first, np.sqrt(run.warmup_steps / step)),
            "linear": first * (1 - share),
            "cosine": first * (1 + np.cos(np.pi * share)) / 2,
            "constant": first,
        }[run.schedule]
    )


def _windows(run: Run, phases: dict[str, np.ndarray]) -> Table:
    rows = [(first, rank) for first in range(0, run.steps, WINDOW) for rank in range(run.ranks)]
    table = {
        "first_step": np.array([first + 1 for first, _ in rows], dtype=float),
        "last_step": np.array([min(first + WINDOW, run.steps) for first, _ in rows], dtype=float),
        "attempt": np.ones(len(rows)),
        "rank": np.array([rank for _, rank in rows], dtype=float),
    }
    for name, values in phases.items():
        table[name] = np.array([values[rank, first : first + WINDOW].sum() for first, rank in rows])
    if run.counted_bytes is not None:
        steps = table["last_step"] - table["first_step"] + 1
        is_leader = np.array([run.rank_hosts.index(run.rank_hosts[rank]) == rank for _, rank in rows])
        table["sent_bytes"] = np.where(is_leader, steps * run.counted_bytes, np.nan)
        table["received_bytes"] = table["sent_bytes"]
    if run.counted_cores is not None:
        wanted = sum(table[name] for name in ("data", "forward", "backward", "optimizer"))
        share = np.array([run.counted_cores[rank] for _, rank in rows])
        table |= {"sampled": wanted, "cpu": wanted * share, "queued": wanted * (1 - share)}
    return table


def _events(run: Run, steps: Table, random: np.random.Generator) -> tuple[list[Event], list[EvaluationRow]]:
    events = [Event(time=BEGAN, attempt=1, step=0, kind="startup", seconds=10.0)]
    evaluations = []
    for step, ended in zip(steps["step"].tolist(), steps["ended"].tolist(), strict=True):
        at = {"time": ended, "attempt": 1, "step": step}
        if step % run.evaluate_every == 0:
            events.append(Event(kind="evaluation", seconds=run.evaluation_seconds, **at))
            x = np.array(float(step))
            scores = {
                name: float(curve(x)) + noise * random.standard_normal()
                for name, curve, noise in (
                    ("eval_loss", run.eval_loss, run.loss_noise),
                    ("train_sample_loss", run.sample_loss, run.loss_noise),
                    ("bleu", run.bleu, run.bleu_noise),
                )
                if curve
            }
            evaluations.append(EvaluationRow(seconds=run.evaluation_seconds, **at, **scores))
        if step % run.checkpoint_every == 0:
            at["time"] += run.evaluation_seconds * (step % run.evaluate_every == 0)  # one after the other
            events.append(Event(kind="checkpoint", seconds=run.checkpoint_seconds, **at))
    return events, evaluations


def _probes(run: Run, steps: Table) -> list[Probe]:
    computing = (run.forward + run.backward) * (run.slow_by if run.slow_rank is not None else 1)
    common = {"attempt": 1, "step": 10, "time": BEGAN + 5, "seconds": 1.0}
    per_step = run.exchange * float(run.exchanges.mean())  # one serves all steps of a round
    exchange = {"step_seconds": computing + per_step, "step_seconds_without_exchange": computing}
    link = {"bits_per_second": run.link_bits_per_second, "round_trip_seconds": 2e-4}
    found = [Probe(kind="exchange", numbers=exchange, **common) for _ in range(3 if run.ranks > 1 else 0)]
    found.append(Probe(kind="peak", numbers={"flops_per_second": run.peak_flops_per_second}, **common))
    return found + ([Probe(kind="link", numbers=link, **common)] if run.hosts > 1 else [])


def _nics(run: Run, steps: Table) -> Table:
    """A row per span, host and interface; gradients leave evenly over each step."""
    ends, span = steps["ended"], run.nic_span
    edges = np.stack((ends - steps["seconds"], ends), 1).ravel()
    so_far = np.concatenate(([0.0], np.cumsum(run.exchanges))) * run.wire_bytes
    sent = np.repeat(so_far, 2)[1:-1]
    times = np.arange(BEGAN, ends[-1] + 3, span)
    gradients = (np.interp(times + span, edges, sent) - np.interp(times, edges, sent)) / span
    carried = {
        "lo": np.full(len(times), 1e3),
        "eth0": np.full(len(times), 5e3),
        "eth1": np.full(len(times), 5e3),
    }
    carried[run.interface] = gradients + run.other_bytes_per_second
    columns: dict[str, list[np.ndarray]] = {"host": [], "time": [], "interface": [], "sent_bytes": []}
    for host in range(run.hosts):
        for name, amounts in carried.items():
            columns["host"].append(np.full(len(times), float(host)))
            columns["time"].append(times)
            columns["interface"].append(np.full(len(times), name))
            columns["sent_bytes"].append(amounts)
    table = {name: np.concatenate(parts) for name, parts in columns.items()}
    return {**table, "span": np.full(len(table["time"]), span), "received_bytes": table["sent_bytes"]}


def _gpus(run: Run, steps: Table) -> Table | None:
    if run.gpu_watts is None:
        return None
    times = np.arange(BEGAN + 10, steps["ended"][-1])
    table = {"host": 0.0, "gpu": 0.0, "span": 1.0, "utilisation": 1.0, "power_watts": run.gpu_watts}
    table |= {"power_limit_watts": 250.0, "memory_bytes": 12e9}
    return {"time": times, **{name: np.full(len(times), value) for name, value in table.items()}}


def _lens(run: Run, steps: Table, phases: dict[str, np.ndarray]) -> Table:
    """Five steps at 50 samples each; all bytes flow while rank 0 waits in the exchange."""
    rows, sent, wire_bytes = [], 0.0, run.wire_bytes
    for index in range(min(20, run.steps), min(25, run.steps)):
        lengths = np.array([phases[name][0, index] for name in PHASES])
        borders = np.concatenate(([0.0], np.cumsum(lengths)))
        start = steps["ended"][index] - steps["seconds"][index]
        at = np.linspace(0, borders[-1], 50, endpoint=False)
        phase = np.searchsorted(borders, at, side="right") - 1.0
        bytes_so_far = sent + np.interp(at, borders[3:5], [0.0, wire_bytes])
        step = np.full_like(at, index + 1)
        rows.append(np.stack((np.zeros_like(at), start + at, bytes_so_far, bytes_so_far, step, phase)))
        sent += wire_bytes
    names = ("host", "time", "sent_bytes", "received_bytes", "step", "phase")
    columns = np.concatenate(rows, axis=1) if rows else np.empty((len(names), 0))
    return dict(zip(names, columns, strict=True))


def _attempt(run: Run, steps: Table) -> Attempt:
    # What comes at the end of the last step comes before the end of the run.
    pauses = run.evaluation_seconds * (run.steps % run.evaluate_every == 0)
    pauses += run.checkpoint_seconds * (run.steps % run.checkpoint_every == 0)
    ended = float(steps["ended"][-1]) + pauses + 3 if run.reason else None
    placement = _facts(run).model_dump(include={*DECISIVE, "gradient_bytes"})
    return Attempt(
        number=1,
        started=BEGAN,
        first_step=1,
        ranks=run.ranks,
        ended=ended,
        reason=run.reason,
        placement=placement,
    )


def _facts(run: Run) -> RunFacts:
    settings = {
        "train.schedule": run.schedule,
        "train.rate": RATE,
        "train.warmup_steps": run.warmup_steps,
        "train.steps": run.wanted_steps or run.steps,
        "model.width": 512,
        "data.step": 25_000,
        "data.microbatch": 3_125,
        "data.unit": "tokens",
        "evaluate.every": run.evaluate_every,
        "checkpoint.every": run.checkpoint_every,
    }
    facts = {
        "ranks": run.ranks,
        "hosts": [f"host{host}" for host in range(run.hosts)],
        "rank_hosts": run.rank_hosts,
        "device": "cpu" if run.gpu_watts is None else "V100",
        "parameters": PARAMETERS,
        "gradient_bytes": run.gradient_bytes,
        "mode": run.mode,
        "exchange": run.shape,
        "wire": run.wire,
        "exchange_every": run.exchange_every,
        "gradient_interfaces": [run.recorded_interface] * run.hosts,
        "flops_per_step": FLOPS,
        "settings": settings,
        "data_card": CARD,
        "checkpoint_files": CHECKPOINT,
    }
    return RunFacts(**(facts | run.changes))


CARD = {
    "source_language": "en",
    "target_language": "de",
    "parts": {
        "train": {
            "pairs": 9_500,
            "source": {"bytes": 600_000, "tokens": 150_000},
            "target": {"bytes": 700_000, "tokens": 160_000},
        }
    },
    "read_pairs": 10_000,
    "dropped": {"too_long": {"pairs": 300, "examples": []}, "duplicate": {"pairs": 200, "examples": []}},
    "vocabulary_pieces": 32_768,
}
CHECKPOINT = [
    {"name": "model.safetensors", "bytes": 4 * PARAMETERS + 9_000, "purpose": "weights"},
    {"name": "optimizer.safetensors", "bytes": 8 * PARAMETERS + 20_000, "purpose": "the optimizer's moments"},
    {"name": "state.json", "bytes": 2_000, "purpose": "step and data position"},
]
NOTHING = Records(RunFacts())


def foreign(steps: int = 200) -> Records:
    """A log of another program: step times and losses, nothing else."""
    number = np.arange(1, steps + 1)
    return Records(
        RunFacts(source="OpenSeq2Seq"),
        steps={"step": number, "seconds": np.full(steps, 1.9), "loss": 9 * number**-0.2},
    )


def evaluated(
    count: int = 20,
    every: int = 1000,
    seed: int = 3,
    loss_noise: float = 0.003,
    bleu_noise: float = 0.15,
    **curves: Callable[[np.ndarray], np.ndarray],
) -> Records:
    """A run of which only evaluations are known. Curves: eval_loss, train_sample_loss, bleu."""
    random = np.random.default_rng(seed)
    steps = every * np.arange(1, count + 1)
    columns = {
        name: curve(steps) + (bleu_noise if name == "bleu" else loss_noise) * random.standard_normal(count)
        for name, curve in curves.items()
    }
    rows = [
        EvaluationRow(
            step=int(step), attempt=1, time=BEGAN + step, **{name: float(v[i]) for name, v in columns.items()}
        )
        for i, step in enumerate(steps)
    ]
    return Records(RunFacts(), evaluations=rows)
