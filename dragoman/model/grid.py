"""Attention on a grid of B x L slots, with padding: on CPUs, in a search, and where varlen.py has no kernel.

Shape letters: N rows, B sentences, L slots of the queries, S slots of the keys, P projections side by side in
a row, H heads, C channels of a head, D = H x C.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.model.dropout import dropout
from dragoman.model.packing import Packing


class Grid:
    def split(self, x_ND: Tensor, packing: Packing, projections: int, heads: int) -> tuple[Tensor, ...]:
        """Rows of P x H x C as P grids of [B, H, L, C]."""
        return packing.split_heads(x_ND, projections, heads)

    def mix(
        self,
        query_BHLC: Tensor,
        key_BHSC: Tensor,
        value_BHSC: Tensor,
        queries: Packing,
        keys: Packing,
        *,
        causal: bool = False,
        rate: float = 0.0,
    ) -> Tensor:
        """Attention's output for each row of the queries, [N, D]."""
        # Padding is at a sentence's end, so causal attention hides it from every real query.
        mask = None if causal else keys.mask_B11L
        mixed_BHLC = attend(query_BHLC, key_BHSC, value_BHSC, mask_B11S=mask, causal=causal, rate=rate)
        return queries.join_heads(mixed_BHLC)


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
