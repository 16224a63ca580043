"""Commands that use a trained model."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman import progress, terminal
from dragoman.bounds import LONGEST_TRANSLATION, MOST_RANKS, WIDEST_BEAM
from dragoman.cli.options import (
    AsJson,
    AverageCount,
    AverageOf,
    EngineChoice,
    PrecisionChoice,
    Which,
    WithEngine,
    WithPrecision,
    within,
)
from dragoman.errors import naming

MOST_PIECES = 10**6  # in any vocabulary


class ExportTarget(StrEnum):
    """The formats a model can be exported to."""

    ctranslate2 = "ctranslate2"
    huggingface = "huggingface"


def evaluate(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A run, its best, a checkpoint, an exported folder or a file."),
    ],
    against: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="A second model to compare with.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DATA", help="A data set made by prepare; default: the run's.")
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="Part of the data set; default: test if it has one, else dev.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Text to translate, instead of a data set.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The reference translation of --source.")
    ] = None,
    test_set: Annotated[
        str | None, typer.Option(metavar="NAME", help="A sacreBLEU test set, instead of a data set.")
    ] = None,
    languages: Annotated[
        str | None, typer.Option(metavar="EN-DE", help="Languages of the files or test set.")
    ] = None,
    mirror: Annotated[str | None, typer.Option(help="Folder or URL with the test set's files.")] = None,
    average: AverageCount = 1,
    of: AverageOf = Which.last,
    beam: Annotated[int | None, within(1, WIDEST_BEAM, "Beam width; default: the run's.")] = None,
    length_penalty: Annotated[float | None, within(0, 10, "Length penalty; default: the run's.")] = None,
    engine: WithEngine = EngineChoice.auto,
    precision: WithPrecision = PrecisionChoice.auto,
    show: Annotated[int, within(0, 10_000, "Sentences to print, the most telling first.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Translate held-out text and score it with BLEU, chrF and TER.

    Each score has its signature and a confidence interval. --against tells
    whether two models differ by more than chance. A MODEL that is a file holds
    translations made elsewhere, one per line. A run's scores appear in its
    report.

    Example: dragoman evaluate runs/wednesday --against runs/tuesday
    """
    from dragoman.evaluate import choice, of_run, run, system, text

    text_options = choice.HeldOutOptions(data, part, source, reference, test_set, languages, mirror)
    held_out = choice.held_out(text_options, model)
    decoding = system.DecodingOptions(engine.value, precision.value, average, of.value, beam, length_penalty)
    paths = [path for path in (model, against) if path]
    checkpoints = [of_run.find(path) for path in paths]  # first: a run in progress may replace its best
    with progress.reporter().stage("translating"):
        systems = [system.find(path, held_out, decoding) for path in paths]
    evaluated = run.evaluate(systems, held_out, show)
    if average == 1:  # the run's folder holds no averaged model that scores could belong to
        for obstacle in of_run.keep(evaluated, paths, checkpoints):
            terminal.warn(f"note: the run's report will not show these scores: {obstacle}")
    if as_json:
        terminal.answer(evaluated.model_dump_json(indent=2))
    else:
        terminal.say("\n".join(text.lines(evaluated)))


def translate(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A run, its best, a checkpoint or an exported folder.")
    ],
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="Text, TSV, XLIFF or PO files; default: standard input."),
    ] = [],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File or folder; default: standard output.")
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Read every file as plain text, line by line.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Also replace existing translations.")] = False,
    beam: Annotated[int, within(1, WIDEST_BEAM, "Beam width; 1 is greedy search.")] = 4,
    length_penalty: Annotated[float, within(0, 10, "Higher favours longer translations.")] = 0.6,
    best: Annotated[int, within(1, WIDEST_BEAM, "Number of translations per line, with scores.")] = 1,
    max_length: Annotated[
        int | None,
        within(1, LONGEST_TRANSLATION, "Most tokens per sentence; default: by source length."),
    ] = None,
    sample_top: Annotated[
        int, within(0, MOST_PIECES, "Sample tokens from the N likeliest; 0: from all, 1: do not sample.")
    ] = 1,
    temperature: Annotated[float, within(0.01, 100, "Sampling temperature; lower is more cautious.")] = 1.0,
    no_repeat_ngram: Annotated[int, within(0, 100, "Never repeat N tokens in a row; 0: off.")] = 0,
    split: Annotated[
        bool, typer.Option(help="Split every line into sentences; --no-split: only long ones.")
    ] = True,
    average: AverageCount = 1,
    of: AverageOf = Which.last,
    engine: WithEngine = EngineChoice.auto,
    precision: WithPrecision = PrecisionChoice.auto,
    threads: Annotated[int | None, within(1, MOST_RANKS, "CPU threads; default: all cores.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per line.")] = False,
) -> None:
    """Translate text, or fill in the files that translators work with.

    The suffix tells a file's format; .gz, .bz2, .xz or .zst may follow it.
    Tags and placeholders are kept.

    Example: echo "A dog runs." | dragoman translate runs/demo
    """
    from dragoman.decode import files
    from dragoman.decode.engine import Options

    options = Options(
        beam=beam,
        length_penalty=length_penalty,
        best=best,
        max_length=max_length,
        sample_top=sample_top,
        sample_temperature=temperature,
        no_repeat_ngram=no_repeat_ngram,
        split=split,
    )
    task = files.Task(sources, out, options, plain, again, as_json)
    files.check(task)
    from dragoman.engines import load  # imports torch, which takes seconds: only after the checks

    loaded = load(model, engine.value, precision.value, average, of.value, threads)
    if out:
        tally = files.to_files(loaded, task, out)
        progress.reporter().note(f"{tally.translated:,} translated, {tally.left:,} left unchanged")
        return
    with naming("standard output"):
        if sources:
            files.to_stream(loaded, task, sys.stdout.buffer)
        else:
            files.from_stream(loaded, sys.stdin.fileno(), sys.stdout.buffer, options, as_json)


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A run, its best, or a checkpoint.")],
    to: Annotated[ExportTarget, typer.Option(help="The format to write.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FOLDER", help="The folder to write.")],
    precision: Annotated[
        PrecisionChoice, typer.Option(help="Precision of ctranslate2's weights; auto is float32.")
    ] = PrecisionChoice.auto,
    average: AverageCount = 1,
    of: AverageOf = Which.last,
    as_json: AsJson = False,
) -> None:
    """Export a model to CTranslate2 or to Hugging Face's transformers.

    Example: dragoman export runs/demo --to ctranslate2 -o demo-ct2
    """
    import json

    from dragoman.export.export import export

    written = export(model, to.value, out, precision.value, average, of.value)
    if as_json:
        terminal.answer(json.dumps({"folder": str(out), "format": to.value, "files": written}, indent=2))
    else:
        for name, size in written.items():
            terminal.say(f"{size:>14,}  {out / name}")


def serve(
    served: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]MODEL", help="Runs, their best, or exported folders."),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; all but loopback need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, within(0, 65_535, "Port to listen on; 0: any free one.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the token requests must send.")
    ] = None,
    engine: WithEngine = EngineChoice.auto,
    precision: WithPrecision = PrecisionChoice.auto,
    threads: Annotated[int | None, within(1, MOST_RANKS, "CPU threads; default: all cores.")] = None,
    most_characters: Annotated[int, within(1, 10**7, "Most characters in a request.")] = 20_000,
    most_requests: Annotated[int, within(1, 10_000, "Most requests in progress at once.")] = 128,
) -> None:
    """Serve models over HTTP, with a web page for translating.

    Programs use POST /v1/translate, described at /openapi.json; LibreTranslate's
    clients work too. On Ctrl-C or SIGTERM the server answers all requests it has
    accepted, then exits.

    Example: dragoman serve runs/demo --port 8000
    """
    from dragoman.data.parallel import cores
    from dragoman.serve import app, models, server
    from dragoman.serve.limits import Limits

    token = server.read_token(token_file, host)
    limits = Limits(characters=most_characters, requests=most_requests)
    socket = server.bind(host, port)
    from dragoman import engines  # imports torch, which takes seconds: only after the checks

    loaded = models.load(
        served, lambda path: engines.load(path, engine.value, precision.value, threads=threads)
    )
    names = ", ".join(loaded.served)
    application = app.build(loaded, limits, token, loaded.calls_at_once(threads or cores()))
    server.run(application, socket, limits, lambda url: terminal.say(f"Serving {names} at {url}"))
