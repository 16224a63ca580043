"""Writes to records.db in the background, in order, so that no step waits for a disk."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dragoman.measure.database import RecordsFile
from dragoman.measure.records import Attempt


class RecordWriter:
    """Writes nothing: what ranks other than 0 have."""

    failure: str | None = None  # why records could not be written; training goes on without them
    attempts: Sequence[Attempt] = ()  # when the run was started before
    last_time = -math.inf  # of the newest row
    spent = 0.0  # seconds that recording cost then

    def do(self, action: Callable[[RecordsFile], object]) -> None:
        """Later, in the order of the calls."""

    def close(self) -> None:
        """Everything is on disk."""


class FileWriter(RecordWriter):
    def __init__(self, path: Path):
        self._file = RecordsFile(path)
        self.attempts = self._file.past
        self.last_time = self._file.last_time
        self.spent = self._file.fact("recording_seconds") or 0.0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="records")

    def do(self, action: Callable[[RecordsFile], object]) -> None:
        self._thread.submit(self._try, action)

    def close(self) -> None:
        self._thread.shutdown()
        self._file.close()

    def _try(self, action: Callable[[RecordsFile], object]) -> None:
        try:
            action(self._file)
        except Exception as error:  # a full disk must not end a run of days
            self.failure = self.failure or f"{type(error).__name__}: {error}"
