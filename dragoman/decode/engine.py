"""What every engine offers: texts in, translations out. `dragoman.engines.load` opens a MODEL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dragoman.bounds import LONGEST_TRANSLATION, WIDEST_BEAM
from dragoman.errors import UsageError

CTRANSLATE2_FILE = "model.bin"  # marks a folder in CTranslate2's format

# Beyond them a search takes forever, takes all memory, or computes with numbers too large to be any.
_RANGES = {
    "beam": (1, WIDEST_BEAM),
    "length_penalty": (0, 10),
    "best": (1, WIDEST_BEAM),
    "max_length": (1, LONGEST_TRANSLATION),
    "sample_top": (0, 10_000_000),  # the model's vocabulary is the limit, once it is known
    "sample_temperature": (0.001, 1000),
    "no_repeat_ngram": (0, 1024),
}


@dataclass(frozen=True)
class Options:
    """How to search. The same names mean the same to every engine."""

    beam: int = 4  # 1 is greedy search
    length_penalty: float = 0.6  # the score is the log-probability over length to this power
    best: int = 1  # translations wanted of each text, best first
    max_length: int | None = None  # tokens of a sentence's translation; None: by the length of its source
    sample_top: int = 1  # above 1, draw each token from so many of the likeliest; 0: from all of them
    sample_temperature: float = 1.0  # below 1 the likelier become likelier still
    no_repeat_ngram: int = 0  # so many tokens in a row never come twice in a translation; 0: they may
    split: bool = False  # every text into its sentences, not only one that is too long

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:  # also what is no number: nan
                raise UsageError(f"{name} is {value}, from {least:g} to {most:g} was expected")
        if self.best > self.beam and not self.is_sampling:
            raise UsageError(
                f"{self.best} translations of each text were asked for, a beam of {self.beam} finds no more",
                hint=f"a beam of {self.best} or more",
            )

    def check_vocabulary(self, pieces: int) -> None:
        """No search can keep more hypotheses, or draw from more, than a step has continuations."""
        for name in ("beam", "sample_top"):
            if getattr(self, name) > pieces:
                raise UsageError(
                    f"{name} is {getattr(self, name):,}, the vocabulary of this model has {pieces:,} pieces"
                )

    @property
    def is_sampling(self) -> bool:
        """Then the beam is not looked at."""
        return self.sample_top != 1


@dataclass(frozen=True)
class Translation:
    text: str
    score: float  # log-probability over length^penalty; of several sentences, the sum


class Engine(Protocol):
    """A model ready to translate. Any number of threads may call it at once."""

    @property
    def name(self) -> str:
        """`ctranslate2` or `torch`."""

    @property
    def precision(self) -> str:
        """What it computes in, such as `float32`."""

    @property
    def languages(self) -> tuple[str, str] | None:
        """Source and target, if the model knows."""

    def translate(self, texts: Sequence[str], options: Options = ...) -> list[list[Translation]]:
        """Of each text, in order: `options.best` translations, or fewer if no more were found.

        White space alone is translated by itself, with score 0. A text that is too long for the model is
        split into sentences, and the translations of these are put together again.
        """
