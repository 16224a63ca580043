"""Converts the SGML of the WMT test sets to plain lines."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import DataError, reading

_END = "</seg>"


def sgm_to_lines(sgm: Path, lines: Path) -> Path:
    """Writes one line per segment, exactly as sacreBLEU does: entities such as &amp; stay unchanged."""
    with (
        reading(sgm, DataError),
        sgm.open(encoding="utf-8") as source,
        lines.open("w", encoding="utf-8", newline="\n") as out,
    ):
        for line in source:
            if line.startswith("<seg "):
                out.write(" ".join(_segment(line).split()) + "\n")
    return lines


def _segment(line: str) -> str:
    """The text between the tags, up to the last end tag; a line without both tags stays unchanged."""
    opening, closing = line.find(">"), line.rfind(_END)
    if opening < 0 or closing <= opening:
        return line
    return line[opening + 1 : closing] + line[closing + len(_END) :]
