"""From a trained model to translations."""

from dragoman.decode.search import Hypothesis, search

__all__ = ["Hypothesis", "search"]
