"""The data set on disk: memory-mapped tokens, so opening one takes the same time whatever its size.

    DATA/
      card.json, card.md     what is in it
      config.toml            how it was prepared
      vocabulary.model       SentencePiece
      train/  dev/  test/    source.tokens, source.offsets, target.tokens, target.offsets
                             and the text of dev and test: source.txt, target.txt

`tokens` holds all sentences end to end, each ended by EOS, in 16 bits if the vocabulary allows. `offsets` (64
bits, one more than there are pairs) says where each sentence begins. Everything is little-endian.
"""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from dragoman import kinds
from dragoman.data.card import Card, CorpusFacts
from dragoman.data.tokens import Tokenizer
from dragoman.errors import DataSetError, reading

SIDES = ("source", "target")
VOCABULARY_FILE = "vocabulary.model"
_CHUNK = 1 << 22  # tokens or offsets that are checked together
_HINT = "remove the folder, then copy or prepare it again"


class Side:
    """One language of a part."""

    def __init__(self, folder: Path, name: str, token_type: type[np.unsignedinteger]):
        self._paths = folder / f"{name}.tokens", folder / f"{name}.offsets"
        tokens, offsets = self._paths
        with reading(tokens, DataSetError, _HINT):
            self.tokens = np.memmap(tokens, dtype=token_type, mode="r")
        with reading(offsets, DataSetError, _HINT):
            self.offsets = np.memmap(offsets, dtype=np.uint64, mode="r")

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        """The number of tokens in each row, EOS included."""
        return (self.offsets[rows + 1] - self.offsets[rows]).astype(np.int64)

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The tokens of these rows end to end as int64, and the length of each."""
        lengths = self.lengths(rows)
        ends = np.cumsum(lengths)
        # The place in `tokens` of each token in the result: its row's offset, less what precedes the row.
        places = np.repeat(self.offsets[rows].astype(np.int64) - (ends - lengths), lengths)
        places += np.arange(int(ends[-1]) if len(ends) else 0)
        return self.tokens[places].astype(np.int64), lengths

    def check(self, pieces: int) -> None:
        """Raises unless each sentence has its place in `tokens` and each token is below `pieces`."""
        tokens, offsets = self._paths
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.tokens):
            what = (
                f"sentences from {self.offsets[0]:,} to {self.offsets[-1]:,} of {len(self.tokens):,} tokens"
            )
            raise DataSetError(what, path=offsets, hint=_HINT)
        for start in range(0, len(self.offsets) - 1, _CHUNK):
            chunk = self.offsets[start : start + _CHUNK + 1]
            if (empty := np.flatnonzero(chunk[1:] <= chunk[:-1])).size:
                what = f"sentence {start + empty[0] + 1:,} ends where it begins, or earlier"
                raise DataSetError(what, path=offsets, hint=_HINT)
        for start in range(0, len(self.tokens), _CHUNK):
            if (largest := int(self.tokens[start : start + _CHUNK].max())) >= pieces:
                what = f"token id {largest:,}, but the vocabulary has only {pieces:,} pieces"
                raise DataSetError(what, path=tokens, hint=_HINT)


class Part:
    """Train, dev or test. Its pairs are numbered from 0."""

    def __init__(self, folder: Path, token_type: type[np.unsignedinteger]):
        self._folder = folder
        self.source = Side(folder, "source", token_type)
        self.target = Side(folder, "target", token_type)

    def __len__(self) -> int:
        return len(self.source.offsets) - 1

    def text(self, side: str) -> list[str]:
        """The sentences of dev or test as they were given. The training part keeps only tokens."""
        path = self._folder / f"{side}.txt"
        with reading(path, DataSetError, _HINT):
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        if len(lines) != len(self):
            raise DataSetError(f"{len(lines):,} lines for {len(self):,} pairs", path=path, hint=_HINT)
        return lines


class DataSet:
    """A prepared data set."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self.card = Card.load(path / "card.json")
        except (FileNotFoundError, NotADirectoryError):
            raise kinds.refused(path, "data set") from None
        self.tokenizer = Tokenizer.load(path / VOCABULARY_FILE)
        if self.tokenizer.sha256 != self.card.vocabulary_sha256:
            raise DataSetError(
                "is not the vocabulary named in the card", path=path / VOCABULARY_FILE, hint=_HINT
            )
        self._check_sizes()
        token_type = self.tokenizer.token_type
        self.parts = {name: Part(path / name, token_type) for name in self.card.parts}

    @property
    def train(self) -> Part:
        return self.parts["train"]

    def check_contents(self) -> None:
        """Raises unless every number in the arrays is valid. Reads them all, so call it once, before a run.

        100 million tokens are 200 MB and take 0.1 seconds if they are in memory, else as long as the disk
        needs, for which the first epoch would wait anyway. Checking the card's fingerprint would take several
        times as long, and would only reveal changes.
        """
        for part in self.parts.values():
            for side in (part.source, part.target):
                side.check(len(self.tokenizer))

    def _check_sizes(self) -> None:
        """Raises if a file is missing or has the wrong size, such as a truncated copy."""
        for name, expected in (self._sizes() | self.card.files).items():
            path = self.path / name
            actual = path.stat().st_size if path.is_file() else None
            if actual != expected:
                state = "is missing" if actual is None else f"has {actual:,} bytes"
                raise DataSetError(f"{state}; the card says {expected:,} bytes", path=path, hint=_HINT)
        for name, expected in self._sizes().items():
            if (listed := self.card.files.get(name, expected)) != expected:
                raise DataSetError(
                    f"{name} has {listed:,} bytes, but its pairs and tokens take {expected:,}",
                    path=self.path / "card.json",
                    hint=_HINT,
                )

    def _sizes(self) -> dict[str, int]:
        """The size of each array file in bytes, from the card's counts of pairs and tokens."""
        token_bytes = np.dtype(self.tokenizer.token_type).itemsize
        sizes = {}
        for name, facts in self.card.parts.items():
            for side, side_facts in zip(SIDES, (facts.source, facts.target), strict=True):
                sizes[f"{name}/{side}.tokens"] = side_facts.tokens * token_bytes
                sizes[f"{name}/{side}.offsets"] = (facts.pairs + 1) * 8
        return sizes


class PartWriter:
    """Appends encoded pairs to a part's files. Written, not mapped: mapped pages count as used memory."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self._stack = ExitStack()
        self._tokens = [self._open(folder / f"{side}.tokens") for side in SIDES]
        self._offsets = [self._open(folder / f"{side}.offsets") for side in SIDES]
        self._end = [0, 0]
        for file in self._offsets:
            file.write(np.zeros(1, dtype="<u8").tobytes())

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _open(self, path: Path) -> BinaryIO:
        return self._stack.enter_context(open(path, "wb"))

    def add(self, sides: tuple[tuple[np.ndarray, np.ndarray], ...]) -> None:
        """Appends pairs: the tokens and lengths of their source sentences, and those of their targets."""
        for number, (tokens, lengths) in enumerate(sides):
            ends = np.cumsum(lengths, dtype=np.uint64) + np.uint64(self._end[number])
            self._tokens[number].write(tokens.astype(tokens.dtype.newbyteorder("<"), copy=False).data)
            self._offsets[number].write(ends.astype("<u8", copy=False).data)
            self._end[number] += len(tokens)


def fingerprint(folder: Path, names: list[str], corpora: list[CorpusFacts]) -> str:
    """One checksum of these files and the corpora's weights, which together decide every batch of a run."""
    whole = hashlib.sha256()
    for corpus in corpora:
        whole.update(f"{corpus.pairs} pairs, weight {corpus.weight!r}\n".encode())
    for name in sorted(names):
        with open(folder / name, "rb") as file:
            whole.update(f"{name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()
