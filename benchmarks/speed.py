"""Target tokens per CPU-second of `dragoman train` on one core, and of fairseq and eole if they are given.

    python benchmarks/speed.py [--only tiny base workers start] [--repeat 3] [--out speed.jsonl]
    python benchmarks/speed.py --fairseq .../bin/python --eole .../bin/python --folder WORK

The text is Multi30k en-de from the folder named by DRAGOMAN_DATA, split into the same pieces for all sides; a
step has about 4,096 target tokens. `tiny` is configs/transformer-tiny.toml with 8,000 pieces; `base` is
configs/transformer-base.toml with the 32,768 pieces of the public WMT16 runs. All sides use the dropouts of
these configs, also inside the feed-forward blocks. Tokens are those that the loss counts, with EOS and
without padding. CPU-seconds are those of the training process with all its threads. Each repetition runs
every side once; ratios are taken within it. By default our ranks keep freed memory and the peers leave the
allocator alone; with `memory reused` all sides get the allocator's tunables that keep freed memory, in huge
pages. `workers` is tokens per second of two workers on two cores over one worker on one core. `start` is the
time from the command to the end of the first step, minus a median step, with steps of 512 tokens, because
those of `base` last up to 20 s and vary by seconds.

It also measures peak resident memory of the process, and FLOPs of non-pad work per CPU-second as a share of
what bare matrix products of the same shapes reach in the same environment (sgemm.py).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.peers import sides
from benchmarks.watched import Watched, watch
from dragoman import config
from dragoman.config import Training
from dragoman.cost import flops
from dragoman.data.batches import Batches, Position, StepSize
from dragoman.data.store import DataSet
from dragoman.measure import database
from dragoman.rundir import RunFolder

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
OURS = "dragoman"
REUSED = ", memory reused"
GIB = 2**30


@dataclass(frozen=True)
class Case:
    config: str
    prepare: tuple[str, ...]  # options besides the files
    steps: int
    dropped_steps: int  # first steps that do not count
    settings: tuple[str, ...] = ()


def _shared() -> Path:
    return Path(os.environ.get("DRAGOMAN_DATA", "/nowhere"))


SIZE = ("data.unit=tokens", "data.step=4096", "data.microbatch=1024")
CASES = {
    "tiny": Case("transformer-tiny.toml", ("--set", "vocabulary.size=8000"), 40, 10, SIZE),
    "base": Case(
        "transformer-base.toml", ("--vocab", str(_shared() / "wmt16-vocab" / "m_common.model")), 5, 2, SIZE
    ),
}
SCALED = "base"  # the case that one and two workers train
SHORT_STEPS = ("data.unit=tokens", "data.step=512", "data.microbatch=512")


@dataclass
class Bench:
    folder: Path
    fairseq: Path | None = None
    eole: Path | None = None
    runs: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.cores = sorted(os.sched_getaffinity(0))

    def settings(self, case: Case) -> Training:
        return config.load(Training, CONFIGS / case.config, case.settings)

    def data(self, name: str) -> Path:
        """The data set of a case, prepared once per folder for all sides."""
        data, pieces = self.folder / name / "data", self._pieces(name)
        if not data.exists():
            text = _shared() / "multi30k"
            words = [f"{language}={text / f'train.{language}.gz'}" for language in ("en", "de")]
            for language in ("en", "de"):
                words += ["--dev", f"{language}={text / f'val.{language}.gz'}"]
            _call([*_dragoman("prepare"), *words, *CASES[name].prepare, "-o", str(data)], os.environ)
        if (self.fairseq or self.eole) and not pieces.exists():
            sides.write_pieces(data, pieces)
        if self.fairseq and not (pieces / "fairseq").exists():
            _call(sides.fairseq_preprocess(self.fairseq, pieces), sides.environment(None))
        return data

    def ours(self, name: str, workers: int = 1, tunables: str | None = None) -> dict[str, Any]:
        result = self._train(name, CASES[name], workers, tunables)
        return result | {"flops_per_cpu_second": self._flops(name) / result["cpu_seconds"]}

    def start(self, name: str) -> float:
        """The start-up time in seconds."""
        case = replace(CASES[name], steps=6, dropped_steps=1, settings=SHORT_STEPS)
        return float(self._train(name, case)["startup_seconds"])

    def _train(self, name: str, case: Case, workers: int = 1, tunables: str | None = None) -> dict[str, Any]:
        run = RunFolder(self._new(f"{name}-{OURS}"))
        shutil.rmtree(run.path, ignore_errors=True)  # left by an interrupted bench: the run would resume
        settings = [*case.settings, f"train.stop_at={case.steps}", f"measure.every={case.steps}"]
        words = [str(CONFIGS / case.config), "--data", str(self.data(name)), "--run", str(run.path)]
        words += ["--workers", str(workers), *(word for pair in settings for word in ("--set", pair))]
        watched = watch(
            [*_dragoman("train"), *words],
            lambda process: "RANK" in process.environ(),
            workers,
            sides.environment(tunables),
            self.cores[:workers],
            run.path.with_suffix(".txt"),
        )
        steps = database.read(run.records).steps
        result = summary(steps["ended"], steps["target_tokens"], watched, case.dropped_steps)
        shutil.rmtree(run.path)
        return result

    def peer(self, name: str, peer: str, tunables: str | None) -> dict[str, Any]:
        case, out = CASES[name], self._new(f"{name}-{peer}").with_suffix(".jsonl")
        python = getattr(self, peer)
        command = getattr(sides, peer)(python, self.settings(case), self._pieces(name), out, case.steps)
        environment = sides.environment(tunables)
        watched = watch(command, _is_python, 1, environment, self.cores[:1], out.with_suffix(".txt"))
        steps = [json.loads(line) for line in out.read_text().splitlines()]
        ended, tokens, slots = (
            np.array([step[key] for step in steps]) for key in ("ended", "target_tokens", "target_slots")
        )
        result = summary(ended, tokens, watched, case.dropped_steps)
        return result | {"padding_share": float(1 - tokens.sum() / slots.sum())}

    def bare_rate(self, name: str) -> float:
        """FLOP/s of matrix products alone, on our rank's core and in its environment."""
        case, data = CASES[name], DataSet(self.data(name))
        script = Path(__file__).with_name("sgemm.py")
        words = [str(CONFIGS / case.config), "--vocabulary", str(len(data.tokenizer))]
        words += ["--rows", str(self.settings(case).data.microbatch_size)]
        command = ["taskset", "-c", str(self.cores[0]), sys.executable, str(script), *words]
        return float(_call(command, sides.environment(None)))

    def _flops(self, name: str) -> float:
        """FLOPs of the counted steps, without padding."""
        settings, data = self.settings(CASES[name]), DataSet(self.data(name))
        size = StepSize(settings.data.step, settings.data.microbatch_size, settings.data.unit)
        steps = Batches(data, size, settings.train.seed).after(Position())
        total = 0.0
        for step in islice(steps, CASES[name].dropped_steps, CASES[name].steps):
            source_tokens = sum(step.tokens) - step.target_tokens
            counts = source_tokens, step.target_tokens, step.pairs
            total += flops.step(settings.model, len(data.tokenizer), *counts)
        return total

    def _pieces(self, name: str) -> Path:
        return self.folder / name / "pieces"

    def _new(self, what: str) -> Path:
        self.runs += 1
        return self.folder / f"{what}-{self.runs}"


def summary(ended: np.ndarray, tokens: np.ndarray, watched: Watched, dropped: int) -> dict[str, Any]:
    begin, end = float(ended[dropped - 1]), float(ended[-1])
    cpu_seconds, counted = watched.cpu_between(begin, end), int(tokens[dropped:].sum())
    return {
        "tokens_per_cpu_second": counted / cpu_seconds,
        "tokens_per_second": counted / (end - begin),
        "tokens_per_step": counted / len(tokens[dropped:]),
        "cpu_seconds": cpu_seconds,
        "peak_gib": watched.peak_until(end) / GIB,
        "startup_seconds": float(ended[0] - watched.started - np.median(np.diff(ended))),
    }


def _is_python(process: psutil.Process) -> bool:
    """Whether this is python, and no longer the taskset that becomes it."""
    return "python" in process.name()


def _dragoman(command: str) -> list[str]:
    return [sys.executable, "-m", "dragoman", command]


def _call(command: Sequence[str], environment: Any) -> str:
    done = subprocess.run(command, env=dict(environment), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def measurements(bench: Bench, only: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Measure every side once."""
    for name in only:
        if name == "workers":
            for workers in (1, 2):
                yield {"case": name, "side": f"{workers} workers", **bench.ours(SCALED, workers)}
            continue
        if name == "start":
            for model in CASES:
                yield {"case": name, "side": model, "startup_seconds": bench.start(model)}
            continue
        bench.data(name)
        yield {"case": name, "side": "bare products", "flops_per_cpu_second": bench.bare_rate(name)}
        for tunables, suffix in ((None, ""), (sides.MEMORY_REUSED, REUSED)):
            yield {"case": name, "side": OURS + suffix, **bench.ours(name, tunables=tunables)}
            for peer in ("fairseq", "eole"):
                if getattr(bench, peer):
                    yield {"case": name, "side": peer + suffix, **bench.peer(name, peer, tunables)}


def ratios(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The ratios of one case in one repetition."""
    of = {row["side"]: row for row in rows}
    if set(of) == set(CASES):  # `start` has no ratio
        return {}
    if "2 workers" in of:
        return {"two workers over one": _over(of["2 workers"], [of["1 workers"]], "tokens_per_second")}
    rate, speed = "flops_per_cpu_second", "tokens_per_cpu_second"
    shares = {"share of bare products": of[OURS][rate] / of["bare products"][rate]}
    for suffix in ("", REUSED):
        if peers := [of[peer + suffix] for peer in ("fairseq", "eole") if peer + suffix in of]:
            shares[f"over the fastest peer{suffix}"] = _over(of[OURS + suffix], peers, speed)
    return shares


def _over(ours: dict[str, Any], others: Sequence[dict[str, Any]], key: str) -> float:
    return float(ours[key] / max(other[key] for other in others))


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Lines of the table: medians over repetitions, with minimum and maximum if there are several."""
    yield "| case | side | tokens per CPU-second | per step | padding | GFLOP/s | peak GiB | start-up s |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for case, side in dict.fromkeys((row["case"], row["side"]) for row in rows):
        same = [row for row in rows if (row["case"], row["side"]) == (case, side)]
        keys = (
            ("tokens_per_cpu_second", 1, 0),
            ("tokens_per_step", 1, 0),
            ("padding_share", 1, 2),
            ("flops_per_cpu_second", 1e9, 1),
            ("peak_gib", 1, 2),
            ("startup_seconds", 1, 1),
        )
        cells = [
            spread([row[key] / unit for row in same if key in row], digits) for key, unit, digits in keys
        ]
        yield f"| {case} | {side} | {' | '.join(cells)} |"
    by_name: dict[str, list[float]] = {}
    for case, repetition in dict.fromkeys((row["case"], row["repetition"]) for row in rows):
        same = [row for row in rows if (row["case"], row["repetition"]) == (case, repetition)]
        for name, value in ratios(same).items():
            by_name.setdefault(f"{case}: {name}", []).append(value)
    yield from ("", *(f"{name}: {spread(values, 2)}" for name, values in by_name.items()))


def spread(values: Sequence[float], digits: int) -> str:
    if not values:
        return ""
    low, middle, high = (f"{value:,.{digits}f}" for value in (min(values), median(values), max(values)))
    return f"{middle} ({low} to {high})" if len(values) > 1 else middle


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    choices = (*CASES, "workers", "start")
    parser.add_argument("--only", nargs="+", choices=choices, default=list(choices), help="only these")
    parser.add_argument("--repeat", type=int, default=1, help="number of repetitions (1)")
    parser.add_argument("--out", type=Path, default=Path("speed.jsonl"), help="results, as JSON lines")
    parser.add_argument("--folder", type=Path, help="working folder (default: a temporary one, removed)")
    for peer in ("fairseq", "eole"):
        parser.add_argument(f"--{peer}", type=Path, metavar="PYTHON", help=f"interpreter with {peer}")
    arguments = parser.parse_args()
    if not _shared().is_dir():
        parser.error("DRAGOMAN_DATA must name a folder with multi30k and wmt16-vocab")
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="dragoman-speed-"))
    bench = Bench(folder, arguments.fairseq, arguments.eole)
    rows, began = [], int(time.time())
    with open(arguments.out, "a") as file:
        for repetition in range(arguments.repeat):
            for result in measurements(bench, arguments.only):
                rows.append({"repetition": repetition, **result, "load": os.getloadavg()[0], "began": began})
                print(json.dumps(rows[-1]), file=file, flush=True)
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    print("\n".join(table(rows)))
    if not arguments.folder:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
