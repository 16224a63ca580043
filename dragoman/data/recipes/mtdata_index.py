"""Builds in memory the index of public corpora that comes with mtdata.

`import mtdata.index` reads a pickle from the home folder, or writes one, and runs any `mtdata*.py` in the
working folder. Dragoman never unpickles a file, so a substitute takes that module's place, and the lists
beside it are loaded one by one, as mtdata itself does.
"""

from __future__ import annotations

import importlib
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

# The lists of mtdata 0.5, the longest last: OPUS takes 5 of the 7 seconds.
LISTS = (
    *("statmt", "paracrawl", "tilde", "joshua_indian", "unitednations", "wikimatrix", "other"),
    *("neulab_tedtalks", "elrc_share", "ai4bharat", "eu", "linguatools", "anuvaad", "allenai_nllb"),
    *("leipzig", "huggingface", "flores", "opus.opus100", "opus.opus_index"),
)


class _Index:
    """The index that mtdata's lists add their entries to."""

    def __init__(self) -> None:
        self.entries: dict[Any, Any] = {}

    def add_entry(self, entry: Any) -> None:
        self.entries[entry.did] = entry

    def __add__(self, entry: Any) -> _Index:  # for `index += entry`
        self.add_entry(entry)
        return self

    def __contains__(self, identifier: Any) -> bool:
        return identifier in self.entries


def lists_of_entries() -> Iterator[dict[str, Any]]:
    """mtdata's entries by id, list by list, so that a caller who finds an id early need not load the rest."""
    with _silence():
        _install_substitute()
    index = _Index()
    for name in LISTS:
        known = len(index.entries)
        with _silence():
            importlib.import_module(f"mtdata.index.{name}").load_all(index)
        yield {str(entry.did): entry for entry in list(index.entries.values())[known:]}


def _install_substitute() -> None:
    import mtdata
    from mtdata.entry import DatasetId, Entry
    from mtdata.iso.bcp47 import bcp47

    module = ModuleType("mtdata.index")
    module.__path__ = [str(Path(mtdata.__file__).parent / "index")]
    names = {"Index": _Index, "Entry": Entry, "DatasetId": DatasetId, "bcp47": bcp47, "log": mtdata.log}
    vars(module).update(names)
    sys.modules.setdefault("mtdata.index", module)


@contextmanager
def _silence() -> Iterator[None]:
    """Removes the root logger's handler that mtdata installs; hides its messages and open-file warnings."""
    root, disabled = logging.getLogger(), logging.root.manager.disable
    handlers, level = root.handlers[:], root.level
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(disabled)
        root.handlers[:] = handlers
        root.setLevel(level)
