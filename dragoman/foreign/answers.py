"""The answers for another program's run, with additions from its files and the given facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from dragoman import format_units
from dragoman.explain.finding import Finding, known
from dragoman.explain.run import explain
from dragoman.figures import Reading, best
from dragoman.foreign import facts as given_facts
from dragoman.foreign.assemble import assemble
from dragoman.foreign.facts import Given
from dragoman.foreign.log_facts import ASSUMED, MEASURED, Gathered
from dragoman.foreign.read import read
from dragoman.measure.records import Records

# The facts that each answer uses in addition to the log's own steps.
RESTS_ON = {
    "device_utilisation": ("device", "precision", "pairs_per_rank", "usual_pairs_per_rank", "gpu_meters"),
    "network": (
        "ranks",
        "machines",
        "gradient_bytes",
        "link_bits_per_second",
        "nic_bytes_per_second",
        "usual_pairs_per_rank",
        "gpu_meters",
    ),
    "step_network": ("ranks", "machines", "gradient_bytes", "nic_bytes_per_second"),
    "checkpoint_size": ("parameters",),
    "step_time": ("ranks", "given_step_seconds"),
    "duration": ("given_steps", "wall_seconds"),
}
# Bytes per parameter in a checkpoint with Adam: weight and two moments in fp32; mixed adds an fp16 copy.
STATES_BYTES = {"fp32": 12, "mixed": 14}


@dataclass(frozen=True)
class Diagnosis:
    records: Records
    findings: list[Finding]
    file_kinds: dict[str, str]  # file -> the kind of file it was recognised as
    notes: list[str]  # problems with files


def diagnose(paths: Sequence[Path], given: Given) -> Diagnosis:
    """Answers the questions from files, from given facts, or from both."""
    gathered = read(paths) if paths else Gathered()
    given_facts.add(given, gathered)
    name = paths[0].name if paths else "given facts"
    return answer(gathered, name)


def answer(gathered: Gathered, name: str) -> Diagnosis:
    records = assemble(gathered, name)
    findings = {finding.id: finding for finding in explain(records)}
    _add_reading(gathered, records, findings)
    _add_tokens(gathered, findings)
    _add_beginning(gathered, findings)
    if "changes" in findings["step_time"].numbers:
        findings["step_time"].answer += " On rented machines the cause is often a burst allowance that ends."
    _add_checkpoint(gathered, findings)
    for remark in gathered.remarks:
        finding = findings[remark.id]
        finding.answer += f" {remark.text}." if remark.text else ""
        if remark.advice and remark.advice not in finding.advice:
            finding.advice.append(remark.advice)
    if (score := gathered.value("teacher_forced_bleu")) is not None:
        findings["convergence"].numbers |= known(teacher_forced_bleu=score)
    for id, names in RESTS_ON.items():
        findings[id].evidence += _origins(gathered, names)
    if findings["network"].verdict == "unknown" and (missing := _missing(gathered)):
        findings["network"].advice.append(f"add facts that no file holds: {', '.join(missing)}")
    return Diagnosis(records, list(findings.values()), gathered.file_kinds, gathered.notes)


def _add_beginning(gathered: Gathered, findings: dict[str, Finding]) -> None:
    """Says at which step the log begins: its times cover only its own steps, not the run's first ones."""
    firsts = [start.first_step for start in gathered.starts if start.first_step is not None]
    lasts = [start.last_step for start in gathered.starts if start.last_step is not None]
    if firsts and min(firsts) > max(1.0, median(gathered.intervals["steps"])):
        steps = f"{max(lasts) - min(firsts) + 1:,} steps"
        text = f" The log begins at step {min(firsts):,}: these times cover only its {steps}."
        findings["duration"].answer += text


def _missing(gathered: Gathered) -> list[str]:
    """The options whose facts are unknown and would help."""
    helpful = {
        "given_step_seconds": "--step-seconds",
        "ranks": "--ranks",
        "machines": "--machines",
        "parameters": "--model (or --params)",
        "link_bits_per_second": "--link",
        "device": "--gpu",
        "pairs_per_rank": "--batch",
        "gpu_meters": "--gpu-power",
    }
    unknown = (None, ASSUMED)
    missing = [option for name, option in helpful.items() if (gathered.origin(name) or None) in unknown]
    return missing[1:] if gathered.intervals["step"] and "--step-seconds" in missing else missing


def _origins(gathered: Gathered, names: Sequence[str]) -> list[str]:
    """Lines such as `given: ranks, machines`, for the facts that come from no file."""
    by_origin: dict[str, list[str]] = {}
    for name in names:
        if (origin := gathered.origin(name)) and origin != MEASURED:
            by_origin.setdefault(origin, []).append(name.removeprefix("given_").replace("_", " "))
    return [f"{origin}: {', '.join(facts)}" for origin, facts in by_origin.items()]


def _add_reading(gathered: Gathered, records: Records, findings: dict[str, Finding]) -> None:
    """Explains a network reading from a screen in the unit that fits the bytes of a step."""
    network = findings["network"]
    if kilobytes := gathered.value("nic_kb_per_s"):
        rate = format_units.rate(8 * 1024 * kilobytes)
        wrong = format_units.rate(kilobytes * 1000)
        network.answer += f" {kilobytes:,.0f} KB/s on the interface is {rate}, not {wrong} (KB are bytes)."
    written: list[Reading] = gathered.value("nic_readings") or []
    expected = network.numbers.get("implied_bits_per_second", 0.0) / 8
    if written and not expected:
        network.answer += f' "{written[0].text}" cannot be checked: the bytes of a step are not known.'
    elif written and expected:
        network.answer += f" {_meaning(written, expected)}"


def _meaning(written: list[Reading], expected: float) -> str:
    read, meaning = best(written, expected)
    if meaning is None:
        sent = format_units.rate(8 * expected)
        return f'"{read.text}" does not fit the {sent} that the steps must have sent, in any unit.'
    if meaning.as_written:
        return f'"{read.text}" agrees with that.'
    bits = f", {format_units.rate(8 * meaning.bytes_per_second)}" if meaning.unit.endswith("B/s") else ""
    means = f"{read.value:,.4g} {meaning.unit}{bits}"
    return f'"{read.text}" must have been {means}: no other unit fits the bytes that the steps must send.'


def _add_tokens(gathered: Gathered, findings: dict[str, Finding]) -> None:
    finding = findings["step_time"]
    each, pairs, ranks = (gathered.value(n) for n in ("target_tokens_per_pair", "pairs_per_rank", "ranks"))
    if "tokens_per_step" in finding.numbers or not (each and pairs and ranks):
        return
    tokens, seconds = each * pairs * ranks, finding.numbers.get("mean_seconds")
    finding.numbers |= known(tokens_per_step=tokens, tokens_per_second=tokens / seconds if seconds else None)
    finding.evidence.append("tokens_per_step: estimated from the examples that the log prints, with EOS")
    finding.answer += f" The examples in the log suggest about {tokens:,.0f} target tokens per step."


def _add_checkpoint(gathered: Gathered, findings: dict[str, Finding]) -> None:
    """Adds the size of a mixed-precision checkpoint, if there is no checkpoint to measure."""
    parameters, each = gathered.value("parameters"), STATES_BYTES.get(str(gathered.value("precision")))
    finding = findings["checkpoint_size"]
    if finding.verdict != "unknown" or not parameters or each != STATES_BYTES["mixed"]:
        return
    size = format_units.size(each * parameters)
    finding.answer += f" This run used mixed precision: {each} bytes per parameter with an fp16 copy, {size}."
