"""The translation model: packed tokens in, a loss out; and one step of a search."""

from dragoman.model.cache import Cache
from dragoman.model.transformer import Transformer

__all__ = ["Cache", "Transformer"]
