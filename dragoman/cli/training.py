"""Commands on the way to a trained model: demo, prepare and train."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dragoman import progress, terminal
from dragoman.bounds import MOST_RANKS
from dragoman.cli.options import AsJson, ConfigFile, Setting, within
from dragoman.errors import UsageError
from dragoman.leave import leave

_FEW_PAIRS = 500_000  # below this, a small model learns better than a large one


def demo(
    folder: Annotated[Path, typer.Argument(help="Folder for data/demo and runs/demo.")] = Path("."),
) -> None:
    """Train on the built-in corpus with 2 workers, and translate: a minute, offline.

    Example: dragoman demo
    """
    from dragoman import demo

    terminal.say(demo.run(folder, progress.reporter()))


def prepare(
    what: Annotated[
        list[str], typer.Argument(metavar="RECIPE|FILES", help="A recipe's name, or en=FILE de=FILE ...")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DATA", help="The data set to make.")],
    dev: Annotated[
        list[str], typer.Option(metavar="LANG=FILE", help="Held-out text; once per language.")
    ] = [],
    test: Annotated[list[str], typer.Option(metavar="LANG=FILE", help="Test text; once per language.")] = [],
    vocab: Annotated[Path | None, typer.Option(help="A SentencePiece model to use unchanged.")] = None,
    mirror: Annotated[str | None, typer.Option(help="Folder or URL to download from instead.")] = None,
    downloads: Annotated[
        Path | None, typer.Option(help="Folder for downloads; default: 'downloads' beside DATA.")
    ] = None,
    settings: Annotated[Path | None, typer.Option("--config", help="Settings (a TOML file).")] = None,
    changes: Annotated[
        list[str],
        typer.Option("--set", metavar="KEY=VALUE", help="Change one setting, e.g. clean.max_words=100."),
    ] = [],
    as_json: AsJson = False,
) -> None:
    """Turn parallel text into a cleaned, tokenised data set.

    Name two files that match line by line (en=a.en de=a.de), one file with both
    languages (en:de=a.tmx), or a recipe: demo, multi30k-en-de, wmt16-en-de, or
    an id of the mtdata index. The first language is the source. Files are plain
    text, TSV, TMX, XLIFF or PO, also compressed (gz, bz2, xz, zst). More corpora
    may follow; weight=2 applies to the corpus before it.

    Example: dragoman prepare en=train.en.gz de=train.de.gz --dev en=val.en \\
        --dev de=val.de -o data/mine
    """
    from dragoman.data import summary
    from dragoman.data.jobs import PrepareRequest, resolve
    from dragoman.data.prepare import prepare as run

    reporter = progress.reporter()
    request = PrepareRequest(what, out, dev, test, vocab, settings, changes, downloads, mirror)
    card = run(resolve(request, reporter), out, reporter)
    if as_json:
        terminal.answer(card.json_text())
    else:
        terminal.say("\n".join(summary.lines(card)))
        terminal.say(f"Details: {out / 'card.md'}")
        terminal.say(f"Next: {_training(out, what, card.parts['train'].pairs)}")


def train(
    settings: ConfigFile,
    data: Annotated[Path, typer.Option(metavar="DATA", help="A data set made by prepare.")],
    run: Annotated[Path, typer.Option(metavar="RUN", help="The run folder; an existing run continues.")],
    workers: Annotated[int | None, within(1, MOST_RANKS, "Ranks on this machine; default: 1.")] = None,
    hosts: Annotated[
        str | None, typer.Option(metavar="A:2,B:2", help="Machines to train on, with the ranks on each.")
    ] = None,
    start_from: Annotated[
        Path | None, typer.Option("--from", metavar="MODEL", help="Start with this model's weights.")
    ] = None,
    minutes: Annotated[
        float | None, within(0.1, 10**7, "Fit steps, warm-up and evaluations to this time.")
    ] = None,
    max_restarts: Annotated[
        int, within(0, 10**6, "Faults per hour before the run ends; 0: end at the first one.")
    ] = 100,
    min_hosts: Annotated[
        int | None, within(1, MOST_RANKS, "Hosts needed; default: all at the start, then any one.")
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Train in the background: the run does not need this terminal.")
    ] = False,
    changes: Setting = [],
) -> None:
    """Train a model, or continue a run that stopped.

    The config fixes the size of a step: more workers make it faster, not
    larger. If a rank or host is lost, the others continue, and it joins again
    when it is back. Under torchrun, mpirun and srun each process is a rank, and
    --workers, --hosts, --detach and the options for faults have no effect.

    Example: dragoman train configs/demo.toml --data data/demo \\
        --run runs/demo --hosts a:2,b:2 --min-hosts 1
    """
    from dragoman import config
    from dragoman.config import Training
    from dragoman.launch import detached, environment, local_host, ssh, worker
    from dragoman.launch.detached import TrainingRequest
    from dragoman.launch.hosts import parse
    from dragoman.launch.launcher import Launcher
    from dragoman.launch.remote_host import TrainingCommand
    from dragoman.launch.restarts import Restarts
    from dragoman.rundir import RunFolder
    from dragoman.train import interrupt

    if is_rank := worker.is_rank():
        interrupt.die_at_once()  # otherwise Ctrl-C prints a traceback while torch is loading
    command = environment.command(shlex.join(["dragoman", *sys.argv[1:]]))
    time_given = [] if minutes is None else [f"train.minutes={minutes}"]
    filled = config.load(Training, settings, [*changes, *time_given])
    if hosts and workers and not is_rank:
        raise UsageError(
            "--workers and --hosts exclude each other",
            hint="give each host its number of ranks: --hosts a:2,b:2",
        )
    if is_rank:
        from dragoman.train.job import TrainingJob
        from dragoman.train.run import run as run_rank

        run_rank(TrainingJob(filled, data, RunFolder(run), start_from, command, environment.is_forwarded()))
        leave(0)
    training = TrainingCommand(config.text(filled), data, run, start_from, command)
    machines = parse(hosts) if hosts else []
    words = [word for word in sys.argv[1:] if word != "--detach"]
    request = TrainingRequest(training, words, machines, workers or 1, max_restarts, min_hosts or 0)

    def check() -> None:
        from dragoman.train import job

        if not machines:
            job.check(job.TrainingJob(filled, data, RunFolder(run), start_from))

    def train_here(launcher: Launcher) -> int:
        if machines:
            return ssh.run(
                replace(training, launcher=launcher), machines, Restarts(max_restarts), min_hosts or 0
            )
        return local_host.run(
            ["-m", "dragoman", *words], workers or 1, RunFolder(run), Restarts(max_restarts)
        )

    leave(detached.launch(request, detach, check, train_here))


def stop(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.")],
    host: Annotated[
        str | None,
        typer.Option(
            "--host", "--hosts", metavar="A", help="The run's first host, if this machine did not start it."
        ),
    ] = None,
) -> None:
    """End a run as Ctrl-C would, also a detached one: it saves first.

    Returns when the run has ended. The same command again hurries it: the
    model is not scored.

    Example: dragoman stop runs/demo
    """
    from dragoman.launch import detached
    from dragoman.launch.hosts import parse

    detached.stop(run, parse(host)[0].name if host else "")


def _training(data: Path, what: list[str], pairs: int) -> str:
    """The command to suggest for training on a data set of this size."""
    small = "demo" if what == ["demo"] else "transformer-tiny"
    words = ["dragoman", "train", small if pairs < _FEW_PAIRS else "transformer-base"]
    return shlex.join([*words, "--data", str(data), "--run", f"runs/{data.name}"])
