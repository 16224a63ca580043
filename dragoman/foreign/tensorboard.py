"""TensorBoard event files: scalars with the time at which each was written."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from dragoman.foreign.gathered import NAN, Gathered
from dragoman.foreign.lines import Lines
from dragoman.measure.records import EvaluationRow

NAME = "TensorBoard"
LOOKS_FOR = "TensorBoard event files"
_LOSS = ("train_loss", "train/loss", "loss", "loss/train", "train_inner/loss", "Train_loss")
_EVAL_LOSS = (
    "eval_loss",
    "eval/loss",
    "loss/eval",
    "loss/valid",
    "valid/loss",
    "valid/nll_loss",
    "Eval_loss",
)
_BLEU = ("eval/bleu", "valid/bleu", "bleu", "eval_bleu", "Eval_BLEU")
_HELD_OUT = ("valid", "validation", "eval", "dev", "test")  # folders
_TEACHER_FORCED = ("Eval_BLEU_Score",)  # OpenSeq2Seq's: the reference is fed to the decoder
_RATE = ("learning_rate", "train/learning_rate", "lr", "train_inner/lr", "train/lr")
_NORM = ("global_gradient_norm", "train/grad_norm", "train_inner/gnorm", "gradient_norm")
_KNOWN = ("nll_loss", *_LOSS, *_EVAL_LOSS, *_BLEU, *_TEACHER_FORCED, *_RATE, *_NORM)
_LONGEST_EVENT = 1 << 26

Point = tuple[int, float, float]  # step, time, value


def is_one(head: bytes) -> bool:
    """The first event names its format."""
    return len(head) > 24 and b"brain.Event:" in head[:64]


def read(lines: Lines, gathered: Gathered) -> bool:
    """Whether it held anything that is known here."""
    scalars: dict[str, list[Point]] = {}
    for step, time, tag, value in _scalars(lines):
        name = tag.rpartition("/")[2] if tag not in _KNOWN else tag
        if name in _KNOWN:
            scalars.setdefault(name, []).append((step, time, value))
    if not scalars:
        return False
    if lines.path.parent.name in _HELD_OUT:  # a writer for each part of the data: all call it `loss`
        found = _series(scalars, ("nll_loss", *_LOSS))
        scalars = {name: points for name, points in scalars.items() if name in (*_EVAL_LOSS, *_BLEU)}
        scalars.setdefault("eval_loss", found)
    # A log of the same run is finer than its curves, and was read before them.
    if gathered.source in ("", NAME):
        _steps(scalars, gathered)
    if gathered.source in ("", NAME) or not gathered.evaluations:
        _evaluations(scalars, gathered)
    gathered.source = gathered.source or NAME
    return True


def _series(scalars: dict[str, list[Point]], names: tuple[str, ...]) -> list[Point]:
    return next((scalars[name] for name in names if name in scalars), [])


def _steps(scalars: dict[str, list[Point]], gathered: Gathered) -> None:
    losses = _series(scalars, _LOSS)
    rates = {step: value for step, _, value in _series(scalars, _RATE)}
    norms = {step: value for step, _, value in _series(scalars, _NORM)}
    points = losses or [(step, time, NAN) for step, time, _ in _series(scalars, _RATE)]
    before: tuple[int, float] | None = None
    for step, time, loss in points:
        steps = step - before[0] if before and step > before[0] else 0
        seconds = (time - before[1]) / steps if before and steps and time > before[1] else NAN
        values = {"loss": loss, "ended": time}
        values |= {"learning_rate": rates.get(step, NAN), "gradient_norm": norms.get(step, NAN)}
        gathered.interval(step, max(1, steps), seconds, **values)
        if gathered.start.started != gathered.start.started:
            gathered.start.started = time
        before = (step, time)
    gathered.fact("seconds_include_evaluations", True)


def _evaluations(scalars: dict[str, list[Point]], gathered: Gathered) -> None:
    scores = {step: value for step, _, value in _series(scalars, _BLEU)}
    # Of the series, not of a point: in percent a first BLEU is often below 1.
    scale = 100 if max(scores.values(), default=0.0) <= 1 else 1
    for step, time, loss in _series(scalars, _EVAL_LOSS):
        row = EvaluationRow(step=step, attempt=gathered.start.number, time=time, eval_loss=loss)
        if step in scores:
            row.bleu, row.bleu_signature = scale * scores[step], "as it was logged"
        gathered.evaluations.append(row)
    if forced := _series(scalars, _TEACHER_FORCED):
        gathered.fact("teacher_forced_bleu", max(value for _, _, value in forced))


def _scalars(lines: Lines) -> Iterator[tuple[int, float, str, float]]:
    # 0.3 s: only for those who have such a file
    from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]

    for data in _records(lines):
        try:
            event = Event.FromString(data)
        except Exception:  # protobuf's own errors differ between its implementations
            return
        for value in event.summary.value:
            number = _scalar(value)
            if number is not None:
                yield event.step, event.wall_time, value.tag, number


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
    """Length, its checksum, data, its checksum. A file that is still written may end anywhere."""
    rest = b""
    for piece in lines.data():
        rest += piece
        at = 0
        while at + 12 <= len(rest):
            (length,) = struct.unpack_from("<Q", rest, at)
            if length > _LONGEST_EVENT:
                lines.damage = "its records are damaged; read up to there"
                return
            if at + 16 + length > len(rest):
                break
            yield rest[at + 12 : at + 12 + length]
            at += 16 + length
        rest = rest[at:]
