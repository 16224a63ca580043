"""The same Transformer written plainly, on padded sentences."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.data.tokens import BOS
from dragoman.model import Transformer


def positions(length: int, width: int) -> Tensor:
    half = width // 2
    table = torch.zeros(length, width)
    for place in range(length):
        for i in range(half):
            angle = (place + 1) * 10000 ** (-i / (half - 1))
            table[place, i], table[place, half + i] = math.sin(angle), math.cos(angle)
    return table


def embed(model: Transformer, tokens: Tensor) -> Tensor:
    width = model.config.width
    return model.embedding.weight[tokens] * math.sqrt(width) + positions(tokens.shape[-1], width)


def attend(x: Tensor, memory: Tensor, weights: list[Tensor], heads: int, allowed: Tensor) -> Tensor:
    query, key, value, output = weights
    parts = []
    for rows, weight in ((x, query), (memory, key), (memory, value)):
        parts.append((rows @ weight.T).unflatten(-1, (heads, -1)).transpose(1, 2))
    scores = parts[0] @ parts[1].transpose(-1, -2) / math.sqrt(x.shape[-1] // heads)
    mixed = scores.masked_fill(~allowed, -torch.inf).softmax(-1) @ parts[2]
    return mixed.transpose(1, 2).flatten(2) @ output.T


def hidden(model: Transformer, source: Tensor, source_real: Tensor, inputs: Tensor) -> Tensor:
    """Decoder rows [pairs, length, width] for padded tokens; `source_real` marks what is not padding."""
    heads, keys = model.config.heads, source_real[:, None, None, :]
    causal = torch.ones(inputs.shape[1], inputs.shape[1], dtype=torch.bool).tril()
    x = embed(model, source)
    for layer in model.encoder.layers:
        normed, attention = layer.attention_norm(x), layer.attention
        weights = [*attention.query_key_value.weight.chunk(3), attention.output.weight]
        x = x + attend(normed, normed, weights, heads, keys)
        x = x + feedforward(layer, layer.feedforward_norm(x))
    memory = model.encoder.norm(x)
    x = embed(model, inputs)
    for layer in model.decoder.layers:
        normed, attention, cross = layer.attention_norm(x), layer.attention, layer.cross_attention
        weights = [*attention.query_key_value.weight.chunk(3), attention.output.weight]
        x = x + attend(normed, normed, weights, heads, causal)
        weights = [cross.query.weight, *cross.key_value.weight.chunk(2), cross.output.weight]
        x = x + attend(layer.cross_attention_norm(x), memory, weights, heads, keys)
        x = x + feedforward(layer, layer.feedforward_norm(x))
    return model.decoder.norm(x)


def feedforward(layer: torch.nn.Module, x: Tensor) -> Tensor:
    block = layer.feedforward
    return F.relu(x @ block.inner.weight.T + block.inner.bias) @ block.outer.weight.T + block.outer.bias


def loss_sum(model: Transformer, sources: list[Tensor], targets: list[Tensor], smoothing: float) -> Tensor:
    source = torch.nn.utils.rnn.pad_sequence(sources, batch_first=True)
    target = torch.nn.utils.rnn.pad_sequence(targets, batch_first=True, padding_value=-100)
    real = torch.nn.utils.rnn.pad_sequence([torch.ones_like(s) for s in sources], batch_first=True).bool()
    inputs = torch.cat((torch.full((len(target), 1), BOS), target[:, :-1].clamp(min=0)), 1)
    logits = hidden(model, source, real, inputs) @ model.embedding.weight.T
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="sum", label_smoothing=smoothing)


def next_log_p(model: Transformer, source: Tensor, prefix: list[int]) -> Tensor:
    """Log-probabilities of what follows a prefix, by running the whole model again."""
    inputs = torch.tensor([[BOS, *prefix]])
    rows = hidden(model, source[None], torch.ones(1, len(source), dtype=torch.bool), inputs)
    return (rows[0, -1] @ model.embedding.weight.T).log_softmax(-1)
