from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dragoman.data import recipes
from dragoman.data.recipes.multi30k_en_de import BASE
from dragoman.errors import DownloadError


def test_train_dev_and_test_are_collected(mirror, downloader, pairs, tmp_path: Path) -> None:
    for part in ("train", "val", "test_2016_flickr"):
        mirror.put(f"{BASE}/{part}.en.gz", gzip.compress(f"A dog, {part}.\n".encode()))
        mirror.put(f"{BASE}/{part}.de.gz", gzip.compress(f"Ein Hund, {part}.\n".encode()))
    collected = recipes.find("multi30k-en-de").collect(tmp_path / "text", downloader.fetch)
    assert pairs(collected.train[0]) == [("A dog, train.", "Ein Hund, train.")]
    assert pairs(collected.dev) == [("A dog, val.", "Ein Hund, val.")]
    assert pairs(collected.test) == [("A dog, test_2016_flickr.", "Ein Hund, test_2016_flickr.")]


def test_a_file_the_mirror_lacks_is_named(downloader, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="train.en.gz"):
        recipes.find("multi30k-en-de").collect(tmp_path / "text", downloader.fetch)
