"""explain/checkpoint.py: files with their purpose, and the arithmetic of their size."""

import pytest

from dragoman.config import Model
from dragoman.explain.checkpoint import explain_files, explain_size
from dragoman.measure.records import Records, RunFacts
from tests.explain import build
from tests.explain.sentences import wording
from tests.facts import lacking


def agrees(records: Records) -> bool:
    """Whether its size is told as one that the arithmetic gives to the byte."""
    finding = explain_size(records)
    exact = [{"name": "all", "bytes": finding.numbers["expected_bytes"]}]
    facts = records.facts.model_copy(update={"checkpoint_files": exact})
    return wording(finding.answer) == wording(explain_size(Records(facts)).answer)


def test_files_have_name_bytes_and_purpose() -> None:
    finding = explain_files(build.records())
    assert [file["name"] for file in finding.numbers["files"]][0] == "optimizer.safetensors"
    assert all(set(file) == {"name", "bytes", "purpose"} for file in finding.numbers["files"])
    assert not lacking(finding.answer, *(file["name"] for file in finding.numbers["files"]), "244 MB")


def test_size_agrees_with_the_arithmetic() -> None:
    records = build.records()
    finding = explain_size(records)
    assert finding.numbers["total_bytes"] == 12 * build.PARAMETERS + 31_000
    assert finding.numbers["parameters"] == build.PARAMETERS
    assert finding.numbers["bytes_per_parameter"] == pytest.approx(12, abs=0.01)
    assert agrees(records)


@pytest.mark.parametrize("each", [4, 8, 14, 20])
def test_other_sizes_tell_what_is_in_them(each: int) -> None:
    files = [{"name": "model.ckpt", "bytes": each * 100_000_000, "purpose": ""}]
    records = Records(RunFacts(parameters=100_000_000, checkpoint_files=files))
    finding = explain_size(records)
    assert not agrees(records)
    assert not lacking(finding.answer, f"{each}.0", "1.2 GB"), "what it is, and what it would be in fp32"
    assert (not lacking(finding.answer, f"{each} bytes")) == (each != 20), "a size that is known"


def test_small_files_count_beside_a_small_model() -> None:
    files = [{"name": "model.safetensors", "bytes": 12 * 23_168}, {"name": "config.toml", "bytes": 17_000}]
    assert agrees(Records(RunFacts(parameters=23_168, checkpoint_files=files)))


def test_muon_keeps_one_moment_for_matrices_of_layers() -> None:
    settings = {"train.optimizer": "muon", **{f"model.{name}": value for name, value in Model()}}
    facts = {"parameters": 60_880_896, "settings": settings, "data_card": {"vocabulary_pieces": 32_768}}
    kept = 4 * (3 * 60_880_896 - 6 * (12 * 512**2 + 4 * 512 * 2048))
    files = [{"name": "model.safetensors", "bytes": kept}]
    records = Records(RunFacts(**facts, checkpoint_files=files))
    finding = explain_size(records)
    assert finding.numbers["expected_bytes"] == kept
    assert agrees(records)
    assert not lacking(finding.answer, "60.9 million", "77.7 million", "x 4 bytes")


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_diloco_keeps_an_outer_momentum_besides(optimizer: str) -> None:
    settings = {"train.optimizer": optimizer, **{f"model.{name}": value for name, value in Model()}}
    facts = {"parameters": 60_880_896, "settings": settings, "data_card": {"vocabulary_pieces": 32_768}}
    kept = 4 * (4 * 60_880_896 - (6 * (12 * 512**2 + 4 * 512 * 2048) if optimizer == "muon" else 0))
    files = [{"name": "model.safetensors", "bytes": kept}]
    records = Records(RunFacts(**facts, mode="diloco", checkpoint_files=files))
    finding = explain_size(records)
    assert finding.numbers["expected_bytes"] == kept
    assert agrees(records)
    assert not lacking(finding.answer, "60.9 million x 4")


def test_without_parameters_there_is_still_a_size() -> None:
    files = [{"name": "model.ckpt", "bytes": 500}]
    finding = explain_size(Records(RunFacts(checkpoint_files=files)))
    assert finding.numbers == {"total_bytes": 500}


def test_no_checkpoint_is_unknown_with_the_arithmetic() -> None:
    finding = explain_size(Records(RunFacts(parameters=60_880_896)))
    assert finding.verdict == "unknown"
    assert not lacking(finding.answer, "731 MB")
    assert explain_files(build.NOTHING).verdict == "unknown"
