"""Reads the training output of OpenSeq2Seq, which `nohup` writes to nohup.out.

`time per step` is the time since the previous line divided by the steps between them, so it includes
evaluations. The first one, at step 0, is the start-up instead: session, first evaluation, first step.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from dragoman.foreign.log_facts import MOST_RANKS, NAN, YEAR, Gathered, count, printed_loss
from dragoman.measure.records import EvaluationRow, Event

NAME = "OpenSeq2Seq"
LOOKS_FOR = "OpenSeq2Seq's training lines"
# How a line begins, without any tag of mpirun before it.
BEGINS = rb"\*\*\* (?! {4}\*)|time per step|[ {]+'\w+': "

_STEP = re.compile(r"(?:Epoch \d+, )?[Gg]lobal step (\d+):")
_LOSS = re.compile(r"Train loss: (\S+)")
_PACE = re.compile(r"time per step = (\d+):(\d+):(\d+(?:\.\d+)?)")
_SETTING = re.compile(r"[ {]+'(\w+)': (\{?)(.*)$")
_PAIRS = ("Train Source", "Train Target")
_DEFAULT_INTERVAL = 100
_COUNTS = (
    ("parameters", re.compile(r"Total trainable parameters: (\d+)")),
    ("ranks", re.compile(r"Building graph in Horovod rank: (\d+)")),
    ("average_step_seconds", re.compile(r"Avg time per step: ([\d.]+)s")),
    ("objects_per_second", re.compile(r"Avg objects per second: ([\d.]+)")),
)
TEACHER_FORCED = (
    "OpenSeq2Seq computes Eval_BLEU{scores} with the reference fed to the decoder word by word "
    "(teacher forcing): it is not a BLEU of translations and cannot be compared with one"
)


class OpenSeq2Seq:
    """Reads lines in order, and keeps track of the start of the run that they belong to."""

    def __init__(self, gathered: Gathered):
        self._run = gathered
        self._step: int | None = None  # step of a line whose time is still to come
        self._loss = NAN
        self._clock = NAN  # seconds since the first line of this start
        self._last_step: int | None = None  # step of the newest complete line
        self._is_fresh = False  # the start was logged, but no step of it yet
        self._before = len(gathered.intervals["steps"])  # step lines of other files
        self._is_tail = False  # the log begins after the start
        self._opening: set[str] = set()  # beginnings of the lines that announced the newest start
        self._in_config = False
        self._section = ""
        self._config: dict[str, Any] = {}
        self._evaluation: EvaluationRow | None = None
        self._scores: list[float] = []
        self._tokens = {side: (0, 0) for side in _PAIRS}  # sentences and pieces of the printed examples
        self.is_recognised = False

    def line(self, text: str) -> None:
        if text.startswith("***"):
            self._starred(text.removeprefix("***").strip())
        elif text.startswith("time per step"):
            self._paced(text)
        elif self._in_config:
            self._setting(text)

    def _starred(self, text: str) -> None:
        self._in_config = text.startswith("Training config:")
        if step := _STEP.search(text):
            self.is_recognised, self._step = True, self._run.whole(step[1])
            loss = _LOSS.search(text)
            self._loss = printed_loss(loss[1]) if loss else NAN
            self._paced(text)
        elif text.startswith(_PAIRS):
            self._example(text)
        elif text.startswith(("Validation loss:", "Eval BL")):
            self._evaluated(text)
        elif text.startswith("Running evaluation"):
            self._finish_evaluation()
            self._evaluation = EvaluationRow(step=self._evaluation_step(), attempt=0, time=NAN)
        elif text.startswith(("Using horovod", "Starting training", "Restored", "Restoring")):
            self._began(text[:8])
        elif text.startswith("Finished training"):
            self._run.start.reason = "finished"
        else:
            self._counted(text)

    def _counted(self, text: str) -> None:
        """Reads a line with a single number."""
        run = self._run
        for name, pattern in _COUNTS:
            if not (match := pattern.match(text)):
                continue
            self.is_recognised = True
            if name == "ranks":  # NCCL's lines are more reliable if there are any
                rank = run.whole(match[1], MOST_RANKS - 1)
                if run.origin("rank_hosts") == "" and rank is not None:
                    run.fact("ranks", max(rank + 1, run.value("ranks") or 0))
            elif name == "parameters":
                run.fact(name, run.whole(match[1]))
            elif (value := run.number(match[1])) == value:
                run.fact(name, value)

    def _began(self, words: str) -> None:
        """Handles a line that announces a start.

        A start has several such lines, each once. They begin a new start if the last made steps or failed.
        """
        self.is_recognised = self._is_fresh = True
        start = self._run.start
        has_failed = start.reason and (start.is_over or start.reason == "finished" or words in self._opening)
        if start.last_step is not None or has_failed:
            self._finish_evaluation()
            self._run.begin()
            self._clock, self._step, self._last_step = NAN, None, None
            self._opening.clear()
        self._opening.add(words)

    def _setting(self, text: str) -> None:
        match = _SETTING.match(text)
        if not match:
            return
        name, opens, value = match[1], match[2], match[3].rstrip(",}")
        if text[:2] in (" '", "{'"):  # not nested
            self._section = f"{name}." if opens else ""
            if not opens:
                self._config[name] = _literal(value)
                return
            name, _, value = value.partition(":")
            name = name.strip("'\" ")
        self._config[f"{self._section}{name}"] = _literal(value.strip())

    def _paced(self, text: str) -> None:
        match = _PACE.search(text)
        if not match or self._step is None:
            return
        run = self._run
        seconds = 3600 * run.number(match[1]) + 60 * run.number(match[2]) + run.number(match[3])
        step, self._step = self._step, None
        if self._last_step is not None and step <= self._last_step:
            self._run.begin()
            self._clock, self._last_step = NAN, None
        interval = self._count("print_loss_steps") or _DEFAULT_INTERVAL
        if self._last_step is not None:
            interval = step - self._last_step
            self._mend_first(interval)
        took = run.lasting(seconds * interval, YEAR)
        self._clock = (self._clock if self._clock == self._clock else 0.0) + (took if took == took else 0.0)
        is_start, self._is_fresh = step == 0 or self._is_fresh, False
        if self._last_step is None and len(self._run.intervals["steps"]) == self._before:
            self._is_tail = not is_start
        if is_start:
            # This is start-up time divided by steps that were not made, so no step gets a time.
            self._run.event(
                Event(
                    time=0.0, attempt=self._run.start.number, step=step, kind="startup", seconds=self._clock
                )
            )
            self._run.interval(step, 1, NAN, loss=self._loss, ended=self._clock)
        else:
            self._run.interval(step, interval, seconds, loss=self._loss, ended=self._clock)
        self._last_step = step
        self._finish_evaluation()

    def _mend_first(self, interval: int) -> None:
        """Corrects the first line of a log that begins in the middle: it covers as many steps as the next."""
        steps = self._run.intervals["steps"]
        if not self._is_tail or len(steps) != self._before + 1:
            return
        more = interval - steps[-1]
        steps[-1] = interval
        self._clock += more * self._run.intervals["seconds"][-1]
        self._run.intervals["ended"][-1] = self._clock
        if (first := self._run.start.first_step) is not None:
            self._run.start.first_step = max(0, first - int(more))

    def _evaluation_step(self) -> int:
        """The step of an evaluation: a multiple of eval_steps between two printed steps."""
        if self._last_step is None:
            return 0
        every, last = self._count("eval_steps"), self._last_step
        if every:
            due = -(-last // every) * every
            if due <= last + (self._count("print_loss_steps") or _DEFAULT_INTERVAL):
                return due
        return last

    def _count(self, name: str) -> int | None:
        return count(self._config.get(name))

    def _evaluated(self, text: str) -> None:
        value = self._run.number(text.rpartition(":")[2].strip())
        self.is_recognised = True
        if self._evaluation is None:  # the log begins in the middle of an evaluation
            self._evaluation = EvaluationRow(step=self._evaluation_step(), attempt=0, time=NAN)
        if text.startswith("Validation"):
            self._evaluation.eval_loss = value
        elif value == value:
            self._scores.append(value)

    def _finish_evaluation(self) -> None:
        """Adds the pending evaluation. Called when the next step is printed, which tells the right start."""
        if self._evaluation is None:
            return
        row, self._evaluation = self._evaluation, None
        row.step = row.step or self._last_step or 0  # 0: a resumed start evaluates before its first line
        row.attempt = self._run.start.number
        if row.eval_loss is not None:
            row.time = self._clock
            self._run.evaluation(row)

    def _example(self, text: str) -> None:
        sentences, pieces = self._tokens[text[:12]]
        words = text.partition("]:")[2].split()
        # `<s>` is an input and not predicted; `</s>` counts as a token.
        self._tokens[text[:12]] = (sentences + 1, pieces + len(words) - (words[:1] == ["<s>"]))

    def finish(self) -> None:
        """Adds the facts that need the whole log."""
        if not self.is_recognised:
            return
        self._finish_evaluation()
        run = self._run
        run.source = NAME
        _settings(run, self._config)
        for side, name in zip(_PAIRS, ("source_tokens_per_pair", "target_tokens_per_pair"), strict=True):
            sentences, pieces = self._tokens[side]
            if sentences >= 10:
                run.fact(name, pieces / sentences)
        run.fact("seconds_include_evaluations", True)
        if self._scores:
            first, last = self._scores[0], self._scores[-1]
            run.fact("teacher_forced_bleu", last)
            scores = f" ({first:.4g} at the first evaluation, {last:.4g} at the last)"
            run.remark("convergence", TEACHER_FORCED.format(scores=scores))


def _settings(run: Gathered, config: dict[str, Any]) -> None:
    """Adds the printed config, under our own setting names where they mean the same."""
    names = {
        "train.steps": "max_steps",
        "evaluate.every": "eval_steps",
        "checkpoint.every": "save_checkpoint_steps",
        "train.rate": "lr_policy_params.learning_rate",
        "train.warmup_steps": "lr_policy_params.warmup_steps",
        "model.width": "encoder_params.hidden_size",
        "model.encoder_layers": "encoder_params.encoder_layers",
        "model.decoder_layers": "decoder_params.num_hidden_layers",
        "model.feedforward": "encoder_params.filter_size",
    }
    run.settings |= {f"openseq2seq.{name}": value for name, value in config.items()}
    run.settings |= {ours: config[theirs] for ours, theirs in names.items() if theirs in config}
    if "transformer_policy" in str(config.get("lr_policy", "")):
        run.settings["train.schedule"] = "transformer"
    dtype = str(config.get("dtype", ""))
    if dtype:
        run.fact("precision", "mixed" if "mixed" in dtype else "fp32" if "32" in dtype else dtype)
    if batch := count(config.get("batch_size_per_gpu")):
        run.fact("pairs_per_rank", batch * (count(config.get("iter_size")) or 1))
    if config.get("use_horovod") is False and (gpus := count(config.get("num_gpus"), MOST_RANKS)):
        run.fact("ranks", gpus)
        run.fact("machines", 1)
    if files := [
        config[f"data_layer_params.{side}_file"]
        for side in ("source", "target")
        if isinstance(config.get(f"data_layer_params.{side}_file"), str)
    ]:
        run.remark(
            "training_set",
            f"The log names the files ({', '.join(files)}) but not their sizes",
            "run `wc -l -c` on the files that the log names to get lines and bytes",
        )


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
