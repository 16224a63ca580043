"""Removes what other programs add to the lines of a log: mpirun's tags, colours, times of container logs."""

from __future__ import annotations

import re

# mpirun --tag-output, perhaps with --timestamp-output. A space after the tag is the line's own indentation.
_TAG = re.compile(rb"^.{0,40}?\[[^\[\]]{1,80}\]<std(?:out|err)>:")
_COLOUR = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_CLOCK = re.compile(rb"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]?\d*(?:Z|[+-]\d\d:?\d\d) ")  # docker, kubectl, ts
_CHECKED_LINES = 100  # of each piece: if a log has such times, they are before every line


def unwrapped(piece: bytes, rows: list[bytes]) -> list[bytes]:
    """The lines of a piece as their program wrote them. Most logs need no change, which is cheap to see."""
    if b"\x1b[" in piece:
        rows = [_COLOUR.sub(b"", row) for row in rows]
    if any(map(_CLOCK.match, rows[:_CHECKED_LINES])):
        rows = [_CLOCK.sub(b"", row, count=1) for row in rows]
    if b"<std" in piece:
        rows = [_TAG.sub(b"", row, count=1) for row in rows]
    return rows
