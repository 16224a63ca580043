"""Records of build.py, altered in ways for which it has no option."""

from __future__ import annotations

from typing import Any

import numpy as np

from dragoman.measure.records import PHASES, EvaluationRow, Event, Records, RunFacts
from tests.explain import build
from tests.explain.build import BEGAN, CARD, PARAMETERS, Run
from tests.explain.faulty import Lost, with_faults

GB = 1e9
SECONDS = np.arange(300.0)
RISING = 10 * GB + 0.02 * GB * SECONDS + 0.05 * GB * np.sin(SECONDS)  # memory in use, in bytes


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


def elastic(*more: Lost) -> Records:
    """Three faults, and a host that came back; what is left of the run continues each time."""
    whole = {"hosts": ["host0", "host1"], "rank_hosts": [0, 0, 1, 1], "ranks": 4}
    alone = {"hosts": ["host0"], "rank_hosts": [0, 0], "ranks": 2}
    return with_faults(
        build.records(exchange=0.4),
        Lost(60, 6.0, repeated=3, kind="killed", detail="SIGKILL", stacks="stacks/host0-rank0.txt"),
        Lost(150, 14.0, kind="host_unreachable", rank=None, detail="silent for 5 s", placement=alone),
        Lost(210, 3.2, joins="host1", placement=whole),
        Lost(300, 2.5, repeated=1, kind="out_of_memory", rank=0, host="host0"),
        *more,
    )


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
    """Two GPUs are read in turns, and draw less power between steps."""
    gpus, ended = records.gpus, records.steps["ended"]
    is_between = np.array([not ((ended - 1 < time) & (time < ended)).any() for time in gpus["time"]])
    power = np.where(is_between, 40.0, gpus["power_watts"])
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
