"""Runs, and pairs of runs, whose answers are kept: made by hand for what chance does not bring about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dragoman.measure.records import PHASES, EvaluationRow, Event, Records, RunFacts
from tests.explain import build
from tests.explain.build import BEGAN, CARD, PARAMETERS, Run

GB = 1e9


def slowed(phase: str, seconds: float, since: int = 200, until: int = 400, **changes: Any) -> Records:
    """A run in which each step from `since` to `until` takes longer, by so many seconds in one phase."""
    records = build.records(**changes)
    later = (records.steps["step"] > since) & (records.steps["step"] <= until)
    for statistic in ("mean", "least", "most"):
        if phase != "waiting" or statistic != "least":
            name = "exchange" if phase == "waiting" else phase
            records.steps[f"{name}_{statistic}"] = records.steps[f"{name}_{statistic}"] + seconds * later
    records.steps["seconds"] = records.steps["seconds"] + seconds * later
    records.steps["ended"] = records.steps["ended"] + np.cumsum(seconds * later)
    return records


def paces(*spells: tuple[int, float], **changes: Any) -> Records:
    """A run whose spells have so many steps, each so many times as long as usual in every phase."""
    records = build.records(steps=sum(steps for steps, _ in spells), **changes)
    times = np.concatenate([np.full(steps, factor) for steps, factor in spells])
    for name in ("seconds", *(f"{phase}_{kind}" for phase in PHASES for kind in ("mean", "least", "most"))):
        records.steps[name] = records.steps[name] * times
    records.steps["ended"] = BEGAN + 10 + np.cumsum(records.steps["seconds"])
    return records


def with_memory(*hosts: np.ndarray, total: float = 64 * GB) -> Records:
    """Each host's memory in use, a row per second from the first step on."""
    records = build.records(changes={"host_memory_bytes": [int(total)] * len(hosts)})
    records.hosts = Records(
        RunFacts(),
        hosts={
            "host": np.concatenate([np.full(len(memory), number) for number, memory in enumerate(hosts)]),
            "time": np.concatenate([BEGAN + 10 + np.arange(len(memory)) for memory in hosts]),
            "span": np.ones(sum(map(len, hosts))),
            "memory_bytes": np.concatenate(hosts),
        },
    ).hosts
    return records


def shared_cores(
    programs: dict[str, float], stolen: float = 0.0, limited: float = 0.0, **run: Any
) -> Records:
    """A run beside other programs that used so many cores of host 0, at two looks of unequal length."""
    records = build.records(**run)
    names, count = list(programs) * 2, len(programs)
    records.programs = {
        "host": np.zeros(2 * count),
        "time": np.repeat([BEGAN + 30, BEGAN + 60], count),
        "span": np.repeat([1.0, 3.0], count),
        "name": np.array(names, dtype=str),
        "cores": np.array([programs[name] * (1 + index // count) for index, name in enumerate(names)]),
    }
    records.hosts = {
        **records.hosts,
        "stolen_share": np.array([stolen]),
        "throttled_share": np.array([limited]),
    }
    return records


def restarted() -> Records:
    """Killed after 150 steps, and finished by a second attempt; somebody set the clock in both."""
    records = build.in_turn(Run(steps=150, reason=None), Run(steps=250, seed=3))
    one, two = records.attempts
    one.jumps_during, two.jump_before = [-40.0], 90.0
    one.clock_offset = two.clock_offset = BEGAN
    return records


def without_placements(first: Run, then: Run) -> Records:
    """Moved as `build.in_turn` moves it, when attempts did not keep their placement yet."""
    records = build.in_turn(first, then)
    for attempt in records.attempts:
        attempt.placement = {}
    return records


def set_back(records: Records, at: int = 100, seconds: float = 500.0) -> Records:
    """The same run by a wall clock that somebody set back in its midst."""
    records.steps["ended"] = records.steps["ended"] - seconds * (records.steps["step"] > at)
    records.attempts[0].ended = float(records.steps["ended"][-1]) + 5
    return records


def saved_beside(seconds: float, slower: float = 0.3) -> Records:
    """Checkpoints are written beside the steps, which take longer meanwhile."""
    records = build.records()
    begins = records.steps["ended"][99::100]
    records.events += [
        Event(time=float(begin), attempt=1, step=100 * (number + 1), kind="writing", seconds=seconds)
        for number, begin in enumerate(begins)
    ]
    for begin in begins:
        ended = records.steps["ended"]
        beside = (ended > begin) & (ended - records.steps["seconds"] < begin + seconds)
        records.steps["seconds"] = records.steps["seconds"] + slower * beside
    return records


def by_interface(carried: dict[str, float], spans: float = 1.0, names: list[str] | None = None) -> Records:
    """A run of which only interfaces tell the bytes: so many times those that the exchange must send."""
    records = build.records(nic_span=spans, recorded_interface="eth1")
    nics = records.nics
    factor = np.array([carried.get(str(name), 0.0) for name in nics["interface"]])
    gradients = np.tile(
        nics["sent_bytes"][(nics["host"] == 0) & (nics["interface"] == "eth1")],
        2 * len(np.unique(nics["interface"])),
    )
    sent = factor * gradients
    records.nics = {**nics, "sent_bytes": sent, "received_bytes": 0.9 * sent}
    records.facts.gradient_interfaces = ["eth1", "eth1"] if names is None else names
    return records


def unevenly(records: Records) -> Records:
    """The same run whose second host received a third more."""
    nics = records.nics
    more = np.where(nics["host"] == 1, 4 / 3, 1.0)
    records.nics = {**nics, "received_bytes": nics["received_bytes"] * more}
    return records


def of_muon(**sizes: int) -> RunFacts:
    settings = {"train.optimizer": "muon", "model.width": 64, "model.heads": 4, "model.feedforward": 128}
    settings |= {"model.encoder_layers": 2, "model.decoder_layers": 3}
    return RunFacts(
        parameters=300_000,
        settings=settings,
        data_card={"vocabulary_pieces": 1_000},
        checkpoint_files=[{"name": name, "bytes": size} for name, size in sizes.items()],
    )


def of_files(bytes_per_parameter: float, **facts: Any) -> Records:
    files = [{"name": "all", "bytes": int(bytes_per_parameter * PARAMETERS), "purpose": "all"}]
    return Records(RunFacts(parameters=PARAMETERS, checkpoint_files=files, **facts))


def learning(
    losses: list[float] | list[None],
    sample: list[float] | None = None,
    bleu: list[float] | None = None,
    first: int = 100,
    **run: Any,
) -> Records:
    """A run with these evaluations, one every hundred steps."""
    records = build.records(**{"steps": max(100, 100 * len(losses)), "evaluate_every": 100, **run})
    records.evaluations = [
        EvaluationRow(
            step=first + 100 * index,
            attempt=1,
            time=BEGAN,
            eval_loss=loss,
            train_sample_loss=sample[index] if sample else None,
            bleu=bleu[index] if bleu else None,
            bleu_signature="case:mixed" if bleu else None,
        )
        for index, loss in enumerate(losses)
    ]
    return records


def by_another_way(last: float, ways: int = 2) -> Records:
    """Eight evaluations of plain training, four by bf16, the last of which has this loss."""
    falling = [2 + 3 * 0.7**index for index in range(12)]
    records = learning([*falling[:-1], last], wire="bf16", schedule="constant")
    names = ["flat all-reduce in fp32", "flat all-reduce in bf16"][-ways:]
    records.events += [
        Event(time=BEGAN, attempt=1, step=800 * index, kind="exchange", detail=name)
        for index, name in enumerate(names)
    ]
    return records


def with_steps(records: Records, **columns: Any) -> Records:
    for name, change in columns.items():
        records.steps[name] = change(records.steps[name], records.steps["step"])
    return records


def named(records: Records, name: str, **facts: Any) -> Records:
    """With another name and other facts, and the settings and card that make scores comparable."""
    settings = records.facts.settings | {"train.label_smoothing": 0.1}
    known = {"settings": settings, "data_card": CARD | {"vocabulary_sha256": "5e1f", "fingerprint": "3f"}}
    records.facts = records.facts.model_copy(update={"name": name, **known, **facts})
    return records


def with_cores(records: Records, packed: str) -> Records:
    records.hosts = {**records.hosts, "core_shares": np.array([packed])}
    return records


def without(records: Records, *names: str, times: bool = True) -> Records:
    """The same run of which some tables or rows were never recorded; nor when steps ended."""
    for name in names:
        setattr(records, name, getattr(build.NOTHING, name))
    if not times:
        records.steps["ended"] = records.steps["ended"] * np.nan
        records.evaluations, records.gpus = [], build.NOTHING.gpus
    return records


def gpus_in_steps(records: Records) -> Records:
    """The meters read less power while evaluations run, and one GPU of two reads nothing."""
    gpus, ended = records.gpus, records.steps["ended"]
    beside = np.array([not ((ended - 1 < time) & (time < ended)).any() for time in gpus["time"]])
    power = np.where(beside, 40.0, gpus["power_watts"])
    records.gpus = {**gpus, "power_watts": power, "gpu": np.arange(len(power)) % 2.0}
    return records


def odd_probes(records: Records) -> Records:
    for probe in records.probes_of("exchange"):
        probe.numbers["step_seconds_without_exchange"] *= 0.6
    return records


def round_trips(records: Records, seconds: float) -> Records:
    for probe in records.probes_of("link"):
        probe.numbers["round_trip_seconds"] = seconds
    return records


def by_intervals(records: Records) -> Records:
    """The windows' bytes differ, as their seconds do."""
    windows = records.windows
    longer = 1 + windows["first_step"] / 400
    sent = windows["sent_bytes"] * longer
    records.windows = {**windows, "sent_bytes": sent, "exchange": windows["exchange"] * longer**2}
    return records


def fitted(records: Records, at: int) -> Records:
    records.facts.settings["train.fitted_at"] = at
    return records


def settings_gone(records: Records) -> Records:
    records.facts.settings = {}
    return records


def asked(records: Records, name: str, **settings: Any) -> Records:
    """The same run, whose settings ask for this way of exchanging."""
    return named(records, name, settings={f"sync.{key}": value for key, value in settings.items()})


def bigger(records: Records, times: float) -> Records:
    records.steps["target_tokens"] = records.steps["target_tokens"] * times
    return records


TIME = ("step_time", "network")
WHERE = ("network", "step_network", "device_utilisation", "step_time")
NETWORK = ("network", "step_network")
DEVICE = ("device_utilisation",)
LEARNT = ("convergence", "overfitting")
SAVED = ("checkpoint_files", "checkpoint_size")
ONE_HOST = {"hosts": 1, "ranks": 2}
SECONDS = np.arange(300.0)
RISING = 10 * GB + 0.02 * GB * SECONDS + 0.05 * GB * np.sin(SECONDS)
FALLING = [2 + 3 * 0.6**index for index in range(12)]
BACK = [3.0, 2.4, 2.0, 1.9, 2.0, 2.2, 2.5, 2.8]
DOWN = [2.9, 2.2, 1.7, 1.5, 1.3, 1.1, 1.0, 0.9]
ENDED_BACK = [1.0, 5.0, 9.0, 12.0, 13.0, 14.5, 15.0, 15.5]

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
    "overfits-and-bleu-rises": (lambda: learning(BACK, DOWN, ENDED_BACK), LEARNT),
    "overfits-and-bleu-does-not": (
        lambda: learning(BACK, DOWN, [*ENDED_BACK[:4], 12.2, 12.4, 12.1, 12.0]),
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
        named(build.records(steps=120, **SCORED), "other", data_card=CARD | {"vocabulary_sha256": "77"}),
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
