"""Translates texts of any length with a model of sentences; all engines share this."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from math import isfinite, isnan
from pathlib import Path
from typing import Generic, TypeVar

from dragoman.data.filters import as_prepared
from dragoman.decode.engine import Options, Translation
from dragoman.decode.sentences import SplitSentence, join, split
from dragoman.errors import CheckpointError

# The longest sentence given to a model: about the longest that prepare keeps for training, 80 words.
LONGEST_TOKENS = 128

Tokens = TypeVar("Tokens", bound=Sized)


class TextTranslator(Generic[Tokens]):
    """Splits texts, translates all their sentences together, and joins the texts again."""

    def __init__(
        self,
        encode: Callable[[Sequence[str]], Sequence[Tokens]],
        find: Callable[[Sequence[Tokens], Options], list[list[Translation]]],
        pieces: int,
        model: Path | None = None,
    ):
        """`pieces` is the vocabulary's size; `model` is the path to name if the model proves damaged."""
        self._encode = encode
        self._find = find
        self._pieces = pieces
        self._model = model

    def translate(self, texts: Sequence[str], options: Options) -> list[list[Translation]]:
        options.check_vocabulary(self._pieces)
        split_texts = [split(text, LONGEST_TOKENS, self._count, options.split) for text in texts]
        sentences = [sentence.text for parts in split_texts for sentence in parts if sentence.text]
        translations = iter(self._scored(sentences, options) if sentences else ())
        return [
            _whole(parts, [next(translations) if sentence.text else [_NOTHING] for sentence in parts])
            for parts in split_texts
        ]

    def _scored(self, sentences: Sequence[str], options: Options) -> list[list[Translation]]:
        """The translations of each sentence; a score that is not finite is an error, not an empty line."""
        results = self._find(self._tokens(sentences), options)
        for translations in results:
            if not isfinite(translations[0].score) or any(isnan(other.score) for other in translations):
                raise CheckpointError(
                    "the model's scores are not finite numbers: its weights are damaged or far too large",
                    path=self._model,
                    hint="an earlier checkpoint, or export the model again",
                )
        return results

    def _count(self, texts: Sequence[str]) -> list[int]:
        return [len(tokens) for tokens in self._tokens(texts)]

    def _tokens(self, texts: Sequence[str]) -> Sequence[Tokens]:
        return self._encode(list(map(as_prepared, texts)))


_NOTHING = Translation("", 0.0)


def _whole(parts: Sequence[SplitSentence], choices: Sequence[Sequence[Translation]]) -> list[Translation]:
    """Join each sentence's best translation into the best text, the second best into the second, etc."""
    most = max(len(translations) for translations in choices)
    ranked = [[choice[min(rank, len(choice) - 1)] for choice in choices] for rank in range(most)]
    return [
        Translation(join(parts, [part.text for part in row]), sum(part.score for part in row))
        for row in ranked
    ]
