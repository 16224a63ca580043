"""sacreBLEU's test sets by name, from its own folder, the internet or a mirror."""

from __future__ import annotations

import copy
import difflib
from pathlib import Path
from typing import Any

from sacrebleu import DATASETS

from dragoman import temporary
from dragoman.data.download import Downloader
from dragoman.errors import DownloadError, UsageError
from dragoman.evaluate.heldout import HeldOut, Languages, sentences


def find(name: str, languages: Languages, mirror: str | None) -> HeldOut:
    """The test set, with all its references.

    Without a mirror, sacreBLEU looks in its own folder and downloads what is missing. A mirror works as in
    `dragoman prepare --mirror`; files from it are not kept.
    """
    pair = "-".join(languages)
    data_set = _known(name, pair)
    with temporary.folder("dragoman-") as folder:
        if mirror is not None:
            data_set = _from_mirror(data_set, folder, mirror)
        try:
            source, references = data_set.get_source_file(pair), data_set.get_reference_files(pair)
        except (OSError, SystemExit) as error:  # sacreBLEU exits the program if a checksum differs
            raise DownloadError(
                f"sacreBLEU could not get the test set {name}: {error}",
                hint=f"--mirror with a folder that contains {', '.join(data_set.data)}",
            ) from None
        texts = [sentences(Path(path)) for path in (source, *references)]
    return HeldOut(f"{name} {pair}", texts[0], texts[1:], languages)


def _known(name: str, pair: str) -> Any:
    if name not in DATASETS:
        nearest = difflib.get_close_matches(name, DATASETS, n=3)
        hint = f"did you mean {', '.join(nearest)}?" if nearest else "sacrebleu --list shows them all"
        raise UsageError(f"sacreBLEU has no test set {name}", hint=hint)
    if pair not in DATASETS[name].langpairs:
        known = ", ".join(sorted(DATASETS[name].langpairs))
        raise UsageError(f"the test set {name} has no {pair}", hint=f"--languages with one of {known}")
    return DATASETS[name]


def _from_mirror(data_set: Any, folder: Path, mirror: str) -> Any:
    """A copy of the test set whose files are fetched from the mirror and checked against their checksums."""
    downloader = Downloader(folder / "downloads", mirror)
    sums = data_set.md5 or [None] * len(data_set.data)
    fetched = [downloader.fetch(url, md5=md5) for url, md5 in zip(data_set.data, sums, strict=True)]
    moved = copy.copy(data_set)
    moved.data = [path.absolute().as_uri() for path in fetched]
    moved._outdir, moved._rawdir = str(folder / "texts"), str(folder / "texts" / "raw")
    return moved
