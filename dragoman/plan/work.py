"""The work of a config's step and run, on a known corpus or on one of usual size."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dragoman.config import Training
from dragoman.cost import flops, size
from dragoman.data.batches import StepSize
from dragoman.data.card import Card
from dragoman.data.tokens import MOST_SUITED_PIECES, suited_pieces
from dragoman.errors import UsageError
from dragoman.exchange_way import ExchangeWay, open_ways
from dragoman.plan import needs
from dragoman.plan.estimate import CASES, Case, Estimate

# Subword tokens per sentence if nobody counted: news and parliament, 32,000 joint pieces.
USUAL_TOKENS = (25.0, 32.0)
USUAL_DEV_PAIRS = 3_000
_MEMORY_SHARE = 0.25  # how far a rank's memory may be from the count of its tensors


@dataclass(frozen=True)
class CorpusSize:
    """The sizes of a data set that decide the cost of training on it."""

    vocabulary: int
    source_tokens: Estimate  # of a sentence, including its end
    target_tokens: Estimate
    pairs: int | None  # of the training part
    dev_pairs: int
    assumptions: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, card: Card) -> CorpusSize:
        source = "counted in the data set"
        train = card.parts["train"]
        dev = card.parts.get("dev")
        return cls(
            vocabulary=card.vocabulary_pieces,
            source_tokens=Estimate.exactly(train.source.tokens / train.pairs, source),
            target_tokens=Estimate.exactly(train.target.tokens / train.pairs, source),
            pairs=sum(round(corpus.pairs * corpus.weight) for corpus in card.corpora) or train.pairs,
            dev_pairs=dev.pairs if dev else 0,
        )

    @classmethod
    def usual(cls, pairs: int | None) -> CorpusSize:
        low, high = USUAL_TOKENS
        tokens = Estimate((low * high) ** 0.5, low, high, "usual for news and parliament")
        vocabulary = suited_pieces(pairs) if pairs else MOST_SUITED_PIECES
        assumptions = [
            f"a vocabulary of {vocabulary:,} pieces, the default of prepare (--data DATA for the real size)",
            f"{low:.0f} to {high:.0f} tokens per sentence, as in news and parliament (--data DATA to count)",
            f"{USUAL_DEV_PAIRS:,} held-out pairs to translate at each evaluation (--data DATA to count)",
        ]
        return cls(vocabulary, tokens, tokens, pairs, USUAL_DEV_PAIRS, assumptions)

    @property
    def sentence_tokens(self) -> float:
        return (self.source_tokens.value + self.target_tokens.value) / 2


@dataclass(frozen=True)
class Work:
    """What a run has to compute and store."""

    settings: Training
    corpus: CorpusSize

    @property
    def parameters(self) -> int:
        return size.parameters(self.settings.model, self.corpus.vocabulary)

    @property
    def gradient_tensors(self) -> list[int]:
        """Bytes of each gradient in single precision, in the order in which they are ready."""
        return [4 * count for count in size.tensors(self.settings.model, self.corpus.vocabulary)[::-1]]

    @property
    def microbatches(self) -> int:
        """The number in a step."""
        data = self.settings.data
        return StepSize(data.step, data.microbatch_size, data.unit).microbatches

    def pairs_per_step(self, case: Case = "value") -> float:
        data = self.settings.data
        tokens = (self.corpus.source_tokens.at(case) + self.corpus.target_tokens.at(case)) / 2
        return data.step if data.unit == "pairs" else data.step / tokens

    def flops_per_step(self, case: Case = "value") -> float:
        pairs = self.pairs_per_step(case)
        source, target = (
            pairs * tokens.at(case) for tokens in (self.corpus.source_tokens, self.corpus.target_tokens)
        )
        return flops.step(self.settings.model, self.corpus.vocabulary, source, target, pairs)

    def computed_flops_per_step(self, case: Case = "value") -> float:
        """FLOPs per step including those that `train.recompute` computes a second time."""
        once, pairs, corpus = self.flops_per_step(case), self.pairs_per_step(case), self.corpus
        if not self.settings.train.recompute:
            return once
        source, target = pairs * corpus.source_tokens.at(case), pairs * corpus.target_tokens.at(case)
        return once + flops.recomputed(self.settings.model, source, target, pairs)

    def decoding_flops(self) -> float:
        """FLOPs to translate the held-out pairs once: the decoder computes every hypothesis of the beam."""
        corpus, beam = self.corpus, self.settings.evaluate.beam
        pairs = corpus.dev_pairs
        target = beam * pairs * corpus.target_tokens.value
        return flops.forward(
            self.settings.model, corpus.vocabulary, pairs * corpus.source_tokens.value, target, pairs
        )

    def steps(self, epochs: float | None) -> Estimate:
        """The steps of the whole run: `train.steps`, or this many passes over the corpus."""
        if epochs is None:
            return Estimate.exactly(self.settings.train.steps, "train.steps")
        if not self.corpus.pairs:
            raise UsageError("--epochs needs the size of the corpus", hint="add --data DATA or --pairs N")
        counts = {
            case: max(1, math.ceil(epochs * self.corpus.pairs / self.pairs_per_step(case))) for case in CASES
        }
        low, high = sorted((counts["low"], counts["high"]))
        return Estimate(counts["value"], low, high, f"{epochs:g} x {self.corpus.pairs:,} pairs")

    def memory_bytes(self, ranks: int) -> Estimate:
        """Memory of each rank of a host with this many ranks, in the middle of a step."""
        run_needs = needs.of(self.settings, self.corpus.vocabulary, self.corpus.sentence_tokens)
        total = run_needs.rank_bytes(ranks) + self.way.memory_bytes(self.parameters)
        return Estimate.within(total, _MEMORY_SHARE, "weights, gradients, moments and what autograd keeps")

    @property
    def disk_bytes(self) -> Estimate:
        """Disk for all checkpoints kept at one time, on the host of rank 0."""
        run_needs = needs.of(self.settings, self.corpus.vocabulary, self.corpus.sentence_tokens)
        outer = self.way.saved_bytes(self.parameters)
        each = run_needs.checkpoint_bytes + outer
        per_parameter = 4 + (4 * run_needs.moments + outer) / run_needs.parameters
        count = run_needs.checkpoints
        source = (
            f"{count} checkpoints of {per_parameter:.3g} bytes per parameter, including one being written"
        )
        return Estimate.within(each * count, 0.02, source)

    @property
    def way(self) -> ExchangeWay:
        """How gradients travel on one host. What an exchange keeps is the same size on any cluster."""
        return open_ways(self.settings.sync, rank_hosts=[0])[0]
