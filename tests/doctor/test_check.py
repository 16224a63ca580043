"""How checks are told."""

import io
import json

from rich.console import Console

from dragoman.doctor.check import Check, json_text, verdict, worst
from dragoman.doctor.show import lines, show
from tests.facts import lacking

CHECKS = [
    Check("torch", "all hosts", "ok", "2.13.0"),
    Check("clock", "h1", "warning", "90 s ahead of h0", "set it"),
    Check("ports", "h0 to h1", "error", "10.77.0.2 port 41234: refused", "open them"),
]


def test_the_verdict_is_that_of_the_worst_and_names_the_errors() -> None:
    assert (worst([]), verdict([])) == ("ok", "ok")
    assert (worst(CHECKS[:1]), verdict(CHECKS[:1])) == ("ok", "ok")
    assert worst(CHECKS[:2]) == "warning"
    assert verdict(CHECKS[:2]).startswith("ok") and not lacking(verdict(CHECKS[:2]), 1)
    assert worst(CHECKS) == "error"
    assert str(CHECKS[2]) in verdict(CHECKS) and not verdict(CHECKS).startswith("ok")
    assert not lacking(str(CHECKS[2]), "ports", "h0 to h1", CHECKS[2].value)


def test_plain_lines_hold_status_value_and_what_to_do() -> None:
    torch, clock, for_clock, ports, for_ports = lines(CHECKS)
    for line, check in zip((torch, clock, ports), CHECKS, strict=True):
        assert line.split()[:2] == [check.status, check.name]
        assert line.index(check.host) == torch.index(CHECKS[0].host)
        assert line.index(check.value) == torch.index(CHECKS[0].value)
    assert for_clock.endswith(CHECKS[1].advice) and for_ports.endswith(CHECKS[2].advice)


def test_json_and_terminal_say_the_same() -> None:
    read = json.loads(json_text(CHECKS))
    assert read["schema"] == 1
    assert read["verdict"] == "error"
    assert [Check(**check) for check in read["checks"]] == CHECKS
    written = io.StringIO()
    show(CHECKS, Console(file=written, force_terminal=True, width=120, highlight=False))
    text = written.getvalue()
    for check in CHECKS:
        assert all(word in text for word in (check.status, check.host, check.value, check.advice))
