"""Commands that explain runs: report, compare and diagnose."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman import terminal
from dragoman.cli.options import MOST_PRICE, AsJson, within
from dragoman.errors import UsageError


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder; the run may still be training.")],
    price_per_hour: Annotated[
        float | None, within(0, MOST_PRICE, "Price of one machine per hour, for the cost.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer the questions about a run, with evidence and advice.

    Prints the answers, and writes report.html (one file, opens offline),
    report.md and findings.json into the run folder if it is writable.

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
        terminal.warn(
            f"note: report.html was not written: {obstacle}\n"
            "  try: report on a copy of the run folder, or use --json"
        )


def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Another run folder.")],
    html: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Also write an HTML page with both runs' curves.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how two runs differ, and why the slower one was slower.

    Example: dragoman compare runs/tuesday runs/wednesday --html both.html
    """
    from dragoman import atomic
    from dragoman.explain.compare import compare
    from dragoman.measure import database
    from dragoman.report import compare_page, compare_text
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
    facts: Annotated[Path | None, typer.Option(help="A TOML file with the facts below.")] = None,
    ranks: Annotated[int | None, typer.Option(help="Number of processes, one per GPU.")] = None,
    machines: Annotated[int | None, typer.Option(help="Number of machines they ran on.")] = None,
    link: Annotated[str | None, typer.Option(help="Link between the machines, e.g. 1gbit.")] = None,
    gpu: Annotated[str | None, typer.Option(help="GPU type, e.g. V100.")] = None,
    nic_kb_per_s: Annotated[float | None, typer.Option(help="Network KB/s that nmon showed.")] = None,
    nic: Annotated[str | None, typer.Option(help='Network rate in any unit, e.g. "200 Mbps".')] = None,
    gpu_power: Annotated[str | None, typer.Option(help="Watts drawn and their limit, e.g. 42/250.")] = None,
    gpu_util: Annotated[float | None, typer.Option(help="GPU utilisation from nvidia-smi, percent.")] = None,
    model: Annotated[str | None, typer.Option(help="Model name, e.g. transformer-base.")] = None,
    params: Annotated[int | None, typer.Option(help="Parameters, if the model has no such name.")] = None,
    gradient_bytes: Annotated[
        int | None, typer.Option(help="Bytes of one rank's gradients, if not 4 per parameter.")
    ] = None,
    precision: Annotated[str | None, typer.Option(help="fp32 or mixed.")] = None,
    batch: Annotated[int | None, typer.Option(help="Sentence pairs per rank and step.")] = None,
    step_seconds: Annotated[float | None, typer.Option(help="Seconds per step, if no log is left.")] = None,
    steps: Annotated[int | None, typer.Option(help="Number of steps, if no log is left.")] = None,
    hours: Annotated[float | None, typer.Option(help="Hours of training, if no log is left.")] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Also write the report as an HTML page.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer the questions about another program's run.

    Reads OpenSeq2Seq's nohup.out, fairseq logs, Hugging Face's
    trainer_state.json, TensorBoard events, TensorFlow checkpoints, nmon
    recordings and nvidia-smi output, gzipped or not, complete or cut off.
    Options give the facts that no file holds; each answer says where its facts
    come from.

    Example: dragoman diagnose nohup.out v100a.nmon --link 1gbit \\
        --gpu-power 42/250
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
        hint = "name a log, or give --step-seconds, or both --steps and --hours"
        raise UsageError("no files, and too few facts to diagnose a run", hint=hint)
    show.diagnosis(answers.diagnose(files or [], given), as_json, html)
