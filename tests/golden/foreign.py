"""Answers to logs of other programs, and to facts that somebody gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import Given
from tests.foreign import logs, test_fairseq, test_nmon, test_nvidia
from tests.foreign.test_absurd import NINES
from tests.foreign.test_faults import ABORTED, NOT_EMPTY
from tests.foreign.test_verdicts import FACTS, SLOW
from tests.golden.answers import written

NETWORK, DURATION, STEP_TIME = ("network",), ("duration",), ("step_time",)
BOTH = ("device_utilisation", "network")
CRASHES = (
    "CUDA out of memory",
    "MemoryError",
    "OSError: [Errno 28] No space left on device",
    "python: can't open file 'run.py': [Errno 2] No such file",
    NOT_EMPTY.strip(),
    "OSError: log directory is empty or does not exist",
    "Host key verification failed",
    "NaN loss during training",
    "mpirun noticed that process rank 0 exited on signal 15 (Terminated).",
    "mpirun noticed that process rank 1 exited on signal 9 (Killed).",
    "Signal: Segmentation fault (11)",
    "NCCL WARN Call to recv failed",
    ABORTED.splitlines()[1],
)


@dataclass(frozen=True)
class Case:
    title: str
    questions: Sequence[str]
    files: dict[str, str] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)


def page() -> str:
    """Written with files in the current folder."""
    parts = []
    for case in (*logged(), *crashed(), *given()):
        paths = [logs.written(Path(), text, name) for name, text in case.files.items()]
        made = diagnose(paths, Given.model_validate(case.facts))
        answers = [f"{each.id} {written(each)}" for each in made.findings if each.id in case.questions]
        parts.append("\n".join([f"== {case.title}", *answers, *(f"note: {note}" for note in made.notes), ""]))
        for path in paths:
            path.unlink()
    return "\n".join(parts)


def logged() -> Iterator[Case]:
    log, fairseq = logs.openseq2seq(), test_fairseq.log()
    alone = "".join(line for line in logs.HEAD.splitlines(keepends=True) if "orovod" not in line)
    yield Case("a log alone", NETWORK, {"log": logs.openseq2seq(nccl="", head=alone)})
    yield Case("facts that differ from the log", NETWORK, {"log": log}, {"machines": 1, "batch": 8})
    times = {"step_seconds": 99.0, "steps": 5, "hours": 1.0}
    yield Case("times that the log has", STEP_TIME, {"log": log}, times)
    told = {"link": "1gbit", "gpu_power": "42/250"}
    yield Case("OpenSeq2Seq over a slow link", NETWORK, {"log": log}, told)
    in_fp32 = fairseq.replace("'fp16': True", "'fp16': False")
    yield Case("fairseq over a slow link", NETWORK, {"log": in_fp32}, told | {"machines": 2, "ranks": 4})
    slowing = logs.openseq2seq(8000, seconds=lambda step: 1.2 if step <= 3000 else 1.9)
    yield Case("a pace that changes", STEP_TIME, {"log": slowing})
    yield Case("a tail", DURATION, {"log": log[log.index("*** Global step 1500") - 40 :]})
    twice = logs.openseq2seq(3000, end="*** Finished training\n") + log
    yield Case("two runs in one log", DURATION, {"log": twice})
    yield Case("BLEU of forced words", ("convergence",), {"log": log})
    yield Case("a table of nvidia-smi", BOTH, {"log": log, "smi.txt": test_nvidia.TABLE})
    recording = test_nmon.recording([209_839.0] * 90)
    yield Case("a recording of nmon", NETWORK, {"log": log, "a1.nmon": recording})
    headless = recording[recording.index("ZZZZ") :]
    yield Case("a recording without its head", NETWORK, {"log": log, "a1.nmon": headless})
    yield Case("a number that no run has", STEP_TIME, {"log": fairseq.replace("wall=1000", f"wall={NINES}")})
    undated = fairseq.replace(test_fairseq.stamp(410), "0001-01-01 00:00:00")
    yield Case("a date that no run has", STEP_TIME, {"log": undated})
    yield Case("no log of any kind", NETWORK, {"log": log, "thing": "nothing\n"})
    state = (Path(logs.__file__).parent / "trainer_state.json").read_text()
    yield Case("the state of a Trainer", STEP_TIME, {"trainer_state.json": state})


def crashed() -> Iterator[Case]:
    for crash in CRASHES:
        yield Case(crash, DURATION, {"log": f"{logs.HEAD}{crash}\n{ABORTED}"})
    failed = (NOT_EMPTY + ABORTED) * 2 + logs.openseq2seq(500)
    yield Case("starts that failed", DURATION, {"log": failed})


def given() -> Iterator[Case]:
    for reading in ("200 Mbps", "200 MB/s", "1.6 GB/s", "3 Mbps"):
        yield Case(f"a reading of {reading}", NETWORK, facts={**FACTS, "nic": reading})
    yield Case("a reading of kilobytes", NETWORK, facts={**FACTS, "nic_kb_per_s": 200_210})
    exceeded = {"step_seconds": 1.1, "gpu": "K80", "link": "1gbit"}
    yield Case("an order that is exceeded twice", NETWORK, facts=FACTS | exceeded)
    short = {"step_seconds": 0.25, "precision": "fp32"}
    yield Case("a step shorter than its computing", BOTH, facts=FACTS | short)
    yield Case("a port that was filled", NETWORK, facts=SLOW)
    yield Case("a rate of no port", BOTH, facts=SLOW | {"step_seconds": 60.0})
    for power in ("42/250", "200/250"):
        fast = {"link": "100gbit", "gpu_power": power}
        yield Case(f"a fast link, and GPUs at {power}", BOTH, facts=FACTS | fast)
    yield Case("a moment of computing", BOTH, facts=SLOW | {"step_seconds": 1.9, "gpu_power": "174/250"})
    alone = {"ranks": 2, "machines": 1, "gpu_power": "42/250", "gpu_util": 100.0, "step_seconds": 1.9}
    yield Case("busy at little power", BOTH, facts=alone)
    slip = {"step_seconds": 0.6, "steps": 64_017, "hours": 30.5}
    yield Case("steps per second", STEP_TIME, facts=slip)
    mean = {"step_seconds": 1.9, "steps": 50_000, "hours": 26.4}
    yield Case("a mean and a length", (*DURATION, *STEP_TIME), facts=mean)
    yield Case("a GPU that nobody makes", NETWORK, facts=FACTS | {"gpu": "Voodoo"})
