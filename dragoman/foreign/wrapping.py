"""What others put around the lines of a log: mpirun's tags, colours, the times of a container's log."""

from __future__ import annotations

import re

# mpirun --tag-output, with --timestamp-output too. A space after it is the line's own: a config is indented.
_TAG = re.compile(rb"^.{0,40}?\[[^\[\]]{1,80}\]<std(?:out|err)>:")
_COLOUR = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_CLOCK = re.compile(rb"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]?\d*(?:Z|[+-]\d\d:?\d\d) ")  # docker, kubectl, ts
_LOOKED_AT = 100  # lines of a piece: such a log has its times before every line


def unwrapped(piece: bytes, rows: list[bytes]) -> list[bytes]:
    """The lines of a piece as their program wrote them. Each is cheap to rule out: most logs have none."""
    if b"\x1b[" in piece:
        rows = [_COLOUR.sub(b"", row) for row in rows]
    if any(map(_CLOCK.match, rows[:_LOOKED_AT])):
        rows = [_CLOCK.sub(b"", row, count=1) for row in rows]
    if b"<std" in piece:
        rows = [_TAG.sub(b"", row, count=1) for row in rows]
    return rows
