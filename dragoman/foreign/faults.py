"""Recognises crashes and launch failures in any log, with their meaning and what to change."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dragoman.foreign.log_facts import Gathered, LoggedStart
from dragoman.measure.records import Event

LOOKS_FOR = "errors of Python, CUDA, NCCL and mpirun"


@dataclass(frozen=True)
class LoggedFault:
    kind: str
    pattern: re.Pattern[str]
    meaning: str
    advice: str
    weight: int  # if one start has several faults, the one with the largest weight is taken as the cause


def _fault(kind: str, pattern: str, meaning: str, advice: str, weight: int) -> LoggedFault:
    return LoggedFault(kind, re.compile(pattern), meaning, advice, weight)


FAULTS = (
    _fault(
        "out of memory",
        r"ResourceExhaustedError|OOM when allocating|CUDA out of memory|OutOfMemoryError|ERROR_OUT_OF_MEMORY",
        "the device ran out of memory",
        "use fewer pairs or tokens per rank (half the batch with twice the accumulation is the same step), "
        "shorter sentences, or mixed precision; check that no other process uses the device's memory",
        9,
    ),
    _fault(
        "out of memory",
        r"\bstd::bad_alloc\b|^MemoryError\b|Out of memory: Kill|oom-kill",
        "the machine ran out of memory",
        "use a smaller shuffle buffer, fewer data workers, or a machine with more memory",
        9,
    ),
    _fault(
        "no space",
        r"No space left on device",
        "the disk was full",
        "free space on the disk, write checkpoints less often, or keep fewer of them",
        9,
    ),
    _fault(
        "launch failure",
        r"can't open file '?([^':]+)",
        "the program's file was not found on a machine",
        "start in the program's folder on every machine, or give the full path of the file",
        8,
    ),
    _fault(
        "launch failure",
        r"Log directory is not empty",
        "the folder for checkpoints was not empty",
        "pass --continue_learning to continue that run, or choose another logdir for a new one",
        8,
    ),
    _fault(
        "launch failure",
        r"log directory is empty or does not exist",
        "there was no checkpoint to continue from",
        "leave out --continue_learning, or give the logdir that holds the checkpoints",
        8,
    ),
    _fault(
        "launch failure",
        r"not enough slots available|Permission denied \(publickey|Host key verification failed"
        r"|ssh: (?:connect|Could not resolve)|ORTE was unable to reliably start|No module named",
        "the processes could not be started on every machine",
        "check that ssh to every machine needs no password, and start the program there once by hand",
        8,
    ),
    _fault(
        "diverged",
        r"NaN loss during training|Nan in summary histogram|Model diverged|Minimum loss scale reached"
        r"|Loss is NaN",
        "the loss was no longer a number",
        "use a lower learning rate or a longer warm-up, from the last good checkpoint",
        8,
    ),
    _fault(
        "stopped",
        r"signal 15 \(Terminated\)|KeyboardInterrupt|signal 2 \(Interrupt\)|^Killed by signal (?:2|15)\b",
        "terminated or interrupted from outside",
        "",
        7,
    ),
    _fault(
        "killed",
        r"signal 9 \(Killed\)|^Killed\b(?! by signal)",
        "from outside, usually because the machine ran out of memory or the job out of time",
        "look into the machine's kernel log (dmesg), which says whether memory was the reason",
        7,
    ),
    _fault(
        "crash",
        r"signal 11 \(Segmentation|signal 6 \(Abort|Signal: (?:Segmentation fault|Aborted)"
        r"|^Segmentation fault|CUDA_ERROR_[A-Z_]+|CUDNN_STATUS_[A-Z_]+|CUDA error: ",
        "the program crashed on a device",
        "continue from the last checkpoint; if it crashes there again, check the driver and the libraries",
        5,
    ),
    _fault(
        "exchange broke",
        r"NCCL WARN|unhandled system error|unexpectedly disconnected|HorovodInternalError"
        r"|Connection (?:reset by peer|refused|timed out)",
        "the connection between the machines broke",
        "look at what happened on the other machine at that time: the one with the error is seldom the cause",
        4,
    ),
    _fault(
        "aborted",
        r"mpirun detected that one or more|Primary job  ?terminated normally",
        "a process ended with an error and mpirun ended the others",
        "",
        2,
    ),
)
# A piece of a log without any of these words holds no fault. Searching for a few words is fast.
WORDS = (
    b"Error", b"OOM ", b"ut of memory", b"oom-kill", b"bad_alloc", b"No space left", b"can't open",
    b"irectory is ", b"slots available", b"Permission denied (", b"Host key", b"ssh: ", b"ORTE", b"No module",
    b"NaN", b"Nan in ", b"diverged", b"loss scale", b"signal ", b"Signal: ", b"Segmentation",
    b"Interrupt", b"Killed", b"CUDA_ERR", b"CUDNN_ST", b"NCCL WARN",
    b"disconnected", b"Connection ", b"mpirun detected", b"Primary job",
)  # fmt: skip


_MPIRUN_ENDED = re.compile(r"mpirun (?:detected|noticed) that")
_ECHOES = ("aborted", "stopped")  # may follow mpirun's report of the end of the same start
# These faults end a start before its first step. If a step follows, they did no harm.
_AT_THE_START = ("launch failure", "exchange broke")
MOST_BUFFERED = 100  # step lines that may appear in the file after a fault though they were printed before


class Faults:
    def __init__(self, gathered: Gathered):
        self._run = gathered
        self._seen: dict[
            tuple[int, LoggedFault], int
        ] = {}  # start and fault -> number of step lines before it
        self.is_recognised = False

    def line(self, text: str) -> None:
        for fault in FAULTS:
            if fault.pattern.search(text):
                self._note(fault, text)
                return

    def _note(self, fault: LoggedFault, text: str) -> None:
        start = self._start_of(fault)
        if _MPIRUN_ENDED.match(text):
            start.is_over = True
        is_new = (start.number, fault) not in self._seen
        self._seen[start.number, fault] = len(self._run.intervals["step"])
        if not is_new:
            return
        self.is_recognised = True
        start.faults.append(fault.kind)
        step = start.last_step or 0
        self._run.event(
            Event(
                time=0.0, attempt=start.number, step=step, kind="fault", detail=" ".join(text.split())[:300]
            )
        )
        worst = max((seen for number, seen in self._seen if number == start.number), key=lambda f: f.weight)
        if start.reason != "finished":
            start.reason = f"{worst.kind}: {worst.meaning}"

    def _start_of(self, fault: LoggedFault) -> LoggedStart:
        """The start of a fault: a new one after mpirun has ended, or if a launch fails after steps."""
        start = self._run.start
        is_launch = fault.kind == "launch failure" and start.last_step is not None
        if start.reason != "finished" and (is_launch or start.is_over and fault.kind not in _ECHOES):
            return self._run.begin()
        return start

    def finish(self) -> None:
        """Settles why each start ended. Faults that a start survived are dropped."""
        by_start: dict[int, list[LoggedFault]] = {}
        for (number, fault), before in self._seen.items():
            fatal = by_start.setdefault(number, [])
            after = self._run.intervals["attempt"][before:].count(number)
            if after <= (0 if fault.kind in _AT_THE_START else MOST_BUFFERED):
                fatal.append(fault)
        for number, faults in by_start.items():
            self._ended(self._run.starts[number - 1], faults)

    def _ended(self, start: LoggedStart, faults: list[LoggedFault]) -> None:
        if start.reason == "finished":
            return
        if not faults:  # the start survived
            start.reason = None
            return
        worst = max(faults, key=lambda fault: fault.weight)
        start.reason = f"{worst.kind}: {worst.meaning}"
        when = f"at about step {start.last_step:,}" if start.last_step else "before its first step"
        text = f"Start {start.number} ended {when} ({worst.kind}): {worst.meaning}"
        is_last = start.number == len(self._run.starts)
        # A start that was followed by another is history: its advice was taken, or is given for that one.
        self._run.remark("duration", "" if is_last else text, worst.advice if is_last else "")
