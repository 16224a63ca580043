"""Commands about machines, before a run is on them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dragoman import progress, terminal
from dragoman.bounds import MOST_RANKS
from dragoman.cli.leave import leave
from dragoman.cli.options import MOST_HOSTS, MOST_PRICE, AsJson, ConfigFile, Setting, located, within

MOST_GPUS = 64  # of one machine
MOST_PAIRS = 10**12


def doctor(
    hosts: Annotated[
        str | None, typer.Option(metavar="A:2,B:2", help="Machines to look at, with the ranks of each.")
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="DATA", help="A data set made by prepare.")] = None,
    settings: Annotated[
        Path | None,
        typer.Option("--config", metavar="CONFIG", help="Settings as a TOML file.", callback=located),
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
    from dragoman.doctor.run import DoctorRequest
    from dragoman.doctor.run import run as examine
    from dragoman.launch.hosts import parse

    loaded = config.load(Training, settings, changes) if settings else None
    places = (data.absolute() if data else None, run.absolute())
    with progress.reporter().stage("looking"):
        result = examine(DoctorRequest(parse(hosts) if hosts else [], *places, loaded, with_steps))
    terminal.answer(result.json_text()) if as_json else result.show()
    leave(result.exit_code)


def plan(
    settings: ConfigFile,
    hosts: Annotated[int, within(1, MOST_HOSTS, "Machines.")] = 1,
    workers: Annotated[int, within(1, MOST_GPUS, "Ranks on each, one per GPU.")] = 1,
    link: Annotated[str | None, typer.Option(help="Between machines, as ordered: 1gbit.")] = None,
    gpu: Annotated[str | None, typer.Option(help="The GPU's type: V100.")] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure steps on this machine, with --workers ranks: 30 s.")
    ] = False,
    run: Annotated[
        Path | None, typer.Option("--from", metavar="RUN", help="Plan by the records of a run.")
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="DATA", help="A data set made by prepare.")] = None,
    pairs: Annotated[int | None, within(1, MOST_PAIRS, "Training pairs, where there is no DATA.")] = None,
    epochs: Annotated[
        float | None, within(1e-6, 1e6, "Times through the corpus, in place of train.steps.")
    ] = None,
    price_per_hour: Annotated[float | None, within(0, MOST_PRICE, "Of one machine.")] = None,
    currency: Annotated[str, typer.Option(metavar="EUR", help="Of the price.")] = "",
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
    from dragoman.plan.pace import Pace
    from dragoman.plan.work import Work
    from dragoman.rundir import RunFolder

    filled = config.load(Training, settings, changes)

    def measured(work: Work) -> Pace:
        from dragoman.train import calibrate as calibration  # imports torch

        progress.reporter().note("measuring steps on this machine for half a minute")
        return calibration.calibrate(work, workers, data)

    asked = request.PlanRequest(
        settings=filled,
        hosts=hosts,
        workers=workers,
        link=link,
        gpu=gpu,
        run=run,
        calibrate=measured if calibrate else None,
        data=data,
        pairs=pairs,
        epochs=epochs,
        price_per_hour=price_per_hour,
        currency=currency,
    )
    made = request.plan(asked)
    if planned:
        document.save(made, RunFolder(planned).plan)
    terminal.answer(document.text(made)) if as_json else show.show(made)


def slurm(
    settings: ConfigFile,
    data: Annotated[Path, typer.Option(metavar="DATA", help="A data set, at this path on every node.")],
    run: Annotated[Path, typer.Option(metavar="RUN", help="The run folder; an existing one goes on.")],
    nodes: Annotated[int, within(1, MOST_HOSTS, "Machines to ask for.")],
    workers_per_node: Annotated[int, within(1, MOST_RANKS, "Ranks on each of them.")],
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
    terminal.say(f"Written. To submit it, now and to go on later: {shlex.join(['sbatch', str(out)])}")


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
