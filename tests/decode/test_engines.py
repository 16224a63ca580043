"""Two engines behind one interface: what either does, the other does too."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import ctranslate2
import pytest
import torch

from dragoman import engines
from dragoman.data.tokens import EOS, Tokenizer
from dragoman.decode import Engine, Options, Translation
from dragoman.decode.texts import LONGEST_TOKENS
from dragoman.decode.torch_engine import TorchEngine
from dragoman.errors import CheckpointError, DataError, UsageError
from dragoman.model import Transformer
from dragoman.rundir import RunFolder
from tests.decode import models
from tests.decode.models import SENTENCES, make_run
from tests.facts import lacking, raising

BOTH = pytest.mark.parametrize("name", ["torch", "ctranslate2"])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("models") / "run", steps=(1, 2, 3))


def load(run: Path, name: str, **options: object) -> Engine:
    return engines.load(run, name, "float32", threads=1, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def pair(run: Path) -> tuple[Engine, Engine]:
    return load(run, "torch"), load(run, "ctranslate2")


def texts(found: list[Translation]) -> list[str]:
    return [one.text for one in found]


@pytest.mark.parametrize(
    "options",
    [
        Options(beam=1),
        Options(),
        Options(length_penalty=0, max_length=12),
        Options(beam=6, length_penalty=1.2, best=3, max_length=12),
        Options(max_length=5),
        Options(no_repeat_ngram=2),
        Options(beam=1, no_repeat_ngram=1),
    ],
    ids=str,
)
def test_both_engines_find_the_same(pair: tuple[Engine, Engine], options: Options) -> None:
    ours, theirs = (engine.translate(SENTENCES, options) for engine in pair)
    pairs = list(zip(ours, theirs, strict=True))
    same = [pair for pair in pairs if texts(pair[0]) == texts(pair[1])]
    assert len(same) >= len(pairs) - 1  # what nobody trained has near ties, which the last bit decides
    for one, other in same:
        assert [found.score for found in one] == pytest.approx([found.score for found in other], abs=1e-3)
    assert len({found[0].text for found in ours}) > len(SENTENCES) / 2  # or equality says little


@BOTH
def test_order_is_kept_and_company_does_not_matter(run: Path, name: str) -> None:
    engine = load(run, name)
    together = engine.translate(SENTENCES, Options(beam=2))
    alone = [engine.translate([text], Options(beam=2))[0] for text in SENTENCES]
    assert [found[0].text for found in together] == [found[0].text for found in alone]


@BOTH
def test_the_best_of_several_translations_may_be_empty(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transformer = models.transformer

    def mute(tokenizer: Tokenizer, seed: int) -> Transformer:
        model = transformer(tokenizer, seed=seed)
        with torch.no_grad():
            model.decoder.norm.weight.zero_()  # whatever comes in, its bias comes out
            model.embedding.weight[EOS] = 1e3 * model.decoder.norm.bias
        return model

    monkeypatch.setattr(models, "transformer", mute)
    engine = load(make_run(tmp_path / "run"), name)
    first, second = texts(engine.translate(["red"], Options(beam=2, best=2))[0])
    assert not first
    assert second


@BOTH
def test_white_space_is_its_own_translation(run: Path, name: str) -> None:
    found = load(run, name).translate(["", "red", " \t", "\n\n"])
    assert [one.text for (one,) in (found[0], *found[2:])] == ["", " \t", "\n\n"]
    assert found[0][0].score == 0
    assert load(run, name).translate([]) == []


@BOTH
def test_lines_and_the_space_around_them_stay(run: Path, name: str) -> None:
    engine = load(run, name)
    (red,), (blue,) = engine.translate(["red", "blue"])
    ((both,),) = engine.translate(["  red\n\n\tblue \n"])
    assert both.text == f"  {red.text}\n\n\t{blue.text} \n"
    assert both.score == pytest.approx(red.score + blue.score)


@BOTH
def test_a_long_text_is_translated_sentence_by_sentence(run: Path, name: str) -> None:
    engine = load(run, name)
    sentences = ["Red blue green.", "Tall short old?", "New warm cold!"] * (LONGEST_TOKENS // 6)
    expected = " ".join(found[0].text for found in engine.translate(sentences))
    assert engine.translate([" ".join(sentences)])[0][0].text == expected


@BOTH
def test_a_short_text_is_split_only_if_asked(run: Path, name: str) -> None:
    engine = load(run, name)
    text = "Red blue. Green tall."
    apart = " ".join(found[0].text for found in engine.translate(["Red blue.", "Green tall."]))
    assert engine.translate([text], Options(split=True))[0][0].text == apart
    assert engine.translate([text])[0][0].text != apart


@BOTH
def test_sampling_finds_other_translations_each_time(run: Path, name: str) -> None:
    engine = load(run, name)
    torch.manual_seed(1)
    ctranslate2.set_random_seed(1)
    options = Options(sample_top=10, best=4)
    first, second = (engine.translate(SENTENCES[:5], options) for _ in range(2))
    assert all(len(found) == 4 for found in first)
    assert first != second


@BOTH
def test_a_translation_has_no_more_tokens_than_allowed(run: Path, name: str) -> None:
    (found,) = load(run, name).translate(["red blue green tall short"], Options(max_length=1))
    assert len(found[0].text.split()) <= 1


@BOTH
def test_the_mean_of_checkpoints_is_another_model(run: Path, name: str) -> None:
    averaged, last = load(run, name, average=3), load(RunFolder(run).checkpoint(3), name)
    assert averaged.translate(SENTENCES) != last.translate(SENTENCES)


def test_the_engines_average_alike(run: Path) -> None:
    greedy = Options(beam=1, max_length=8)
    ours, theirs = (
        load(run, name, average=3).translate(SENTENCES, greedy) for name in ("torch", "ctranslate2")
    )
    assert list(map(texts, ours)) == list(map(texts, theirs))


def test_ctranslate2_is_chosen_by_itself_and_knows_the_languages_of_the_run(run: Path) -> None:
    engine = engines.load(run, threads=1)
    assert (engine.name, engine.languages) == ("ctranslate2", ("en", "de"))
    assert load(RunFolder(run).checkpoint(2), "torch").languages == ("en", "de")


def test_a_checkpoint_away_from_its_run_knows_no_languages(run: Path, tmp_path: Path) -> None:
    shutil.copytree(RunFolder(run).checkpoint(1), tmp_path / "moved")
    assert load(tmp_path / "moved", "torch").languages is None


def test_the_precision_asked_for_is_the_one_computed_in(run: Path) -> None:
    """How near int8 comes is for a trained model to show: benchmarks/decode.py."""
    exact, coarse = load(run, "ctranslate2"), engines.load(run, "ctranslate2", "int8", threads=1)
    first, second = (engine.translate(SENTENCES, Options(beam=1)) for engine in (exact, coarse))
    assert first != second


@pytest.mark.parametrize(
    "wrong",
    [
        {"beam": 0},
        {"beam": 100_000},
        {"best": 5},
        {"best": 100_000, "sample_top": 3},
        {"length_penalty": -1.0},
        {"length_penalty": 400.0},
        {"length_penalty": float("nan")},
        {"sample_temperature": 0.0},
        {"sample_temperature": 1e-300},
        {"sample_temperature": float("inf")},
        {"sample_top": 10**20},
        {"no_repeat_ngram": 10**20},
        {"max_length": 0},
        {"max_length": 10**7},
    ],
    ids=str,
)
def test_impossible_options_are_wrong_use(wrong: dict[str, float]) -> None:
    name = next(iter(wrong))
    with pytest.raises(UsageError, match="translations" if wrong == {"best": 5} else name):
        replace(Options(), **wrong)  # type: ignore[arg-type]


@BOTH
def test_no_more_is_searched_than_the_vocabulary_holds(run: Path, name: str) -> None:
    with raising(UsageError, "sample_top", 121, "120 pieces"):
        load(run, name).translate(["red"], Options(sample_top=121))
    with raising(UsageError, "beam", 50, 49):
        Options(beam=50).check_vocabulary(49)
    (found,) = load(run, name).translate(["red"], Options(beam=100, best=100, max_length=2))
    assert len(found) == 100


def test_as_many_threads_as_no_machine_has_are_wrong_use(run: Path) -> None:
    with raising(UsageError, "100,000"):
        engines.load(run, threads=100_000)


@pytest.mark.parametrize("options", [Options(), Options(beam=1), Options(sample_top=0)], ids=str)
def test_a_search_that_cannot_compute_says_so(options: Options) -> None:
    tokenizer = models.vocabulary()
    model = models.transformer(tokenizer)
    with torch.no_grad():
        model.decoder.norm.weight[0] = torch.nan
    engine = TorchEngine(model, tokenizer, path=Path("spoilt"))
    with raising(CheckpointError, "spoilt"):
        engine.translate(["red blue"], options)
    assert engine.translate([""])[0][0].text == ""


def test_what_is_no_model_is_wrong_use(tmp_path: Path) -> None:
    with raising(UsageError, f"{tmp_path}:"):
        engines.load(tmp_path)


def test_our_own_search_has_no_int8(run: Path) -> None:
    with raising(UsageError, "float32", "int8", "--engine ctranslate2"):
        engines.load(run, "torch", "int8")


def test_a_damaged_folder_is_reported_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"nonsense")
    with raising(DataError, f"{tmp_path}:", "model.bin", "source.spm", "target.spm"):
        engines.load(tmp_path)
    (tmp_path / "source.spm").write_bytes(b"nonsense")
    (tmp_path / "target.spm").write_bytes(b"nonsense")
    with raising(DataError, f"{tmp_path / 'source.spm'}:"):
        engines.load(tmp_path)


def test_decoding_never_uses_cudnn_attention(run: Path) -> None:
    torch.backends.cuda.enable_cudnn_sdp(True)
    load(run, "torch")
    assert not torch.backends.cuda.cudnn_sdp_enabled()


def test_a_gpu_that_torch_has_no_kernels_for_is_not_used_and_the_remedy_is_said(
    run: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    answers = {
        "is_available": lambda: True,
        "get_device_capability": lambda: (7, 0),
        "get_device_name": lambda: "Tesla V100",
        "get_arch_list": lambda: ["sm_75", "sm_80"],
    }
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, answer)
    assert load(run, "torch").translate(SENTENCES[:1], Options(beam=1))
    assert not lacking(capfd.readouterr().err, "Tesla V100", "pip install", "cu126")
