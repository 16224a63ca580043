"""How many parameters a model has, and in which tensors, without building it."""

from __future__ import annotations

from dragoman.config import Model


def parameters(config: Model, vocabulary: int) -> int:
    """The count that `Transformer(config, vocabulary)` has."""
    return sum(tensors(config, vocabulary))


def moments(config: Model, vocabulary: int, optimizer: str) -> int:
    """Numbers that the optimizer keeps: two for each parameter; Muon one, for those in matrices of layers."""
    attention, feedforward = 4 * config.width**2, 2 * config.width * config.feedforward
    encoder = config.encoder_layers * (attention + feedforward)
    decoder = config.decoder_layers * (2 * attention + feedforward)
    return 2 * parameters(config, vocabulary) - (encoder + decoder if optimizer == "muon" else 0)


def tensors(config: Model, vocabulary: int) -> list[int]:
    """Parameters of each of its tensors, in its own order. Gradients are ready from the last to the first."""
    width, inner = config.width, config.feedforward
    norm = [width, width]
    attention = [3 * width * width, width * width]
    feedforward = [width * inner, inner, inner * width, width]
    cross_attention = [width * width, 2 * width * width, width * width]
    encoder_layer = [*norm, *attention, *norm, *feedforward]
    decoder_layer = [*encoder_layer, *norm, *cross_attention]
    encoder = [*encoder_layer * config.encoder_layers, *norm]
    return [vocabulary * width, *encoder, *decoder_layer * config.decoder_layers, *norm]
