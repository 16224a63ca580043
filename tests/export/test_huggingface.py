"""What `transformers` loads with its Auto classes, without a line of ours: the same tokens and words."""

from __future__ import annotations

import json
import os
from itertools import islice
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer as FastTokenizer
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from dragoman import engines
from dragoman.config import VocabularySettings
from dragoman.data import files
from dragoman.data.filters import normalise
from dragoman.data.tokens import Tokenizer, learn
from dragoman.decode import Options
from dragoman.decode.translate import encode
from dragoman.errors import UsageError
from dragoman.export.export import export
from dragoman.export.tokenizer_json import build
from tests.decode.models import SENTENCES, make_run
from tests.facts import raising

SHARED = Path(os.environ.get("DRAGOMAN_DATA", "/nowhere"))
ODD = [
    "",
    "  two  spaces ",
    "a\u0308 decomposed",
    "tab\there",
    "</s> and <unk> are text",
    "日本語 und Ä",
    "aaaaaaa aaa",
    "ⅷ ﬁ ½",
    "no\u00a0break",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("models") / "run")


@pytest.fixture(scope="module")
def folder(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "hf"
    export(run, "huggingface", folder)
    return folder


@pytest.fixture(scope="module")
def loaded(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    return AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def own_tokens(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    return [row.tolist() for row in encode(tokenizer, [normalise(text, "NFC") for text in texts])]


def test_no_weight_is_missing_and_none_is_left_over(folder: Path) -> None:
    _, about = AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True)
    assert not about["missing_keys"] and not about["unexpected_keys"] and not about["mismatched_keys"]


def test_the_tokenizer_splits_text_as_ours_does(
    run: Path, loaded: tuple[PreTrainedModel, PreTrainedTokenizerBase]
) -> None:
    vocabulary = Tokenizer.load(run / "checkpoints" / "step-00000001" / "vocabulary.model")
    texts = [*SENTENCES, *ODD]
    assert loaded[1](texts).input_ids == own_tokens(vocabulary, texts)


@pytest.mark.parametrize("beam", [1, 4])
def test_its_translations_are_ours(
    run: Path, loaded: tuple[PreTrainedModel, PreTrainedTokenizerBase], beam: int
) -> None:
    model, tokenizer = loaded
    engine = engines.load(run, "torch", threads=1)
    # With a penalty the two normalise the unfinished hypotheses of a beam at different times.
    found = engine.translate(SENTENCES, Options(beam=beam, length_penalty=0, max_length=30))
    inputs = tokenizer(SENTENCES, return_tensors="pt", padding=True)
    settings = {"length_penalty": 0.0} if beam > 1 else {}
    with torch.no_grad():
        tokens = model.generate(**inputs, num_beams=beam, max_new_tokens=30, **settings)
    theirs = tokenizer.batch_decode(tokens, skip_special_tokens=True)
    same = sum(ours[0].text == other for ours, other in zip(found, theirs, strict=True))
    assert same == len(SENTENCES)


def test_its_decoding_gives_text_back(loaded: tuple[PreTrainedModel, PreTrainedTokenizerBase]) -> None:
    tokenizer = loaded[1]
    for text in SENTENCES[:60]:
        assert tokenizer.decode(tokenizer(text).input_ids, skip_special_tokens=True) == text


def own_and_fast(vocabulary: Tokenizer, texts: list[str]) -> tuple[list[list[int]], list[list[int]]]:
    fast = FastTokenizer.from_str(json.dumps(build(vocabulary)))
    fast.encode_special_tokens = True
    return own_tokens(vocabulary, texts), [row.ids for row in fast.encode_batch(texts)]


@pytest.mark.skipif(not (SHARED / "multi30k").exists(), reason="DRAGOMAN_DATA has no multi30k")
def test_the_tokens_of_multi30k_are_ours_too() -> None:
    paths = [SHARED / "multi30k" / f"train.{language}.gz" for language in ("en", "de")]
    texts = [line.decode() for path in paths for line in islice(files.lines(path), 5_000)]
    ours, theirs = own_and_fast(learn(texts[::2], VocabularySettings(size=4_000)), texts)
    assert ours == theirs


@pytest.mark.skipif(not (SHARED / "wmt16-vocab").exists(), reason="DRAGOMAN_DATA has no wmt16-vocab")
def test_a_vocabulary_with_a_table_of_characters_is_followed() -> None:
    """The public WMT16 vocabulary maps characters by SentencePiece's nmt_nfkc."""
    vocabulary = Tokenizer.load(SHARED / "wmt16-vocab" / "m_common.model")
    ours, theirs = own_and_fast(vocabulary, ["Ein Fließtext ½ ﬁ ⅷ", "Ｆｕｌｌ　ｗｉｄｔｈ", *SENTENCES, *ODD])
    assert ours == theirs


def test_the_folder_is_no_model_to_us_and_the_reason_is_reported(folder: Path) -> None:
    with raising(UsageError, f"{folder}:", "Hugging Face", "ct2-transformers-converter"):
        engines.load(folder)
