"""Finds where two files that should be parallel drift apart, from the lengths of their lines."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dragoman.data import files
from dragoman.errors import DataError

# Costs are sums of |log length ratio|. The last pairs of a file may fit better shifted by chance. A place
# that is better than "cut off at the end" by no more than this is no evidence of lines lost in the middle.
_CHANCE = 1.0

_EXCERPT_CHARACTERS = 50


def error(source: Path, target: Path) -> DataError:
    """The error for two files with different numbers of lines. Reads both files again."""
    source_bytes, target_bytes = _line_bytes(source), _line_bytes(target)
    counts = (
        f"{source.name} has {len(source_bytes):,} lines, {target.name} has {len(target_bytes):,}; "
        f"expected the same number"
    )
    line = first_drifting_line(source_bytes, target_bytes)
    if line is None:
        shorter, longer = sorted((len(source_bytes), len(target_bytes)))
        end = source if len(source_bytes) == shorter else target
        return DataError(
            f"{counts}. They match up to the end of {end.name}, which seems to be cut off there",
            path=end,
            line=shorter,
            hint=f"fetch {end.name} again, or cut the other file to {shorter:,} lines (head -n {shorter})",
        )
    return DataError(
        f"{counts}. They drift apart at about line {line:,} "
        f"({source.name}: '{_excerpt(source, line)}', {target.name}: '{_excerpt(target, line)}')",
        path=source,
        line=line,
        hint="compare the two files around that line, and restore or remove what is on one side only",
    )


def first_drifting_line(
    source_bytes: npt.NDArray[np.int64], target_bytes: npt.NDArray[np.int64]
) -> int | None:
    """The line, counted from 1, at which the longer file's extra lines begin; None if they are at its end.

    All extra lines are assumed to be in one place: before it line i matches line i, after it line
    i + surplus. The place with the best-fitting length ratios is found in one pass of prefix sums.
    """
    short, long = source_bytes, target_bytes
    if len(short) > len(long):
        short, long = long, short
    surplus = len(long) - len(short)
    if not len(short):
        return None
    log_short, log_long = np.log1p(short), np.log1p(long)
    aligned = log_long[: len(short)] - log_short
    shifted = log_long[surplus:] - log_short
    usual = np.median(aligned)  # one language needs more bytes than the other throughout
    aligned_before = np.concatenate(([0.0], np.cumsum(np.abs(aligned - usual))))
    shifted_before = np.concatenate(([0.0], np.cumsum(np.abs(shifted - usual))))
    cost = aligned_before + shifted_before[-1] - shifted_before  # [k]: the first k lines are aligned
    best = int(np.argmin(cost))
    return None if cost[-1] <= cost[best] + _CHANCE else best + 1


def _line_bytes(path: Path) -> npt.NDArray[np.int64]:
    return np.fromiter(map(len, files.lines(path)), dtype=np.int64)


def _excerpt(path: Path, line: int) -> str:
    text = next(itertools.islice(files.lines(path), line - 1, None), b"").decode(errors="replace")
    return text if len(text) <= _EXCERPT_CHARACTERS else text[:_EXCERPT_CHARACTERS] + "..."
