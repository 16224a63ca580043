"""Scores trainings on Multi30k, with decoding settings chosen on the validation set alone.

    DRAGOMAN_DATA=FOLDER python benchmarks/multi30k.py RUN... [--test test_2016_flickr ...]

FOLDER/multi30k/tok holds the tokenised lower-cased files; each RUN is one seed of `dragoman train
benchmarks/multi30k.toml` on them. One decoding is chosen for all seeds, by the mean of their scores:

- A decoding is a number of newest checkpoints to average and a length penalty, both from GRID. The beam is 5.
- Among those no worse than USUAL by chrF and TER, the one with the highest BLEU is chosen. BLEU alone would
  raise the length penalty wherever translations are shorter than the references of just this set; a real
  improvement shows in all three.

After that, test sets given with --test are translated with the chosen decoding, once per seed. Scores are
sacreBLEU's with `-tok none`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from sacrebleu.metrics import BLEU, CHRF, TER

from dragoman import engines
from dragoman.decode.engine import Engine, Options
from dragoman.evaluate.heldout import sentences

BEAM = 5


@dataclass(frozen=True)
class Decoding:
    """Settings with which a run is translated."""

    average: int  # newest checkpoints
    length_penalty: float


USUAL = Decoding(5, 1.0)
GRID = [
    Decoding(average, penalty) for average in (1, 5, 10) for penalty in (0.6, 0.8, 1.0, 1.2, 1.4, 1.8, 2.2)
]


@dataclass(frozen=True)
class Scores:
    bleu: float
    chrf: float
    ter: float
    length: float  # words divided by the references' words

    def __str__(self) -> str:
        return f"{self.bleu:6.2f} {self.chrf:6.2f} {self.ter:6.2f} {self.length:7.3f}"


def mean_of(several: Sequence[Scores]) -> Scores:
    return Scores(
        *(mean(values) for values in zip(*(vars(scores).values() for scores in several), strict=True))
    )


def scored(engine: Engine, penalty: float, part: str) -> Scores:
    sources, references = (
        sentences(Path(os.environ["DRAGOMAN_DATA"], "multi30k", "tok", f"{part}.lc.norm.tok.{language}.gz"))
        for language in ("en", "de")
    )
    results = engine.translate(sources, Options(beam=BEAM, length_penalty=penalty))
    texts = [translations[0].text for translations in results]
    bleu = BLEU(tokenize="none", force=True).corpus_score(texts, [references])
    chrf, ter = (metric.corpus_score(texts, [references]).score for metric in (CHRF(), TER()))
    return Scores(bleu.score, chrf, ter, bleu.sys_len / bleu.ref_len)


def on_validation(runs: Sequence[Path]) -> dict[Decoding, list[Scores]]:
    """Each decoding with the scores of every run."""
    results: dict[Decoding, list[Scores]] = {decoding: [] for decoding in GRID}
    for run in runs:
        for average in dict.fromkeys(decoding.average for decoding in GRID):
            engine = engines.load(run, precision="float32", average=average)
            for decoding in GRID:
                if decoding.average == average:
                    results[decoding].append(scored(engine, decoding.length_penalty, "val"))
    return results


def chosen(means: dict[Decoding, Scores]) -> Decoding:
    usual = means[USUAL]
    no_worse = [
        decoding
        for decoding, scores in means.items()
        if scores.chrf >= usual.chrf and scores.ter <= usual.ter
    ]
    return max(no_worse, key=lambda decoding: means[decoding].bleu)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="one run per seed")
    parser.add_argument("--test", nargs="+", default=[], metavar="PART", help="test sets to score")
    arguments = parser.parse_args()

    by_run = on_validation(arguments.runs)
    means = {decoding: mean_of(scores) for decoding, scores in by_run.items()}
    print(f"validation, mean of {len(arguments.runs)}: checkpoints, length penalty, BLEU, chrF, TER, length")
    for decoding, scores in means.items():
        print(f"{decoding.average:3} {decoding.length_penalty:4.1f} {scores}")
    best = chosen(means)
    print(f"chosen: {best.average} checkpoints, length penalty {best.length_penalty}")
    for run, scores in zip(arguments.runs, by_run[best], strict=True):
        print(f"{run.name:24} val {scores}")

    for part in arguments.test:
        of_seeds = []
        for run in arguments.runs:
            engine = engines.load(run, precision="float32", average=best.average)
            of_seeds.append(scored(engine, best.length_penalty, part))
            print(f"{run.name:24} {part} {of_seeds[-1]}", flush=True)
        print(f"{'mean':24} {part} {mean_of(of_seeds)}")


if __name__ == "__main__":
    main()
