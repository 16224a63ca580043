"""Replicas that meet: `python -m tests.sync.diloco_ranks FOLDER` as one of three ranks.

Ranks 0 and 1 pretend to be on one host, rank 2 on another. Each moves its weights by amounts of its own
instead of training, so that the result is known; what came of it is left in FOLDER for the test to look at.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from dragoman.config import Model, Sync
from dragoman.model import Transformer
from dragoman.sync import choice
from dragoman.sync import world as worlds
from dragoman.sync.failures import explained
from dragoman.sync.topology import Topology
from dragoman.sync.world import World

ROUNDS = 3
TOPOLOGY = Topology(["a", "b"], [0, 0, 1], ["lo", "lo"])
SETTINGS = {
    "averaging": Sync(mode="diloco", inner_steps=1, outer_rate=1.0, outer_momentum=0.0),
    "nesterov": Sync(mode="diloco", inner_steps=4, outer_rate=0.7, outer_momentum=0.9),
    "bf16": Sync(mode="diloco", inner_steps=4, outer_rate=0.7, outer_momentum=0.9, wire="bf16"),
    "hosts": Sync(mode="diloco", inner_steps=4, outer_rate=0.7, outer_momentum=0.9, hierarchical=True),
}


def model() -> Transformer:
    torch.manual_seed(1)
    return Transformer(Model(width=16, heads=2, encoder_layers=1, decoder_layers=1, feedforward=32), 64)


def moves(replica: int, number: int, made: Transformer) -> list[torch.Tensor]:
    """By how much a replica moves each parameter in a round."""
    random = torch.Generator().manual_seed(100 * replica + number)
    return [torch.randn(parameter.shape, generator=random) for parameter in made.parameters()]


def rounds(world: World, settings: Sync) -> dict[str, torch.Tensor]:
    made = model()
    if world.rank == 2:
        torch.nn.init.zeros_(next(made.parameters()))  # rank 0's weights count
    way = choice.decide(settings, TOPOLOGY, None, None, measured=lambda: None).way  # type: ignore[arg-type, return-value]
    exchange = choice.build(made, world, TOPOLOGY, way, settings)
    for number in range(ROUNDS):
        with torch.no_grad():
            for parameter, move in zip(
                made.parameters(), moves(exchange.replicas[world.rank], number, made), strict=True
            ):
                parameter.add_(move)
        exchange.end_round()
    exchange.close()
    return {name: parameter.detach() for name, parameter in made.named_parameters()}


if __name__ == "__main__":
    with explained(), worlds.join(60) as world:
        for name, settings in SETTINGS.items():
            save_file(rounds(world, settings), Path(sys.argv[1]) / f"{name}-{world.rank}.safetensors")
