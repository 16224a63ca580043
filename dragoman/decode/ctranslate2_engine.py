"""The engine that runs CTranslate2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from dragoman.decode import ctranslate2_folder
from dragoman.decode.engine import CTRANSLATE2_FILE, Options, Translation
from dragoman.decode.texts import TextTranslator
from dragoman.decode.translate import length_limits
from dragoman.errors import CheckpointError, UsageError, reading

PRECISIONS = ("int8", "int8_float32", "float32")

_BATCH_SENTENCES = 32
_LIMIT_MULTIPLE = 32  # sentences share a call if their limits round up to the same multiple
_DEFAULT = Options()

Pieces = list[str]


class CTranslate2Engine:
    """Translates with CTranslate2; fastest with many texts per call: each thread takes its own batches."""

    name = "ctranslate2"

    def __init__(
        self,
        folder: Path,
        precision: str,
        threads: int,
        languages: tuple[str, str] | None = None,
        model: Path | None = None,
    ) -> None:
        """`model` is the path that errors name, if it is not `folder`."""
        files = ctranslate2_folder.read(folder)
        self.languages = languages or files.languages
        self._source, self._target = files.source, files.target
        self._end = [files.end] if files.wants_end else []
        self._translator = _open(folder, precision, threads)
        self._texts = TextTranslator[Pieces](self._encode, self._find, files.pieces, model or folder)
        # CTranslate2 reads some of its files only when it first translates.
        with reading(folder, CheckpointError, ctranslate2_folder.CONVERT_AGAIN):
            self.translate(["."], Options(beam=1, max_length=1))

    @property
    def precision(self) -> str:
        return self._translator.compute_type

    def translate(self, texts: Sequence[str], options: Options = _DEFAULT) -> list[list[Translation]]:
        return self._texts.translate(texts, options)

    def _encode(self, texts: Sequence[str]) -> list[Pieces]:
        return [row + self._end for row in self._source.encode(list(texts), out_type=str)]

    def _find(self, rows: Sequence[Pieces], options: Options) -> list[list[Translation]]:
        limits = _limits(rows, options)
        # A call takes one limit for all its rows, so rows share a limit rounded up. The few that ran past
        # their own limit, as a model that repeats itself does, are searched again with their own.
        multiple = 1 if options.max_length else _LIMIT_MULTIPLE
        shared = {number: -(-limit // multiple) * multiple for number, limit in enumerate(limits)}
        results = self._search(rows, shared, options)
        overrun = {
            number: limits[number]
            for number, result in results.items()
            if limits[number] < shared[number] and _reaches(result, limits[number])
        }
        if overrun:
            results |= self._search(rows, overrun, options)
        return [list(self._texts_of(results[number])) for number in range(len(rows))]

    def _search(
        self, rows: Sequence[Pieces], limits: Mapping[int, int], options: Options
    ) -> dict[int, ctranslate2.TranslationResult]:
        """Search all rows; each is submitted before the first result is awaited, so that no thread idles."""
        pending: list[tuple[int, Any]] = []
        for limit, group in groupby(sorted(limits, key=limits.__getitem__), limits.__getitem__):
            numbers = list(group)
            futures = self._translator.translate_batch(
                [rows[number] for number in numbers], asynchronous=True, **_arguments(options, limit)
            )
            pending += zip(numbers, futures, strict=True)
        return {number: future.result() for number, future in pending}

    def _texts_of(self, result: ctranslate2.TranslationResult) -> Iterable[Translation]:
        # One by one: SentencePiece mistakes a list of lists for a list of pieces if the first one is empty.
        texts = (self._target.decode_pieces(pieces) if pieces else "" for pieces in result.hypotheses)
        return map(Translation, texts, result.scores)


def _limits(rows: Sequence[Pieces], options: Options) -> list[int]:
    """The most tokens each translation may have, including EOS."""
    if options.max_length:
        return [options.max_length] * len(rows)
    return length_limits(np.array([len(row) + 1 for row in rows]))


def _reaches(result: ctranslate2.TranslationResult, limit: int) -> bool:
    return any(len(pieces) >= limit for pieces in result.hypotheses)


def _arguments(options: Options, limit: int) -> dict[str, Any]:
    """Our options as arguments of `translate_batch`."""
    searching: dict[str, Any] = {"beam_size": options.beam}
    if options.is_sampling:
        searching = {
            "beam_size": 1,
            "sampling_topk": options.sample_top,
            "sampling_temperature": options.sample_temperature,
        }
    return {
        **searching,
        "max_batch_size": _BATCH_SENTENCES,
        "length_penalty": options.length_penalty,
        "num_hypotheses": options.best,
        "no_repeat_ngram_size": options.no_repeat_ngram,
        "min_decoding_length": 0,  # as in our own search; the default, 1, also changes the scores
        "max_decoding_length": limit,
        "max_input_length": 0,  # no limit: texts are already split, and a longer one must not be cut off
        "return_scores": True,
    }


def _open(folder: Path, precision: str, threads: int) -> ctranslate2.Translator:
    device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
    known = ctranslate2.get_supported_compute_types(device)
    if precision != "auto" and precision not in known:
        raise UsageError(
            f"this {device} cannot compute in precision {precision}",
            hint=f"one of {', '.join(sorted(known & set(PRECISIONS)))}",
        )
    # CTranslate2's own "auto" picks the fastest type; "default" keeps the stored one.
    compute_type = "default" if precision == "auto" else precision
    # One thread per batch and many batches at once: a translation's matrices are too small to split.
    with reading(folder / CTRANSLATE2_FILE, CheckpointError, ctranslate2_folder.CONVERT_AGAIN):
        return ctranslate2.Translator(
            str(folder), device=device, compute_type=compute_type, inter_threads=threads, intra_threads=1
        )
