"""The errors a user can meet, as a tree:

DragomanError        the run or check failed (exit code 1)
├── UsageError       wrong use: an option, an argument (exit code 2)
│   └── ConfigError  a config file or a --set
├── DataError        a file has bad content: text or a corpus, or one of these kinds of file:
│   ├── DataSetError     a prepared data set: its card, its arrays, its vocabulary
│   ├── CheckpointError  a checkpoint or a model folder, also an exported one
│   ├── RecordsError     a run's own records: records.db, provenance.json, plan.json
│   └── LogError         a log or a recording of another program
└── DownloadError    a file could not be fetched, or is not the one expected

Each message says what was found, where (file and line), and what to try. None shows a traceback.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DragomanError(Exception):
    """A failure, with the file and line it concerns and the next thing to try."""

    exit_code = 1

    def __init__(self, what: str, *, path: Path | str | None = None, line: int | None = None, hint: str = ""):
        self.what = what
        self.path = None if path is None else str(path)
        self.line = line
        self.hint = hint
        super().__init__(str(self))

    @property
    def where(self) -> str:
        """The place as `file` or `file:line`; empty if there is none."""
        if self.path is None:
            return ""
        return self.path if self.line is None else f"{self.path}:{self.line}"

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  try: {self.hint}" if self.hint else text


class UsageError(DragomanError):
    exit_code = 2


class ConfigError(UsageError):
    pass


class DataError(DragomanError):
    expected = "a file of this kind"


class DataSetError(DataError):
    expected = "part of a data set made by dragoman prepare"


class CheckpointError(DataError):
    expected = "part of a model saved by dragoman"


class RecordsError(DataError):
    expected = "a record of a dragoman run"


class LogError(DataError):
    expected = "a readable log"


class DownloadError(DragomanError):
    pass


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Adds the path to a system error that names no file, such as "No space left on device"."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


@contextmanager
def reading(path: Path | str, kind: type[DataError] = DataError, hint: str = "") -> Iterator[None]:
    """Turns any failure inside the block into an error of the given kind that names the file.

    Bad content must never reach the user as a bare KeyError. Put only reading and parsing into the block: a
    mistake of ours elsewhere must not be blamed on the file.
    """
    try:
        with naming(path):
            yield
    except (DragomanError, OSError):
        raise
    except MemoryError:
        raise kind("needs more memory than this machine has", path=path, hint=hint) from None
    except Exception as error:
        raise kind(f"not {kind.expected} ({_in_words(error)})", path=path, hint=hint) from error


_MOST_CHARACTERS = 200  # of another library's message: some quote the whole content of the file


def _in_words(error: Exception) -> str:
    """Another library's error in one line."""
    if isinstance(error, KeyError) and error.args:
        return f"{error.args[0]!r} is missing"
    if list_errors := getattr(error, "errors", None):  # pydantic: a list of places and what is wrong there
        first = list_errors()[0]
        place = ".".join(map(str, first["loc"]))
        return (f"{place}: {first['msg']}" if place else str(first["msg"]))[:_MOST_CHARACTERS]
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}"[:_MOST_CHARACTERS] if lines else type(error).__name__
