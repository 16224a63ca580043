"""The records of a run: what was measured, as rows and tables in memory. All that `explain` may read.

Nothing here needs torch. A reader of somebody else's log fills the same `Records`; what was not measured is
an empty table or NaN, never a guess. Times are Unix seconds (from 0 on in a log without dates) on one time
line, see clock.py; durations are seconds. A row belongs to an attempt; when a later attempt begins again at
an earlier step, the rows it makes anew supersede the old ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, PositiveInt

from dragoman.exchange_way import ExchangeWay

PHASES = ("data", "forward", "backward", "exchange", "optimizer")  # of a step, in order
FIRST_DATE = 1e8  # Unix time, 1973; smaller times count from the start of a log without dates
# Beside its seconds, of a rank's step: bytes on the gradients' interface (on one rank per host, NaN on the
# others); CPU seconds of its threads, and seconds for which they were ready to run and did not, both in
# `sampled` seconds of it.
COUNTED = ("sent_bytes", "received_bytes", "cpu", "queued", "sampled")
STATISTICS = ("mean", "least", "most", "slowest")  # over ranks; `slowest` is a rank's number


class RecordRow(BaseModel):
    """A row that is kept as JSON, which has no NaN: a loss that is not finite is a finding, not a gap."""

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
    mode: str = "allreduce"  # or diloco
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
    step_interval: int | None = None  # the log speaks once in so many steps: seconds are means over them
    seconds_include_evaluations: bool = False
    one_mean: str = ""  # all steps have the same seconds, because there is only a mean of them: where from
    end_is_known: bool = True  # False: the source never tells how a run ended
    steps_per_row: PositiveInt = 1  # of the table of steps, where a very long run was thinned
    origins: dict[str, str] = {}  # fact -> measured (in a file), given, assumed or estimated

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
    first_step: int  # the first step this attempt makes
    ranks: int
    ended: float | None = None
    reason: str | None = None  # why it ended; None if it did not end by itself
    # A time is `clock_offset` plus a reading of the clock that counts from this boot of rank 0's machine.
    boot: str = ""
    clock_offset: float | None = None  # None: a log of others, or records from before there was one
    jump_before: float = 0.0  # seconds by which the wall clock was set since the attempt before
    jumps_during: list[float] = []  # the same while this attempt ran
    # Facts of the run as they were for this attempt's steps: who made them, where, how gradients met.
    placement: dict[str, Any] = {}

    @property
    def jumps(self) -> list[float]:
        return [self.jump_before, *self.jumps_during] if self.jump_before else self.jumps_during


class EvaluationRow(RecordRow):
    step: int
    attempt: int
    time: float
    eval_loss: float | None = None  # NaN: it was scored, and the loss was no number
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
    # startup, exchange (its way is the detail), evaluation, checkpoint, fault, stop; and writing: of a
    # checkpoint in the background
    kind: str
    seconds: float = 0.0  # for which training stood still; did not, while writing
    detail: str = ""


class Probe(RecordRow):
    """Something measured on purpose.

    kind "exchange": numbers step_seconds and step_seconds_without_exchange (both without data waiting and
    optimizer; the slowest rank's), per step probed. kind "link": bits_per_second, round_trip_seconds of the
    slowest pair of neighbouring hosts. kind "peak": flops_per_second, of the sum of all ranks at once. kind
    "all_reduce": bytes of a plain one over all ranks, and its seconds. kind "auto": compute_seconds and the
    step_seconds expected of the way that was picked.
    """

    time: float  # when it began
    attempt: int
    step: int
    kind: str
    numbers: dict[str, float]
    seconds: float = 0.0  # what it cost


Table = dict[str, np.ndarray]  # columns of equal length


class Records:
    """Everything measured, with superseded rows left out."""

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

    def phase(self, name: str, statistic: str = "mean") -> np.ndarray:
        """Seconds of a phase, per step."""
        return self.steps[f"{name}_{statistic}"]

    def probes_of(self, kind: str) -> list[Probe]:
        return [probe for probe in self.probes if probe.kind == kind]


# --- the tables of numbers --------------------------------------------------------------------------------
# Column -> SQLite type. Columns that end in _us hold microseconds in the file and appear without the ending,
# in seconds, in memory.

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
        "seconds_us": "INTEGER",  # from the end of the step before, less events in between
        "loss": "REAL",
        "target_tokens": "INTEGER",
        "pairs": "INTEGER",
        "learning_rate": "REAL",
        "gradient_norm": "REAL",
        "is_bad": "INTEGER",
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
        "span": "REAL",  # seconds that the row stands for
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
        "core_shares": "TEXT",  # by core, two hexadecimal digits of a percentage each; only by the second
        "stolen_share": "REAL",  # of all cores: the virtual machine's host gave it to another one
        "throttled_share": "REAL",  # of the span: a limit on this process's group kept its threads waiting
    },
    "programs": {  # not of the run, while ranks waited for a core; the busiest only
        "host": "INTEGER",
        "time": "REAL",
        "span": "REAL",
        "name": "TEXT",
        "cores": "REAL",  # that it used
    },
    "gpus": {
        "host": "INTEGER",
        "time": "REAL",
        "span": "REAL",
        "gpu": "INTEGER",
        "utilisation": "REAL",  # share of time with a kernel running: waiting for the network counts as busy
        "power_watts": "REAL",
        "power_limit_watts": "REAL",
        "clock_hertz": "REAL",
        "memory_bytes": "REAL",
        "temperature_celsius": "REAL",
    },
    "lens": {
        "host": "INTEGER",
        "time": "REAL",
        "sent_bytes": "REAL",  # since the machine started
        "received_bytes": "REAL",
        "step": "INTEGER",
        "phase": "INTEGER",  # index into PHASES of rank 0 of the host; -1 between steps
    },
}
TEXT_COLUMNS = {"interface", "core_shares", "name"}
ADDED_TABLES = {"programs"}  # since the first records of this schema: older files have none


def packed_shares(shares: Sequence[float]) -> str:
    """Of each core, in two digits: 64 cores in a table of their own would be most of the file."""
    return "".join(f"{round(100 * share):02x}" for share in shares)


def core_shares(packed: str) -> list[float]:
    return [percent / 100 for percent in bytes.fromhex(packed)]


def column(name: str) -> str:
    """A column's name in memory."""
    return name.removesuffix("_us")


def _filled(table: str, given: Table | None) -> Table:
    """The table with every column; one that was not recorded is NaN throughout (text: empty)."""
    given = given or {}
    length = len(next(iter(given.values()), ()))
    missing: dict[str, np.ndarray] = {}
    for name in map(column, COLUMNS[table]):
        if name not in given:
            # One value under every row: a long log has millions of rows and few of the columns.
            missing[name] = np.broadcast_to(np.array("" if name in TEXT_COLUMNS else np.nan), (length,))
    return {**given, **missing}
