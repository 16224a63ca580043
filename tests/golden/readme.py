"""What the README quotes of the program's output, held against what the program says now."""

from __future__ import annotations

import io
import re
import shlex
import textwrap
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock

from rich.console import Console
from typer.testing import CliRunner

from dragoman.cli import app
from dragoman.explain.run import explain
from dragoman.measure import database
from dragoman.report import summary, text

README = Path(__file__).parents[2] / "README.md"
DEMO = Path(__file__).with_name("demo.db")  # the records of one run of `make demo`
HEADING = "## What the demo's report says\n"
BLOCK = re.compile(r"(?:^(?: {4}.*)?\n)+", re.MULTILINE)  # indented lines, and empty ones between


def demo_report() -> str:
    """The report of the demo on a terminal of 80 columns, without the rows of key figures."""
    records = database.read(DEMO)
    out = io.StringIO()
    with mock.patch.object(summary, "key_numbers", return_value=[]):
        text.show(records, explain(records), Console(file=out, width=80, highlight=False))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join([*lines, "Page: runs/demo/report.html"])


def with_demo_report(readme: str) -> str:
    """The README with the demo's report as it comes out now."""
    before, after = readme.split(HEADING)
    introduction, rest = after.split(":\n", 1)
    quoted = BLOCK.match(rest)
    assert quoted
    block = textwrap.indent(demo_report(), "    ")
    return f"{before}{HEADING}{introduction}:\n\n{block}\n\n{rest[quoted.end() :]}"


def quoted_diagnosis(readme: str) -> tuple[list[str], list[str]]:
    """The words of the first `dragoman diagnose`, and the pieces that are quoted of its answer."""
    command, quoted = re.findall(
        r"^ {4}dragoman (diagnose (?:.*\\\n)*.*)\n\n((?:^ {4}.*\n)+)", readme, re.MULTILINE
    )[0]
    pieces = [piece for line in quoted.splitlines() for piece in line.split("...")]
    return shlex.split(command.replace("\\\n", " ")), [
        piece.strip(" ;") for piece in pieces if piece.strip(" ;")
    ]


def diagnosis(words: list[str]) -> str:
    """What the command prints, on one line."""
    with mock.patch.dict("os.environ", {"COLUMNS": "100"}), redirect_stdout(io.StringIO()) as out:
        result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return " ".join((out.getvalue() + result.output).split())


def write() -> None:
    README.write_text(with_demo_report(README.read_text(encoding="utf-8")), encoding="utf-8")
