"""The index of public corpora that comes with mtdata, built in memory.

`import mtdata.index` reads a pickle from the home folder, or writes one, and runs any `mtdata*.py` of the
working folder. Nothing of ours unpickles a file, so a stand-in takes that module's place, and the lists
beside it are loaded one by one as mtdata does it.
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
    """What mtdata's lists add themselves to."""

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
    """mtdata's entries by id, a list at a time, so that who finds an id early need not wait for the rest."""
    with _silence():
        _stand_in()
    index = _Index()
    for name in LISTS:
        known = len(index.entries)
        with _silence():
            importlib.import_module(f"mtdata.index.{name}").load_all(index)
        yield {str(entry.did): entry for entry in list(index.entries.values())[known:]}


def _stand_in() -> None:
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
    """mtdata puts a handler on the root logger when imported, talks while it loads, leaves files open."""
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
