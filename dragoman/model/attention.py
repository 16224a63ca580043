"""Multi-head attention over packed rows.

Shape letters: N rows, B sentences, S slots of the keys, D width, H heads, C channels of a head, R rows of a
search (one per hypothesis), T tokens generated so far.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from dragoman.model import varlen
from dragoman.model.grid import Grid, attend
from dragoman.model.packing import Packing
from dragoman.model.product import Linear

KeysValues = tuple[Tensor, Tensor]


class Way(Protocol):
    """A way to compute attention on packed rows."""

    def split(self, x_ND: Tensor, packing: Packing, projections: int, heads: int) -> tuple[Tensor, ...]:
        """Rows of P x H x C as P tensors in the layout that `mix` takes."""

    def mix(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        queries: Packing,
        keys: Packing,
        *,
        causal: bool = False,
        rate: float = 0.0,
    ) -> Tensor:
        """Attention's output for each row of the queries, [N, D]."""


def way_for(x_ND: Tensor, heads: int) -> Way:
    """The fastest way on this device, in this number format."""
    return varlen.way_for(x_ND, heads) or Grid()


class SelfAttention(nn.Module):
    """Queries, keys and values from the same rows: one weight of 3 x D rows, in that order.

    So it takes one matrix product and at most one gather instead of three of each.
    """

    def __init__(self, width: int, heads: int, rate: float):
        super().__init__()
        self.heads, self.rate = heads, rate
        self.query_key_value = Linear(width, 3 * width, bias=False)
        self.output = Linear(width, width, bias=False)

    def forward(self, x_ND: Tensor, packing: Packing, causal: bool = False) -> Tensor:
        projected_N3D = self.query_key_value(x_ND)
        way = way_for(projected_N3D, 3 * self.heads)
        query, key, value = way.split(projected_N3D, packing, 3, self.heads)
        rate = self.rate if self.training else 0.0
        return self.output(way.mix(query, key, value, packing, packing, causal=causal, rate=rate))

    def next_token(self, x_RD: Tensor, past: KeysValues | None) -> tuple[Tensor, KeysValues]:
        """The attention's output for each hypothesis' newest token, and all keys and values [R, H, T, C]."""
        query, key, value = self.query_key_value(x_RD).unflatten(1, (3, self.heads, 1, -1)).unbind(1)
        if past is not None:
            key, value = torch.cat((past[0], key), 2), torch.cat((past[1], value), 2)
        return self.output(attend(query, key, value).flatten(1)), (key, value)


class CrossAttention(nn.Module):
    """Queries from the target's rows, keys and values (one weight of 2 x D rows) from the source's."""

    def __init__(self, width: int, heads: int, rate: float):
        super().__init__()
        self.heads, self.rate = heads, rate
        self.query = Linear(width, width, bias=False)
        self.key_value = Linear(width, 2 * width, bias=False)
        self.output = Linear(width, width, bias=False)

    def forward(self, x_ND: Tensor, packing: Packing, memory_ND: Tensor, source: Packing) -> Tensor:
        projected_ND = self.query(x_ND)
        way = way_for(projected_ND, self.heads)
        (query,) = way.split(projected_ND, packing, 1, self.heads)
        key, value = way.split(self.key_value(memory_ND), source, 2, self.heads)
        rate = self.rate if self.training else 0.0
        return self.output(way.mix(query, key, value, packing, source, rate=rate))

    def keys_values(self, memory_ND: Tensor, source: Packing) -> KeysValues:
        """The source's keys and values for a search, each [B, H, S, C]."""
        key, value = source.split_heads(self.key_value(memory_ND), 2, self.heads)
        return key, value

    def next_token(
        self, x_RD: Tensor, packing: Packing, keys_values: KeysValues, mask_B11S: Tensor | None
    ) -> Tensor:
        """The attention's output for each hypothesis' newest token, a row of its sentence in `packing`."""
        (query,) = packing.split_heads(self.query(x_RD), 1, self.heads)
        return self.output(packing.join_heads(attend(query, *keys_values, mask_B11S=mask_B11S)))
