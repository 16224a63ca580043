"""The interface of every engine: texts in, translations out. `dragoman.engines.load` opens a MODEL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dragoman.bounds import LONGEST_TRANSLATION, WIDEST_BEAM
from dragoman.errors import UsageError

CTRANSLATE2_FILE = "model.bin"  # marks a folder in CTranslate2's format

# Beyond these a search takes forever, uses up all memory or overflows.
_RANGES = {
    "beam": (1, WIDEST_BEAM),
    "length_penalty": (0, 10),
    "best": (1, WIDEST_BEAM),
    "max_length": (1, LONGEST_TRANSLATION),
    "sample_top": (0, 10_000_000),  # the model's vocabulary is the limit once it is known
    "sample_temperature": (0.001, 1000),
    "no_repeat_ngram": (0, 1024),
}


@dataclass(frozen=True)
class Options:
    """How to search; every engine gives these options the same meaning."""

    beam: int = 4  # 1 is greedy search
    length_penalty: float = 0.6  # the score is the log-probability divided by length to this power
    best: int = 1  # translations per text, best first
    max_length: int | None = None  # most tokens in a sentence's translation; None: set by its source's length
    sample_top: int = 1  # above 1: draw each token from this many of the likeliest; 0: from all
    sample_temperature: float = 1.0  # below 1 favours the likelier tokens more
    no_repeat_ngram: int = 0  # no sequence of this many tokens occurs twice in a translation; 0: no limit
    split: bool = False  # split every text into sentences, not only one that is too long

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:  # also refuses nan
                raise UsageError(f"{name} is {value}, expected {least:,} to {most:,}")
        if self.best > self.beam and not self.is_sampling:
            raise UsageError(
                f"a beam of {self.beam} cannot find {self.best} translations of each text",
                hint=f"a beam of {self.best} or more",
            )

    def check_vocabulary(self, pieces: int) -> None:
        """Refuse a beam or `sample_top` above the number of tokens there are to choose from."""
        for name in ("beam", "sample_top"):
            if getattr(self, name) > pieces:
                raise UsageError(
                    f"{name} is {getattr(self, name):,}, but the vocabulary has only {pieces:,} pieces"
                )

    @property
    def is_sampling(self) -> bool:
        """Whether tokens are drawn at random; the beam is then ignored."""
        return self.sample_top != 1


@dataclass(frozen=True)
class Translation:
    text: str
    score: float  # log-probability / length^penalty; for several sentences, the sum


class Engine(Protocol):
    """A model ready to translate. Any number of threads may call it at once."""

    @property
    def name(self) -> str:
        """`ctranslate2` or `torch`."""

    @property
    def precision(self) -> str:
        """The number type it computes in, such as `float32`."""

    @property
    def languages(self) -> tuple[str, str] | None:
        """Source and target language, if the model records them."""

    def translate(self, texts: Sequence[str], options: Options = ...) -> list[list[Translation]]:
        """For each text, in order, `options.best` translations, or fewer if no more were found.

        A text of white space alone is returned unchanged, with score 0. A text too long for the model is
        split into sentences, and their translations are joined again.
        """
