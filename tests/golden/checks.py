"""The doctor's checks of invented hosts, one fault at a time."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.doctor import capacity, compare, pairs, trial
from dragoman.doctor.check import Check, verdict
from dragoman.doctor.facts import DataFacts, GpuFacts, Interface, OtherProgram
from dragoman.doctor.judge import judge
from dragoman.doctor.show import lines
from tests.doctor.build import NEEDS, host
from tests.doctor.test_capacity import GIGABYTE, with_gpus
from tests.doctor.test_pairs import attempt
from tests.doctor.test_trial import FOUND


def cases() -> Iterator[tuple[str, list[Check]]]:
    yield "sound hosts", judge([host(0), host(1)], NEEDS)
    versions = host(0).versions
    yield (
        "other versions",
        compare.versions(
            [
                host(0),
                host(1, versions=versions | {"torch": "9.9"}),
                host(2, versions=versions | {"python": "3.11.9"}),
            ]
        ),
    )
    other = DataFacts(path="data/mine", fingerprint="0" * 64)
    missing = DataFacts(path="data/mine", problem="data/mine: no such folder", hint="make one")
    yield "other data, and none", compare.data([host(0), host(1, data=other), host(2, data=missing), host(3)])
    yield (
        "names",
        [
            *compare.names(
                [host(0), host(1, own_name_addresses=["127.0.1.1"]), host(2, own_name_addresses=[])]
            ),
            *compare.names([host(0), host(1, name="h0")]),
            *compare.peer_names(
                [host(0), host(1)],
                [{"h1": ["127.0.0.1"]}, {"h0": ["10.9.9.9"]}],
            ),
        ],
    )
    ahead, behind = host(1, clock_offset_seconds=90.0), host(2, clock_offset_seconds=-1.5)
    yield "clocks", compare.clocks([host(0), ahead, behind, host(3)])
    two = [
        Interface(name=name, is_up=True, addresses=[f"10.{n}.0.1"]) for n, name in enumerate(("eth0", "wg0"))
    ]
    yield (
        "interfaces",
        compare.interfaces([host(0, interfaces=two, interface="wg0"), host(1, interfaces=two)]),
    )
    small, tiny = host(0, disk_free_bytes=2 * GIGABYTE), host(1, disk_free_bytes=GIGABYTE)
    yield "disks", capacity.disk([small, tiny, host(2)], NEEDS)
    little = host(1, memory_bytes=GIGABYTE, memory_available_bytes=GIGABYTE, ranks=2)
    yield "memory", capacity.memory([host(0, memory_available_bytes=2 * GIGABYTE), little], NEEDS)
    yield "ranks and cores", capacity.ranks([host(0, ranks=8), host(1, ranks=9)])
    burn = [OtherProgram(name="burn", cores=1.5), OtherProgram(name="cron", cores=0.1)]
    slow = host(1, peaks=[50e9], load=7.0, programs=burn)
    yield "a slow host that is used", [*capacity.speed([host(0), slow]), *capacity.cores([host(0), slow])]
    gpus = [
        with_gpus(),
        with_gpus(usable=1),
        with_gpus(usable=0, cuda=None),
        with_gpus(driver="535.2"),
        GpuFacts(),
    ]
    yield "GPUs", capacity.gpus([host(number, gpus=found, ranks=2) for number, found in enumerate(gpus)])
    yield "a place that is none", capacity.place([host(0, run_problem="/runs/a: is a file")])
    attempts = [attempt("h0", "h1"), attempt("h0", "h2"), attempt("h1", "h2", 1e8, 1e8)]
    closed = attempt("h2", "h0", 0, 0, "refused")
    yield "ports", [*pairs.ports([*attempts, closed]), *pairs.ports(attempts)]
    yield "links", pairs.links(attempts)
    hosts = [host(0, ranks=2), host(1, ranks=2)]
    yield (
        "exchanges",
        [
            *pairs.exchange(hosts, [attempt("h0", "h1")], NEEDS),
            *pairs.exchange(hosts, [attempt("h0", "h1", 1e8, 1e7)], NEEDS),
        ],
    )
    yield "ten steps", [trial._judged(FOUND | change) for change in ({}, {"bad_steps": 2}, {"steps": 4})]


def page() -> str:
    parts = []
    for title, checks in cases():
        parts += [f"== {title}", *lines(checks), f"-> {verdict(checks)}", ""]
    found = trial.described(FOUND, [host(0), host(1)])
    assert found
    return "\n".join([*parts, "== ten steps of a trial", trial.block(found, "ok")])
