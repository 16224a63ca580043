"""The same facts, and one thing different: the verdict follows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragoman.errors import UsageError
from dragoman.explain.bounds_from_link import NOT_RIGHT
from dragoman.explain.finding import Finding
from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import Given, load
from tests.explain.sentences import gains
from tests.facts import failed, lacking, only
from tests.foreign import logs, test_fairseq

FACTS = {"step_seconds": 1.9, "ranks": 4, "machines": 2, "params": 60_880_896, "gpu": "P100", "batch": 256}


def options(advice: str) -> list[str]:
    return re.findall(r"--[a-z-]+", advice)


def network(files: list[Path] | None = None, **given: object) -> Finding:
    made = diagnose(files or [], Given.model_validate(given))
    assert not failed(made.findings)
    return next(finding for finding in made.findings if finding.id == "network")


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"link": "1gbit", "nic_kb_per_s": 200_210, "gpu_power": "42/250"}, "bottleneck"),
        ({"link": "1gbit"}, "bottleneck"),
        ({"gpu_power": "42/250"}, "bottleneck"),
        ({"link": "100gbit", "gpu_power": "200/250"}, "not_bottleneck"),
        ({"link": "100gbit"}, "unknown"),  # then what did the rest of the step go to?
        ({"link": "100gbit", "step_seconds": 0.9}, "not_bottleneck"),
        ({"link": "100gbit", "gpu": None}, "not_bottleneck"),
        ({"link": "100gbit", "gpu_power": "42/250"}, "unknown"),  # they wait, but not for so few bytes
        ({"link": "1gbit", "gpu_power": "220/250"}, "bottleneck"),  # a step has moments of computing
        ({"link": "1gbit", "gpu_power": "174/250", "gpu": "V100"}, "bottleneck"),
        ({"gpu_power": "220/250", "step_seconds": 60.0}, "unknown"),  # but hardly one in fifty
        ({"machines": 1, "link": "1gbit"}, "single_machine"),
        ({"ranks": 1, "machines": 1}, "single_machine"),
        ({"step_seconds": 1.1, "gpu": None}, "unknown"),  # any GPU: computing may fill the step, or a tenth
        ({"step_seconds": 1.1, "gpu": "T4", "precision": "fp32"}, "unknown"),
        ({"step_seconds": 38.0, "link": "100mbit"}, "bottleneck"),
        ({"step_seconds": 38.0, "link": "1gbit"}, "bottleneck"),  # 77 Mbit/s: a port of a tenth of the order
        ({"step_seconds": 35.0, "link": "1gbps (not obtained)"}, "bottleneck"),
        ({"step_seconds": 35.0, "link": "1gbit", "gpu": None, "gpu_power": "42/250"}, "bottleneck"),
        ({"step_seconds": 60.0, "link": "1gbit"}, "unknown"),  # 49 Mbit/s: no port has that rate
        ({"step_seconds": 380.0, "link": "10gbit"}, "bottleneck"),  # 7.7 Mbit/s
        ({"params": None}, "unknown"),
        ({"machines": None}, "unknown"),
    ],
)
def test_the_verdict_follows_the_facts(changes: dict[str, object], verdict: str) -> None:
    found = network(**{name: value for name, value in (FACTS | changes).items() if value is not None})
    assert found.verdict == verdict
    if verdict == "unknown":
        assert found.confidence == "unknown"
        assert "gpu_power" in changes or options(found.advice[-1])


def test_a_log_alone_says_what_is_missing(tmp_path: Path) -> None:
    """No NCCL lines, no horovod: neither ranks nor machines nor a link."""
    head = "".join(line for line in logs.HEAD.splitlines(keepends=True) if "orovod" not in line)
    found = network([logs.written(tmp_path, logs.openseq2seq(nccl="", head=head))])
    assert found.verdict == "unknown"
    (advice,) = found.advice
    assert options(advice) == ["--ranks", "--machines", "--link", "--gpu-power"]


def test_the_log_gives_way_to_what_the_user_says(tmp_path: Path) -> None:
    path = logs.written(tmp_path, logs.openseq2seq())
    assert network([path]).verdict == "bottleneck"
    assert network([path], machines=1).verdict == "single_machine"
    assert network([path], link="100gbit", gpu_power="200/250").verdict == "not_bottleneck"
    (note,) = diagnose([path], Given(machines=1)).notes
    assert not lacking(note, "machines", 1, 2)


def test_every_answer_says_what_was_given() -> None:
    made = diagnose([], Given(**FACTS, link="1gbit"))  # type: ignore[arg-type]
    evidence = next(finding for finding in made.findings if finding.id == "network").evidence
    only(evidence, "given", "ranks", "machines", "link bits per second")
    only(evidence, "estimated", "gradient bytes")
    assert made.records.facts.origins["device"] == "given"


@pytest.mark.parametrize(
    ("reading", "quoted", "rates"),
    [
        ("200 Mbps", "200 Mbps", ["200 MB/s", "1.6 Gbit/s"]),
        ("200 MB/s", "200 MB/s", []),  # it agrees
        ("1.6 Gbit/s", "1.6 Gbit/s", []),
        ("1.6 GB/s", "1.6 GB/s", ["1.6 Gbit/s"]),
        ("the port has 1000 Mbps and I saw 190 Mbps", "190 Mbps", ["190 MB/s", "1.52 Gbit/s"]),
        ("3 Mbps", "3 Mbps", ["1.54 Gbit/s"]),  # in no unit: what the steps must have sent
    ],
)
def test_a_doubtful_unit_is_tried_against_the_bytes(reading: str, quoted: str, rates: list[str]) -> None:
    answer = network(**FACTS, nic=reading).answer
    meaning = answer[answer.index(f'"{quoted}"') + len(quoted) + 2 :]
    assert re.findall(r"[\d.]+ [kMG](?:B|bit)/s", meaning) == rates


def test_kilobytes_are_not_kilobits() -> None:
    answer = network(**FACTS, nic_kb_per_s=200_210).answer
    assert not lacking(answer[answer.index("200,210 KB/s") :], "1.64 Gbit/s", "200 Mbit/s")


def test_an_order_that_the_run_exceeds_twice_is_not_believed() -> None:
    found = network(**(FACTS | {"step_seconds": 1.1, "gpu": "K80"}), link="1gbit")
    assert found.verdict == "unknown"
    assert not lacking(found.answer, "1 Gbit/s")
    assert "wire_seconds" not in found.numbers, "nothing is reckoned by it"


def test_a_step_shorter_than_its_computing_is_a_slip_and_no_verdict() -> None:
    given = FACTS | {"step_seconds": 0.25, "gpu": "P100", "precision": "fp32", "batch": 256}
    made = {finding.id: finding for finding in diagnose([], Given(**given, link="1gbit")).findings}
    for id in ("network", "device_utilisation"):
        assert made[id].verdict == "unknown"
        assert NOT_RIGHT.lower() in made[id].answer.lower()


def test_a_busy_gpu_that_draws_little_is_not_computing() -> None:
    given, computing = (
        Given(ranks=2, machines=1, gpu_power=f"{watts}/250", gpu_util=100, step_seconds=1.9)
        for watts in (42, 220)
    )
    found = next(f for f in diagnose([], given).findings if f.id == "device_utilisation")
    assert found.verdict == "unknown", "on one machine: what they waited for was not recorded"
    assert not lacking(found.answer, "100%", "17%")
    cooler = next(f for f in diagnose([], computing).findings if f.id == "device_utilisation")
    assert (cooler.verdict, lacking(cooler.answer, "100%", "88%")) == ("computing", [])


SLOW = FACTS | {"step_seconds": 35.0, "gpu": "V100", "precision": "mixed", "link": "1gbit"}


def test_a_port_that_the_steps_filled_is_the_link_and_not_the_order() -> None:
    found = network(**SLOW)
    assert found.numbers["link_bits_per_second"] == 100e6
    assert found.numbers["implied_bits_per_second"] == pytest.approx(83.5e6, rel=1e-3)
    assert not lacking(found.advice[0], "1 Gbit/s", "ethtool")


@pytest.mark.parametrize("more", [{}, {"gpu_power": "174/250"}, {"machines": 1, "ranks": 2}])
def test_what_cannot_be_computing_is_not_called_computing(more: dict[str, object]) -> None:
    """49 Mbit/s fit no port: what was waited for is not known, but that it was waiting is."""
    made = diagnose([], Given.model_validate(SLOW | {"step_seconds": 60.0} | more))
    device = next(f for f in made.findings if f.id == "device_utilisation")
    assert device.verdict == "unknown"
    assert not lacking(device.answer, "99%")
    assert device.numbers["compute_share_high"] < 0.02


def test_one_reading_of_power_is_a_moment_and_a_series_is_not(tmp_path: Path) -> None:
    """174 W of 250 at one moment of a step of which computing fills a third at most."""
    given = FACTS | {"gpu": "V100", "link": "1gbit"}
    rows = [f"{second}, 174.00 W, 250.00 W, 100 %\n" for second in range(60)]
    head = "index, power.draw [W], power.limit [W], utilization.gpu [%]\n"
    paths = {}
    for name, count in (("moment", 1), ("series", 60)):
        paths[name] = tmp_path / name
        paths[name].write_text(head + "".join(f"0{row[row.index(',') :]}" for row in rows[:count]))
    moment, series = (network([paths[name]], **given) for name in ("moment", "series"))
    assert (moment.verdict, series.verdict) == ("bottleneck", "unknown")
    assert not lacking(moment.answer, "70%") and not lacking(series.answer, "70%")
    device = diagnose([paths["moment"]], Given.model_validate(given)).findings
    assert next(f for f in device if f.id == "device_utilisation").verdict == "waiting_network"


@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("openseq2seq", ["Compression.fp16", "HOROVOD_HIERARCHICAL_ALLREDUCE=1", "iter_size"]),
        ("fairseq", ["--ddp-comm-hook fp16", "--localsgd-frequency", "--update-freq"]),
        ("huggingface", ["DDPCommunicationHookType.BF16", "LocalSGD", "gradient_accumulation_steps"]),
        ("", []),
    ],
)
def test_advice_names_the_options_of_the_program_that_ran(
    tmp_path: Path, program: str, options: list[str]
) -> None:
    in_fp32 = test_fairseq.log().replace("'fp16': True", "'fp16': False")
    text = {"openseq2seq": logs.openseq2seq(), "fairseq": in_fp32}
    files = [logs.written(tmp_path, text[program])] if program in text else []
    if program == "huggingface":
        files = [Path(__file__).parent / "trainer_state.json"]
    small = {"params": 3_000_000, "batch": 8} if program == "huggingface" else {}  # steps of 0.12 s
    advice = " ".join(network(files, **(FACTS | small | {"gpu_power": "42/250", "link": "1gbit"})).advice)
    assert "sync." not in advice
    assert all(option in advice for option in options)
    assert gains(advice)


HANDFUL = {"model": "transformer-base", "step_seconds": 1.7, "machines": 2}


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({"gpu": "V100", "nic_kb_per_s": 200_210}, "bottleneck"),
        ({"gpu": "V100", "steps": 50_000, "hours": 23.5, "step_seconds": None}, "bottleneck"),
        ({"gpu": "P100", "gpu_power": "42/250"}, "bottleneck"),
        ({"gpu": "V100", "gpu_power": "174/250", "link": "1gbit"}, "bottleneck"),
        ({"gpu": "V100", "step_seconds": 35.0, "link": "1gbit", "nic_kb_per_s": 10_700}, "bottleneck"),
        ({"gpu": "V100", "step_seconds": 35.0, "link": "1gbit"}, "unknown"),  # bytes of how many ranks?
        ({"gpu": "V100", "step_seconds": 0.5, "link": "100gbit"}, "not_bottleneck"),
        ({"gpu": "V100", "machines": 1}, "single_machine"),
        ({"step_seconds": 1.1}, "unknown"),  # a GPU of any kind, on a link that nobody named
        ({"model": None, "gpu": "V100"}, "unknown"),
    ],
)
def test_a_handful_of_facts_is_enough(more: dict[str, object], verdict: str) -> None:
    """As people write them down: neither batch nor ranks nor parameters."""
    found = network(**{name: value for name, value in (HANDFUL | more).items() if value is not None})
    assert found.verdict == verdict
    assert verdict == "single_machine" or any(line.startswith("assumed: ") for line in found.evidence)
    assert verdict != "unknown" or "--ranks" in found.advice[-1] or "--params" in found.advice[-1]


@pytest.mark.parametrize(
    ("reading", "ranks", "origin"),
    [(200_210, 4, "estimated"), (145_000, 2, "estimated"), (250_000, 8, "estimated"), (None, 2, "assumed")],
)
def test_ranks_that_nobody_named_are_those_that_the_reading_fits(
    reading: int | None, ranks: int, origin: str
) -> None:
    """Transformer-base at 1.7 s per step. Without a reading one per machine, which sends least."""
    given = HANDFUL | {"gpu": "V100"} | ({"nic_kb_per_s": reading} if reading else {})
    made = diagnose([], Given.model_validate(given))
    assert (made.records.facts.ranks, made.records.facts.origins["ranks"]) == (ranks, origin)


def test_a_log_that_is_silent_on_its_batch_is_not_given_a_usual_one(tmp_path: Path) -> None:
    text = logs.openseq2seq().replace("'batch_size_per_gpu'", "'other'")
    given = Given(model="transformer-base", gpu="V100", ranks=4, machines=2)
    assert diagnose([logs.written(tmp_path, text)], given).records.facts.computing_seconds is None


def test_a_model_by_name_has_its_parameters_gradients_and_measures() -> None:
    facts = diagnose([], Given.model_validate(HANDFUL)).records.facts
    assert facts.parameters == 60_880_896  # as the index of a public checkpoint has them
    assert facts.gradient_bytes == 4 * 60_880_896
    assert facts.settings["model.width"] == 512
    with pytest.raises(UsageError, match="--model transformer-huge"):
        load(None, {"model": "transformer-huge"})


def test_steps_per_second_given_as_seconds_are_found_out() -> None:
    given = Given(step_seconds=0.6, steps=64_017, hours=30.5, model="transformer-base")
    found = {finding.id: finding for finding in diagnose([], given).findings}["step_time"]
    assert found.numbers["mean_seconds"] == pytest.approx(1.715, abs=0.001)
    assert not lacking(found.answer, "0.6", "1.72 s"), "the rate, and the seconds that it means"
