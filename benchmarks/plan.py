"""The plan bench: compares predictions of `dragoman plan` with what then happens.

    python benchmarks/plan.py [--only here|public] [--repeat 1] [--out plan.jsonl]

here    small real trainings on this machine: one worker, two workers, and two hosts of the test bed over
        links of several rates, each predicted from a calibration of 20 s just before it. Needs root.
public  rows of public-runs/runs.csv in the folder that DRAGOMAN_DATA names. The share of its ordered rate
        that a link carries is learnt from the odd rows; the even rows are predicted from GPU, ranks, batch,
        precision and ordered network. A row without GPU or order is treated like the others of the same
        cloud.

The error is that of the median seconds per step (public: of the step time in the row). Takes 15 minutes on
two idle cores; the exit code is 1 if a goal was missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import csv_runs
from benchmarks.causes import Setting
from benchmarks.csv_runs import CsvRow
from benchmarks.trainings import train, write_corpus
from dragoman import config
from dragoman.config import Data, Training
from dragoman.cost import gpu_types
from dragoman.data.card import Card
from dragoman.exchange_way import ExchangeWay
from dragoman.explain.step_breakdown import settled
from dragoman.foreign.facts import Given
from dragoman.plan.cluster import Cluster, PlannedLink
from dragoman.plan.estimate import Estimate
from dragoman.plan.forecast import Forecast
from dragoman.plan.pace import Pace, of_gpu
from dragoman.plan.work import CorpusSize, Work
from dragoman.train import calibrate
from testbed import why_not

GOALS = {"here": (0.10, 0.25), "public": (0.15, float("inf"))}  # median and worst error
CALIBRATION_SECONDS = 20.0
CORPUS = {"name": "demo", "pairs": 20_000}
MODELS = {  # 1.2 and 5.9 million parameters
    "small": {"width": 128, "layers": 2, "feedforward": 512},
    "larger": {"width": 256, "layers": 3, "feedforward": 1024},
}
CONFIG = """
[model]
width = {width}
heads = 4
encoder_layers = {layers}
decoder_layers = {layers}
feedforward = {feedforward}
[data]
step = 2048
microbatch = 512
[train]
steps = 40
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
PLACES = {
    "1x1": Setting(),
    "1x2": Setting(workers=2),
    "2x1 1000mbit": Setting(hosts=2, rate="1000mbit"),
    "2x1 300mbit": Setting(hosts=2, rate="300mbit"),
    "2x1 100mbit": Setting(hosts=2, rate="100mbit"),
}


@dataclass(frozen=True)
class Result:
    part: str
    name: str
    predicted: Estimate
    actual_seconds: float
    constant_seconds: float | None = None  # a guess from the other rows' step times alone

    @property
    def error(self) -> float:
        return abs(self.predicted.value / self.actual_seconds - 1)

    @property
    def is_inside(self) -> bool:
        return self.predicted.low <= self.actual_seconds <= self.predicted.high

    def document(self) -> dict[str, Any]:
        predicted = {
            "predicted": self.predicted.value,
            "low": self.predicted.low,
            "high": self.predicted.high,
        }
        return {"part": self.part, "name": self.name, **predicted, "actual": self.actual_seconds}

    def __str__(self) -> str:
        seconds = f"{self.predicted.value:8.3f} ({self.predicted.low:.3f} to {self.predicted.high:.3f})"
        inside = "inside" if self.is_inside else "outside"
        return f"{self.name:26} {seconds:28} {self.actual_seconds:8.3f} {self.error:7.1%}  {inside}"


# --- trainings on this machine ----------------------------------------------------------------------------


def here(folder: Path, repeat: int) -> Iterator[Result]:
    data = write_corpus(folder / "corpus", **CORPUS)
    for _ in range(repeat):
        for model, measures in MODELS.items():
            path = folder / f"{model}.toml"
            path.write_text(CONFIG.format(**measures))
            work = Work(config.load(Training, path), CorpusSize.of(Card.load(data / "card.json")))
            for place, where in PLACES.items():
                predicted = predict(work, where, data)
                run = Path(tempfile.mkdtemp(dir=folder), "run")
                steps = train(path, data, run, where=where).records
                actual = float(np.median(steps.steps["seconds"][settled(steps)]))
                yield Result("here", f"{model} {place}", predicted.step_seconds, actual)


def predict(work: Work, where: Setting, data: Path) -> Forecast:
    """The plan, calibrated with the training's number of ranks: hosts of the test bed share cores."""
    ranks = where.hosts or where.workers
    with one_core_each(ranks):
        pace = calibrate.calibrate(work, ranks, data, CALIBRATION_SECONDS)
    link = PlannedLink.parse(where.rate) if where.rate else None
    hosts = max(1, where.hosts)
    return Forecast(work, pace, Cluster(hosts, ranks // hosts, link), ExchangeWay())


@contextmanager
def one_core_each(ranks: int) -> Iterator[None]:
    """Use one core and thread per rank in the block, as benchmarks/trainings.py does."""
    cores, threads = os.sched_getaffinity(0), os.environ.get("OMP_NUM_THREADS")
    os.sched_setaffinity(0, sorted(cores)[:ranks])
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        os.environ.pop("OMP_NUM_THREADS")
        if threads:
            os.environ["OMP_NUM_THREADS"] = threads


# --- public runs ------------------------------------------------------------------------------------------


def public(table: Path) -> Iterator[Result]:
    read = [row for row, _ in csv_runs.read(table, Given())]
    known = [(number, row) for number, row in enumerate(read, start=1) if row.values["given_step_seconds"]]
    odd = [row for number, row in known if number % 2]
    constant = median(fact(row, "given_step_seconds") for row in odd)
    carried = {row.name: carried_share(row, odd) for row in odd}
    for _, row in (item for item in known if item[0] % 2 == 0):
        like = [carried[other.name] for other in odd if other.cloud == row.cloud] or list(carried.values())
        share = Estimate(median(like), min(like), max(like))
        predicted, actual = forecast_of(row, share, odd).step_seconds, fact(row, "given_step_seconds")
        yield Result("public", f"{row.name} {row.cloud}", predicted, actual, constant)


def fact(row: CsvRow, name: str) -> Any:
    value = row.values.get(name)
    return row.assumed.get(name) if value is None else value


def carried_share(row: CsvRow, like: Sequence[CsvRow]) -> float:
    """The share of its ordered rate that the link must have carried, given the row's step time."""
    low, high = 0.01, 100.0
    for _ in range(60):
        middle = (low * high) ** 0.5
        seconds = forecast_of(row, Estimate.exactly(middle), like).step_seconds.value
        low, high = (middle, high) if seconds > fact(row, "given_step_seconds") else (low, middle)
    return low


def forecast_of(row: CsvRow, share: Estimate, like: Sequence[CsvRow]) -> Forecast:
    ranks, hosts, pairs = fact(row, "ranks"), fact(row, "machines"), int(fact(row, "pairs_per_rank"))
    settings = Training(data=Data(unit="pairs", step=pairs * ranks, microbatch=pairs))
    link = replace(PlannedLink.ordered(1.0), bits_per_second=share.times(ordered(row, like)))
    cluster = Cluster(hosts, ranks // hosts, link)
    return Forecast(Work(settings, CorpusSize.usual(None)), pace_of(row), cluster, ExchangeWay())


def ordered(row: CsvRow, like: Sequence[CsvRow]) -> float:
    """Bits per second ordered in this row, or the median of rows of the same cloud."""
    if bits := row.values["link_bits_per_second"]:
        return float(bits)
    stating = [other for other in like if other.values["link_bits_per_second"]]
    of_cloud = [other for other in stating if other.cloud == row.cloud] or stating
    return float(median(other.values["link_bits_per_second"] for other in of_cloud))


def pace_of(row: CsvRow) -> Pace:
    """The pace of the slowest GPU in the row, since all ranks wait for it."""
    names = [kind.name for kind in gpu_types.named(fact(row, "device"))] or list(gpu_types.RENTED)
    paces = [of_gpu(name, "fp32" if fact(row, "precision") == "fp32" else "fp16") for name in names]
    return max(paces, key=lambda pace: pace.seconds_per_flop.value)


# --- the table --------------------------------------------------------------------------------------------


def judged(part: str, results: Sequence[Result]) -> bool:
    errors = [result.error for result in results]
    middle, worst = GOALS[part]
    inside = sum(result.is_inside for result in results)
    print(
        f"{part}: median error {median(errors):.1%} (goal {middle:.0%}), worst {max(errors):.1%}"
        + (f" (goal {worst:.0%})" if worst < float("inf") else "")
        + f", {inside} of {len(results)} inside their interval",
        flush=True,
    )
    constant = [abs(r.constant_seconds / r.actual_seconds - 1) for r in results if r.constant_seconds]
    if constant:  # the rows are similar, so a low median alone says little
        print(f"guessing odd rows' median: median error {median(constant):.1%}, worst {max(constant):.1%}")
    return median(errors) <= middle and max(errors) <= worst


def run(part: str, arguments: argparse.Namespace, folder: Path) -> Iterator[Result]:
    if part == "here":
        return here(folder, arguments.repeat)
    return public(Path(os.environ["DRAGOMAN_DATA"], "public-runs", "runs.csv"))


def impossible(parts: Sequence[str]) -> Mapping[str, str]:
    """Parts that cannot run, with the reason."""
    reasons = {"here": why_not() or "", "public": "" if "DRAGOMAN_DATA" in os.environ else "no DRAGOMAN_DATA"}
    return {part: reasons[part] for part in parts if reasons[part]}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=GOALS, help="run only this part")
    parser.add_argument("--repeat", type=int, default=1, help="repetitions of the part here (1)")
    parser.add_argument("--out", type=Path, default=Path("plan.jsonl"), help="results, as JSON lines")
    arguments = parser.parse_args()
    parts = [arguments.only] if arguments.only else list(GOALS)
    if reasons := impossible(parts):
        print("\n".join(f"{part}: {reason}" for part, reason in reasons.items()), file=sys.stderr)
        return 1
    are_good = []
    with open(arguments.out, "a") as file, tempfile.TemporaryDirectory(prefix="dragoman-plan-") as folder:
        for part in parts:
            print(f"{part:26} {'predicted':28} {'actual s':>8} {'error':>7}", flush=True)
            results = []
            for result in run(part, arguments, Path(folder)):
                print(result, flush=True)
                file.write(json.dumps(result.document()) + "\n")
                results.append(result)
            are_good.append(judged(part, results))
    return 0 if all(are_good) else 1


if __name__ == "__main__":
    sys.exit(main())
