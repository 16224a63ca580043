"""Models that nobody trained, in the folders of those that were: what engines do does not depend on skill."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from dragoman import config
from dragoman.checkpoint import saved_state
from dragoman.config import Model, Training, VocabularySettings
from dragoman.data.store import VOCABULARY_FILE
from dragoman.data.tokens import Tokenizer, learn
from dragoman.model import Transformer
from dragoman.rundir import RunFolder
from tests.train.runs import reversed_sentences

SMALL = Model(width=32, heads=4, encoder_layers=2, decoder_layers=3, feedforward=48)
SENTENCES = [
    *reversed_sentences(60, seed=7)[0].splitlines(),
    "Ähnlich große Wörter.",
    "unknown: 日本 €",
    "a",
]


def vocabulary(size: int = 120) -> Tokenizer:
    return learn(
        ["Ähnlich große Wörter sind Wörter, sagte er.", *SENTENCES[:60]] * 5, VocabularySettings(size=size)
    )


def transformer(tokenizer: Tokenizer, shape: Model = SMALL, seed: int = 1) -> Transformer:
    """Weights larger than at the start of training, so that sentences end at different lengths."""
    torch.manual_seed(seed)
    model = Transformer(shape, len(tokenizer)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            # Norms and biases too: those that begin as zeros and ones would hide a mistake.
            weight.mul_(1.5).add_(torch.randn_like(weight), alpha=0.05)
    return model


def make_run(folder: Path, tokenizer: Tokenizer | None = None, steps: tuple[int, ...] = (1,)) -> Path:
    """A run with a checkpoint for each of these steps, and its provenance."""
    tokenizer = tokenizer or vocabulary()
    run = RunFolder(folder)
    for step in steps:
        contents: saved_state.Contents = {
            # 10 for step 1, 40 for step 3: models that say something else of almost every sentence.
            saved_state.MODEL_FILE: dict(transformer(tokenizer, seed=15 * step - 5).state_dict()),
            saved_state.OPTIMIZER_FILE: {"none": torch.zeros(1)},
            saved_state.STATE_FILE: b"{}",
            "config.toml": config.text(Training(model=SMALL)).encode(),
            VOCABULARY_FILE: tokenizer.model,
        }
        saved_state.write(run.checkpoint(step), step, contents)
    run.provenance.write_text(json.dumps({"source_language": "en", "target_language": "de"}))
    return folder
