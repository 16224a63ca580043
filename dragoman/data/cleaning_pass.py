"""The cleaning pass: filters all corpora on all cores and writes one folder of clean text.

source.txt, target.txt       a sentence per line; line i of both is pair i
pair.hashes, source.hashes   64 bits per pair
lines                        32 bits per pair: its line in the file it came from
facts.json                   counts, and which file begins at which pair
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel

from dragoman.config import CleanRules
from dragoman.content import read_whole
from dragoman.data.corpus import Corpus, RawPair, read
from dragoman.data.filters import CleanChunk, Cleaner, DropTally, Example, Pair
from dragoman.data.parallel import Workers
from dragoman.errors import DataSetError, reading
from dragoman.progress import Reporter

CHUNK_PAIRS = 8_192


class FileStart(BaseModel):
    """A file, and the number of its first clean pair."""

    file: str
    corpus: int
    first_pair: int


class CleanFacts(BaseModel):
    read_pairs: int = 0
    source_bytes: int = 0  # as read, without line ends
    target_bytes: int = 0
    pairs: int = 0
    starts: list[FileStart] = []
    dropped: dict[str, int] = {}
    examples: dict[str, list[Example]] = {}
    skipped_units: dict[str, int] = {}


class CleanText:
    """A finished cleaning pass."""

    def __init__(self, folder: Path):
        self._folder = folder
        path = folder / "facts.json"
        with reading(path, DataSetError, f"remove {folder.parent} and run the command again"):
            self.facts = CleanFacts.model_validate_json(read_whole(path, DataSetError))

    def __len__(self) -> int:
        return self.facts.pairs

    def pair_hashes(self) -> np.ndarray:
        return np.fromfile(self._folder / "pair.hashes", dtype="<u8")

    def source_hashes(self) -> np.ndarray:
        return np.fromfile(self._folder / "source.hashes", dtype="<u8")

    def chunks(self, wanted: np.ndarray) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """The pairs where `wanted` is true, as source and target sentences, a few thousand at a time."""
        with (
            open(self._folder / "source.txt", "rb") as source,
            open(self._folder / "target.txt", "rb") as target,
        ):
            for start in range(0, len(wanted), CHUNK_PAIRS):
                chosen = wanted[start : start + CHUNK_PAIRS].tolist()
                # `chosen` comes first, so that zip ends before it takes a line that it would throw away.
                sources = [line[:-1] for keep, line in zip(chosen, source, strict=False) if keep]
                targets = [line[:-1] for keep, line in zip(chosen, target, strict=False) if keep]
                yield sources, targets

    def pairs(self, wanted: np.ndarray) -> list[Pair]:
        """The pairs where `wanted` is true, as text; for a few pairs."""
        rows = (row for chunk in self.chunks(wanted) for row in zip(*chunk, strict=True))
        return [Pair(source.decode(), target.decode()) for source, target in rows]

    def tally(self) -> DropTally:
        """A copy of the tally of dropped pairs, which the caller may add to."""
        return DropTally(
            Counter(self.facts.dropped), {reason: list(e) for reason, e in self.facts.examples.items()}
        )

    def examples(self, numbers: Sequence[int]) -> list[Example]:
        """The file, line and text of these pairs, given by ascending number."""
        wanted = np.zeros(len(self), dtype=bool)
        wanted[list(numbers)] = True
        lines = np.fromfile(self._folder / "lines", dtype="<u4")
        starts = self.facts.starts
        files = [[start.file for start in starts if start.first_pair <= number][-1] for number in numbers]
        return [
            Example(file, int(lines[number]), *pair)
            for file, number, pair in zip(files, numbers, self.pairs(wanted), strict=True)
        ]

    def corpus_ranges(self, corpora: int) -> list[tuple[int, int]]:
        """The first pair of each corpus and the one after its last."""
        firsts = [
            min(
                (start.first_pair for start in self.facts.starts if start.corpus >= number), default=len(self)
            )
            for number in range(corpora)
        ]
        return list(zip(firsts, [*firsts[1:], len(self)], strict=True))


class _Piece(NamedTuple):
    """Consecutive pairs of one file, as one task for a worker."""

    corpus: int
    file: str
    pairs: list[RawPair]
    rules: CleanRules
    languages: tuple[str, str]


def clean(
    folder: Path, corpora: tuple[Corpus, ...], rules: CleanRules, workers: Workers, reporter: Reporter
) -> None:
    """Reads and cleans all corpora into a folder, for `CleanText` to open."""
    facts, tally, skipped = CleanFacts(), DropTally(), Counter[str]()
    names = ("source.txt", "target.txt", "pair.hashes", "source.hashes", "lines")
    with ExitStack() as stack:
        outputs = [stack.enter_context(open(folder / name, "wb")) for name in names]
        stage = stack.enter_context(reporter.stage("Cleaning", "pairs"))
        for corpus, file, chunk in workers.map(_clean_piece, _pieces(corpora, rules, skipped)):
            if not facts.starts or (facts.starts[-1].corpus, facts.starts[-1].file) != (corpus, file):
                facts.starts.append(FileStart(file=file, corpus=corpus, first_pair=facts.pairs))
            hashes = (chunk.pair_hashes.tobytes(), chunk.source_hashes.tobytes())
            content = (chunk.source, chunk.target, *hashes, chunk.lines.tobytes())
            for output, data in zip(outputs, content, strict=True):
                output.write(data)
            facts.pairs += len(chunk.lines)
            facts.read_pairs += chunk.read_pairs
            facts.source_bytes += chunk.source_bytes
            facts.target_bytes += chunk.target_bytes
            tally.add(chunk.tally)
            stage.at(facts.read_pairs)
    facts.dropped, facts.examples, facts.skipped_units = dict(tally.dropped), tally.examples, dict(skipped)
    (folder / "facts.json").write_text(facts.model_dump_json())


def _pieces(corpora: tuple[Corpus, ...], rules: CleanRules, skipped: Counter[str]) -> Iterator[_Piece]:
    for number, corpus in enumerate(corpora):
        languages = (corpus.source_language, corpus.target_language)
        for files in corpus.files:
            pairs = read(corpus, files, skipped)
            while chunk := list(islice(pairs, CHUNK_PAIRS)):
                yield _Piece(number, str(files.source), chunk, rules, languages)


def _clean_piece(piece: _Piece) -> tuple[int, str, CleanChunk]:
    chunk = _cleaner(piece.rules, *piece.languages).clean(piece.pairs, piece.file)
    return piece.corpus, piece.file, chunk


_cleaner = cache(Cleaner)  # one per worker process
