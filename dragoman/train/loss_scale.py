"""The factor that keeps the gradients of fp16 from becoming 0, and the search for it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim import Optimizer

from dragoman.model.number_format import NumberFormat

_LOWEST = 1.0  # a gradient that overflows without a factor is not the factor's fault


class LossScale:
    """Multiplies the loss, and divides the gradients by the same, if the number format needs that.

    torch.amp.GradScaler searches for the factor: it begins at 65,536, halves it when a gradient is not finite
    and doubles it after 2,000 steps without that. Its `step` is not used, because it may wait for the device
    a second time: the caller reads the norm, which is not finite if a gradient is not. Ranks that average
    gradients have the same ones, so they keep the same factor.
    """

    def __init__(self, number_format: NumberFormat, saved: Mapping[str, int | float]) -> None:
        """`saved` is what an earlier attempt's `state` returned; it may be empty."""
        self._scaler = torch.amp.GradScaler(number_format.device, enabled=number_format.is_scaled)
        if saved:
            self._scaler.load_state_dict(dict(saved))
        self._last = self._scaler.get_scale()  # no wait: there is none on the device yet

    def scaled(self, loss: Tensor) -> Tensor:
        return self._scaler.scale(loss)

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients, and notes on the device whether all were finite."""
        self._scaler.unscale_(optimizer)

    def updated(self, like: Tensor) -> Tensor:
        """Changes the factor by what `unscale_` found; returns the new one, on the device."""
        self._scaler.update()
        return self._scaler.scale(torch.ones_like(like))

    def was_lowered(self, factor: float) -> bool:
        """Did the last update lower the factor, with room for that? `factor` is what `updated` returned.

        If so, the step was skipped in search of a factor, and nothing is wrong with it. At the lowest factor
        the factor stays, and gradients that are not finite are so for another reason.
        """
        last, self._last = self._last, max(factor, _LOWEST)
        if factor < _LOWEST:
            self._scaler.update(_LOWEST)
        return _LOWEST <= factor < last

    def state(self) -> dict[str, int | float]:
        """What a resume needs; waits for the device. Empty without scaling."""
        return self._scaler.state_dict()
