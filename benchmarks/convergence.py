"""Compares the gain from twice the steps that the report predicts with real runs of twice the steps.

    python benchmarks/convergence.py                  predicted and true gains of the kept runs
    DRAGOMAN_DATA=FOLDER python benchmarks/convergence.py --train RUNS [--only NAME ...]

Small trainings on the demo corpus and on Multi30k (FOLDER/multi30k), each about a minute on one core.
`--train` trains those missing in RUNS and keeps their evaluations in tests/runs/curves.json. An endless
schedule (constant, transformer, inverse_sqrt) is judged by one run, cut at half its steps. A schedule that
falls to zero (linear, cosine) is judged by two runs, the second with twice the steps, as the report advises,
and by one that is cut at half its plan. The method was chosen on the runs in CHOSEN_ON alone; the runs in
VERIFIED_ON differ from them in seed and in rate, width, optimizer, warm-up or corpus size.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.trainings import PYTHON, train_words, write_corpus
from dragoman.config import Train
from dragoman.explain import convergence
from dragoman.explain.curves import LEAST_POINTS
from dragoman.explain.finding import Finding
from dragoman.measure import database
from dragoman.measure.records import EvaluationRow, Records, RunFacts
from dragoman.rundir import RunFolder
from dragoman.schedule import learning_rate

KEPT = Path(__file__).resolve().parents[1] / "tests" / "runs" / "curves.json"
POINTS = 12  # evaluations per run; twice as many if it is cut
DEV_PAIRS = 500
ENDLESS = ("constant", "transformer", "inverse_sqrt")


@dataclass(frozen=True)
class Training:
    """One small run; all runs share the settings that are not fields."""

    corpus: str  # demo, multi30k, or little: the first 4,000 pairs of Multi30k
    schedule: str
    steps: int
    rate: float = 0.004
    warmup: int = 100
    seed: int = 1
    width: int = 64
    optimizer: str = "adam"

    @property
    def name(self) -> str:
        tail = f"-{self.optimizer}" if self.optimizer != "adam" else ""
        return f"{self.corpus}-{self.schedule}-{self.rate:g}-w{self.width}-seed{self.seed}{tail}-{self.steps}"

    @property
    def settings(self) -> list[str]:
        factor = (
            self.rate * (self.width * self.warmup) ** 0.5 if self.schedule == "transformer" else self.rate
        )
        values = {
            "model.width": self.width,
            "model.heads": 4,
            "model.encoder_layers": 2,
            "model.decoder_layers": 2,
            "model.feedforward": 4 * self.width,
            "model.attention_dropout": 0.0,
            "model.feedforward_dropout": 0.0,
            "data.step": 1024,
            "data.microbatch": 1024,
            "train.seed": self.seed,
            "train.steps": self.steps,
            "train.schedule": self.schedule,
            "train.rate": factor,
            "train.warmup_steps": self.warmup,
            "train.optimizer": self.optimizer,
            "train.beta2": 0.98,
            "train.clip_norm": 1.0,
            "evaluate.every": self.steps // (2 * POINTS if self.schedule in ENDLESS else POINTS),
            "evaluate.beam": 1,
            "evaluate.train_sample_pairs": 300,
            "checkpoint.every": self.steps,
            "checkpoint.keep_last": 1,
        }
        return [f"{name}={value}" for name, value in values.items()]


def ladder(first: Training, doublings: int) -> list[Training]:
    """The run, one with twice its steps, and so on; for an endless schedule only the longest."""
    if first.schedule in ENDLESS:
        return [replace(first, steps=first.steps * 2**doublings)]
    return [replace(first, steps=first.steps * 2**n) for n in range(doublings + 1)]


CHOSEN_ON = [
    *(
        training
        for schedule in ("linear", "constant", "cosine", "inverse_sqrt", "transformer")
        for corpus in ("multi30k", "demo")
        for training in ladder(Training(corpus, schedule, 240), 2)
    ),
    *ladder(Training("demo", "linear", 200, seed=2, rate=0.006, warmup=60), 2),
    *ladder(Training("multi30k", "cosine", 300, seed=2, rate=0.006), 2),
    *ladder(Training("multi30k", "inverse_sqrt", 400, seed=2, rate=0.006), 1),
    *ladder(Training("demo", "constant", 400, seed=2, rate=0.002), 1),
    *ladder(Training("little", "linear", 300, seed=2), 2),
    *ladder(Training("demo", "cosine", 240, seed=4, rate=0.003, optimizer="muon"), 1),
    *ladder(Training("multi30k", "linear", 300, seed=3, rate=0.003, width=96), 1),
    *ladder(Training("demo", "transformer", 300, seed=3, rate=0.006), 1),
    *ladder(Training("multi30k", "constant", 300, seed=3, rate=0.003), 1),
    *ladder(Training("multi30k", "transformer", 300, seed=4, rate=0.003, warmup=150), 1),
    *ladder(Training("demo", "inverse_sqrt", 300, seed=4, rate=0.003), 1),
]
VERIFIED_ON = [
    *ladder(Training("demo", "inverse_sqrt", 300, seed=5, rate=0.006), 1),
    *ladder(Training("multi30k", "linear", 300, seed=6, rate=0.005), 1),
    *ladder(Training("little", "constant", 300, seed=5, rate=0.003), 1),
    *ladder(Training("demo", "cosine", 300, seed=6, rate=0.005), 1),
    *ladder(Training("multi30k", "transformer", 300, seed=7, rate=0.005, warmup=80), 1),
]
TRAININGS = [*CHOSEN_ON, *VERIFIED_ON]


def corpus(name: str, folder: Path) -> Path:
    """The prepared data set, created the first time."""
    home = folder / f"corpus-{name}"
    if (home / "data").exists():
        return home / "data"
    if name == "demo":
        return write_corpus(home, "demo", pairs=20_000, dev_pairs=DEV_PAIRS, vocabulary=1000)
    home.mkdir(parents=True, exist_ok=True)
    source = Path(os.environ["DRAGOMAN_DATA"], "multi30k")
    for language in ("en", "de"):
        for part, most in (("train", 4_000 if name == "little" else None), ("val", DEV_PAIRS)):
            with gzip.open(source / f"{part}.{language}.gz", "rt", encoding="utf-8") as file:
                lines = file.readlines()[:most]
            (home / f"{part}.{language}").write_text("".join(lines), encoding="utf-8")
    words = [
        "prepare",
        "en=train.en",
        "de=train.de",
        "--dev",
        "en=val.en",
        "--dev",
        "de=val.de",
        "-o",
        "data",
    ]
    size = ["--set", "vocabulary.size=4000"]
    subprocess.run([*PYTHON, "dragoman", *words, *size], cwd=home, check=True, capture_output=True)
    return home / "data"


def train(training: Training, folder: Path) -> None:
    run = RunFolder(folder / training.name)
    folder.mkdir(parents=True, exist_ok=True)
    empty = folder / "empty.toml"
    empty.touch()
    data = corpus(training.corpus, folder)
    # One core: threads that wait for each other on busy cores take ten times as long.
    core = str(max(os.sched_getaffinity(0)))
    words = [
        "taskset",
        "-c",
        core,
        *PYTHON,
        "dragoman",
        *train_words(empty, data, run.path, training.settings),
    ]
    subprocess.run(words, check=True, capture_output=True)


def is_trained(training: Training, folder: Path) -> bool:
    records = RunFolder(folder / training.name).records
    return records.exists() and database.last_reason(records) == "finished"


# --- what is kept, and how it is compared -----------------------------------------------------------------

Curve = dict[str, Any]  # settings, and evaluations: step, eval_loss, train_sample_loss, bleu


def kept(training: Training, folder: Path) -> Curve:
    records = database.read(RunFolder(folder / training.name).records)
    names = (
        "train.schedule",
        "train.rate",
        "train.warmup_steps",
        "train.steps",
        "train.label_smoothing",
        "model.width",
    )
    return {
        "settings": {name: records.facts.settings[name] for name in names},
        "vocabulary_pieces": records.facts.data_card["vocabulary_pieces"],
        "evaluations": [
            [row.step, *(round(float(x or 0), 4) for x in (row.eval_loss, row.train_sample_loss, row.bleu))]
            for row in records.evaluations
        ],
    }


def records_of(curve: Curve, until: int) -> Records:
    """The records as they were after that step."""
    settings = curve["settings"]
    plan = {name.removeprefix("train."): value for name, value in settings.items() if "train." in name}
    steps = np.arange(1, until + 1)
    rates = [learning_rate(step - 1, Train(**plan), settings["model.width"]) for step in steps.tolist()]
    return Records(
        RunFacts(settings=settings, data_card={"vocabulary_pieces": curve["vocabulary_pieces"]}),
        steps={"step": steps, "learning_rate": np.array(rates)},
        evaluations=[
            EvaluationRow(step=step, attempt=1, time=0, eval_loss=loss, train_sample_loss=sample, bleu=bleu)
            for step, loss, sample, bleu in curve["evaluations"]
            if step <= until
        ],
    )


@dataclass(frozen=True)
class Pair:
    """A run after N steps, and what the next N steps gained."""

    name: str
    records: Records
    true: dict[str, float]  # loss, bleu; positive is better

    def judged(self, finding: Finding) -> Iterator[tuple[str, float, float, float, float]]:
        """Yield each prediction (name, gain, low, high) with the true gain."""
        for name, truth in self.true.items():
            key = f"gain_if_doubled_{name}"
            if key in finding.numbers:
                gain, low, high = (finding.numbers[f"{key}{end}"] for end in ("", "_low", "_high"))
                yield name, gain, low, high, truth


def pairs(trainings: Sequence[Training], curves: dict[str, Curve]) -> Iterator[Pair]:
    for training in trainings:
        curve = curves.get(training.name)
        if curve is None:
            continue
        is_endless = training.schedule in ENDLESS
        for cut in (training.steps // 4, training.steps // 2) if is_endless else (training.steps // 2,):
            scored = [row[0] for row in curve["evaluations"] if row[0] <= cut]
            if len(scored) >= LEAST_POINTS and scored[-1] == cut:
                yield _pair(f"{training.name} at {cut}", curve, cut, curve, 2 * cut)
        longer = curves.get(replace(training, steps=2 * training.steps).name)
        if longer and not is_endless:
            yield _pair(training.name, curve, training.steps, longer, 2 * training.steps)


def _pair(name: str, curve: Curve, cut: int, longer: Curve, end: int) -> Pair:
    before, after = (
        next(row for row in one["evaluations"] if row[0] == at) for one, at in ((curve, cut), (longer, end))
    )
    return Pair(name, records_of(curve, cut), {"loss": before[1] - after[1], "bleu": after[3] - before[3]})


def show(title: str, compared: Sequence[Pair]) -> None:
    inside: dict[str, list[bool]] = {"loss": [], "bleu": []}
    widths: dict[str, list[float]] = {"loss": [], "bleu": []}
    print(f"{title}\n{'':58} {'gain':>7} {'from':>7} {'to':>7} {'true':>7}")
    for pair in compared:
        for name, gain, low, high, truth in pair.judged(convergence.explain(pair.records)):
            inside[name].append(low <= truth <= high)
            widths[name].append((high - low) / abs(truth))
            mark = "" if inside[name][-1] else "  outside"
            print(f"{pair.name:52} {name:5} {gain:7.2f} {low:7.2f} {high:7.2f} {truth:7.2f}{mark}")
    for name, hits in inside.items():
        if hits:
            middle = np.median(widths[name])
            print(f"{name}: {sum(hits)} of {len(hits)} inside; median interval {middle:.1f} x the true gain")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", type=Path, metavar="RUNS", help="train the runs missing in this folder")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="train only these")
    options = parser.parse_args()
    curves: dict[str, Curve] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if options.train:
        for training in TRAININGS:
            if not options.only or training.name in options.only:
                if not is_trained(training, options.train):
                    train(training, options.train)
                curves[training.name] = kept(training, options.train)
        ordered = {training.name: curves[training.name] for training in TRAININGS if training.name in curves}
        rows = [f"{json.dumps(name)}: {json.dumps(curve)}" for name, curve in ordered.items()]
        KEPT.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    show("Runs the method was chosen on", list(pairs(CHOSEN_ON, curves)))
    show("\nRuns it was verified on", list(pairs(VERIFIED_ON, curves)))


if __name__ == "__main__":
    main()
