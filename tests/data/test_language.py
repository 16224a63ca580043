from __future__ import annotations

import sys

import pytest

from dragoman.data.language import LanguageCheck, ScriptCheck, primary
from dragoman.errors import UsageError
from tests.facts import raising


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Straße"),
        ("ru", "улица"),
        ("rus", "улица"),
        ("zh-TW", "街道"),
        ("ja", "ストリートの名前"),
        ("el_GR", "οδός"),
        ("de", "München (Мюнхен)"),
        ("de", "12:30 – 14:00 !"),
        ("ru", ""),
    ],
)
def test_text_in_its_script_fits(language: str, text: str) -> None:
    assert ScriptCheck(language).fits(text)


@pytest.mark.parametrize(
    ("language", "text"), [("de", "улица"), ("ru", "street"), ("zh", "street"), ("en", "街道 s")]
)
def test_text_in_another_script_does_not_fit(language: str, text: str) -> None:
    assert not ScriptCheck(language).fits(text)


@pytest.mark.parametrize("language", ["de", "de-AT", "DE_ch", "deu"])
def test_a_language_is_recognised_under_all_its_names(language: str) -> None:
    check = LanguageCheck(language)
    assert check.fits("Die Katze sitzt auf dem Dach und schläft.")
    assert not check.fits("The cat is sitting on the roof and sleeping.")


def test_a_text_too_short_to_tell_fits() -> None:
    assert LanguageCheck("de").fits("The cat sits.")


def test_a_language_that_cannot_be_recognised_is_refused() -> None:
    with raising(UsageError, "clean.check_language", "xx"):
        LanguageCheck("xx")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid", None)
    with pytest.raises(UsageError, match=r"pip install 'dragoman\[language\]'"):
        LanguageCheck("de")


def test_a_language_without_a_short_code_keeps_its_long_one() -> None:
    assert primary("fil-PH") == "fil"


@pytest.mark.parametrize("language", ["zh-TW-Hant", "zh_CN_Hans", "ZH-v2", "zh-1"])
def test_a_tag_out_of_order_still_names_its_language(language: str) -> None:
    """`prepare` takes it, so the first evaluation of a training must not end at it."""
    assert primary(language) == "zh"
    with raising(UsageError, "clean.check_script", language, "sr-Latn-RS"):
        ScriptCheck(language)
