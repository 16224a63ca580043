"""Reads trainer_state.json, which Hugging Face's Trainer writes with every checkpoint."""

from __future__ import annotations

import json
from typing import Any

from dragoman.errors import LogError, reading
from dragoman.foreign.lines import Lines
from dragoman.foreign.log_facts import NAN, YEAR, Gathered, bleu_scale, count, number, printed_loss
from dragoman.measure.records import EvaluationRow, Event

NAME = "Hugging Face Trainer"
LOOKS_FOR = "a Hugging Face trainer_state.json"
MOST_BYTES = 1 << 26  # parsed JSON takes twenty times its size in memory


def is_one(head: bytes) -> bool:
    start = head.lstrip()
    return start.startswith(b"{") and (b'"best_metric"' in start or b'"log_history"' in start)


def read(lines: Lines, gathered: Gathered) -> None:
    state = _state(lines)
    history = state.get("log_history")
    history = [row for row in history if isinstance(row, dict)] if isinstance(history, list) else []
    evaluations = [row for row in history if any(name.startswith("eval_") for name in row)]
    summary: dict[str, Any] = next((row for row in reversed(history) if "train_runtime" in row), {})
    steps = gathered.step(state.get("global_step")) or 0
    evaluated = sum(_lasted(row, "eval_runtime", gathered) for row in evaluations if "eval_runtime" in row)
    whole = _lasted(summary, "train_runtime", gathered)
    if whole <= evaluated:  # the run resumed from a checkpoint, which restarts the Trainer's clock
        whole = NAN
    # the Trainer's clock also runs during evaluations
    seconds = (whole - evaluated) / steps if steps > 0 else NAN
    last = 0
    for row in history:
        step = gathered.step(row.get("step")) or 0
        if "loss" in row and step > last:
            gathered.interval(
                step,
                step - last,
                seconds,
                loss=printed_loss(row["loss"]),
                learning_rate=gathered.number(row.get("learning_rate")),
                gradient_norm=gathered.number(row.get("grad_norm")),
            )
            last = step
    if steps > last:
        gathered.interval(steps, steps - last, seconds)
    scale = bleu_scale(score for score in map(_bleu, evaluations) if score == score)
    for row in evaluations:
        _evaluation(row, scale, gathered)
    _facts(state, summary, gathered)
    if whole == whole:
        gathered.fact("one_mean", "the Trainer's run time without evaluations, divided by its steps")
        gathered.fact("wall_seconds", whole)
        gathered.remark(
            "step_time",
            "The Trainer restarts its clock when it resumes from a checkpoint: if it did, steps took longer",
        )
    # A state written with the last checkpoint has no summary, but all its steps are complete.
    gathered.start.reason = "finished" if steps >= number(state.get("max_steps")) > 0 else None
    gathered.source = NAME


def _state(lines: Lines) -> dict[str, Any]:
    parts, size = [], 0
    for piece, _ in lines.pieces():
        parts.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise LogError(
                f"trainer_state.json is larger than {MOST_BYTES >> 20} MiB, the limit", path=lines.path
            )
    with reading(lines.path, LogError, "copy the file again: a file that is cut short cannot be read"):
        state = json.loads(b"".join(parts))
    if not isinstance(state, dict):
        raise LogError("not a trainer state: the file holds no JSON object", path=lines.path)
    return state


def _lasted(row: dict[str, Any], name: str, gathered: Gathered) -> float:
    return gathered.lasting(gathered.number(row.get(name)), YEAR)


def _bleu(row: dict[str, Any]) -> float:
    return number(row.get("eval_bleu", row.get("eval_sacrebleu")))


def _evaluation(row: dict[str, Any], scale: int, gathered: Gathered) -> None:
    step, loss = gathered.step(row.get("step")), gathered.number(row.get("eval_loss"))
    bleu = scale * _bleu(row)
    seconds = _lasted(row, "eval_runtime", gathered)
    if step is None:
        return
    attempt = gathered.start.number
    gathered.evaluation(
        EvaluationRow(
            step=step,
            attempt=attempt,
            time=NAN,
            eval_loss=loss if "eval_loss" in row else None,  # NaN: training diverged
            bleu=bleu if bleu == bleu else None,
            bleu_signature="as computed by the training script" if bleu == bleu else None,
            seconds=seconds if seconds == seconds else None,
        )
    )
    if seconds == seconds:
        event = Event(time=NAN, attempt=attempt, step=step, kind="evaluation", seconds=seconds)
        gathered.event(event)


def _facts(state: dict[str, Any], summary: dict[str, Any], gathered: Gathered) -> None:
    settings = {
        "train.steps": "max_steps",
        "evaluate.every": "eval_steps",
        "checkpoint.every": "save_steps",
        "huggingface.train_batch_size": "train_batch_size",
        "huggingface.num_train_epochs": "num_train_epochs",
    }
    counts = {ours: count(state.get(theirs)) for ours, theirs in settings.items()}
    gathered.settings |= {name: value for name, value in counts.items() if value}
    flos, steps = number(state.get("total_flos")), number(state.get("global_step"))
    if flos > 0 and steps > 0:
        gathered.fact("flops_per_step", flos / steps)
    samples, per_second = (
        number(summary.get("train_samples_per_second")),
        number(summary.get("train_steps_per_second")),
    )
    if samples > 0 and per_second > 0:
        gathered.remark(
            "step_time", f"The Trainer's own rates give about {samples / per_second:,.0f} pairs per step"
        )
