"""Options that several commands take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


def located(path: Path | None) -> Path | None:
    """The config file that is meant."""
    from dragoman import config

    return config.located(path)


ConfigFile = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG",
        help="Settings as a TOML file, or one that comes with dragoman: transformer-tiny.",
        callback=located,
    ),
]
Setting = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Change one setting, e.g. train.steps=1000.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

MOST_HOSTS = 10_000
MOST_CHECKPOINTS = 1_000
MOST_PRICE = 1e6


def within(least: float, most: float, help: str) -> Any:
    """An option that takes a number between the two, and says so for any other."""
    return typer.Option(min=least, max=most, help=help, callback=_is_number)


def _is_number(value: float | None) -> float | None:
    if value != value:  # NaN is neither too small nor too large
        raise typer.BadParameter("nan is not a number")
    return value


class Which(StrEnum):
    """Checkpoints of a run."""

    last = "last"
    best = "best"


class EngineChoice(StrEnum):
    """What translates."""

    auto = "auto"
    ctranslate2 = "ctranslate2"
    torch = "torch"


class PrecisionChoice(StrEnum):
    """Of CTranslate2's products of matrices."""

    auto = "auto"
    int8 = "int8"
    int8_float32 = "int8_float32"
    float32 = "float32"
