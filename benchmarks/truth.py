"""The truth bench: small real trainings with a known cause injected, and whether the report names it.

    python benchmarks/truth.py [--only NAME ...] [--repeat 3] [--out truth.jsonl]

Every scenario says what is in the training's way, and which verdicts must come out. What is in the way of
several hosts is taken away later in the training, and put back, by turns: the share of time that a report on
the steps before lays to the cause is compared with the share by which steps without it are shorter. Needs
root for the scenarios with several hosts. A scenario takes 20 to 60 s on two cores; the command ends with
exit code 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.trainings import Outcome, Setting, train, write_corpus
from testbed import why_not

SHARE_TOLERANCE = 0.10  # of the time, between the report's share and what removing the cause shows
CORPORA: dict[str, dict[str, Any]] = {
    "plenty": {"name": "demo", "pairs": 20_000},
    "little": {"name": "demo", "pairs": 300, "vocabulary": 400},
    "easy": {"name": "reversed", "pairs": 4_000, "vocabulary": 64},
}
# About 1.2 million parameters and a quarter of a second of computing per step on each of two cores.
SPEED = """
[model]
width = 128
heads = 4
encoder_layers = 2
decoder_layers = 2
feedforward = 512
[data]
step = 2048
microbatch = 512
[train]
steps = 80
schedule = "constant"
rate = 0.002
warmup_steps = 20
clip_norm = 1.0
[evaluate]
every = 1000
beam = 1
train_sample_pairs = 60
[checkpoint]
every = 1000
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

Share = Callable[[Outcome], float]


def of(id: str, name: str, times: float = 1.0) -> Share:
    return lambda outcome: times * outcome.number(id, name)


@dataclass(frozen=True)
class Scenario:
    cause: str
    expected: Mapping[str, str]  # finding -> verdict; several with | between them
    where: Setting = Setting()
    settings: tuple[str, ...] = ()
    config: str = "speed"
    corpus: str = "plenty"
    says: tuple[tuple[str, str], ...] = ()  # finding and words that its answer or advice must have
    silent: tuple[tuple[str, str], ...] = ()  # and words that it must not have
    share: Share | None = None  # of a step that the report lays to the cause, where there is a relief


HOSTS = Setting(hosts=2)
EXPOSED = of("network", "exposed_share")
STRAGGLER = of("network", "straggler_share", 2.0)  # the mean over two ranks, of which one waits
BUSY = {"device_utilisation": "computing", "network": "single_machine"}
NO_MISMATCH = (("network", "that the exchange needs"),)


def slow_link(rate: str, verdict: str, device: str, relief_step: int = 40, turns: int = 6) -> Scenario:
    where = Setting(hosts=2, rate=rate, relief_step=relief_step, turns=turns)
    return Scenario(
        f"link of {rate}/s between two hosts",
        {"network": verdict, "device_utilisation": device},
        where,
        (f"train.steps={where.steps}",),
        silent=NO_MISMATCH,
        share=EXPOSED,
    )


SCENARIOS = {
    "compute-bound": Scenario("nothing: one worker on one core", BUSY),
    "two-workers": Scenario("nothing: two workers on one machine", BUSY, Setting(workers=2)),
    "fast-link": Scenario(
        "nothing: two hosts, links as fast as memory",
        {"network": "not_bottleneck|balanced", "device_utilisation": "computing"},
        HOSTS,
        silent=NO_MISMATCH,
    ),
    "slow-link-1000": slow_link("1000mbit", "not_bottleneck|balanced", "computing", turns=12),
    "slow-link-300": slow_link("300mbit", "bottleneck", "waiting_network"),
    "slow-link-100": slow_link("100mbit", "bottleneck", "waiting_network"),
    "slow-link-30": slow_link("30mbit", "bottleneck", "waiting_network", 20),
    "slow-host": Scenario(
        "host h1 has 35 % of a core",
        {"network": "not_bottleneck|balanced", "device_utilisation": "waiting_straggler"},
        Setting(hosts=2, slow_host=0.35, relief_step=40),
        ("train.steps=105",),
        says=(("device_utilisation", "rank 1 on h1"), ("network", "rank 1 on h1")),
        silent=NO_MISMATCH,
        share=STRAGGLER,
    ),
    "busy-neighbour": Scenario(
        "another program computes on the core of h1",
        {"network": "not_bottleneck|balanced", "device_utilisation": "waiting_straggler"},
        Setting(hosts=2, busy_neighbour=True, relief_step=40),
        ("train.steps=105",),
        says=(("device_utilisation", "rank 1 on h1"),),
        share=STRAGGLER,
    ),
    "other-traffic": Scenario(
        "another program sends 100 Mbit/s over a link of 300 Mbit/s",
        {"network": "bottleneck", "device_utilisation": "waiting_network"},
        Setting(hosts=2, rate="300mbit", traffic="100mbit", relief_step=40),
        ("train.steps=105",),
        says=(("network", "other traffic"),),
        share=EXPOSED,
    ),
    "slow-data": Scenario(
        "every microbatch takes 0.1 s longer to read",
        {"device_utilisation": "waiting_data", "network": "single_machine"},
        Setting(hindrances=("slow-reader=0.1",)),
        ("train.steps=50",),
    ),
    "frequent-evaluation": Scenario(
        "evaluation after every 4 steps",
        BUSY,
        settings=("evaluate.every=4",),
        says=(("device_utilisation", "evaluate half as often"),),
    ),
    "slow-disk": Scenario(
        "a checkpoint after every 4 steps, on a disk that writes 10 MB/s",
        BUSY,
        Setting(workers=2, hindrances=("slow-disk=10e6",)),
        ("checkpoint.every=4",),
        says=(("device_utilisation", "write checkpoints half as often"),),
    ),
    "overfitting": Scenario(
        "300 training pairs, again and again",
        {"overfitting": "yes"},
        config="learning",
        corpus="little",
    ),
    "converged": Scenario(
        "an easy task, learnt to the end",
        {"convergence": "converged", "overfitting": "no"},
        settings=("train.steps=1500", "evaluate.every=75"),
        config="learning",
        corpus="easy",
    ),
    "too-short": Scenario(
        "stopped while the loss was falling",
        {"convergence": "improving", "overfitting": "no"},
        settings=("train.steps=150", "evaluate.every=15", "train.rate=0.002"),
        config="learning",
        corpus="plenty",
    ),
    "diverged": Scenario(
        "a learning rate that rises without end",
        {"convergence": "diverged"},
        settings=("train.rate=3", "train.warmup_steps=600", "train.steps=600", "train.clip_norm=0"),
        config="learning",
        corpus="easy",
    ),
}


def wrong(scenario: Scenario, outcome: Outcome) -> list[str]:
    """Everything in which the report differs from the truth."""
    found = []
    for id, verdict in scenario.expected.items():
        if outcome.findings[id].verdict not in verdict.split("|"):
            found.append(f"{id} is {outcome.findings[id].verdict}, not {verdict}")
    for id, words in scenario.says:
        if words not in _text(outcome, id):
            found.append(f"{id} does not say '{words}'")
    for id, words in scenario.silent:
        if words in _text(outcome, id):
            found.append(f"{id} says '{words}'")
    saved = outcome.saved
    if scenario.share and saved is not None and not abs(scenario.share(outcome) - saved) <= SHARE_TOLERANCE:
        found.append(f"share {scenario.share(outcome):.2f}, but its removal saves {saved:.2f}")
    return found


def _text(outcome: Outcome, id: str) -> str:
    finding = outcome.findings[id]
    return " ".join([finding.answer, *finding.advice])


class Bench:
    """Trains scenarios in a folder; corpora are made once."""

    def __init__(self, folder: Path):
        self.folder = folder

    def train(self, name: str, scenario: Scenario) -> Outcome:
        config = self.folder / f"{scenario.config}.toml"
        config.write_text(CONFIGS[scenario.config])
        run = self.folder / "runs" / f"{name}-{time.time_ns()}"
        return train(config, self._data(scenario.corpus), run, scenario.settings, scenario.where)

    def _data(self, name: str) -> Path:
        made = self.folder / "corpora" / name / "data"
        return made if made.exists() else write_corpus(made.parent, **CORPORA[name])


def row(name: str, repetition: int, bench: Bench) -> dict[str, Any]:
    """A scenario's result, as it stands in the file of results."""
    scenario = SCENARIOS[name]
    outcome = bench.train(name, scenario)
    ids = ("network", "device_utilisation", "convergence", "overfitting")
    plain = {
        id: {
            key: value
            for key, value in outcome.findings[id].numbers.items()
            if isinstance(value, int | float)
        }
        for id in (*ids, "step_time", "duration")
    }
    return {
        "scenario": name,
        "cause": scenario.cause,
        "repetition": repetition,
        "expected": dict(scenario.expected),
        "found": {id: outcome.findings[id].verdict for id in ids},
        "wrong": wrong(scenario, outcome),
        "share": scenario.share(outcome) if scenario.share else None,
        "share_saved_by_removal": outcome.saved,
        "answers": {id: outcome.findings[id].answer for id in ids},
        "numbers": plain,
    }


def line(result: Mapping[str, Any]) -> str:
    verdicts = ", ".join(f"{id} {result['found'][id]}" for id in result["expected"])
    shares = ""
    if result["share_saved_by_removal"] is not None:
        shares = f"{100 * result['share']:4.0f} %  {100 * result['share_saved_by_removal']:4.0f} %"
    judgement = "; ".join(result["wrong"]) or "right"
    return f"{result['scenario']:20} {shares:14} {verdicts:62} {judgement}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), metavar="NAME")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("truth.jsonl"), help="results, a line each")
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder, removed)")
    arguments = parser.parse_args()
    if any(SCENARIOS[name].where.hosts for name in arguments.only) and (reason := why_not()):
        print(f"no hosts here: {reason}", file=sys.stderr)
        return 1
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="dragoman-truth-"))
    folder.mkdir(parents=True, exist_ok=True)
    are_right, bench = [], Bench(folder)
    print(f"{'scenario':20} {'share   saved':14} {'verdicts':62} judgement", flush=True)
    with open(arguments.out, "a") as file:
        for repetition in range(arguments.repeat):
            for name in arguments.only:
                result = row(name, repetition, bench)
                print(line(result), flush=True)
                file.write(json.dumps(result) + "\n")
                file.flush()
                are_right.append(not result["wrong"])
    print(f"{sum(are_right)} of {len(are_right)} right")
    if arguments.folder is None:
        shutil.rmtree(folder)
    return 0 if all(are_right) else 1


if __name__ == "__main__":
    sys.exit(main())
