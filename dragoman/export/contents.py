"""What an exported folder holds, with a manifest by which damage to any of it is noticed."""

from __future__ import annotations

import os
from pathlib import Path

from dragoman.checkpoint import manifest, saved_state
from dragoman.checkpoint.manifest import MANIFEST_FILE
from dragoman.data.store import VOCABULARY_FILE
from dragoman.decode.engine import CTRANSLATE2_FILE

PURPOSES = {
    CTRANSLATE2_FILE: "weights, for CTranslate2",
    "model.safetensors": "weights, for transformers",
    "config.json": "the model's measures and special pieces",
    "shared_vocabulary.json": "pieces in the order of their ids",
    VOCABULARY_FILE: "SentencePiece: text to pieces and back",
    "generation_config.json": "how to search",
    "tokenizer.json": "text to pieces and back",
    "tokenizer_config.json": "special pieces and languages",
}


def describe(folder: Path) -> None:
    """Writes the manifest of a folder that is otherwise whole."""
    manifest.write(folder, {path.name: PURPOSES[path.name] for path in sorted(folder.iterdir())})


def verify(folder: Path) -> None:
    """If this is an exported model of ours, each of its files is what was written.

    A folder that others converted has no manifest; a checkpoint, whose manifest names a config.toml, is
    verified where it is loaded.
    """
    if not os.path.lexists(folder / MANIFEST_FILE):
        return
    found = manifest.read(folder, [*PURPOSES, *saved_state.PURPOSES])
    if "config.toml" not in found.files:
        manifest.check(folder, found.files)
