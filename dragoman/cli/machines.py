"""Commands that prepare machines for a run: doctor, plan and launch."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dragoman import progress, terminal
from dragoman.bounds import MOST_RANKS
from dragoman.cli.options import MOST_HOSTS, MOST_PRICE, AsJson, ConfigFile, Setting, located, within
from dragoman.leave import leave

MOST_GPUS = 64  # in one machine
MOST_PAIRS = 10**12


def doctor(
    hosts: Annotated[
        str | None, typer.Option(metavar="A:2,B:2", help="Machines to check, with the ranks on each.")
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="DATA", help="A data set made by prepare.")] = None,
    settings: Annotated[
        Path | None,
        typer.Option("--config", metavar="CONFIG", help="The run's settings (TOML).", callback=located),
    ] = None,
    run: Annotated[Path, typer.Option(metavar="RUN", help="The future run folder.")] = Path("."),
    with_steps: Annotated[
        bool, typer.Option("--train", help="Also train ten steps, and print a summary for bug reports.")
    ] = False,
    changes: Setting = [],
    as_json: AsJson = False,
) -> None:
    """Check machines, data and network before a run.

    Checks this machine, or with --hosts several machines and the links
    between them.

    Example: dragoman doctor --hosts a:2,b:2 --data data/mine \\
        --config configs/transformer-base.toml --train
    """
    from dragoman import config
    from dragoman.config import Training
    from dragoman.doctor.run import DoctorRequest
    from dragoman.doctor.run import run as examine
    from dragoman.launch.hosts import parse

    loaded = config.load(Training, settings, changes) if settings else None
    places = (data.absolute() if data else None, run.absolute())
    with progress.reporter().stage("checking"):
        result = examine(DoctorRequest(parse(hosts) if hosts else [], *places, loaded, with_steps))
    terminal.answer(result.json_text()) if as_json else result.show()
    leave(result.exit_code)


def plan(
    settings: ConfigFile,
    hosts: Annotated[int, within(1, MOST_HOSTS, "Number of machines.")] = 1,
    workers: Annotated[int, within(1, MOST_GPUS, "Ranks per machine, one per GPU.")] = 1,
    link: Annotated[str | None, typer.Option(help="Link between machines, e.g. 1gbit.")] = None,
    gpu: Annotated[str | None, typer.Option(help="GPU type, e.g. V100.")] = None,
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="Measure steps here, with --workers ranks (30 s)."),
    ] = False,
    run: Annotated[
        Path | None, typer.Option("--from", metavar="RUN", help="Plan from the records of this run.")
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="DATA", help="A data set made by prepare.")] = None,
    pairs: Annotated[int | None, within(1, MOST_PAIRS, "Training pairs, if there is no DATA yet.")] = None,
    epochs: Annotated[
        float | None, within(1e-6, 1e6, "Passes through the corpus, instead of train.steps.")
    ] = None,
    price_per_hour: Annotated[float | None, within(0, MOST_PRICE, "Price of one machine per hour.")] = None,
    currency: Annotated[str, typer.Option(metavar="EUR", help="Currency of the price.")] = "",
    planned: Annotated[
        Path | None,
        typer.Option("--for", metavar="RUN", help="Save the plan for this future run's report."),
    ] = None,
    changes: Setting = [],
    as_json: AsJson = False,
) -> None:
    """Estimate time, money, disk and memory of a run before you rent machines.

    How fast a rank computes comes from one of --gpu, --calibrate and --from.
    Every estimate has an interval and names its source. A table compares other
    numbers of machines, links and ways of exchanging gradients.

    Example: dragoman plan configs/transformer-base.toml --hosts 2 --workers 2 \\
        --gpu V100 --link 1gbit
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

        progress.reporter().note("measuring steps on this machine (takes half a minute)")
        return calibration.calibrate(work, workers, data)

    plan_request = request.PlanRequest(
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
    run_plan = request.plan(plan_request)
    if planned:
        folder = RunFolder(planned)
        folder.make()
        document.save(run_plan, folder.plan)
    terminal.answer(document.text(run_plan)) if as_json else show.show(run_plan)


def slurm(
    settings: ConfigFile,
    data: Annotated[Path, typer.Option(metavar="DATA", help="A data set, at this path on every node.")],
    run: Annotated[Path, typer.Option(metavar="RUN", help="The run folder; an existing run continues.")],
    nodes: Annotated[int, within(1, MOST_HOSTS, "Number of nodes (machines).")],
    workers_per_node: Annotated[int, within(1, MOST_RANKS, "Ranks per node.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The batch file to write.")],
    time: Annotated[str | None, typer.Option(help="Time limit, in sbatch's format.")] = None,
    partition: Annotated[str | None, typer.Option(help="Partition of the cluster.")] = None,
    changes: Setting = [],
) -> None:
    """Write a batch file that trains on a Slurm cluster.

    Example: dragoman launch slurm configs/transformer-base.toml \\
        --data data/mine --run runs/mine --nodes 2 --workers-per-node 4 \\
        --time 24:00:00 -o mine.sbatch
    """
    from dragoman import config
    from dragoman.config import Training
    from dragoman.launch import sbatch

    config.load(Training, settings, changes)  # reports errors now, before the job waits in the queue
    places = [str(settings.absolute()), "--data", str(data.absolute()), "--run", str(run.absolute())]
    words = ["train", *places, *(word for change in changes for word in ("--set", change))]
    sbatch.write(words, run, sbatch.Batch(nodes, workers_per_node, time, partition), out)
    terminal.say(f"Start the run, and continue it later, with: {shlex.join(['sbatch', str(out)])}")


def copy(
    hosts: Annotated[str, typer.Option(metavar="A,B", help="Machines to copy to.")],
    data: Annotated[Path, typer.Option(metavar="DATA", help="A data set made by prepare.")],
) -> None:
    """Copy a data set to the same path on other machines, and verify it.

    Example: dragoman launch copy --hosts a,b --data data/mine
    """
    from dragoman.launch.copy import copy
    from dragoman.launch.hosts import parse

    copy(data, parse(hosts), progress.reporter().note)
