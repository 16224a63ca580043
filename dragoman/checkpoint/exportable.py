"""What can be exported where: known from the vocabulary alone, so training can say it at its start."""

from __future__ import annotations

from sentencepiece.sentencepiece_model_pb2 import (  # type: ignore[attr-defined]  # made at run time
    ModelProto,
    TrainerSpec,
)

from dragoman.data.tokens import Tokenizer
from dragoman.errors import DataError

_PIECE = ModelProto.SentencePiece


def check(tokenizer: Tokenizer, target: str) -> None:
    """Refuses what the format cannot hold. Every shape of our model fits both; a vocabulary may not."""
    if target == "huggingface" and (reason := _unlike_tokenizers(parse(tokenizer))):
        raise DataError(
            f"cannot be exported to huggingface: {reason}",
            hint="--to ctranslate2, which takes any SentencePiece model; or a vocabulary that prepare learns",
        )


def warnings(tokenizer: Tokenizer) -> list[str]:
    """What a run should say of it at its start."""
    reason = _unlike_tokenizers(parse(tokenizer))
    return [f"this model will not export to huggingface: {reason}"] if reason else []


def parse(tokenizer: Tokenizer) -> ModelProto:
    proto = ModelProto()
    proto.ParseFromString(tokenizer.model)
    return proto


def _unlike_tokenizers(proto: ModelProto) -> str:
    """Why the `tokenizers` library would split text otherwise than SentencePiece; nothing if it would not."""
    trainer, normalizer = proto.trainer_spec, proto.normalizer_spec
    if trainer.model_type != TrainerSpec.BPE:
        kind = TrainerSpec.ModelType.Name(trainer.model_type).lower()
        return f"its vocabulary is a SentencePiece model of type {kind}, expected bpe"
    if trainer.treat_whitespace_as_suffix:
        return "its vocabulary puts white space at the end of words"
    if not (
        normalizer.add_dummy_prefix and normalizer.remove_extra_whitespaces and normalizer.escape_whitespaces
    ):
        return "its vocabulary treats white space in a way of its own"
    if any(piece.type in (_PIECE.USER_DEFINED, _PIECE.BYTE) for piece in proto.pieces):
        return "its vocabulary has pieces that are bytes or symbols of the user"
    return ""
