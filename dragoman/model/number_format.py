"""The number format of the products in a forward and backward pass."""

from __future__ import annotations

from typing import NamedTuple

import torch

from dragoman.cost.capability import AskedPrecision

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class NumberFormat(NamedTuple):
    """Weights, gradients and the optimizer's state are fp32 in every case.

    What depends on the format follows from this: the casts of a forward pass, and whether the loss is scaled
    (train/loss_scale.py).
    """

    device: str  # a device's type
    dtype: torch.dtype

    @classmethod
    def of(cls, precision: AskedPrecision, device: torch.device) -> NumberFormat:
        """The format of a settled `train.precision`. A CPU computes in fp32: it would emulate the others."""
        return cls(device.type, _DTYPES[precision] if device.type == "cuda" else torch.float32)

    @property
    def is_scaled(self) -> bool:
        """Would small gradients become 0? fp16 ends at 6e-8; bf16 reaches as far as fp32."""
        return self.dtype == torch.float16

    def autocast(self) -> torch.autocast:
        """Casts the factors of products inside the block, each weight once per block."""
        return torch.autocast(self.device, self.dtype, enabled=self.dtype != torch.float32)
