"""The translation model: computes the loss of packed sentences, and the next token's logits for a search."""

from dragoman.model.cache import Cache
from dragoman.model.transformer import Transformer

__all__ = ["Cache", "Transformer"]
