"""From a trained model to translations. Importing it does not load torch."""

from dragoman.decode.engine import Engine, Options, Translation

__all__ = ["Engine", "Options", "Translation"]
