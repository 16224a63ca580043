"""Commands that say what a run was."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman import terminal
from dragoman.cli.options import MOST_PRICE, AsJson, within
from dragoman.errors import UsageError


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, also of a run under way.")],
    price_per_hour: Annotated[
        float | None, within(0, MOST_PRICE, "Of one machine, to give the run's cost.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer the eleven questions about a run, with numbers, evidence and advice.

    Writes report.html (one file, opens offline), report.md and findings.json into the run folder, where that
    is allowed; the answers are printed in any case.

    Example: dragoman report runs/demo --price-per-hour 0.90
    """
    from dragoman.explain.run import explain
    from dragoman.measure import database
    from dragoman.report import planned, scored, text, write
    from dragoman.rundir import RunFolder

    records = database.read(RunFolder(run).records)
    findings = explain(records, price_per_hour)
    obstacle = write.write_if_allowed(records, findings, run)
    comparison, scores = planned.compare(run, records, findings), scored.find(run)
    if as_json:
        terminal.answer(write.json_text(records, findings, comparison, scores))
    else:
        text.show(records, findings, comparison=comparison, scores=scores)
        if not obstacle:
            terminal.say(f"Page: {run / write.PAGE_FILE}")
    if obstacle:
        terminal.warn(f"note: no page was written: {obstacle}\n  try: a copy of the run folder, or --json")


def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Another.")],
    html: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Also write a page, with the curves of both.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what differs between two runs, and why the slower was slower.

    Example: dragoman compare runs/tuesday runs/wednesday --html both.html
    """
    from dragoman import atomic
    from dragoman.measure import database
    from dragoman.report import compare_page, compare_text
    from dragoman.report.compare import compare
    from dragoman.rundir import RunFolder

    a, b = (database.read(RunFolder(run).records) for run in (first, second))
    comparison = compare(a, b)
    if html:
        page = compare_page.render(comparison, a, b)
        atomic.write(html, page.encode("utf-8", errors="replace"))
    if as_json:
        terminal.answer(comparison.model_dump_json(indent=2))
        return
    compare_text.show(comparison)
    if html:
        terminal.say(f"Page: {html}")


def diagnose(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILES", help="Logs, recordings, checkpoint folders.")
    ] = None,
    facts: Annotated[Path | None, typer.Option(help="The facts below as a TOML file.")] = None,
    ranks: Annotated[int | None, typer.Option(help="Processes in all, one per GPU.")] = None,
    machines: Annotated[int | None, typer.Option(help="Machines they ran on.")] = None,
    link: Annotated[str | None, typer.Option(help="Between the machines, as ordered: 1gbit.")] = None,
    gpu: Annotated[str | None, typer.Option(help="The GPU's type: V100.")] = None,
    nic_kb_per_s: Annotated[float | None, typer.Option(help="What nmon showed: 200210.")] = None,
    nic: Annotated[str | None, typer.Option(help='A reading in any unit: "200 Mbps".')] = None,
    gpu_power: Annotated[str | None, typer.Option(help="Watts of the limit: 42/250.")] = None,
    gpu_util: Annotated[float | None, typer.Option(help="Percent, as nvidia-smi shows it.")] = None,
    model: Annotated[str | None, typer.Option(help="The model by name: transformer-base.")] = None,
    params: Annotated[int | None, typer.Option(help="Parameters, of a model without a name.")] = None,
    gradient_bytes: Annotated[
        int | None, typer.Option(help="Of all gradients of a rank, if not 4 per parameter.")
    ] = None,
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
    from dragoman.foreign import answers, show
    from dragoman.foreign.facts import load

    options = dict(
        ranks=ranks, machines=machines, link=link, gpu=gpu, nic_kb_per_s=nic_kb_per_s, nic=nic,
        gpu_power=gpu_power, gpu_util=gpu_util, model=model, params=params, gradient_bytes=gradient_bytes,
        precision=precision, batch=batch, step_seconds=step_seconds, steps=steps, hours=hours,
    )  # fmt: skip
    given = load(facts, options)
    if not files and given.step_seconds is None and not (given.steps and given.hours):
        hint = "name a log, or give at least --step-seconds, or --steps and --hours"
        raise UsageError("nothing to diagnose", hint=hint)
    show.diagnosis(answers.diagnose(files or [], given), as_json, html)
