"""The cost of a step: computing, and the exchange by algorithm, bytes and link, less what overlap hides.

    step = data + computing + optimizer + exposed exchange
    exposed = drag + latency + max(wire - window, tail x wire)

`wire` is the bytes divided by the link's rate. `window` is how much of it the last microbatch's backward pass
hides. The last bucket of gradients is ready only when backward ends, so its share (`tail`) is never hidden.
`drag` is what the link does not explain: sums and copies, and a CPU that computes and sends at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

BUCKET_BYTES = 25 * 2**20  # DDP's default
BUCKET_SIZES = (2**20, 5 * 2**20, BUCKET_BYTES)  # a run picks one
WIRE_BYTES = {"fp32": 4, "bf16": 2}  # of a gradient
# Every bucket costs one trip around the ring and about a millisecond in the ranks themselves. The bucket
# size is the smallest for which this is at most a thirtieth of the bucket's time.
_BUCKET_COST_SECONDS = 0.001
_BUCKET_COST_SHARE = 1 / 30


def ring_bytes(ranks: int, gradient_bytes: float) -> float:
    """Bytes each rank sends in a ring all-reduce: shares of the sum, then of the result, N-1 times each."""
    return 2 * (ranks - 1) / ranks * gradient_bytes if ranks > 1 else 0.0


def ring_latency_seconds(ranks: int, round_trip_seconds: float) -> float:
    """The time of an all-reduce of almost no data: 2(N-1) messages, one after the other."""
    return (ranks - 1) * round_trip_seconds


def bytes_per_host(rank_hosts: Sequence[int], gradient_bytes: float, is_hierarchical: bool = False) -> float:
    """The bytes an exchange sends out of each host, mean over hosts.

    A ring goes through the ranks in order. If the ranks of a host are neighbours, it leaves each host once,
    and the figure is that of one rank. If the hosts take turns, it leaves a host with every rank.
    """
    hosts = len(set(rank_hosts))
    if hosts < 2:
        return 0.0
    if is_hierarchical:  # summed inside each host first, then one ring of hosts
        return ring_bytes(hosts, gradient_bytes)
    following = [*rank_hosts[1:], rank_hosts[0]]
    crossings = sum(host != after for host, after in zip(rank_hosts, following, strict=True))
    return ring_bytes(len(rank_hosts), gradient_bytes) * crossings / hosts


def bucket_bytes_for(ranks: int, bits_per_second: float, round_trip_seconds: float) -> int:
    """The bucket size for a link: small ones start early and leave little for the end; each costs a trip."""
    cost_seconds = ring_latency_seconds(ranks, round_trip_seconds) + _BUCKET_COST_SECONDS
    enough = cost_seconds / _BUCKET_COST_SHARE * bits_per_second / 8
    return next((size for size in BUCKET_SIZES if size >= enough), BUCKET_BYTES)


def buckets(tensor_bytes: Sequence[int], bucket_bytes: int) -> list[int]:
    """Buckets as DDP fills them: one is full once it has this many bytes or more; tensors are never split."""
    filled = [0]
    for nbytes in tensor_bytes:
        if filled[-1] >= bucket_bytes:
            filled.append(0)
        filled[-1] += nbytes
    return filled


def exposed_after(filled: Sequence[int], window_seconds: float, seconds_of: Callable[[int], float]) -> float:
    """Seconds for which buckets are still being sent when the backward pass is over.

    Buckets are sent one after the other, none before its gradients are ready: the last when backward ends.
    """
    total, ready, ended = sum(filled), 0, 0.0
    for nbytes in filled:
        ready += nbytes
        ended = max(ended, window_seconds * ready / total) + seconds_of(nbytes)
    return ended - window_seconds


def tail_share(
    gradient_bytes: float, embedding_bytes: float = 0.0, bucket_bytes: float = BUCKET_BYTES
) -> float:
    """The share of the fp32 gradients in the bucket that is ready last.

    If both sides and the output share one embedding, it is in that bucket: its gradient is complete only when
    the encoder's first layer is done, and a tensor is never split over buckets.
    """
    return min(1.0, max(bucket_bytes, embedding_bytes) / gradient_bytes) if gradient_bytes > 0 else 1.0


@dataclass(frozen=True)
class StepCost:
    """The seconds of one step by cause. Its methods change a cause and give the new cost."""

    compute_seconds: float  # forward and backward of all microbatches, on the slowest rank
    data_seconds: float  # waiting for data; grows with the tokens
    serial_seconds: float  # the optimizer and all else done once per step
    wire_bytes: float  # out of each host
    link_bits_per_second: float
    latency_seconds: float = 0.0
    drag_seconds: float = 0.0  # grows with the bytes
    window_seconds: float = 0.0
    tail: float = 1.0

    @property
    def wire_seconds(self) -> float:
        return 8 * self.wire_bytes / self.link_bits_per_second

    @property
    def exposed_seconds(self) -> float:
        wire = self.wire_seconds
        return self.drag_seconds + self.latency_seconds + max(wire - self.window_seconds, self.tail * wire)

    @property
    def seconds(self) -> float:
        return self.data_seconds + self.compute_seconds + self.serial_seconds + self.exposed_seconds

    def on_link(self, bits_per_second: float) -> StepCost:
        return replace(self, link_bits_per_second=bits_per_second)

    def with_bytes(self, factor: float) -> StepCost:
        """The cost with this factor on the bytes sent: 0.5 for bf16 in place of fp32."""
        return replace(self, wire_bytes=self.wire_bytes * factor, drag_seconds=self.drag_seconds * factor)

    def with_tokens(self, factor: float) -> StepCost:
        """The cost with this factor on the microbatches between two exchanges."""
        return replace(
            self, compute_seconds=self.compute_seconds * factor, data_seconds=self.data_seconds * factor
        )

    def every(self, steps: int) -> StepCost:
        """The cost with one exchange per this many steps, and no computing to hide it: DiLoCo."""
        share = 1 / steps
        return replace(
            self,
            wire_bytes=self.wire_bytes * share,
            latency_seconds=self.latency_seconds * share,
            drag_seconds=self.drag_seconds * share,
            tail=1.0,
        )

    def speedup(self, other: StepCost, tokens: float = 1.0) -> float:
        """Tokens per second with `other`, as a multiple of this; its steps have `tokens` times the tokens."""
        return tokens * self.seconds / other.seconds


def calibrated(
    step_seconds: float,
    step_seconds_without_exchange: float,
    data_seconds: float,
    optimizer_seconds: float,
    wire_bytes: float,
    link_bits_per_second: float | None,
    round_trip_seconds: float = 0.0,
    tail: float = 1.0,
) -> StepCost:
    """The cost of a step that was measured with and without its exchange.

    The cost of the exchange is compared with the time that the link alone would take. If it is less, the
    difference was hidden (`window`). If it is more, the link does not explain the rest (`drag`), and a faster
    link would not remove it. Without a measured link, the rate reached is used, as if nothing was hidden.
    """
    cost = max(0.0, step_seconds - step_seconds_without_exchange)
    if link_bits_per_second is None:
        link_bits_per_second = 8 * wire_bytes / max(cost, 1e-9 * step_seconds)
    wire = 8 * wire_bytes / link_bits_per_second
    latency = min(round_trip_seconds, max(0.0, cost - wire))
    return StepCost(
        compute_seconds=max(0.0, step_seconds_without_exchange - data_seconds - optimizer_seconds),
        data_seconds=data_seconds,
        serial_seconds=optimizer_seconds,
        wire_bytes=wire_bytes,
        link_bits_per_second=link_bits_per_second,
        latency_seconds=latency,
        drag_seconds=max(0.0, cost - wire - latency),
        window_seconds=max(0.0, wire - cost),
        tail=min(tail, cost / wire) if wire > 0 else 0.0,
    )
