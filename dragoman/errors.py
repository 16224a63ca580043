"""What can go wrong for a user, as a tree:

DragomanError        the run or check failed (exit code 1)
├── UsageError       wrong use: an option, an argument (exit code 2)
│   └── ConfigError  a config file or a --set
├── DataError        a file holds something it should not
└── DownloadError    a file could not be fetched, or is not the one expected

Each says what was found, where (file, line), and what to try. None of them shows a traceback.
"""

from __future__ import annotations

from pathlib import Path


class DragomanError(Exception):
    """A failure with its place and the next thing to try."""

    exit_code = 1

    def __init__(self, what: str, *, path: Path | str | None = None, line: int | None = None, hint: str = ""):
        self.what = what
        self.path = None if path is None else str(path)
        self.line = line
        self.hint = hint
        super().__init__(str(self))

    @property
    def where(self) -> str:
        """`file`, `file:line`, or nothing."""
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
    pass


class DownloadError(DragomanError):
    pass
