"""The program: its commands in the order of the flow, and what their errors become."""

from __future__ import annotations

import errno
import gc
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from dragoman import __version__, terminal
from dragoman.cli import arguments, machines, models, runs, training
from dragoman.cli.leave import leave
from dragoman.errors import DragomanError, naming

_TYPER_CTRL_C = 130  # the exit code into which typer turns Ctrl-C
_OF_DISKS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM}

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
        terminal.say(f"dragoman {__version__}")
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
    # torch makes a folder of its own in the temporary folder, for compiled code that we have none of.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.gettempdir())
    debug = "--debug" in sys.argv
    words = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        arguments.check(words)
        _run(words)
    except DragomanError as error:
        _say(str(error), debug)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        terminal.warn("stopped")
        sys.exit(1)
    except BrokenPipeError:  # whoever reads us has enough: dragoman translate ... | head
        os._exit(1)
    except OSError as error:
        _say(_refused_by_system(error), debug)
        leave(1)  # Python would try once more to write what a full disk did not take
    except Exception as error:
        _say(_unforeseen(error, words), debug)
        sys.exit(1)


def _run(words: list[str]) -> None:
    try:
        app(words, prog_name="dragoman")
    except SystemExit as end:
        if end.code == _TYPER_CTRL_C:
            raise KeyboardInterrupt from None
        with naming("standard output"):
            sys.stdout.flush()  # else a full disk is met when nobody can say so any more
        raise


def _say(text: str, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    terminal.warn(f"error: {text}")


def _refused_by_system(error: OSError) -> str:
    """A full disk, a folder that may not be written, a connection that broke."""
    where = "" if error.filename is None else f"{error.filename}: "
    hint = "look at the free space and the permissions of that place"
    return f"{where}{error.strerror or error}" + (f"\n  try: {hint}" if error.errno in _OF_DISKS else "")


def _unforeseen(error: Exception, words: Sequence[str]) -> str:
    """What to do about a mistake of ours."""
    given = ", ".join(arguments.files_among(words))
    return (
        f"{type(error).__name__}: {error}\n"
        f"  this is a defect of dragoman{f', met with {given}' if given else ''}\n"
        "  try: the same command with --debug shows the place; please report it with what it shows"
    )
