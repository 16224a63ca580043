"""The ways gradients can travel between ranks: what each sends, and when DiLoCo's replicas exchange."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, PositiveInt, model_validator

from dragoman.cost import step as step_cost
from dragoman.cost.step import BUCKET_BYTES, WIRE_BYTES

# The mean of every step's gradients; the same with weights divided among the ranks of a host; or replicas
# that exchange once a round.
Mode = Literal["allreduce", "sharded", "diloco"]
AskedMode = Literal["auto", Mode]
Shape = Literal["flat", "hierarchical"]  # one ring of all ranks, or sums inside each host and a ring of hosts
Wire = Literal["fp32", "bf16"]  # gradients between hosts

LOCAL_STEPS = 16  # of a DiLoCo round by default: few enough to learn as well as synchronous training
ROUND_SHARE = 8  # a round has at most one in this many of all steps made by its end
# DiLoCo, per parameter: the weights at the start of a round, the change since then, and the outer momentum.
_OUTER_MEMORY_BYTES = 12
_OUTER_SAVED_BYTES = 4  # the outer momentum
_STORED_SHAPES: dict[str, Shape] = {"allreduce": "flat"}  # in records, and in checkpoints before `shape`


class ExchangeWay(BaseModel):
    """One way to exchange gradients. All but DiLoCo compute the same mean in every step, up to rounding."""

    model_config = ConfigDict(frozen=True)

    mode: Mode = "allreduce"
    shape: Shape = "flat"
    wire: Wire = "fp32"
    bucket_bytes: PositiveInt | None = None  # fp32 gradients sent together; None: not chosen yet
    flows: PositiveInt = 1  # hierarchical: connections between two hosts
    steps_per_round: PositiveInt = 1  # DiLoCo: steps between two exchanges, once rounds have grown

    @model_validator(mode="before")
    @classmethod
    def _read_algorithm(cls, values: Any) -> Any:
        """Reads checkpoints written before ways had modes: their `algorithm` is the shape."""
        if not isinstance(values, dict) or "algorithm" not in values:
            return values
        algorithm = values["algorithm"]
        shape = _STORED_SHAPES.get(algorithm, algorithm) if isinstance(algorithm, str) else algorithm
        return {"shape": shape, **{name: value for name, value in values.items() if name != "algorithm"}}

    @model_validator(mode="after")
    def _is_legal(self) -> Self:
        if self.mode != "diloco" and self.steps_per_round > 1:
            raise ValueError("only DiLoCo has rounds of several steps")
        if self.is_sharded and (self.shape, self.wire, self.flows) != ("hierarchical", "fp32", 1):
            raise ValueError("shards are summed inside each host first, and in fp32")
        if self.shape == "flat" and self.flows > 1:
            raise ValueError("only a hierarchical exchange has several flows")
        return self

    def __str__(self) -> str:
        words = f"{self.shape} all-reduce in {self.wire}"
        if self.is_sharded:
            return f"weights sharded inside each host, {words}"
        if self.mode != "diloco":
            return words
        often = f"{self.steps_per_round} steps" if self.steps_per_round > 1 else "step"
        return f"DiLoCo, {words} every {often}"

    @property
    def bucket_words(self) -> str:
        """How gradients are divided, for the log: `buckets of 25 MiB, 2 flows`."""
        if self.is_sharded:
            return "a layer at a time"
        flows = f", {self.flows} flows" if self.flows > 1 else ""
        return f"buckets of {(self.bucket_bytes or BUCKET_BYTES) / 2**20:.3g} MiB{flows}"

    @property
    def kind(self) -> ExchangeWay:
        """The way without bucket size and flows, which depend on the link."""
        return self.model_copy(update={"bucket_bytes": None, "flows": 1})

    @property
    def is_hierarchical(self) -> bool:
        return self.shape == "hierarchical"

    @property
    def is_sharded(self) -> bool:
        """Does each rank of a host keep only a part of the weights, gradients and moments?"""
        return self.mode == "sharded"

    @property
    def is_exact(self) -> bool:
        """Are unrounded gradients averaged in every step?"""
        return self.mode in ("allreduce", "sharded") and self.wire == "fp32"

    # --- bytes ---

    def gradient_bytes(self, parameters: int) -> int:
        """One rank's gradients on the wire."""
        return self.bytes_per_gradient * parameters

    @property
    def bytes_per_gradient(self) -> int:
        return WIRE_BYTES.get(self.wire, WIRE_BYTES["fp32"])

    def ring_members(self, rank_hosts: Sequence[int]) -> int:
        """The members of the ring that crosses between hosts: one per host, or all ranks."""
        return len(set(rank_hosts)) if self.is_hierarchical else len(rank_hosts)

    def bytes_per_host(self, rank_hosts: Sequence[int], gradient_bytes: float) -> float | None:
        """The bytes an exchange sends out of each host, mean over hosts; None if the shape is unknown."""
        if self.shape not in ("flat", "hierarchical"):
            return None
        return step_cost.bytes_per_host(rank_hosts, gradient_bytes, self.is_hierarchical)

    def bytes_inside(self, ranks: int, parameters: int, microbatches: int) -> float:
        """The bytes that each rank sends to the others of its host in a step, besides those between hosts.

        A hierarchical exchange sums gradients inside the host once. With shards, every microbatch gathers
        the weights twice, for forward and backward, and sums the gradients.
        """
        if not self.is_hierarchical:
            return 0.0
        once = step_cost.ring_bytes(ranks, WIRE_BYTES["fp32"] * parameters)
        return 1.5 * microbatches * once if self.is_sharded else once  # a ring all-reduce has two such parts

    # --- rounds ---

    @property
    def has_replicas(self) -> bool:
        """May ranks have different weights between exchanges? Each replica then saves its own optimizer."""
        return self.mode == "diloco"

    def ends_round(self, step: int) -> bool:
        """Do all ranks have the same weights after this step? The run's first step is 1.

        The first rounds of a run have one step, later ones two, four and so on up to `steps_per_round`:
        replicas that learn fast drift apart fast. A round also ends wherever one of full length would.
        """
        length = self.steps_per_round
        while length > 1 and ROUND_SHARE * length > step:
            length //= 2
        return step % length == 0 or step % self.steps_per_round == 0

    def whole_rounds(self, steps: int) -> int:
        """The next multiple of a round, at least this many steps."""
        return math.ceil(steps / self.steps_per_round) * self.steps_per_round

    @property
    def growing_steps(self) -> int:
        """The number of steps after which rounds have their full length."""
        return ROUND_SHARE * self.steps_per_round if self.steps_per_round > 1 else 0

    # --- the exchange's own memory ---

    def memory_bytes(self, parameters: int) -> int:
        """The memory a rank needs besides model and optimizer."""
        return _OUTER_MEMORY_BYTES * parameters if self.mode == "diloco" else 0

    def saved_bytes(self, parameters: int) -> int:
        """The bytes a checkpoint holds besides model and optimizer."""
        return _OUTER_SAVED_BYTES * parameters if self.mode == "diloco" else 0

    # --- records ---

    def facts(self, parameters: int) -> dict[str, object]:
        """The way as records.db names it."""
        return {
            "mode": self.mode,
            "exchange": "allreduce" if self.shape == "flat" else self.shape,
            "wire": self.wire,
            "bucket_bytes": self.bucket_bytes,
            "gradient_bytes": self.gradient_bytes(parameters),
            "exchange_every": self.steps_per_round,
        }

    @classmethod
    def recorded(
        cls, *, mode: str, exchange: str, wire: str, bucket_bytes: int | None, exchange_every: int
    ) -> ExchangeWay:
        """The way that records name. Values from another program or version are kept unchecked."""
        values: dict[str, Any] = {
            "mode": mode,
            "shape": _STORED_SHAPES.get(exchange, exchange),
            "wire": wire,
            "bucket_bytes": bucket_bytes,
            "steps_per_round": exchange_every,
        }
        return cls.model_construct(**values)


class SyncSettings(Protocol):
    """The settings of `config.Sync` that decide the way."""

    @property
    def mode(self) -> AskedMode: ...
    @property
    def wire(self) -> Wire | None: ...
    @property
    def hierarchical(self) -> bool | None: ...
    @property
    def bucket_bytes(self) -> int | None: ...
    @property
    def inner_steps(self) -> int: ...


def open_ways(sync: SyncSettings, rank_hosts: Sequence[int]) -> list[ExchangeWay]:
    """The ways that the settings leave open: one, or several under "auto" on several hosts."""
    if sync.mode == "sharded":
        return [ExchangeWay(mode="sharded", shape="hierarchical")]
    wires: list[Wire] = [sync.wire or "fp32"]
    shapes: list[Shape] = ["flat"]
    if sync.hierarchical and can_be_hierarchical(rank_hosts):
        shapes = ["hierarchical"]
    if sync.mode == "auto" and len(set(rank_hosts)) > 1:
        if sync.wire is None:
            wires = ["fp32", "bf16"]
        if sync.hierarchical is None and can_be_hierarchical(rank_hosts):
            shapes = ["flat", "hierarchical"]
    return [
        ExchangeWay(
            mode="allreduce" if sync.mode == "auto" else sync.mode,
            shape=shape,
            wire=wire,
            bucket_bytes=sync.bucket_bytes,
            steps_per_round=sync.inner_steps if sync.mode == "diloco" else 1,
        )
        for shape in shapes
        for wire in wires
    ]


def can_be_hierarchical(rank_hosts: Sequence[int]) -> bool:
    """Are there several hosts, and several ranks on one of them?"""
    return len(rank_hosts) > len(set(rank_hosts)) > 1
