"""The program `dragoman`: its commands in the order of the flow, and its error messages and exit codes."""

from __future__ import annotations

import errno
import gc
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from dragoman import __version__, terminal
from dragoman.cli import arguments, machines, models, runs, training
from dragoman.errors import DragomanError, naming
from dragoman.leave import leave

_TYPER_CTRL_C = 130  # typer's exit code after Ctrl-C
_OF_DISKS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM}

app = typer.Typer(
    help="Train translation models on one machine or many, and explain every run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def dragoman(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks (also after a command).")] = False,
) -> None:
    if version:
        terminal.say(f"dragoman {__version__}")
        raise typer.Exit


for command in (
    training.demo, training.prepare, training.train, training.stop,
    runs.report, runs.compare, runs.diagnose,
    models.evaluate, models.translate, models.export, models.serve,
    machines.doctor, machines.plan,
):  # fmt: skip
    app.command()(command)

launch = typer.Typer(
    no_args_is_help=True,
    help="Write a Slurm batch file, or copy a data set to other machines.\n\n"
    "Example: dragoman launch copy --hosts a,b --data data/mine",
)
for launch_command in (machines.slurm, machines.copy):
    launch.command()(launch_command)
app.add_typer(launch, name="launch")


def main() -> None:
    """Runs the command on the command line and turns errors into a message and an exit code."""
    # At the default of 700, the collector walks torch's objects many times while they load, which adds 0.5 s.
    gc.set_threshold(20_000)
    # Otherwise torch makes a folder for compiled code in the temporary folder; we compile none.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.gettempdir())
    debug = "--debug" in sys.argv
    words = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        arguments.check(words)
        _run(words)
    except DragomanError as error:
        _say(str(error), debug)
        _end(error.exit_code)
    except KeyboardInterrupt:
        terminal.warn("stopped")
        _end(1)
    except BrokenPipeError:  # the reader of our output has closed the pipe: dragoman translate ... | head
        os._exit(1)
    except OSError as error:
        _say(_refused_by_system(error), debug)
        leave(1)  # an ordinary exit would try again to write what a full disk did not take
    except Exception as error:
        _say(_unforeseen(error, words), debug)
        _end(1)
    except SystemExit as end:
        if isinstance(end.code, int) and end.code:  # wrong use, or a rank that leaves the error to another
            _end(end.code)
        raise


def _run(words: list[str]) -> None:
    try:
        app(words, prog_name="dragoman")
    except SystemExit as end:
        if end.code == _TYPER_CTRL_C:
            raise KeyboardInterrupt from None
        with naming("standard output"):
            sys.stdout.flush()  # otherwise a full disk shows only at exit, too late for a message
        raise


def _end(code: int) -> NoReturn:
    """Exits. A rank does so without Python's shutdown, in which NCCL would wait for the other ranks."""
    from dragoman.launch import environment

    if environment.is_of_a_rank():
        leave(code)
    sys.exit(code)


def _say(text: str, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    terminal.warn(f"error: {text}")


def _refused_by_system(error: OSError) -> str:
    """The message for an error of the operating system, such as a full disk or a broken connection."""
    where = "" if error.filename is None else f"{error.filename}: "
    hint = "check the free space and the permissions there"
    return f"{where}{error.strerror or error}" + (f"\n  try: {hint}" if error.errno in _OF_DISKS else "")


def _unforeseen(error: Exception, words: Sequence[str]) -> str:
    """The message for an exception nobody foresaw, which is a bug in dragoman."""
    files = ", ".join(arguments.files_among(words))
    return (
        f"{type(error).__name__}: {error}\n"
        f"  this is a bug in dragoman{f', seen with {files}' if files else ''}\n"
        "  try: repeat the command with --debug, and report the bug with what it prints"
    )
