from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from dragoman import progress, terminal
from dragoman.train.view import BarView, LogView

COMMANDS = "\x1b[31mred \x1b]0;title\x07 \x9b2J \x00\x08\r\x7f \u202eturned \u2066isolated \udcff"
HARMLESS = "Größe\tيوم می‌خواهم 日本 👩‍👩‍👧 [bold]text[/bold]\n"


def test_what_would_command_a_terminal_is_shown_and_the_rest_stays() -> None:
    shown = terminal.plain(COMMANDS)
    assert shown.isprintable()
    assert shown.startswith(r"\x1b[31mred \x1b]0;title\x07 \x9b2J")
    assert shown.endswith(r"\udcff")
    assert terminal.plain(HARMLESS) == HARMLESS


def on_terminal(width: int = 200) -> tuple[terminal.PlainConsole, io.StringIO]:
    written = io.StringIO()
    return terminal.PlainConsole(file=written, force_terminal=True, width=width, color_system=None), written


@pytest.mark.parametrize("kind", [str, Text, Markdown, "table"])
def test_whatever_rich_draws_is_only_text(kind: object) -> None:
    console, written = on_terminal()
    if kind == "table":
        table = Table()
        table.add_row(Text("host\x1b[31m and more"), "\x1b]0;title\x07")
        console.print(table)
    else:
        console.print(kind("host\x1b[31m \x9b2J"))  # type: ignore[operator]
    assert r"host\x1b[31m" in written.getvalue()
    assert not re.search("[\x1b\x9b\x07]", written.getvalue())


def test_a_bar_moves_the_cursor_and_the_name_in_it_does_not() -> None:
    console, written = on_terminal()
    reporter = progress.BarReporter(console)
    with reporter.stage("Downloading [/red]\x1b[31mname", "bytes") as stage:
        reporter.note("note \x1b[31mof it")
        stage.at(1, 2)
    assert r"Downloading [/red]\x1b[31m" in written.getvalue()
    assert r"note \x1b[31mof it" in written.getvalue()
    assert "\x1b[31m" not in written.getvalue()
    assert "\x1b[?25l" in written.getvalue()  # the cursor is hidden, by rich itself


def test_lines_in_a_log_are_only_text(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = progress.LineReporter()
    with reporter.stage("name\x1b[31m"):
        reporter.note("note\x1b[31m\udcff")
    terminal.say("said\x1b[31m\udcff")
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert said.out == "said\\x1b[31m\\udcff\n"


def test_json_passes_as_it_is_but_for_what_cannot_be_encoded(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.answer('{"name": "\u202eGröße\udcff"}\n')
    assert capsys.readouterr().out == '{"name": "\u202eGröße?"}\n'


def test_a_run_says_and_logs_only_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    console, written = on_terminal()
    for make in (lambda: LogView(tmp_path / "a", 10), lambda: BarView(tmp_path / "b", 10, 0, console)):
        view = make()
        view.say("sent from host\x1b[31m")
        view.close()
    texts = [(tmp_path / "a").read_text(), (tmp_path / "b").read_text(), capsys.readouterr().out]
    assert texts == ["sent from host\\x1b[31m\n"] * 3
    assert r"host\x1b[31m" in written.getvalue()
