"""The floating-point operations of a Transformer's step, from its dimensions and its tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

BACKWARD = 2.0  # in forward passes: gradients of the inputs, and gradients of the weights


class Measures(Protocol):
    """The dimensions of a Transformer that decide its cost; `config.Model` has them."""

    @property
    def width(self) -> int: ...
    @property
    def encoder_layers(self) -> int: ...
    @property
    def decoder_layers(self) -> int: ...
    @property
    def feedforward(self) -> int: ...


@dataclass(frozen=True)
class Shape:
    """The dimensions of a model that has no config of ours."""

    width: int
    encoder_layers: int
    decoder_layers: int
    feedforward: int

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Shape:
        """The dimensions in settings by dotted key; KeyError if one is missing."""
        return cls(
            *(
                int(settings[f"model.{name}"])
                for name in ("width", "encoder_layers", "decoder_layers", "feedforward")
            )
        )


def forward(
    model: Measures, vocabulary: int, source_tokens: float, target_tokens: float, pairs: float
) -> float:
    """FLOPs of one forward pass: 2 for every weight that a token passes through, and the attention scores.

    Padding, norms, softmax and embedding look-ups are left out, as is usual: the figure is what the model
    needs, not what an implementation spends. Scores of causal attention are counted in full.
    """
    return _weights(model, vocabulary, source_tokens, target_tokens) + _scores(
        model, source_tokens, target_tokens, pairs
    )


def step(model: Measures, vocabulary: int, source_tokens: float, target_tokens: float, pairs: float) -> float:
    """FLOPs of forward and backward."""
    return (1 + BACKWARD) * forward(model, vocabulary, source_tokens, target_tokens, pairs)


def recomputed(model: Measures, source_tokens: float, target_tokens: float, pairs: float) -> float:
    """FLOPs that `train.recompute` adds to a step: the layers' forward pass again, without the projection.

    The model does not need them, so `step` leaves them out, and so does the report.
    """
    return forward(model, 0, source_tokens, target_tokens, pairs)


def backward_share(recompute: bool) -> float:
    """The share of computing that is in the backward pass; with `train.recompute`, a forward pass is too."""
    backward = BACKWARD + recompute
    return backward / (1 + backward)


def _weights(model: Measures, vocabulary: int, source_tokens: float, target_tokens: float) -> float:
    square = model.width**2
    feedforward = 2 * model.width * model.feedforward
    # In cross-attention the source gives keys and values, the target gives queries and output.
    source = model.encoder_layers * (4 * square + feedforward) + model.decoder_layers * 2 * square
    target = model.decoder_layers * (6 * square + feedforward) + vocabulary * model.width
    return 2 * (source * source_tokens + target * target_tokens)


def _scores(model: Measures, source_tokens: float, target_tokens: float, pairs: float) -> float:
    """FLOPs of attention: each query meets each key of its sentence twice (score, sum), 2 per channel.

    All sentences are taken as equally long, which is nearly true in batches of similar lengths.
    """
    if pairs <= 0:
        return 0.0
    source_length, target_length = source_tokens / pairs, target_tokens / pairs
    encoder = model.encoder_layers * source_tokens * source_length
    decoder = model.decoder_layers * target_tokens * (target_length + source_length)
    return 4 * model.width * (encoder + decoder)
