"""The program: its commands in the order of the flow, and what their errors become."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from typing import Annotated

import typer

from dragoman import __version__
from dragoman.cli import machines, models, runs, training
from dragoman.errors import DragomanError

_TYPER_CTRL_C = 130  # the exit code into which typer turns Ctrl-C

app = typer.Typer(
    help="Trains translation models on one machine or many, and tells the truth about the run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def dragoman(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")] = False,
) -> None:
    if version:
        print(f"dragoman {__version__}")
        raise typer.Exit


for command in (
    training.demo, training.prepare, training.train,
    runs.report, runs.compare, runs.diagnose,
    models.evaluate, models.translate, models.export, models.serve,
    machines.doctor, machines.plan,
):  # fmt: skip
    app.command()(command)

launch = typer.Typer(
    no_args_is_help=True,
    help="A batch file for a cluster; data to the hosts.\n\n"
    "Example: dragoman launch copy --hosts a,b --data data/mine",
)
for of_launch in (machines.slurm, machines.copy):
    launch.command()(of_launch)
app.add_typer(launch, name="launch")


def main() -> None:
    """Runs a command; turns our errors into a message and an exit code."""
    # At the usual 700 the collector walks torch's objects again and again while they load: 0.5 s of a start.
    gc.set_threshold(20_000)
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        app(arguments, prog_name="dragoman")
    except DragomanError as error:
        if debug:
            traceback.print_exc()
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code != _TYPER_CTRL_C:
            raise
        print("stopped", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:  # whoever reads us has enough: dragoman translate ... | head
        os._exit(1)
    except OSError as error:  # a full disk, a folder that may not be written
        if debug:
            traceback.print_exc()
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        print("  try: look at the free space and the permissions of that place", file=sys.stderr)
        sys.exit(1)
    except Exception as error:
        if debug:
            raise
        print(
            f"error: {type(error).__name__}: {error}\n  try: again with --debug for the place",
            file=sys.stderr,
        )
        sys.exit(1)
