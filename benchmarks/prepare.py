"""Measures how long `dragoman prepare` takes on a corpus the size of WMT16 en-de, and what encoding costs.

    python benchmarks/prepare.py [--pairs 4500000] [--folder FOLDER]

The corpus is generated: 4.5 million pairs, about 1.3 GB, words drawn by Zipf's law from 400,000 types per
language. It gives two figures:

- the whole `dragoman prepare`: wall time, and the largest resident memory of any of its processes;
- encoding compared with bare SentencePiece on the same number of threads, alternating in one run: sentences
  per second of our pass from text on disk to tokens on disk, divided by those of `encode(list,
  num_threads=cores)`.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import sentencepiece

from dragoman.data.encode import encode
from dragoman.data.parallel import Workers, cores
from dragoman.data.store import VOCABULARY_FILE
from dragoman.progress import Reporter

WORD_TYPES = 400_000
MEAN_WORDS = 17
ROUNDS = 5
FIRST_BATCH = """
import sys, time
from pathlib import Path
from dragoman.data.batches import Batches, Position, StepSize
from dragoman.data.store import DataSet

began = time.monotonic()
batches = Batches(DataSet(Path(sys.argv[1])), StepSize(25000, 3125), seed=1)
batches.load(next(batches.after(Position())).microbatches[0])
print(f"first batch: {time.monotonic() - began:.2f} s after opening")
"""
SAMPLE_PAIRS = 150_000


def words(language: int) -> list[str]:
    """Word types; frequent ones are short, as in real text."""
    generator = np.random.default_rng(language)
    vowels = "aeiouäöü" if language else "aeiou"
    syllables = [c + v for c in "bdfghklmnprstvwz" for v in vowels]
    syllables += [syllable + end for syllable in syllables for end in "nrst"]
    syllables = generator.permutation(syllables).tolist()
    types: dict[str, None] = {}
    while len(types) < WORD_TYPES:
        count = 1 + min(4, int(np.log10(1 + len(types)) / 1.3))
        types["".join(syllables[i] for i in generator.integers(len(syllables), size=count))] = None
    return list(types)


def generate(folder: Path, pairs: int) -> list[Path]:
    """Write two text files with a sentence per line."""
    ranks = np.arange(1, WORD_TYPES + 1)
    cumulative = np.cumsum(1 / ranks**1.05)
    generator = np.random.default_rng(7)
    paths = [folder / "train.en", folder / "train.de"]
    lexicons = [words(0), words(1)]
    files = [path.open("w", encoding="utf-8") for path in paths]
    for start in range(0, pairs, 20_000):
        count = min(20_000, pairs - start)
        lengths = np.clip(generator.gamma(2.5, MEAN_WORDS / 2.5, count).astype(int) + 2, 2, 78)
        for file, lexicon in zip(files, lexicons, strict=True):
            words_each = np.clip(lengths + generator.integers(-2, 3, count), 1, 80)
            ids = np.searchsorted(cumulative, generator.random(words_each.sum()) * cumulative[-1]).tolist()
            ends = np.cumsum(words_each).tolist()
            chosen = [lexicon[i] for i in ids]
            for begin, end in zip([0, *ends], ends, strict=False):
                file.write(" ".join(chosen[begin:end]) + ".\n")
    for file in files:
        file.close()
    return paths


def watch(command: list[str]) -> tuple[float, int]:
    """Run a command; returns wall seconds and the largest peak of resident memory of any of its processes."""
    began, peak = time.monotonic(), 0
    process = psutil.Popen(command)
    while process.poll() is None:
        for each in [process, *process.children(recursive=True)]:
            try:
                peak = max(peak, each.memory_info().rss)
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"this command failed: {' '.join(command)}")
    return time.monotonic() - began, peak


def encoding_ratio(folder: Path, paths: list[Path], vocabulary: Path) -> list[float]:
    """Sentences per second of ours divided by bare SentencePiece's, one figure per round."""
    sides = []
    for path in paths:
        with path.open("rb") as file:
            sides.append([next(file)[:-1] for _ in range(SAMPLE_PAIRS)])
    bare = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary))
    chunk = 8_192
    ratios = []
    with Workers() as workers:
        for number in range(ROUNDS + 1):
            began = time.monotonic()
            for side in sides:
                bare.encode(side, add_eos=True, num_threads=cores())
            bare_seconds = time.monotonic() - began
            chunks = (
                (sides[0][i : i + chunk], sides[1][i : i + chunk]) for i in range(0, SAMPLE_PAIRS, chunk)
            )
            began = time.monotonic()
            encode(folder / "encoded", chunks, SAMPLE_PAIRS, vocabulary, workers, Reporter())
            seconds = time.monotonic() - began
            if number:  # the first round starts the worker processes
                ratios.append(bare_seconds / seconds)
                print(f"encoding: bare {bare_seconds:.2f} s, ours {seconds:.2f} s, ratio {ratios[-1]:.2f}")
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=4_500_000, help="pairs to generate (4500000)")
    parser.add_argument("--folder", type=Path, help="working folder (default: a temporary one, removed)")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="dragoman-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    paths = generate(folder, arguments.pairs)
    size = sum(path.stat().st_size for path in paths)
    print(f"{arguments.pairs:,} pairs, {size / 1e9:.2f} GB of text")
    command = [sys.executable, "-m", "dragoman", "prepare", f"en={paths[0]}", f"de={paths[1]}"]
    seconds, peak = watch([*command, "-o", str(folder / "data")])
    print(f"prepare: {seconds / 60:.1f} minutes, largest process {peak / 1e9:.2f} GB")
    ratios = encoding_ratio(folder, paths, folder / "data" / VOCABULARY_FILE)
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"encoding over bare SentencePiece: median {statistics.median(ratios):.2f}, {spread}")
    subprocess.run([sys.executable, "-c", FIRST_BATCH, str(folder / "data")], check=True)
    if arguments.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
