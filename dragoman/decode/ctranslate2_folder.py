"""Reads and checks a folder in CTranslate2's format, whoever converted it, and its SentencePiece models.

The checks name the damaged file wherever possible: CTranslate2 itself opens anything that has the right name,
and waits forever on a pipe.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from sentencepiece import SentencePieceProcessor

from dragoman.content import read_whole
from dragoman.data import tokens
from dragoman.decode.engine import CTRANSLATE2_FILE
from dragoman.errors import CheckpointError, reading

CONFIG_FILE = "config.json"
CONVERT_AGAIN = "convert or export the model again"

# Names of the SentencePiece models in a folder: one for each side, or one for both.
_SEPARATE = ("source.spm", "target.spm")  # OPUS-MT
_SHARED = ("vocabulary.model", "sentencepiece.model", "spm.model", "spiece.model", "sentencepiece.bpe.model")

# Stems of the files that list the vocabulary of the weights in the order of ids, which CTranslate2 reads.
_PIECES = {side: (f"{side}_vocabulary", "shared_vocabulary") for side in ("source", "target")}
# Types of the config values that CTranslate2 needs. It reads some only when it translates, in its own thread,
# where an error sometimes crashed the process.
_CONFIG_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("add_source_bos", "add_source_eos"), (bool,)),
    **dict.fromkeys(("bos_token", "eos_token", "unk_token", "decoder_start_token"), (str,)),
    "layer_norm_epsilon": (int, float, NoneType),
}
_LEAST_KNOWN = 0.5  # share of SentencePiece's pieces that the weights know; nearly 1 if they belong together


@dataclass(frozen=True)
class Folder:
    """What an engine needs to know about a model folder."""

    source: SentencePieceProcessor
    target: SentencePieceProcessor
    pieces: int  # size of the target vocabulary
    end: str  # the piece that closes a sentence
    wants_end: bool  # after a source: the model was trained with it, but CTranslate2 does not add it
    languages: tuple[str, str] | None


def read(folder: Path) -> Folder:
    _check_files(folder)
    config = _read_object(folder / CONFIG_FILE)
    source, target = _vocabularies(folder)
    processors = {"source": _processor(source), "target": _processor(target)}
    for key, types in _CONFIG_TYPES.items():
        if not isinstance(value := config.get(key), types):
            raise CheckpointError(f"{key} is {value!r}", path=folder / CONFIG_FILE, hint=CONVERT_AGAIN)
    _check_pieces(folder, "source", source, processors["source"])
    pieces = _check_pieces(folder, "target", target, processors["target"])
    end = config["eos_token"]
    # Models trained with Transformers' classes saw EOS after the source, and their converter leaves adding it
    # to the caller. Such models start their decoder from EOS.
    wants_end = not config["add_source_eos"] and config["decoder_start_token"] == end
    languages = _languages(config) or _languages(_read_object(folder / "tokenizer_config.json"))
    return Folder(processors["source"], processors["target"], pieces, end, wants_end, languages)


def _check_files(folder: Path) -> None:
    """Refuse a folder, a pipe or a broken link in place of a file."""
    stems = {stem for names in _PIECES.values() for stem in names}
    texts = (f"{stem}{suffix}" for stem in stems for suffix in (".json", ".txt"))
    for name in (CTRANSLATE2_FILE, CONFIG_FILE, *_SEPARATE, *_SHARED, "vmap.txt", *sorted(texts)):
        if os.path.lexists(folder / name) and not (folder / name).is_file():
            raise CheckpointError("not a file", path=folder / name)


def _vocabularies(folder: Path) -> tuple[Path, Path]:
    source, target = (folder / name for name in _SEPARATE)
    if source.is_file() and target.is_file():
        return source, target
    for name in _SHARED:
        if (folder / name).is_file():
            return folder / name, folder / name
    raise CheckpointError(
        f"no SentencePiece model beside {CTRANSLATE2_FILE}: expected {' and '.join(_SEPARATE)}, "
        f"or one of {', '.join(_SHARED)}",
        path=folder,
        hint="copy it there from the original model; the converter's --copy_files does this",
    )


def _processor(path: Path) -> SentencePieceProcessor:
    return tokens.processor(read_whole(path, CheckpointError, tokens.LARGEST_BYTES), path, CheckpointError)


def _check_pieces(folder: Path, side: str, path: Path, processor: SentencePieceProcessor) -> int:
    """The size of the weights' vocabulary; refuses a SentencePiece model whose pieces they do not know."""
    with reading(path, CheckpointError):
        pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    for name in (f"{stem}{suffix}" for stem in _PIECES[side] for suffix in (".json", ".txt")):
        if (folder / name).is_file():
            known = _read_pieces(folder / name)
            if len(set(known).intersection(pieces)) < _LEAST_KNOWN * len(pieces):
                raise CheckpointError(
                    f"most of its pieces are not in {name}; it may belong to another model", path=path
                )
            return len(known)
    return len(pieces)  # an old model, whose weights contain their vocabulary


def _read_pieces(path: Path) -> Sequence[str]:
    with reading(path, CheckpointError):
        if path.suffix == ".txt":
            return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        pieces = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
            raise ValueError("expected a list of pieces")
        return pieces


def _languages(config: dict[str, Any]) -> tuple[str, str] | None:
    """Source and target language, as our export or an OPUS-MT tokenizer stores them."""
    source, target = config.get("source_lang"), config.get("target_lang")
    return (source, target) if isinstance(source, str) and isinstance(target, str) else None


def _read_object(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    with reading(path, CheckpointError):
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("expected a JSON object")
        return content
