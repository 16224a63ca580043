"""How many parameters a model has, and in which tensors, without building it."""

from __future__ import annotations

from typing import Literal

from dragoman.cost.flops import Measures

OptimizerName = Literal["adam", "adamw", "muon"]


def parameters(model: Measures, vocabulary: int) -> int:
    """The count that `Transformer(model, vocabulary)` has."""
    return sum(tensors(model, vocabulary))


def moments(model: Measures, vocabulary: int, optimizer: OptimizerName) -> int:
    """Numbers that the optimizer keeps: two for each parameter; Muon one, for those in matrices of layers."""
    attention, feedforward = 4 * model.width**2, 2 * model.width * model.feedforward
    encoder = model.encoder_layers * (attention + feedforward)
    decoder = model.decoder_layers * (2 * attention + feedforward)
    return 2 * parameters(model, vocabulary) - (encoder + decoder if optimizer == "muon" else 0)


def tensors(model: Measures, vocabulary: int) -> list[int]:
    """Parameters of each of its tensors, in its own order. Gradients are ready from the last to the first."""
    width, inner = model.width, model.feedforward
    norm = [width, width]
    attention = [3 * width * width, width * width]
    feedforward = [width * inner, inner, inner * width, width]
    cross_attention = [width * width, 2 * width * width, width * width]
    encoder_layer = [*norm, *attention, *norm, *feedforward]
    decoder_layer = [*encoder_layer, *norm, *cross_attention]
    encoder = [*encoder_layer * model.encoder_layers, *norm]
    return [vocabulary * width, *encoder, *decoder_layer * model.decoder_layers, *norm]
