"""Tells which formats a model can be exported to.

The vocabulary alone decides it, so training can warn at its start.
"""

from __future__ import annotations

from sentencepiece.sentencepiece_model_pb2 import (  # type: ignore[attr-defined]  # made at run time
    ModelProto,
    TrainerSpec,
)

from dragoman.data.tokens import Tokenizer
from dragoman.errors import DataError

_PIECE = ModelProto.SentencePiece


def check(tokenizer: Tokenizer, target: str) -> None:
    """Raises if the format cannot hold this vocabulary. Every model shape fits both formats."""
    if target == "huggingface" and (reason := _unlike_tokenizers(parse(tokenizer))):
        raise DataError(
            f"cannot be exported to huggingface: {reason}",
            hint="use --to ctranslate2, which takes any SentencePiece model, or train with a vocabulary that "
            "dragoman prepare learns",
        )


def warnings(tokenizer: Tokenizer) -> list[str]:
    """The warnings that a run with this vocabulary prints at its start."""
    reason = _unlike_tokenizers(parse(tokenizer))
    return [f"this model will not export to huggingface: {reason}"] if reason else []


def parse(tokenizer: Tokenizer) -> ModelProto:
    proto = ModelProto()
    proto.ParseFromString(tokenizer.model)
    return proto


def _unlike_tokenizers(proto: ModelProto) -> str:
    """Why the `tokenizers` library would split text differently from SentencePiece; empty if it would not."""
    trainer, normalizer = proto.trainer_spec, proto.normalizer_spec
    if trainer.model_type != TrainerSpec.BPE:
        kind = TrainerSpec.ModelType.Name(trainer.model_type).lower()
        return f"its vocabulary is a SentencePiece model of type {kind}, expected bpe"
    if trainer.treat_whitespace_as_suffix:
        return "its vocabulary puts white space at the end of words"
    if not (
        normalizer.add_dummy_prefix and normalizer.remove_extra_whitespaces and normalizer.escape_whitespaces
    ):
        return "its vocabulary does not treat white space as SentencePiece does by default"
    if any(piece.type in (_PIECE.USER_DEFINED, _PIECE.BYTE) for piece in proto.pieces):
        return "its vocabulary has byte pieces or user-defined symbols"
    return ""
