"""How fast a step of transformer-base can be on a GPU: a roofline of the operators that it really calls.

    python -m benchmarks.roofline [--microbatch TOKENS]

No GPU is needed. The real `Stepper` makes a step on pretended CUDA tensors (tests/fake_cuda). Every operator
that would run on the card is noted with its arithmetic and its memory traffic. On a card it takes at least

    the longest of: its FLOPs / the card's reachable rate, its bytes / the reachable bandwidth, 2.5 us

and a step at least the sum. The host needs about 6 us for a launch, so many small operators are slower still.
Not counted: the exchange of gradients, DDP's own kernels, and what the L2 cache saves. Prints the table of
benchmarks/gpu.md; a test holds the two together.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dragoman.measure.phases import GpuPhases

VOCABULARY = 32_768
STEP_TOKENS = 25_000
SENTENCE_TOKENS = (27.0, 28.0)  # source and target, as in WMT16 en-de with this vocabulary
LAUNCH_SECONDS = 6e-6  # of the host, for an operator with autograd; measured by nobody on these hosts
LEAST_SECONDS = 2.5e-6  # of the device, however little an operator does
TILE = (128, 64)  # queries and keys that attention's kernels compute at once, also for a sentence of 5 tokens


class Card(NamedTuple):
    """A GPU. Peaks are the maker's, for dense products; what is reachable of them is an assumption.

    The shares are usual for products of thousands of rows and for long vectors. At 70 W a T4 slows down.
    """

    name: str
    capability: tuple[int, int]
    precision: str
    peak_flops: float  # 16-bit products
    peak_bytes: float  # per second
    flops_share: float
    bytes_share: float

    @property
    def flops(self) -> float:
        return self.peak_flops * self.flops_share

    @property
    def bytes(self) -> float:
        return self.peak_bytes * self.bytes_share


CARDS = (
    Card("T4", (7, 5), "fp16", 65e12, 0.320e12, 0.62, 0.75),
    Card("V100 SXM2", (7, 0), "fp16", 125e12, 0.900e12, 0.76, 0.87),
    Card("A100 SXM 40 GB", (8, 0), "bf16", 312e12, 1.555e12, 0.80, 0.87),
    Card("H100 SXM", (9, 0), "bf16", 989e12, 3.350e12, 0.63, 0.78),
)
FP32_SHARE = 0.07  # of the 16-bit peak: products in fp32, of which a step has none worth mentioning


class Operator(NamedTuple):
    name: str
    flops: float
    bytes: float
    is_fp32: bool

    def seconds(self, card: Card) -> float:
        flops = card.peak_flops * FP32_SHARE if self.is_fp32 else card.flops
        return max(self.flops / flops, self.bytes / card.bytes, LEAST_SECONDS)


class Roof(TorchDispatchMode):
    """Notes what every operator on the GPU computes, reads and writes."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[Operator] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        traffic = _Traffic.of(func, name, args, kwargs, out)
        if traffic.is_on_gpu and not _is_view(func) and name not in _NO_KERNEL:
            flops, is_fp32 = _flops(name, args, traffic)
            self.operators.append(Operator(func.__name__, flops, _bytes(name, args, traffic), is_fp32))
        return out


_NO_KERNEL = {
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "_unsafe_view",
    "detach",
}
_PRODUCTS = {"mm", "addmm", "addmm_", "bmm", "baddbmm", "_addmm_activation"}
_MADE_UP = {"new_zeros", "new_full", "zeros_like", "ones_like", "full_like", "bernoulli_"}  # read nothing
_OVERWRITTEN = {"copy_", "zero_", "fill_"}  # their first argument is written and not read
_PICKING = {"index_select", "embedding", "gather"}
_PLACING = {"scatter_", "scatter_add_", "index_fill_", "index_add_"}


class _Traffic(NamedTuple):
    read: list[Tensor]
    written: list[Tensor]

    @classmethod
    def of(cls, func: Any, name: str, args: Any, kwargs: Any, out: Any) -> _Traffic:
        given: list[Tensor] = []
        written: list[Tensor] = []
        for argument, value in _named(func, args, kwargs):
            tensors = [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]
            is_changed = argument.alias_info is not None and argument.alias_info.is_write
            written += tensors if is_changed else []
            is_only_written = argument.is_out or (is_changed and name in _OVERWRITTEN)
            given += [] if is_only_written or name in _MADE_UP else tensors
        made = [leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor)]
        written += [tensor for tensor in made if all(tensor is not other for other in written)]
        return cls(_each_once(given), _each_once(written))

    @property
    def is_on_gpu(self) -> bool:
        return any(tensor.is_cuda for tensor in self.written)


def _named(func: Any, args: Any, kwargs: Any) -> list[tuple[Any, Any]]:
    arguments = func._schema.arguments
    pairs = list(zip(arguments, args, strict=False))
    return pairs + [(argument, kwargs[argument.name]) for argument in arguments if argument.name in kwargs]


def _each_once(tensors: list[Tensor]) -> list[Tensor]:
    return list({id(tensor): tensor for tensor in tensors}.values())


def _is_view(func: Any) -> bool:
    aliases = [returned.alias_info for returned in func._schema.returns]
    return bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)


def _size(tensor: Tensor) -> int:
    """Bytes; an expanded tensor has only those that are in memory."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


def _bytes(name: str, args: Any, traffic: _Traffic) -> float:
    if name in _PICKING:  # reads only what it picks, not the whole table
        return 2 * sum(map(_size, traffic.written)) + _size(traffic.read[-1])
    if name in _PLACING:  # changes only the places named
        table, dimension, places = args[:3]
        row = table.numel() // table.shape[dimension] if name.startswith("index") else 1
        return 2 * places.numel() * row * table.element_size() + _size(places)
    return sum(map(_size, traffic.read)) + sum(map(_size, traffic.written))


def _flops(name: str, args: Any, traffic: _Traffic) -> tuple[float, bool]:
    """The FLOPs of a product or an attention, and whether its factors are fp32; 0 for anything else."""
    if name in _PRODUCTS:
        left, right = [tensor for tensor in traffic.read if tensor.dim() >= 2][-2:]
        if left is right or left.shape[-1] != right.shape[-2]:  # a matrix times itself is listed once
            left, right = right, right
        return 2.0 * left.numel() * right.shape[-1], right.dtype == torch.float32
    if "_attention_" in name:
        is_backward = "backward" in name
        query, key = args[1:3] if is_backward else args[:2]
        return _tiles(name, args, query, key) * (2.5 if is_backward else 1.0), query.dtype == torch.float32
    return 0.0, False


def _tiles(name: str, args: Any, query: Tensor, key: Tensor) -> float:
    """FLOPs of a forward pass, in whole tiles of scores: two products per tile."""
    if name.startswith("_scaled_dot_product"):  # a grid [B, H, L, C]
        sentences, heads, channels = query.shape[0], query.shape[1], query.shape[3]
        longest = query.shape[2], key.shape[2]
    else:  # rows [N, H, C], or [1, N, H, C], of sentences whose bounds are the only int32 numbers
        bounds = [tensor for tensor in args if isinstance(tensor, Tensor) and tensor.dtype == torch.int32][0]
        sentences, heads, channels = len(bounds) - 1, query.shape[-2], query.shape[-1]
        longest = query.shape[-3] / sentences, key.shape[-3] / sentences  # the mean: lengths are alike
    scores = math.prod(math.ceil(length / tile) * tile for length, tile in zip(longest, TILE, strict=True))
    return 4.0 * sentences * heads * channels * scores


# --- a step -----------------------------------------------------------------------------------------------


class StepCost(NamedTuple):
    """All operators of a step."""

    target_tokens: int
    microbatches: int
    before_optimizer: int  # operators of the microbatches
    operators: list[Operator]

    @property
    def launches(self) -> float:
        """Of a microbatch."""
        return self.before_optimizer / self.microbatches

    @property
    def gigabytes(self) -> float:
        return sum(operator.bytes for operator in self.operators) / 1e9

    def rate(self, card: Card) -> float:
        """Target tokens per second if the card never waits."""
        return self.target_tokens / sum(operator.seconds(card) for operator in self.operators)

    def host_rate(self) -> float:
        """Target tokens per second if the host does nothing but launch."""
        return self.target_tokens / (len(self.operators) * LAUNCH_SECONDS)

    def slowest(self, card: Card, number: int = 15) -> list[tuple[str, float]]:
        """Operators by their milliseconds per step."""
        total: Counter[str] = Counter()
        for operator in self.operators:
            total[operator.name] += 1e3 * operator.seconds(card)
        return total.most_common(number)


class _Marking(GpuPhases):
    """Notes how many operators come before the optimizer's."""

    roof: Roof | None = None
    before_optimizer = 0

    def begin(self, name: str) -> None:
        super().begin(name)
        if name == "optimizer" and self.roof and not self.before_optimizer:
            self.before_optimizer = len(self.roof.operators)


def measure(capability: tuple[int, int], precision: str, microbatch: int) -> StepCost:
    """A step of 25,000 tokens on a pretended card, in a process with the stub of a device."""
    from dragoman.config import Data, Train, Training
    from dragoman.data.batches import Batches, Position, StepSize
    from dragoman.sync.exchange import Exchange
    from dragoman.train import optimizer
    from dragoman.train.calibration_rank import made_up_data
    from dragoman.train.state import State
    from dragoman.train.step import Stepper
    from tests.fake_cuda import card, parts

    settings = Training(
        data=Data(step=STEP_TOKENS, microbatch=microbatch),
        train=Train.model_validate({"precision": precision}),
    )
    source, target = SENTENCE_TOKENS
    corpus = SimpleNamespace(source_tokens=source, target_tokens=target, vocabulary=VOCABULARY)
    with tempfile.TemporaryDirectory() as folder, card.pretended(capability):
        data = made_up_data(Path(folder), corpus)
        batches = Batches(data, StepSize(STEP_TOKENS, microbatch), 1)
        model = parts.model(settings.model, VOCABULARY)
        state = State(settings, model, optimizer.build(model, settings.train))
        phases = _Marking()
        stepper = Stepper(state, Exchange(model), batches, parts.OneRank(), phases)
        first, second = (step for step, _ in zip(batches.after(Position()), range(2), strict=False))
        stepper.update(first, stop_wanted=False)  # makes the optimizer's state
        with Roof() as roof:
            phases.roof = roof
            stepper.update(second, stop_wanted=False)
    return StepCost(second.target_tokens, len(second.microbatches), phases.before_optimizer, roof.operators)


def table(costs: dict[str, StepCost]) -> list[str]:
    """The table of benchmarks/gpu.md: a line for each card."""
    lines = [
        "| card | TFLOP/s reachable, of peak | TB/s reachable, of peak | target tokens per second at most "
        "| launches per microbatch | GB per step |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for card in CARDS:
        cost = costs[card.name]
        lines.append(
            f"| {card.name}, {card.precision} | {card.flops / 1e12:.0f} of {card.peak_flops / 1e12:.0f} "
            f"| {card.bytes / 1e12:.2f} of {card.peak_bytes / 1e12:.2f} "
            f"| {round(cost.rate(card), -3):,.0f} | {cost.launches:,.0f} | {cost.gigabytes:.0f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--microbatch", type=int, default=STEP_TOKENS, help="tokens; default: the whole step")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        first = {card.precision: card for card in CARDS[::-1]}  # of a generation: all call the same operators
        costs = {
            precision: measure(card.capability, precision, given.microbatch)
            for precision, card in first.items()
        }
        print(json.dumps({card.name: costs[card.precision] for card in CARDS}))
        return
    from tests import fake_cuda

    costs = read(fake_cuda.run("benchmarks.roofline", "--inside", "--microbatch", given.microbatch))
    print("\n".join(table(costs)))
    for card in CARDS:
        cost = costs[card.name]
        print(
            f"\n{card.name}: the host launches at most for {cost.host_rate():,.0f} target tokens per second"
        )
        print("  ms per step: " + ", ".join(f"{name} {time:.1f}" for name, time in cost.slowest(card)))


def read(found: dict[str, Any]) -> dict[str, StepCost]:
    """What `--inside` prints."""
    return {
        name: StepCost(*counts, [Operator(*operator) for operator in operators])
        for name, (*counts, operators) in found.items()
    }


if __name__ == "__main__":
    sys.exit(main())
