"""Prints text for people, to a terminal or a log.

Names and texts come from anywhere: files, hosts, logs, corpora. Characters that would command a terminal,
reverse the direction of a line or cannot be encoded are shown as escapes (\\x1b). Translations and JSON are
data and are printed unchanged.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from dragoman.errors import naming

# Control characters except tab and line feed; characters that change the text direction; lone surrogates.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """The text with every character that a terminal would obey shown as an escape."""
    return _COMMANDS.sub(lambda match: ascii(match[0])[1:-1], text)


def say(text: str) -> None:
    """Prints a line on standard output."""
    with naming("standard output"):
        print(plain(text), flush=True)


def warn(text: str) -> None:
    """Prints a line on standard error."""
    print(plain(text), file=sys.stderr, flush=True)


def answer(data: str) -> None:
    """Prints JSON on standard output unchanged, except for lone surrogates, which cannot be encoded."""
    with naming("standard output"):
        print(data.encode(errors="replace").decode().rstrip("\n"), flush=True)


class PlainConsole(Console):
    """rich's console, with the texts it draws made safe by `plain`.

    rich measures a text before the escapes are put in, so such a text may be cut where space is short.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain(segment.text))

    def print(self, *objects: Any, **options: Any) -> None:
        with naming("standard error" if self.stderr else "standard output"):
            super().print(*objects, **options)


def console(stderr: bool = False) -> PlainConsole:
    return PlainConsole(stderr=stderr, highlight=False)
