"""Runs, and pairs of runs, whose answers are kept: made by hand for what chance does not bring about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dragoman.measure.records import Records
from tests.explain import build
from tests.explain.altered import (
    GB,
    RISING,
    SECONDS,
    asked,
    bigger,
    by_another_way,
    by_interface,
    by_intervals,
    elastic,
    fitted,
    gpus_in_steps,
    learning,
    named,
    odd_probes,
    of_files,
    of_muon,
    paces,
    restarted,
    round_trips,
    saved_beside,
    set_back,
    settings_gone,
    shared_cores,
    slowed,
    unevenly,
    with_cores,
    with_memory,
    with_steps,
    without,
    without_placements,
)
from tests.explain.build import CARD, Run
from tests.explain.faulty import Lost, with_faults

TIME = ("step_time", "network")
WHERE = ("network", "step_network", "device_utilisation", "step_time")
NETWORK = ("network", "step_network")
DEVICE = ("device_utilisation",)
LEARNT = ("convergence", "overfitting")
SAVED = ("checkpoint_files", "checkpoint_size")
ONE_HOST = {"hosts": 1, "ranks": 2}
FALLING = [2 + 3 * 0.6**index for index in range(12)]
BACK = [3.0, 2.4, 2.0, 1.9, 2.0, 2.2, 2.5, 2.8]
DOWN = [2.9, 2.2, 1.7, 1.5, 1.3, 1.1, 1.0, 0.9]
BLEU_RISES = [1.0, 5.0, 9.0, 12.0, 13.0, 14.5, 15.0, 15.5]

# Name -> the records, and the questions whose answers are kept.
RUNS: dict[str, tuple[Callable[[], Records], tuple[str, ...]]] = {
    "slower-exchange": (lambda: slowed("exchange", 0.6), TIME),
    "slower-for-a-while": (lambda: slowed("exchange", 0.6, 120, 260), TIME),
    "slower-data": (lambda: slowed("data", 0.4, 300), TIME),
    "slower-computing": (lambda: slowed("backward", 0.4, 50), TIME),
    "slower-rank": (lambda: slowed("waiting", 0.5, 150), TIME),
    "slower-optimizer-and-no-times": (
        lambda: with_steps(slowed("optimizer", 0.5), ended=lambda ended, _: ended * np.nan),
        TIME,
    ),
    "short-hiccup": (lambda: slowed("exchange", 2.0, 100, 110), TIME),
    "paces": (lambda: paces((60, 1), (80, 2), (70, 1.1), (90, 0.6), (50, 1.5), (60, 3)), TIME),
    "paces-of-rounds": (
        lambda: paces((96, 1), (96, 2.5), (64, 1), mode="diloco", exchange_every=4, exchange=0.4),
        TIME,
    ),
    "paces-of-one-second": (lambda: paces((30, 1), (14, 1.3), (12, 1.0)), TIME),
    "one-machine-shares-its-cores": (
        lambda: shared_cores(
            {"burn": 1.4, "cron": 0.1, "idle": 0.01},
            **ONE_HOST,
            counted_cores=[1.0, 0.5],
            slow_rank=1,
            slow_by=2.0,
        ),
        DEVICE,
    ),
    "one-machine-shares-its-exchange": (
        lambda: shared_cores(
            {},
            **{**ONE_HOST, "ranks": 3},
            counted_cores=[0.6, 0.7, 0.5],
            exchange=0.5,
            slow_rank=0,
            slow_by=1.4,
        ),
        DEVICE,
    ),
    "hosts-share-their-cores": (
        lambda: shared_cores(
            {"a": 0.2, "b": 0.9, "c": 0.5, "d": 0.3},
            hosts=3,
            ranks=6,
            counted_cores=[0.5, 0.6, 0.8, 0.7, 0.4, 0.9],
        ),
        DEVICE,
    ),
    "cores-are-stolen": (
        lambda: shared_cores({}, stolen=0.3, limited=0.6, hosts=1, counted_cores=[0.9, 0.8, 0.9, 0.7]),
        DEVICE,
    ),
    "slow-host-shares-its-cores": (
        lambda: shared_cores({"burn": 0.5}, counted_cores=[0.5, 1, 1, 1], slow_rank=0, slow_by=2.0),
        DEVICE,
    ),
    "more-ranks-than-cores": (
        lambda: with_cores(build.records(hosts=1, ranks=4, counted_cores=[0.5] * 4), "6464"),
        DEVICE,
    ),
    "cores-unknown": (
        lambda: without(build.records(hosts=1, ranks=4, counted_cores=[0.5] * 4), "hosts"),
        DEVICE,
    ),
    "no-phase-says-where": (
        lambda: with_steps(
            build.records(slow_rank=None),
            seconds=lambda seconds, _: 2.5 * seconds,
            exchange_mean=lambda mean, _: mean + 1.2,
            exchange_least=lambda least, _: least * np.nan,
        ),
        WHERE,
    ),
    "slow-rank-without-windows": (lambda: without(build.records(slow_rank=2, slow_by=1.8), "windows"), WHERE),
    "slow-ranks-in-turns": (lambda: without(build.records(jitter=0.9), "windows"), WHERE),
    "slow-data-of-one": (lambda: build.records(slow_rank=1, slow_data=1.0, jitter=0.0), WHERE),
    "hot-gpus-that-wait": (lambda: build.records(exchange=3.0, gpu_watts=200.0), WHERE),
    "cool-gpus-that-wait": (lambda: build.records(exchange=3.0, gpu_watts=60.0), WHERE),
    "gpus-beside-evaluations": (
        lambda: gpus_in_steps(build.records(gpu_watts=200.0, evaluate_every=7)),
        WHERE,
    ),
    "waits-for-the-little-that-is-known": (
        lambda: with_steps(
            build.records(data=0.3, forward=0.06, backward=0.1), seconds=lambda seconds, _: 5 * seconds
        ),
        WHERE,
    ),
    "exchange-against-computing": (
        lambda: with_steps(
            build.records(exchange=0.5, exchange_jitter=0.0),
            exchange_least=lambda least, step: least - step / 2_000,
            exchange_mean=lambda mean, step: mean - step / 2_000,
            seconds=lambda seconds, step: seconds + step / 1_000,
        ),
        WHERE,
    ),
    "microbatches-of-one": (
        lambda: build.records(
            steps=60, changes={"ranks": None, "settings": {"data.step": 7, "data.microbatch": 1}}
        ),
        WHERE,
    ),
    "meters-alone": (
        lambda: with_steps(build.records(gpu_watts=60.0), seconds=lambda seconds, _: seconds * np.nan),
        WHERE,
    ),
    "one-kind-of-wait": (
        lambda: build.records(hosts=1, ranks=1, data=0.8, exchange=0.0, counted_cores=[0.9]),
        WHERE,
    ),
    "saved-beside": (lambda: saved_beside(8.0), DEVICE),
    "saved-beside-for-a-moment": (lambda: saved_beside(0.7), DEVICE),
    "evaluates-often": (
        lambda: build.records(evaluate_every=5, checkpoint_every=7, reason=None),
        (*DEVICE, *TIME),
    ),
    "no-probes": (lambda: build.records(probes=False, exchange=0.7), WHERE),
    "odd-probes": (lambda: odd_probes(build.records(exchange=0.7)), WHERE),
    "slow-round-trips": (lambda: round_trips(build.records(exchange=0.7, ranks=8, hosts=4), 0.02), WHERE),
    "slow-link-hierarchical": (
        lambda: build.records(
            exchange=2.0, link_bits_per_second=1e9, ranks=8, hosts=2, in_turns=True, counted_bytes=9e8
        ),
        WHERE,
    ),
    "rounds-on-a-slow-link": (
        lambda: build.records(
            exchange=5.0, mode="diloco", exchange_every=8, steps=330, reason=None, wire="bf16"
        ),
        WHERE,
    ),
    "wrong-interface": (lambda: by_interface({"eth0": 1.0, "eth1": 0.2, "lo": 0.1}), NETWORK),
    "few-bytes": (lambda: by_interface({"eth0": 0.1, "eth1": 0.5}), NETWORK),
    "more-bytes": (lambda: unevenly(by_interface({"eth0": 0.1, "eth1": 1.6})), NETWORK),
    "busiest-interface": (lambda: by_interface({"eth0": 0.1, "eth1": 0.9, "lo": 3.0}, names=[]), NETWORK),
    "bytes-by-the-minute": (lambda: by_interface({"eth1": 1.0}, spans=60.0), NETWORK),
    "bytes-of-short-steps": (
        lambda: build.records(forward=0.1, backward=0.2, optimizer=0.01, exchange=0.05, evaluate_every=100),
        NETWORK,
    ),
    "bytes-of-long-steps": (
        lambda: build.records(forward=1.6, backward=1.4, steps=60, exchange=0.9, exchange_jitter=0.5),
        NETWORK,
    ),
    "rate-off-a-screen": (
        lambda: without(build.records(changes={"nic_bytes_per_second": 2e8, "rank_hosts": []}), "nics"),
        NETWORK,
    ),
    "hosts-unknown": (
        lambda: without(build.records(changes={"rank_hosts": [], "hosts": []}), "nics"),
        NETWORK,
    ),
    "late-windows-by-interval": (
        lambda: by_intervals(build.records(steps=530, counted_bytes=3.7e8, exchange=0.5)),
        NETWORK,
    ),
    "restarted": (restarted, ("duration", "network", "step_time")),
    "faults": (elastic, ("duration", *WHERE)),
    "faults-that-end-the-run": (
        lambda: elastic(Lost(step=390, still_seconds=2.0), Lost(step=395, kind="disk_full", repeated=2)),
        ("duration",),
    ),
    "host-lost-again-and-again": (
        lambda: with_faults(
            build.records(),
            *(Lost(step=step, kind="host_unreachable", rank=None) for step in range(50, 400, 70)),
        ),
        ("duration",),
    ),
    "moved": (
        lambda: build.in_turn(Run(steps=240, exchange=0.8), Run(steps=90, ranks=2, hosts=1)),
        ("duration", *WHERE),
    ),
    "moved-twice": (
        lambda: build.in_turn(
            Run(steps=80, ranks=2, hosts=2, gpu_watts=100.0), Run(steps=140, gpu_watts=200.0)
        ),
        ("duration", *WHERE),
    ),
    "moved-without-a-trace": (lambda: without_placements(Run(steps=140), Run(steps=80, ranks=2)), WHERE),
    "killed": (lambda: build.in_turn(Run(steps=100, reason=None), Run(steps=50, reason=None)), ("duration",)),
    "clock-set-back": (lambda: set_back(build.records(steps=200)), ("duration",)),
    "attempts-unknown": (lambda: without(build.records(steps=120), "attempts"), ("duration",)),
    "attempts-and-times-unknown": (
        lambda: without(build.records(steps=120), "attempts", "nics", "hosts", "events", times=False),
        ("duration",),
    ),
    "startup-unknown": (lambda: without(build.records(steps=120, reason=None), "events"), ("duration",)),
    "memory-of-two-hosts": (lambda: with_memory(RISING, RISING + 0.03 * GB * SECONDS), ("duration",)),
    "memory-of-three-hosts": (lambda: with_memory(RISING, RISING, RISING + 9 * GB), ("duration",)),
    "memory-of-one-host": (lambda: with_memory(RISING * 0 + 9 * GB, RISING, total=24 * GB), ("duration",)),
    "memory-in-one-step": (lambda: with_memory(10 * GB + 5 * GB * (SECONDS > 150)), ("duration",)),
    "memory-little": (lambda: with_memory(10 * GB + 1e6 * SECONDS, RISING[:7]), ("duration",)),
    "muon": (lambda: Records(of_muon(model=1_200_000, optimizer=1_650_000, empty=0)), SAVED),
    "muon-elsewhere": (lambda: Records(of_muon(model=9_000_000)), SAVED),
    "muon-of-no-size": (
        lambda: Records(
            of_muon(a=1).model_copy(update={"settings": {"train.optimizer": "muon", "model.width": 7}})
        ),
        SAVED,
    ),
    "weights-alone": (lambda: of_files(4.1), SAVED),
    "weights-and-one-moment": (lambda: of_files(7.9), SAVED),
    "weights-in-fp16-besides": (lambda: of_files(14.2), SAVED),
    "weights-and-something": (lambda: of_files(10.0), SAVED),
    "outer-momentum": (lambda: of_files(16.0, mode="diloco", exchange_every=16), SAVED),
    "overfits": (lambda: learning(BACK, DOWN, first=0), LEARNT),
    "overfits-and-bleu-rises": (lambda: learning(BACK, DOWN, BLEU_RISES), LEARNT),
    "overfits-and-bleu-does-not": (
        lambda: learning(BACK, DOWN, [*BLEU_RISES[:4], 12.2, 12.4, 12.1, 12.0]),
        LEARNT,
    ),
    "loss-rises-on-both": (lambda: learning(BACK, BACK), LEARNT),
    "gap-widens": (lambda: learning([3, 2.5, 2.2, 2.1, 2.1, 2.098, 2.097, 2.096], DOWN), LEARNT),
    "gap-shrinks": (
        lambda: learning(FALLING, [loss - 0.02 * (12 - i) for i, loss in enumerate(FALLING)]),
        LEARNT,
    ),
    "few-of-both": (lambda: learning(FALLING[:3], BACK[:3]), LEARNT),
    "four-of-both": (lambda: learning(BACK[2:6], DOWN[2:6]), LEARNT),
    "five-of-both": (lambda: learning(BACK[1:6], DOWN[1:6], evaluate_every=50), LEARNT),
    "began-best": (
        lambda: learning([2.0, 2.1, 2.05, 2.2, 2.1, 2.15], bleu=[30, 29, 28, 29, 28.5, 28], first=0),
        LEARNT,
    ),
    "three-of-a-plan": (lambda: learning([5.0, 4.0, 3.5], wanted_steps=2_000), ("convergence",)),
    "three-of-a-plan-that-rise": (lambda: learning([3.0, 3.02, 3.03], wanted_steps=2_000), ("convergence",)),
    "began-best-of-two": (lambda: learning([2.0, 2.1], first=0), ("convergence",)),
    "nothing": (lambda: build.NOTHING, ("convergence", "duration", "learning_rate", "training_set")),
    "converged-after-its-plan": (
        lambda: learning(
            FALLING, bleu=[25 - 20 * 0.6**i for i in range(12)], schedule="linear", warmup_steps=10
        ),
        LEARNT,
    ),
    "half-way": (
        lambda: learning(
            FALLING, bleu=[25 - 20 * 0.6**i for i in range(12)], schedule="cosine", wanted_steps=2_000
        ),
        LEARNT,
    ),
    "bleu-near-a-hundred": (lambda: learning(FALLING, bleu=[99 - 60 * 0.75**i for i in range(12)]), LEARNT),
    "bleu-alone": (
        lambda: learning([None] * 8, bleu=[20 - 15 * 0.6**i for i in range(8)], reason=None),
        LEARNT,
    ),
    "ends-in-infinity": (lambda: learning([3.0, 2.5, 2.2, float("nan")]), LEARNT),
    "infinite-steps": (
        lambda: with_steps(learning(FALLING[:3]), loss=lambda loss, step: np.where(step > 250, np.inf, loss)),
        LEARNT,
    ),
    "bad-gradients": (
        lambda: with_steps(learning(FALLING[:4]), is_bad=lambda _, step: (step % 2 == 0) * 1.0),
        LEARNT,
    ),
    "loss-above-guessing": (
        lambda: with_steps(learning([11.0, 13.0]), loss=lambda _, step: 10.4 + step / 80),
        LEARNT,
    ),
    "steps-diverged": (
        lambda: with_steps(learning([4.0, 3.0, 4.0, 6.0]), loss=lambda _, step: 3 + (step / 200) ** 2),
        LEARNT,
    ),
    "plan-not-followed": (
        lambda: with_steps(build.records(steps=120), learning_rate=lambda rate, _: 1.1 * rate),
        ("learning_rate", "convergence"),
    ),
    "plan-made-later": (
        lambda: with_steps(
            fitted(build.records(steps=120, schedule="cosine"), 40),
            learning_rate=lambda rate, step: np.where(step > 40, rate, rate / 2),
        ),
        ("learning_rate", "convergence"),
    ),
    "steps-from-0": (
        lambda: with_steps(build.records(steps=120, warmup_steps=10), step=lambda step, _: step - 1.0),
        ("learning_rate", "duration"),
    ),
    "still-warming-up": (
        lambda: build.records(steps=120, warmup_steps=400),
        ("learning_rate", "convergence"),
    ),
    "rates-alone": (
        lambda: settings_gone(learning(FALLING, schedule="linear", warmup_steps=50)),
        ("learning_rate", "convergence"),
    ),
    "harmed-by-bf16": (lambda: by_another_way(2.5), ("convergence",)),
    "not-harmed-by-bf16": (lambda: by_another_way(2.06), ("convergence",)),
    "always-bf16": (lambda: by_another_way(2.06, ways=1), ("convergence",)),
}

SCORED = {"eval_loss": lambda s: 2 + 3 * np.exp(-s / 100), "bleu": lambda s: 20 - 19 * np.exp(-s / 100)}
PLAIN = Run(steps=120)

# Name -> the two runs to compare.
PAIRS: dict[str, Callable[[], tuple[Records, Records]]] = {
    "link": lambda: (
        named(build.records(steps=120, exchange=0.1), "fast"),
        named(build.records(steps=120, exchange=0.9, link_bits_per_second=1e9), "slow"),
    ),
    "slower-first": lambda: (
        named(build.records(steps=120, forward=0.6, peak_flops_per_second=2e12, **SCORED), "slow"),
        named(build.records(steps=120, seed=2, **SCORED), "fast", parameters=30_000_000),
    ),
    "straggler": lambda: (
        named(build.records(steps=120, slow_rank=2, slow_by=1.6), "limping"),
        named(build.records(steps=120), "usual"),
    ),
    "alike": lambda: (build.records(steps=120), build.records(steps=120, seed=2)),
    "tokens": lambda: (
        named(build.records(steps=120), "small"),
        named(bigger(build.records(steps=120, data=0.3), 4), "large"),
    ),
    "data": lambda: (
        named(build.records(steps=120, data=0.5), "starved"),
        named(
            build.records(steps=120),
            "fed",
            data_card=CARD | {"fingerprint": "other", "vocabulary_pieces": 99, "corpora": [{"name": "wmt"}]},
        ),
    ),
    "vocabularies": lambda: (
        named(build.records(steps=120, **SCORED), "one"),
        named(
            build.records(steps=120, **SCORED),
            "other",
            data_card=CARD | {"vocabulary_sha256": "77", "vocabulary_pieces": 16_000},
        ),
    ),
    "smoothing": lambda: (
        named(build.records(steps=120, **SCORED), "one"),
        named(build.records(steps=120, **SCORED), "other", settings={"train.label_smoothing": 0.0}),
    ),
    "cores": lambda: (
        named(build.records(steps=120, **ONE_HOST, counted_cores=[0.98, 0.98]), "alone"),
        named(
            shared_cores(
                {"burn": 0.9}, **ONE_HOST, steps=120, forward=0.6, backward=1.2, counted_cores=[0.5, 0.5]
            ),
            "shared",
        ),
    ),
    "ways": lambda: (
        named(build.records(steps=120, mode="diloco", exchange_every=8), "rarely"),
        named(build.records(steps=120, exchange=0.4, shape="hierarchical", ranks=8), "always", device="V100"),
    ),
    "asked-ways": lambda: (
        asked(build.records(steps=120), "one", mode="allreduce", inner_steps=1, wire="fp32"),
        asked(
            build.records(steps=120, mode="diloco", exchange_every=16, wire="bf16"),
            "other",
            mode="diloco",
            inner_steps=64,
            wire="bf16",
        ),
    ),
    "asked-auto": lambda: (
        asked(build.records(steps=120), "one", mode="auto"),
        asked(
            build.records(steps=120, mode="diloco", exchange_every=16), "other", mode="diloco", inner_steps=16
        ),
    ),
    "hosts": lambda: (
        named(build.records(steps=120, hosts=1, exchange=0.1), "together"),
        named(build.records(steps=120, hosts=4, exchange=0.4), "apart"),
    ),
    "sizes": lambda: (
        named(build.records(steps=120), "small"),
        named(
            bigger(
                build.records(steps=120, data=0.02, forward=0.6, backward=1.2, exchange=0.04, optimizer=0.1),
                2,
            ),
            "large",
        ),
    ),
    "exchange-of-one": lambda: (
        named(build.records(steps=120, ranks=1, hosts=1, exchange=0.0), "alone"),
        named(build.records(steps=120, exchange=0.3, gpu_watts=200.0), "many", source="other", hosts=[]),
    ),
    "causes": lambda: (
        named(with_steps(build.records(steps=120), exchange_least=lambda least, _: least * np.nan), "one"),
        named(build.records(steps=120, exchange=0.5), "other"),
    ),
    "mean-unknown": lambda: (
        named(with_steps(build.records(steps=120), exchange_mean=lambda mean, _: mean * np.nan), "one"),
        named(build.records(steps=120, exchange=0.5), "other"),
    ),
    "phases-unknown": lambda: (build.foreign(), named(build.records(steps=120), "ours")),
    "steps-unknown": lambda: (build.NOTHING, named(build.records(steps=120), "ours")),
    "moved": lambda: (
        build.in_turn(PLAIN, replace(PLAIN, steps=60, ranks=2)),
        named(build.records(steps=120, evaluate_every=10), "still"),
    ),
}
