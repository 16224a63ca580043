"""Models by name: their measures and parameters, by the configs that ship with the package."""

from __future__ import annotations

import functools
from importlib.resources import as_file, files
from typing import Any

from dragoman import config
from dragoman.cost import size
from dragoman.errors import UsageError

PIECES = 32_768  # joint subwords of both languages, which most published models of these names have
NAMES = ("transformer-base", "transformer-big", "transformer-tiny")


@functools.cache
def _model(name: str) -> config.Model:
    if name not in NAMES:
        raise UsageError(f"--model {name}: not a known name", hint=f"known are {', '.join(NAMES)}")
    with as_file(files("dragoman") / "configs" / f"{name}.toml") as path:
        return config.load(config.Training, path).model


def check(name: str) -> None:
    """UsageError where nobody knows a model of this name."""
    _model(name)


def parameters(name: str) -> int:
    """With one embedding of PIECES for both sides and the output."""
    return size.parameters(_model(name), PIECES)


def settings(name: str) -> dict[str, Any]:
    """Its measures by dotted key, from which the work of a step follows."""
    return {f"model.{key}": value for key, value in config.flat(_model(name))}
