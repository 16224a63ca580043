"""cli/options.py: every number on the command line has a range, and says so."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from dragoman.bounds import WIDEST_BEAM
from dragoman.cli import app, models
from dragoman.decode import Options
from dragoman.errors import UsageError

BEYOND = ("nan", "inf", "-inf", "1e300", "-1e300", "9" * 5000, "-7", "many", "")


def numbers() -> Iterator[tuple[tuple[str, ...], str]]:
    """Every command with each of its options that take a number."""
    for group, commands in [
        ((), app),
        *(((found.name or "",), found.typer_instance) for found in app.registered_groups),
    ]:
        for command in commands.registered_commands:
            function = command.callback
            assert function
            for name, hint in typing.get_type_hints(function).items():
                if {int, float} & {hint, *typing.get_args(hint)}:
                    assert inspect.signature(function).parameters[name]
                    yield (*group, function.__name__), f"--{name.replace('_', '-')}"


OPTIONS = list(numbers())


def test_the_options_are_found() -> None:
    assert (("diagnose",), "--gpu-util") in OPTIONS
    assert (("launch", "slurm"), "--nodes") in OPTIONS
    assert len(OPTIONS) > 30


@pytest.mark.parametrize(
    ("command", "option"), OPTIONS, ids=lambda value: " ".join(value) if isinstance(value, tuple) else value
)
def test_a_number_out_of_its_range_is_refused(command: tuple[str, ...], option: str) -> None:
    for value in BEYOND:
        done = CliRunner().invoke(
            app, [*command, f"{option}={value}"], env={"COLUMNS": "200", "NO_COLOR": "1"}
        )
        said = str(done.exception) if isinstance(done.exception, UsageError) else done.output
        assert done.exit_code == 2 or isinstance(done.exception, UsageError), (value, done.output)
        assert option in said
        assert "Missing" not in said, f"{value} was taken"


def test_the_engines_accept_every_number_that_translate_accepts() -> None:
    names = {"temperature": "sample_temperature"}
    ranges = {
        names.get(name, name): (hint.__metadata__[0].min, hint.__metadata__[0].max)
        for name, hint in typing.get_type_hints(models.translate, include_extras=True).items()
        if hasattr(hint, "__metadata__")
    }
    searching = {name: ends for name, ends in ranges.items() if hasattr(Options(), name) and None not in ends}
    assert {"beam", "best", "max_length", "sample_temperature"} <= set(searching)
    for name, ends in searching.items():
        for value in ends:
            options: Any = {"beam": WIDEST_BEAM, name: value}
            assert getattr(Options(**options), name) == value
    with pytest.raises(UsageError):
        Options(max_length=1 + int(ranges["max_length"][1]))
