"""The data set's card: its contents, their origin, and what cleaning dropped and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from dragoman.content import read_whole
from dragoman.data.reasons import MEANING, Reason
from dragoman.errors import DataSetError, reading

SCHEMA = 1
PARTS = ("train", "dev", "test")

Count = Annotated[int, Field(ge=0, le=2**48)]  # more than any corpus has, yet no sum of counts overflows
Positive = Annotated[int, Field(ge=1, le=2**48)]


class SideFacts(BaseModel):
    """One language of a part."""

    bytes: Count  # of the text that was encoded, line ends included
    tokens: Positive  # EOS included
    lengths: dict[str, Count]  # pairs by tokens per sentence: "1-10", "11-20", ...


class PartFacts(BaseModel):
    pairs: Positive
    source: SideFacts
    target: SideFacts


class CorpusFacts(BaseModel):
    """One corpus of the training part. Its pairs are contiguous; corpora follow the order of the list."""

    name: str
    weight: float = Field(gt=0, allow_inf_nan=False)
    pairs: Count


class SourceFile(BaseModel):
    path: str
    bytes: Count
    sha256: str


class DroppedExample(BaseModel):
    file: str
    line: Count
    source: str
    target: str


class Dropped(BaseModel):
    pairs: Count
    examples: list[DroppedExample]


class ExpectedCount(BaseModel):
    """A count that the recipe knows from the public record, and the actual count."""

    what: str
    expected: Count
    found: Count

    def __str__(self) -> str:
        verdict = "as expected" if self.found == self.expected else f"WARNING: expected {self.expected:,}"
        return f"{self.found:,} {self.what}, {verdict}"


class Card(BaseModel):
    schema_version: int = SCHEMA
    source_language: str
    target_language: str
    parts: dict[str, PartFacts]
    corpora: list[CorpusFacts]
    read_pairs: Count
    read_bytes: dict[str, Count]  # per side, of the text as read
    dropped: dict[str, Dropped]
    skipped_units: dict[str, Count]  # units of TMX, XLIFF or PO files that hold no pair, by reason
    vocabulary_pieces: Positive
    vocabulary_asked: Positive
    vocabulary_sha256: str
    notes: list[str]
    checks: list[ExpectedCount]
    sources: list[SourceFile]
    files: dict[str, Count]  # the bytes of every data file
    fingerprint: str
    job: str  # checksum of sources and settings, so that the same job is not done twice
    made_with: str

    @field_validator("files")
    @classmethod
    def _names_stay_inside(cls, files: dict[str, int]) -> dict[str, int]:
        for name in files:
            path = PurePosixPath(name)
            if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
                raise ValueError(f"{name!r} is not a file name inside the data set")
        return files

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if "train" not in self.parts or not set(self.parts) <= set(PARTS):
            raise ValueError(f"parts are {', '.join(self.parts) or 'none'}; expected train, dev and test")
        in_corpora, in_train = sum(corpus.pairs for corpus in self.corpora), self.parts["train"].pairs
        if in_corpora != in_train:
            raise ValueError(f"the corpora have {in_corpora:,} pairs, the training part {in_train:,}")
        return self

    @classmethod
    def load(cls, path: Path) -> Card:
        with reading(path, DataSetError, "prepare the data set again, or copy it again from its origin"):
            card = cls.model_validate_json(read_whole(path, DataSetError))
            if card.schema_version != SCHEMA:
                raise DataSetError(
                    f"schema {card.schema_version}; this version of dragoman reads schema {SCHEMA}",
                    path=path,
                    hint=f"use {card.made_with}, or prepare the data set again",
                )
            return card

    @property
    def dropped_pairs(self) -> int:
        return sum(dropped.pairs for dropped in self.dropped.values())

    def json_text(self) -> str:
        return self.model_dump_json(indent=2) + "\n"

    def markdown(self) -> str:
        """The card as text for people."""
        return "\n".join(
            [
                f"# Data set {self.source_language} to {self.target_language}",
                "",
                *self._parts(),
                *self._lengths(),
                *self._corpora(),
                *self._cleaning(),
                *self._origin(),
            ]
        )

    def _parts(self) -> list[str]:
        rows = [
            (
                name,
                facts.pairs,
                facts.source.bytes,
                facts.source.tokens,
                facts.target.bytes,
                facts.target.tokens,
            )
            for name, facts in self.parts.items()
        ]
        header = ("part", "pairs", "source bytes", "source tokens", "target bytes", "target tokens")
        vocabulary = (
            f"Vocabulary: {self.vocabulary_pieces:,} SentencePiece BPE pieces, shared by both languages."
        )
        return [*_table(header, rows), "", vocabulary, *(f"Note: {note}." for note in self.notes), ""]

    def _lengths(self) -> list[str]:
        train = self.parts["train"]
        rows = [
            (name, count, train.target.lengths.get(name, 0)) for name, count in train.source.lengths.items()
        ]
        while rows and not any(rows[-1][1:]):
            rows.pop()
        header = ("tokens per sentence", "source", "target")
        return ["## Lengths of the training sentences", "", *_table(header, rows), ""]

    def _corpora(self) -> list[str]:
        rows = [(corpus.name, corpus.pairs, f"{corpus.weight:g}") for corpus in self.corpora]
        return ["## Corpora", "", *_table(("corpus", "pairs", "weight"), rows), ""]

    def _cleaning(self) -> list[str]:
        kept = self.read_pairs - self.dropped_pairs
        lines = ["## Cleaning", "", f"{self.read_pairs:,} pairs read, {kept:,} kept.", ""]
        if self.dropped:
            rows = [
                (reason, dropped.pairs, MEANING[Reason(reason)], _first(dropped))
                for reason, dropped in self.dropped.items()
            ]
            lines += [*_table(("reason", "pairs", "meaning", "first at"), rows), ""]
        lines += [f"Skipped: {count:,} x {reason}." for reason, count in self.skipped_units.items()]
        lines += [f"Check: {check}." for check in self.checks]
        return lines + [""]

    def _origin(self) -> list[str]:
        rows = [(source.path, source.bytes, f"`{source.sha256}`") for source in self.sources]
        header = ("file", "bytes", "sha256")
        return [
            "## Origin",
            "",
            *_table(header, rows),
            "",
            f"Fingerprint: `{self.fingerprint}`",
            "",
            f"Made with {self.made_with}.",
            "",
        ]


def _first(dropped: Dropped) -> str:
    return f"{dropped.examples[0].file}:{dropped.examples[0].line}" if dropped.examples else ""


def _table(header: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> list[str]:
    def line(cells: tuple[object, ...]) -> str:
        shown = (f"{cell:,}" if isinstance(cell, int) else str(cell).replace("|", "\\|") for cell in cells)
        return f"| {' | '.join(shown)} |"

    return [line(header), f"|{' --- |' * len(header)}", *map(line, rows)]
