"""Sentences to translations: batched by length, the order restored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from dragoman.config import Evaluate
from dragoman.data.clean import normalise
from dragoman.data.tokens import Tokenizer
from dragoman.decode.search import search
from dragoman.model import Transformer

_SENTENCES = 64  # translated at a time


def translate(
    model: Transformer, tokenizer: Tokenizer, sentences: Sequence[str], config: Evaluate
) -> list[str]:
    """The translation of each sentence, in order."""
    if not sentences:
        return []
    tokens, lengths = tokenizer.encode([normalise(sentence, "NFC") for sentence in sentences])
    rows = np.split(tokens.astype(np.int64), np.cumsum(lengths)[:-1])
    return tokenizer.decode(translate_tokens(model, rows, config))


def translate_tokens(model: Transformer, rows: Sequence[np.ndarray], config: Evaluate) -> list[list[int]]:
    """The same from tokens, each row closed by EOS, to tokens without it."""
    device = next(model.parameters()).device
    lengths = np.array([len(row) for row in rows])
    results: list[list[int]] = [[] for _ in rows]
    by_length = np.argsort(lengths, kind="stable")
    for start in range(0, len(rows), _SENTENCES):
        batch = by_length[start : start + _SENTENCES]
        source = torch.from_numpy(np.concatenate([rows[row] for row in batch])).to(device)
        found = search(
            model,
            source,
            lengths[batch],
            length_limits(lengths[batch]),
            beam=config.beam,
            length_penalty=config.length_penalty,
        )
        for row, hypothesis in zip(batch.tolist(), found, strict=True):
            results[row] = hypothesis.tokens
    return results


def length_limits(source_lengths: np.ndarray) -> list[int]:
    """The most tokens a translation may have: generous, but an untrained model must stop somewhere."""
    return (2 * source_lengths + 10).tolist()
