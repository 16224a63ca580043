"""The score of trainings on Multi30k: how they are translated is chosen on the validation set alone.

    DRAGOMAN_DATA=FOLDER python benchmarks/multi30k.py RUN... [--test test_2016_flickr ...]

FOLDER/multi30k/tok holds the tokenised lower-cased files; each RUN is one seed of `dragoman train
benchmarks/multi30k.toml` on them. One way to translate is chosen for all seeds, by the mean of their scores:

- A way is the number of newest checkpoints that are averaged and the length penalty, each of GRID. Beam 5.
- Of those that chrF and TER call no worse than USUAL, the one with the highest BLEU. By BLEU alone the length
  penalty would rise wherever translations are shorter than the references of just this set; what is really
  better is better by all three.

Only then, and only if asked for, test sets are translated that way, by each seed once. Scores are sacreBLEU's
with `-tok none`.
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
class Way:
    """How a run is translated."""

    average: int  # newest checkpoints
    length_penalty: float


USUAL = Way(5, 1.0)
GRID = [Way(average, penalty) for average in (1, 5, 10) for penalty in (0.6, 0.8, 1.0, 1.2, 1.4, 1.8, 2.2)]


@dataclass(frozen=True)
class Scores:
    bleu: float
    chrf: float
    ter: float
    length: float  # words over those of the references

    def __str__(self) -> str:
        return f"{self.bleu:6.2f} {self.chrf:6.2f} {self.ter:6.2f} {self.length:7.3f}"


def mean_of(found: Sequence[Scores]) -> Scores:
    return Scores(
        *(mean(values) for values in zip(*(vars(scores).values() for scores in found), strict=True))
    )


def scored(engine: Engine, penalty: float, part: str) -> Scores:
    sources, references = (
        sentences(Path(os.environ["DRAGOMAN_DATA"], "multi30k", "tok", f"{part}.lc.norm.tok.{language}.gz"))
        for language in ("en", "de")
    )
    found = engine.translate(sources, Options(beam=BEAM, length_penalty=penalty))
    texts = [translations[0].text for translations in found]
    bleu = BLEU(tokenize="none", force=True).corpus_score(texts, [references])
    chrf, ter = (metric.corpus_score(texts, [references]).score for metric in (CHRF(), TER()))
    return Scores(bleu.score, chrf, ter, bleu.sys_len / bleu.ref_len)


def on_validation(runs: Sequence[Path]) -> dict[Way, list[Scores]]:
    """Of every way, the scores of each run."""
    found: dict[Way, list[Scores]] = {way: [] for way in GRID}
    for run in runs:
        for average in dict.fromkeys(way.average for way in GRID):
            engine = engines.load(run, precision="float32", average=average)
            for way in GRID:
                if way.average == average:
                    found[way].append(scored(engine, way.length_penalty, "val"))
    return found


def chosen(found: dict[Way, Scores]) -> Way:
    usual = found[USUAL]
    no_worse = [way for way, scores in found.items() if scores.chrf >= usual.chrf and scores.ter <= usual.ter]
    return max(no_worse, key=lambda way: found[way].bleu)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--test", nargs="+", default=[], metavar="PART", help="as test_2016_flickr")
    arguments = parser.parse_args()

    by_run = on_validation(arguments.runs)
    means = {way: mean_of(scores) for way, scores in by_run.items()}
    print(f"validation, mean of {len(arguments.runs)}: checkpoints, length penalty, BLEU, chrF, TER, length")
    for way, scores in means.items():
        print(f"{way.average:3} {way.length_penalty:4.1f} {scores}")
    way = chosen(means)
    print(f"chosen: {way.average} checkpoints, length penalty {way.length_penalty}")
    for run, scores in zip(arguments.runs, by_run[way], strict=True):
        print(f"{run.name:24} val {scores}")

    for part in arguments.test:
        found = []
        for run in arguments.runs:
            engine = engines.load(run, precision="float32", average=way.average)
            found.append(scored(engine, way.length_penalty, part))
            print(f"{run.name:24} {part} {found[-1]}", flush=True)
        print(f"{'mean':24} {part} {mean_of(found)}")


if __name__ == "__main__":
    main()
