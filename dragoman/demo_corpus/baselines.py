"""A baseline for the demo corpus that learns nothing: the nearest training sentence."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

_WORD = re.compile(r"\w+")


class Nearest:
    """Finds the training sentence most similar to a given one, by the cosine of TF-IDF vectors."""

    def __init__(self, sources: Sequence[str]):
        sentences_with: dict[str, list[int]] = defaultdict(list)
        for number, source in enumerate(sources):
            for word in _words(source):
                sentences_with[word].append(number)
        self._postings = {word: np.array(numbers) for word, numbers in sentences_with.items()}
        self._squares = {
            word: np.log(len(sources) / len(numbers)) ** 2 for word, numbers in self._postings.items()
        }
        norms = self._scores(self._postings, len(sources))
        self._norms = np.sqrt(np.maximum(norms, 1e-9))  # never 0, even if all words occur in every sentence

    def __call__(self, sentence: str) -> int:
        """The number of the training sentence nearest to this one."""
        known = [word for word in _words(sentence) if word in self._postings]
        return int(np.argmax(self._scores(known, len(self._norms)) / self._norms))

    def _scores(self, words: Iterable[str], count: int) -> np.ndarray:
        """For each training sentence, the summed squared weights of the given words that it contains."""
        scores = np.zeros(count)
        for word in words:
            scores[self._postings[word]] += self._squares[word]
        return scores


def _words(sentence: str) -> set[str]:
    return set(_WORD.findall(sentence.lower()))
