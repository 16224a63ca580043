"""The encoding pass: turns clean sentences into tokens, on all cores."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dragoman.data.card import PartFacts, SideFacts
from dragoman.data.parallel import Workers
from dragoman.data.store import PartWriter
from dragoman.data.tokens import Tokenizer
from dragoman.progress import Reporter

_BUCKET = 10  # tokens per bar of the length histogram
_BUCKETS = 12  # the last one counts everything longer


class _Sentences(NamedTuple):
    source: list[bytes]
    target: list[bytes]
    vocabulary: Path


class _Counts:
    """Collects the card's facts about one side."""

    def __init__(self) -> None:
        self.bytes = 0
        self.tokens = 0
        self._buckets = np.zeros(_BUCKETS, dtype=np.int64)

    def add(self, sentences_bytes: int, lengths: np.ndarray) -> None:
        self.bytes += sentences_bytes
        self.tokens += int(lengths.sum())
        buckets = np.minimum((lengths - 1) // _BUCKET, _BUCKETS - 1)
        self._buckets += np.bincount(buckets, minlength=_BUCKETS)

    def facts(self) -> SideFacts:
        names = [f"{_BUCKET * n + 1}-{_BUCKET * (n + 1)}" for n in range(_BUCKETS - 1)]
        names.append(f"over {_BUCKET * (_BUCKETS - 1)}")
        return SideFacts(
            bytes=self.bytes,
            tokens=self.tokens,
            lengths=dict(zip(names, self._buckets.tolist(), strict=True)),
        )


def encode(
    folder: Path,
    chunks: Iterator[tuple[list[bytes], list[bytes]]],
    total_pairs: int,
    vocabulary: Path,
    workers: Workers,
    reporter: Reporter,
) -> PartFacts:
    """Writes one part of the data set and returns its facts for the card."""
    source, target, pairs = _Counts(), _Counts(), 0
    work = (_Sentences(*chunk, vocabulary) for chunk in chunks)
    with PartWriter(folder) as writer, reporter.stage(f"Encoding {folder.name}", "pairs") as stage:
        for encoded in workers.map(_encode_sentences, work):
            writer.add((encoded.source, encoded.target))
            source.add(encoded.source_bytes, encoded.source[1])
            target.add(encoded.target_bytes, encoded.target[1])
            pairs += len(encoded.source[1])
            stage.at(pairs, total_pairs)
    return PartFacts(pairs=pairs, source=source.facts(), target=target.facts())


class _Encoded(NamedTuple):
    source: tuple[np.ndarray, np.ndarray]  # tokens end to end, lengths
    target: tuple[np.ndarray, np.ndarray]
    source_bytes: int  # of text, line ends included
    target_bytes: int


def _encode_sentences(sentences: _Sentences) -> _Encoded:
    tokenizer = _tokenizer(sentences.vocabulary)
    return _Encoded(
        tokenizer.encode(sentences.source),
        tokenizer.encode(sentences.target),
        sum(map(len, sentences.source)) + len(sentences.source),
        sum(map(len, sentences.target)) + len(sentences.target),
    )


_tokenizer = cache(Tokenizer.load)  # one per worker process
