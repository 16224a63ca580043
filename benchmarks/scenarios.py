"""The truth bench's scenarios: the cause of each, and what the report must say about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.causes import Setting
from benchmarks.ratios import MICROBATCH_TOKENS, TRIED_TOKENS, Speed
from benchmarks.trainings import Outcome

CORPORA: dict[str, dict[str, Any]] = {
    "plenty": {"name": "demo", "pairs": 20_000},
    "little": {"name": "demo", "pairs": 300, "vocabulary": 400},
    "easy": {"name": "reversed", "pairs": 4_000, "vocabulary": 64},
}
# About 1.2 million parameters. The bench sets the tokens per step.
SPEED = f"""
[model]
width = 128
heads = 4
encoder_layers = 2
decoder_layers = 2
feedforward = 512
[data]
step = {TRIED_TOKENS}
microbatch = {MICROBATCH_TOKENS}
[train]
steps = 100000
schedule = "constant"
rate = 0.002
warmup_steps = 20
clip_norm = 1.0
[evaluate]
every = 100000
beam = 1
train_sample_pairs = 60
[checkpoint]
every = 100000
[measure]
every = 5
"""
LEARNING = """
[model]
width = 64
heads = 4
encoder_layers = 1
decoder_layers = 1
feedforward = 128
dropout = 0.0
attention_dropout = 0.0
feedforward_dropout = 0.0
[data]
step = 512
microbatch = 512
[train]
steps = 900
schedule = "inverse_sqrt"
rate = 0.005
warmup_steps = 60
label_smoothing = 0.0
clip_norm = 1.0
[evaluate]
every = 60
beam = 1
train_sample_pairs = 100
[checkpoint]
every = 1000
"""
CONFIGS = {"speed": SPEED, "learning": LEARNING}
CHECKPOINT_EVERY = 4
KEPT_SHARE = 1 / 15  # of the machine's memory, over a run
ROUND = 4  # steps in a DiLoCo round, from step 8 x 4 on

Share = Callable[[Outcome], float]


def of(id: str, name: str, times: float = 1.0) -> Share:
    return lambda outcome: times * outcome.number(id, name)


def settled(speed: Speed) -> Setting:
    return Setting()


def no_settings(speed: Speed) -> tuple[str, ...]:
    return ()


def nothing(outcome: Outcome) -> str:
    return ""


@dataclass(frozen=True)
class Scenario:
    cause: str
    expected: Mapping[str, str]  # finding -> verdict, or alternatives joined by |
    where: Callable[[Speed], Setting] = settled
    settings: Callable[[Speed], tuple[str, ...]] = no_settings
    config: str = "speed"
    corpus: str = "plenty"
    has: tuple[tuple[str, str], ...] = ()  # finding, and a name, option or number that it must have
    lacks: tuple[tuple[str, str], ...] = ()  # and one that it must not have
    # Cause -> share of a step that the report attributes to it, for causes removed in turns.
    shares: Mapping[str, Share] = field(default_factory=dict)
    also: Callable[[Outcome], str] = nothing  # anything else the report gets wrong


EXPOSED = of("network", "exposed_share")
STRAGGLER = of("network", "straggler_share", 2.0)  # the mean over two ranks, of which one waits
DATA = of("device_utilisation", "data_share")
CHECKPOINTS = of("device_utilisation", "checkpoint_share")
BUSY = {"device_utilisation": "computing", "network": "single_machine"}
WAITING = {"network": "bottleneck", "device_utilisation": "waiting_network"}
SLOWER_RANK = {"network": "not_bottleneck|balanced", "device_utilisation": "waiting_straggler"}
MISMATCH = (("network", "byte_mismatches"),)
SLOW_DEVICE = (("device_utilisation", "rank 1"), ("device_utilisation", "h1"))
SLOW_NETWORK = (("network", "rank 1"), ("network", "h1"))


def more_than_needed(outcome: Outcome) -> str:
    """What is wrong with the bytes that the network's answer found on the interfaces; else nothing."""
    rows = outcome.findings["network"].numbers.get("byte_mismatches", [])
    less = [row for row in rows if row["expected_share"] < 1]
    return f"the network's answer tells of fewer bytes than needed: {less}" if less else ""


def taken_from_others(outcome: Outcome) -> float:
    return 1.0 - outcome.number("device_utilisation", "cpu_share")


def link(ratio: float, network: str, device: str, turns: int = 3) -> Scenario:
    return Scenario(
        f"a link so slow that the exchange takes {ratio:g} x the computing",
        {"network": network, "device_utilisation": device},
        lambda speed: Setting(hosts=2, rate=speed.rate(ratio), reliefs=turns * ("rate",)),
        lacks=MISMATCH,
        shares={"rate": EXPOSED},
    )


def slow_host(share: float, **changes: Any) -> Scenario:
    return Scenario(
        f"host h1 has {100 * share:.0f} % of a core",
        SLOWER_RANK,
        lambda speed: Setting(hosts=2, slow_host=share, reliefs=3 * ("slow_host",)),
        has=SLOW_DEVICE + SLOW_NETWORK,
        lacks=MISMATCH,
        shares={"slow_host": STRAGGLER},
    )


def slow_data(ratio: float, verdict: str) -> Scenario:
    return Scenario(
        f"reading takes {ratio:g} x the computing",
        {"device_utilisation": verdict, "network": "single_machine"},
        lambda speed: Setting(hindrances=(speed.reader(ratio),), reliefs=3 * ("slow-reader",)),
        shares={"slow-reader": DATA},
    )


def slow_disk(ratio: float) -> Scenario:
    """With a ratio below 1 a checkpoint is on disk before the next one is due, so nothing waits for it."""
    is_costly = ratio > 1
    advised = (("device_utilisation", "checkpoint.every"),)
    return Scenario(
        f"a checkpoint every {CHECKPOINT_EVERY} steps that takes {ratio:g} x their time to write",
        BUSY,
        lambda speed: Setting(
            workers=2,
            hindrances=(speed.disk(ratio, CHECKPOINT_EVERY),),
            reliefs=3 * ("slow-disk",),
            period=CHECKPOINT_EVERY,
            reported_from=CHECKPOINT_EVERY,  # the first checkpoint finds the disk free, and nothing waits
        ),
        lambda speed: (f"checkpoint.every={CHECKPOINT_EVERY}",),
        has=advised if is_costly else (),
        lacks=() if is_costly else advised,
        shares={"slow-disk": CHECKPOINTS},
    )


def change_step(outcome: Outcome) -> str:
    """What is wrong with the step at which the network's answer says the link became slow; else nothing."""
    changes = outcome.findings["network"].numbers.get("changes", [])
    if len(changes) != 1:
        return f"the network's answer has {len(changes)} changes"
    if outcome.came is None:  # not known for a kept record
        return ""
    came = int(np.searchsorted(outcome.records.steps["ended"], outcome.came)) + 1
    step = changes[0]["step"]
    return "" if abs(step - came) <= 3 else f"the report says the link changed at step {step}, not {came}"


def memory_growth(outcome: Outcome) -> str:
    """What is wrong with the memory growth in the report: the worker keeps the same amount every step."""
    records, numbers = outcome.records, outcome.findings["duration"].numbers
    kept = KEPT_SHARE * records.facts.host_memory_bytes[0] / float(records.steps["step"].max())
    reported = numbers.get("memory_growth", {}).get("bytes_per_1000_steps", 0.0) / 1000
    is_right = abs(reported / kept - 1) <= 0.25
    return "" if is_right else f"the report says {reported:.3g} bytes per step, {kept:.3g} are kept"


def competitors(workers: int) -> Scenario:
    return Scenario(
        f"another program computes on each core of {workers} workers on one machine",
        {"device_utilisation": "waiting_cpu", "network": "single_machine"},
        lambda speed: Setting(workers=workers, competitors=workers, reliefs=3 * ("competitors",)),
        shares={"competitors": taken_from_others},
    )


SCENARIOS = {
    "compute-bound": Scenario("nothing: one worker on one core", BUSY),
    "two-workers": Scenario("nothing: two workers on one machine", BUSY, lambda speed: Setting(workers=2)),
    "fast-link": Scenario(
        "nothing: two hosts, links as fast as memory",
        {"network": "not_bottleneck|balanced", "device_utilisation": "computing"},
        lambda speed: Setting(hosts=2),
        lacks=MISMATCH,
    ),
    "slow-link-0.1": link(0.1, "not_bottleneck|balanced", "computing", turns=6),
    "slow-link-0.4": link(0.4, "bottleneck|balanced", "computing|waiting_network", turns=4),
    "slow-link-1": link(1, "bottleneck", "waiting_network"),
    "slow-link-4": link(4, "bottleneck", "waiting_network"),
    "bf16": Scenario(
        "a link so slow that the exchange takes 1.5 x the computing, in bf16",
        WAITING,
        lambda speed: Setting(hosts=2, rate=speed.rate(1.5, sent_share=0.5), reliefs=3 * ("rate",)),
        lambda speed: ("sync.wire=bf16",),
        lacks=MISMATCH,
        shares={"rate": EXPOSED},
    ),
    "diloco": Scenario(
        f"a link so slow that an exchange takes 2 x the computing of the {ROUND} steps of a round",
        WAITING,
        lambda speed: Setting(
            hosts=2,
            rate=speed.rate(2 * ROUND),
            from_step=8 * ROUND,
            reported_from=8 * ROUND,
            reliefs=3 * ("rate",),
            period=ROUND,
        ),
        lambda speed: ("sync.mode=diloco", f"sync.inner_steps={ROUND}"),
        lacks=MISMATCH,
        shares={"rate": EXPOSED},
    ),
    "latency": Scenario(
        "a fast link on which a message takes a tenth of a step's computing to arrive",
        WAITING,
        lambda speed: Setting(
            hosts=2, delay_seconds=round(speed.step_seconds / 10, 4), reliefs=3 * ("delay_seconds",)
        ),
        lacks=MISMATCH,
        shares={"delay_seconds": EXPOSED},
    ),
    "link-slows-down": Scenario(
        "a link so slow from the middle of the run that the exchange takes 2 x the computing",
        WAITING,
        lambda speed: Setting(hosts=2, rate=speed.rate(2), from_step=speed.steps()),
        lacks=MISMATCH,
        also=change_step,
    ),
    "two-by-two": Scenario(
        "two hosts with two workers each, on a link so slow that the exchange takes 1.5 x the computing",
        WAITING,
        lambda speed: Setting(
            workers=2, hosts=2, rate=speed.rate(1.5, sent_share=1.5), reliefs=3 * ("rate",)
        ),
        lacks=MISMATCH,
        shares={"rate": EXPOSED},
    ),
    "slow-host": slow_host(0.35),
    "slower-host": slow_host(0.6),
    "busy-neighbour": Scenario(
        "another program computes on the core of h1",
        SLOWER_RANK,
        lambda speed: Setting(hosts=2, busy_neighbour=True, reliefs=3 * ("busy_neighbour",)),
        has=SLOW_DEVICE,
        shares={"busy_neighbour": STRAGGLER},
    ),
    "other-traffic": Scenario(
        "another program takes a third of a link so slow that the exchange takes as long as the computing",
        WAITING,
        lambda speed: Setting(
            hosts=2, rate=speed.rate(1), traffic=speed.rate(3), reliefs=3 * ("rate+traffic",)
        ),
        has=MISMATCH,
        shares={"rate+traffic": EXPOSED},
        also=more_than_needed,
    ),
    "link-and-slow-host": Scenario(
        "the exchange takes 2 x the computing, and h1 has half a core",
        WAITING,
        lambda speed: Setting(hosts=2, rate=speed.rate(2), slow_host=0.5, reliefs=2 * ("rate", "slow_host")),
        has=SLOW_NETWORK,
        lacks=MISMATCH,
        shares={"rate": EXPOSED, "slow_host": STRAGGLER},
    ),
    "link-and-slow-data": Scenario(
        "reading takes 2 x the computing, and the exchange as long as the computing",
        {"network": "bottleneck|balanced", "device_utilisation": "waiting_data"},
        lambda speed: Setting(
            hosts=2,
            rate=speed.rate(1),
            hindrances=(speed.reader(2),),
            reliefs=2 * ("rate", "slow-reader"),
        ),
        lacks=MISMATCH,
        shares={"rate": EXPOSED, "slow-reader": DATA},
    ),
    "slow-data": slow_data(1.5, "waiting_data"),
    "slower-data": slow_data(0.15, "computing"),
    "frequent-evaluation": Scenario(
        "evaluations take a third of the time of the steps between them",
        BUSY,
        settings=lambda speed: (f"evaluate.every={speed.evaluate_every(1 / 3)}",),
        has=(("device_utilisation", "evaluate.every"),),
    ),
    "slow-disk-0.5": slow_disk(0.5),
    "slow-disk-1.5": slow_disk(1.5),
    "slow-disk-4": slow_disk(4),
    "memory-grows": Scenario(
        "a worker that keeps more memory with every step",
        BUSY,
        lambda speed: Setting(hindrances=(speed.memory(KEPT_SHARE, 2 * speed.steps()),)),
        lambda speed: (f"train.steps={2 * speed.steps()}",),
        has=(("duration", "memory_growth"),),
        also=memory_growth,
    ),
    "competitor": competitors(1),
    "competitors": competitors(2),
    "overfitting": Scenario(
        "300 training pairs, repeated over and over",
        {"overfitting": "yes"},
        config="learning",
        corpus="little",
    ),
    "converged": Scenario(
        "an easy task, learnt to the end",
        {"convergence": "converged", "overfitting": "no"},
        settings=lambda speed: ("train.steps=1500", "evaluate.every=75"),
        config="learning",
        corpus="easy",
    ),
    "too-short": Scenario(
        "stopped while the loss was falling",
        {"convergence": "improving", "overfitting": "no"},
        settings=lambda speed: ("train.steps=150", "evaluate.every=15", "train.rate=0.002"),
        config="learning",
        corpus="plenty",
    ),
    "diverged": Scenario(
        "a learning rate that keeps rising",
        {"convergence": "diverged"},
        settings=lambda speed: (
            *("train.rate=3", "train.warmup_steps=600", "train.steps=600", "train.clip_norm=0"),
        ),
        config="learning",
        corpus="easy",
    ),
}
