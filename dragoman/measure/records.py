"""The records of a run: its measurements as rows and tables in memory, and all that `explain` may read.

Nothing here needs torch. The readers of other programs' logs fill the same `Records`; what was not measured
is an empty table or NaN, never a guess. Times are Unix seconds (in a log without dates, seconds from 0) on
one time line, see clock.py; durations are seconds. A row belongs to an attempt. If a later attempt resumes at
an earlier step, its rows supersede those of the steps it repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt, field_validator

from dragoman.exchange_way import ExchangeWay
from dragoman.faults import FaultKind

PHASES = ("data", "forward", "backward", "exchange", "optimizer")  # of a step, in order
FIRST_DATE = 1e8  # Unix time, 1973; smaller times count from the start of a log without dates
# Counts for each step of a rank: bytes on the gradients' interface (on one rank per host, NaN on the others);
# CPU seconds of its threads, and seconds for which they were ready but had no core, both during the `sampled`
# seconds of the step.
COUNTED = ("sent_bytes", "received_bytes", "cpu", "queued", "sampled")
STATISTICS = ("mean", "least", "most", "slowest")  # over ranks; `slowest` is a rank's number


class RecordRow(BaseModel):
    """A row stored as JSON. Losses that are not finite are kept as text, because JSON has no NaN."""

    model_config = ConfigDict(ser_json_inf_nan="strings")


class RunFacts(BaseModel):
    """What is known of a run as a whole. None where nobody recorded it."""

    name: str = ""
    source: str = "dragoman"  # or the program whose log was read
    ranks: PositiveInt | None = None
    hosts: list[str] = []  # names; a rank's host is hosts[rank_hosts[rank]]
    rank_hosts: list[int] = []
    device: str | None = None  # "cpu", or the GPU's name
    parameters: int | None = None
    gradient_bytes: int | None = None  # of one rank's gradients as they cross between hosts
    mode: str = "allreduce"  # or sharded, or diloco
    exchange: str = "allreduce"  # the shape: one ring of ranks, or "hierarchical"
    wire: str = "fp32"  # of gradients between hosts
    bucket_bytes: int | None = None
    exchange_every: PositiveInt = 1  # steps; DiLoCo: of a round when rounds have grown to their length
    exchange_why: str = ""  # what chose this way
    gradient_interfaces: list[str] = []  # per host, the interface its gradients leave by
    host_memory_bytes: list[int] = []  # per host, all it has
    flops_per_step: float | None = None  # of the model, forward and backward, all ranks together
    settings: dict[str, Any] = {}  # the config, by dotted key
    data_card: dict[str, Any] = {}
    checkpoint_files: list[dict[str, Any]] = []  # name, bytes, purpose of the newest checkpoint's files
    recording_seconds: float | None = None  # what measuring has cost so far, on the slowest rank
    # Of runs that were not ours:
    ordered_link_bits_per_second: float | None = None  # what was paid for, which is not what a link carries
    nic_bytes_per_second: float | None = None  # sent while training, where no counter lies over the steps
    computing_seconds: tuple[float, float] | None = None  # of a step, least and most, by the cost model
    computing_inputs: str = ""  # what the cost model was given
    step_interval: int | None = None  # steps between two lines of the log; seconds are means over them
    seconds_include_evaluations: bool = False
    one_mean: str = ""  # all steps have the same seconds, because there is only a mean of them: where from
    end_is_known: bool = True  # False: the source never tells how a run ended
    steps_per_row: PositiveInt = 1  # of the table of steps, where a very long run was thinned
    origins: dict[str, str] = {}  # fact -> measured (in a file), given, assumed or estimated
    precision: str = ""  # the number format of computing, in words
    precision_why: str = ""  # what chose it, if not the settings

    @property
    def way(self) -> ExchangeWay:
        """How gradients were exchanged."""
        return ExchangeWay.recorded(
            mode=self.mode,
            exchange=self.exchange,
            wire=self.wire,
            bucket_bytes=self.bucket_bytes,
            exchange_every=self.exchange_every,
        )


class Attempt(RecordRow):
    number: int
    started: float
    first_step: int  # the first step of this attempt
    ranks: int
    ended: float | None = None
    reason: str | None = None  # why it ended; None if it did not end by itself
    # A time is `clock_offset` plus a reading of the clock that counts from this boot of rank 0's machine.
    boot: str = ""
    clock_offset: float | None = None  # None: another program's log, or records of an early version
    jump_before: float = 0.0  # seconds by which the wall clock was set since the previous attempt
    jumps_during: list[float] = []  # the same, for each time it was set during this attempt
    # The facts of the run that may differ between attempts: ranks, hosts, how gradients were exchanged.
    placement: dict[str, Any] = {}

    @property
    def jumps(self) -> list[float]:
        return [self.jump_before, *self.jumps_during] if self.jump_before else self.jumps_during


class EvaluationRow(RecordRow):
    step: int
    attempt: int
    time: float
    eval_loss: float | None = None  # NaN: it was scored, but the loss was not a number
    train_sample_loss: float | None = None
    bleu: float | None = None
    bleu_signature: str | None = None
    chrf: float | None = None
    chrf_signature: str | None = None
    seconds: float | None = None


class Event(RecordRow):
    time: float  # when it began
    attempt: int
    step: int
    # startup, exchange (the detail names the way), evaluation, checkpoint, stop; fault, in another program's
    # log; joined: hosts that came back and are in this attempt, named in the detail; writing: saving a
    # checkpoint in the background
    kind: str
    seconds: float = 0.0  # for which training stood still; for `writing`, it continued
    detail: str = ""


class Fault(RecordRow):
    """Something that went wrong. Several faults may end an attempt, such as one for each rank of a host."""

    time: float  # last sign of life of what failed; when it was noticed if that is all that is known
    attempt: int  # that it ended, or that survived it
    step: int  # completed by then
    kind: FaultKind
    host: str = ""
    rank: int | None = None  # in the attempt's placement
    phase: str = ""  # in which it happened
    detail: str = ""  # such as the name of the signal
    noticed_seconds: float | None = None  # from `time` until somebody noticed
    steps_lost: NonNegativeInt = 0  # made, then made again
    stacks: str = ""  # a file in the run folder, relative, with what each thread was doing

    @field_validator("stacks")
    @classmethod
    def _stays_in_the_run_folder(cls, path: str) -> str:
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise ValueError(f"stacks is not a file in the run folder: {path[:80]}")
        return path


class Probe(RecordRow):
    """A separate measurement, with numbers that depend on its kind.

    exchange: step_seconds and step_seconds_without_exchange of each probed step (both of the slowest rank,
    without waiting for data and without the optimizer). link: bits_per_second and round_trip_seconds of the
    slowest pair of neighbouring hosts. peak: flops_per_second, the sum of all ranks measured at once.
    all_reduce: bytes and seconds of a plain all-reduce over all ranks. auto: compute_seconds, and the
    step_seconds expected for the chosen way.
    """

    time: float  # when it began
    attempt: int
    step: int
    kind: str
    numbers: dict[str, float]
    seconds: float = 0.0  # the time it took


Table = dict[str, np.ndarray]  # columns of equal length


class Records:
    """All measurements of a run. Superseded rows are left out; their steps are in a table of their own."""

    def __init__(
        self,
        facts: RunFacts,
        attempts: Sequence[Attempt] = (),
        steps: Table | None = None,
        windows: Table | None = None,
        evaluations: Sequence[EvaluationRow] = (),
        events: Sequence[Event] = (),
        probes: Sequence[Probe] = (),
        nics: Table | None = None,
        hosts: Table | None = None,
        gpus: Table | None = None,
        lens: Table | None = None,
        programs: Table | None = None,
        faults: Sequence[Fault] = (),
        repeated: Table | None = None,
    ):
        self.facts = facts
        self.attempts = list(attempts)
        self.steps = _filled("steps", steps)
        self.windows = _filled("windows", windows)
        self.evaluations = list(evaluations)
        self.events = list(events)
        self.probes = list(probes)
        self.nics = _filled("nics", nics)
        self.hosts = _filled("hosts", hosts)
        self.gpus = _filled("gpus", gpus)
        self.lens = _filled("lens", lens)
        self.programs = _filled("programs", programs)
        self.faults = sorted(faults, key=lambda fault: (fault.time, fault.attempt))
        self.repeated = _filled("steps", repeated)  # steps that a later attempt made again

    def phase(self, name: str, statistic: str = "mean") -> np.ndarray:
        """The seconds of a phase in each step; NaN where they are not known.

        With shards on GPUs, layers wait for weights within every phase but `data`, and nothing times it.
        """
        seconds = self.steps[f"{name}_{statistic}"]
        is_timed = name == "data" or not self.facts.way.is_sharded or self.facts.device == "cpu"
        return seconds if is_timed else np.full(len(seconds), np.nan)

    def probes_of(self, kind: str) -> list[Probe]:
        return [probe for probe in self.probes if probe.kind == kind]


# --- the tables of numbers --------------------------------------------------------------------------------
# Column -> SQLite type. Columns that end in _us hold microseconds in the file; in memory they hold seconds
# and have no such ending.

_PHASE_COLUMNS = {
    f"{phase}_{statistic}{'' if statistic == 'slowest' else '_us'}": "INTEGER"
    for phase in PHASES
    for statistic in STATISTICS
}
COLUMNS: dict[str, dict[str, str]] = {
    "steps": {
        "step": "INTEGER",
        "attempt": "INTEGER",
        "ended": "REAL",  # Unix time
        "seconds_us": "INTEGER",  # since the end of the previous step, without events in between
        "loss": "REAL",
        "target_tokens": "INTEGER",
        "pairs": "INTEGER",
        "learning_rate": "REAL",
        "gradient_norm": "REAL",
        "is_bad": "INTEGER",  # skipped: a gradient was not finite
        "is_rescaled": "INTEGER",  # skipped in fp16's search for a loss scale, which is no bad step
        **_PHASE_COLUMNS,
    },
    "windows": {
        "first_step": "INTEGER",
        "last_step": "INTEGER",
        "attempt": "INTEGER",
        "rank": "INTEGER",
        **{f"{phase}_us": "INTEGER" for phase in PHASES},
        **{name if name.endswith("bytes") else f"{name}_us": "INTEGER" for name in COUNTED},
    },
    "nics": {
        "host": "INTEGER",
        "time": "REAL",
        "span": "REAL",  # seconds that the row covers
        "interface": "TEXT",
        "sent_bytes": "REAL",  # per second, mean over the span
        "received_bytes": "REAL",
        "sent_bytes_most": "REAL",  # in the busiest second of the span
        "received_bytes_most": "REAL",
    },
    "hosts": {
        "host": "INTEGER",
        "time": "REAL",
        "span": "REAL",
        "cpu_share": "REAL",  # of all cores
        "cpu_share_most": "REAL",  # of the busiest core
        "memory_bytes": "REAL",
        "disk_read_bytes": "REAL",  # per second
        "disk_written_bytes": "REAL",
        "core_shares": "TEXT",  # per core, a percentage in two hexadecimal digits; only in rows per second
        "stolen_share": "REAL",  # share of all cores that the hypervisor gave to other virtual machines
        "throttled_share": "REAL",  # share of the span that a limit on this process's cgroup held it back
    },
    "programs": {  # the busiest other programs while ranks waited for a core
        "host": "INTEGER",
        "time": "REAL",
        "span": "REAL",
        "name": "TEXT",
        "cores": "REAL",  # mean number of cores that it used
    },
    "gpus": {
        "host": "INTEGER",
        "time": "REAL",
        "span": "REAL",
        "gpu": "INTEGER",
        "utilisation": "REAL",  # share of time with a kernel running, even one that waits for the network
        "power_watts": "REAL",
        "power_limit_watts": "REAL",
        "clock_hertz": "REAL",
        "memory_bytes": "REAL",
        "temperature_celsius": "REAL",
    },
    "lens": {  # bursts of samples, many per step
        "host": "INTEGER",
        "time": "REAL",
        "sent_bytes": "REAL",  # since the machine started
        "received_bytes": "REAL",
        "step": "INTEGER",
        "phase": "INTEGER",  # index into PHASES, on the first rank of the host; -1 between steps
    },
}
TEXT_COLUMNS = {"interface", "core_shares", "name"}
ADDED_TABLES = {"programs", "faults"}  # added after the first version of this schema; older files lack them


def packed_shares(shares: Sequence[float]) -> str:
    """The share of each core in two hex digits. A table with a row per core would fill most of the file."""
    return "".join(f"{round(100 * share):02x}" for share in shares)


def core_shares(packed: str) -> list[float]:
    return [percent / 100 for percent in bytes.fromhex(packed)]


def column(name: str) -> str:
    """The name of a column in memory."""
    return name.removesuffix("_us")


def _filled(table: str, given: Table | None) -> Table:
    """The table with all columns. Those that were not recorded hold NaN (text columns: empty strings)."""
    given = given or {}
    length = len(next(iter(given.values()), ()))
    missing: dict[str, np.ndarray] = {}
    for name in map(column, COLUMNS[table]):
        if name not in given:
            # One value shared by all rows, because a long log has millions of rows and few of the columns.
            missing[name] = np.broadcast_to(np.array("" if name in TEXT_COLUMNS else np.nan), (length,))
    return {**given, **missing}
