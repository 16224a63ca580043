"""The SGML of the WMT test sets as plain lines."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import DataError, reading

_END = "</seg>"


def sgm_to_lines(sgm: Path, lines: Path) -> Path:
    """One line per segment, exactly as sacreBLEU gives them: entities such as &amp; stay as they are."""
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
    """What stands between the tags, up to the last end; a line without both stays as it is."""
    opening, closing = line.find(">"), line.rfind(_END)
    if opening < 0 or closing <= opening:
        return line
    return line[opening + 1 : closing] + line[closing + len(_END) :]
