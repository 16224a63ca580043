"""Checks of the command line before any command reads it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from dragoman.errors import UsageError, naming

_MOST_NAMED = 6


def check(arguments: Sequence[str]) -> None:
    """Raises a UsageError if an argument is empty, or if it or the current folder's name is not UTF-8.

    An empty argument would mean the current folder; usually it comes from an unset shell variable. A name
    that is not UTF-8 cannot be written into cards, records and JSON.
    """
    with naming("the current folder"):
        _check_name(os.getcwd())
    for previous, argument in zip(("dragoman", *arguments), arguments, strict=False):
        option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
        if not value and (equals or not argument):
            raise UsageError(
                f"the argument after {option or previous} is empty",
                hint="check whether a shell variable is unset",
            )
        _check_name(argument)


def _check_name(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:  # Python passes undecodable bytes as lone surrogates
        hint = "rename it, or link to it under a plain name"
        raise UsageError("this name is not UTF-8", path=name, hint=hint) from None


def files_among(arguments: Sequence[str]) -> list[str]:
    """The first few arguments that name an existing file or folder, alone or as LANGUAGE=FILE."""
    words = (argument.rpartition("=")[2] for argument in arguments)
    return [word for word in words if os.path.exists(word)][:_MOST_NAMED]
