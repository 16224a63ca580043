"""COMET as one more metric beside sacreBLEU's, where `unbabel-comet` and its model are installed.

Nothing is downloaded. A COMET checkpoint is a pickle, which runs code when loaded: only a checkpoint that the
user chose to install is loaded, from that user's own cache.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Sequence
from typing import Any

import torch
from sacrebleu.metrics.base import Metric, Score, Signature

from dragoman.errors import DragomanError

MODEL = "Unbabel/wmt22-comet-da"
_BATCH_SENTENCES = 16


class Absent(DragomanError):
    """COMET is not available here; the message says why."""


class _CometSignature(Signature):
    def __init__(self, args: dict[str, Any]):
        super().__init__(args)
        self._abbr["model"] = "m"
        self.info["model"] = MODEL
        self.info["version"] = importlib.metadata.version("unbabel-comet")


class Comet(Metric):
    """The mean over sentences of COMET's learnt score, as a sacreBLEU metric."""

    _SIGNATURE_TYPE = _CometSignature

    def __init__(self, sources: Sequence[str]):
        super().__init__()
        self.num_refs = 1  # COMET takes one
        self._sources = sources
        self._model = _load()

    def _extract_corpus_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]] | None
    ) -> list[list[float]]:
        assert references
        triples = zip(self._sources, hypotheses, references[0], strict=True)
        rows = [{"src": source, "mt": translation, "ref": ref} for source, translation, ref in triples]
        gpus = int(torch.cuda.is_available())
        prediction = self._model.predict(rows, batch_size=_BATCH_SENTENCES, gpus=gpus, progress_bar=False)
        return [[float(score), 1.0] for score in prediction.scores]

    def _aggregate_and_compute(self, stats: Sequence[Sequence[float]]) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])

    def _compute_score_from_stats(self, stats: Sequence[float]) -> Score:
        return Score("COMET", float(stats[0] / stats[1]))

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[float]:
        raise TypeError("COMET scores many sentences at a time")


def _load() -> Any:
    if importlib.util.find_spec("comet") is None:
        raise Absent("unbabel-comet is not installed")
    from comet import download_model, load_from_checkpoint

    try:
        path = download_model(MODEL, local_files_only=True)
    except Exception as error:  # each version of its hub client raises different errors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Absent(f"its model {MODEL} is not on this machine ({reason})") from None
    return load_from_checkpoint(path)
