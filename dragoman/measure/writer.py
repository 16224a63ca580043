"""Writes to records.db in order, in a background thread, so that no step waits for a disk."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dragoman.measure.database import RecordsFile
from dragoman.measure.records import Attempt


class RecordWriter:
    """Writes nothing; used on all ranks but 0."""

    failure: str | None = None  # why records could not be written; training continues without them
    attempts: Sequence[Attempt] = ()  # the earlier attempts of the run
    last_time = -math.inf  # time of the newest row
    spent = 0.0  # seconds that recording cost in earlier attempts

    def do(self, action: Callable[[RecordsFile], object]) -> None:
        """Queues an action; actions run in the order of the calls."""

    def close(self) -> None:
        """Returns when everything is on disk."""


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
