"""Reads TensorBoard event files: scalars with the time at which each was written."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from dragoman.foreign.lines import Lines
from dragoman.foreign.log_facts import NAN, Gathered, bleu_scale, number, printed_loss
from dragoman.measure.records import EvaluationRow

NAME = "TensorBoard"
LOOKS_FOR = "TensorBoard event files"
_HELD_OUT = ("valid", "validation", "val", "eval", "dev", "test")  # most likely first
_PARTS = ("train", "training", "inner", *_HELD_OUT)
_QUANTITIES = {
    "loss": "loss",
    "nll_loss": "loss",
    "loss_step": "loss",  # Lightning's loss of a step; it also writes the mean over an epoch
    "bleu": "bleu",
    "sacrebleu": "bleu",
    "learning_rate": "rate",
    "lr": "rate",
    "global_gradient_norm": "norm",
    "gradient_norm": "norm",
    "grad_norm": "norm",
    "gnorm": "norm",
}
_TEACHER_FORCED = "Eval_BLEU_Score"  # OpenSeq2Seq's, computed with the reference fed to the decoder
_LONGEST_EVENT = 1 << 26
_MOST_POINTS = 2_000_000
_DAMAGE = "its records are damaged; everything before that was read"

Point = tuple[int, float, float]  # step, time, value


def is_one(head: bytes) -> bool:
    """Whether the file is an event file: the first event names the format."""
    return len(head) > 24 and b"brain.Event:" in head[:64]


def read(lines: Lines, gathered: Gathered) -> bool:
    """Reads the curves, and returns whether any of them was recognised."""
    kinds: dict[str, dict[str, list[Point]]] = {}
    count = 0
    for at, time, tag, value in _scalars(lines):
        kind, step = _kind(tag, lines.path.parent.name), gathered.step(at)
        if not kind or step is None:
            continue
        count += 1
        if count > _MOST_POINTS:
            gathered.left_out[f"scalars after the first {_MOST_POINTS:,}"] += 1
            continue
        kinds.setdefault(kind, {}).setdefault(tag, []).append((step, gathered.dated(time), value))
    if not kinds:
        return False
    scalars = {kind: _on_a_clock(_most_telling(by_tag), gathered) for kind, by_tag in kinds.items()}
    # A log of the same run was read before, and is more detailed than its curves.
    if gathered.source in ("", NAME):
        _steps(scalars, gathered)
    if gathered.source in ("", NAME) or not gathered.evaluations:
        _evaluations(scalars, gathered)
    gathered.source = gathered.source or NAME
    return True


def _on_a_clock(points: list[Point], gathered: Gathered) -> list[Point]:
    times = gathered.near([time for _, time, _ in points])
    return [(step, time, value) for (step, _, value), time in zip(points, times, strict=True)]


def _kind(tag: str, folder: str) -> str | None:
    """The quantity of a curve: `train/loss`, `val_loss`, `loss/valid`, or `loss` in one folder per part."""
    if tag == _TEACHER_FORCED:
        return "teacher forced"
    *above, leaf = tag.lower().split("/")
    quantity = _QUANTITIES.get(_without_parts(leaf) or _without_parts("".join(above[-1:])))
    is_held_out = folder in _HELD_OUT or any(word in _HELD_OUT for word in _words(tag))
    if quantity in ("loss", "bleu"):
        return f"held-out {quantity}" if is_held_out or quantity == "bleu" else quantity
    return quantity


def _words(tag: str) -> list[str]:
    return re.split("[/_]", tag.lower())


def _without_parts(name: str) -> str:
    return "_".join(word for word in _words(name) if word not in _PARTS)


def _most_telling(by_tag: dict[str, list[Point]]) -> list[Point]:
    """The best of several curves: the longest (a summary has one point), without smoothing, by part."""

    def rank(tag: str) -> tuple[int, bool, int]:
        parts = [_HELD_OUT.index(word) for word in _words(tag) if word in _HELD_OUT]
        return -len(by_tag[tag]), "nll" not in tag, min(parts, default=0)

    return by_tag[min(by_tag, key=rank)]


def _steps(scalars: dict[str, list[Point]], gathered: Gathered) -> None:
    losses, curve = scalars.get("loss", []), scalars.get("rate", [])
    rates = {step: gathered.number(value) for step, _, value in curve}
    norms = {step: gathered.number(value) for step, _, value in scalars.get("norm", [])}
    points = losses or curve
    before: tuple[int, float] | None = None
    for step, time, loss in points:
        steps = step - before[0] if before and step > before[0] else 0
        seconds = (time - before[1]) / steps if before and steps and time > before[1] else NAN
        values = {"loss": printed_loss(loss) if losses else NAN, "ended": time}
        values |= {"learning_rate": rates.get(step, NAN), "gradient_norm": norms.get(step, NAN)}
        gathered.interval(step, max(1, steps), seconds, **values)
        if gathered.start.started != gathered.start.started:
            gathered.start.started = time
        before = (step, time)
    gathered.fact("seconds_include_evaluations", True)


def _evaluations(scalars: dict[str, list[Point]], gathered: Gathered) -> None:
    scores = {step: value for step, _, value in scalars.get("held-out bleu", [])}
    scale = bleu_scale(score for score in scores.values() if number(score) == score)
    for step, time, loss in scalars.get("held-out loss", []):
        row = EvaluationRow(
            step=step, attempt=gathered.start.number, time=time, eval_loss=gathered.number(loss)
        )
        if gathered.number(scores.get(step)) == scores.get(step):
            row.bleu, row.bleu_signature = scale * scores[step], "as logged"
        gathered.evaluation(row)
    if forced := [value for _, _, value in scalars.get("teacher forced", []) if number(value) == value]:
        gathered.fact("teacher_forced_bleu", max(forced))


def _scalars(lines: Lines) -> Iterator[tuple[int, float, str, float]]:
    # Imported here because it takes 0.3 s, and few users have such a file.
    from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]

    for data in _records(lines):
        try:
            event = Event.FromString(data)
        except Exception:  # the implementations of protobuf raise different errors
            lines.damage = _DAMAGE
            return
        for value in event.summary.value:
            scalar = _scalar(value)
            if scalar is not None:
                yield event.step, event.wall_time, value.tag, scalar


def _scalar(value: object) -> float | None:
    kind = value.WhichOneof("value")  # type: ignore[attr-defined]
    if kind == "simple_value":
        return float(value.simple_value)  # type: ignore[attr-defined]
    if kind == "tensor":
        tensor = value.tensor  # type: ignore[attr-defined]
        if len(tensor.float_val) == 1:
            return float(tensor.float_val[0])
        if len(tensor.tensor_content) == 4:
            return float(struct.unpack("<f", tensor.tensor_content)[0])
    return None


def _records(lines: Lines) -> Iterator[bytes]:
    """The data of each record, which is framed as length, checksum, data, checksum.

    A file that is still being written may end anywhere.
    """
    rest = b""
    for piece in lines.data():
        rest += piece
        at = 0
        while at + 12 <= len(rest):
            (length,) = struct.unpack_from("<Q", rest, at)
            if length > _LONGEST_EVENT:
                lines.damage = _DAMAGE
                return
            if at + 16 + length > len(rest):
                break
            yield rest[at + 12 : at + 12 + length]
            at += 16 + length
        rest = rest[at:]
