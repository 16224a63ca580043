from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from sacrebleu.dataset import DATASETS

from dragoman.config import CleanRules
from dragoman.data import recipes
from dragoman.data.download import place
from dragoman.data.recipes.sgm import sgm_to_lines
from dragoman.data.recipes.wmt16_en_de import PUBLISHED, TRAINING
from dragoman.errors import DownloadError
from tests.facts import raising

SGM = """<srcset setid="newstest" srclang="any">
<doc sysid="ref" docid="a" genre="news" origlang="en">
<p>
<seg id="1">{0}  &amp; more </seg>
<seg id="2">a < b, "c"\u00a0d</seg>
</p>
</doc>
</srcset>
"""


@pytest.fixture
def archives(mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small archives with the layout of the real ones, at their addresses."""
    mirror.put_tgz(
        "http://www.statmt.org/europarl/v7/de-en.tgz",
        {"europarl-v7.de-en.de": "Hallo\nTag\n", "europarl-v7.de-en.en": "Hello\nDay\n"},
    )
    mirror.put_tgz(
        "http://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",
        {
            "commoncrawl.cs-en.cs": "Ano\n",
            "commoncrawl.de-en.de": "Ja\n",
            "commoncrawl.de-en.en": "Yes\n",
            "commoncrawl.de-en.annotation": "http\n",
        },
    )
    folder = "training-parallel-nc-v11"
    mirror.put_tgz(
        "http://data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz",
        {f"{folder}/news-commentary-v11.de-en.{side}": f"News {side}\n" for side in ("en", "de")},
    )
    mirror.put_tgz(
        "https://statmt.org/wmt13/test.tgz",
        {f"test/newstest2013-src.{side}.sgm": SGM.format(side) for side in ("en", "de", "cs")},
    )
    mirror.put_tgz(
        "https://statmt.org/wmt14/test-filtered.tgz",
        {
            "test/newstest2014-deen-src.en.sgm": SGM.format("source"),
            "test/newstest2014-deen-ref.de.sgm": SGM.format("reference"),
            "test/newstest2014-deen-src.de.sgm": SGM.format("other direction"),
        },
    )
    for name in ("wmt13", "wmt14"):
        content = (mirror.folder / place(DATASETS[name].data[0])).read_bytes()
        monkeypatch.setattr(DATASETS[name], "md5", [hashlib.md5(content).hexdigest()])
    for name, url, _ in TRAINING:
        if name in PUBLISHED:
            content = (mirror.folder / place(url)).read_bytes()
            monkeypatch.setitem(PUBLISHED, name, hashlib.sha256(content).hexdigest())


@pytest.mark.usefixtures("archives")
def test_the_three_corpora_and_both_test_sets_are_collected(downloader, pairs, tmp_path: Path) -> None:
    collected = recipes.find("wmt16-en-de").collect(tmp_path / "text", downloader.fetch)
    assert [corpus.name for corpus in collected.train] == [
        "europarl-v7",
        "commoncrawl",
        "news-commentary-v11",
    ]
    assert [pairs(corpus) for corpus in collected.train] == [
        [("Hello", "Hallo"), ("Day", "Tag")],
        [("Yes", "Ja")],
        [("News en", "News de")],
    ]
    assert pairs(collected.dev)[0] == ("en &amp; more", "de &amp; more")
    assert pairs(collected.test)[0] == ("source &amp; more", "reference &amp; more")


@pytest.mark.usefixtures("archives")
def test_a_test_set_that_is_not_the_published_one_is_refused(downloader, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(DATASETS["wmt14"], "md5", ["84c597844c1542e29c2aff23aaee4310"])
    with raising(DownloadError, "84c597844c1542e29c2aff23aaee4310"):
        recipes.find("wmt16-en-de").collect(tmp_path / "text", downloader.fetch)


@pytest.mark.usefixtures("archives")
@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_training_text_that_is_not_the_published_one_is_refused(
    downloader, monkeypatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setitem(PUBLISHED, name, "0" * 64)
    with raising(DownloadError, "0" * 64):
        recipes.find("wmt16-en-de").collect(tmp_path / "text", downloader.fetch)


def test_the_counts_and_rules_of_the_public_runs_are_carried() -> None:
    recipe = recipes.find("wmt16-en-de")
    assert (recipe.expected_raw_pairs, recipe.expected_clean_pairs) == (4_562_102, 4_524_868)
    clean = (key for key in recipe.settings if key.startswith("clean."))
    given = {key.removeprefix("clean."): recipe.settings[key] for key in clean}
    rules = CleanRules.model_validate(given)
    assert not (rules.drop_duplicates or rules.drop_identical or rules.drop_leakage)
    assert set(given) == set(CleanRules.model_fields)  # a new rule must be decided on here too


def test_the_text_of_a_test_set_is_that_of_sacrebleu(tmp_path: Path) -> None:
    (tmp_path / "a.sgm").write_text(SGM.format("Überraschung\u2028 hier"), encoding="utf-8")
    DATASETS["wmt14"]._convert_format(str(tmp_path / "a.sgm"), str(tmp_path / "theirs"))
    ours = sgm_to_lines(tmp_path / "a.sgm", tmp_path / "ours")
    assert ours.read_bytes() == (tmp_path / "theirs").read_bytes()
    assert ours.read_text(encoding="utf-8").splitlines()[1] == 'a < b, "c" d'
