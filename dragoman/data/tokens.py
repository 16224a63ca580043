"""Subwords: learn a vocabulary, load one, encode and decode. SentencePiece does the work."""

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
LARGEST_BYTES = 64 * 2**20  # of a model; one of 256,000 pieces has 5 MB
_LEAST_COVERAGE = 0.98  # that SentencePiece takes; the most frequent characters, which are wanted anyway
# SentencePiece passes over longer sentences and those with its sign for the unknown, and ends the process if
# a character that it must know stands in none of the others.
_LONGEST_BYTES = 4192
_RESERVED = "\u2585"


# The pieces for a corpus of fewer training pairs than that. A rare piece is seen too seldom to be learnt, and
# every piece costs time at every token: benchmarks/RESULTS.md.
_SUITED_PIECES = ((10_000, 4_000), (100_000, 8_000), (1_000_000, 16_000))
MOST_SUITED_PIECES = 32_768  # of a corpus of unknown size too


def suited_pieces(pairs: int) -> int:
    """How large a vocabulary suits a corpus of this many training pairs."""
    return next((pieces for limit, pieces in _SUITED_PIECES if pairs < limit), MOST_SUITED_PIECES)


class Tokenizer:
    """A SentencePiece model with our four special ids."""

    def __init__(self, model: bytes, path: Path | str = "vocabulary", kind: type[DataError] = DataSetError):
        self._processor = processor(model, path, kind)
        self.model = model
        self._check_special_ids(path, kind)

    @classmethod
    def load(cls, path: Path, kind: type[DataError] = DataSetError) -> Tokenizer:
        """`kind`: what the file is part of."""
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
        """The tokens of all lines end to end, each closed by EOS, and how many each line has."""
        rows = self._processor.encode(lines, add_eos=True, num_threads=1)
        lengths = np.fromiter(map(len, rows), dtype=np.uint32, count=len(rows))
        tokens = np.fromiter(chain.from_iterable(rows), dtype=self.token_type, count=int(lengths.sum()))
        return tokens, lengths

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Text of each row of ids; special ids leave no trace."""
        return list(self._processor.decode([list(map(int, row)) for row in rows])) if rows else []

    def _check_special_ids(self, path: Path | str, kind: type[DataError]) -> None:
        processor = self._processor
        found = (processor.pad_id(), processor.eos_id(), processor.bos_id(), processor.unk_id())
        if found != (PAD, EOS, BOS, UNK):
            raise kind(
                f"special ids are pad {found[0]}, eos {found[1]}, bos {found[2]}, unk {found[3]}; "
                f"expected pad {PAD}, eos {EOS}, bos {BOS}, unk {UNK}",
                path=path,
                hint="train it with --pad_id=0 --eos_id=1 --bos_id=2 --unk_id=3, or leave --vocab out",
            )


def processor(model: bytes, path: Path | str, kind: type[DataError]) -> sentencepiece.SentencePieceProcessor:
    """A SentencePiece model, ready to use; whatever is wrong with it is an error of this kind."""
    try:
        if not model:  # SentencePiece takes it for no model at all, and for no error
            raise ValueError("empty")
        opened = sentencepiece.SentencePieceProcessor(model_proto=model)
        opened.id_to_piece(list(range(opened.get_piece_size())))  # a piece that is not UTF-8 fails here
    except Exception as error:  # RuntimeError, ValueError, UnicodeDecodeError
        raise kind(f"not a SentencePiece model: {error}", path=path) from None
    return opened


def learn(sentences: Iterable[str], settings: VocabularySettings) -> Tokenizer:
    """A BPE vocabulary of the size asked for, or the largest that so little text supports."""
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
            normalization_rule_name="identity",  # the text is normalised already; what goes in comes out
            pad_id=PAD,
            eos_id=EOS,
            bos_id=BOS,
            unk_id=UNK,
            minloglevel=2,
        )
    except RuntimeError as error:
        if "smaller than required_chars" in str(error):
            raise DataError(
                f"vocabulary.size = {settings.size} has no room for the characters of this text",
                hint="a larger vocabulary.size, or a higher vocabulary.rarest_character",
            ) from None
        raise DataError(f"no vocabulary could be learnt: {error}") from None
    return Tokenizer(model.getvalue())


def _characters(sentences: Sequence[str], rarest: float) -> str:
    """Those that get a piece of their own; all others are unknown.

    SentencePiece would go by the share of the text they cover together: of the 29,000 pairs of Multi30k its
    usual 99.95 % leaves out every digit and Ä, Ö and Ü.
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence)
    least = rarest * counts.total()
    del counts[" "]  # SentencePiece has a sign of its own for it
    return "".join(sorted(character for character, count in counts.items() if count >= least))
