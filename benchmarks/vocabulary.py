"""Finds the best vocabulary size for a small corpus: the same training on Multi30k with several sizes.

    DRAGOMAN_DATA=FOLDER python benchmarks/vocabulary.py [--sizes 1000 4000] [--pairs 29000 7000] [--steps N]

FOLDER/multi30k holds the untokenised files. Every training sees the same number of pairs: a step is counted
in pairs because the same text has fewer tokens with a larger vocabulary. `--pairs` uses only the first pairs
of the corpus, to show how the best size changes. Scores are those of the validation set at the last step,
beam 5.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dragoman.checkpoint import saved_state
from dragoman.data.card import Card
from dragoman.rundir import RunFolder

CONFIG = Path(__file__).parents[1] / "configs" / "multi30k-fast.toml"
PAIRS_PER_STEP = 128  # about as many as the 2,048 tokens of that config
SIZES = (1_000, 2_000, 4_000, 8_000, 16_000, 32_768)


def prepare(folder: Path, size: int, pairs: int) -> Card:
    """Prepare a data set of the first pairs with this vocabulary size; returns its card."""
    corpus = Path(os.environ["DRAGOMAN_DATA"], "multi30k")
    for language in ("en", "de"):
        lines = gzip.decompress((corpus / f"train.{language}.gz").read_bytes()).splitlines(keepends=True)
        (folder / f"train.{language}").write_bytes(b"".join(lines[:pairs]))
    words = [f"{language}={folder}/train.{language}" for language in ("en", "de")]
    words += [
        word for language in ("en", "de") for word in ("--dev", f"{language}={corpus}/val.{language}.gz")
    ]
    dragoman("prepare", *words, "-o", str(folder / "data"), "--set", f"vocabulary.size={size}")
    return Card.load(folder / "data" / "card.json")


def train(folder: Path, steps: int, seed: int) -> saved_state.SavedState:
    """Train; returns the saved state of the last checkpoint."""
    settings = {
        "data.unit": "pairs",
        "data.step": PAIRS_PER_STEP,
        "data.microbatch": PAIRS_PER_STEP // 2,
        "train.steps": steps,
        "train.seed": seed,
        "evaluate.every": steps,
        "checkpoint.every": steps,
    }
    changes = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    run = folder / "run"
    dragoman("train", str(CONFIG), "--data", str(folder / "data"), "--run", str(run), *changes)
    return saved_state.saved_state(RunFolder(run).checkpoint(steps))


def dragoman(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "dragoman", *words], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="vocabulary sizes")
    parser.add_argument("--pairs", type=int, nargs="+", default=[29_000], help="corpus sizes (29000)")
    parser.add_argument("--steps", type=int, default=1_100, help="steps of each training (1100)")
    parser.add_argument("--seed", type=int, default=1, help="seed of each training (1)")
    arguments = parser.parse_args()
    print(" pairs   size  pieces  tokens/side  s/step    BLEU    chrF", flush=True)
    for pairs in arguments.pairs:
        for size in arguments.sizes:
            with tempfile.TemporaryDirectory() as name:
                card = prepare(Path(name), size, pairs)
                state = train(Path(name), arguments.steps, arguments.seed)
            train_part, last = card.parts["train"], state.history[-1]
            tokens = (train_part.source.tokens + train_part.target.tokens) / train_part.pairs / 2
            seconds = state.seconds / state.step
            print(
                f"{pairs:6,} {size:6,}  {card.vocabulary_pieces:6,}  {tokens:11.1f}  {seconds:6.3f}  "
                f"{last.bleu.value:6.2f}  {last.chrf.value:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
