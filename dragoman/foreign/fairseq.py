"""Reads the log of fairseq-train, in `simple` or `json` format."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from statistics import median
from typing import Any

from dragoman.foreign.cluster import moment
from dragoman.foreign.log_facts import ESTIMATED, MOST_RANKS, NAN, YEAR, Gathered, count, number, printed_loss
from dragoman.measure.records import EvaluationRow, Event

NAME = "fairseq"
LOOKS_FOR = "fairseq's training lines"
# Lines with times (from 0.10 on), with Hydra's times, and without times (up to 0.9).
BEGINS = (
    rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \| |\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+\]\[|Namespace\("
    rb"|\| (?:epoch \d|num\. |training on|saved checkpoint|[Ll]oaded |done training|model |\S+ train )"
)

_LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) \| (?:INFO|WARNING|ERROR) \| (\S+) \| (.*)$")
_HYDRA = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+\]\[(\S+?)\]\[[A-Z]+\] - (.*)$")
# \b: a word is tried only from its beginning; otherwise a long one would take time squared in its length.
_SIMPLE = re.compile(r"\b(\w+)=([^,\s]+)")
_COLUMNS = re.compile(r"\b(\w+) ([^|\s]+)")
_SETTING = re.compile(r"'(\w+)': ('[^']*'|\[[^\[\]]*\]|[^,{}\[\]]+)")
_ARGUMENT = re.compile(r"\b(\w+)=('[^']*'|\[[^\[\]]*\]|[^,()]+)")
_SCHEDULE = re.compile(r"\blr_scheduler'?(?::|=) ?(?:\{'_name': )?'(\w+)'")
_SUBSET = re.compile(r"valid on '([^']+)' subset")
_SETTINGS = {  # fairseq's name -> ours
    "max_update": "train.steps",
    "warmup_updates": "train.warmup_steps",
    "encoder_embed_dim": "model.width",
    "encoder_layers": "model.encoder_layers",
    "decoder_layers": "model.decoder_layers",
    "encoder_ffn_embed_dim": "model.feedforward",
}
_LOG_INTERVAL = 100  # fairseq's default
_KEPT = (
    "log_interval",
    "max_tokens",
    "batch_size",
    "update_freq",
    "fp16",
    "bf16",
    "distributed_world_size",
    "lr_scheduler",
)


class Fairseq:
    def __init__(self, gathered: Gathered):
        self._run = gathered
        self._time = NAN
        self._last: tuple[int, float] | None = None  # updates and training seconds of the previous line
        self._subset = ""  # the validation set whose scores are read
        self.is_recognised = False

    def line(self, text: str) -> None:
        match = _LINE.match(text) or _HYDRA.match(text)
        if not match:
            plain = text.lstrip("| ")
            is_step = re.match(r"epoch \d+: ", plain)
            self._message(
                "valid" if "| valid on" in plain else "train_inner" if is_step else "fairseq", plain
            )
            return
        self._time = self._run.dated(moment(match[1]))
        self._message(match[2], match[3])

    def _message(self, logger: str, text: str) -> None:
        if logger == "train_inner" or re.match(r"epoch \d+: +\d+ / ", text):
            self._interval(_json(text) or dict(_SIMPLE.findall(text)))
        elif logger.startswith("valid") and self._is_first_subset(logger, text):
            self._evaluation(_json(text) or dict(_COLUMNS.findall(text)))
        elif logger.startswith(("fairseq", "fairseq_cli")):
            self._fact(text)

    def _is_first_subset(self, logger: str, text: str) -> bool:
        """Whether a line is about the first validation set. Mixing several would give a useless curve."""
        named = _SUBSET.search(text)
        self._subset = self._subset or (named[1] if named else logger)
        return self._subset == (named[1] if named else logger)

    def _interval(self, values: dict[str, Any]) -> None:
        run = self._run
        step, wall = run.step(values.get("num_updates")), run.number(values.get("wall"))
        if step is None:
            return
        self.is_recognised = True
        if self._last and step <= self._last[0]:
            self._last = None
            self._run.begin()
        interval = count(run.settings.get("fairseq.log_interval")) or _LOG_INTERVAL
        steps = step - self._last[0] if self._last else min(step, interval)
        elapsed = wall - self._last[1] if self._last else NAN
        seconds = _seconds(str(values.get("ups")), elapsed, steps)
        self._last = (step, wall)
        self._run.interval(
            step,
            steps,
            seconds,
            ended=self._time if self._time == self._time else run.lasting(wall, YEAR),
            loss=printed_loss(values.get("loss")),
            learning_rate=run.number(values.get("lr")),
            gradient_norm=run.number(values.get("gnorm")),
            target_tokens=run.number(values.get("wpb")),
            pairs=run.number(values.get("bsz")),
        )

    def _evaluation(self, values: dict[str, Any]) -> None:
        plain = {name.removeprefix("valid_"): value for name, value in values.items()}
        run = self._run
        step, loss = run.step(plain.get("num_updates")), run.number(plain.get("nll_loss", plain.get("loss")))
        if step is None or loss != loss:
            return
        self.is_recognised = True
        bleu = run.number(plain.get("bleu"))
        run.evaluation(
            EvaluationRow(
                step=step,
                attempt=run.start.number,
                time=self._time,
                eval_loss=loss,
                bleu=bleu if bleu == bleu else None,
                bleu_signature="fairseq's own, see --eval-bleu-remove-bpe" if bleu == bleu else None,
            )
        )

    def _fact(self, text: str) -> None:
        run = self._run
        if text.startswith("{'_name'") or text.startswith("Namespace("):
            self.is_recognised = True
            if run.start.last_step is not None or run.start.reason:
                run.begin()
                self._last = None
            run.start.started = self._time
            self._config(text)
        elif match := re.match(r"num\. (?:shared )?model params: ([\d,]+)", text):
            if run.value("parameters") is None or "shared" in text:
                run.fact("parameters", run.whole(match[1]))
        elif match := re.match(r"training on (\d+) (?:devices|GPUs)", text):
            run.fact("ranks", run.whole(match[1], MOST_RANKS) or None)
        elif match := re.match(r"[Ll]oaded checkpoint \S+ \(epoch \d+ @ (\d+) updates\)", text):
            step = run.whole(match[1])
            self._last = None if step is None else (step, NAN)
        elif match := re.match(
            r"loaded ([\d,]+) examples from: \S*train\.|\S+ train (?:\S+ )?(\d+) ex", text
        ):
            run.fact("training_lines", run.whole(match[1] or match[2]))
        elif match := re.search(r"\(writing took ([\d.]+) seconds\)", text):
            seconds = run.lasting(run.number(match[1]))
            run.event(
                Event(
                    time=self._time,
                    attempt=run.start.number,
                    step=run.start.last_step or 0,
                    kind="checkpoint",
                    seconds=0.0 if seconds != seconds else seconds,
                )
            )
        elif match := re.match(r"done training in ([\d.]+) seconds", text):
            run.start.reason, run.start.ended = "finished", self._time
        elif match := re.search(r"name = (\S.*)$", text):
            run.fact("device", match[1].rstrip())

    def _config(self, text: str) -> None:
        pattern = _ARGUMENT if text.startswith("Namespace(") else _SETTING
        values = {name: _literal(value) for name, value in pattern.findall(text)}
        settings = {ours: values[theirs] for theirs, ours in _SETTINGS.items() if theirs in values}
        self._run.settings |= {name: number for name, value in settings.items() if (number := count(value))}
        self._run.settings |= {f"fairseq.{name}": values[name] for name in _KEPT if name in values}
        precision = "mixed" if values.get("fp16") is True or values.get("bf16") is True else "fp32"
        self._run.fact("precision", precision)
        if precision == "mixed":
            # fairseq exchanges gradients in the precision of the model
            self._run.fact("gradient_bytes_per_parameter", 2)
        schedule = _SCHEDULE.search(text)
        if (
            schedule
            and schedule[1] == "inverse_sqrt"
            and isinstance(rates := values.get("lr"), list)
            and rates
            and isinstance(rates[0], int | float)
        ):
            self._run.settings |= {"train.schedule": "inverse_sqrt", "train.rate": rates[0]}
        if isinstance(frequency := values.get("update_freq"), list) and frequency:
            self._run.fact("microbatches_per_rank", count(frequency[0]))

    def finish(self) -> None:
        if self.is_recognised:
            self._run.source = NAME
            self._batch()
            self._run.remark(
                "convergence",
                "Held-out losses are fairseq's nll_loss, in bits per token (base 2), without label smoothing",
            )

    def _batch(self) -> None:
        """Estimates the pairs and tokens of one rank's step from the logged means of all ranks."""
        pairs, tokens = (_median(self._run.intervals[name]) for name in ("pairs", "target_tokens"))
        if pairs and (ranks := self._run.value("ranks")):
            self._run.fact("pairs_per_rank", pairs / ranks, ESTIMATED)
        if pairs and tokens:
            self._run.fact("target_tokens_per_pair", tokens / pairs, ESTIMATED)


def _median(values: Sequence[float]) -> float | None:
    known = [value for value in values if value > 0]
    return median(known) if known else None


def _seconds(per_second: str, elapsed: float, steps: int) -> float:
    """The seconds of a step, from `wall` if it agrees with `ups`, else from `ups` if that is precise enough.

    `ups` has few decimals, and up to fairseq 0.9 none. `wall` has whole seconds and includes evaluations.
    """
    rate, decimals = number(per_second), len(per_second.partition(".")[2])
    if elapsed > (100 if decimals > 1 else 20) and abs(steps / elapsed - rate) <= 0.6 * 10.0**-decimals:
        return elapsed / steps
    return 1 / rate if rate > 0 and decimals > 0 else NAN


def _json(text: str) -> dict[str, Any] | None:
    """The values of a line in json format, whose numbers are strings; None for other lines."""
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    value = value if isinstance(value, dict) else {}
    return {name.removeprefix("train_"): inner for name, inner in value.items()}


def _literal(text: str) -> Any:
    text = text.strip()
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    if text.startswith("["):
        return [_literal(part) for part in text[1:-1].split(",") if part.strip()]
    try:
        return float(text) if "." in text or "e" in text else int(text)
    except ValueError:
        return text.strip("'")
