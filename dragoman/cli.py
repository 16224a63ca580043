"""The command line: one subcommand per stage, in the order of the flow. Parse, call, print."""

from __future__ import annotations

import gc
import os
import shlex
import sys
import traceback
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markdown import Markdown

from dragoman import __version__, progress
from dragoman.errors import DragomanError, UsageError

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
_TYPER_CTRL_C = 130  # the exit code into which typer turns Ctrl-C
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


class ExportTarget(StrEnum):
    """Who reads an exported model."""

    ctranslate2 = "ctranslate2"
    huggingface = "huggingface"


@app.callback(invoke_without_command=True)
def dragoman(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")] = False,
) -> None:
    if version:
        print(f"dragoman {__version__}")
        raise typer.Exit


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where data/demo and runs/demo are made.")] = Path("."),
) -> None:
    """Train the built-in corpus on 2 workers and translate with it: minutes, offline.

    Example: dragoman demo
    """
    from dragoman import demo

    print(demo.run(folder, progress.reporter()))


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


@app.command()
def train(
    settings: Annotated[Path, typer.Argument(metavar="CONFIG", help="Settings as a TOML file.")],
    data: Annotated[Path, typer.Option(metavar="DATA", help="A data set made by prepare.")],
    run: Annotated[Path, typer.Option(metavar="RUN", help="The run folder; an existing one goes on.")],
    workers: Annotated[int | None, typer.Option(min=1, help="Ranks to start on this machine (1).")] = None,
    hosts: Annotated[
        str | None, typer.Option(metavar="A:2,B:2", help="Machines to train on, with the ranks of each.")
    ] = None,
    start_from: Annotated[
        Path | None, typer.Option("--from", metavar="MODEL", help="Begin with another model's weights.")
    ] = None,
    changes: Setting = [],
) -> None:
    """Train a model, or go on where a run stopped.

    The step is defined by the config: more workers make it faster, not larger. Under torchrun, mpirun and
    srun each process is a rank, and --workers and --hosts are not looked at.

    Example: dragoman train configs/demo.toml --data data/demo --run runs/demo --workers 2
    """
    from dragoman import config
    from dragoman.config import Training
    from dragoman.launch import environment, ssh, worker
    from dragoman.launch.hosts import parse
    from dragoman.rundir import RunFolder

    is_rank = worker.is_rank()
    command = environment.command(shlex.join(["dragoman", *sys.argv[1:]]))
    filled = config.load(Training, settings, changes)
    if hosts and not is_rank:
        if workers:
            raise UsageError("--workers and --hosts", hint="give the ranks with the hosts: --hosts a:2,b:2")
        _leave(ssh.run(ssh.training(config.text(filled), data, run, start_from, command), parse(hosts)))
    from dragoman.launch import local
    from dragoman.train.run import Job, check
    from dragoman.train.run import run as run_rank

    job = Job(filled, data, RunFolder(run), start_from, command)
    if is_rank:
        run_rank(job)
        _leave(0)
    check(job)
    _leave(local.run(sys.argv[1:], workers or 1))


@app.command()
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, also of a run under way.")],
    price_per_hour: Annotated[
        float | None, typer.Option(min=0, help="Of one machine, to give the run's cost.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer the eleven questions about a run, with numbers, evidence and advice.

    Writes report.html (one file, opens offline), report.md and findings.json into the run folder.

    Example: dragoman report runs/demo --price-per-hour 0.90
    """
    from dragoman.explain.run import explain
    from dragoman.measure import database
    from dragoman.report import planned, text, write
    from dragoman.rundir import RunFolder

    records = database.read(RunFolder(run).records)
    findings = explain(records, price_per_hour)
    write.write(records, findings, run)
    comparison = planned.compare(run, records, findings)
    if as_json:
        print(write.json_text(records, findings, comparison), end="")
    else:
        text.show(records, findings, comparison=comparison)
        print(f"Page: {run / write.PAGE_FILE}")


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Another.")],
    as_json: AsJson = False,
) -> None:
    """Say what differs between two runs, and why the slower was slower.

    Example: dragoman compare runs/tuesday runs/wednesday
    """
    from dragoman.measure import database
    from dragoman.report import compare_text
    from dragoman.report.compare import compare
    from dragoman.rundir import RunFolder

    comparison = compare(*(database.read(RunFolder(run).records) for run in (first, second)))
    if as_json:
        print(comparison.model_dump_json(indent=2))
    else:
        compare_text.show(comparison)


@app.command()
def diagnose(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILES", help="Logs, recordings, checkpoint folders.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="A row per run, as people write them down.")] = None,
    facts: Annotated[Path | None, typer.Option(help="The facts below as a TOML file.")] = None,
    ranks: Annotated[int | None, typer.Option(help="Processes in all, one per GPU.")] = None,
    machines: Annotated[int | None, typer.Option(help="Machines they ran on.")] = None,
    link: Annotated[str | None, typer.Option(help="Between the machines, as ordered: 1gbit.")] = None,
    gpu: Annotated[str | None, typer.Option(help="The GPU's type: V100.")] = None,
    nic_kb_per_s: Annotated[float | None, typer.Option(help="What nmon showed: 200210.")] = None,
    nic: Annotated[str | None, typer.Option(help='A reading in any unit: "200 Mbps".')] = None,
    gpu_power: Annotated[str | None, typer.Option(help="Watts of the limit: 42/250.")] = None,
    gpu_util: Annotated[float | None, typer.Option(help="Percent, as nvidia-smi shows it.")] = None,
    params: Annotated[int | None, typer.Option(help="Parameters of the model.")] = None,
    gradient_bytes: Annotated[int | None, typer.Option(help="If not 4 per parameter.")] = None,
    precision: Annotated[str | None, typer.Option(help="fp32 or mixed.")] = None,
    batch: Annotated[int | None, typer.Option(help="Pairs per rank and step.")] = None,
    step_seconds: Annotated[float | None, typer.Option(help="Where no log is left.")] = None,
    steps: Annotated[int | None, typer.Option(help="Where no log is left.")] = None,
    hours: Annotated[float | None, typer.Option(help="Where no log is left.")] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Also write the report as a page.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer the eleven questions about a run that was not ours, from what it left.

    Reads OpenSeq2Seq's nohup.out, fairseq logs, Hugging Face trainer_state.json, TensorBoard events,
    TensorFlow checkpoints, nmon recordings and nvidia-smi output, gzip or not, whole or in part. Facts that
    no file holds are given by options; every answer says which are which.

    Example: dragoman diagnose nohup.out v100a.nmon --link 1gbit --gpu-power 42/250
    """
    from dragoman.errors import UsageError
    from dragoman.foreign import answers, show
    from dragoman.foreign.facts import Given, load

    options = Given(
        ranks=ranks, machines=machines, link=link, gpu=gpu, nic_kb_per_s=nic_kb_per_s, nic=nic,
        gpu_power=gpu_power, gpu_util=gpu_util, params=params, gradient_bytes=gradient_bytes,
        precision=precision, batch=batch, step_seconds=step_seconds, steps=steps, hours=hours,
    )  # fmt: skip
    given = load(facts, options)
    if csv:
        show.rows(csv, given, as_json)
        return
    if not files and given.step_seconds is None:
        raise UsageError("nothing to diagnose", hint="name a log, or give at least --step-seconds")
    show.diagnosis(answers.diagnose(files or [], given), as_json, html)


@app.command()
def evaluate(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A run, its best, a checkpoint, an exported folder or a file."),
    ],
    against: Annotated[Path | None, typer.Option(metavar="MODEL", help="Another, to compare with.")] = None,
    data: Annotated[Path | None, typer.Option(metavar="DATA", help="A data set made by prepare.")] = None,
    part: Annotated[str, typer.Option(help="Its held-out part to translate.")] = "test",
    source: Annotated[Path | None, typer.Option(metavar="FILE", help="Or: text to translate.")] = None,
    reference: Annotated[Path | None, typer.Option(metavar="FILE", help="Its translation.")] = None,
    test_set: Annotated[str | None, typer.Option(metavar="NAME", help="Or: of sacreBLEU, as wmt14.")] = None,
    languages: Annotated[str | None, typer.Option(metavar="EN-DE", help="Of files or a test set.")] = None,
    mirror: Annotated[str | None, typer.Option(help="Folder or URL to take a test set from.")] = None,
    average: Annotated[int, typer.Option(min=1, help="Average so many checkpoints of the run.")] = 1,
    of: Annotated[Which, typer.Option(help="Which checkpoints to average.")] = Which.last,
    beam: Annotated[int | None, typer.Option(min=1, help="Else the run's own.")] = None,
    length_penalty: Annotated[float | None, typer.Option(min=0, help="Else the run's own.")] = None,
    engine: Annotated[EngineChoice, typer.Option(help="What translates.")] = EngineChoice.auto,
    precision: Annotated[PrecisionChoice, typer.Option(help="Of CTranslate2.")] = PrecisionChoice.auto,
    show: Annotated[int, typer.Option(min=0, help="Sentences to show, the most telling first.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Translate held-out text and score it: BLEU, chrF and TER with signatures and intervals.

    A MODEL that is a file holds translations made elsewhere, one to a line. With --against, whether the two
    differ by more than chance.

    Example: dragoman evaluate runs/wednesday --against runs/tuesday --data data/mine
    """
    from dragoman.evaluate import choice, run, system, text

    held_out = choice.held_out(choice.Asked(data, part, source, reference, test_set, languages, mirror))
    way = system.Way(engine.value, precision.value, average, of.value, beam, length_penalty)
    with progress.reporter().stage("translating"):
        systems = [system.find(path, held_out, way) for path in (model, against) if path]
    evaluated = run.evaluate(systems, held_out, show)
    print(evaluated.model_dump_json(indent=2) if as_json else "\n".join(text.lines(evaluated)))


@app.command()
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
    again: Annotated[bool, typer.Option("--again", help="Also what is translated already.")] = False,
    beam: Annotated[int, typer.Option(min=1, help="1 is greedy search.")] = 4,
    length_penalty: Annotated[float, typer.Option(min=0, help="Higher favours longer translations.")] = 0.6,
    best: Annotated[int, typer.Option(min=1, help="Translations of each line, with their scores.")] = 1,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Tokens of a translation; else by the length of its source.")
    ] = None,
    sample_top: Annotated[
        int, typer.Option(min=0, help="Draw each token from so many of the likeliest; 0: from all.")
    ] = 1,
    temperature: Annotated[float, typer.Option(help="Of drawing; lower is tamer.")] = 1.0,
    no_repeat_ngram: Annotated[
        int, typer.Option(min=0, help="So many tokens in a row come only once; 0: no guard.")
    ] = 0,
    split: Annotated[bool, typer.Option(help="Sentence by sentence, or only long lines so.")] = True,
    average: Annotated[int, typer.Option(min=1, help="Average so many checkpoints of the run.")] = 1,
    of: Annotated[Which, typer.Option(help="Which checkpoints to average.")] = Which.last,
    engine: Annotated[EngineChoice, typer.Option(help="What translates.")] = EngineChoice.auto,
    precision: Annotated[PrecisionChoice, typer.Option(help="Of CTranslate2.")] = PrecisionChoice.auto,
    threads: Annotated[int | None, typer.Option(min=1, help="Else all cores.")] = None,
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
    files.check(sources, out, options, as_json)
    from dragoman.engines import load  # with torch, which takes seconds: what is wrong was said before

    loaded = load(model, engine.value, precision.value, average, of.value, threads)
    if out:
        tally = files.to_files(loaded, sources, out, options, again)
        progress.reporter().note(f"{tally.translated:,} translated, {tally.left:,} left as they were")
    elif sources:
        files.to_stream(loaded, sources, sys.stdout.buffer, options, again, as_json)
    else:
        files.from_stream(loaded, sys.stdin.fileno(), sys.stdout.buffer, options, as_json)


@app.command()
def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A run, its best, or a checkpoint.")],
    to: Annotated[ExportTarget, typer.Option(help="Who is to read it.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FOLDER", help="The folder to write.")],
    precision: Annotated[
        PrecisionChoice, typer.Option(help="Of the weights, for ctranslate2; auto is float32.")
    ] = PrecisionChoice.auto,
    average: Annotated[int, typer.Option(min=1, help="Average so many checkpoints of the run.")] = 1,
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
        print(json.dumps({"folder": str(out), "format": to.value, "files": written}, indent=2))
    else:
        for name, size in written.items():
            print(f"{size:>14,}  {out / name}")


@app.command()
def serve(
    served: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]MODEL", help="A run, its best, or an exported folder; several."),
    ],
    host: Annotated[
        str, typer.Option(help="Where to listen; elsewhere than here a token is needed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any free one.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Holds the token that requests must carry.")
    ] = None,
    engine: Annotated[EngineChoice, typer.Option(help="What translates.")] = EngineChoice.auto,
    precision: Annotated[PrecisionChoice, typer.Option(help="Of CTranslate2.")] = PrecisionChoice.auto,
    threads: Annotated[int | None, typer.Option(min=1, help="Of translating; else all cores.")] = None,
    most_characters: Annotated[int, typer.Option(min=1, help="Of one request; more is refused.")] = 20_000,
    most_requests: Annotated[int, typer.Option(min=1, help="Under way at once; more are refused.")] = 128,
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
    server.run(application, socket, limits, lambda url: print(f"Serving {names} at {url}", flush=True))


@app.command()
def doctor(
    hosts: Annotated[
        str | None, typer.Option(metavar="A:2,B:2", help="Machines to look at, with the ranks of each.")
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="DATA", help="A data set made by prepare.")] = None,
    settings: Annotated[
        Path | None, typer.Option("--config", metavar="CONFIG", help="Settings as a TOML file.")
    ] = None,
    run: Annotated[Path, typer.Option(metavar="RUN", help="Where the run would be.")] = Path("."),
    with_steps: Annotated[
        bool, typer.Option("--train", help="Also make ten real steps, and end in a block to report.")
    ] = False,
    changes: Setting = [],
    as_json: AsJson = False,
) -> None:
    """Check everything that can be checked before a run: this machine, or several and what joins them.

    Example: dragoman doctor --hosts a:2,b:2 --data data/mine --config configs/transformer-base.toml --train
    """
    from dragoman import config
    from dragoman.config import Training
    from dragoman.doctor.run import Request
    from dragoman.doctor.run import run as examine
    from dragoman.launch.hosts import parse

    loaded = config.load(Training, settings, changes) if settings else None
    places = (data.absolute() if data else None, run.absolute())
    with progress.reporter().stage("looking"):
        result = examine(Request(parse(hosts) if hosts else [], *places, loaded, with_steps))
    print(result.json_text()) if as_json else result.show()
    _leave(result.exit_code)


@app.command()
def plan(
    settings: Annotated[Path, typer.Argument(metavar="CONFIG", help="Settings as a TOML file.")],
    hosts: Annotated[int, typer.Option(min=1, help="Machines.")] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Ranks on each, one per GPU.")] = 1,
    link: Annotated[str | None, typer.Option(help="Between machines, as ordered: 1gbit.")] = None,
    gpu: Annotated[str | None, typer.Option(help="The GPU's type: V100.")] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure steps on this machine, with --workers ranks: 30 s.")
    ] = False,
    run: Annotated[
        Path | None, typer.Option("--from", metavar="RUN", help="Plan by the records of a run.")
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="DATA", help="A data set made by prepare.")] = None,
    pairs: Annotated[int | None, typer.Option(min=1, help="Training pairs, where there is no DATA.")] = None,
    epochs: Annotated[
        float | None, typer.Option(min=0, help="Times through the corpus, in place of train.steps.")
    ] = None,
    price_per_hour: Annotated[float | None, typer.Option(min=0, help="Of one machine.")] = None,
    planned: Annotated[
        Path | None,
        typer.Option("--for", metavar="RUN", help="Keep the plan for a run to come: its report compares."),
    ] = None,
    changes: Setting = [],
    as_json: AsJson = False,
) -> None:
    """Say what a run will take on machines that are not rented yet: time, money, disk, memory.

    Every number has an interval and says where it comes from; a table shows other numbers of machines, links
    and ways of exchanging. What computes is named by one of --gpu, --calibrate and --from.

    Example: dragoman plan configs/transformer-base.toml --hosts 2 --workers 2 --gpu V100 --link 1gbit
    """
    from dragoman import config
    from dragoman.config import Training
    from dragoman.plan import document, request, show
    from dragoman.rundir import RunFolder

    filled = config.load(Training, settings, changes)
    asked = request.Request(
        filled, hosts, workers, link, gpu, run, calibrate, data, pairs, epochs, price_per_hour
    )
    if calibrate:
        progress.reporter().note("measuring steps on this machine for half a minute")
    made = request.plan(asked)
    if planned:
        document.save(made, RunFolder(planned).plan)
    print(document.text(made), end="") if as_json else show.show(made)


launch_commands = typer.Typer(
    no_args_is_help=True,
    help="A batch file for a cluster; data to the hosts.\n\n"
    "Example: dragoman launch copy --hosts a,b --data data/mine",
)
app.add_typer(launch_commands, name="launch")


@launch_commands.command()
def slurm(
    settings: Annotated[Path, typer.Argument(metavar="CONFIG", help="Settings as a TOML file.")],
    data: Annotated[Path, typer.Option(metavar="DATA", help="A data set, at this path on every node.")],
    run: Annotated[Path, typer.Option(metavar="RUN", help="The run folder; an existing one goes on.")],
    nodes: Annotated[int, typer.Option(min=1, help="Machines to ask for.")],
    workers_per_node: Annotated[int, typer.Option(min=1, help="Ranks on each of them.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The batch file to write.")],
    time: Annotated[str | None, typer.Option(help="Longest time to run, as sbatch takes it.")] = None,
    partition: Annotated[str | None, typer.Option(help="Of the cluster.")] = None,
    changes: Setting = [],
) -> None:
    """Write a batch file that trains on a Slurm cluster.

    Example: dragoman launch slurm configs/transformer-base.toml --data data/mine --run runs/mine
    --nodes 2 --workers-per-node 4 --time 24:00:00 -o mine.sbatch
    """
    from dragoman import config
    from dragoman.config import Training
    from dragoman.launch import sbatch

    config.load(Training, settings, changes)  # what is wrong with it is better said now than by the cluster
    places = [str(settings.absolute()), "--data", str(data.absolute()), "--run", str(run.absolute())]
    words = ["train", *places, *(word for change in changes for word in ("--set", change))]
    sbatch.write(words, run, sbatch.Batch(nodes, workers_per_node, time, partition), out)
    print(f"Written. To submit it, now and to go on later: {shlex.join(['sbatch', str(out)])}")


@launch_commands.command()
def copy(
    hosts: Annotated[str, typer.Option(metavar="A,B", help="Machines to copy to.")],
    data: Annotated[Path, typer.Option(metavar="DATA", help="A data set made by prepare.")],
) -> None:
    """Copy a data set to the same path on other machines, and check it there by its fingerprint.

    Example: dragoman launch copy --hosts a,b --data data/mine
    """
    from dragoman.launch.copy import copy
    from dragoman.launch.hosts import parse

    copy(data, parse(hosts), progress.reporter().note)


def _leave(code: int) -> NoReturn:
    """At once: threads of torch's stores now and then abort a process while Python takes itself down."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def show(markdown: str) -> None:
    """Drawn on a terminal, as it is in a file or a pipe."""
    console = Console()
    console.print(Markdown(markdown)) if console.is_terminal else print(markdown)


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
