from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.data import recipes
from dragoman.data.recipes import demo


def test_the_demo_needs_no_download_and_holds_out_dev_and_test(pairs, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo, "TRAIN_PAIRS", 2_000)

    def no_fetch(url: str, *, sha256: str | None = None, md5: str | None = None) -> Path:
        pytest.fail(f"{url} was fetched")

    collected = recipes.find("demo").collect(tmp_path / "text", no_fetch)
    train, dev, test = (pairs(corpus) for corpus in (collected.train[0], collected.dev, collected.test))
    assert (len(train), len(dev), len(test)) == (2_000, demo.DEV_PAIRS, demo.TEST_PAIRS)
    assert not {source for source, _ in train} & {source for source, _ in dev + test}
