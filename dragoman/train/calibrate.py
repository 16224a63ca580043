"""`plan --calibrate`: measures a pace with half a minute of real steps on this machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

from pydantic import BaseModel

from dragoman import config, temporary
from dragoman.cost.step import ring_bytes
from dragoman.errors import DragomanError
from dragoman.plan import pace as paces
from dragoman.plan.estimate import Estimate, spread
from dragoman.plan.pace import Pace
from dragoman.plan.work import Work

SECONDS = 30.0
_MOST_SECONDS = 600.0  # including start-up, and steps that take longer than planned
_LEAST_DOUBT = 0.10  # how much the same machine differs a minute later
_ENOUGH_STEPS = 4  # the spread of this many shows how steady the machine is
_DOUBT_OF_FEW = 0.25
_DRAG_DOUBT = 0.5
_FAILURE = re.compile(r"^(?:\[rank\d+\]: )?([\w.]*Error: .+)$", re.MULTILINE)


class CalibrationRequest(BaseModel):
    """The request file that the ranks read."""

    settings: str = "config.toml"  # in the same folder
    vocabulary: int
    source_tokens: float  # of a sentence, if there is no data set
    target_tokens: float
    data: str | None
    seconds: float


class Measured(BaseModel):
    """The ranks' answer; lists hold the slowest rank's seconds for each step."""

    device: str
    ranks: int
    flops: list[float]  # of the rank that has the most
    without_exchange: list[float]  # forward and backward
    with_exchange: list[float]  # the same plus the exposed exchange
    serial: list[float]
    data: list[float]
    memory_bytes: float  # peak of the rank that used most


def calibrate(work: Work, workers: int, data: Path | None, seconds: float = SECONDS) -> Pace:
    """The pace with this many ranks at once on this machine."""
    return pace_of(measure(work, workers, data, seconds), work)


def measure(work: Work, workers: int, data: Path | None, seconds: float = SECONDS) -> Measured:
    """Runs the ranks of a calibration and returns what they measured."""
    request = CalibrationRequest(
        vocabulary=work.corpus.vocabulary,
        source_tokens=work.corpus.source_tokens.value,
        target_tokens=work.corpus.target_tokens.value,
        data=str(data.absolute()) if data else None,
        seconds=seconds,
    )
    with temporary.folder("dragoman-plan-") as folder:
        request_file, answer_file = folder / "request.json", folder / "measured.json"
        config.write(work.settings, request_file.with_name(request.settings))
        request_file.write_text(request.model_dump_json(), encoding="utf-8")
        command = [sys.executable, "-m", "dragoman.launch.ranks", str(workers)]
        command += ["-m", "dragoman.train.calibration_rank", str(request_file), str(answer_file)]
        reason = _run(command)
        if not answer_file.exists():
            raise DragomanError(
                f"could not make any steps here: {reason}",
                hint="use --workers 1 or a smaller data.microbatch, or plan with --gpu",
            )
        return Measured.model_validate(json.loads(answer_file.read_text(encoding="utf-8")))


def _run(command: list[str]) -> str:
    """Runs the ranks; returns the error of the first one to fail, or the exit code."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return f"it was not done after {_MOST_SECONDS:.0f} s"
    failure = _FAILURE.search(done.stderr)
    return failure[1] if failure else f"exit code {done.returncode}"


def pace_of(measured: Measured, work: Work) -> Pace:
    """The pace that follows from the measured steps."""
    where = f"{len(measured.flops)} steps measured here, {measured.ranks} at once"
    per_flop = [
        seconds / count for seconds, count in zip(measured.without_exchange, measured.flops, strict=True)
    ]
    doubt = max(_LEAST_DOUBT, spread(per_flop)) if len(per_flop) >= _ENOUGH_STEPS else _DOUBT_OF_FEW
    computing = median(measured.without_exchange)
    return Pace(
        device=measured.device,
        seconds_per_flop=Estimate.within(sum(measured.without_exchange) / sum(measured.flops), doubt, where),
        data_share=Estimate.within(median(measured.data) / computing, _DRAG_DOUBT, where),
        serial_seconds_per_parameter=Estimate.within(median(measured.serial) / work.parameters, doubt, where),
        drag_seconds_per_byte=_drag(measured, work, where),
        used_bytes=Estimate.within(measured.memory_bytes, _LEAST_DOUBT, where),
    )


def _drag(measured: Measured, work: Work, where: str) -> Estimate:
    """The cost of exchanging without a link."""
    if measured.ranks == 1:
        return paces.CPU_DRAG_SECONDS if measured.device == "cpu" else paces.DRAG_SECONDS
    pairs = zip(measured.with_exchange, measured.without_exchange, strict=True)
    seconds = max(0.0, median(whole - without for whole, without in pairs))
    sent = ring_bytes(measured.ranks, 4 * work.parameters)
    if (way := work.way).is_sharded:
        microbatches = median(measured.flops) * work.microbatches / work.computed_flops_per_step()
        sent = way.bytes_inside(measured.ranks, work.parameters, max(1, round(microbatches)))
    return Estimate.within(seconds / sent, _DRAG_DOUBT, f"{where}, each with and without exchange")
