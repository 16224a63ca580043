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
    MOST_CHECKPOINTS,
    AsJson,
    EngineChoice,
    PrecisionChoice,
    Which,
    within,
)
from dragoman.errors import naming

MOST_PIECES = 10**6  # of any vocabulary


class ExportTarget(StrEnum):
    """Who reads an exported model."""

    ctranslate2 = "ctranslate2"
    huggingface = "huggingface"


def evaluate(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A run, its best, a checkpoint, an exported folder or a file."),
    ],
    against: Annotated[Path | None, typer.Option(metavar="MODEL", help="Another, to compare with.")] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DATA", help="A data set made by prepare; else the run's own.")
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="Its held-out part to translate; else test if it has one, or dev.")
    ] = None,
    source: Annotated[Path | None, typer.Option(metavar="FILE", help="Or: text to translate.")] = None,
    reference: Annotated[Path | None, typer.Option(metavar="FILE", help="Its translation.")] = None,
    test_set: Annotated[str | None, typer.Option(metavar="NAME", help="Or: of sacreBLEU, as wmt14.")] = None,
    languages: Annotated[str | None, typer.Option(metavar="EN-DE", help="Of files or a test set.")] = None,
    mirror: Annotated[str | None, typer.Option(help="Folder or URL to take a test set from.")] = None,
    average: Annotated[int, within(1, MOST_CHECKPOINTS, "Average so many checkpoints of the run.")] = 1,
    of: Annotated[Which, typer.Option(help="Which checkpoints to average.")] = Which.last,
    beam: Annotated[int | None, within(1, WIDEST_BEAM, "Else the run's own.")] = None,
    length_penalty: Annotated[float | None, within(0, 10, "Else the run's own.")] = None,
    engine: Annotated[EngineChoice, typer.Option(help="What translates.")] = EngineChoice.auto,
    precision: Annotated[PrecisionChoice, typer.Option(help="Of CTranslate2.")] = PrecisionChoice.auto,
    show: Annotated[int, within(0, 10_000, "Sentences to show, the most telling first.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Translate held-out text and score it: BLEU, chrF and TER with signatures and intervals.

    A MODEL that is a file holds translations made elsewhere, one to a line. With --against, whether the two
    differ by more than chance. The scores of a run enter its report.

    Example: dragoman evaluate runs/wednesday --against runs/tuesday
    """
    from dragoman.evaluate import choice, of_run, run, system, text

    options = choice.HeldOutOptions(data, part, source, reference, test_set, languages, mirror)
    held_out = choice.held_out(options, model)
    way = system.DecodingOptions(engine.value, precision.value, average, of.value, beam, length_penalty)
    paths = [path for path in (model, against) if path]
    checkpoints = [of_run.find(path) for path in paths]  # now: a run under way may soon have a better one
    with progress.reporter().stage("translating"):
        systems = [system.find(path, held_out, way) for path in paths]
    evaluated = run.evaluate(systems, held_out, show)
    if average == 1:  # a mean of checkpoints is no model that the run keeps
        for obstacle in of_run.keep(evaluated, paths, checkpoints):
            terminal.warn(f"note: the scores are not in the run's report: {obstacle}")
    if as_json:
        terminal.answer(evaluated.model_dump_json(indent=2))
    else:
        terminal.say("\n".join(text.lines(evaluated)))


def translate(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A run, its best, a checkpoint or an exported folder.")
    ],
    sources: Annotated[
        list[Path], typer.Argument(metavar="[FILES]", help="Text, TSV, XLIFF or PO; none: standard input.")
    ] = [],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="A file, or a folder; else standard output.")
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Take every file as plain text, a line at a time.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Also what is translated already.")] = False,
    beam: Annotated[int, within(1, WIDEST_BEAM, "1 is greedy search.")] = 4,
    length_penalty: Annotated[float, within(0, 10, "Higher favours longer translations.")] = 0.6,
    best: Annotated[int, within(1, WIDEST_BEAM, "Translations of each line, with their scores.")] = 1,
    max_length: Annotated[
        int | None,
        within(1, LONGEST_TRANSLATION, "Tokens of a translation; else by the length of its source."),
    ] = None,
    sample_top: Annotated[
        int, within(0, MOST_PIECES, "Draw each token from so many of the likeliest; 0: from all.")
    ] = 1,
    temperature: Annotated[float, within(0.01, 100, "Of drawing; lower is tamer.")] = 1.0,
    no_repeat_ngram: Annotated[
        int, within(0, 100, "So many tokens in a row come only once; 0: no guard.")
    ] = 0,
    split: Annotated[bool, typer.Option(help="Sentence by sentence, or only long lines so.")] = True,
    average: Annotated[int, within(1, MOST_CHECKPOINTS, "Average so many checkpoints of the run.")] = 1,
    of: Annotated[Which, typer.Option(help="Which checkpoints to average.")] = Which.last,
    engine: Annotated[EngineChoice, typer.Option(help="What translates.")] = EngineChoice.auto,
    precision: Annotated[PrecisionChoice, typer.Option(help="Of CTranslate2.")] = PrecisionChoice.auto,
    threads: Annotated[int | None, within(1, MOST_RANKS, "Else all cores.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object for each line.")] = False,
) -> None:
    """Translate text, or the files of translators: their targets are filled in, tags and placeholders kept.

    The suffix of a file tells its format (also followed by .gz, .xz or .zst).

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
    from dragoman.engines import load  # with torch, which takes seconds: what is wrong was said before

    loaded = load(model, engine.value, precision.value, average, of.value, threads)
    if out:
        tally = files.to_files(loaded, task, out)
        progress.reporter().note(f"{tally.translated:,} translated, {tally.left:,} left as they were")
        return
    with naming("standard output"):
        if sources:
            files.to_stream(loaded, task, sys.stdout.buffer)
        else:
            files.from_stream(loaded, sys.stdin.fileno(), sys.stdout.buffer, options, as_json)


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A run, its best, or a checkpoint.")],
    to: Annotated[ExportTarget, typer.Option(help="Who is to read it.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FOLDER", help="The folder to write.")],
    precision: Annotated[
        PrecisionChoice, typer.Option(help="Of the weights, for ctranslate2; auto is float32.")
    ] = PrecisionChoice.auto,
    average: Annotated[int, within(1, MOST_CHECKPOINTS, "Average so many checkpoints of the run.")] = 1,
    of: Annotated[Which, typer.Option(help="Which checkpoints to average.")] = Which.last,
    as_json: AsJson = False,
) -> None:
    """Write a model in the format of CTranslate2 or of Hugging Face's transformers.

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
        typer.Argument(metavar="[NAME=]MODEL", help="A run, its best, or an exported folder; several."),
    ],
    host: Annotated[
        str, typer.Option(help="Where to listen; elsewhere than here a token is needed.")
    ] = "127.0.0.1",
    port: Annotated[int, within(0, 65_535, "0 is any free one.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Holds the token that requests must carry.")
    ] = None,
    engine: Annotated[EngineChoice, typer.Option(help="What translates.")] = EngineChoice.auto,
    precision: Annotated[PrecisionChoice, typer.Option(help="Of CTranslate2.")] = PrecisionChoice.auto,
    threads: Annotated[int | None, within(1, MOST_RANKS, "Of translating; else all cores.")] = None,
    most_characters: Annotated[int, within(1, 10**7, "Of one request; more is refused.")] = 20_000,
    most_requests: Annotated[int, within(1, 10_000, "Under way at once; more are refused.")] = 128,
) -> None:
    """Translate over HTTP, with a page to translate on.

    POST /v1/translate, described at /openapi.json; LibreTranslate's clients work too. Ends at Ctrl-C or
    SIGTERM when all it accepted is answered.

    Example: dragoman serve runs/demo --port 8000
    """
    from dragoman.data.parallel import cores
    from dragoman.serve import app, models, server
    from dragoman.serve.limits import Limits

    token = server.read_token(token_file, host)
    limits = Limits(characters=most_characters, requests=most_requests)
    socket = server.bind(host, port)
    from dragoman import engines  # with torch, which takes seconds: what is wrong was said before

    found = models.load(
        served, lambda path: engines.load(path, engine.value, precision.value, threads=threads)
    )
    names = ", ".join(found.served)
    application = app.build(found, limits, token, found.calls_at_once(threads or cores()))
    server.run(application, socket, limits, lambda url: terminal.say(f"Serving {names} at {url}"))
