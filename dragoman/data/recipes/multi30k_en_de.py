"""multi30k-en-de: captions of 31,014 pictures, translated by people. 29,000 / 1,014 / 1,000 pairs.

The files of task 1 in https://github.com/multi30k/dataset, unchanged: gzip, one sentence per line. The tests
download made-up files from a mirror; the real files have not been fetched.
"""

from __future__ import annotations

from pathlib import Path

from dragoman.data.corpus import Corpus, Files
from dragoman.data.recipes.recipe import Collected, Fetch, Recipe

BASE = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"


def collect(folder: Path, fetch: Fetch) -> Collected:
    def corpus(part: str) -> Corpus:
        files = Files(fetch(f"{BASE}/{part}.en.gz"), fetch(f"{BASE}/{part}.de.gz"))
        return Corpus(f"multi30k-{part}", "en", "de", (files,))

    return Collected((corpus("train"),), corpus("val"), corpus("test_2016_flickr"))


RECIPE = Recipe(
    name="multi30k-en-de",
    description="picture captions, English to German: 29,000 pairs, test set flickr 2016",
    source_language="en",
    target_language="de",
    collect=collect,
    expected_raw_pairs=29_000,
)
