"""wmt16-en-de: the training data of the public runs, English to German.

Europarl v7 (1,920,209 pairs), Common Crawl (2,399,123) and News Commentary v11 (242,770), in this order. The
dev set is newstest2013 (3,000), the test set newstest2014 in sacreBLEU's 2,737-line form `wmt14`.

The tests use a mirror with small made-up archives of the same layout; the real files have not been fetched.
`dragoman prepare` checks the numbers of pairs.
"""

from __future__ import annotations

from pathlib import Path

from dragoman.data.archive import extract
from dragoman.data.corpus import Corpus, Files
from dragoman.data.recipes.recipe import Collected, Fetch, Recipe
from dragoman.data.recipes.sgm import sgm_to_lines

# Name, address, path inside the archive without the language. Europarl and Common Crawl are taken from the
# mtdata index (Statmt-europarl-7-deu-eng, Statmt-commoncrawl_wmt13-1-deu-eng). It does not list News
# Commentary v11, whose address and path are those of the public scripts (tensorflow/nmt, tensor2tensor).
TRAINING = (
    ("europarl-v7", "http://www.statmt.org/europarl/v7/de-en.tgz", "europarl-v7.de-en"),
    ("commoncrawl", "http://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz", "commoncrawl.de-en"),
    (
        "news-commentary-v11",
        "http://data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz",
        "training-parallel-nc-v11/news-commentary-v11.de-en",
    ),
)

# sha256 published by tensorflow/datasets (url_checksums/wmt16_translate.txt). None is known for Europarl.
PUBLISHED = {
    "commoncrawl": "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
    "news-commentary-v11": "cfe8ab047e05043476e498ee765c98e939c7b7d6d294e856344c84476b619d6a",
}

# The public runs dropped pairs only by length: the 4,524,868 pairs include repeated and identical ones.
PUBLIC_RULES = {
    "min_words": 1,
    "max_words": 80,
    "max_ratio": 9.0,
    "drop_control_characters": False,
    "drop_identical": False,
    "drop_duplicates": False,
    "drop_leakage": False,
    "check_script": False,
    "check_language": False,
    "normalise": "none",
}


def collect(folder: Path, fetch: Fetch) -> Collected:
    train = []
    for name, url, path in TRAINING:
        archive = fetch(url, sha256=PUBLISHED.get(name))
        english, german = extract(archive, [f"{path}.en", f"{path}.de"], folder)
        train.append(Corpus(name, "en", "de", (Files(english, german),)))
    return Collected(
        tuple(train),
        dev=_test_set("newstest2013", "wmt13", folder, fetch),
        test=_test_set("newstest2014", "wmt14", folder, fetch),
    )


def _test_set(name: str, sacrebleu_name: str, folder: Path, fetch: Fetch) -> Corpus:
    """A test set from the archive that sacreBLEU uses. Address, md5 and paths come from sacreBLEU's list."""
    from sacrebleu.dataset import DATASETS

    known = DATASETS[sacrebleu_name]
    assert known.data and known.md5
    archive = fetch(known.data[0], md5=known.md5[0])
    sgm = extract(archive, known.langpairs["en-de"], folder)
    english, german = (
        sgm_to_lines(file, folder / f"{name}.{language}")
        for file, language in zip(sgm, ("en", "de"), strict=True)
    )
    return Corpus(name, "en", "de", (Files(english, german),))


RECIPE = Recipe(
    name="wmt16-en-de",
    description="Europarl v7, Common Crawl, News Commentary v11: 4.5 million pairs, test newstest2014",
    source_language="en",
    target_language="de",
    collect=collect,
    settings={f"clean.{name}": value for name, value in PUBLIC_RULES.items()} | {"vocabulary.size": 32_768},
    expected_raw_pairs=4_562_102,
    expected_clean_pairs=4_524_868,
)
