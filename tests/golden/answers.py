"""Answers to invented runs, each with something in it that no recorded run has."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dragoman.config import Model
from dragoman.explain.finding import Finding
from dragoman.explain.run import explain
from dragoman.measure.records import Fault, Records, RunFacts
from tests.explain import (
    build,
    test_convergence,
    test_duration,
    test_exchange_quality,
    test_learning_rate,
    test_memory,
    test_network,
    test_overfitting,
)
from tests.explain.altered import elastic
from tests.explain.build import Run
from tests.explain.faulty import Lost, with_faults
from tests.explain.test_changes import slowed
from tests.explain.test_device import beside, meters

Cases = Iterator[tuple[str, Records]]


def page() -> str:
    parts = []
    for question, cases in QUESTIONS.items():
        parts.append(f"==== {question}\n")
        for title, records in cases():
            (found,) = [finding for finding in explain(records, price_per_hour=3.0) if finding.id == question]
            parts.append(f"== {title}\n{written(found)}\n")
    return "\n".join(parts)


def written(finding: Finding) -> str:
    lines = [f"[{finding.verdict}, {finding.confidence}]", finding.answer]
    lines += [f"  - {line}" for line in finding.evidence]
    lines += [f"  try: {line}" for line in finding.advice]
    return "\n".join(lines)


# --- the network ------------------------------------------------------------------------------------------


def network() -> Cases:
    yield "nothing is wrong", build.records()
    yield "half of each step", build.records(exchange=0.2)
    yield "nobody said how many machines", build.records(changes={"hosts": [], "rank_hosts": []})
    half = {"wire": "bf16", "gradient_bytes": 2 * build.PARAMETERS}
    for facts in (half, {"exchange": "hierarchical"}, {"mode": "diloco", "exchange_every": 16}):
        names = ", ".join(map(str, facts.values()))
        yield f"gradients by {names}", build.records(exchange=2.9, changes=facts)
    yield "other traffic", build.records(exchange=0.5, other_bytes_per_second=1.5e8)
    yield "other traffic on 64 hosts", _many_hosts()
    yield "the wrong interface", build.records(interface="eth0")
    yield "half of the bytes", _half_of_the_bytes()
    yield "an interface that nobody named", build.records(changes={"gradient_interfaces": []})
    yield "a probe that does not fit", _odd_probe()
    yield "one machine", build.records(hosts=1, slow_rank=1, slow_by=1.5)
    yield "a link that slows down", slowed(build.records(), slice(250, None), "exchange", 0.9)
    yield "two placements", _moved()
    yield "step times and a rate", test_network.only_step_time(1e9)
    yield "step times, a rate and power", test_network.only_step_time(1.7e9, watts=42)
    yield "step times and a fast link", test_network.only_step_time(100e9)
    yield "step times alone", build.foreign()


def _many_hosts() -> Records:
    records = build.records(exchange=0.5, steps=60, ranks=64, hosts=64, other_bytes_per_second=1.5e8)
    rows = records.nics["interface"] == "eth1"
    records.nics["sent_bytes"][rows] *= 1 + records.nics["host"][rows] / 640
    return records


def _half_of_the_bytes() -> Records:
    records = build.records()
    for way in ("sent_bytes", "received_bytes"):
        records.nics[way] = records.nics[way] / 2
    return records


def _odd_probe() -> Records:
    records = build.records(exchange=1.0)
    for probe in records.probes_of("exchange"):
        probe.numbers["step_seconds"] = probe.numbers["step_seconds_without_exchange"] * 1.02
    return records


def _moved() -> Records:
    slow = Run(steps=400, exchange=1.0, link_bits_per_second=1e9)
    return build.in_turn(slow, Run(steps=100, ranks=1, hosts=1, exchange=0.0))


def step_network() -> Cases:
    yield "nothing is wrong", build.records()
    yield "a steady exchange", build.records(exchange=2.0, exchange_jitter=0.01, jitter=0.3)
    yield "an exchange that varies, in bursts", build.records(exchange=0.15, exchange_jitter=0.5)
    yield "a slow link", build.records(exchange=2.92, link_bits_per_second=1e9)
    yield "the wrong interface", build.records(interface="eth0")
    yield "one machine", build.records(hosts=1)
    yield "step times and a rate", test_network.only_step_time(1e9)


# --- the devices ------------------------------------------------------------------------------------------


def device() -> Cases:
    yield "nothing is wrong", build.records()
    yield "the network", build.records(exchange=0.5)
    yield "between ranks of one machine", build.records(hosts=1, exchange=0.5)
    yield "data", build.records(data=0.5)
    yield "a slow rank", build.records(slow_rank=2, slow_by=1.8)
    yield "a rank whose data come late", build.records(slow_rank=1, slow_data=1.0)
    yield "a rank far slower than the others", build.records(ranks=2, slow_rank=1, slow_data=400.0)
    yield "ranks that are slow in turns", build.records(jitter=0.9)
    shared = build.records(hosts=1, ranks=2, counted_cores=[0.52, 0.52])
    yield "cores that others use", beside(shared, burn=1.4, cron=0.1)
    slow = build.records(slow_rank=0, slow_by=2.0, counted_cores=[0.5, 1, 1, 1])
    yield "a slow host whose core is shared", beside(slow, burn=0.5)
    yield "cores of two hosts, one of them not seen", beside(build.records(counted_cores=[0.5] * 4), burn=0.5)
    yield "cores that nobody is seen to use", build.records(hosts=1, counted_cores=[0.4] * 4)
    yield "a limit on the CPU, and a virtual machine", _limited()
    often = {"evaluate_every": 5, "checkpoint_every": 10, "checkpoint_seconds": 5.0}
    yield "evaluations and a slow disk", build.records(**often)
    yield "GPUs busy at little power", build.records(exchange=2.9, gpu_watts=42.0)
    yield "GPUs busy in a long exchange", build.records(exchange=2.9, gpu_watts=180.0)
    yield "meters alone", meters(42)
    yield "meters of one machine alone", meters(42, hosts=1)


def _limited() -> Records:
    records = build.records(hosts=1, counted_cores=[0.4] * 4)
    records.hosts |= {"throttled_share": np.array([0.6]), "stolen_share": np.array([0.3])}
    return records


# --- time -------------------------------------------------------------------------------------------------


def duration() -> Cases:
    yield "a run under way", build.records(reason=None, wanted_steps=1000)
    yield "a restart", test_duration.restarted()
    yield "two placements", _moved()
    yield "faults", elastic()
    often = [Lost(step=step, kind="host_unreachable", rank=None) for step in range(50, 400, 70)]
    yield "a host lost again and again", with_faults(build.records(), *often)
    yield "a fault that ended the run", _ended_by_a_fault()
    yield "a clock that was set", _clock_set()
    yield "memory that grows", test_memory.with_memory(test_memory.RISING)
    yield "step times alone", build.foreign()


def _ended_by_a_fault() -> Records:
    records = build.records(reason=None)
    ended = float(records.steps["ended"][-1])
    records.faults = [Fault(time=ended, attempt=1, step=400, kind="disk_full", host="host0", rank=0)]
    return records


def _clock_set() -> Records:
    records = build.records()
    records.attempts[0].clock_offset = 1.0
    records.attempts[0].jumps_during = [3600.0, -86_400.0]
    return records


def step_time() -> Cases:
    yield "nothing is wrong", build.records()
    yield "a pace that changes", slowed(build.records(), slice(250, None), "data", 0.9)
    yield "step times alone", build.foreign()


# --- learning ---------------------------------------------------------------------------------------------


def convergence() -> Cases:
    plain, diloco, falling = (getattr(test_exchange_quality, name) for name in ("PLAIN", "DILOCO", "falling"))
    planned = test_convergence.planned
    yield "stopped early", planned("linear", 1400, 611, 50)
    yield "under way", _under_way()
    yield "one evaluation of a plan", planned("linear", 1400, 611, 400)
    yield "a schedule that has ended", planned("linear", 600, 600, 50)
    yield "a schedule without end", planned("inverse_sqrt", 600, 600, 50)
    yield "two evaluations", build.evaluated(count=2, eval_loss=lambda s: 2 + 0 * s)
    flat = {"eval_loss": lambda s: 6.9 + 0 * s, "bleu": lambda s: 0.2 + 0 * s}
    yield "nothing learnt", build.evaluated(**flat, bleu_noise=0.02)
    yield (
        "a loss that passed its best",
        build.evaluated(eval_loss=test_overfitting.overfitted, train_sample_loss=test_overfitting.memorised),
    )
    yield "worse than guessing", _worse_than_guessing()
    yield "worse than the first step", _worse_than_the_first_step()
    yield "gradients that are not finite", build.records(reason="diverged")
    yield "fine-tuning that harmed", _harmed()
    yield "DiLoCo without harm", test_exchange_quality.run(falling, (0, plain), (12_000, diloco))
    yield (
        "DiLoCo with harm",
        test_exchange_quality.run(lambda s: falling(s) + 0.5 * (s > 12_000), (0, plain), (12_000, diloco)),
    )
    yield "DiLoCo from the beginning", test_exchange_quality.run(falling, (0, diloco))


def _under_way() -> Records:
    records = test_convergence.planned("linear", 1400, 611, 50)
    records.attempts[0].ended = records.attempts[0].reason = None
    return records


def _worse_than_guessing() -> Records:
    curve = test_convergence.recovering
    records = build.evaluated(eval_loss=curve, train_sample_loss=curve, count=8, every=50)
    records.facts.data_card = {"vocabulary_pieces": 64}
    return records


def _worse_than_the_first_step() -> Records:
    curve = test_convergence.recovering
    return build.records(eval_loss=curve, sample_loss=curve, loss=lambda n: np.where(n == 1, 5.3, curve(n)))


def _harmed() -> Records:
    records = build.evaluated(eval_loss=lambda s: 2 + 1e-5 * s, bleu=lambda s: 30 - 1e-4 * s)
    first = records.evaluations[0].model_copy(update={"step": 0, "eval_loss": 1.5, "bleu": 35.0})
    records.evaluations.insert(0, first)
    return records


def overfitting() -> Cases:
    overfitted, memorised, settled = (
        getattr(test_overfitting, name) for name in ("overfitted", "memorised", "settled")
    )
    rising = build.evaluated(eval_loss=overfitted, train_sample_loss=memorised)
    rising.facts.settings["model.dropout"] = 0.1
    yield "a rising loss", rising
    yield (
        "a rising loss and BLEU",
        build.evaluated(eval_loss=overfitted, train_sample_loss=memorised, bleu=lambda s: 20 + 5e-4 * s),
    )
    yield "a gap that widens", build.evaluated(count=30, eval_loss=settled, train_sample_loss=memorised)
    yield (
        "both losses rise",
        build.evaluated(
            eval_loss=lambda s: settled(s) + 4.0 * (s > 12_000),
            train_sample_loss=lambda s: settled(s) + 4.0 * (s > 12_000),
        ),
    )
    yield "no sample of training pairs", build.evaluated(eval_loss=overfitted)
    yield "three evaluations", build.evaluated(count=3, eval_loss=settled, train_sample_loss=settled)
    yield "before the first evaluation", build.records(steps=40, evaluate_every=50)


def learning_rate() -> Cases:
    for schedule in test_learning_rate.SCHEDULES:
        yield schedule, test_learning_rate.applied(schedule)
    yield "before the peak", test_learning_rate.applied("transformer", steps=20)
    other = test_learning_rate.applied("linear")
    other.steps["learning_rate"] = np.concatenate((other.steps["learning_rate"][::2], np.zeros(150)))
    yield "stepped twice per update", other
    unplanned = test_learning_rate.applied("cosine")
    unplanned.facts = RunFacts()
    yield "rates alone", unplanned


# --- data and checkpoints ---------------------------------------------------------------------------------


def training_set() -> Cases:
    yield "a card with everything", build.records()
    yield "a card with little", Records(RunFacts(data_card={"parts": {"train": {"pairs": 12}}}))


def checkpoint_files() -> Cases:
    yield "three files", build.records()


def checkpoint_size() -> Cases:
    yield "as the arithmetic has it", build.records()
    for each in (4, 8, 14, 20):
        yield f"{each} bytes per parameter", _checkpoint(each)
    shape = {"train.optimizer": "muon", **{f"model.{name}": value for name, value in Model()}}
    yield "Muon", _checkpoint(10, settings=shape, data_card={"vocabulary_pieces": 32_768})
    yield "DiLoCo", _checkpoint(16, mode="diloco")
    yield "none yet", Records(RunFacts(parameters=60_880_896))


def _checkpoint(each: int, **facts: object) -> Records:
    files = [{"name": "model.ckpt", "bytes": each * 100_000_000, "purpose": ""}]
    return Records(RunFacts.model_validate({"parameters": 100_000_000, "checkpoint_files": files, **facts}))


def with_nothing(cases: Callable[[], Cases]) -> Callable[[], Cases]:
    """These, and a run of which nothing was recorded."""

    def all_of_them() -> Cases:
        yield from cases()
        yield "nothing was recorded", build.NOTHING

    return all_of_them


QUESTIONS = {
    "duration": with_nothing(duration),
    "convergence": with_nothing(convergence),
    "overfitting": with_nothing(overfitting),
    "device_utilisation": with_nothing(device),
    "network": with_nothing(network),
    "learning_rate": with_nothing(learning_rate),
    "training_set": with_nothing(training_set),
    "checkpoint_files": with_nothing(checkpoint_files),
    "checkpoint_size": with_nothing(checkpoint_size),
    "step_time": with_nothing(step_time),
    "step_network": with_nothing(step_network),
}
