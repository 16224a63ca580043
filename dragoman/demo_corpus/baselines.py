"""What one gets on the demo corpus without learning: a gloss, and the nearest training sentence."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

_WORD = re.compile(r"\w+")


class Nearest:
    """Finds the training sentence most like a given one, by the cosine of TF-IDF vectors."""

    def __init__(self, sources: Sequence[str]):
        found: dict[str, list[int]] = defaultdict(list)
        for number, source in enumerate(sources):
            for word in _words(source):
                found[word].append(number)
        self._postings = {word: np.array(numbers) for word, numbers in found.items()}
        self._squares = {word: np.log(len(sources) / len(own)) ** 2 for word, own in self._postings.items()}
        norms = self._scores(self._postings, len(sources))
        self._norms = np.sqrt(np.maximum(norms, 1e-9))  # a sentence of words that stand in every one

    def __call__(self, sentence: str) -> int:
        """The number of the nearest training sentence."""
        known = [word for word in _words(sentence) if word in self._postings]
        return int(np.argmax(self._scores(known, len(self._norms)) / self._norms))

    def _scores(self, words: Iterable[str], count: int) -> np.ndarray:
        """For each training sentence, the squared weights of those of these words that it holds."""
        scores = np.zeros(count)
        for word in words:
            scores[self._postings[word]] += self._squares[word]
        return scores


def _words(sentence: str) -> set[str]:
    return set(_WORD.findall(sentence.lower()))
