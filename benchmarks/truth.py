"""The truth bench: small real trainings with a known injected cause, which the report must name.

    python benchmarks/truth.py [--only NAME ...] [--repeat 3] [--out truth.jsonl]
    python benchmarks/truth.py --mixes 12 --seed 5

A short training first measures this machine, and causes are scaled to its speed. Every scenario
(scenarios.py) gives the cause and the verdicts that the report must reach. Later in the training, most causes
are removed and put back in turns: the share of time that a report on the earlier steps attributes to the
cause is compared with the share by which steps without it are shorter. `--mixes` draws pairs of causes and
their rates (mixes.py). Scenarios with several hosts need root. A scenario takes 10 to 60 s on two cores; the
exit code is 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.causes import Setting
from benchmarks.mixes import mixes
from benchmarks.ratios import STEP_SECONDS, Speed, speed_of
from benchmarks.scenarios import CONFIGS, CORPORA, SCENARIOS, Scenario
from benchmarks.trainings import REPORTED_SECONDS, Outcome, train, write_corpus
from testbed import why_not

SHARE_TOLERANCE = 0.10  # of step time, between the report's share and what removing the cause saves
IDS = ("network", "device_utilisation", "convergence", "overfitting")


def wrong(scenario: Scenario, outcome: Outcome) -> list[str]:
    """Everything the report gets wrong."""
    errors = []
    for id, verdict in scenario.expected.items():
        if verdict and outcome.findings[id].verdict not in verdict.split("|"):
            errors.append(f"{id} is {outcome.findings[id].verdict}, not {verdict}")
    for id, fact in scenario.has:
        if fact not in _facts(outcome, id):
            errors.append(f"{id} has no '{fact}'")
    for id, fact in scenario.lacks:
        if fact in _facts(outcome, id):
            errors.append(f"{id} has '{fact}'")
    for cause, saved in outcome.saved.items():
        reported = scenario.shares[cause](outcome)
        if not abs(reported - saved) <= SHARE_TOLERANCE:
            errors.append(f"{cause}: share {reported:.2f}, but its removal saves {saved:.2f}")
    if also := scenario.also(outcome):
        errors.append(also)
    return errors


def _facts(outcome: Outcome, id: str) -> str:
    """The answer, the advice and the names of its numbers."""
    finding = outcome.findings[id]
    return " ".join([finding.answer, *finding.advice, *finding.numbers])


class Bench:
    """Trains scenarios in a folder; corpora are written once, and the machine is measured once.

    Tests use shorter steps, and only as many as a report needs.
    """

    def __init__(
        self, folder: Path, step_seconds: float = STEP_SECONDS, reported_seconds: float = REPORTED_SECONDS
    ):
        self.folder = folder
        self._step_seconds = step_seconds
        self._reported_seconds = reported_seconds

    @cached_property
    def speed(self) -> Speed:
        """This machine's speed, measured with two workers, which have a core each like two hosts."""
        settings = ("train.steps=40", "evaluate.every=10")
        outcome = self._train("speed", "speed", "plenty", settings, Setting(workers=2))
        return speed_of(outcome, self._step_seconds, self._reported_seconds)

    def where(self, scenario: Scenario, by_turns: bool = True) -> Setting:
        """The scenario's setting here; without turns the causes stay, and the run ends by itself."""
        where = scenario.where(self.speed)
        return where if by_turns else replace(where, reliefs=())

    def train(
        self, name: str, scenario: Scenario, by_turns: bool = True, program: str = "hindered.py"
    ) -> Outcome:
        where, settings = self.where(scenario, by_turns), scenario.settings(self.speed)
        if scenario.config == "speed":
            cores = where.hosts or where.workers
            settings = (f"data.step={cores * self.speed.tokens}", *settings)
            if not where.reliefs:  # otherwise the run is ended after the last turn
                steps = max(where.reported_from, where.from_step) + self.speed.steps()
                settings = (f"train.steps={steps}", *settings)
        return self._train(name, scenario.config, scenario.corpus, settings, where, program)

    def _train(
        self,
        name: str,
        config: str,
        corpus: str,
        settings: tuple[str, ...],
        where: Setting,
        program: str = "hindered.py",
    ) -> Outcome:
        path = self.folder / f"{config}.toml"
        path.write_text(CONFIGS[config])
        run = self.folder / "runs" / f"{name}-{time.time_ns()}"
        return train(path, self._data(corpus), run, settings, where, program)

    def _data(self, name: str) -> Path:
        data = self.folder / "corpora" / name / "data"
        return data if data.exists() else write_corpus(data.parent, **CORPORA[name])


def row(name: str, scenario: Scenario, repetition: int, bench: Bench) -> dict[str, Any]:
    """A scenario's result, as written to the results file."""
    began = time.monotonic()
    outcome = bench.train(name, scenario)
    plain = {
        id: {
            key: value
            for key, value in outcome.findings[id].numbers.items()
            if isinstance(value, int | float)
        }
        for id in (*IDS, "step_time", "duration")
    }
    return {
        "scenario": name,
        "cause": scenario.cause,
        "repetition": repetition,
        "expected": dict(scenario.expected),
        "found": {id: outcome.findings[id].verdict for id in IDS},
        "wrong": wrong(scenario, outcome),
        "shares": {
            cause: {"reported": scenario.shares[cause](outcome), "saved": saved}
            for cause, saved in outcome.saved.items()
        },
        "seconds": round(time.monotonic() - began, 1),
        "answers": {id: outcome.findings[id].answer for id in IDS},
        "numbers": plain,
    }


def line(result: Mapping[str, Any]) -> str:
    verdicts = ", ".join(f"{id} {result['found'][id]}" for id in result["expected"])
    shares = ", ".join(
        f"{100 * share['reported']:3.0f} {100 * share['saved']:3.0f}" for share in result["shares"].values()
    )
    judgement = "; ".join(result["wrong"]) or "right"
    return f"{result['scenario']:19} {result['seconds']:3.0f} s  {shares:16} {verdicts:62} {judgement}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), metavar="NAME")
    parser.add_argument("--mixes", type=int, metavar="N", help="this many pairs of causes at random rates")
    parser.add_argument("--seed", type=int, default=0, help="of the mixes (0)")
    parser.add_argument("--repeat", type=int, default=1, help="number of repetitions (1)")
    parser.add_argument("--out", type=Path, default=Path("truth.jsonl"), help="results, as JSON lines")
    parser.add_argument("--folder", type=Path, help="working folder (default: a temporary one, removed)")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="dragoman-truth-"))
    folder.mkdir(parents=True, exist_ok=True)
    are_right, bench = [], Bench(folder)
    scenarios = {name: SCENARIOS[name] for name in arguments.only}
    if arguments.mixes:
        scenarios = mixes(arguments.mixes, arguments.seed)
    if any(bench.where(scenario).hosts for scenario in scenarios.values()) and (reason := why_not()):
        print(f"cannot create hosts here: {reason}", file=sys.stderr)
        return 1
    speed = bench.speed
    print(f"computing takes {speed.step_seconds:.3f} s for {speed.tokens:,} tokens on each core")
    print(f"{'scenario':19} {'':6} {'share, true (%)':16} {'verdicts':62} judgement", flush=True)
    with open(arguments.out, "a") as file:
        for repetition in range(arguments.repeat):
            for name, scenario in scenarios.items():
                result = row(name, scenario, repetition, bench)
                print(line(result), flush=True)
                file.write(json.dumps(result) + "\n")
                file.flush()
                are_right.append(not result["wrong"])
    print(f"{sum(are_right)} of {len(are_right)} right")
    if arguments.folder is None:
        shutil.rmtree(folder, ignore_errors=True)  # a rank that was killed may be saving still
    return 0 if all(are_right) else 1


if __name__ == "__main__":
    sys.exit(main())
