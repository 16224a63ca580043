"""How many parameters a model has, without building it."""

from __future__ import annotations

from dragoman.config import Model


def parameters(config: Model, vocabulary: int) -> int:
    """The count that `Transformer(config, vocabulary)` has."""
    width, inner = config.width, config.feedforward
    norm = 2 * width
    attention = 4 * width * width
    feedforward = 2 * width * inner + inner + width
    encoder = config.encoder_layers * (attention + feedforward + 2 * norm) + norm
    decoder = config.decoder_layers * (2 * attention + feedforward + 3 * norm) + norm
    return vocabulary * width + encoder + decoder
