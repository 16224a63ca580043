"""Options that several commands take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


def located(path: Path | None) -> Path | None:
    """The path of this config file, or of the shipped config with this name."""
    from dragoman import config

    return config.located(path)


ConfigFile = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG",
        help="A TOML file, or the name of a shipped config, e.g. transformer-tiny.",
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
    """A typer option for a number from `least` to `most`; any other number is refused with this range."""
    return typer.Option(min=least, max=most, help=help, callback=_is_number)


def _is_number(value: float | None) -> float | None:
    if value != value:  # NaN is neither too small nor too large
        raise typer.BadParameter("nan is not a number")
    return value


class Which(StrEnum):
    """Which checkpoints of a run are averaged."""

    last = "last"
    best = "best"


class EngineChoice(StrEnum):
    """The engines that can translate."""

    auto = "auto"
    ctranslate2 = "ctranslate2"
    torch = "torch"


class PrecisionChoice(StrEnum):
    """The number formats of CTranslate2's matrix products."""

    auto = "auto"
    int8 = "int8"
    int8_float32 = "int8_float32"
    float32 = "float32"


AverageCount = Annotated[int, within(1, MOST_CHECKPOINTS, "Average this many checkpoints of the run.")]
AverageOf = Annotated[Which, typer.Option(help="Which checkpoints to average.")]
WithEngine = Annotated[EngineChoice, typer.Option(help="Engine that translates.")]
WithPrecision = Annotated[PrecisionChoice, typer.Option(help="Precision of the ctranslate2 engine.")]
