"""The encoder-decoder Transformer: pre-norm, one embedding for source, target and output.

Shape letters: T tokens of all sentences, end to end, N rows (the tokens, then spare ones), D width, V
vocabulary, L slots of the longest sentence, B sentences, R rows of a search (one per hypothesis).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from dragoman.config import Model
from dragoman.data.tokens import BOS
from dragoman.errors import ConfigError
from dragoman.model import half
from dragoman.model.attention import CrossAttention, SelfAttention
from dragoman.model.cache import Cache
from dragoman.model.dropout import add_dropped, dropout, relu_dropped
from dragoman.model.loss import cross_entropy_sum
from dragoman.model.packing import Lengths, Packing
from dragoman.model.product import Linear, rounded_rows


def sinusoids(length: int, width: int, device: torch.device | str = "cpu") -> Tensor:
    """Position signals [length, width] for positions 1 to `length`: all sines, then all cosines.

    The frequencies 10000^(-i / (width/2 - 1)) and the first position are those of M2M100 with pad id 0.
    """
    half = width // 2
    frequencies = torch.exp(torch.arange(half, device=device) * (-math.log(10000.0) / (half - 1)))
    angles = torch.arange(1, length + 1, device=device)[:, None] * frequencies
    return torch.cat((angles.sin(), angles.cos()), 1)


class Norm(nn.LayerNorm):
    """Layer norm before a block; the sum that it branches off from continues beside it."""

    def branch(self, x_ND: Tensor) -> tuple[Tensor, Tensor]:
        """x, and its norm in the type in which products are computed."""
        dtype = half.dtype_for(x_ND)
        return half.branch(x_ND, self, dtype) if dtype else (x_ND, self(x_ND))


class FeedForward(nn.Module):
    def __init__(self, config: Model):
        super().__init__()
        self.rate = config.feedforward_dropout
        self.inner = Linear(config.width, config.feedforward)
        self.outer = Linear(config.feedforward, config.width)

    def forward(self, x_ND: Tensor) -> Tensor:
        rate, dtype = self.rate if self.training else 0.0, half.dtype_for(x_ND)
        if dtype:
            return half.feedforward(x_ND, self.inner, self.outer, rate, dtype)
        return self.outer(relu_dropped(self.inner(x_ND), rate))


class Block(nn.Module):
    """What encoder and decoder layers share: self-attention, feed-forward, dropout before each addition."""

    def __init__(self, config: Model):
        super().__init__()
        self.rate = config.dropout
        self.attention_norm = Norm(config.width)
        self.attention = SelfAttention(config.width, config.heads, config.attention_dropout)
        self.feedforward_norm = Norm(config.width)
        self.feedforward = FeedForward(config)
        self.recompute = False  # keep only the inputs, and compute the rest again in the backward pass?

    def forward(self, *inputs: Any) -> Tensor:
        if not (self.recompute and torch.is_grad_enabled()):
            return self.compute(*inputs)
        # Restores the random state of the first time, so dropout draws the same masks again.
        output: Tensor = checkpoint(self.compute, *inputs, use_reentrant=False)
        return output

    def compute(self, *inputs: Any) -> Tensor:
        """The layer's output."""
        raise NotImplementedError

    def add(self, x_ND: Tensor, change_ND: Tensor) -> Tensor:
        return add_dropped(x_ND, change_ND, self.rate if self.training else 0.0)

    def add_feedforward(self, x_ND: Tensor) -> Tensor:
        x_ND, normed_ND = self.feedforward_norm.branch(x_ND)
        return self.add(x_ND, self.feedforward(normed_ND))


class EncoderLayer(Block):
    def compute(self, x_ND: Tensor, packing: Packing) -> Tensor:
        x_ND, normed_ND = self.attention_norm.branch(x_ND)
        x_ND = self.add(x_ND, self.attention(normed_ND, packing))
        return self.add_feedforward(x_ND)


class DecoderLayer(Block):
    def __init__(self, config: Model):
        super().__init__(config)
        self.cross_attention_norm = Norm(config.width)
        self.cross_attention = CrossAttention(config.width, config.heads, config.attention_dropout)

    def compute(self, x_ND: Tensor, packing: Packing, memory_ND: Tensor, source: Packing) -> Tensor:
        x_ND, normed_ND = self.attention_norm.branch(x_ND)
        x_ND = self.add(x_ND, self.attention(normed_ND, packing, causal=True))
        x_ND, normed_ND = self.cross_attention_norm.branch(x_ND)
        x_ND = self.add(x_ND, self.cross_attention(normed_ND, packing, memory_ND, source))
        return self.add_feedforward(x_ND)

    def next_token(self, x_RD: Tensor, packing: Packing, cache: Cache, layer: int) -> Tensor:
        """The layer's output for the newest token of each hypothesis, which is a row of `packing`."""
        change_RD, cache.past[layer] = self.attention.next_token(self.attention_norm(x_RD), cache.past[layer])
        x_RD = self.add(x_RD, change_RD)
        queries_RD, memory = self.cross_attention_norm(x_RD), cache.memory[layer]
        x_RD = self.add(x_RD, self.cross_attention.next_token(queries_RD, packing, memory, cache.mask_B11S))
        return self.add_feedforward(x_RD)


class Encoder(nn.Module):
    layers: Sequence[EncoderLayer]

    def __init__(self, config: Model):
        super().__init__()
        layers = [EncoderLayer(config) for _ in range(config.encoder_layers)]
        self.layers = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norm = Norm(config.width)

    def forward(self, x_ND: Tensor, packing: Packing) -> Tensor:
        for layer in self.layers:
            x_ND = layer(x_ND, packing)
        return self.norm.branch(x_ND)[1]


class Decoder(nn.Module):
    layers: Sequence[DecoderLayer]

    def __init__(self, config: Model):
        super().__init__()
        layers = [DecoderLayer(config) for _ in range(config.decoder_layers)]
        self.layers = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norm = Norm(config.width)

    def forward(self, x_ND: Tensor, packing: Packing, memory_ND: Tensor, source: Packing) -> Tensor:
        for layer in self.layers:
            x_ND = layer(x_ND, packing, memory_ND, source)
        return self.norm(x_ND)

    def start(self, memory_ND: Tensor, source: Packing) -> Cache:
        memory = [layer.cross_attention.keys_values(memory_ND, source) for layer in self.layers]
        return Cache(memory, source.mask_B11L)

    def next_token(self, x_RD: Tensor, cache: Cache) -> Tensor:
        packing = cache.rows_per_sentence(len(x_RD))
        for number, layer in enumerate(self.layers):
            x_RD = layer.next_token(x_RD, packing, cache, number)
        return self.norm(x_RD)


class Transformer(nn.Module):
    """Transformer-base with 32,768 pieces has 60,880,896 parameters. Seed torch before building one.

    `recompute` is `train.recompute`; it changes memory and time, and no result.
    """

    def __init__(self, config: Model, vocabulary: int, recompute: bool = False):
        super().__init__()
        if config.width % config.heads or config.width % 2:
            raise ConfigError(
                f"model.width = {config.width}: must be even and a multiple of model.heads = {config.heads}"
            )
        self.config = config
        device = torch.get_default_device()
        with torch.device("meta"):  # otherwise every layer would draw weights that are then drawn again
            self.embedding = nn.Embedding(vocabulary, config.width)
            self.encoder = Encoder(config)
            self.decoder = Decoder(config)
        for layer in self.layers:
            layer.recompute = recompute
        self.to_empty(device=device)
        self._initialise()

    @property
    def layers(self) -> list[Block]:
        """All layers, the encoder's first."""
        return [*self.encoder.layers, *self.decoder.layers]

    def forward(
        self,
        source_T: Tensor,
        source_lengths: Lengths,
        target_T: Tensor,
        target_lengths: Lengths,
        label_smoothing: float = 0.0,
    ) -> Tensor:
        """The summed loss of a microbatch's target tokens: without smoothing, the negative log-likelihood.

        Tokens are packed end to end, and each sentence ends with EOS. Keep lengths on the CPU: on a GPU they
        cost a host-device wait. Numpy arrays stay there even under DDP, which moves tensors.
        """
        source = Packing.of(source_lengths, source_T.device, rounded_rows(len(source_T), source_T.device))
        target = Packing.of(target_lengths, target_T.device, rounded_rows(len(target_T), target_T.device))
        # One lookup for both sides: its gradient is as large as the vocabulary, whatever the batch.
        rows_ND = self._embed(
            torch.cat((source.fill(source_T), target.fill(shift_right(target_T, target.starts_B)))),
            torch.cat((source.positions_N, target.positions_N)),
            max(source.longest, target.longest),
        )
        source_ND, target_ND = rows_ND.split((len(source.positions_N), len(target.positions_N)))
        hidden_ND = self.decoder(target_ND, target, self.encoder(source_ND, source), source)
        return cross_entropy_sum(hidden_ND, self.embedding.weight, target_T, label_smoothing)

    def start(self, source_N: Tensor, source_lengths: Lengths) -> Cache:
        """Encodes sentences for a search: the cache for `next_logits`, with an empty hypothesis for each."""
        source = Packing.of(source_lengths, source_N.device)
        x_ND = self._embed(source_N, source.positions_N, source.longest)
        return self.decoder.start(self.encoder(x_ND, source), source)

    def next_logits(self, tokens_R: Tensor, cache: Cache) -> Tensor:
        """Logits [R, V] for the token after each hypothesis' newest token, which is added to the cache."""
        x_RD = self._embed(tokens_R, torch.full_like(tokens_R, cache.length), cache.length + 1)
        return F.linear(self.decoder.next_token(x_RD, cache), self.embedding.weight)

    def _embed(self, tokens_N: Tensor, positions_N: Tensor, longest: int) -> Tensor:
        signal_ND = sinusoids(longest, self.config.width, tokens_N.device).index_select(0, positions_N)
        x_ND = torch.add(signal_ND, self.embedding(tokens_N), alpha=math.sqrt(self.config.width))
        return dropout(x_ND, self.config.dropout if self.training else 0.0)

    def _initialise(self) -> None:
        # Times sqrt(D), a lookup has unit variance, the same order as the position signal added to it. As the
        # output projection, the same weight gives logits of unit variance, so the first loss is only a little
        # above log(V).
        nn.init.normal_(self.embedding.weight, std=self.config.width**-0.5)
        for module in self.modules():
            if isinstance(module, FeedForward):
                for linear in (module.inner, module.outer):
                    nn.init.xavier_uniform_(linear.weight)
                    nn.init.zeros_(linear.bias)
            elif isinstance(module, SelfAttention | CrossAttention):
                # In a weight of two or three stacked projections, each gets the range for its own size.
                for weight in module.parameters():
                    for projection in weight.split(self.config.width):
                        nn.init.xavier_uniform_(projection)
            elif isinstance(module, nn.LayerNorm):
                module.reset_parameters()


def shift_right(target_T: Tensor, starts_B: Tensor) -> Tensor:
    """The decoder's input: for each sentence BOS, then all tokens except the last."""
    return target_T.roll(1).index_fill_(0, starts_B, BOS)
