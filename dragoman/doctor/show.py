"""Prints checks: a table on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dragoman import terminal
from dragoman.doctor.check import Check

_STYLES = {"ok": "green", "warning": "yellow", "error": "bold red"}


def show(checks: Sequence[Check], console: Console | None = None) -> None:
    console = console or terminal.console()
    if console.is_terminal:
        console.print(_table(checks))
    else:
        for line in lines(checks):
            terminal.say(line)


def lines(checks: Sequence[Check]) -> list[str]:
    """A line for each check, and a second one if there is something to try."""
    names, hosts = (max((len(getattr(c, field)) for c in checks), default=0) for field in ("name", "host"))
    text = []
    for check in checks:
        text.append(f"{check.status:<7}  {check.name:<{names}}  {check.host:<{hosts}}  {check.value}")
        if check.advice:
            text.append(f"{'':<7}  try: {check.advice}")
    return text


def _table(checks: Sequence[Check]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("", "check", "host", "found, and what to try"):
        table.add_column(title, overflow="fold", no_wrap=title in ("", "check"))
    for check in checks:
        text = Text(check.value)
        if check.advice:
            text.append(f"\ntry: {check.advice}", style="bold")
        table.add_row(Text(check.status, style=_STYLES[check.status]), check.name, Text(check.host), text)
    return table
