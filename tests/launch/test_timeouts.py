"""docs/timeouts.md has every timeout of a run, with the value that the code has, in an order that holds."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import dragoman
from dragoman import stacks
from dragoman.config import Training
from dragoman.launch import remote

PACKAGE = Path(dragoman.__file__).parent
PAGE = PACKAGE.parent / "docs" / "timeouts.md"
TIMEOUT = re.compile(r"^\| ([\d.]+) \| `([^`]+)` \|", re.MULTILINE)
ORDER = re.compile(r"^\| (?:(\d+) × )?`([^`]+)` \| `([^`]+)` \|", re.MULTILINE)
TIMEOUTS = {name: float(seconds) for seconds, name in TIMEOUT.findall(PAGE.read_text())}
ORDERS = [(int(times or 1), *names) for times, *names in ORDER.findall(PAGE.read_text())]


def in_code(name: str) -> float:
    match name:
        case "sync.timeout_seconds":
            return Training().sync.timeout_seconds
        case "stacks.of_process(seconds)":
            return float(inspect.signature(stacks.of_process).parameters["seconds"].default)
        case "launch.remote.ConnectTimeout":
            return next(float(word.partition("=")[2]) for word in remote._OPTIONS if "ConnectTimeout" in word)
    module, _, constant = name.rpartition(".")
    return float(getattr(import_module(f"dragoman.{module}"), constant))


def constants() -> set[str]:
    """The timeouts of the launcher, and those with which ranks and hosts watch each other."""
    found = set()
    files = [*(PACKAGE / "launch").glob("*.py"), PACKAGE / "sync" / "silence.py"]
    for file in files:
        for part in ast.parse(file.read_text()).body:
            names = part.targets if isinstance(part, ast.Assign) else []
            found |= {
                f"{file.parent.name}.{file.stem}.{name.id}"
                for name in names
                if isinstance(name, ast.Name) and name.id.endswith("_SECONDS") and "POLL" not in name.id
            }
    return found


@pytest.mark.parametrize("name", TIMEOUTS)
def test_a_timeout_is_what_the_page_says(name: str) -> None:
    assert in_code(name) == TIMEOUTS[name]


def test_the_page_has_every_timeout_and_the_shortest_come_first() -> None:
    assert constants() <= TIMEOUTS.keys()
    assert list(TIMEOUTS.values()) == sorted(TIMEOUTS.values())


@pytest.mark.parametrize(("times", "shorter", "longer"), ORDERS)
def test_a_timeout_that_must_be_shorter_is(times: int, shorter: str, longer: str) -> None:
    assert {shorter, longer} <= TIMEOUTS.keys()
    assert times * in_code(shorter) < in_code(longer)


def test_a_host_that_is_given_up_ends_its_ranks_only_after_the_launcher_stopped_counting_on_them() -> None:
    """A beat may be under way in each direction when the cable is cut."""
    silent, beat = in_code("sync.silence.SILENT_SECONDS"), in_code("launch.agent.BEAT_SECONDS")
    assert in_code("launch.agent._LAUNCHER_LOST_SECONDS") > silent + 2 * beat
