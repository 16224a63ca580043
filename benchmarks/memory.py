"""Measures the peak memory of a rank, and compares it with what `plan` expects.

    python benchmarks/memory.py configs/transformer-base.toml [--workers 1] [--seconds 20] [--vocabulary 8192]
        [--set KEY=VALUE ...] [--variant "train.recompute=true" ...]

Each variant, and the config as it is, makes real steps on made-up sentences in processes of its own, as
`plan --calibrate` does. Memory is the peak resident size of the process that used most.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dragoman import config
from dragoman.config import Training
from dragoman.plan.work import CorpusSize, Work
from dragoman.train.calibrate import measure


def row(name: str, work: Work, workers: int, seconds: float) -> str:
    found = measure(work, workers, None, seconds)
    expected = work.memory_bytes(workers).value
    rate = sum(found.flops) / sum(found.with_exchange)
    return (
        f"| {name} | {found.memory_bytes / 1e9:.2f} | {expected / 1e9:.2f} | "
        f"{sum(found.with_exchange) / len(found.flops):.2f} | {rate / 1e9:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--vocabulary", type=int, default=8192)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--variant", action="append", default=[], help="settings separated by spaces")
    given = parser.parse_args()
    print("| settings | peak GB per rank | plan's GB | seconds per step | GFLOP/s computed |")
    print("| --- | --- | --- | --- | --- |")
    for variant in ["", *given.variant]:
        settings = config.load(Training, config.located(given.config), [*given.set, *variant.split()])
        corpus = replace(CorpusSize.usual(None), vocabulary=given.vocabulary)
        print(row(variant or "as it is", Work(settings, corpus), given.workers, given.seconds), flush=True)


if __name__ == "__main__":
    main()
