"""Converts a SentencePiece BPE model to a `tokenizer.json`, without needing the `tokenizers` library.

SentencePiece joins the pair whose joined piece has the best score; `tokenizers` joins the pair that comes
first in a list. A list of all pairs that form a piece, in order of the pieces' scores, gives the same result.
"""

from __future__ import annotations

import base64
from typing import Any

from sentencepiece.sentencepiece_model_pb2 import (  # type: ignore[attr-defined]  # generated at run time
    ModelProto,
    NormalizerSpec,
)

from dragoman.checkpoint import exportable
from dragoman.data.tokens import BOS, EOS, PAD, UNK, Tokenizer

_SPACE = "▁"  # SentencePiece's sign for a space


def build(tokenizer: Tokenizer) -> dict[str, Any]:
    proto = exportable.parse(tokenizer)
    pieces = [piece.piece for piece in proto.pieces]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_special(number, pieces[number]) for number in (PAD, EOS, BOS, UNK)],
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(proto.normalizer_spec)},
        "pre_tokenizer": None,
        "post_processor": _eos_template(pieces[EOS]),
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": pieces[UNK],
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {piece: number for number, piece in enumerate(pieces)},
            "merges": _merges(proto),
        },
    }


def _special(number: int, piece: str) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": piece, **flags}


def _normalizers(spec: NormalizerSpec) -> list[dict[str, Any]]:
    """Our NFC, then SentencePiece's steps: its character table, single spaces, a leading space."""
    table = base64.b64encode(spec.precompiled_charsmap).decode()
    return [
        {"type": "NFC"},
        *([{"type": "Precompiled", "precompiled_charsmap": table}] if table else []),
        {"type": "Replace", "pattern": {"Regex": "^ +| +$"}, "content": ""},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        {"type": "Prepend", "prepend": " "},
        {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE},
    ]


def _eos_template(end: str) -> dict[str, Any]:
    """The rule that adds EOS after every text."""
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    last = {"SpecialToken": {"id": end, "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [first, last],
        "pair": [first, second, last],
        "special_tokens": {end: {"id": end, "ids": [EOS], "tokens": [end]}},
    }


def _merges(proto: ModelProto) -> list[list[str]]:
    normal = proto.SentencePiece.NORMAL
    scores = {piece.piece: piece.score for piece in proto.pieces if piece.type == normal}
    return [
        [piece[:cut], piece[cut:]]
        for piece in sorted(scores, key=lambda piece: -scores[piece])
        for cut in range(1, len(piece))
        if piece[:cut] in scores and piece[cut:] in scores
    ]
