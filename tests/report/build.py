"""Runs that never were: everything recorded, almost nothing recorded, and very long."""

from __future__ import annotations

from typing import Any

import numpy as np

from dragoman.explain.finding import Finding, unknown
from dragoman.explain.questions import QUESTIONS
from dragoman.measure.records import PHASES, Attempt, EvaluationRow, Event, Probe, Records, RunFacts, Table

START = 1_750_000_000.0
LONG = 10_000  # steps
RANKS, HOSTS = 4, ("athens", "smyrna")
EXCHANGE_BYTES = 365e6
SETTINGS: dict[str, Any] = {
    "model.width": 512,
    "model.heads": 8,
    "data.step": 16384,
    "train.schedule": "inverse_sqrt",
    "train.rate": 0.0007,
    "train.warmup_steps": 400,
    "train.steps": 3000,
    "sync.wire": "fp32",
}
FILES = [
    {"name": "model.safetensors", "bytes": 243_500_000, "purpose": "weights; needed to translate"},
    {"name": "optimizer.safetensors", "bytes": 487_000_000, "purpose": "the optimizer's moments"},
    {"name": "state.json", "bytes": 5_200, "purpose": "step and data position"},
    {"name": "vocabulary.model", "bytes": 810_000, "purpose": "subwords"},
]
CARD: dict[str, Any] = {
    "fingerprint": "3f9a1c",
    "read_pairs": 4_629_517,
    "parts": {
        "train": {
            "pairs": 4_500_000,
            "source": {"bytes": 590_000_000, "tokens": 131_000_000, "lengths": {}},
            "target": {"bytes": 640_000_000, "tokens": 139_000_000, "lengths": {}},
        }
    },
    "dropped": {
        "too_long": {"pairs": 81_200, "examples": []},
        "duplicate": {"pairs": 35_411, "examples": []},
        "length_ratio": {"pairs": 12_004, "examples": []},
        "wrong_script": {"pairs": 902, "examples": []},
    },
}
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.4.3"


def rich(steps: int = 2000, name: str = "wmt16-base", exchange: float = 0.9, seed: int = 1) -> Records:
    """Two hosts of two ranks, a slow link; rank 3 computes a little slower; one restart."""
    draw = np.random.default_rng(seed)
    table = step_table(steps, exchange, draw)
    seconds = float(table["ended"][-1]) - START
    return Records(
        facts(name),
        attempts=[
            Attempt(
                number=1, started=START, first_step=1, ranks=4, ended=START + seconds / 2, reason="fault"
            ),
            Attempt(number=2, started=START + seconds / 2 + 30, first_step=steps // 2, ranks=4),
        ],
        steps=table,
        windows=window_table(steps, exchange, draw),
        evaluations=[evaluation(step, steps, START + seconds * step / steps) for step in marks(steps)],
        events=[
            Event(time=START, attempt=1, step=0, kind="startup", seconds=25),
            Event(time=START + 99, attempt=1, step=steps // 4, kind="checkpoint", seconds=3),
        ],
        probes=probes(exchange),
        nics=nic_table(table, draw),
        hosts=host_table(seconds, draw),
        gpus=gpu_table(seconds, draw),
        lens=lens_table(steps // 2, exchange, draw),
    )


def facts(name: str) -> RunFacts:
    return RunFacts(
        name=name,
        ranks=RANKS,
        hosts=list(HOSTS),
        rank_hosts=[0, 0, 1, 1],
        device="Tesla V100-PCIE-16GB",
        parameters=60_875_000,
        gradient_bytes=243_500_000,
        gradient_interfaces=["eth1", "eth1"],
        flops_per_step=6e13,
        settings=SETTINGS,
        data_card=CARD,
        checkpoint_files=FILES,
        recording_seconds=7.2,
    )


def step_table(steps: int, exchange: float, draw: np.random.Generator) -> Table:
    step = np.arange(1, steps + 1)
    wobble = draw.lognormal(0, 0.08, steps)
    phases = {
        "data": 0.01 * draw.lognormal(0, 0.4, steps),
        "forward": np.full(steps, 0.16) * wobble,
        "backward": np.full(steps, 0.31) * wobble,
        "exchange": exchange * draw.lognormal(0, 0.15, steps) * (1 + 0.5 * (step > 0.7 * steps)),
        "optimizer": np.full(steps, 0.04),
    }
    seconds = sum(phases.values()) + 0.005
    columns: Table = {
        "step": step,
        "attempt": np.where(step < steps // 2, 1, 2),
        "ended": START + 25 + np.cumsum(seconds) + 30 * (step >= steps // 2),
        "seconds": seconds,
        "loss": 2.1 + 7 * np.exp(-step / (0.1 * steps)) + draw.normal(0, 0.08, steps),
        "target_tokens": draw.integers(15_500, 16_384, steps),
        "pairs": draw.integers(550, 650, steps),
        "learning_rate": 0.0007 * np.minimum(step / 400, (400 / step) ** 0.5),
        "gradient_norm": draw.lognormal(0, 0.3, steps),
        "is_bad": np.zeros(steps),
    }
    for name, values in phases.items():
        columns[f"{name}_mean"] = values
        columns[f"{name}_least"] = values * 0.93
        columns[f"{name}_most"] = values * 1.1
        columns[f"{name}_slowest"] = np.full(steps, 3)
    return columns


def window_table(steps: int, exchange: float, draw: np.random.Generator, every: int = 50) -> Table:
    first = np.repeat(np.arange(1, steps + 1, every), RANKS)
    rank = np.tile(np.arange(RANKS), len(first) // RANKS)
    size = np.minimum(first + every - 1, steps) - first + 1
    slow = np.where(rank == 3, 1.25, 1.0)
    usual = dict(zip(PHASES, (0.01, 0.16, 0.31, exchange, 0.04), strict=True))
    columns: Table = {
        "first_step": first,
        "last_step": first + size - 1,
        "attempt": np.ones(len(first)),
        "rank": rank,
    }
    for phase, seconds in usual.items():
        factor = slow if phase in ("forward", "backward") else 1.0
        waited = 0.12 * (rank != 3) if phase == "exchange" else 0.0
        columns[phase] = size * (seconds * factor + waited) * draw.lognormal(0, 0.02, len(first))
    return columns


def marks(steps: int) -> list[int]:
    return list(range(steps // 10, steps + 1, steps // 10))


def evaluation(step: int, steps: int, time: float) -> EvaluationRow:
    done = step / steps
    return EvaluationRow(
        step=step,
        attempt=1,
        time=time,
        eval_loss=2.05 + 3.2 * np.exp(-5 * done),
        train_sample_loss=1.9 + 3.2 * np.exp(-5.2 * done),
        bleu=27.5 * (1 - np.exp(-4 * done)),
        bleu_signature=SIGNATURE,
        seconds=12,
    )


def probes(exchange: float) -> list[Probe]:
    timed = {"step_seconds": 0.47 + exchange, "step_seconds_without_exchange": 0.49}
    return [
        *(Probe(time=START, attempt=1, step=s, kind="exchange", numbers=timed, seconds=4) for s in (5, 500)),
        Probe(time=START, attempt=1, step=0, kind="link", numbers={"bits_per_second": 3.1e9}, seconds=1),
        Probe(time=START, attempt=1, step=0, kind="peak", numbers={"flops_per_second": 5e13}, seconds=1),
    ]


def nic_table(steps: Table, draw: np.random.Generator) -> Table:
    every = 1.0 if len(steps["step"]) < LONG else 60.0  # as the recorder thins them
    times = np.arange(START, steps["ended"][-1], every)
    seconds = np.interp(times, steps["ended"], steps["seconds"])
    rate = EXCHANGE_BYTES / seconds * draw.lognormal(0, 0.05, len(times))
    rows = [(host, name, factor) for host in range(2) for name, factor in (("eth1", 1.0), ("eth0", 0.001))]
    columns: dict[str, list[np.ndarray]] = {}
    for host, name, factor in rows:
        for column, values in {
            "host": np.full(len(times), host),
            "time": times,
            "span": np.full(len(times), every),
            "interface": np.full(len(times), name),
            "sent_bytes": rate * factor,
            "received_bytes": rate * factor,
            "sent_bytes_most": rate * factor * 1.3,
            "received_bytes_most": rate * factor * 1.3,
        }.items():
            columns.setdefault(column, []).append(values)
    return {column: np.concatenate(parts) for column, parts in columns.items()}


def host_table(seconds: float, draw: np.random.Generator) -> Table:
    every = 5.0 if seconds < LONG else 60.0
    times = np.tile(np.arange(START, START + seconds, every), 2)
    host = np.repeat([0, 1], len(times) // 2)
    return {
        "host": host,
        "time": times,
        "span": np.full(len(times), every),
        "cpu_share": draw.uniform(0.2, 0.3, len(times)),
        "cpu_share_most": draw.uniform(0.8, 1.0, len(times)),
        "memory_bytes": draw.uniform(2e10, 3e10, len(times)),
    }


def gpu_table(seconds: float, draw: np.random.Generator) -> Table:
    every = 5.0 if seconds < LONG else 60.0
    each = np.arange(START, START + seconds, every)
    times = np.tile(each, RANKS)
    return {
        "host": np.repeat([0, 0, 1, 1], len(each)),
        "gpu": np.repeat([0, 1, 0, 1], len(each)),
        "time": times,
        "span": np.full(len(times), every),
        "utilisation": draw.uniform(0.97, 1.0, len(times)),
        "power_watts": draw.uniform(70, 110, len(times)),
        "power_limit_watts": np.full(len(times), 250.0),
    }


def lens_table(step: int, exchange: float, draw: np.random.Generator) -> Table:
    """Three steps at 40 Hz: backward sends a little, the exchange sends most."""
    parts = np.array([0.01, 0.16, 0.31, exchange, 0.04])
    ends = np.cumsum(parts)
    times = np.arange(0, 3 * ends[-1], 0.025)
    phase = np.searchsorted(ends, times % ends[-1]).clip(0, 4)
    rate = np.choose(phase, [0, 0, 1.2e8, 3.4e8, 1e6]) * draw.lognormal(0, 0.1, len(times))
    return {
        "host": np.zeros(len(times)),
        "time": START + 900 + times,
        "sent_bytes": 1e12 + np.cumsum(rate * 0.025),
        "received_bytes": 1e12 + np.cumsum(rate * 0.025),
        "step": step + (times // ends[-1]),
        "phase": phase,
    }


def minimal() -> Records:
    """Nothing but a few losses, as from somebody's log."""
    return Records(
        RunFacts(source="nohup.out"), steps={"step": np.array([10, 20]), "loss": np.array([9.1, 8.7])}
    )


def empty() -> Records:
    return Records(RunFacts())


def holes() -> Records:
    """Every table is there and every number in it is NaN."""
    full = rich(200)
    for table in (full.steps, full.windows, full.nics, full.hosts, full.gpus, full.lens):
        for name, values in table.items():
            if values.dtype.kind != "U":
                table[name] = np.full(len(values), np.nan)
    blank = [EvaluationRow(step=1, attempt=1, time=START, eval_loss=float("nan"), bleu=None)]
    return Records(
        full.facts, full.attempts, full.steps, full.windows, blank, full.events, [], full.nics, full.hosts,
        full.gpus, full.lens,
    )  # fmt: skip


_NUMBERS: dict[str, dict[str, Any]] = {
    "duration": {
        "wall_seconds": 3240.0,
        "training_seconds": 3010.0,
        "evaluation_seconds": 120.0,
        "checkpoint_seconds": 21.0,
        "startup_seconds": 25.0,
        "restart_seconds": 30.0,
        "steps": 2000,
        "finished": False,
        "eta_seconds": 1580.0,
    },
    "convergence": {
        "last_eval_loss": 2.072,
        "best_eval_loss": 2.072,
        "best_bleu": 27.0,
        "gain_if_doubled_bleu": 0.48,
        "gain_if_doubled_bleu_low": 0.2,
        "gain_if_doubled_bleu_high": 0.8,
        "loss_curve": [[step, 2.05 + 3.2 * np.exp(-step / 400)] for step in range(200, 4001, 100)],
        "bleu_curve": [[step, 27.5 * (1 - np.exp(-step / 500))] for step in range(200, 4001, 100)],
    },
    "overfitting": {
        "eval_loss": 2.072,
        "train_sample_loss": 1.92,
        "gap": 0.152,
        "gap_trend_per_1000_steps": 0.004,
    },
    "device_utilisation": {
        "compute_share": 0.34,
        "flops_share": 0.19,
        "utilisation": 0.98,
        "power_share": 0.36,
    },
    "network": {
        "exposed_share": 0.63,
        "straggler_share": 0.05,
        "step_seconds": 1.57,
        "step_seconds_without_exchange": 0.52,
        "bytes_per_step_per_host": 365e6,
        "expected_bytes_per_step_per_host": 365.25e6,
        "link_bits_per_second": 3.1e9,
    },
    "learning_rate": {"peak": 0.0007, "peak_step": 400, "warmup_steps": 400, "last": 0.000313},
    "training_set": {
        "lines": 4_500_000,
        "source_bytes": 590_000_000,
        "target_bytes": 640_000_000,
        "source_tokens": 131_000_000,
        "target_tokens": 139_000_000,
        "dropped_lines": 129_517,
    },
    "checkpoint_files": {"files": FILES},
    "checkpoint_size": {"total_bytes": 731_315_200, "parameters": 60_875_000, "bytes_per_parameter": 12.0},
    "step_time": {
        "mean_seconds": 1.51,
        "median_seconds": 1.43,
        "p95_seconds": 2.0,
        "tokens_per_step": 15_940,
        "tokens_per_second": 10_556.0,
    },
    "step_network": {"correlation": 0.94, "bytes_per_step_per_host": 365e6, "burst_share": 0.45},
}
_SAID: dict[str, tuple[str, str]] = {
    "duration": (
        "stated",
        "54 min so far for 2,000 of 3,000 steps: 50 min training, 2 min evaluation; 26 min to go.",
    ),
    "convergence": (
        "improving",
        "Not yet: twice the steps would buy 0.48 BLEU (0.2 to 0.8) over the best, 27.0.",
    ),
    "overfitting": (
        "no",
        "No: held-out loss 2.07 is 0.15 above the training sample's, and the gap is steady.",
    ),
    "device_utilisation": (
        "waiting_network",
        "No: the GPUs look 98% busy but draw 36% of their power. 34% of a step is computing, 63% exchange.",
    ),
    "network": (
        "bottleneck",
        "Yes: ranks spend 63% of each step in the exchange, moving 365 MB out of each host over a link "
        "measured at 3.1 Gbit/s. Without the exchange a step takes 0.52 s instead of 1.51 s.",
    ),
    "learning_rate": (
        "stated",
        "It rises for 400 steps to 0.0007 and then falls with the square root of the step.",
    ),
    "training_set": ("stated", "4.5 million pairs, 590 MB and 640 MB; cleaning dropped 129,517."),
    "checkpoint_files": (
        "stated",
        "Four files: weights, the optimizer's moments, the state and the vocabulary.",
    ),
    "checkpoint_size": ("stated", "731 MB: 60.9 million parameters x 4 bytes x 3 (weights and two moments)."),
    "step_time": (
        "stated",
        "A step is 4 ranks x 4,000 tokens and one update; it takes 1.51 s (median 1.43, p95 2).",
    ),
    "step_network": (
        "stated",
        "Step time follows exchange time (correlation 0.94) while bytes stay the same.",
    ),
}
_ADVICE = {
    "network": [
        "bf16 on the wire: about 1.6 x faster steps.",
        "Four times the tokens per step: 2.4 x the tokens per second in a quarter of the updates.",
        "A 10 Gbit/s link: 2.2 x.",
    ],
    "convergence": ["Train on: 3,000 more steps take 75 min."],
}


def findings() -> list[Finding]:
    """Answers to the rich run."""
    return [
        Finding(
            id=id,
            verdict=_SAID[id][0],
            answer=_SAID[id][1],
            numbers=_NUMBERS[id],
            evidence=[f"records.db, 2,000 steps, as {id} was measured"],
            confidence="estimated" if id == "convergence" else "measured",
            advice=_ADVICE.get(id, []),
        )
        for id in QUESTIONS
    ]


def unknowns() -> list[Finding]:
    return [unknown(id, "it was not recorded") for id in QUESTIONS]
