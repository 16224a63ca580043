"""A folder in CTranslate2's format, ours or another's, with its SentencePiece models: what it says of itself.

What is wrong is found here as far as it can be, and named by its file: CTranslate2 itself opens whatever has
the right name, and waits forever for a pipe.
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
AGAIN = "convert or export the model again"

# Names under which a folder holds its SentencePiece models: one for each side, or one for both.
_OF_EACH_SIDE = ("source.spm", "target.spm")  # OPUS-MT
_OF_BOTH = ("vocabulary.model", "sentencepiece.model", "spm.model", "spiece.model", "sentencepiece.bpe.model")

# And the pieces that the weights are for, in the order of their ids, which CTranslate2 reads.
_PIECES = {side: (f"{side}_vocabulary", "shared_vocabulary") for side in ("source", "target")}
# What CTranslate2 needs of its config. Some of it is read only when it translates, in a thread of its own:
# an error there now and then crashed the process.
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("add_source_bos", "add_source_eos"), (bool,)),
    **dict.fromkeys(("bos_token", "eos_token", "unk_token", "decoder_start_token"), (str,)),
    "layer_norm_epsilon": (int, float, NoneType),
}
_LEAST_KNOWN = 0.5  # of a SentencePiece model's pieces; of one that belongs to the weights, nearly all


@dataclass(frozen=True)
class Folder:
    """What an engine must know."""

    source: SentencePieceProcessor
    target: SentencePieceProcessor
    pieces: int  # of the target's vocabulary
    end: str  # the piece that closes a sentence
    wants_end: bool  # after a source: the model was trained with it, and CTranslate2 does not add it
    languages: tuple[str, str] | None


def read(folder: Path) -> Folder:
    _check_files(folder)
    config = _read_object(folder / CONFIG_FILE)
    source, target = _vocabularies(folder)
    processors = {"source": _processor(source), "target": _processor(target)}
    for key, types in _TYPES.items():
        if not isinstance(value := config.get(key), types):
            raise CheckpointError(f"{key} is {value!r}", path=folder / CONFIG_FILE, hint=AGAIN)
    _check_pieces(folder, "source", source, processors["source"])
    pieces = _check_pieces(folder, "target", target, processors["target"])
    end = config["eos_token"]
    # Models that Transformers' classes trained were shown the end of the source, and their converter leaves
    # it to the caller. They are those whose decoder starts from EOS.
    wants_end = not config["add_source_eos"] and config["decoder_start_token"] == end
    languages = _languages(config) or _languages(_read_object(folder / "tokenizer_config.json"))
    return Folder(processors["source"], processors["target"], pieces, end, wants_end, languages)


def _check_files(folder: Path) -> None:
    """A folder, a pipe or a link that leads nowhere in place of a file."""
    stems = {stem for names in _PIECES.values() for stem in names}
    texts = (f"{stem}{suffix}" for stem in stems for suffix in (".json", ".txt"))
    for name in (CTRANSLATE2_FILE, CONFIG_FILE, *_OF_EACH_SIDE, *_OF_BOTH, "vmap.txt", *sorted(texts)):
        if os.path.lexists(folder / name) and not (folder / name).is_file():
            raise CheckpointError("not a file", path=folder / name)


def _vocabularies(folder: Path) -> tuple[Path, Path]:
    source, target = (folder / name for name in _OF_EACH_SIDE)
    if source.is_file() and target.is_file():
        return source, target
    for name in _OF_BOTH:
        if (folder / name).is_file():
            return folder / name, folder / name
    raise CheckpointError(
        f"no SentencePiece model beside {CTRANSLATE2_FILE}: expected {' and '.join(_OF_EACH_SIDE)}, "
        f"or one of {', '.join(_OF_BOTH)}",
        path=folder,
        hint="copy it there from where the model came; the converter's --copy_files does so",
    )


def _processor(path: Path) -> SentencePieceProcessor:
    return tokens.processor(read_whole(path, CheckpointError, tokens.LARGEST_BYTES), path, CheckpointError)


def _check_pieces(folder: Path, side: str, path: Path, processor: SentencePieceProcessor) -> int:
    """How many pieces the weights are for. Those of another model's text would all be unknown to them."""
    with reading(path, CheckpointError):
        own = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    for name in (f"{stem}{suffix}" for stem in _PIECES[side] for suffix in (".json", ".txt")):
        if (folder / name).is_file():
            known = _read_pieces(folder / name)
            if len(set(known).intersection(own)) < _LEAST_KNOWN * len(own):
                raise CheckpointError(f"most of its pieces are not in {name}: of another model?", path=path)
            return len(known)
    return len(own)  # an old model, whose weights hold their vocabulary


def _read_pieces(path: Path) -> Sequence[str]:
    with reading(path, CheckpointError):
        if path.suffix == ".txt":
            return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, list) or not all(isinstance(piece, str) for piece in found):
            raise ValueError("expected a list of pieces")
        return found


def _languages(words: dict[str, Any]) -> tuple[str, str] | None:
    """As our export writes them, or as the tokenizers of OPUS-MT do."""
    source, target = words.get("source_lang"), words.get("target_lang")
    return (source, target) if isinstance(source, str) and isinstance(target, str) else None


def _read_object(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    with reading(path, CheckpointError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("expected a JSON object")
        return found
