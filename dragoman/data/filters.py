"""Filters training pairs one at a time, and counts each dropped pair under a reason."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from dragoman.config import CleanRules
from dragoman.data.corpus import RawPair
from dragoman.data.language import LanguageCheck, ScriptCheck
from dragoman.data.reasons import Reason

EXAMPLES_KEPT = 5
_EXAMPLE_CHARACTERS = 160
_LINE_SEPARATOR = re.compile("[\u2028\u2029\u0085]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # tab counts as white space


class Example(NamedTuple):
    """A dropped pair: its file, line and text."""

    file: str
    line: int
    source: str
    target: str


class Pair(NamedTuple):
    """A pair that passed the filters: normalised text."""

    source: str
    target: str


@dataclass
class DropTally:
    """Counts dropped pairs by reason, and keeps the first few of each."""

    dropped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Example]] = field(default_factory=dict)

    def drop(self, reason: Reason, example: Example) -> None:
        self.dropped[reason] += 1
        kept = self.examples.setdefault(reason, [])
        if len(kept) < EXAMPLES_KEPT:
            kept.append(example)

    def add(self, other: DropTally) -> None:
        self.dropped.update(other.dropped)
        for reason, examples in other.examples.items():
            kept = self.examples.setdefault(reason, [])
            kept.extend(examples[: EXAMPLES_KEPT - len(kept)])


@dataclass
class CleanChunk:
    """The pairs kept from consecutive pairs of a file. Row i of every array belongs to kept pair i."""

    read_pairs: int
    source_bytes: int  # as read
    target_bytes: int
    source: bytes  # kept sentences, one per line
    target: bytes
    pair_hashes: np.ndarray  # uint64
    source_hashes: np.ndarray  # uint64
    lines: np.ndarray  # uint32, the pair's line in its file
    tally: DropTally


class Cleaner:
    """Judges pairs by the rules. It keeps no state, so each process may use its own."""

    def __init__(self, rules: CleanRules, source_language: str, target_language: str):
        self.rules = rules
        languages = (source_language, target_language)
        self.script = [ScriptCheck(language) for language in languages] if rules.check_script else []
        self.language = [LanguageCheck(language) for language in languages] if rules.check_language else []

    def judge(self, source: bytes, target: bytes) -> Pair | Reason:
        """The normalised pair, or the reason to drop it."""
        rules = self.rules
        try:
            source_text, target_text = source.decode(), target.decode()
        except UnicodeDecodeError:
            return Reason.INVALID_UTF8
        if rules.drop_control_characters:
            for text in (source_text, target_text):
                if _LINE_SEPARATOR.search(text):
                    return Reason.LINE_SEPARATOR
                if _CONTROL.search(text):
                    return Reason.CONTROL_CHARACTER
        source_words = normalise(source_text, rules.normalise).split()
        target_words = normalise(target_text, rules.normalise).split()
        fewer, more = sorted((len(source_words), len(target_words)))
        if fewer == 0:
            return Reason.EMPTY
        if fewer < rules.min_words or more > rules.max_words:
            return Reason.LENGTH
        if more > rules.max_ratio * fewer:
            return Reason.RATIO
        pair = Pair(" ".join(source_words), " ".join(target_words))
        if rules.drop_identical and pair.source == pair.target:
            return Reason.IDENTICAL
        if not all(check.fits(text) for check, text in zip(self.script, pair, strict=False)):
            return Reason.WRONG_SCRIPT
        if not all(check.fits(text) for check, text in zip(self.language, pair, strict=False)):
            return Reason.WRONG_LANGUAGE
        return pair

    def clean(self, pairs: list[RawPair], file: str) -> CleanChunk:
        """The pairs kept from consecutive pairs of one file, and a tally of the others."""
        kept: list[Pair] = []
        lines: list[int] = []
        tally = DropTally()
        for raw in pairs:
            verdict = self.judge(raw.source, raw.target)
            if isinstance(verdict, Reason):
                tally.drop(verdict, Example(file, raw.line, _excerpt(raw.source), _excerpt(raw.target)))
            else:
                kept.append(verdict)
                lines.append(raw.line)
        sources = [pair.source.encode() for pair in kept]
        targets = [pair.target.encode() for pair in kept]
        return CleanChunk(
            read_pairs=len(pairs),
            source_bytes=sum(len(raw.source) for raw in pairs),
            target_bytes=sum(len(raw.target) for raw in pairs),
            source=b"".join(text + b"\n" for text in sources),
            target=b"".join(text + b"\n" for text in targets),
            pair_hashes=hashes(s + b"\n" + t for s, t in zip(sources, targets, strict=True)),
            source_hashes=hashes(sources),
            lines=np.array(lines, dtype=np.uint32),
            tally=tally,
        )


def normalise(text: str, form: str) -> str:
    """The text in NFC, unless `form` is "none": composed and decomposed letters must be the same token."""
    if form == "none" or unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", text)


def as_prepared(text: str, form: str = "NFC") -> str:
    """The text as training pairs are: normalised, with single spaces. A model knows no other."""
    return " ".join(normalise(text, form).split())


def hashes(texts: Iterable[bytes]) -> np.ndarray:
    """A 64-bit hash of each text. Of corpora with a hundred million texts, one in 4,000 has a collision."""
    return np.frombuffer(b"".join(blake2b(text, digest_size=8).digest() for text in texts), dtype="<u8")


def _excerpt(text: bytes) -> str:
    return text.decode(errors="backslashreplace")[:_EXAMPLE_CHARACTERS]
