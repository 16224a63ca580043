"""Gathers every rank's measurements into records.db on rank 0. Numbers travel as tensors over the group.

A step costs an append to a list. At every log interval the ranks send their rows, and rank 0 writes them in a
thread. The cost of recording is measured, too, and shown in every report.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields

import numpy as np
import torch

from dragoman.faults import FaultKind
from dragoman.measure import clock
from dragoman.measure.clock import RunClock
from dragoman.measure.meters import HostMeter
from dragoman.measure.quality import Evaluation
from dragoman.measure.records import (
    COLUMNS,
    COUNTED,
    PHASES,
    Attempt,
    EvaluationRow,
    Event,
    Fault,
    Probe,
    Table,
    packed_shares,
)
from dragoman.measure.writer import RecordWriter
from dragoman.sync.topology import Placement

_THIN_AFTER = 3600.0  # seconds before rows per second become rows per minute
_METERED = {  # table -> numbers in a row of the meter; rows of `hosts` have one more per core
    "nics": 5,
    "hosts": 9,
    "gpus": 9,
    "lens": 5,
    "programs": 4,
}


@dataclass(frozen=True)
class StepRow:
    """A step as one rank saw it: the values that all ranks share, and this rank's phases."""

    step: int
    loss: float
    target_tokens: int
    pairs: int
    learning_rate: float
    gradient_norm: float
    is_bad: bool
    is_rescaled: bool
    ended: float  # a reading of the clock
    phases: np.ndarray  # seconds
    counted: np.ndarray  # in the order of COUNTED


@dataclass(frozen=True)
class LateRows:
    """Steps that a rank made in a world that was lost before their rows were sent."""

    rows: list[StepRow]
    rank: int  # in that world
    attempt: int


_SHARED = tuple(field.name for field in fields(StepRow) if field.name not in ("phases", "counted"))
_WHOLE = ("step", "target_tokens", "pairs", "is_bad", "is_rescaled")  # of these, whole numbers


class Recorder:
    """Records one rank's measurements. The first rank of each host has a meter.

    Rank 0 has a writer. With several hosts, so has a rank of another one, in case the first is lost.

    Callers give readings of the clock (`clock.seconds`); the recorder turns them into times.
    """

    def __init__(
        self,
        placement: Placement,
        attempt: Attempt,
        writer: RecordWriter,
        meter: HostMeter | None,
        run_clock: RunClock,
        keepers: Sequence[int] = (0,),
    ):
        """`keepers` are the ranks with a writer. Collective."""
        self._keepers = keepers
        self._world = world = placement.world
        self._rank_hosts = placement.topology.rank_hosts
        self._attempt = attempt
        self._writer = writer
        self._meter = meter
        self._clock = run_clock
        self._interfaces = [
            names.split(" ") for names in world.gather_text(" ".join(meter.interfaces) if meter else "")
        ]
        self._cores = int(world.most([meter.cores if meter else 0])[0])  # of the host with most cores
        self._rows: list[StepRow] = []
        self._spent = writer.spent
        self._thinned = clock.seconds()
        writer.do(lambda file: file.replace_attempt(attempt))

    @property
    def failure(self) -> str | None:
        """Why records could not be written, on rank 0; training continues without them."""
        return self._writer.failure

    def step(self, row: StepRow) -> None:
        self._rows.append(row)

    def started(self, step: int) -> None:
        """Records the time until now as start-up."""
        began = self._attempt.started - self._clock.offset
        self.event("startup", step, began, clock.seconds() - began)

    @contextmanager
    def standing_still(self, kind: str, step: int) -> Iterator[None]:
        """Records an event during which training stands still until all ranks are done. Collective.

        Otherwise ranks with nothing to do would wait in the next step's exchange, and rank 0 would look slow
        whenever it writes a checkpoint.
        """
        began = clock.seconds()
        yield
        self._world.sum([0.0])  # collective, 0.4 ms
        self.event(kind, step, began, clock.seconds() - began)

    def event(self, kind: str, step: int, began: float, seconds: float, detail: str = "") -> None:
        event = Event(
            time=self._clock.time(began),
            attempt=self._attempt.number,
            step=step,
            kind=kind,
            seconds=seconds,
            detail=detail,
        )
        self._writer.do(lambda file: file.add_row("events", event))

    def fault(
        self,
        kind: FaultKind,
        step: int,
        at: float,
        *,
        attempt: int | None = None,
        host: str = "",
        rank: int | None = None,
        phase: str = "",
        detail: str = "",
        noticed_seconds: float | None = None,
        steps_lost: int = 0,
        stacks: str = "",
    ) -> None:
        """Records what went wrong `at` a reading of the clock, in this attempt or an earlier one."""
        fault = Fault(
            time=self._clock.time(at),
            attempt=self._attempt.number if attempt is None else attempt,
            step=step,
            kind=kind,
            host=host,
            rank=rank,
            phase=phase,
            detail=detail,
            noticed_seconds=noticed_seconds,
            steps_lost=steps_lost,
            stacks=stacks,
        )
        self._writer.do(lambda file: file.add_row("faults", fault))

    def evaluation(self, evaluation: Evaluation) -> None:
        row = EvaluationRow(
            step=evaluation.step,
            attempt=self._attempt.number,
            time=self._clock.now(),
            eval_loss=evaluation.eval_loss,
            train_sample_loss=evaluation.train_sample_loss,
            bleu=evaluation.bleu.value,
            bleu_signature=evaluation.bleu.signature,
            chrf=evaluation.chrf.value,
            chrf_signature=evaluation.chrf.signature,
            seconds=evaluation.seconds,
        )
        self._writer.do(lambda file: file.add_row("evaluations", row))

    def probe(self, kind: str, step: int, began: float, seconds: float, **numbers: float) -> None:
        probe = Probe(
            time=self._clock.time(began),
            attempt=self._attempt.number,
            step=step,
            kind=kind,
            numbers=numbers,
            seconds=seconds,
        )
        self._writer.do(lambda file: file.add_row("probes", probe))

    def facts(self, **facts: object) -> None:
        self._writer.do(lambda file: file.write_facts(facts))

    def placement(self, **facts: object) -> None:
        """Records facts for the run and for this attempt; the next one may use other ranks, hosts or ways."""
        self.facts(**facts)
        self._update_attempt(placement=self._attempt.placement | facts)

    def checkpoint_files(self, files: list[dict[str, object]]) -> None:
        """Records the files of the newest checkpoint; without any, those of an earlier attempt are kept."""
        if files:
            self.facts(checkpoint_files=files)

    def flush(self) -> None:
        """Sends this rank's rows to rank 0, which writes those of all ranks. Collective."""
        with self._counted():
            if self._rows:
                self._gather_steps()
            self._gather_meters()
            if jump := self._clock.jump():
                self._update_attempt(jumps_during=[*self._attempt.jumps_during, jump])
        own = self._spent + (self._meter.cost_seconds if self._meter else 0.0)
        self.facts(recording_seconds=self._world.most([own])[0])

    def close(self, reason: str) -> None:
        """Records the last rows and why the attempt ended. Collective."""
        if self._meter:
            self._meter.close()
        self.flush()
        self._update_attempt(ended=self._clock.now(), reason=reason)
        self._writer.close()

    def abandon(self) -> None:
        """Ends recording after an error. Sends nothing: other ranks may be gone. Harmless after `close`."""
        if self._meter:
            self._meter.close()
        self._writer.close()

    def _update_attempt(self, **changes: object) -> None:
        self._attempt = attempt = self._attempt.model_copy(update=changes)
        self._writer.do(lambda file: file.replace_attempt(attempt))

    def late_rows(self) -> LateRows:
        """The steps not sent yet, for the recorder of the next world."""
        return LateRows(self._rows, self._world.rank, self._attempt.number)

    def record_late(self, late: LateRows | None) -> None:
        """Records the steps that the ranks left in the world before still have. Collective."""
        rows = late.rows if late else []
        own = np.array(
            [[late.rank, late.attempt, *self._shared(row), *row.phases, *row.counted] for row in rows if late]
        )
        contents = self._world.gather_bytes(own.astype(np.float64).tobytes(), self._keepers)  # collective
        width = 2 + len(_SHARED) + len(PHASES) + len(COUNTED)
        tables = [np.frombuffer(content).reshape(-1, width) for content in contents if content]
        if tables:
            self._write_late(tables)

    def _write_late(self, tables: list[np.ndarray]) -> None:
        steps = sorted({step for table in tables for step in table[:, 2].tolist()})
        shared = np.empty((len(steps), len(_SHARED)))
        numbers = np.full((len(tables), len(steps), len(PHASES) + len(COUNTED)), np.nan)
        for place, table in enumerate(tables):
            at = np.searchsorted(steps, table[:, 2])
            shared[at] = table[:, 2 : 2 + len(_SHARED)]
            numbers[place, at] = table[:, 2 + len(_SHARED) :]
        ranks = np.array([int(table[0, 0]) for table in tables])
        self._write_steps(shared, numbers, ranks, int(tables[0][0, 1]))

    def _gather_steps(self) -> None:
        own = torch.from_numpy(np.stack([np.concatenate((row.phases, row.counted)) for row in self._rows]))
        gathered = self._world.gather(own, self._keepers)  # collective
        rows, self._rows = self._rows, []
        if gathered:
            numbers = torch.stack(gathered).numpy()  # rank, step, phase or counter
            shared = np.array([self._shared(row) for row in rows])
            self._write_steps(shared, numbers, np.arange(len(numbers)), self._attempt.number)

    def _shared(self, row: StepRow) -> list[float]:
        values = [float(getattr(row, name)) for name in _SHARED]
        values[_SHARED.index("ended")] = self._clock.time(row.ended)
        return values

    def _write_steps(self, shared: np.ndarray, numbers: np.ndarray, ranks: np.ndarray, attempt: int) -> None:
        """Writes steps: what all ranks share, by step; numbers by rank, step, and phase or counter."""
        steps = self._steps_table(shared, numbers[:, :, : len(PHASES)], ranks, attempt)
        windows = self._windows_table(shared[:, 0], numbers, ranks, attempt)
        self._writer.do(lambda file: file.add("steps", steps))
        self._writer.do(lambda file: file.add("windows", windows))

    @staticmethod
    def _steps_table(shared: np.ndarray, phases: np.ndarray, ranks: np.ndarray, attempt: int) -> Table:
        table: Table = {name: shared[:, place] for place, name in enumerate(_SHARED)}
        for name in _WHOLE:
            table[name] = table[name].astype(np.int64)
        table["attempt"] = np.full(len(shared), attempt)
        with_row = np.isfinite(phases).all(2).argmax(0)  # the first rank that has the step
        table["seconds"] = phases.sum(2)[with_row, np.arange(len(shared))]  # all ranks end a step together
        for number, phase in enumerate(PHASES):
            seconds = phases[:, :, number]
            table[f"{phase}_mean"] = np.nanmean(seconds, 0)
            table[f"{phase}_least"] = np.nanmin(seconds, 0)
            table[f"{phase}_most"] = np.nanmax(seconds, 0)
            table[f"{phase}_slowest"] = ranks[np.nanargmax(seconds, 0)]
        return table

    @staticmethod
    def _windows_table(steps: np.ndarray, numbers: np.ndarray, ranks: np.ndarray, attempt: int) -> Table:
        names = (*PHASES, *COUNTED)
        return {
            "first_step": np.full(len(ranks), int(steps[0])),
            "last_step": np.full(len(ranks), int(steps[-1])),
            "attempt": np.full(len(ranks), attempt),
            "rank": ranks,
            **{name: _sum_of_known(numbers[:, :, place]) for place, name in enumerate(names)},
        }

    def _gather_meters(self) -> None:
        """Gathers the meters' rows. Hosts have unequal numbers of them, so they are padded to the longest."""
        taken = self._meter.take() if self._meter else {}
        lengths = torch.tensor([len(taken.get(name, ())) for name in _METERED])
        all_lengths = self._world.gather(lengths, self._keepers)  # collective
        longest = [int(count) for count in self._world.most(lengths.tolist())]  # collective
        for index, (name, width) in enumerate(_METERED.items()):
            if longest[index] == 0:
                continue
            width += self._cores if name == "hosts" else 0
            programs = []
            if name == "programs":  # collective
                programs = self._world.gather_text("\n".join(self._meter.programs if self._meter else ()))
            padded = torch.full((longest[index], width), torch.nan, dtype=torch.float64)
            if len(taken.get(name, ())):
                rows = torch.from_numpy(taken[name])
                rows[:, 0] += self._clock.offset
                padded[: len(rows), : rows.shape[1]] = rows
            for rank, gathered in enumerate(self._world.gather(padded, self._keepers)):  # collective
                count = int(all_lengths[rank][index])
                if count:
                    self._write_metered(name, rank, gathered[:count].numpy(), programs)
        if clock.seconds() - self._thinned > _THIN_AFTER / 4:
            self._thinned = clock.seconds()
            before = self._clock.time(self._thinned) - _THIN_AFTER
            self._writer.do(lambda file: file.thin(before))

    def _write_metered(self, name: str, rank: int, rows: np.ndarray, programs: list[str]) -> None:
        host = np.full(len(rows), self._rank_hosts[rank])
        added_here = ("host", "sent_bytes_most", "received_bytes_most", "core_shares")
        names = [key for key in COLUMNS[name] if key not in added_here]
        table: Table = {"host": host, **{key: rows[:, place] for place, key in enumerate(names)}}
        if name == "hosts":
            cores = [row[np.isfinite(row)] for row in rows[:, len(names) :]]
            table["core_shares"] = np.array([packed_shares(shares) for shares in cores])
        if name == "programs":
            named = programs[rank].split("\n")
            table["name"] = np.array([named[int(i)] for i in table["name"]])
        if name == "nics":
            table["interface"] = np.array([self._interfaces[rank][int(i)] for i in table["interface"]])
            for key in ("sent_bytes", "received_bytes"):
                table[f"{key}_most"] = table[key]
        self._writer.do(lambda file: file.add(name, table))

    @contextmanager
    def _counted(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._spent += time.perf_counter() - began


def _sum_of_known(values: np.ndarray) -> np.ndarray:
    """The sums over columns; NaN where a row has no value at all."""
    return np.where(np.isnan(values).all(1), np.nan, np.nansum(values, 1))
