"""The cost of a step: computing, exchange by algorithm, bytes and link, and what overlap hides.

    step = data + computing + optimizer + exposed exchange
    exposed = drag + latency + max(wire - window, tail x wire)

`wire` is bytes over the link's rate. `window` is how much of it runs behind the last microbatch's backward.
The last bucket of gradients is ready only when backward ends, so its share (`tail`) is never hidden. `drag`
is what the link does not explain: sums and copies, and a CPU that computes and sends at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

BUCKET_BYTES = 25 * 2**20  # DDP's default
BUCKET_SIZES = (2**20, 5 * 2**20, BUCKET_BYTES)  # that a run picks from
WIRE_BYTES = {"fp32": 4, "bf16": 2}  # of a gradient
# Every bucket pays the way round the ring once, and about a millisecond in the ranks themselves: the smallest
# bucket is taken of which that is at most a thirtieth.
_BUCKET_COST_SECONDS = 0.001
_BUCKET_COST_SHARE = 1 / 30


def ring_bytes(ranks: int, gradient_bytes: float) -> float:
    """What each rank of a ring all-reduce sends: its share of the sum, then of the result, to N-1 others."""
    return 2 * (ranks - 1) / ranks * gradient_bytes if ranks > 1 else 0.0


def ring_latency_seconds(ranks: int, round_trip_seconds: float) -> float:
    """The time of an all-reduce of next to nothing: 2(N-1) messages, one after the other."""
    return (ranks - 1) * round_trip_seconds


def bytes_per_host(rank_hosts: Sequence[int], gradient_bytes: float, is_hierarchical: bool = False) -> float:
    """What an exchange sends out of each host, mean over hosts.

    A ring goes through the ranks in order. Where the ranks of a host stand together it leaves each host once,
    so the figure is that of one rank; dealt out in turns it leaves with every rank.
    """
    hosts = len(set(rank_hosts))
    if hosts < 2:
        return 0.0
    if is_hierarchical:  # summed inside each host first, one ring of hosts
        return ring_bytes(hosts, gradient_bytes)
    following = [*rank_hosts[1:], rank_hosts[0]]
    crossings = sum(host != after for host, after in zip(rank_hosts, following, strict=True))
    return ring_bytes(len(rank_hosts), gradient_bytes) * crossings / hosts


def bucket_bytes_for(ranks: int, bits_per_second: float, round_trip_seconds: float) -> int:
    """Small ones set off early and leave little for the end; too small ones pay for the way too often."""
    cost_seconds = ring_latency_seconds(ranks, round_trip_seconds) + _BUCKET_COST_SECONDS
    enough = cost_seconds / _BUCKET_COST_SHARE * bits_per_second / 8
    return next((size for size in BUCKET_SIZES if size >= enough), BUCKET_BYTES)


def buckets(tensor_bytes: Sequence[int], bucket_bytes: int) -> list[int]:
    """As DDP fills them: a bucket is full when it has at least so much; a tensor is never split."""
    filled = [0]
    for nbytes in tensor_bytes:
        if filled[-1] >= bucket_bytes:
            filled.append(0)
        filled[-1] += nbytes
    return filled


def exposed_after(filled: Sequence[int], window_seconds: float, seconds_of: Callable[[int], float]) -> float:
    """How long buckets still travel when the backward pass is over.

    One goes after the other, none before its gradients are there; the last ones come with the end.
    """
    total, ready, ended = sum(filled), 0, 0.0
    for nbytes in filled:
        ready += nbytes
        ended = max(ended, window_seconds * ready / total) + seconds_of(nbytes)
    return ended - window_seconds


def tail_share(
    gradient_bytes: float, embedding_bytes: float = 0.0, bucket_bytes: float = BUCKET_BYTES
) -> float:
    """Share of the fp32 gradients in the bucket that is ready last.

    With one embedding for both sides and the output it is the embedding's: its gradient is complete only
    when the encoder's first layer is done, and a tensor is never split over buckets.
    """
    return min(1.0, max(bucket_bytes, embedding_bytes) / gradient_bytes) if gradient_bytes > 0 else 1.0


@dataclass(frozen=True)
class StepCost:
    """One step's seconds by cause. Change the cause, read the seconds."""

    compute_seconds: float  # forward and backward of all microbatches, on the slowest rank
    data_seconds: float  # waiting for data; grows with the tokens
    serial_seconds: float  # optimizer and what else comes once per step
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
        """With so many times the bytes on the wire: 0.5 for bf16 in place of fp32."""
        return replace(self, wire_bytes=self.wire_bytes * factor, drag_seconds=self.drag_seconds * factor)

    def with_tokens(self, factor: float) -> StepCost:
        """With so many times the microbatches between two exchanges."""
        return replace(
            self, compute_seconds=self.compute_seconds * factor, data_seconds=self.data_seconds * factor
        )

    def every(self, steps: int) -> StepCost:
        """With one exchange for so many steps, behind which nothing is computed: DiLoCo."""
        share = 1 / steps
        return replace(
            self,
            wire_bytes=self.wire_bytes * share,
            latency_seconds=self.latency_seconds * share,
            drag_seconds=self.drag_seconds * share,
            tail=1.0,
        )

    def speedup(self, other: StepCost, tokens: float = 1.0) -> float:
        """Tokens per second of `other`, which has `tokens` times as many in a step, over those of this."""
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

    What the exchange costs is compared with what the link alone would take. Less: the difference was hidden
    (`window`). More: the link does not explain it (`drag`), and a faster link would not remove it. Without a
    measured link the rate that was reached is taken, as if nothing had been hidden.
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
