from __future__ import annotations

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.data import recipes
from dragoman.data.jobs import PreparationJob, PrepareRequest, resolve
from dragoman.data.recipes import Collected, Recipe
from dragoman.errors import ConfigError, DataError, UsageError
from dragoman.progress import Reporter
from tests.facts import raising
from tests.train.runs import disk


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a.en", "a.de", "b.en", "b.de", "c.fr"):
        Path(name).write_text(f"text of {name}\n")
    return tmp_path


def job(words: str, **request: object) -> PreparationJob:
    return resolve(PrepareRequest(words.split(), Path("out"), **request), Reporter())  # type: ignore[arg-type]


def test_each_file_is_listed_once_with_its_checksum(folder: Path) -> None:
    sources = job("en=a.en de=a.de en=a.en de=b.de", dev=["en=b.en", "de=b.de"]).sources
    assert [source.path for source in sources] == ["a.en", "a.de", "b.de", "b.en"]
    assert sources[0].bytes == len("text of a.en\n")
    assert len({source.sha256 for source in sources}) == 4


def test_the_same_work_has_the_same_key_wherever_the_files_stand(folder: Path) -> None:
    shutil.copytree(folder, folder / "elsewhere")
    here = job("en=a.en de=a.de", dev=["en=b.en", "de=b.de"]).key
    there = job("en=elsewhere/a.en de=elsewhere/a.de", dev=["en=elsewhere/b.en", "de=elsewhere/b.de"]).key
    assert here == there


def test_other_work_has_another_key(folder: Path) -> None:
    def keys(dev: list[str]) -> list[str]:
        words = "en=a.en de=a.de"
        jobs = [
            job(words, dev=dev),
            job(words, dev=["en=b.de", "de=b.en"]),
            job(words, dev=["en=a.de", "de=a.en"]),
            job(words, dev=["en=a.en", "de=a.de"]),
            job(words, test=dev),
            job(words),
            job(f"{words} weight=2", dev=dev),
            job("de=a.de en=a.en"),
            job("en=a.de de=a.en"),
            job(f"{words} en=b.en de=b.de"),
            job(words, dev=dev, changes=["clean.max_words=79"]),
            job(words, dev=dev, vocabulary=Path("c.fr")),
        ]
        return [each.key for each in jobs]

    dev = ["en=b.en", "de=b.de"]
    before = keys(dev)
    assert len(set(before)) == len(before)
    Path("a.de").write_text("text of a.dE\n")
    assert not set(keys(dev)) & set(before)


def test_dev_and_test_are_one_set_each_in_the_languages_of_training(folder: Path) -> None:
    with raising(UsageError, "--dev", 2):
        job("en=a.en de=a.de", dev=["en=a.en", "de=a.de", "en=b.en", "de=b.de"])
    with raising(UsageError, "en to de", "en to fr"):
        job("en=a.en de=a.de", test=["en=a.en", "fr=c.fr"])


def test_a_file_that_vanished_is_named(folder: Path) -> None:
    planned = job("en=a.en de=a.de")
    Path("a.de").unlink()
    with raising(UsageError, "a.de:", os.strerror(errno.ENOENT)):
        _ = planned.key


@pytest.fixture
def recipe(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """`toy`: says what it is known to hold, and has a rule of its own."""

    def collect(into: Path, fetch: object) -> Collected:
        collected = job("en=a.en de=a.de", dev=["en=b.en", "de=b.de"])
        return Collected(collected.train, collected.dev)

    toy = Recipe(
        "toy", "a toy", "en", "de", collect, {"clean.max_words": 70, "clean.drop_identical": False}, 9, 7
    )
    monkeypatch.setattr(recipes, "find", lambda name, tell: toy)
    return toy


def test_the_rules_of_a_recipe_hold_unless_the_user_says_otherwise(recipe: Recipe) -> None:
    rules = job("toy").settings.clean
    assert (rules.max_words, rules.drop_identical, rules.max_ratio) == (70, False, 9)
    assert job("toy", changes=["clean.max_words=60"]).settings.clean.max_words == 60
    Path("mine.toml").write_text("[clean]\nmax_words = 50\n")
    rules = job("toy", config=Path("mine.toml")).settings.clean
    assert (rules.max_words, rules.drop_identical) == (50, False)


def test_a_known_count_of_clean_pairs_is_expected_only_under_the_recipes_own_rules(recipe: Recipe) -> None:
    planned = job("toy", changes=["vocabulary.size=100"])
    assert (planned.expected_raw_pairs, planned.expected_clean_pairs) == (9, 7)
    changed = job("toy", changes=["clean.max_words=60"])
    assert (changed.expected_raw_pairs, changed.expected_clean_pairs) == (9, None)


def test_the_users_dev_takes_the_place_of_the_recipes(recipe: Recipe) -> None:
    planned = job("toy", dev=["en=a.en", "de=a.de"], test=["en=b.en", "de=b.de"])
    assert planned.dev is not None and planned.dev.files[0].source == Path("a.en")
    assert planned.test is not None and planned.test.files[0].source == Path("b.en")


def test_a_typo_in_a_setting_fails_before_anything_is_fetched(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = replace(recipe, collect=lambda into, fetch: pytest.fail("fetched"))
    monkeypatch.setattr(recipes, "find", lambda name, tell: late)
    with pytest.raises(ConfigError, match="max_words"):
        job("toy", changes=["clean.max_wrods=60"])


@pytest.mark.parametrize("name", ["/dev/zero", "pipe"])
@pytest.mark.parametrize("place", ["source", "vocabulary"])
def test_what_has_no_end_is_refused_at_once(folder: Path, name: str, place: str) -> None:
    os.mkfifo("pipe")
    asked = job(f"en={name} de=a.de") if place == "source" else job("en=a.en de=a.de", vocabulary=Path(name))
    with raising(DataError, f"{name}:") as caught:
        _ = asked.key
    assert caught.value.path == name


def test_a_disk_that_is_full_of_a_recipes_files_is_named(tmp_path: Path) -> None:
    with disk(tmp_path, "64k"):
        with pytest.raises(OSError, match="No space left on device") as caught:
            resolve(PrepareRequest(["demo"], tmp_path / "data"), Reporter())
        assert caught.value.filename == str(tmp_path / "downloads")
