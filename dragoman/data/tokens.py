"""Subwords: learns and loads vocabularies, encodes and decodes text. SentencePiece does the work."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import sentencepiece

from dragoman.config import VocabularySettings
from dragoman.content import read_whole
from dragoman.errors import DataError, DataSetError

PAD, EOS, BOS, UNK = 0, 1, 2, 3  # as in the vocabulary of the public WMT16 en-de runs
LARGEST_BYTES = 64 * 2**20  # of a model; one with 256,000 pieces has 5 MB
_LEAST_COVERAGE = 0.98  # the lowest that SentencePiece takes: only the most frequent characters
# SentencePiece ignores longer sentences and those with its sign for unknown characters. It ends the process
# if a required character occurs in none of the others.
_LONGEST_BYTES = 4192
_RESERVED = "\u2585"


# (pairs, pieces): the pieces for a corpus with fewer training pairs than this. Rare pieces are seen too
# seldom to be learnt, and every piece costs time at every token: benchmarks/RESULTS.md.
_SUITED_PIECES = ((10_000, 4_000), (100_000, 8_000), (1_000_000, 16_000))
MOST_SUITED_PIECES = 32_768  # also for a corpus of unknown size


def suited_pieces(pairs: int) -> int:
    """The vocabulary size that suits a corpus of this many training pairs."""
    return next((pieces for limit, pieces in _SUITED_PIECES if pairs < limit), MOST_SUITED_PIECES)


class Tokenizer:
    """A SentencePiece model with our four special ids. A bad model raises an error of this `kind`."""

    def __init__(self, model: bytes, path: Path | str = "vocabulary", kind: type[DataError] = DataSetError):
        self._processor = processor(model, path, kind)
        self.model = model
        self._check_special_ids(path, kind)

    @classmethod
    def load(cls, path: Path, kind: type[DataError] = DataSetError) -> Tokenizer:
        """The tokenizer in a file. Errors are of this `kind`, which says what the file is part of."""
        try:
            return cls(read_whole(path, kind, LARGEST_BYTES), path, kind)
        except OSError as error:
            raise kind(f"cannot be read: {error.strerror}", path=path) from None

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.model).hexdigest()

    @property
    def token_type(self) -> type[np.unsignedinteger]:
        """The narrowest type that holds every id."""
        return np.uint16 if len(self) <= 1 << 16 else np.uint32

    def encode(self, lines: Sequence[str] | Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """The tokens of all lines end to end, each line ended by EOS, and each line's number of tokens."""
        rows = self._processor.encode(lines, add_eos=True, num_threads=1)
        lengths = np.fromiter(map(len, rows), dtype=np.uint32, count=len(rows))
        tokens = np.fromiter(chain.from_iterable(rows), dtype=self.token_type, count=int(lengths.sum()))
        return tokens, lengths

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The text of each row of ids, without special ids."""
        return list(self._processor.decode([list(map(int, row)) for row in rows])) if rows else []

    def _check_special_ids(self, path: Path | str, kind: type[DataError]) -> None:
        processor = self._processor
        pad, eos, bos, unk = processor.pad_id(), processor.eos_id(), processor.bos_id(), processor.unk_id()
        if (pad, eos, bos, unk) != (PAD, EOS, BOS, UNK):
            raise kind(
                f"special ids are pad {pad}, eos {eos}, bos {bos}, unk {unk}; "
                f"expected pad {PAD}, eos {EOS}, bos {BOS}, unk {UNK}",
                path=path,
                hint="train it with --pad_id=0 --eos_id=1 --bos_id=2 --unk_id=3, or leave --vocab out",
            )


def processor(model: bytes, path: Path | str, kind: type[DataError]) -> sentencepiece.SentencePieceProcessor:
    """A SentencePiece model, ready to use. A bad model raises an error of this kind."""
    try:
        if not model:  # SentencePiece does not treat this as an error
            raise ValueError("empty")
        opened = sentencepiece.SentencePieceProcessor(model_proto=model)
        opened.id_to_piece(list(range(opened.get_piece_size())))  # raises if a piece is not UTF-8
    except Exception as error:  # RuntimeError, ValueError, UnicodeDecodeError
        raise kind(f"not a SentencePiece model: {error}", path=path) from None
    return opened


def learn(sentences: Iterable[str], settings: VocabularySettings) -> Tokenizer:
    """Learns a BPE vocabulary of the size in the settings, or the largest that the text supports."""
    model = io.BytesIO()
    sentences = [line for line in sentences if len(line.encode()) <= _LONGEST_BYTES and _RESERVED not in line]
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="bpe",
            vocab_size=settings.size,
            hard_vocab_limit=False,  # a small text gets the largest vocabulary it supports
            max_sentence_length=_LONGEST_BYTES,
            character_coverage=_LEAST_COVERAGE,
            required_chars=_characters(sentences, settings.rarest_character),
            normalization_rule_name="identity",  # the text is already normalised, and must come out unchanged
            pad_id=PAD,
            eos_id=EOS,
            bos_id=BOS,
            unk_id=UNK,
            minloglevel=2,
        )
    except RuntimeError as error:
        if "smaller than required_chars" in str(error):
            raise DataError(
                f"vocabulary.size = {settings.size} is too small for the characters of this text",
                hint="set a larger vocabulary.size or a higher vocabulary.rarest_character",
            ) from None
        raise DataError(f"cannot learn a vocabulary from this text: {error}") from None
    return Tokenizer(model.getvalue())


def _characters(sentences: Sequence[str], rarest: float) -> str:
    """The characters that get a piece of their own; all others are unknown.

    SentencePiece itself would choose them by the share of the text they cover together. On the 29,000 pairs
    of Multi30k, its usual 99.95 % leaves out every digit and Ä, Ö and Ü.
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence)
    least = rarest * counts.total()
    del counts[" "]  # SentencePiece has its own sign for a space
    return "".join(sorted(character for character, count in counts.items() if count >= least))
