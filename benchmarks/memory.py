"""Measures the peak memory of ranks that make real steps, beside what `plan` expects.

    python benchmarks/memory.py configs/transformer-tiny.toml --workers 1 --set model.encoder_layers=24 \
        --set model.decoder_layers=24 --variant train.recompute=true
    python benchmarks/memory.py configs/transformer-xl.toml --workers 2 --steps 1 --set data.step=256 \
        --set data.microbatch=128

The config as it is, and each variant of it, makes steps in processes of its own, on made-up sentences.
Memory is a process's peak resident size. Nothing is evaluated or saved, which for transformer-xl would take
4 GB more on each rank and 12 GB on rank 0. Look at `free -g` first: a machine that runs out of memory kills
what it likes.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dragoman import config, temporary
from dragoman.config import Training
from dragoman.plan.work import CorpusSize, Work
from dragoman.sync import world as worlds
from dragoman.train.calibrate import CalibrationRequest
from dragoman.train.calibration_rank import Bench, made_up_data

_RANK = "--rank-in"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=32_768)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--variant", action="append", default=[], help="settings separated by spaces")
    parser.add_argument(_RANK, dest="folder", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def rank(folder: Path, work: Work, steps: int) -> None:
    """One rank: builds the model and makes the steps."""
    corpus = work.corpus
    request = CalibrationRequest(
        vocabulary=corpus.vocabulary,
        source_tokens=corpus.source_tokens.value,
        target_tokens=corpus.target_tokens.value,
        data=None,
        seconds=0,
    )
    with worlds.join(work.settings.sync.timeout_seconds) as world:
        began = time.monotonic()
        data = made_up_data(folder / str(world.rank), request)
        bench = Bench(work.settings, corpus.vocabulary, data, world)
        say(f"rank {world.rank}: built in {time.monotonic() - began:.0f} s, peak {peak():.2f} GB")
        for step in range(1, steps + 1):
            began = time.monotonic()
            bench.step()
            say(f"rank {world.rank}: step {step} in {time.monotonic() - began:.1f} s, peak {peak():.2f} GB")


def peak() -> float:
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9


def say(text: str) -> None:
    print(f"{text}\n", end="", flush=True)


def main() -> None:
    given = arguments()
    corpus = replace(CorpusSize.usual(None), vocabulary=given.vocabulary)
    for variant in ["", *given.variant]:
        changes = variant.split()
        settings = config.load(Training, config.located(given.config), [*given.set, *changes])
        work = Work(settings, corpus)
        if given.folder:
            return rank(given.folder, work, given.steps)
        expected = work.memory_bytes(given.workers).value / 1e9
        name = variant or "as it is"
        say(f"{name}: {work.parameters:,} parameters; plan expects {expected:.2f} GB per rank")
        with temporary.folder("dragoman-memory-") as folder:
            words = [str(given.config), "--steps", str(given.steps), "--vocabulary", str(given.vocabulary)]
            words += [word for change in [*given.set, *changes] for word in ("--set", change)]
            command = [sys.executable, "-m", "dragoman.launch.ranks", str(given.workers), __file__]
            subprocess.run([*command, *words, _RANK, str(folder)], check=True)


if __name__ == "__main__":
    main()
