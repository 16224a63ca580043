"""From a trained model to translations."""

from dragoman.decode.engine import Engine, Options, Translation
from dragoman.decode.search import Hypothesis, search

__all__ = ["Engine", "Hypothesis", "Options", "Translation", "search"]
