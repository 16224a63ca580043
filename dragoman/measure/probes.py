"""Measurements at the start of a run: the device's peak, and the link between hosts."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

from dragoman.cost import capability
from dragoman.cost.capability import AskedPrecision
from dragoman.model.product import multiply
from dragoman.sync.topology import Placement
from dragoman.sync.world import World

_PEAK_SECONDS = 0.2
_PEAK_SIZE = {"cpu": 1024, "cuda": 8192}  # rows and columns of the matrices
_PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_BURST_SECONDS = 0.25  # shorter bursts measure buffers rather than the link
_BURST_BYTES = 1 << 20  # of the first burst; each next one is four times as large until it takes long enough
_LARGEST_BURST = 1 << 28
_ALL_BURSTS_SECONDS = 2.0  # the last burst is repeated for this long
_ECHOES = 20


def own_peak(device: torch.device, precision: AskedPrecision = "auto") -> float:
    """FLOP/s of matrix products on one GPU, or on this process's CPU threads (always in fp32)."""
    size, dtype = _PEAK_SIZE[device.type], torch.float32
    if device.type == "cuda":
        own = torch.cuda.get_device_capability(device)
        dtype = _PRECISIONS[capability.automatic([own]) if precision == "auto" else precision]
    left, right = (torch.rand(size, size, device=device, dtype=dtype) for _ in range(2))
    multiply(left, right)
    _wait(device)
    products, began = 0, time.perf_counter()
    while (seconds := time.perf_counter() - began) < _PEAK_SECONDS or not products:
        multiply(left, right)
        _wait(device)
        products += 1
    return 2 * size**3 * products / seconds


def peaks(world: World, precision: AskedPrecision) -> list[float]:
    """FLOP/s of each rank, measured on all at once in `train.precision` (GPUs only). Collective."""
    table = torch.zeros(world.size, dtype=torch.float64)
    world.sum_(table)  # makes all ranks begin together
    table[world.rank] = own_peak(world.device, precision)
    world.sum_(table)
    return table.tolist()


def all_reduce(world: World) -> tuple[int, float]:
    """Bytes and seconds of a plain all-reduce over all ranks, large enough to be timed well. Collective."""
    nbytes = _BURST_BYTES
    while True:
        tensor = torch.zeros(nbytes // 4, device=world.device)
        dist.all_reduce(tensor)  # not timed: NCCL connects the ranks only now, and for larger sizes once more
        _wait(world.device)
        world.sum([0.0])  # makes all ranks begin together
        began = time.perf_counter()
        dist.all_reduce(tensor)
        _wait(world.device)
        seconds = world.most([time.perf_counter() - began])[0]
        if seconds >= _BURST_SECONDS or nbytes >= _LARGEST_BURST:
            return nbytes, seconds
        nbytes *= 4


def link(placement: Placement) -> tuple[float, float]:
    """Bits per second and round-trip seconds of the slowest pair of neighbouring hosts. Collective.

    The first ranks of all hosts send to the next host at the same time, as a ring all-reduce does. They use
    TCP, even if gradients travel over NCCL.
    """
    world, leaders = placement.world, placement.topology.leaders
    place = leaders.index(world.rank) if world.rank in leaders else None
    nbytes, seconds = _BURST_BYTES, 0.0
    while True:
        seconds = world.most([_burst(world, leaders, place, nbytes)])[0]
        if seconds >= _BURST_SECONDS or nbytes >= _LARGEST_BURST:
            break
        nbytes *= 4
    # The rate of a TCP connection that is full in both directions varies, most of all at first: the best of
    # several bursts shows what it can carry.
    spent = seconds
    while spent < _ALL_BURSTS_SECONDS:
        again = world.most([_burst(world, leaders, place, nbytes)])[0]
        seconds, spent = min(seconds, again), spent + again
    echoes = [world.most([_burst(world, leaders, place, 8)])[0] for _ in range(_ECHOES)]
    return 8 * nbytes / seconds, 2 * min(echoes)


def _burst(world: World, leaders: list[int], place: int | None, nbytes: int) -> float:
    """The seconds that this leader takes to send this much to the next and receive it from the previous."""
    if place is None:
        return 0.0
    outgoing, incoming = (torch.zeros(nbytes, dtype=torch.uint8) for _ in range(2))
    following, before = leaders[(place + 1) % len(leaders)], leaders[place - 1]
    began = time.perf_counter()
    world.swap_(outgoing, following, incoming, before)
    return time.perf_counter() - began


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
