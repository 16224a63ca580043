"""The interface of an exchange, whichever way its gradients travel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch.nn import Module

from dragoman.exchange_way import ExchangeWay


class Exchange:
    """Exchanges nothing; used to time a step without its exchange. The subclasses send gradients."""

    together: Sequence[int] | None = None  # ranks that average their gradients in every step; None: all
    replicas: Sequence[int] = ()  # the replica of each rank, if there are several
    outer: Mapping[str, torch.Tensor] = {}  # what the exchange remembers for each parameter
    round_start: torch.Tensor | None = None  # all weights at the start of a round, if it has several steps
    in_lockstep: bool = False  # is every microbatch collective, forward pass included?

    def __init__(self, model: Module, way: ExchangeWay | None = None):
        self.way = way or ExchangeWay()
        self.model: torch.nn.Module = model  # called for the forward pass

    @contextmanager
    def microbatch(self, is_last: bool) -> Iterator[None]:
        """Surrounds forward and backward of a microbatch. A step's last one exchanges and is collective."""
        yield

    def exposed_seconds(self) -> float:
        """Seconds from the end of computing to the end of the last exchange."""
        return 0.0

    def exposed_in_forward(self) -> float:
        """Seconds that computing waited for weights in a step's forward passes."""
        return 0.0

    def settle(self, forward: Callable[[], torch.Tensor]) -> None:
        """Does the set-up of the first exchange without changing any result. Collective."""

    def restore(self, outer: Mapping[str, torch.Tensor], round_start: torch.Tensor | None) -> None:
        """Puts back what `outer` held, and in the middle of a round also its start."""

    def end_round(self) -> None:
        """Makes the weights of all replicas the same, after the last update of a round. Collective."""

    def close(self) -> None:
        """Ends what still runs; the exchange is not used after that."""
