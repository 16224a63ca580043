"""One step: the microbatches of this rank, the exchange, the clip, the optimizer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batches import Batches, Microbatch, StepBatch
from dragoman.errors import DragomanError
from dragoman.measure.phases import Phases
from dragoman.measure.records import PHASES
from dragoman.model import varlen
from dragoman.model.number_format import NumberFormat
from dragoman.model.packing import on_device
from dragoman.schedule import learning_rate
from dragoman.sync.exchange import Exchange
from dragoman.sync.shards import whole
from dragoman.sync.world import World
from dragoman.train import memory, optimizer, passes, stopping
from dragoman.train.loss_scale import LossScale
from dragoman.train.state import State, StepOutcome

_COMPUTING = [PHASES.index("forward"), PHASES.index("backward")]


class _Part(NamedTuple):
    """The rows that this rank computes in one forward and backward."""

    rows: np.ndarray
    seed: int
    weight: float


class Stepper:
    """Makes steps. The number of ranks changes which rank computes what, not what is computed."""

    def __init__(self, state: State, exchange: Exchange, batches: Batches, world: World, phases: Phases):
        self._state = state
        self._exchange = exchange
        self._batches = batches
        self._world = world
        self._phases = phases
        self._together = exchange.together or range(world.size)
        config = state.config.train
        self._split = state.config.data.split
        # With shards memory is scarce: each of two ranks with transformer-big holds 3.0 GB instead of 4.1 GB
        # if what layers free is given back.
        if world.device.type == "cpu" and not exchange.way.is_sharded:
            memory.keep_freed()
        self._number_format = NumberFormat.of(config.precision, world.device)
        self._loss_scale = LossScale(self._number_format, state.loss_scale)
        self._ahead: tuple[np.ndarray, Microbatch] | None = None  # rows loaded early, and their microbatch

    def update(
        self,
        batch: StepBatch,
        stop_wanted: bool,
        upcoming: Callable[[], StepBatch] | None = None,
        regroup_wanted: bool = False,
        is_orphan: bool = False,
    ) -> StepOutcome:
        """Makes one optimizer update over all ranks; meanwhile loads the upcoming step's data. Collective.

        `close_round` must follow. If a rank is lost on the way, the state is as before the update or as after
        it, never in between.
        """
        state, config = self._state, self._state.config.train
        rate = learning_rate(state.step, config, state.config.model.width)
        optimizer.set_learning_rate(state.optimizer, rate)
        loss_on_device = self._accumulate(batch)
        self._phases.begin("optimizer")
        self._loss_scale.unscale_(state.optimizer)
        limit = config.clip_norm or math.inf
        # Ranks that exchanged gradients have the same ones, so they make the same decision.
        # With shards each rank knows the norm of its part; the whole one is collective.
        norm_on_device = whole(torch.nn.utils.clip_grad_norm_(state.model.parameters(), limit))
        scale_on_device = self._loss_scale.updated(norm_on_device)
        if upcoming:
            self._load_ahead(upcoming())
        read = torch.stack((norm_on_device, loss_on_device, scale_on_device))
        norm, loss_sum, scale = read.tolist()  # the only wait for the device
        self._phases.move(self._exchange.exposed_seconds(), "backward", "exchange")
        self._phases.move(self._exchange.exposed_in_forward(), "forward", "exchange")
        is_finite, is_rescaled = math.isfinite(norm), self._loss_scale.was_lowered(scale)
        self._phases.begin("exchange")
        # The only collective of a step besides the exchange: 0.4 ms between processes of one machine. After
        # it nothing can fail, and every rank that has its result makes the update.
        flags = (not is_finite, is_rescaled, stop_wanted, regroup_wanted, is_orphan)
        sums = self._world.sum([loss_sum, norm, *map(float, flags)])  # collective
        self._phases.begin("optimizer")
        if is_finite and self._tokens(batch):
            state.optimizer.step()
        state.optimizer.zero_grad(set_to_none=False)  # gradients stay where the exchange expects them
        outcome = self._outcome(batch, rate, sums)
        state.round_is_open = self.ends_round(outcome.stop_wanted)
        state.advance(batch, outcome)
        return outcome

    def _outcome(self, batch: StepBatch, rate: float, sums: Sequence[float]) -> StepOutcome:
        """The outcome of a step, from the sums over all ranks."""
        loss, norm, skipped, rescaled, stopping_ranks, regrouping_ranks, orphans = sums
        # A loss that is not finite is not so because of its scale.
        is_bad = skipped > rescaled or (skipped > 0 and not math.isfinite(loss))
        return StepOutcome(
            loss / batch.target_tokens,
            batch.target_tokens,
            norm / self._world.size,
            rate,
            is_bad,
            # One rank without a supervisor is cut off; if all are, the launcher has ended.
            stop_wanted=stopping_ranks > 0 or orphans == self._world.size,
            is_rescaled=skipped > 0 and not is_bad,
            regroup_wanted=regrouping_ranks > 0,
        )

    def close_round(self) -> None:
        """Gives all replicas the same weights if a round has ended. Collective then."""
        if self._state.round_is_open:
            self._phases.begin("exchange")
            self._exchange.end_round()  # collective
            self._state.round_is_open = False

    def ends_round(self, stop_wanted: bool) -> bool:
        """Will all ranks have the same weights after the current step?"""
        step = self._state.step + 1
        is_last = stopping.is_last(step, stop_wanted, self._state.config.train)
        return is_last or self._exchange.way.ends_round(step)

    def note_loss_scale(self) -> None:
        """Notes the loss scale for a checkpoint; it waits for the device. Empty except with fp16."""
        self._state.loss_scale = self._loss_scale.state()

    def whole_rounds(self, steps: int) -> int:
        """The next multiple of a round, at least this many steps."""
        return self._exchange.way.whole_rounds(steps)

    def settle(self, batch: StepBatch) -> None:
        """Prepares the exchange before the first counted step, without changing the model. Collective."""
        part = self._parts(batch)[-1]
        # One pair is enough, and cannot run out of memory before the step that knows what to do about it.
        self._exchange.settle(lambda: self._forward(part._replace(rows=part.rows[:1])))
        self._phases.discard()

    @property
    def can_compute_alone(self) -> bool:
        """Can a step be computed without its exchange?"""
        return not self._exchange.in_lockstep

    def fill_memory(self, batch: StepBatch) -> list[str]:
        """With `data.microbatch = "auto"` on GPUs, lets passes grow until memory is nearly full. Collective.

        All ranks take what fits on each. A run that continues keeps what it had, so dropout repeats itself.
        Returns lines for people.
        """
        state, device = self._state, self._world.device
        if state.config.data.microbatch != "auto" or not self._mixes_lengths() or not self.can_compute_alone:
            return []
        if state.pass_tokens:
            return [f"up to {state.pass_tokens:,} tokens of both sides are computed at once, as before"]
        largest = max(range(len(batch.tokens)), key=batch.tokens.__getitem__)
        later_bytes = 0 if state.optimizer.state else 8 * sum(map(Tensor.numel, state.model.parameters()))

        def compute() -> int:
            self.seconds_without_exchange(batch.only(largest))
            return batch.tokens[largest]

        fitting = passes.tokens_that_fit(device, later_bytes, compute)
        state.pass_tokens = -int(self._world.most([-float(fitting)])[0])  # the least of all ranks; collective
        return [f"up to {state.pass_tokens:,} tokens of both sides are computed at once"]

    def seconds_without_exchange(self, batch: StepBatch) -> float:
        """Seconds of this rank's forward and backward with nothing sent. The gradients are thrown away."""
        with suppress(_OutOfMemory):  # the real step handles it
            self._try_to_accumulate(batch, exchanging=False)
        self._state.optimizer.zero_grad(set_to_none=False)
        return float(self._phases.discard()[_COMPUTING].sum())

    def _accumulate(self, batch: StepBatch) -> Tensor:
        """Computes forward and backward of this rank's share; returns the sum of its losses."""
        while True:
            try:
                return self._try_to_accumulate(batch)
            except _OutOfMemory:
                # Nothing has been exchanged yet: compute this share again in smaller parts. Others wait.
                self._state.optimizer.zero_grad(set_to_none=False)
                print(f"rank {self._world.rank}: out of memory; {self._need_less(batch)}")

    def _need_less(self, batch: StepBatch) -> str:
        """Makes passes smaller from now on; returns the change in words."""
        state = self._state
        if state.pass_tokens > max(batch.tokens):
            state.pass_tokens //= 2
            return f"a pass now holds at most {state.pass_tokens:,} tokens"
        self._split *= 2
        return f"microbatches are now split into {self._split} parts"

    def _try_to_accumulate(self, batch: StepBatch, exchanging: bool = True) -> Tensor:
        parts, in_lockstep = self._parts(batch), self._exchange.in_lockstep
        total = torch.zeros((), device=self._world.device)
        for number, part in enumerate(parts):
            is_last = exchanging and number == len(parts) - 1
            with self._exchange.microbatch(is_last):
                can_begin_again = len(part.rows) > 1 and not in_lockstep
                with _MemoryErrors(can_begin_again, is_exchanging=in_lockstep):
                    loss = self._forward(part)
                self._phases.begin("backward")
                with _MemoryErrors(can_begin_again and not is_last, is_exchanging=is_last or in_lockstep):
                    # Ranks and microbatches have different numbers of target tokens. DDP averages over ranks,
                    # so multiplying by their number and dividing once by all their tokens weighs every token
                    # equally.
                    weight = part.weight * len(self._together) / max(1, self._tokens(batch))
                    self._loss_scale.scaled(loss * weight).backward()
            total += loss.detach() * part.weight
        return total

    def _mixes_lengths(self) -> bool:
        """Does attention need no padding? Else microbatches of different lengths are better apart."""
        model, dtype = self._state.config.model, self._number_format.dtype
        return varlen.kernel_for(self._world.device, dtype, model.width // model.heads) is not None

    def _tokens(self, batch: StepBatch) -> int:
        """Target tokens of all ranks that average gradients; 0 if they have no microbatch in this step."""
        if len(self._together) == self._world.size:
            return batch.target_tokens
        return batch.target_tokens_of(self._together, self._world.size)

    def _parts(self, batch: StepBatch) -> list[_Part]:
        """This rank's share. A rank without one computes a part of weight 0, as all must exchange."""
        parts = self._parts_of(batch, self._world.rank)
        if self._exchange.in_lockstep:
            most = max(len(self._parts_of(batch, rank)) for rank in range(self._world.size))
            parts += [parts[0]._replace(rows=parts[0].rows[:1], weight=0.0)] * (most - len(parts))
        return parts

    def _parts_of(self, batch: StepBatch, rank: int) -> list[_Part]:
        mine = batch.share(rank, self._world.size)
        weight = 1.0 if mine else 0.0
        state = self._state
        parts = []
        for microbatches in passes.together(mine or [0], batch.tokens, state.pass_tokens):
            rows = np.concatenate([batch.microbatches[number] for number in microbatches])
            pieces = np.array_split(rows, min(self._split, len(rows)))
            for number, piece in enumerate(pieces):
                seed = _seed(state.config.train.seed, state.step, microbatches[0], number)
                parts.append(_Part(piece, seed, weight))
        return parts

    def _forward(self, part: _Part) -> Tensor:
        self._phases.begin("data")
        microbatch = self._load(part.rows)
        self._phases.begin("forward")
        torch.manual_seed(part.seed)  # dropout depends on what is computed, not on which rank computes it
        with self._number_format.autocast():
            return self._exchange.model(
                *tensors(microbatch, self._world.device), self._state.config.train.label_smoothing
            )

    def _load_ahead(self, batch: StepBatch) -> None:
        """Loads the first microbatch of a step while a GPU still computes the step before."""
        self._phases.begin("data")
        rows = self._parts(batch)[0].rows
        self._ahead = rows, self._batches.load(rows)
        self._phases.begin("optimizer")

    def _load(self, rows: np.ndarray) -> Microbatch:
        ahead, self._ahead = self._ahead, None
        if ahead and np.array_equal(ahead[0], rows):
            return ahead[1]
        return self._batches.load(rows)


def tensors(microbatch: Microbatch, device: torch.device) -> tuple[Tensor, np.ndarray, Tensor, np.ndarray]:
    """A microbatch as the model expects it: tokens on the device, lengths on the host."""
    source, target = (on_device(side, device) for side in (microbatch.source, microbatch.target))
    return source, microbatch.source_lengths, target, microbatch.target_lengths


def _seed(*key: int) -> int:
    return int.from_bytes(blake2b(repr(key).encode(), digest_size=8).digest(), "little", signed=True)


class _OutOfMemory(Exception):
    """Out of memory before anything was exchanged: this rank can compute its share again."""


def _is_out_of_memory(error: Exception) -> bool:
    # torch's GPU allocator has a class of error for it; the CPU's, cuBLAS, NCCL and the driver have words.
    texts = ("can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED", "out of memory")
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(one in str(error) for one in texts)


class _MemoryErrors:
    """Turns running out of memory into _OutOfMemory if the share can be computed again, else into advice."""

    def __init__(self, can_begin_again: bool, is_exchanging: bool = False):
        self._can_begin_again = can_begin_again
        self._is_exchanging = is_exchanging

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception) or not _is_out_of_memory(error):
            return
        if self._can_begin_again:
            raise _OutOfMemory from None
        if self._is_exchanging:
            raise DragomanError(
                "out of memory while gradients were being exchanged: this step cannot be repeated",
                hint="continue from the last checkpoint with the same command and --set data.split=2 or "
                "--set train.recompute=true, which need less memory",
            ) from None
        raise DragomanError(
            "out of memory: a single pair does not fit",
            hint="set train.recompute=true, use a smaller model, or prepare the text with a lower "
            "clean.max_words",
        ) from None
