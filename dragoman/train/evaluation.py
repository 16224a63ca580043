"""Evaluation during training by all ranks together: losses scored in the same way, and real translations."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch

from dragoman.bounds import LONGEST_TRANSLATION
from dragoman.config import Evaluate
from dragoman.data.batches import load
from dragoman.data.store import DataSet, Part
from dragoman.data.tokens import PAD
from dragoman.decode.engine import Options
from dragoman.decode.translate import hypotheses, length_limits, translate_tokens
from dragoman.measure.quality import Evaluation, Sample, Score, bleu, chrf
from dragoman.model import Transformer
from dragoman.sync.agree import any_rank, decided_by_main
from dragoman.sync.shards import whole_model
from dragoman.sync.world import World
from dragoman.train.state import State
from dragoman.train.step import tensors

Enough = Callable[[], bool]  # should an evaluation under way be given up?
_TIMED_SENTENCES = 64  # the number translated at a time
_LOSS_TOKENS = 4_096  # of one forward, both sides together; without gradients this needs little memory


class Evaluator:
    """Scores a model on the dev part and on a fixed sample of the training part."""

    def __init__(self, data: DataSet, config: Evaluate, label_smoothing: float, world: World):
        self._data = data
        self._config = config
        self._label_smoothing = label_smoothing
        self._world = world
        self._dev = data.parts["dev"]
        self._references = self._dev.text("target")
        self._bleu = partial(bleu, target_language=data.card.target_language)
        count = min(config.train_sample_pairs, len(data.train))
        # Spread evenly over the corpus: the same pairs for every seed, machine and attempt.
        self._train_sample = np.arange(count) * len(data.train) // count

    def evaluate(self, state: State) -> tuple[Evaluation, list[Sample]]:
        """Scores the model. The evaluation is the same on every rank; samples are for rank 0. Collective."""
        return self._evaluate(state, None)

    def expected_seconds(self, state: State, step_seconds: float) -> float:
        """The expected seconds of an evaluation once the model has learnt. Collective.

        An untrained model's translations end anywhere, so some sentences are translated into as many tokens
        as their references have. Losses cost a third of training on the same tokens.
        """
        count = min(_TIMED_SENTENCES, len(self._dev))
        rows = np.arange(count) * len(self._dev) // count
        length = min(LONGEST_TRANSLATION, 1 + round(float(self._dev.target.lengths(rows).mean())))
        options = Options(
            beam=self._config.beam, length_penalty=self._config.length_penalty, max_length=length
        )
        model = whole_model(state.model).eval()  # collective with shards
        began = time.monotonic()
        hypotheses(model, [self._dev.source.take(rows[i : i + 1])[0] for i in range(count)], options)
        translating = (time.monotonic() - began) * len(self._dev) / count / self._world.size
        state.model.train()
        parts = ((self._dev, np.arange(len(self._dev))), (self._data.train, self._train_sample))
        tokens = sum(float(part.target.lengths(chosen).sum()) for part, chosen in parts)
        losses = step_seconds / 3 * tokens * state.step / max(1, state.target_tokens)
        return self._world.most([translating + losses])[0]

    def evaluate_until(self, is_enough: Enough, state: State) -> tuple[Evaluation, list[Sample]] | None:
        """As `evaluate`, but None as soon as `is_enough` is true on any rank. Collective."""
        try:
            return self._evaluate(state, is_enough)
        except _GivenUp:
            return None

    def _evaluate(self, state: State, is_enough: Enough | None) -> tuple[Evaluation, list[Sample]]:
        began = time.monotonic()
        # Ranks translate different numbers of sentences, so each needs all weights. Collective with shards.
        model = whole_model(state.model).eval()
        try:
            self._agree_on(is_enough)
            eval_loss = self._loss(model, self._dev, np.arange(len(self._dev)), is_enough)
            sample_loss = self._loss(model, self._data.train, self._train_sample, is_enough)
            translations = self._translate(model, is_enough)
        finally:
            state.model.train()
        # Rank 0 alone scores; the others wait in the broadcast.
        scores = (self._bleu, chrf) if self._world.is_main else ()
        lines = [score(translations, self._references).model_dump_json() for score in scores]
        lines_of_main = decided_by_main(self._world, "\n".join(lines)).split("\n")
        bleu_score, chrf_score = map(Score.model_validate_json, lines_of_main)
        evaluation = Evaluation(
            step=state.step,
            eval_loss=eval_loss,
            train_sample_loss=sample_loss,
            bleu=bleu_score,
            chrf=chrf_score,
            seconds=time.monotonic() - began,
        )
        return evaluation, self._samples(translations)

    @torch.no_grad()
    def _loss(self, model: Transformer, part: Part, rows: np.ndarray, is_enough: Enough | None) -> float:
        """The loss per target token over these rows. Collective."""
        total, tokens = 0.0, 0
        pieces = _by_tokens(part, rows, _LOSS_TOKENS)
        for piece in pieces[self._world.rank :: self._world.size]:
            if is_enough and is_enough():
                break
            microbatch = load(part, piece)
            total += float(model(*tensors(microbatch, self._world.device), self._label_smoothing))
            tokens += microbatch.target_tokens
        self._agree_on(is_enough)
        loss, count = self._world.sum([total, float(tokens)])
        return loss / count

    def _agree_on(self, is_enough: Enough | None) -> None:
        """Gives the evaluation up on all ranks if any has had enough. Collective if `is_enough` is given."""
        if is_enough and any_rank(self._world, is_enough()):
            raise _GivenUp

    def _translate(self, model: Transformer, is_enough: Enough | None) -> list[str]:
        """Translates all dev sentences; each rank's share has sentences of all lengths. Collective."""
        source = self._dev.source
        lengths = source.lengths(np.arange(len(self._dev)))
        mine = np.argsort(lengths, kind="stable")[self._world.rank :: self._world.size]
        rows = [source.take(mine[i : i + 1])[0] for i in range(len(mine))]
        translated = translate_tokens(model, rows, self._config, is_enough)
        self._agree_on(is_enough)
        results = torch.full((len(self._dev), max(length_limits(lengths))), PAD, dtype=torch.int64)
        for row, tokens in zip(mine.tolist(), translated, strict=True):
            results[row, : len(tokens)] = torch.tensor(tokens, dtype=torch.int64)
        self._world.sum_(results)  # collective: other ranks' rows are PAD here, which is 0
        return self._data.tokenizer.decode([row[row != PAD].tolist() for row in results])

    def _samples(self, translations: Sequence[str]) -> list[Sample]:
        sources = self._dev.text("source")
        chosen = np.arange(self._config.samples) * len(sources) // max(1, self._config.samples)
        return [
            Sample(source=sources[i], reference=self._references[i], translation=translations[i])
            for i in chosen.tolist()
        ]


class _GivenUp(Exception):
    """An evaluation was given up, on all ranks at the same place."""


def _by_tokens(part: Part, rows: np.ndarray, tokens: int) -> list[np.ndarray]:
    """Groups rows of similar length, with about this many tokens in each group."""
    lengths = part.source.lengths(rows) + part.target.lengths(rows)
    order = np.argsort(lengths, kind="stable")
    pieces = np.cumsum(lengths[order]) // tokens
    return np.split(rows[order], np.flatnonzero(np.diff(pieces)) + 1)
