"""What is always true of the answers, held against thousands of runs whose causes are known."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator

import markupsafe
import numpy as np
import pytest
from rich.console import Console

from dragoman.explain import run as explain
from dragoman.explain.burst_samples import bursts
from dragoman.explain.finding import Finding
from dragoman.explain.outages import outages, repeated_steps
from dragoman.explain.questions import QUESTIONS
from dragoman.explain.timeline import timeline
from dragoman.measure.records import Records
from dragoman.report import markdown, page, text
from tests.explain import build, generate
from tests.explain.build import Run
from tests.explain.faulty import Lost, with_faults
from tests.explain.sentences import Known, gains, not_numbers, ugly, unfounded
from tests.facts import failed, lacking

Findings = dict[str, Finding]
# What the pages of the explainers say, written down once more: a changed constant must not judge itself.
BOTTLENECK, NEGLIGIBLE = 1.3, 1.1
SETTLING_STEPS, ENOUGH_STEPS = 3, 20
CHUNKS, CHUNK = 15, 100  # cases, each with everything recorded and once more with holes
PAGES = 100
FEWEST_WORDS = 4  # that say what is missing
# Of a step: they may not come to more than all of it.
PARTS = ("compute_share", "network_share", "straggler_share", "data_share")
# Shares that are no part of anything: what the meters or the settings make of them may be more than one.
RATIOS = ("link_used_share", "planned_difference_share")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_must_hold_of_every_run_holds(chunk: int) -> None:
    wrong = [
        f"seed {seed}: {text}" for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK) for text in broken(seed)
    ]
    assert not wrong, "\n".join(wrong[:20])


def broken(seed: int) -> Iterator[str]:
    """What does not hold of the run of this seed, with everything recorded and with holes."""
    run = generate.draw(seed)
    records = build.records(**vars(run))
    findings = explained(records)
    known = Known(records)
    for finding in findings.values():
        yield from of_every_answer(finding, known)
    for claim in OF_THE_RUN:
        yield from claim(run, records, findings)
    holed = generate.with_holes(records, seed)
    known = Known(holed)
    for finding in explained(holed).values():
        yield from (f"with holes: {text}" for text in of_every_answer(finding, known))
    if losses := generate.losses(run, seed):
        yield from (f"with faults: {text}" for text in _broken_by_faults(run, records, losses, seed))


def _broken_by_faults(run: Run, records: Records, losses: list[Lost], seed: int) -> Iterator[str]:
    faulty = with_faults(records, *losses)
    findings = explained(faulty)
    known = Known(faulty)
    for finding in findings.values():
        yield from of_every_answer(finding, known)
    yield from faults_are_told_as_they_were(losses, faulty, findings)
    yield from the_time_line_is_in_order(losses, faulty)
    holed = generate.with_holes(faulty, seed)
    known_with_holes = Known(holed)
    for finding in explained(holed).values():
        yield from (f"with holes: {text}" for text in of_every_answer(finding, known_with_holes))
    yield from (f"with holes: {text}" for text in _in_order(holed))


def explained(records: Records) -> Findings:
    return {finding.id: finding for finding in explain.explain(records, price_per_hour=1.5)}


# --- whatever was recorded --------------------------------------------------------------------------------


def of_every_answer(finding: Finding, known: Known) -> Iterator[str]:
    checks = (_form, _shares, _gains, not_numbers)
    for check in checks:
        yield from (f"{finding.id}: {text}" for text in check(finding))
    yield from (f"{finding.id}: {text}" for text in (*ugly(finding), *unfounded(finding, known)))


def _form(finding: Finding) -> Iterator[str]:
    answer = finding.answer
    if finding.verdict not in QUESTIONS[finding.id].verdicts:
        yield f"verdict {finding.verdict}"
    yield from failed([finding])
    if not answer.endswith((".", ")")) or not answer[0].isupper() and not answer[0].isdigit():
        yield f"no sentence: {answer!r}"
    if (finding.verdict == "unknown") != (finding.confidence == "unknown"):
        yield f"verdict {finding.verdict}, confidence {finding.confidence}"
    if finding.verdict == "unknown" and len(answer.split()) < FEWEST_WORDS:
        yield f"unknown, and it does not say what is missing: {answer!r}"
    if finding.verdict != "unknown" and answer.startswith("Unknown"):
        yield f"{finding.verdict}, and it says {answer!r}"


def _shares(finding: Finding) -> Iterator[str]:
    shares = {
        name: v for name, v in finding.numbers.items() if name.endswith("_share") and name not in RATIOS
    }
    for name, value in shares.items():
        if not -1e-9 <= value <= 1 + 1e-9:
            yield f"{name} is {value}"
    together = sum(shares.get(name, 0.0) for name in PARTS)
    if together > 1 + 1e-6:
        yield f"shares of a step come to {together}"


def _gains(finding: Finding) -> Iterator[str]:
    """No remedy for the network gives more than an exchange that costs nothing."""
    most = finding.numbers.get("speedup_without_exchange", 1000.0)
    for advice in finding.advice:
        if finding.id in ("network", "step_network") and any(gain > most + 0.05 for gain in gains(advice)):
            yield f"{advice!r}, where without the exchange it is {most:.2f} x"


# --- of a run whose causes are known ----------------------------------------------------------------------


class Truth:
    """What the parts of the run make of its settled steps."""

    def __init__(self, run: Run):
        settled = slice(SETTLING_STEPS if run.steps - SETTLING_STEPS >= ENOUGH_STEPS else 0, None)
        self.phases = {name: seconds[:, settled] for name, seconds in build.phase_seconds(run).items()}
        self.steps = sum(self.phases.values())[0]
        self.seconds = float(self.steps.mean())
        self.mean = {name: float(seconds.mean()) for name, seconds in self.phases.items()}
        self.link = float(self.phases["exchange"].min(0).mean())
        self.straggler = self.mean["exchange"] - self.link if run.ranks > 1 else 0.0
        self.computing = self.mean["forward"] + self.mean["backward"] + self.mean["optimizer"]
        self.sent_bytes = run.wire_bytes * float(run.exchanges.mean())
        # Seconds of a step that would be gone without each cause.
        self.lost = {
            "waiting_network": self.link,
            "waiting_data": self.mean["data"],
            "waiting_straggler": self.straggler * run.ranks / max(1, run.ranks - 1),
        }


def _differ(finding: Finding, wanted: dict[str, float | None], within: float = 1e-6) -> Iterator[str]:
    for name, value in wanted.items():
        told = finding.numbers.get(name)
        if value is None or told is None:
            if value is not told:
                yield f"{finding.id}: {name} is {told}, and should be {value}"
        elif abs(told - value) > within * max(1.0, abs(value)) + within * abs(value):
            yield f"{finding.id}: {name} is {told}, and should be {value}"


def steps_are_told_as_they_were(run: Run, records: Records, findings: Findings) -> Iterator[str]:
    truth = Truth(run)
    wanted = {
        "mean_seconds": truth.seconds,
        "median_seconds": float(np.median(truth.steps)),
        "p95_seconds": float(np.percentile(truth.steps, 95)),
        "tokens_per_step": 24_000,
        "tokens_per_second": 24_000 / truth.seconds,
    }
    yield from _differ(findings["step_time"], wanted)
    yield from _differ(
        findings["device_utilisation"],
        {
            "compute_share": truth.computing / truth.seconds,
            "network_share": truth.link / truth.seconds,
            "straggler_share": truth.straggler / truth.seconds,
            "data_share": truth.mean["data"] / truth.seconds,
            "optimizer_share": truth.mean["optimizer"] / truth.seconds,
            "flops_share": build.FLOPS / truth.seconds / run.peak_flops_per_second,
            "utilisation": 1.0 if run.gpu_watts else 0.9,
            "power_share": run.gpu_watts / 250 if run.gpu_watts else None,
        },
    )
    yield from _differ(
        findings["network"],
        {
            "exposed_share": truth.link / truth.seconds,
            "straggler_share": truth.straggler / truth.seconds,
            "expected_bytes_per_step_per_host": truth.sent_bytes,
        },
    )
    windows = {row["rank"]: row for row in findings["step_time"].numbers["ranks"]}
    for rank, row in windows.items():
        for name, seconds in build.phase_seconds(run).items():
            if abs(row[f"{name}_seconds"] - seconds[rank].mean()) > 1e-6 * max(1.0, truth.seconds):
                yield f"step_time: {name} of rank {rank} is {row}"
    shares = {name: mean / truth.seconds for name, mean in truth.mean.items()}
    told = findings["step_time"].numbers["phase_shares"]
    if any(abs(told[name] - share) > 1e-6 for name, share in shares.items()):
        yield f"step_time: {told} should be {shares}"
    yield from _differ(findings["step_time"], {"microbatches": 8, "microbatches_per_rank": 8 / run.ranks})
    yield from _differ(findings["training_set"], {"passes": 900 * run.steps / 9_500})
    if run.counted_bytes is not None and run.hosts > 1:
        rate = run.counted_bytes * 8 / truth.seconds / run.link_bits_per_second
        yield from _differ(
            findings["network"],
            {"link_used_share": rate, "link_bits_per_second": run.link_bits_per_second},
        )
        counted = {"bytes_per_step_per_host": run.counted_bytes}
        yield from _differ(findings["network"], counted)
        yield from _differ(findings["step_network"], counted)
    yield from _differ(findings["step_network"], {"exchange_share": truth.mean["exchange"] / truth.seconds})


def the_largest_cause_is_named(run: Run, records: Records, findings: Findings) -> Iterator[str]:
    """Where it is clearly the largest, and clearly worth naming; and nothing where all is well."""
    truth, verdict = Truth(run), findings["device_utilisation"].verdict
    first, second, *_ = sorted(truth.lost, key=lambda name: -truth.lost[name])
    gain = truth.seconds / max(1e-9, truth.seconds - truth.lost[first])
    if gain > 1.1 * BOTTLENECK and truth.lost[first] > 1.5 * truth.lost[second] and verdict != first:
        yield f"{verdict}, where {first} makes steps {gain:.2f} x longer"
    if gain < 0.95 * BOTTLENECK and truth.computing > 0.6 * truth.seconds and verdict != "computing":
        yield f"{verdict}, where the largest wait makes steps {gain:.2f} x longer"


def the_slow_rank_is_named(run: Run, records: Records, findings: Findings) -> Iterator[str]:
    seconds = build.phase_seconds(run)
    busy = np.array([seconds[name].sum(1) for name in ("data", "forward", "backward")]).sum(0)
    for id in ("network", "device_utilisation"):
        numbers = findings[id].numbers
        if (rank := numbers.get("slowest_rank")) is not None:
            others = np.delete(busy, rank).mean()
            if rank != busy.argmax() or busy[rank] < 1.04 * others:
                yield f"{id}: rank {rank} of {busy}"
            yield from _differ(findings[id], {"slowest_rank_times_busier": busy[rank] / others})
        elif findings[id].verdict == "waiting_straggler" and busy.max() > 1.1 * np.median(busy):
            yield f"{id}: no rank is named, of {busy}"


def step_time_and_exchange_go_together_as_they_did(
    run: Run, records: Records, findings: Findings
) -> Iterator[str]:
    truth, numbers = Truth(run), findings["step_network"].numbers
    least = truth.phases["exchange"].min(0)
    told = numbers.get("correlation")
    if run.ranks > 1 and truth.steps.std() > 1e-6 * truth.seconds and least.std() > 1e-6 * truth.seconds:
        wanted = float(np.corrcoef(truth.steps, least)[0, 1]) if len(least) >= 10 else None
        yield from _differ(findings["step_network"], {"correlation": wanted}, within=1e-5)
    elif run.ranks == 1 and told is not None:
        yield f"correlation {told} on one rank"
    of_rank_0 = (
        build.phase_seconds(run)["exchange"][0][20:25],
        sum(build.phase_seconds(run).values())[0][20:25],
    )
    if run.steps >= 25 and run.mode == "allreduce" and run.hosts > 1:
        shares = of_rank_0[0] / of_rank_0[1]
        burst = np.median(np.minimum(1.0, 0.25 / shares))
        if shares.min() > 0.2 and abs(numbers["burst_share"] - burst) > 0.13:
            yield f"burst_share {numbers['burst_share']}, and it was {burst}"
        found = bursts(records)
        if shares.min() > 0.2 and (found is None or found.phase != "exchange"):
            yield f"{found}, and bytes flow in the exchange"
    faster, most = numbers.get("faster_link_speedup"), truth.seconds / max(1e-9, truth.seconds - truth.link)
    if faster is not None and not 0.999 <= faster <= 1.1 * most + 0.01 and run.slow_rank is None:
        yield f"faster_link_speedup {faster} of at most {most}"


def no_gain_is_more_than_its_cause_takes(run: Run, records: Records, findings: Findings) -> Iterator[str]:
    truth = Truth(run)
    # Each cause has at most one advice: the largest gain is at most that of the largest cause, and so on.
    most = []
    for cause, lost in truth.lost.items():
        gain = truth.seconds / max(1e-3 * truth.seconds, truth.seconds - lost)
        # A probe may differ from the clocks of the steps by a tenth of the step, and is believed.
        most.append(gain + 0.05 + (0.1 * gain if cause == "waiting_network" else 0.02) * gain)
    told = sorted(
        (gain for text in findings["device_utilisation"].advice for gain in gains(text)), reverse=True
    )
    if len(told) > len(most) or any(a > b for a, b in zip(told, sorted(most, reverse=True), strict=False)):
        yield f"gains of {told}, where {truth.lost} of {truth.seconds} s are lost"


def the_network_is_judged_by_what_it_costs(run: Run, records: Records, findings: Findings) -> Iterator[str]:
    truth, finding = Truth(run), findings["network"]
    if run.hosts == 1:
        if finding.verdict != "single_machine":
            yield f"{finding.verdict} on one machine"
        return
    gain = truth.seconds / max(1e-9, truth.seconds - truth.link)
    wanted = "bottleneck" if gain >= BOTTLENECK else "not_bottleneck" if gain < NEGLIGIBLE else "balanced"
    is_near = any(abs(gain / limit - 1) < 0.05 for limit in (BOTTLENECK, NEGLIGIBLE))
    if finding.verdict != wanted and not is_near:
        yield f"{finding.verdict}, where the exchange makes steps {gain:.2f} x longer: {finding.answer}"


def much_other_traffic_is_told(run: Run, records: Records, findings: Findings) -> Iterator[str]:
    other = run.other_bytes_per_second * Truth(run).seconds
    if other <= 0.3 * Truth(run).sent_bytes or run.counted_bytes is None:
        return
    finding = findings["network"]
    shares = [row["expected_share"] for row in finding.numbers.get("byte_mismatches", [])]
    if not shares or min(shares) < 1 or lacking(finding.answer, f"{max(shares):.2f}"):
        yield f"{other:.3g} other bytes in a step are not told: {finding.answer}"


def a_wrong_interface_is_told(run: Run, records: Records, findings: Findings) -> Iterator[str]:
    finding = findings["network"]
    is_plain = (
        run.mode != "diloco" and not run.other_bytes_per_second and "byte_mismatches" in finding.numbers
    )
    if run.recorded_interface == run.interface or run.hosts == 1 or not is_plain:
        return
    if lacking(finding.answer, run.recorded_interface, run.interface):
        yield finding.answer
    for row in finding.numbers["byte_mismatches"]:
        instead = abs(row.get("instead_bytes_per_step", 0.0) / Truth(run).sent_bytes - 1)
        if row.get("instead") != run.interface or instead > 0.15:
            yield f"{row}, and {run.interface} carried {Truth(run).sent_bytes} a step"


def bytes_that_match_are_no_mismatch(run: Run, records: Records, findings: Findings) -> Iterator[str]:
    finding = findings["network"]
    # Rows of a second or a minute cannot tell where in a run the rounds of DiLoCo lie.
    is_known = run.counted_bytes is not None or run.mode != "diloco"
    is_known &= run.recorded_interface == run.interface
    if is_known and not run.other_bytes_per_second and "byte_mismatches" in finding.numbers:
        yield finding.answer


SPLIT = [f"{name}_seconds" for name in ("training", "evaluation", "checkpoint", "startup", "restart")]


def times_add_up(run: Run, records: Records, findings: Findings) -> Iterator[str]:
    attempt = records.attempts[0]
    evaluations, checkpoints = run.steps // run.evaluate_every, run.steps // run.checkpoint_every
    seconds = sum(build.phase_seconds(run).values())[0]
    finding = findings["duration"]
    wanted = {
        "training_seconds": float(seconds.sum()),
        "evaluation_seconds": evaluations * run.evaluation_seconds,
        "checkpoint_seconds": checkpoints * run.checkpoint_seconds,
        "startup_seconds": 10.0,
        "restart_seconds": 0.0,
        "steps": run.steps,
        "finished": run.reason in ("finished", "no improvement"),
    }
    if attempt.ended is not None:
        wanted["wall_seconds"] = attempt.ended - attempt.started
        wanted["money"] = 1.5 * run.hosts * wanted["wall_seconds"] / 3600
        wanted["tokens_per_wall_second"] = 24_000 * run.steps / wanted["wall_seconds"]
        wanted["eta_seconds"] = None
    else:
        beside = wanted["evaluation_seconds"] + wanted["checkpoint_seconds"]
        left = (run.wanted_steps or run.steps) - run.steps
        wanted["eta_seconds"] = left * (float(seconds[-200:].mean()) + beside / run.steps)
    wanted["tokens_per_step_second"] = 24_000 * run.steps / wanted["training_seconds"]
    whole = sum(wanted[f"{name}_seconds"] for name in ("training", "evaluation", "checkpoint"))
    if whole > wanted["training_seconds"]:
        outside = {
            f"{name}_share": wanted[f"{name}_seconds"] / whole for name in ("evaluation", "checkpoint")
        }
        yield from _differ(findings["device_utilisation"], outside)
    yield from _differ(finding, wanted, within=1e-5)
    split = sum(finding.numbers[name] for name in SPLIT)
    if split > finding.numbers["wall_seconds"] * (1 + 1e-6) + 0.01:
        yield f"{finding.numbers} comes to more than the whole"


def faults_are_told_as_they_were(losses: list[Lost], records: Records, findings: Findings) -> Iterator[str]:
    faults = [loss for loss in losses if not loss.joins]
    if not faults:
        return
    again = repeated_steps(records)
    still = sum(loss.still_seconds for loss in faults)
    twice = sum(again.get(place, (0, 0.0))[1] for place, loss in enumerate(losses, start=1) if not loss.joins)
    steps = sum(loss.repeated for loss in losses)
    finding = findings["duration"]
    wanted = {"faults": len(faults), "fault_seconds": still + twice, "steps_repeated": steps or None}
    yield from _differ(finding, wanted, within=1e-5)
    if again and sum(count for count, _ in again.values()) != steps:
        yield f"{again} steps were made again, and should be {steps}"
    numbers = finding.numbers
    if numbers["fault_seconds"] > numbers["wall_seconds"] * (1 + 1e-6):
        yield f"faults took longer than the run: {numbers}"
    split = sum(numbers[name] for name in SPLIT)
    if split > numbers["wall_seconds"] * (1 + 1e-6) + 0.01:
        yield f"{numbers} comes to more than the whole"
    costliest = max(row["seconds"] for row in numbers["costliest_faults"])
    if abs(costliest - max(outage.seconds for outage in outages(records))) > 1e-6 * costliest:
        yield f"the costliest fault is not among {numbers['costliest_faults']}"


def the_time_line_is_in_order(losses: list[Lost], records: Records) -> Iterator[str]:
    yield from _in_order(records)
    kinds = Counter(row.kind for row in timeline(records))
    joins = sum(bool(loss.joins) for loss in losses)
    if (kinds["start"], kinds["joined"], kinds["fault"]) != (len(losses) + 1, joins, len(losses) - joins):
        yield f"{kinds}, of {losses}"


def _in_order(records: Records) -> Iterator[str]:
    times = [row.time for row in timeline(records) if row.time is not None]
    if times != sorted(times):
        yield f"the time line is not in order: {times}"
    json.dumps([row.document for row in timeline(records)], allow_nan=False)


def losses_are_those_of_the_evaluations(run: Run, records: Records, findings: Findings) -> Iterator[str]:
    held_out = [row.eval_loss for row in records.evaluations if row.eval_loss is not None]
    bleu = [row.bleu for row in records.evaluations if row.bleu is not None]
    wanted: dict[str, float | None] = {
        "last_eval_loss": held_out[-1] if held_out else None,
        "best_eval_loss": min(held_out, default=None),
        "best_bleu": max(bleu, default=None),
    }
    yield from _differ(findings["convergence"], wanted)
    for name in ("gain_if_doubled_bleu", "gain_if_doubled_loss"):
        gain, low, high = (
            findings["convergence"].numbers.get(f"{name}{end}") for end in ("", "_low", "_high")
        )
        if gain is not None and not low <= gain <= high:
            yield f"convergence: {name} {gain} is not within {low} to {high}"
    if run.eval_loss and run.sample_loss and held_out:
        last = records.evaluations[-1]
        gap = last.eval_loss - last.train_sample_loss
        rows = records.evaluations
        steps = np.array([row.step for row in rows])
        gaps = np.array([row.eval_loss - row.train_sample_loss for row in rows])
        later = min(len(rows) // 2, max(0, len(rows) - 3))
        trend = 1000 * float(np.polyfit(steps[later:], gaps[later:], 1)[0]) if len(rows) > 1 else None
        yield from _differ(
            findings["overfitting"],
            {
                "gap": gap,
                "train_sample_loss": last.train_sample_loss,
                "eval_loss": last.eval_loss,
                "gap_trend_per_1000_steps": trend,
                "best_eval_loss": min(held_out),
                "best_eval_loss_step": rows[int(np.argmin(held_out))].step,
            },
            within=1e-5,
        )


def the_rate_is_told_as_applied(run: Run, records: Records, findings: Findings) -> Iterator[str]:
    rates = records.steps["learning_rate"]
    wanted = {
        "peak": float(rates.max()),
        "peak_step": int(rates.argmax()) + 1,
        "last": float(rates[-1]),
        "warmup_steps": run.warmup_steps,
        "planned_difference_share": 0.0,
    }
    yield from _differ(findings["learning_rate"], wanted)


def unknown_only_where_something_is_missing(run: Run, records: Records, findings: Findings) -> Iterator[str]:
    for id in findings.keys() - {"convergence", "overfitting"}:
        if findings[id].verdict == "unknown":
            yield f"{id}: {findings[id].answer}, and everything was recorded"
    if len(records.evaluations) >= 5 and run.sample_loss and findings["overfitting"].verdict == "unknown":
        yield f"overfitting: {findings['overfitting'].answer}, after {len(records.evaluations)} evaluations"


OF_THE_RUN: tuple[Callable[[Run, Records, Findings], Iterator[str]], ...] = (
    steps_are_told_as_they_were,
    the_largest_cause_is_named,
    the_slow_rank_is_named,
    step_time_and_exchange_go_together_as_they_did,
    no_gain_is_more_than_its_cause_takes,
    the_network_is_judged_by_what_it_costs,
    bytes_that_match_are_no_mismatch,
    a_wrong_interface_is_told,
    much_other_traffic_is_told,
    times_add_up,
    losses_are_those_of_the_evaluations,
    the_rate_is_told_as_applied,
    unknown_only_where_something_is_missing,
)


BARE = 200


def test_bounds_from_a_bare_log_hold_the_truth() -> None:
    wrong = [f"seed {seed}: {text}" for seed in range(BARE) for text in out_of_bounds(seed)]
    assert not wrong, "\n".join(wrong[:20])


def out_of_bounds(seed: int) -> Iterator[str]:
    """Of a run of which only step times, bytes and some of link and cost are known: what is not so."""
    run = generate.with_a_true_link(generate.draw(seed))
    records = generate.bare(run)
    findings = explained(records)
    known = Known(records)
    for finding in findings.values():
        yield from of_every_answer(finding, known)
    yield from _by_meters(run, findings)
    if not run.wire_bytes:
        return
    network, truth = findings["network"], Truth(run)
    gain = truth.seconds / truth.computing
    sides = [_by_link(run, truth.seconds)] if "wire_seconds" in network.numbers else []
    if bounds := records.facts.computing_seconds:
        sides.append((max(1.0, truth.seconds / bounds[1]), max(1.0, truth.seconds / bounds[0])))
    if sides:
        least, most = max(low for low, _ in sides), min(high for _, high in sides)
        if not 0.99 * least <= gain <= 1.01 * most:
            yield f"{gain:.2f} x is not within {least} to {most}: {network.answer}"
        ends = {"speedup_without_exchange_low": least, "speedup_without_exchange_high": most}
        yield from _differ(network, ends, within=1e-5)
        if run.gpu_watts is None and network.verdict != (wanted := _verdict_of(least, most)):
            yield f"{network.verdict}, and {least} to {most} is {wanted}: {network.answer}"
    told = {
        "implied_bits_per_second": 8 * truth.sent_bytes / truth.seconds,
        "expected_bytes_per_step_per_host": truth.sent_bytes,
        "step_seconds": truth.seconds,
    }
    yield from _differ(network, told)


def _by_meters(run: Run, findings: Findings) -> Iterator[str]:
    """Power far from the middle tells computing from waiting."""
    device, network = findings["device_utilisation"], findings["network"]
    if run.gpu_watts is None:
        return
    is_waiting = run.gpu_watts < 125
    yield from _differ(device, {"power_share": run.gpu_watts / 250, "utilisation": 1.0})
    if run.hosts > 1 and (device.verdict, network.verdict) != (
        ("waiting_network", "bottleneck") if is_waiting else ("computing", network.verdict)
    ):
        yield f"{run.gpu_watts} W: {device.verdict}, {network.verdict}: {device.answer} {network.answer}"
    if network.verdict == "bottleneck" and not is_waiting:
        yield f"{run.gpu_watts} W, and {network.answer}"


def _by_link(run: Run, seconds: float) -> tuple[float, float]:
    """At most two thirds of computing hide an exchange: S - T <= C <= 3 (S - T)."""
    left = max(seconds - 8 * run.wire_bytes / run.link_bits_per_second, 0.01 * seconds)
    return max(1.0, seconds / (3 * left)), seconds / left


def _verdict_of(least: float, most: float) -> str:
    if least >= BOTTLENECK:
        return "bottleneck"
    if most < NEGLIGIBLE:
        return "not_bottleneck"
    return "balanced" if most < BOTTLENECK or least >= NEGLIGIBLE else "unknown"


def test_every_form_of_the_report_renders() -> None:
    for seed in range(PAGES):
        _check_forms(seed)


def _check_forms(seed: int) -> None:
    records = generate.with_holes(build.records(**vars(generate.draw(seed))), seed)
    findings = list(explained(records).values())
    written, shown = markdown.render(records, findings), io.StringIO()
    html = page.render(records, findings)
    text.show(records, findings, Console(file=shown, width=10_000))
    for finding in findings:
        assert markdown.escape(finding.answer) in written
        assert markupsafe.escape(finding.answer) in html
        assert finding.answer in " ".join(shown.getvalue().split())
