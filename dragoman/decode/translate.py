"""Translates tokens with our own search, in batches of similar length, and returns them in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from torch import Tensor

from dragoman.config import Evaluate
from dragoman.data.tokens import Tokenizer
from dragoman.decode.engine import Options
from dragoman.decode.sample import sample
from dragoman.decode.search import Hypothesis, search
from dragoman.model import Transformer
from dragoman.model.packing import on_device

_SENTENCES = 64  # translated at a time
_HYPOTHESES = 1024  # kept at a time: each takes memory for a whole vocabulary


def encode(tokenizer: Tokenizer, sentences: Sequence[str]) -> list[np.ndarray]:
    """The tokens of each sentence, ending in EOS."""
    tokens, lengths = tokenizer.encode(sentences)
    return np.split(tokens.astype(np.int64), np.cumsum(lengths)[:-1])


def translate_tokens(
    model: Transformer,
    rows: Sequence[np.ndarray],
    config: Evaluate,
    is_enough: Callable[[], bool] | None = None,
) -> list[list[int]]:
    """The best translation of each row of tokens, in order; rows end in EOS, translations do not."""
    options = Options(beam=config.beam, length_penalty=config.length_penalty)
    ranked = hypotheses(model, rows, options, is_enough)
    return [best_first[0].tokens if best_first else [] for best_first in ranked]


def hypotheses(
    model: Transformer,
    rows: Sequence[np.ndarray],
    options: Options,
    is_enough: Callable[[], bool] | None = None,
) -> list[list[Hypothesis]]:
    """The best translations of each row of tokens, in order; none for rows left when `is_enough` says so."""
    device = next(model.parameters()).device
    lengths = np.array([len(row) for row in rows])
    results: list[list[Hypothesis]] = [[] for _ in rows]
    by_length = np.argsort(lengths, kind="stable")
    per_row = options.best if options.is_sampling else options.beam
    batch_rows = min(_SENTENCES, max(1, _HYPOTHESES // per_row))
    for start in range(0, len(rows), batch_rows):
        if is_enough and is_enough():
            break
        batch = by_length[start : start + batch_rows]
        source = on_device(np.concatenate([rows[row] for row in batch]), device)
        ranked = _find(model, source, lengths[batch], options)
        for row, translations in zip(batch.tolist(), ranked, strict=True):
            results[row] = translations
    return results


def length_limits(source_lengths: np.ndarray) -> list[int]:
    """The most tokens each translation may have: generous, but an untrained model must stop somewhere."""
    return (2 * source_lengths + 10).tolist()


def _find(
    model: Transformer, source_N: Tensor, lengths: np.ndarray, options: Options
) -> list[list[Hypothesis]]:
    limits = [options.max_length] * len(lengths) if options.max_length else length_limits(lengths)
    return (sample if options.is_sampling else search)(model, source_N, lengths, limits, options)
