"""Makes real steps of a large model on the ranks of this machine: seconds and peak memory of each rank.

    python benchmarks/large.py configs/transformer-xl.toml --workers 2 --steps 1 --set data.step=256 \
        --set data.microbatch=128

Sentences are made up. Nothing is evaluated or saved, which for transformer-xl would take another 4 GB on each
rank and 12 GB on rank 0. Look at `free -g` first: a machine that runs out of memory kills what it likes.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
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
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument(_RANK, dest="folder", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def rank(given: argparse.Namespace, work: Work) -> None:
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
        data = made_up_data(given.folder / str(world.rank), request)
        bench = Bench(work.settings, corpus.vocabulary, data, world)
        say(f"rank {world.rank}: built in {time.monotonic() - began:.0f} s, peak {peak() / 1e9:.2f} GB")
        for step in range(1, given.steps + 1):
            began = time.monotonic()
            times = bench.step()
            computed = times["flops"] / times["without_exchange"] / 1e9
            say(
                f"rank {world.rank}: step {step} in {time.monotonic() - began:.1f} s, "
                f"{computed:.0f} GFLOP/s while computing, peak {peak() / 1e9:.2f} GB"
            )


def peak() -> float:
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def say(text: str) -> None:
    print(f"{text}\n", end="", flush=True)


def main() -> None:
    given = arguments()
    settings = config.load(Training, config.located(given.config), given.set)
    work = Work(settings, CorpusSize.usual(None))
    if given.folder:
        return rank(given, work)
    expected = work.memory_bytes(given.workers).value
    say(f"{work.parameters:,} parameters on {given.workers} ranks; plan expects {expected / 1e9:.2f} GB each")
    with temporary.folder("dragoman-large-") as folder:
        command = [sys.executable, "-m", "dragoman.launch.ranks", str(given.workers), __file__]
        subprocess.run([*command, *sys.argv[1:], _RANK, str(folder)], check=True)


if __name__ == "__main__":
    main()
