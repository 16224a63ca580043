"""The command line: one subcommand per stage, in the order of the flow. Parse, call, print."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from dragoman import __version__, progress
from dragoman.errors import DragomanError

app = typer.Typer(
    help="Trains translation models on one machine or many, and tells the truth about the run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Setting = Annotated[
    list[str],
    typer.Option("--set", metavar="KEY=VALUE", help="Change one setting, e.g. clean.max_words=100."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@app.callback(invoke_without_command=True)
def dragoman(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")] = False,
) -> None:
    if version:
        print(f"dragoman {__version__}")
        raise typer.Exit


@app.command()
def prepare(
    what: Annotated[
        list[str], typer.Argument(metavar="RECIPE|FILES", help="A recipe's name, or en=FILE de=FILE ...")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DATA", help="The data set to make.")],
    dev: Annotated[list[str], typer.Option(metavar="LANG=FILE", help="Held-out text, twice.")] = [],
    test: Annotated[list[str], typer.Option(metavar="LANG=FILE", help="Test text, twice.")] = [],
    vocab: Annotated[Path | None, typer.Option(help="A SentencePiece model to use as it is.")] = None,
    mirror: Annotated[str | None, typer.Option(help="Folder or URL to download from instead.")] = None,
    downloads: Annotated[
        Path | None, typer.Option(help="Where a recipe keeps its files; else 'downloads' beside DATA.")
    ] = None,
    settings: Annotated[Path | None, typer.Option("--config", help="Settings as a TOML file.")] = None,
    changes: Setting = [],
    as_json: AsJson = False,
) -> None:
    """Parallel text to a cleaned, tokenised data set with a card.

    Files are plain text, TSV, TMX, XLIFF or PO, also as gz, xz or zst; the first language named is the
    source. Two files side by side: en=a.en de=a.de; one file with both languages: en:de=a.tmx. Name more
    corpora after the first; weight=2 belongs to the corpus before it. Recipes: demo, multi30k-en-de,
    wmt16-en-de, or an id of the mtdata index.

    Example: dragoman prepare en=train.en.gz de=train.de.gz --dev en=val.en --dev de=val.de -o data/mine
    """
    from dragoman.data.jobs import Request, plan
    from dragoman.data.prepare import prepare as run

    reporter = progress.reporter()
    request = Request(what, out, dev, test, vocab, settings, changes, downloads, mirror)
    card = run(plan(request, reporter), out, reporter)
    if as_json:
        print(card.json_text(), end="")
    else:
        show(card.markdown())
        reporter.note(f"Data set: {out} (card.md says what is in it)")


def show(markdown: str) -> None:
    """Drawn on a terminal, as it is in a file or a pipe."""
    console = Console()
    console.print(Markdown(markdown)) if console.is_terminal else print(markdown)


def main() -> None:
    """Runs a command; turns our errors into a message and an exit code."""
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        app(arguments, prog_name="dragoman")
    except DragomanError as error:
        if debug:
            traceback.print_exc()
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(1)
    except Exception as error:
        if debug:
            raise
        print(
            f"error: {type(error).__name__}: {error}\n  try: again with --debug for the place",
            file=sys.stderr,
        )
        sys.exit(1)
