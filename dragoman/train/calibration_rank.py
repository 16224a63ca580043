"""A rank of a calibration: makes real steps of a config for some seconds, each with and without its exchange.

    python -m dragoman.launch.ranks 2 -m dragoman.train.calibration_rank REQUEST ANSWER

It is run, never imported: `plan --calibrate` itself needs no torch.
"""

from __future__ import annotations

import resource
import sys
import time
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from dragoman import config
from dragoman.config import Sync, Training
from dragoman.cost import flops
from dragoman.data.batches import Batches, StepSize
from dragoman.data.batches import StepBatch as Batch
from dragoman.data.card import CorpusFacts
from dragoman.data.store import DataSet, Part, PartWriter
from dragoman.exchange_way import ExchangeWay, open_ways
from dragoman.leave import leave
from dragoman.measure.phases import GpuPhases, Phases
from dragoman.measure.records import PHASES
from dragoman.model import Transformer
from dragoman.sync import choice, shards
from dragoman.sync import topology as topologies
from dragoman.sync import world as worlds
from dragoman.sync.topology import Placement
from dragoman.sync.world import World
from dragoman.train import optimizer, precision
from dragoman.train.calibrate import CalibrationRequest, Measured
from dragoman.train.state import State
from dragoman.train.step import Stepper

_PAIRS = 20_000  # of a made-up corpus
_SPREAD = 0.5  # of the logarithm of sentence lengths
_SETTLING_STEPS = 2  # the first ones allocate memory
_WANTED_STEPS = 6  # steps are made smaller until this many fit into the time
_LEAST_STEPS = 4  # are made, whatever time they take
_PHASE = {name: number for number, name in enumerate(PHASES)}
_COMPUTING = [_PHASE[name] for name in ("forward", "backward")]
_WITH_EXCHANGE = [*_COMPUTING, _PHASE["exchange"]]


def main(request_file: Path, answer_file: Path) -> None:
    request = CalibrationRequest.model_validate_json(request_file.read_text(encoding="utf-8"))
    settings = config.load(Training, request_file.with_name(request.settings))
    with worlds.join(settings.sync.timeout_seconds) as world:
        placement = Placement(world, topologies.find(world))  # collective
        settings = precision.settle(settings, settings.train.precision, placement).settings  # collective
        torch.manual_seed(settings.train.seed)
        folder = request_file.with_name(f"rank-{world.rank}")  # the parent process removes it
        data = DataSet(Path(request.data)) if request.data else made_up_data(folder, request)
        measured = Bench(settings, request.vocabulary, data, world).measure(request.seconds)
        if world.is_main:
            answer_file.write_text(measured.model_dump_json(), encoding="utf-8")


def made_up_data(folder: Path, request: CalibrationRequest) -> Any:
    """The parts of a data set that batches need: random tokens in sentences of the usual lengths."""
    random = np.random.default_rng(1)
    length = random.lognormal(-(_SPREAD**2) / 2, _SPREAD, _PAIRS)
    sides = []
    for mean in (request.source_tokens, request.target_tokens):
        lengths = np.maximum(1, np.rint(length * mean * random.uniform(0.8, 1.2, _PAIRS))).astype(np.int64)
        sides.append((random.integers(4, request.vocabulary, int(lengths.sum()), np.uint32), lengths))
    with PartWriter(folder) as writer:
        writer.add(tuple(sides))
    card = SimpleNamespace(corpora=[CorpusFacts(name="made up", weight=1.0, pairs=_PAIRS)])
    return SimpleNamespace(train=Part(folder, np.uint32), card=card)


class Bench:
    """Makes steps and notes the slowest rank's times. Every method is collective."""

    def __init__(self, settings: Training, vocabulary: int, data: Any, world: World):
        self._settings, self._vocabulary, self._data, self._world = settings, vocabulary, data, world
        model = Transformer(settings.model, vocabulary, settings.train.recompute)
        topology, way = topologies.find(world), ExchangeWay()
        if settings.sync.mode == "sharded":
            [way] = open_ways(settings.sync, topology.rank_hosts)
            shards.shard(model, world, topology)
        else:
            model.to(world.device)
        self._state = State(settings, model, optimizer.build(model, settings.train))
        self._phases = GpuPhases() if world.device.type == "cuda" else Phases()
        # The plainest way, as the cost of the others is computed from it. But a model that needs shards may
        # fit in no other.
        self._exchange = choice.build(model, world, topology, way, Sync())
        self._make_steps_of(1)
        first = next(self._batches.after(self._state.position))
        self._stepper.settle(first)
        self._stepper.fill_memory(first)

    def measure(self, seconds: float) -> Measured:
        """Makes steps for this long, and at least a few."""
        for _ in range(_SETTLING_STEPS):
            first = self.step()
        seconds_per_microbatch = first["without_exchange"] + first["with_exchange"]
        self._make_steps_of(max(1, int(seconds / _WANTED_STEPS / seconds_per_microbatch)))
        rows: list[dict[str, float]] = []
        began = time.monotonic()
        while len(rows) < _LEAST_STEPS or self._world.most([time.monotonic() - began])[0] < seconds:
            rows.append(self.step())
        on_gpu = self._world.device.type == "cuda"
        return Measured(
            device=torch.cuda.get_device_name(self._world.device) if on_gpu else "cpu",
            ranks=self._world.size,
            memory_bytes=self._world.most([self._memory_bytes()])[0],
            **{name: [row[name] for row in rows] for name in first},
        )

    def _make_steps_of(self, microbatches: int) -> None:
        """Makes each step this many microbatches per rank, or the config's step if that is smaller."""
        data = self._settings.data
        step = min(data.step, data.microbatch_size * microbatches * self._world.size)
        size = StepSize(step, data.microbatch_size, data.unit)
        self._batches = Batches(self._data, size, self._settings.train.seed)
        self._stepper = Stepper(self._state, self._exchange, self._batches, self._world, self._phases)
        self._steps = self._batches.after(self._state.position)

    def step(self) -> dict[str, float]:
        batch = next(self._steps)
        without = 0.0
        if self._stepper.can_compute_alone:
            without = self._world.most([self._stepper.seconds_without_exchange(batch)])[0]
        self._phases.begin("data")
        self._stepper.update(batch, stop_wanted=False)
        self._stepper.close_round()
        phases = self._phases.end_step()
        self._state.step += 1
        names = ("flops", "with_exchange", "serial", "data")
        values = [
            self._flops(batch),
            phases[_WITH_EXCHANGE].sum(),
            phases[_PHASE["optimizer"]],
            phases[_PHASE["data"]],
        ]
        if not self._stepper.can_compute_alone:
            without = self._world.most([float(phases[_COMPUTING].sum())])[0]
        slowest = self._world.most([float(value) for value in values])
        return {"without_exchange": without, **dict(zip(names, slowest, strict=True))}

    def _flops(self, batch: Batch) -> float:
        """The FLOPs that this rank computes in a step."""
        total = 0.0
        for number in batch.share(self._world.rank, self._world.size):
            loaded = self._batches.load(batch.microbatches[number])
            tokens = len(loaded.source), len(loaded.target), len(loaded.source_lengths)
            total += flops.step(self._settings.model, self._vocabulary, *tokens)
            if self._settings.train.recompute:
                total += flops.recomputed(self._settings.model, *tokens)
        return total

    def _memory_bytes(self) -> float:
        if self._world.device.type == "cuda":
            return float(torch.cuda.max_memory_reserved())
        return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except Exception:
        traceback.print_exc()  # the parent process reads it
        leave(1)
