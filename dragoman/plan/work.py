"""What is to be computed: a config's step and run, on a corpus that is known or taken as usual."""

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

# Subword tokens of a sentence where nobody counted: news and parliament, 32,000 joint pieces.
USUAL_TOKENS = (25.0, 32.0)
USUAL_DEV_PAIRS = 3_000
_MEMORY_SHARE = 0.25  # by which a rank's memory may differ from the count of its tensors


@dataclass(frozen=True)
class CorpusSize:
    """As much of a data set as decides the cost of training on it."""

    vocabulary: int
    source_tokens: Estimate  # of a sentence, its end included
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
        said = [
            f"a vocabulary of {vocabulary:,} pieces, as prepare makes it (--data DATA knows)",
            f"{low:.0f} to {high:.0f} tokens in a sentence, as news and parliament have (--data DATA knows)",
            f"{USUAL_DEV_PAIRS:,} held-out pairs to translate at each evaluation (--data DATA knows)",
        ]
        return cls(vocabulary, tokens, tokens, pairs, USUAL_DEV_PAIRS, said)

    @property
    def sentence_tokens(self) -> float:
        return (self.source_tokens.value + self.target_tokens.value) / 2


@dataclass(frozen=True)
class Work:
    settings: Training
    corpus: CorpusSize

    @property
    def parameters(self) -> int:
        return size.parameters(self.settings.model, self.corpus.vocabulary)

    @property
    def gradient_tensors(self) -> list[int]:
        """Bytes in single precision, in the order in which they are ready."""
        return [4 * count for count in size.tensors(self.settings.model, self.corpus.vocabulary)[::-1]]

    @property
    def microbatches(self) -> int:
        """Of a step."""
        data = self.settings.data
        return StepSize(data.step, data.microbatch, data.unit).microbatches

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

    def decoding_flops(self) -> float:
        """Of translating the held-out pairs once: every hypothesis of the search goes through the decoder."""
        corpus, beam = self.corpus, self.settings.evaluate.beam
        pairs = corpus.dev_pairs
        target = beam * pairs * corpus.target_tokens.value
        return flops.forward(
            self.settings.model, corpus.vocabulary, pairs * corpus.source_tokens.value, target, pairs
        )

    def steps(self, epochs: float | None) -> Estimate:
        """Of the whole run: as the config says, or so many times through the corpus."""
        if epochs is None:
            return Estimate.exactly(self.settings.train.steps, "train.steps")
        if not self.corpus.pairs:
            raise UsageError("--epochs without a corpus", hint="add --data DATA or --pairs N")
        counts = {
            case: max(1, math.ceil(epochs * self.corpus.pairs / self.pairs_per_step(case))) for case in CASES
        }
        low, high = sorted((counts["low"], counts["high"]))
        return Estimate(counts["value"], low, high, f"{epochs:g} x {self.corpus.pairs:,} pairs")

    @property
    def memory_bytes(self) -> Estimate:
        """Of a rank, in the middle of a step."""
        wanted = needs.of(self.settings, self.corpus.vocabulary, self.corpus.sentence_tokens)
        total = wanted.rank_bytes + self._way.memory_bytes(self.parameters)
        return Estimate.within(total, _MEMORY_SHARE, "weights, gradients, moments and what autograd keeps")

    @property
    def disk_bytes(self) -> Estimate:
        """Of the checkpoints that are there at once, on the host of rank 0."""
        wanted = needs.of(self.settings, self.corpus.vocabulary, self.corpus.sentence_tokens)
        outer = self._way.saved_bytes(self.parameters)
        each = wanted.checkpoint_bytes + outer
        each_parameter = f"{4 + (4 * wanted.moments + outer) / wanted.parameters:.3g} bytes per parameter"
        source = f"{wanted.checkpoints} checkpoints of {each_parameter}, one of them being written"
        return Estimate.within(each * wanted.checkpoints, 0.02, source)

    @property
    def _way(self) -> ExchangeWay:
        """How gradients travel on one host: what an exchange keeps of its own is the same on any cluster."""
        return open_ways(self.settings.sync, rank_hosts=[0])[0]
