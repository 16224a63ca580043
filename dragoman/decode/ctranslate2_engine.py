"""CTranslate2 as an engine: a folder in its format, ours or another's, with SentencePiece models in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import sentencepiece

from dragoman.content import read_whole
from dragoman.data.tokens import LARGEST_BYTES, processor
from dragoman.decode.engine import CTRANSLATE2_FILE, Options, Translation
from dragoman.decode.texts import TextTranslator
from dragoman.decode.translate import length_limits
from dragoman.errors import CheckpointError, DataError, DragomanError, UsageError

CONFIG_FILE = "config.json"
PRECISIONS = ("int8", "int8_float32", "float32")

# Names under which a folder holds its SentencePiece models: one for each side, or one for both.
_OF_EACH_SIDE = ("source.spm", "target.spm")  # OPUS-MT
_OF_BOTH = ("vocabulary.model", "sentencepiece.model", "spm.model", "spiece.model", "sentencepiece.bpe.model")

_BATCH_SENTENCES = 32
_LIMIT_STEP = 32  # limits are shared by sentences for which they differ by less
_DEFAULT = Options()

Pieces = list[str]


class CTranslate2Engine:
    """Fast when it is given many texts at a time: each thread takes batches of its own."""

    name = "ctranslate2"

    def __init__(
        self, folder: Path, precision: str, threads: int, languages: tuple[str, str] | None = None
    ) -> None:
        config = _read_json(folder / CONFIG_FILE)
        source, target = _vocabularies(folder)
        self.languages = languages or _languages(folder, config)
        self._source, self._target = _processor(source), _processor(target)
        # Models that Transformers' classes trained were shown the end of the source, and their converter
        # leaves it to the caller. They are those whose decoder starts from EOS.
        self._ends_source = not config.get("add_source_eos") and (
            config.get("decoder_start_token") == config.get("eos_token", "</s>")
        )
        self._end = [config.get("eos_token", "</s>")]
        self._translator = _open(folder, precision, threads)
        self._texts = TextTranslator[Pieces](self._encode, self._find)

    @property
    def precision(self) -> str:
        return self._translator.compute_type

    def translate(self, texts: Sequence[str], options: Options = _DEFAULT) -> list[list[Translation]]:
        return self._texts.translate(texts, options)

    def _encode(self, texts: Sequence[str]) -> list[Pieces]:
        rows = self._source.encode(list(texts), out_type=str)
        return [row + self._end for row in rows] if self._ends_source else rows

    def _find(self, rows: Sequence[Pieces], options: Options) -> list[list[Translation]]:
        limits = _limits(rows, options)
        # A call has one limit for all its rows. A high one is shared; the few that ran past their own, as a
        # model does that repeats itself, are searched again with it.
        step = 1 if options.max_length else _LIMIT_STEP
        shared = {number: -(-limit // step) * step for number, limit in enumerate(limits)}
        results = self._search(rows, shared, options)
        late = {
            number: limits[number]
            for number, found in results.items()
            if limits[number] < shared[number] and _reaches(found, limits[number])
        }
        if late:
            results |= self._search(rows, late, options)
        return [list(self._texts_of(results[number])) for number in range(len(rows))]

    def _search(
        self, rows: Sequence[Pieces], limits: Mapping[int, int], options: Options
    ) -> dict[int, ctranslate2.TranslationResult]:
        """Every row is handed over before the first result is waited for: no thread is ever without work."""
        waiting: list[tuple[int, Any]] = []
        for limit, group in groupby(sorted(limits, key=limits.__getitem__), limits.__getitem__):
            numbers = list(group)
            handed = self._translator.translate_batch(
                [rows[number] for number in numbers], asynchronous=True, **_arguments(options, limit)
            )
            waiting += zip(numbers, handed, strict=True)
        return {number: handed.result() for number, handed in waiting}

    def _texts_of(self, result: ctranslate2.TranslationResult) -> Iterable[Translation]:
        # One by one: SentencePiece takes a list that begins with an empty one for tokens.
        texts = (self._target.decode_pieces(pieces) if pieces else "" for pieces in result.hypotheses)
        return map(Translation, texts, result.scores)


def _limits(rows: Sequence[Pieces], options: Options) -> list[int]:
    """The most tokens of each translation, EOS counted."""
    if options.max_length:
        return [options.max_length] * len(rows)
    return length_limits(np.array([len(row) + 1 for row in rows]))


def _reaches(result: ctranslate2.TranslationResult, limit: int) -> bool:
    return any(len(pieces) >= limit for pieces in result.hypotheses)


def _arguments(options: Options, limit: int) -> dict[str, Any]:
    """Our options in the words of `translate_batch`."""
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
        "min_decoding_length": 0,  # as our own search; 1, the default, also changes the scores
        "max_decoding_length": limit,
        "max_input_length": 0,  # no limit: texts were split before, and what is longer must not be cut off
        "return_scores": True,
    }


def _open(folder: Path, precision: str, threads: int) -> ctranslate2.Translator:
    device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
    known = ctranslate2.get_supported_compute_types(device)
    if precision != "auto" and precision not in known:
        raise UsageError(
            f"precision {precision} is not one this {device} computes in",
            hint=f"one of {', '.join(sorted(known & set(PRECISIONS)))}",
        )
    compute_type = "default" if precision == "auto" else precision  # its "auto" is the fastest, not as stored
    # One thread for each batch and many batches at once: matrices of a translation are too small to share.
    try:
        return ctranslate2.Translator(
            str(folder), device=device, compute_type=compute_type, inter_threads=threads, intra_threads=1
        )
    except (RuntimeError, ValueError) as error:
        raise DataError(
            f"CTranslate2 cannot load it: {error}", path=folder, hint="convert or export the model again"
        ) from None


def _vocabularies(folder: Path) -> tuple[Path, Path]:
    source, target = (folder / name for name in _OF_EACH_SIDE)
    if source.is_file() and target.is_file():
        return source, target
    for name in _OF_BOTH:
        if (folder / name).is_file():
            return folder / name, folder / name
    raise DataError(
        f"no SentencePiece model beside {CTRANSLATE2_FILE}: expected {' and '.join(_OF_EACH_SIDE)}, "
        f"or one of {', '.join(_OF_BOTH)}",
        path=folder,
        hint="copy it there from where the model came; the converter's --copy_files does so",
    )


def _processor(path: Path) -> sentencepiece.SentencePieceProcessor:
    return processor(read_whole(path, CheckpointError, LARGEST_BYTES), path, CheckpointError)


def _languages(folder: Path, config: dict[str, Any]) -> tuple[str, str] | None:
    """As our export writes them, or as the tokenizers of OPUS-MT do."""
    for words in (config, _read_json(folder / "tokenizer_config.json")):
        source, target = words.get("source_lang"), words.get("target_lang")
        if isinstance(source, str) and isinstance(target, str):
            return source, target
    return None


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"not JSON: {error}", path=path) from None
    if not isinstance(found, dict):
        raise DragomanError("expected a JSON object", path=path)
    return found
