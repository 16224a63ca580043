"""The SGML of the WMT test sets as plain lines."""

from __future__ import annotations

import re
from pathlib import Path

_SEGMENT = re.compile(r"<seg.*?>(.*)</seg>.*?")


def sgm_to_lines(sgm: Path, lines: Path) -> Path:
    """One line per segment, exactly as sacreBLEU gives them: entities such as &amp; stay as they are."""
    with (
        sgm.open(encoding="utf-8") as source,
        lines.open("w", encoding="utf-8", newline="\n") as out,
    ):
        for line in source:
            if line.startswith("<seg "):
                out.write(re.sub(r"\s+", " ", _SEGMENT.sub(r"\1", line).strip()) + "\n")
    return lines
