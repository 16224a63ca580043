"""Shapes and parameter counts of models by name, from the configs that ship with the package."""

from __future__ import annotations

import functools
from importlib.resources import as_file, files
from typing import Any

from dragoman import config
from dragoman.cost import size
from dragoman.errors import UsageError

PIECES = 32_768  # the joint vocabulary of most published models with these names
NAMES = ("transformer-base", "transformer-big", "transformer-tiny")


@functools.cache
def _model(name: str) -> config.Model:
    if name not in NAMES:
        raise UsageError(f"--model {name}: unknown model", hint=f"known models: {', '.join(NAMES)}")
    with as_file(files("dragoman") / "configs" / f"{name}.toml") as path:
        return config.load(config.Training, path).model


def check(name: str) -> None:
    """Raises a UsageError if the name is unknown."""
    _model(name)


def parameters(name: str) -> int:
    """The number of parameters, with one embedding of PIECES rows for both sides and the output."""
    return size.parameters(_model(name), PIECES)


def settings(name: str) -> dict[str, Any]:
    """The model's shape as settings with dotted keys, from which the FLOPs of a step follow."""
    return {f"model.{key}": value for key, value in config.flat(_model(name))}
