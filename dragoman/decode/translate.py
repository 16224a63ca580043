"""Tokens to translations by our own search: batched by length, the order restored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from dragoman.config import Evaluate
from dragoman.data.tokens import Tokenizer
from dragoman.decode.engine import Options
from dragoman.decode.sample import sample
from dragoman.decode.search import Hypothesis, search
from dragoman.model import Transformer

_SENTENCES = 64  # translated at a time
_HYPOTHESES = 1024  # of all of them: each takes memory for a whole vocabulary


def encode(tokenizer: Tokenizer, sentences: Sequence[str]) -> list[np.ndarray]:
    """The tokens of each sentence, closed by EOS."""
    tokens, lengths = tokenizer.encode(sentences)
    return np.split(tokens.astype(np.int64), np.cumsum(lengths)[:-1])


def translate_tokens(
    model: Transformer,
    rows: Sequence[np.ndarray],
    config: Evaluate,
    is_enough: Callable[[], bool] | None = None,
) -> list[list[int]]:
    """The best translation of each row of tokens, without EOS, in order. Each row is closed by EOS."""
    options = Options(beam=config.beam, length_penalty=config.length_penalty)
    found = hypotheses(model, rows, options, is_enough)
    return [best[0].tokens if best else [] for best in found]


def hypotheses(
    model: Transformer,
    rows: Sequence[np.ndarray],
    options: Options,
    is_enough: Callable[[], bool] | None = None,
) -> list[list[Hypothesis]]:
    """The best translations of each row of tokens, in order; none of those left when it is enough."""
    device = next(model.parameters()).device
    lengths = np.array([len(row) for row in rows])
    results: list[list[Hypothesis]] = [[] for _ in rows]
    by_length = np.argsort(lengths, kind="stable")
    of_each = options.best if options.is_sampling else options.beam
    at_a_time = min(_SENTENCES, max(1, _HYPOTHESES // of_each))
    for start in range(0, len(rows), at_a_time):
        if is_enough and is_enough():
            break
        batch = by_length[start : start + at_a_time]
        source = torch.from_numpy(np.concatenate([rows[row] for row in batch])).to(device)
        found = _find(model, source, lengths[batch], options)
        for row, translations in zip(batch.tolist(), found, strict=True):
            results[row] = translations
    return results


def length_limits(source_lengths: np.ndarray) -> list[int]:
    """The most tokens a translation may have: generous, but an untrained model must stop somewhere."""
    return (2 * source_lengths + 10).tolist()


def _find(
    model: Transformer, source_N: Tensor, lengths: np.ndarray, options: Options
) -> list[list[Hypothesis]]:
    limits = [options.max_length] * len(lengths) if options.max_length else length_limits(lengths)
    return (sample if options.is_sampling else search)(model, source_N, lengths, limits, options)
