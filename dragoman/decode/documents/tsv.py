"""TSV: translates the first column into the second; further columns stay."""

from __future__ import annotations

from pathlib import Path

from dragoman.data import files
from dragoman.decode.documents.document import OutputWriter, Translate, UnitTally
from dragoman.decode.documents.lines import decoded, groups


def fill(source: Path, out: OutputWriter, translate: Translate, again: bool) -> UnitTally:
    tally = UnitTally()
    for texts in groups(decoded(files.lines(source), source)):
        rows = [line.split("\t") for line in texts]
        wanted = [row for row in rows if row[0].strip() and (again or not "".join(row[1:2]).strip())]
        for row, translation in zip(wanted, translate([row[0] for row in wanted]), strict=True):
            row[1:2] = [translation.replace("\t", " ")]
        out.write("".join("\t".join(row) + "\n" for row in rows).encode())
        tally.add(UnitTally(len(wanted), len(rows) - len(wanted)))
    return tally
