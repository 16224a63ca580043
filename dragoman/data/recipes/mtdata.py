"""Makes a recipe of any id of the mtdata index, such as Statmt-news_commentary-16-deu-eng.

mtdata says where a corpus is and how it is packed; our own downloader and readers do the rest. The first
language of the id is the source. Most corpora are listed in one order only, so an id with its languages
swapped works as well. Such a recipe has no dev or test set: those have ids of their own.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dragoman.data import files
from dragoman.data.archive import extract
from dragoman.data.corpus import Corpus, Files
from dragoman.data.recipes.mtdata_index import lists_of_entries
from dragoman.data.recipes.recipe import Collected, Fetch, Recipe
from dragoman.errors import UsageError

_ARCHIVES = ("zip", "tar", "tar.gz", "tgz")
_FORMATS = ("txt", "tsv", "tmx")


def find(identifier: str, tell: Callable[[str], None]) -> Recipe:
    """The recipe for an id of the index."""
    tell("building the index of public corpora")
    swapped = _swap(identifier)
    alike: list[str] = []  # corpora of the same two languages, to suggest
    for entries in lists_of_entries():
        if identifier in entries:
            return recipe(entries[identifier], is_swapped=False)
        if swapped in entries:
            return recipe(entries[swapped], is_swapped=True)
        endings = (_languages(identifier), _languages(swapped))
        alike += [known for known in entries if _languages(known) in endings]
    nearest = difflib.get_close_matches(identifier, alike, n=3)
    raise UsageError(
        f"{identifier} is neither a recipe nor an id of the mtdata index",
        hint=f"did you mean {', '.join(nearest)}?" if nearest else "mtdata list -id -l deu-eng lists ids",
    )


def recipe(entry: Any, is_swapped: bool) -> Recipe:
    """The recipe for an entry of the index. Raises if we cannot read its format."""
    identifier, form = str(entry.did), _format(entry)
    if len(entry.did.langs) != 2:
        raise UsageError(f"{identifier} has one language, but translation needs two")
    if form not in _FORMATS or entry.ext == "hfds":
        raise UsageError(
            f"{identifier} is stored as {form}, but dragoman reads only {', '.join(_FORMATS)} from the index",
            hint="download it with mtdata, then give the files to dragoman prepare",
        )
    source, target = (_code(tag) for tag in entry.did.langs)
    if is_swapped:
        identifier, source, target = _swap(identifier), target, source

    def collect(folder: Path, fetch: Fetch) -> Collected:
        paths = _download(entry, folder, fetch)
        files = _FILES[form](paths, entry.cols or (0, 1), folder)
        if is_swapped:
            files = [Files(piece.target or piece.source, piece.target and piece.source) for piece in files]
        return Collected((Corpus(identifier, source, target, tuple(files)),))

    return Recipe(identifier, f"from the mtdata index: {entry.url}", source, target, collect)


def _download(entry: Any, folder: Path, fetch: Fetch) -> list[Path]:
    urls = [entry.url] if isinstance(entry.url, str) else entry.url
    downloads = [fetch(url) for url in urls]
    if entry.ext in _ARCHIVES:
        return extract(downloads[0], entry.in_paths, folder)
    return downloads


def _lines(paths: Sequence[Path], columns: Sequence[int], folder: Path) -> list[Files]:
    first, second = paths
    return [Files(first, second)]


def _tmx(paths: Sequence[Path], columns: Sequence[int], folder: Path) -> list[Files]:
    return [Files(path) for path in paths]


def _tsv(paths: Sequence[Path], columns: Sequence[int], folder: Path) -> list[Files]:
    """Writes two columns of each table as two files of lines. Which columns differs between corpora."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = []
    for number, path in enumerate(paths):
        outputs = [folder / f"{path.name}.{number}.column-{column}" for column in columns]
        with outputs[0].open("wb") as first, outputs[1].open("wb") as second:
            for line in files.lines(path):
                cells = line.split(b"\t")
                for column, out in zip(columns, (first, second), strict=True):
                    # A row that is too short gets an empty side, and cleaning then drops and counts it.
                    out.write((cells[column].strip() if column < len(cells) else b"") + b"\n")
        pieces.append(Files(outputs[0], outputs[1]))
    return pieces


_FILES = {"txt": _lines, "tsv": _tsv, "tmx": _tmx}


def _format(entry: Any) -> str:
    """mtdata's name for the entry's format, such as txt, tsv or tmx, without the compression."""
    form = entry.in_ext or entry.ext
    if entry.cols and len(entry.cols) == 1:
        return "a table for each language"
    for compression in (".gz", ".xz", ".bz2"):
        form = form.removesuffix(compression)
    return str(form)


def _languages(identifier: str) -> tuple[str, ...]:
    return tuple(identifier.split("-")[3:])


def _swap(identifier: str) -> str:
    *rest, first, second = identifier.split("-")
    return "-".join([*rest, second, first])


def _code(tag: Any) -> str:
    """The usual code for a language of the index, which uses ISO 639-3: de for deu, zh-TW for zho_TW."""
    from mtdata.iso.iso639_1 import ISO693_1_to_3

    two_letters = {three: two for two, three in ISO693_1_to_3.items()}
    return "-".join(part for part in (two_letters.get(tag.lang, tag.lang), tag.script, tag.region) if part)
