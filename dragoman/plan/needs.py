"""What a run needs: disk for its checkpoints, memory for its ranks, bytes on the link."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dragoman.config import Training
from dragoman.cost import flops, size

_NUMBER_BYTES = 4  # weights, gradients and moments are in single precision
# Python, torch and their buffers before there is a model, and oneDNN's kernels of 0.8 MB each: about 200 if
# microbatches are counted in tokens.
_PROCESS_BYTES = 350e6 + 160e6
# Gradients of activations add to what autograd keeps. With this factor the estimate is within 5 % of the peak
# resident memory of microbatches of 1,500, 3,000 and 6,000 tokens (3 + 3 layers of 256, one thread), measured
# before oneDNN's kernels were used.
_BACKWARD = 2.2


@dataclass(frozen=True)
class Needs:
    parameters: int
    moments: int  # of the optimizer
    checkpoint_bytes: float
    checkpoints: int  # on disk at once, including the one being written
    activation_bytes: float  # of a microbatch on one rank, estimated
    step_flops: float
    gathered: int | None = None  # weights and gradients that a rank of a sharded model gathers in a step
    less_memory: str = "data.split=2"  # settings that need less, in words

    def state_bytes(self, ranks: int = 1) -> float:
        """Bytes that each rank holds between two steps, with this many ranks on a host."""
        whole = _NUMBER_BYTES * float(2 * self.parameters + self.moments)
        return whole if self.gathered is None else whole / ranks

    @property
    def gradient_bytes(self) -> float:
        return float(_NUMBER_BYTES * self.parameters)

    def rank_bytes(self, ranks: int = 1) -> float:
        """The most bytes that each rank holds, with this many ranks on a host: in the middle of a step.

        With shards it may be in an evaluation, for which every rank gathers all weights.
        """
        held = _PROCESS_BYTES + self.state_bytes(ranks)
        if self.gathered is None:
            return held + self.activation_bytes
        in_step = _NUMBER_BYTES * self.gathered + self.activation_bytes
        return held + max(in_step, float(_NUMBER_BYTES * self.parameters))


def of(settings: Training, vocabulary: int, sentence_tokens: float) -> Needs:
    """The needs of a run; `sentence_tokens` is the mean length of a sentence on either side."""
    parameters = size.parameters(settings.model, vocabulary)
    moments = size.moments(settings.model, vocabulary, settings.train.optimizer)
    tokens = settings.data.step * (1 if settings.data.unit == "tokens" else sentence_tokens)
    checkpoint = settings.checkpoint
    written = math.ceil(settings.train.steps / checkpoint.every)
    return Needs(
        parameters=parameters,
        moments=moments,
        checkpoint_bytes=_NUMBER_BYTES * (parameters + moments) + 2**20,
        checkpoints=min(written, checkpoint.keep_last + checkpoint.keep_best) + 1,
        activation_bytes=_activation_bytes(settings, sentence_tokens),
        gathered=_gathered(settings, vocabulary) if settings.sync.mode == "sharded" else None,
        step_flops=flops.step(settings.model, vocabulary, tokens, tokens, tokens / sentence_tokens),
        less_memory=less_memory(settings),
    )


def less_memory(settings: Training) -> str:
    """The settings that would make a rank need less memory than these do, in words."""
    found = [f"data.split={2 * settings.data.split}"]
    if not settings.train.recompute:
        found.append("train.recompute=true")
    if settings.sync.mode != "sharded" and settings.train.optimizer != "muon":
        found.append("sync.mode=sharded")
    *others, last = found
    return f"{', '.join(others)} or {last}" if others else last


def _gathered(settings: Training, vocabulary: int) -> int:
    """The numbers that a rank gathers: the embedding and its gradient, two layers and a layer's gradients.

    The gradients exist twice while they are sent.
    """
    embedding, (encoder, decoder) = vocabulary * settings.model.width, size.layers(settings.model)
    return 3 * embedding + 4 * max(encoder, decoder)


def _activation_bytes(settings: Training, sentence_tokens: float) -> float:
    """Bytes of a microbatch's activations in single precision.

    What autograd keeps was counted with its own hooks. Per token and layer: 35 bytes for each channel in the
    encoder, 60 in the decoder, 4 for each inner channel, and 9 for each head and attended token. Around the
    layers: 20 bytes for each channel. With `train.recompute`, autograd keeps 4 bytes for each channel of a
    layer's input, and all of the one layer that is being computed again.
    """
    model, data = settings.model, settings.data
    attended = 9 * model.heads * sentence_tokens
    encoder = 35 * model.width + 4 * model.feedforward + attended
    decoder = 60 * model.width + 4 * model.feedforward + 2 * attended
    tokens = data.microbatch_size * (1 if data.unit == "tokens" else sentence_tokens) / data.split
    around = _BACKWARD * 20 * model.width
    if settings.train.recompute:
        inputs = _NUMBER_BYTES * model.width * (model.encoder_layers + model.decoder_layers)
        return tokens * (inputs + _BACKWARD * max(encoder, decoder) + around)
    layers = model.encoder_layers * encoder + model.decoder_layers * decoder
    return tokens * (_BACKWARD * layers + around)
