"""What CTranslate2 loads: from us, alone, and from others, through us."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import ctranslate2
import pytest
import sentencepiece
import torch

from dragoman import engines
from dragoman.checkpoint import saved_model
from dragoman.decode import Options
from dragoman.decode.translate import encode, hypotheses
from dragoman.errors import UsageError
from dragoman.export.export import export
from tests.decode.models import SENTENCES, make_run
from tests.facts import raising

GREEDY = Options(beam=1, max_length=12)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("models") / "run", steps=(1, 2))


@pytest.fixture(scope="module")
def folder(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "ct2"
    export(run, "ctranslate2", folder)
    return folder


def greedy(model: Path, name: str = "auto") -> list[str]:
    engine = engines.load(model, name, "float32", threads=1)  # type: ignore[arg-type]
    return [found[0].text for found in engine.translate(SENTENCES, GREEDY)]


def test_ctranslate2_alone_gives_our_translations(run: Path, folder: Path) -> None:
    translator = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocabulary.model"))
    found = translator.translate_batch(
        pieces.encode(SENTENCES, out_type=str), beam_size=1, max_decoding_length=12
    )
    assert [pieces.decode(result.hypotheses[0]) for result in found] == greedy(run, "torch")


def test_an_exported_folder_is_a_model_that_knows_its_languages(run: Path, folder: Path) -> None:
    assert greedy(folder) == greedy(run, "torch")
    assert engines.load(folder, threads=1).languages == ("en", "de")


def test_sentences_longer_than_any_table_of_positions_are_translated_alike(run: Path, folder: Path) -> None:
    text = " ".join(SENTENCES[:60])
    loaded = saved_model.load([run], torch.device("cpu"))
    tokenizer = loaded.tokenizer
    (ours,) = hypotheses(loaded.model, encode(tokenizer, [text]), Options(beam=1, max_length=600))
    translator = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    (found,) = translator.translate_batch(
        [pieces.encode(text, out_type=str)], beam_size=1, max_decoding_length=600, max_input_length=0
    )
    assert [pieces.piece_to_id(piece) for piece in found.hypotheses[0]] == ours[0].tokens


def test_int8_makes_a_smaller_file_that_opens_as_it_was_stored(
    run: Path, folder: Path, tmp_path: Path
) -> None:
    files = export(run, "ctranslate2", tmp_path / "int8", precision="int8")
    assert files["model.bin"] < (folder / "model.bin").stat().st_size * 0.5
    by_itself, asked, exact = (
        engines.load(tmp_path / "int8", precision=precision, threads=1).translate(SENTENCES, GREEDY)  # type: ignore[arg-type]
        for precision in ("auto", "int8", "float32")
    )
    assert by_itself == asked != exact


def test_checkpoints_are_averaged_into_the_export(run: Path, tmp_path: Path) -> None:
    export(run, "ctranslate2", tmp_path / "mean", average=2)
    engine = engines.load(run, "torch", average=2, threads=1)
    assert greedy(tmp_path / "mean") == [found[0].text for found in engine.translate(SENTENCES, GREEDY)]


def test_nothing_is_written_over(run: Path, folder: Path) -> None:
    with raising(UsageError, f"{folder}:", "-o"):
        export(run, "ctranslate2", folder)


@pytest.mark.parametrize(
    ("options", "instead"),
    [({"engine": "torch"}, "--engine ctranslate2"), ({"average": 2}, "--average")],
)
def test_what_an_exported_folder_cannot_do_is_reported(
    folder: Path, options: dict[str, str], instead: str
) -> None:
    with raising(UsageError, f"{folder}:", instead):
        engines.load(folder, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["sentencepiece.model", "spm.model"])
def test_a_shared_vocabulary_of_another_name_is_found(folder: Path, tmp_path: Path, name: str) -> None:
    """As OpenNMT's models come: no languages, no word of ours in the config."""
    shutil.copytree(folder, tmp_path / "theirs")
    (tmp_path / "theirs" / "manifest.json").unlink()
    (tmp_path / "theirs" / "vocabulary.model").rename(tmp_path / "theirs" / name)
    config = json.loads((folder / "config.json").read_text())
    theirs = {key: value for key, value in config.items() if not key.endswith("_lang")}
    (tmp_path / "theirs" / "config.json").write_text(json.dumps(theirs))
    assert greedy(tmp_path / "theirs") == greedy(folder)
    assert engines.load(tmp_path / "theirs", threads=1).languages is None
