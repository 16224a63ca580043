"""The words of a command line, before any command reads them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from dragoman.errors import UsageError, naming

_MOST_NAMED = 6


def check(arguments: Sequence[str]) -> None:
    """Refuses what no command can use.

    An empty name would stand for the current folder: mostly it is a shell variable that was not set. A name
    that is not UTF-8 cannot be written into cards, records and JSON.
    """
    with naming("the current folder"):
        _check_name(os.getcwd())
    for before, argument in zip(("dragoman", *arguments), arguments, strict=False):
        option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
        if not value and (equals or not argument):
            raise UsageError(
                f"nothing is given after {option or before}", hint="perhaps a variable is not set"
            )
        _check_name(argument)


def _check_name(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:  # its bytes came as lone surrogates
        hint = "rename it, or make a link with a plain name"
        raise UsageError("this name is not UTF-8", path=name, hint=hint) from None


def files_among(arguments: Sequence[str]) -> list[str]:
    """Those that name something on disk, also as LANGUAGE=FILE."""
    words = (argument.rpartition("=")[2] for argument in arguments)
    return [word for word in words if os.path.exists(word)][:_MOST_NAMED]
