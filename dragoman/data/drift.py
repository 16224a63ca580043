"""Where two files that should be parallel drift apart, judged by the lengths of their lines."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dragoman.data import files
from dragoman.errors import DataError

# Costs are sums of |log length ratio|. The last pairs of a file may fit better shifted by chance; a
# place only this much better than "cut off at the end" is no evidence of lines lost in the middle.
_CHANCE = 1.0

_EXCERPT_CHARACTERS = 50


def error(source: Path, target: Path) -> DataError:
    """What to tell about two files with different numbers of lines. Reads both again."""
    source_bytes, target_bytes = _line_bytes(source), _line_bytes(target)
    counts = (
        f"{source.name} has {len(source_bytes):,} lines, {target.name} has {len(target_bytes):,}; "
        f"the same number was expected"
    )
    line = first_drifting_line(source_bytes, target_bytes)
    if line is None:
        shorter, longer = sorted((len(source_bytes), len(target_bytes)))
        end = source if len(source_bytes) == shorter else target
        return DataError(
            f"{counts}. They fit as far as both go: {end.name} seems cut off at its end",
            path=end,
            line=shorter,
            hint=f"fetch {end.name} again, or cut the other to {shorter:,} lines (head -n {shorter})",
        )
    return DataError(
        f"{counts}. They drift apart at about line {line:,} "
        f"({source.name}: '{_excerpt(source, line)}', {target.name}: '{_excerpt(target, line)}')",
        path=source,
        line=line,
        hint="compare the two files around that line and put back or take out what is on one side only",
    )


def first_drifting_line(
    source_bytes: npt.NDArray[np.int64], target_bytes: npt.NDArray[np.int64]
) -> int | None:
    """The line, counted from 1, from which the longer file has lines too many; None: only at the end.

    All surplus lines are taken to sit in one place: before it line i belongs to line i, after it to line
    i + surplus. The place that makes the length ratios fit best wins, in one pass of prefix sums.
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
    usual = np.median(aligned)  # one language takes more bytes than the other all along
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
