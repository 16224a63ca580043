"""Options that several commands take."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

Setting = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Change one setting, e.g. train.steps=1000.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


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
