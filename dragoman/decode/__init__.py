"""From a trained model to translations. Imports without torch: a server or a document needs none to begin."""

from dragoman.decode.engine import Engine, Options, Translation

__all__ = ["Engine", "Options", "Translation"]
