"""Packs sentences end to end without padding, and converts between that and attention's padded grid.

Shape letters: T tokens of all sentences, end to end, N rows (the tokens, then spare ones), B sentences, L
slots per sentence (the longest one's length), P projections side by side in a row, H heads, C channels of a
head, D = H x C.

Everything except attention works on rows. Attention has kernels for rows on most GPUs (varlen.py) and needs a
grid of B x L slots elsewhere. A sentence shorter than L leaves empty slots at its end; they hold a copy of
some row and are masked or ignored. Spare rows after the last sentence may round up the number of rows: they
belong to no sentence and get no gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

Lengths = np.ndarray | Tensor


class HeadLayout(NamedTuple):
    """Where each head's piece of a row goes, for P projections of H heads."""

    to_grid: Tensor  # [P x B x H x L] which piece of the rows [N, P, H] is in each place of the grid
    to_rows: Tensor  # [N x P x H] which place of the grid [P, B, H, L] holds each piece
    empty: Tensor  # places of one projection's grid [B, H, L] that are padding
    spare: Tensor  # pieces of spare rows


@dataclass(frozen=True, eq=False)
class Packing:
    """Which sentence and slot each row belongs to. Built on the CPU, so nothing waits for the device.

    Each tensor is made and copied to the device when it is first used.
    """

    lengths_B: np.ndarray
    spare: int  # rows after the last sentence
    device: torch.device
    _layouts: dict[tuple[int, int], HeadLayout] = field(default_factory=dict)

    @classmethod
    def of(cls, lengths: Lengths, device: torch.device | str = "cpu", rows: int | None = None) -> Packing:
        """The packing of sentences of these lengths, each at least 1.

        Lengths on a GPU cost a host-device wait. `rows` is the number of rows including spare ones; there are
        none if it is not given.
        """
        lengths_B = np.asarray(lengths.cpu() if isinstance(lengths, Tensor) else lengths, dtype=np.int64)
        spare = 0 if rows is None else rows - int(lengths_B.sum())
        return cls(lengths_B, spare, torch.device(device))

    @property
    def sentences(self) -> int:
        return len(self.lengths_B)

    @cached_property
    def longest(self) -> int:
        return int(self.lengths_B.max())

    @cached_property
    def starts_B(self) -> Tensor:
        """The first row of each sentence."""
        return on_device(self._starts, self.device)

    @cached_property
    def bounds(self) -> Tensor:
        """The first row of each sentence and the end of the last one [B + 1], for attention's kernels."""
        assert not self.spare, "a kernel would leave spare rows as they are in memory"
        return on_device(np.append(0, np.cumsum(self.lengths_B)).astype(np.int32), self.device)

    @cached_property
    def positions_N(self) -> Tensor:
        """The row's place in its sentence, from 0; 0 for a spare row."""
        used = len(self._sentences) - self.spare
        positions = np.arange(used) - self._starts[self._sentences[:used]]
        return on_device(np.pad(positions, (0, self.spare)), self.device)

    @cached_property
    def mask_B11L(self) -> Tensor | None:
        """Added to attention scores: 0 at tokens, -inf at padding; None without padding."""
        if not self._is_empty.any():
            return None
        mask = np.where(self._is_empty, -np.inf, 0).astype(np.float32)
        return on_device(mask[:, None, None, :], self.device)

    @cached_property
    def _starts(self) -> np.ndarray:
        return np.cumsum(self.lengths_B) - self.lengths_B

    @cached_property
    def _sentences(self) -> np.ndarray:
        """The sentence of each row; 0 for a spare row."""
        return np.pad(np.repeat(np.arange(self.sentences), self.lengths_B), (0, self.spare))

    @cached_property
    def _is_empty(self) -> np.ndarray:
        """Which of the B x L slots are empty."""
        return np.arange(self.longest) >= self.lengths_B[:, None]

    @cached_property
    def _rows_BL(self) -> Tensor:
        """The row of each slot; 0 where the slot is empty."""
        rows = self._starts[:, None] + np.arange(self.longest)
        return on_device(np.where(self._is_empty, 0, rows), self.device)

    @cached_property
    def _empty_slots(self) -> Tensor:
        return on_device(np.flatnonzero(self._is_empty), self.device)

    @cached_property
    def _sentences_N(self) -> Tensor:
        return on_device(self._sentences, self.device)

    def fill(self, tokens_T: Tensor) -> Tensor:
        """The tokens, padded to one per row for the spare rows."""
        return F.pad(tokens_T, (0, self.spare))

    def split_heads(self, x_ND: Tensor, projections: int, heads: int) -> tuple[Tensor, ...]:
        """Rows of P x H x C as P grids of [B, H, L, C]."""
        to_grid, to_rows, _, spare = self._layout(projections, heads)
        pieces = x_ND.view(len(x_ND) * projections * heads, -1)
        grid = _Gather.apply(pieces, to_grid, to_rows, spare)
        return grid.view(projections, self.sentences, heads, self.longest, -1).unbind(0)

    def join_heads(self, x_BHLC: Tensor) -> Tensor:
        """The grid's slots that hold a token, as rows [N, D]."""
        heads, channels = x_BHLC.shape[1], x_BHLC.shape[3]
        to_grid, to_rows, empty, _ = self._layout(1, heads)
        return _Gather.apply(x_BHLC.reshape(-1, channels), to_rows, to_grid, empty).view(-1, heads * channels)

    def _layout(self, projections: int, heads: int) -> HeadLayout:
        key = projections, heads
        if key not in self._layouts:
            self._layouts[key] = self._build_layout(projections, heads)
        return self._layouts[key]

    def _build_layout(self, projections: int, heads: int) -> HeadLayout:
        device = self.device
        projection = torch.arange(projections, device=device)
        head = torch.arange(heads, device=device)
        piece = projection[:, None, None, None] * heads + head[:, None]
        to_grid = self._rows_BL[:, None, :] * (projections * heads) + piece
        sentence = projection[:, None] * self.sentences + self._sentences_N[:, None, None]
        to_rows = (sentence * heads + head) * self.longest + self.positions_N[:, None, None]
        slot = self._empty_slots[:, None]
        empty = (slot // self.longest * heads + head) * self.longest + slot % self.longest
        pieces = to_rows.numel()
        spare = torch.arange(pieces - self.spare * projections * heads, pieces, device=device)
        return HeadLayout(to_grid.flatten(), to_rows.flatten(), empty.flatten(), spare)


def on_device(array: np.ndarray, device: torch.device | str) -> Tensor:
    """The array as a tensor. Without pinned memory, a copy to a GPU would wait for all work on its stream."""
    tensor = torch.from_numpy(array)
    if torch.device(device).type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor


def on_host(numbers: Tensor, indices: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Two tensors of one shape as arrays, for the price of a single wait for the device.

    They travel as float64, which holds float32 and integers below 2^53 exactly.
    """
    both = torch.stack((numbers.double(), indices.double())).cpu().numpy()  # host-device wait
    return both[0].astype(np.float32), both[1].astype(np.int64)


class _Gather(torch.autograd.Function):
    """x[index], with a gradient that is a gather too: index_select is as fast as a copy.

    One such copy brings each piece into the layout in which attention multiplies. Padding to [B, L, D] first
    and moving the heads afterwards took 3 to 5 times as long. The places `unused` of x get no gradient.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, inverse: Tensor, unused: Tensor) -> Tensor:
        ctx.inverse, ctx.unused = inverse, unused
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return grad.index_select(0, ctx.inverse).index_fill_(0, ctx.unused, 0), None, None, None
