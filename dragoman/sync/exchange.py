"""What a step asks of an exchange, whichever way its gradients travel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch.nn import Module

from dragoman.exchange_way import ExchangeWay


class Exchange:
    """Exchanges nothing, which is how a step is timed without it. Its subclasses send gradients."""

    together: Sequence[int] | None = None  # ranks that average their gradients in every step; None is all
    replicas: Sequence[int] = ()  # to which replica each rank belongs, where there are several
    outer: Mapping[str, torch.Tensor] = {}  # what an exchange remembers of each parameter

    def __init__(self, model: Module, way: ExchangeWay | None = None):
        self.way = way or ExchangeWay()
        self.model: torch.nn.Module = model  # what a forward goes through

    @contextmanager
    def microbatch(self, is_last: bool) -> Iterator[None]:
        """Surrounds the forward and backward of a microbatch. The last of a step exchanges: collective."""
        yield

    def exposed_seconds(self) -> float:
        """The time of the last exchange from the end of computing to the end of communicating."""
        return 0.0

    def settle(self, forward: Callable[[], torch.Tensor]) -> None:
        """Sets up what the first exchange would set up, without changing any result. Collective."""

    def restore_outer(self, outer: Mapping[str, torch.Tensor]) -> None:
        """Puts back what `outer` held when the run was saved."""

    def end_round(self) -> None:
        """Brings replicas together after the optimizer's step, the last of a round. Collective."""

    def close(self) -> None:
        """Ends what still runs; nothing is sent after that."""
