"""Ranks that exchange: `python -m tests.sync.exchange_ranks HOSTS WHAT...`, as a rank.

Each prints a line of JSON for each thing it does. With HOSTS other than 0 they pretend to be on so many
hosts, in equal numbers.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import get_args

import torch

from dragoman.config import Model, Sync
from dragoman.errors import DragomanError
from dragoman.exchange_way import ExchangeWay, Shape, Wire, can_be_hierarchical, open_ways
from dragoman.model import Transformer
from dragoman.sync import auto, choice, shards
from dragoman.sync import topology as topologies
from dragoman.sync import world as worlds
from dragoman.sync.bucket_sender import BucketSender
from dragoman.sync.exchange import Exchange
from dragoman.sync.failures import explained
from dragoman.sync.hierarchical import Groups, ThroughLeaders
from dragoman.sync.topology import Topology
from dragoman.sync.world import World

MODEL = Model(width=64, heads=2, encoder_layers=2, decoder_layers=2, feedforward=256)
PIECES = 2048
SMALL = 64 * 2**10  # bytes of a bucket: many of them
SENT = Path("/sys/class/net/eth0/statistics/tx_bytes")
EXCHANGES = 10  # counted


def pretended(world: World, hosts: int) -> Topology:
    each = world.size // hosts
    return Topology(
        [f"host{n}" for n in range(hosts)], [r // each for r in range(world.size)], ["lo"] * hosts
    )


def model() -> Transformer:
    torch.manual_seed(1)
    return Transformer(MODEL, PIECES)


def loss_of(exchange: Exchange, rank: int) -> torch.Tensor:
    """Of pairs that every rank has for itself."""
    torch.manual_seed(rank)
    tokens, lengths = torch.randint(4, PIECES, (192,)), torch.full((16,), 12).numpy()  # packed, as they come
    loss: torch.Tensor = exchange.model(tokens, lengths, tokens, lengths, 0.1)
    return loss / 192


def gradients(world: World, topology: Topology, way: ExchangeWay) -> torch.Tensor:
    """After the exchange of real ones, on this rank."""
    made = model()
    exchange = choice.build(made, world, topology, way, Sync())
    exchange.settle(partial(loss_of, exchange, world.rank))
    with exchange.microbatch(is_last=True):
        loss_of(exchange, world.rank).backward()
    exposed = exchange.exposed_seconds()
    assert 0 < exposed < 30, exposed
    exchange.close()
    return torch.cat([parameter.grad.flatten() for parameter in made.parameters()])


def late(world: World, topology: Topology) -> dict[str, object]:
    """What four exchanges left exposed. The last rank comes late to the third: in the second DDP settles."""
    exchange = choice.build(model(), world, topology, ExchangeWay(), Sync())
    exposed = []
    for step in range(4):
        if step == 2 and world.rank == world.size - 1:
            time.sleep(1.0)
        with exchange.microbatch(is_last=True):
            loss_of(exchange, world.rank).backward()
        exposed.append(exchange.exposed_seconds())
    exchange.close()
    return {"exposed": exposed}


def ways(world: World, topology: Topology) -> dict[str, object]:
    """How far each way is from plain fp32, in shares of the largest gradient and of the whole."""
    plain = gradients(world, topology, ExchangeWay())
    found: dict[str, object] = {}
    for shape in get_args(Shape):
        for wire in get_args(Wire):
            for flows in (1, 3) if shape == "hierarchical" else (1,):
                way = ExchangeWay(shape=shape, wire=wire, bucket_bytes=SMALL, flows=flows)
                ours = gradients(world, topology, way)
                same = ours.clone()
                world.broadcast_(same)
                found[f"{shape} {wire} {flows}"] = {
                    "distance": float((ours - plain).norm() / plain.norm()),
                    "is_same_everywhere": bool(torch.equal(same, ours)),
                }
    return found


class _Bucket:
    """As DDP hands one over."""

    def __init__(self, gradients: torch.Tensor, is_last: bool):
        self._gradients, self._is_last = gradients, is_last

    def buffer(self) -> torch.Tensor:
        return self._gradients

    def is_last(self) -> bool:
        return self._is_last


def timings(world: World, topology: Topology) -> dict[str, object]:
    """A hundred steps whose buckets are ready at other times on every rank."""
    way = ExchangeWay(shape="hierarchical", wire="bf16", flows=2)
    sender = BucketSender(ThroughLeaders(Groups(world, topology, way.flows), way), world.device)
    random, right = Random(world.rank), 0
    for step in range(100):
        buckets = [torch.full((1000 * (n + 1),), float(step + n + world.rank)) for n in range(5)]
        futures = []
        for number, bucket in enumerate(buckets):
            time.sleep(random.random() * 0.002)
            futures.append(sender.hook(None, _Bucket(bucket, number == 4)))  # type: ignore[arg-type]
        mean = (world.size - 1) / 2
        for number, future in enumerate(futures):
            expected = torch.full_like(buckets[number], step + number + mean)
            right += torch.allclose(future.wait(), expected, rtol=0.01)
        sender.raise_failure()
    sender.close()
    return {"right": right}


def dying(world: World, topology: Topology) -> dict[str, object]:
    """The last rank leaves in the middle."""
    exchange = choice.build(model(), world, topology, ExchangeWay(shape="hierarchical", wire="bf16"), Sync())
    exchange.settle(partial(loss_of, exchange, world.rank))
    for step in range(3):
        if step == 1 and world.rank == world.size - 1:
            sys.exit(3)
        with exchange.microbatch(is_last=True):
            loss_of(exchange, world.rank).backward()
    return {}


def sent(world: World, topology: Topology) -> dict[str, object]:
    """Bytes out of this rank's host per exchange, by way."""
    found: dict[str, object] = {"parameters": sum(p.numel() for p in model().parameters())}
    found["rank_hosts"] = topology.rank_hosts
    for shape in get_args(Shape) if can_be_hierarchical(topology.rank_hosts) else ["flat"]:
        for wire in get_args(Wire):
            way = ExchangeWay(shape=shape, wire=wire, bucket_bytes=2**20)
            exchange = choice.build(model(), world, topology, way, Sync())
            exchange.settle(partial(loss_of, exchange, world.rank))
            world.sum([0.0])
            time.sleep(0.05)  # the last of it may be in the queue of the link
            before = int(SENT.read_text())
            for _ in range(EXCHANGES):
                with exchange.microbatch(is_last=True):
                    loss_of(exchange, world.rank).backward()
            time.sleep(0.05)
            found[f"{shape} {wire}"] = (int(SENT.read_text()) - before) / EXCHANGES
            world.sum([0.0])
            exchange.close()
    return found


def sent_by_shards(world: World, topology: Topology) -> dict[str, object]:
    """Bytes out of this rank's host per step of two microbatches."""
    made = model()
    shards.shard(made, world, topology)
    (way,) = open_ways(Sync(mode="sharded"), topology.rank_hosts)
    exchange = choice.build(made, world, topology, way, Sync(mode="sharded"))

    def step() -> None:
        for is_last in (False, True):
            with exchange.microbatch(is_last):
                loss_of(exchange, world.rank).backward()

    step()
    world.sum([0.0])
    time.sleep(0.05)  # the last of it may be in the queue of the link
    before = int(SENT.read_text())
    for _ in range(EXCHANGES):
        step()
    time.sleep(0.05)
    found = (int(SENT.read_text()) - before) / EXCHANGES
    world.sum([0.0])
    parameters = sum(p.numel() for p in made.parameters())
    return {"sent": found, "parameters": parameters, "rank_hosts": topology.rank_hosts}


def measured(world: World, topology: Topology) -> dict[str, object]:
    """What `auto` sees and takes, beside computing of no time at all."""
    began = time.monotonic()
    sizes = [parameter.numel() * 4 for parameter in model().parameters()][::-1]
    tried = auto.measure(world, topology, Sync(mode="auto"), sum(sizes))
    picked, why = auto.pick(
        auto.ComputedStep(0.01, 0.005, sizes), tried, auto.bucket_sizes(Sync(), sum(sizes))
    )
    return {"way": picked.way.model_dump(), "why": why, "seconds": time.monotonic() - began}


if __name__ == "__main__":
    try:
        with explained(), worlds.join(60) as world:
            hosts = int(sys.argv[1])
            topology = pretended(world, hosts) if hosts else topologies.find(world)
            for what in sys.argv[2:]:
                answer = json.dumps(globals()[what](world, topology))
                print(f"{answer}\n", end="", flush=True)
    except DragomanError as error:
        print(f"error: {error}\n", end="", file=sys.stderr, flush=True)
        sys.exit(1)
