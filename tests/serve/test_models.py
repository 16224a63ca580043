"""Models by name."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman.errors import UsageError
from dragoman.serve import models, page_files
from dragoman.serve.limits import Limits
from dragoman.serve.refusal import Refusal
from tests.facts import raising
from tests.serve.stand_in import CapitalEngine


class Unlabelled(CapitalEngine):
    languages = None  # type: ignore[assignment]


def engine(path: Path) -> CapitalEngine:
    return (Unlabelled if "plain" in path.name else CapitalEngine)(None, None)


def test_a_model_is_called_as_told_or_after_its_run() -> None:
    found = models.load(["first=runs/a", "runs/tuesday/best", "runs/wednesday"], engine)
    assert list(found.served) == ["first", "tuesday", "wednesday"]


def test_a_model_that_does_not_know_its_languages_takes_them_from_its_name() -> None:
    found = models.load(["fi-sv=plain", "opus=plain"], engine)
    assert [model.languages for model in found.served.values()] == [("fi", "sv"), None]
    assert found.pairs == [("fi", "sv")]
    assert found.choose(None, "fi", None).name == "fi-sv"
    assert found.choose(None, "xx", "yy").name == "opus"  # it may well translate these


def test_names_that_clash_or_cannot_stand_in_metrics_are_wrong_use() -> None:
    for words in (["a=x", "a=y"], ["runs/a", "other/a"], ['q"=x'], ["=x"], ["a b=x"]):
        with pytest.raises(UsageError):
            models.load(words, engine)


def test_what_no_model_fits_is_refused_with_what_there_is() -> None:
    found = models.load(["runs/a"], engine)
    with raising(Refusal, "fi", "en-de"):
        found.choose(None, "fi", None)


def test_what_a_model_says_of_its_languages_is_text_on_the_page() -> None:
    """A folder that others converted may say anything."""
    hostile = '"><script>alert(1)</script>'
    found = models.Models([models.Served("a", engine(Path("plain")), (hostile, "'onfocus='alert(1)"))])
    (index,) = (route for route in page_files.routes(found, Limits()) if route.path == "/")
    html = bytes(asyncio.run(index.endpoint(None)).body).decode()
    assert "<script>" not in html
    assert html.count("<script") == 1
    assert "&#34;&gt;&lt;script&gt;" in html
    assert "'onfocus" not in html
