"""Text for people, on its way to a terminal or a log.

Names and texts come from anywhere: files, hosts, logs, corpora. Characters in them that would command a
terminal, turn a line around or cannot be encoded are shown as escapes (\\x1b). Translations and JSON are data
and pass as they are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from dragoman.errors import naming

# Control characters but tab and line feed; what embeds, overrides and isolates directions; lone surrogates.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """The text with every character that a terminal would obey made visible."""
    return _COMMANDS.sub(lambda found: ascii(found[0])[1:-1], text)


def say(text: str) -> None:
    """A line on standard output."""
    with naming("standard output"):
        print(plain(text), flush=True)


def warn(text: str) -> None:
    """A line on standard error."""
    print(plain(text), file=sys.stderr, flush=True)


def answer(data: str) -> None:
    """JSON on standard output, byte for byte but for lone surrogates, which no encoding has."""
    with naming("standard output"):
        print(data.encode(errors="replace").decode().rstrip("\n"), flush=True)


class PlainConsole(Console):
    """rich's console, to which the texts it draws are only texts.

    It measures them before, so a name that had to be changed may be cut where room is short.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain(segment.text))

    def print(self, *objects: Any, **options: Any) -> None:
        with naming("standard error" if self.stderr else "standard output"):
            super().print(*objects, **options)


def console(stderr: bool = False) -> PlainConsole:
    return PlainConsole(stderr=stderr, highlight=False)
