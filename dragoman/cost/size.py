"""Counts a model's parameters, also by tensor, without building the model."""

from __future__ import annotations

from typing import Literal

from dragoman.cost.flops import Measures

OptimizerName = Literal["adam", "adamw", "muon"]


def parameters(model: Measures, vocabulary: int) -> int:
    """The number of parameters of `Transformer(model, vocabulary)`."""
    return sum(tensors(model, vocabulary))


def moments(model: Measures, vocabulary: int, optimizer: OptimizerName) -> int:
    """The numbers an optimizer keeps: two per parameter; Muon keeps one for those in the layers' matrices."""
    attention, feedforward = 4 * model.width**2, 2 * model.width * model.feedforward
    encoder = model.encoder_layers * (attention + feedforward)
    decoder = model.decoder_layers * (2 * attention + feedforward)
    return 2 * parameters(model, vocabulary) - (encoder + decoder if optimizer == "muon" else 0)


def tensors(model: Measures, vocabulary: int) -> list[int]:
    """The size of each tensor, in the model's order. Gradients are ready from the last to the first."""
    width = model.width
    norm = [width, width]
    encoder_layer, decoder_layer = _layers(model)
    encoder = [*encoder_layer * model.encoder_layers, *norm]
    return [vocabulary * width, *encoder, *decoder_layer * model.decoder_layers, *norm]


def layers(model: Measures) -> tuple[int, int]:
    """The parameters of an encoder's and of a decoder's layer."""
    encoder, decoder = _layers(model)
    return sum(encoder), sum(decoder)


def _layers(model: Measures) -> tuple[list[int], list[int]]:
    """The size of each tensor of an encoder's and of a decoder's layer, in the model's order."""
    width, inner = model.width, model.feedforward
    norm = [width, width]
    attention = [3 * width * width, width * width]
    feedforward = [width * inner, inner, inner * width, width]
    cross_attention = [width * width, 2 * width * width, width * width]
    encoder = [*norm, *attention, *norm, *feedforward]
    return encoder, [*encoder, *norm, *cross_attention]
