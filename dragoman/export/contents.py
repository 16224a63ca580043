"""The files of an exported folder, and the manifest that reveals damage to them."""

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
    "config.json": "the model's dimensions and special pieces",
    "shared_vocabulary.json": "pieces in the order of their ids",
    VOCABULARY_FILE: "SentencePiece: text to pieces and back",
    "generation_config.json": "how to search",
    "tokenizer.json": "text to pieces and back",
    "tokenizer_config.json": "special pieces and languages",
}


def describe(folder: Path) -> None:
    """Write the manifest of a folder that is otherwise complete."""
    manifest.write(folder, {path.name: PURPOSES[path.name] for path in sorted(folder.iterdir())})


def verify(folder: Path) -> None:
    """Refuse an exported model of ours if any of its files has changed.

    A folder converted elsewhere has no manifest. A checkpoint, whose manifest lists a config.toml, is
    verified where it is loaded.
    """
    if not os.path.lexists(folder / MANIFEST_FILE):
        return
    listed = manifest.read(folder, [*PURPOSES, *saved_state.PURPOSES])
    if "config.toml" not in listed.files:
        manifest.check(folder, listed.files)
