"""The engine that runs our own search in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dragoman.data.tokens import Tokenizer
from dragoman.decode.engine import Options, Translation
from dragoman.decode.texts import TextTranslator
from dragoman.decode.translate import encode, hypotheses
from dragoman.model import Transformer

_DEFAULT = Options()


class TorchEngine:
    name = "torch"
    precision = "float32"

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        languages: tuple[str, str] | None = None,
        path: Path | None = None,
    ) -> None:
        self.languages = languages
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._texts = TextTranslator[np.ndarray](
            lambda texts: encode(tokenizer, texts), self._find, len(tokenizer), path
        )

    def translate(self, texts: Sequence[str], options: Options = _DEFAULT) -> list[list[Translation]]:
        return self._texts.translate(texts, options)

    def _find(self, rows: Sequence[np.ndarray], options: Options) -> list[list[Translation]]:
        ranked = hypotheses(self._model, rows, options)
        texts = iter(self._tokenizer.decode([hypothesis.tokens for row in ranked for hypothesis in row]))
        return [[Translation(next(texts), hypothesis.score) for hypothesis in row] for row in ranked]
