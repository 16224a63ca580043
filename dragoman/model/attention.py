"""Multi-head attention over packed rows.

Shape letters: N rows, B sentences, L slots of the queries, S slots of the keys, D width, H heads, C channels
of a head, R rows of a search (one per hypothesis), T tokens generated so far.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.dropout import dropout
from dragoman.model.packing import Packing
from dragoman.model.product import Linear

KeysValues = tuple[Tensor, Tensor]


def attend(
    query_BHLC: Tensor,
    key_BHSC: Tensor,
    value_BHSC: Tensor,
    *,
    mask_B11S: Tensor | None = None,
    causal: bool = False,
    rate: float = 0.0,
) -> Tensor:
    """softmax(q k' / sqrt(C) + mask) v, with dropout of the given rate on the softmax.

    torch's fused CPU kernel has no dropout. With a dropout rate, `scaled_dot_product_attention` does the
    operations one by one with Bernoulli masks, which costs 15 to 20 % more than doing so with our masks.
    """
    if rate == 0 or query_BHLC.device.type != "cpu":
        mask = None if mask_B11S is None else mask_B11S.to(query_BHLC.dtype)
        return F.scaled_dot_product_attention(
            query_BHLC, key_BHSC, value_BHSC, attn_mask=mask, is_causal=causal, dropout_p=rate
        )
    scores_BHLS = (query_BHLC @ key_BHSC.transpose(-1, -2)).mul_(query_BHLC.shape[-1] ** -0.5)
    if causal:
        length = scores_BHLS.shape[-1]
        scores_BHLS += scores_BHLS.new_full((length, length), -torch.inf).triu_(1)
    elif mask_B11S is not None:
        scores_BHLS += mask_B11S
    return dropout(scores_BHLS.softmax(-1), rate) @ value_BHSC


class SelfAttention(nn.Module):
    """Queries, keys and values from the same rows: one weight of 3 x D rows, in that order.

    So it takes one matrix product and one gather into the grid instead of three of each.
    """

    def __init__(self, width: int, heads: int, rate: float):
        super().__init__()
        self.heads, self.rate = heads, rate
        self.query_key_value = Linear(width, 3 * width, bias=False)
        self.output = Linear(width, width, bias=False)

    def forward(self, x_ND: Tensor, packing: Packing, causal: bool = False) -> Tensor:
        query, key, value = packing.split_heads(self.query_key_value(x_ND), 3, self.heads)
        # Padding is at a sentence's end, so causal attention hides it from every real query.
        mask = None if causal else packing.mask_B11L
        rate = self.rate if self.training else 0.0
        mixed_BHLC = attend(query, key, value, mask_B11S=mask, causal=causal, rate=rate)
        return self.output(packing.join_heads(mixed_BHLC))

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

    def keys_values(self, memory_ND: Tensor, packing: Packing) -> KeysValues:
        """The source's keys and values, each [B, H, S, C]."""
        key, value = packing.split_heads(self.key_value(memory_ND), 2, self.heads)
        return key, value

    def forward(
        self, x_ND: Tensor, packing: Packing, keys_values: KeysValues, mask_B11S: Tensor | None
    ) -> Tensor:
        (query,) = packing.split_heads(self.query(x_ND), 1, self.heads)
        rate = self.rate if self.training else 0.0
        mixed_BHLC = attend(query, *keys_values, mask_B11S=mask_B11S, rate=rate)
        return self.output(packing.join_heads(mixed_BHLC))
