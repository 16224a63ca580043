"""How gradients meet: what a step asks of an exchange, whichever way it goes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict
from torch.nn import Module

from dragoman.cost.step import BUCKET_BYTES, WIRE_BYTES, ends_round


class Way(BaseModel):
    """By which way gradients go from rank to rank. Every way computes the same mean, but for rounding."""

    model_config = ConfigDict(frozen=True)

    algorithm: Literal["allreduce", "hierarchical"] = "allreduce"  # one ring of ranks, or one rank per host
    wire: Literal["fp32", "bf16"] = "fp32"  # between hosts
    bucket_bytes: int = BUCKET_BYTES  # of fp32 gradients that set off together
    flows: int = 1  # hierarchical: connections between two hosts

    def __str__(self) -> str:
        shape = "hierarchical" if self.algorithm == "hierarchical" else "flat"
        flows = f", {self.flows} flows" if self.flows > 1 else ""
        return f"{shape} all-reduce in {self.wire}, buckets of {self.bucket_bytes / 2**20:.3g} MiB{flows}"


class Exchange:
    """This one exchanges nothing: so is a step timed without it. The others send during the backward pass."""

    mode = "allreduce"
    steps_per_round = 1  # at most; where a round ends every rank has the same weights
    together: Sequence[int] | None = None  # ranks that average their gradients in every step; None is all
    replicas: Sequence[int] = ()  # to which replica each rank belongs, where there are several
    outer: Mapping[str, torch.Tensor] = {}  # what an exchange remembers of each parameter

    def __init__(self, model: Module, way: Way | None = None):
        self.way = way or Way()
        self.model: torch.nn.Module = model  # what a forward goes through

    @contextmanager
    def microbatch(self, is_last: bool) -> Iterator[None]:
        """Around the forward and backward of a microbatch; the step's last one exchanges. Collective then."""
        yield

    def exposed_seconds(self) -> float:
        """Of the last exchange: from the end of computing to the end of communicating."""
        return 0.0

    def settle(self, forward: Callable[[], torch.Tensor]) -> None:
        """Makes ready what the first exchange would change, without a trace. Collective."""

    def ends_round(self, step: int) -> bool:
        """Do all ranks have the same weights after this step, the run's first being 1?"""
        return ends_round(step, self.steps_per_round)

    def whole_rounds(self, steps: int) -> int:
        """So many steps, or somewhat more: only where a round ends have all ranks the same weights."""
        return math.ceil(steps / self.steps_per_round) * self.steps_per_round

    def restore_outer(self, outer: Mapping[str, torch.Tensor]) -> None:
        """What was remembered when a run was saved."""

    def end_round(self) -> None:
        """After the optimizer's step, the last of a round. Collective."""

    def facts(self, parameters: int) -> dict[str, object]:
        """For the records."""
        return {
            "mode": self.mode,
            "exchange": self.way.algorithm,
            "wire": self.way.wire,
            "bucket_bytes": self.way.bucket_bytes,
            "gradient_bytes": WIRE_BYTES[self.way.wire] * parameters,
            "exchange_every": self.steps_per_round,
        }

    def close(self) -> None:
        """Nothing is sent any more."""
