"""A rank that hands over its state: `python -m tests.train.handover_ranks DATA CONFIG FOLDER CASE`.

All ranks train together; then some of them lose their state, or their last update. Each saves what it has
before and after the handover.
"""

from __future__ import annotations

import sys
from copy import deepcopy
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from dragoman.data.store import DataSet
from dragoman.sync import topology
from dragoman.sync.diloco import DiLoCo
from dragoman.sync.topology import Placement
from dragoman.train import handover, optimizer
from dragoman.train.precision import SettledPrecision
from dragoman.train.state import State
from tests.train.steps import COMPARABLE, Bench

DILOCO = ("sync.mode=diloco", "sync.inner_steps=2")
STEPS = 3


def tensors(state: State) -> dict[str, Tensor]:
    found = {f"model.{name}": tensor for name, tensor in state.model.state_dict().items()}
    found |= {f"moments.{name}": each for name, each in optimizer.state(state.optimizer, state.model).items()}
    found |= {f"outer.{name}": tensor for name, tensor in state.outer.items()}
    if state.round_start is not None:
        found["round start"] = state.round_start
    found["step"] = torch.tensor(state.step)
    found["pairs"] = torch.tensor(state.pairs)
    return {name: tensor.detach().clone().contiguous() for name, tensor in found.items()}


def trained(data: Path, config: Path, placement: Placement, case: str) -> State | None:
    """What this rank has in memory when the next world begins."""
    changes = DILOCO if case == "diloco" else ()
    bench = Bench(data, config, placement.world, *COMPARABLE, *changes)
    if isinstance(bench.exchange, DiLoCo):
        bench.state.outer, bench.state.round_start = dict(bench.exchange.outer), bench.exchange.round_start
    bench.settle()
    for _ in range(STEPS):
        bench.step()
    before = deepcopy(tensors(bench.state)), bench.state.position, bench.state.pairs
    if case != "diloco":
        bench.step()
    state = bench.state
    if case == "one behind" and placement.world.is_main:  # as if it had not made the last update
        weights, state.position, state.pairs = before
        state.step = STEPS
        state.outcome = None
        state.model.load_state_dict({n[6:]: t for n, t in weights.items() if n.startswith("model.")})
        moments = {n[8:]: t for n, t in weights.items() if n.startswith("moments.")}
        optimizer.restore(state.optimizer, state.model, moments)
    if case == "nobody" or (case in ("newcomer", "diloco") and placement.world.rank == 0):
        return None
    return state


def main(data: Path, config: Path, folder: Path, case: str) -> None:
    with topology.join(60) as placement:
        rank = placement.world.rank
        state = trained(data, config, placement, case)
        save_file(tensors(state) if state else {}, folder / f"before-{rank}.safetensors")
        found = handover.find(state, placement)
        if found is None:
            print("nobody", flush=True)
            return
        data_set = DataSet(data)
        settled = SettledPrecision(state.config, "fp32", "") if state else None
        own = handover.account(state, settled, data_set, placement)
        given = handover.give(state, own, found, data_set, placement.world)
        save_file(tensors(given.state), folder / f"after-{rank}.safetensors")
        print(given.state.step, given.state.position, given.data_fingerprint == data_set.card.fingerprint)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]), sys.argv[4])
