"""The demo corpus: English and German sentences from a small grammar, without end and without a download."""

from dragoman.data.demo.gloss import word_by_word
from dragoman.data.demo.sentences import held_out, pairs

__all__ = ["held_out", "pairs", "word_by_word"]
