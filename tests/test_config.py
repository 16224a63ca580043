from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dragoman import config
from dragoman.config import CleanRules, Preparation, Training, load
from dragoman.errors import ConfigError
from tests.facts import lacking, raising


@pytest.fixture
def file(tmp_path: Path):
    def write(text: str) -> Path:
        (tmp_path / "prepare.toml").write_text(text, encoding="utf-8")
        return tmp_path / "prepare.toml"

    return write


def complaint(path: Path | None, *overrides: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(Preparation, path, overrides)
    return caught.value


def test_no_file_gives_the_defaults() -> None:
    assert load(Preparation) == Preparation()
    assert Preparation().clean.max_words == 80
    assert Preparation().vocabulary.size is None


def test_a_config_that_comes_with_dragoman_is_found_by_name_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("transformer-tiny", "configs/transformer-tiny.toml"):
        found = config.located(Path(name))
        assert found and load(Training, found).model.width == 128
    (tmp_path / "transformer-tiny").write_text("")
    assert config.located(Path("transformer-tiny")) == Path("transformer-tiny")  # a file of one's own first
    for name in ("transformer-tin", "other/transformer-tiny.toml", "none.toml"):
        with pytest.raises(ConfigError) as caught:
            config.located(Path(name))
        assert "transformer-tiny" in caught.value.hint


def test_an_unknown_key_names_the_nearest_known_one_with_file_and_line(file) -> None:
    error = complaint(file("seed = 3\n\n[clean]\nmin_words = 2\nmax_wrods = 100\n"))
    assert not lacking(str(error), "clean.max_wrods", "clean.max_words")
    assert str(error).startswith(f"{error.path}:5: ")


def test_a_key_in_the_wrong_section_names_the_right_one(file) -> None:
    assert not lacking(str(complaint(file("max_words = 3\n"))), "max_words", "clean.max_words")
    error = complaint(file("[vocabulary]\nmax_ratio = 3\n"))
    assert not lacking(str(error), "vocabulary.max_ratio", "clean.max_ratio")


def test_an_unknown_section_names_the_nearest_with_its_line(file) -> None:
    error = complaint(file("seed = 1\n[cleen]\nmax_words = 3\n"))
    assert not lacking(str(error), "cleen", "clean")
    assert error.line == 2


def test_every_fault_is_reported_at_once(file) -> None:
    message = str(complaint(file("sed = 1\n[clean]\nmax_words = 0\n")))
    assert not lacking(message, "sed", "seed", "clean.max_words = 0")


@pytest.mark.parametrize(
    ("override", "facts"),
    [
        ("clean.max_words=many", ["clean.max_words = 'many'", "integer"]),
        ("clean.max_words=2.5", ["clean.max_words = 2.5", "integer"]),
        ("clean.max_words=0", ["clean.max_words = 0", 1]),
        ("clean.max_ratio=1", ["clean.max_ratio = 1"]),
        ("clean.normalise=NFD", ["clean.normalise = 'NFD'", "'NFC'", "'none'"]),
        ("clean=3", ["clean = 3"]),
        ("clean.max_wrods=3", ["clean.max_wrods", "clean.max_words"]),
        ("cleen.max_words=3", ["cleen", "clean"]),
        ("clean={max_wrods = 3}", ["clean.max_wrods", "clean.max_words"]),
    ],
)
def test_a_wrong_set_names_key_and_value(override: str, facts: list[object], file) -> None:
    error = complaint(file("seed = 1\n"), override)
    assert not lacking(str(error), *facts)
    assert error.path == "--set"


@pytest.mark.parametrize("value", ["0", "1.5", "many", "[1]"])
def test_a_key_that_takes_a_number_or_a_word_names_itself_once(value: str) -> None:
    with raising(ConfigError, "data.microbatch", "'auto'") as error:
        load(Training, None, [f"data.microbatch={value}"])
    assert str(error.value).count("data.microbatch") == 1


def test_settings_that_do_not_go_together_are_blamed_on_the_set_that_says_so(file) -> None:
    path = file("[model]\nwidth = 128\nheads = 4\n")
    with pytest.raises(ConfigError) as caught:
        load(Training, path, ["model.heads=3"])
    assert caught.value.path == "--set"
    assert not lacking(str(caught.value), "model", 128, 3) and "{" not in str(caught.value)


def test_a_fault_of_the_file_is_not_blamed_on_a_set(file) -> None:
    path = file("clean.max_words = 0\n")
    assert complaint(path, "seed=3").path == str(path)


@pytest.mark.parametrize("override", ["seed", "=3", ""])
def test_a_set_without_key_or_value_is_refused(override: str) -> None:
    error = complaint(None, override)
    assert f"--set {override}: " in str(error)
    assert not lacking(error.hint, "--set train.steps=1000")


def test_a_weight_decay_that_would_do_nothing_is_refused() -> None:
    with raising(ConfigError, "weight_decay", "0.1", '"adamw"', '"muon"'):
        load(Training, None, ["train.weight_decay=0.1"])
    assert load(Training, None, ["train.weight_decay=0.1", "train.optimizer=muon"]).train.weight_decay == 0.1


def test_a_set_below_a_value_is_refused(file) -> None:
    assert not lacking(str(complaint(file("seed = 1\n"), "seed.x=1")), "--set seed.x=1", "seed")


def test_a_set_takes_toml_values_and_bare_words_and_wins_over_the_file(file) -> None:
    path = file("seed = 1\n[clean]\nmax_words = 50\nmin_words = 2\n")
    settings = load(
        Preparation, path, ["clean.max_words=100", "clean.drop_identical=false", "clean.normalise=none"]
    )
    assert settings.clean == CleanRules(max_words=100, min_words=2, drop_identical=False, normalise="none")
    assert load(Preparation, None, ['clean.normalise="none"']).clean.normalise == "none"


def test_broken_toml_says_so_with_its_place(file) -> None:
    path = file("seed = 1\n[clean\n")
    assert not lacking(str(complaint(path)), f"{path}:", "TOML", "line 2")


def test_a_file_that_cannot_be_read_is_our_error(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"# \xe4\n")
    places = (tmp_path / "none.toml", tmp_path, Path("/dev/zero"), tmp_path / "latin.toml")
    errors = [complaint(path) for path in places]
    assert [error.path for error in errors] == list(map(str, places))
    assert len({error.what for error in errors}) == 4


def test_what_is_written_is_read_back_whole(tmp_path: Path) -> None:
    settings = load(Preparation, None, ["seed=9", "clean.max_ratio=1.5", "clean.normalise=none"])
    config.write(settings, tmp_path / "config.toml")
    assert load(Preparation, tmp_path / "config.toml") == settings
    text = (tmp_path / "config.toml").read_text(encoding="utf-8")
    for name, value in config.flat(settings):  # TOML has no word for what was left open
        assert value is None or name.rpartition(".")[2] + " = " in text
    assert re.search(r"(?m)^max_words = 80 +# \S", text), "a setting stands beside what it means"


def test_settings_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValidationError):
        Preparation().seed = 2  # type: ignore[misc]


@given(st.text(), st.lists(st.text(), max_size=3))
def test_any_text_is_settings_or_our_error(tmp_path_factory, text: str, overrides: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(text, encoding="utf-8")
    try:
        assert isinstance(load(Preparation, path, overrides), Preparation)
    except ConfigError as error:
        assert str(error)


def limited(model: type[config.Section], prefix: str = "") -> Iterator[tuple[str, list[float], list[float]]]:
    """Every setting that is a number: its name, lower and upper limits."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, config.Section):
            yield from limited(kind, f"{prefix}{name}.")
        elif {int, float} & {kind, *typing.get_args(kind)}:
            lower, upper = (
                [getattr(limit, key) for limit in field.metadata for key in keys if hasattr(limit, key)]
                for keys in (("gt", "ge"), ("lt", "le"))
            )
            yield prefix + name, lower, upper


NUMBERS = [(model, *found) for model in (Training, Preparation) for found in limited(model)]


@pytest.mark.parametrize(
    ("model", "name", "least", "most"), NUMBERS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_number_has_a_range_and_what_lies_beyond_is_refused(model, name, least, most) -> None:
    assert len(least) == len(most) == 1
    beyond = ["inf", "-inf", "nan", "1e300", "-1", "9" * 5000, f"0x{'f' * 5000}", f"{most[0] * 2 + 1}"]
    for value in beyond:
        with pytest.raises(ConfigError, match=name):
            load(model, None, [f"{name}={value}"])


def test_thousands_of_digits_in_a_file_are_our_error(file) -> None:
    for text in (
        f"seed = {'9' * 5000}",
        f"seed = {'[' * 5000}",
        f"seed = 0x{'f' * 9000}",
        f"seed{'.a' * 5000} = 1",
    ):
        assert complaint(file(text)).path


@given(st.integers(0, 2**63 - 1), st.floats(1, 7 * 86_400))
def test_a_config_that_loads_also_starts(seed: int, timeout_seconds: float) -> None:
    settings = load(Training, None, [f"train.seed={seed}", f"sync.timeout_seconds={timeout_seconds}"])
    assert 1 <= timedelta(seconds=settings.sync.timeout_seconds).total_seconds() <= 7 * 86_400
    torch.manual_seed(settings.train.seed)
    np.random.default_rng(load(Preparation, None, [f"seed={seed}"]).seed)


def test_no_shipped_config_names_a_number_format_that_some_gpus_lack() -> None:
    shipped = sorted((Path(config.__file__).parent / "configs").glob("*.toml"))
    assert shipped
    assert {load(Training, path).train.precision for path in shipped} == {"auto"}
