"""The demo corpus: any number of English and German sentences from a small grammar, without a download."""

from dragoman.demo_corpus.gloss import word_by_word
from dragoman.demo_corpus.sentences import held_out, pairs

__all__ = ["held_out", "pairs", "word_by_word"]
