"""The doctor's checks of invented hosts, one fault at a time."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.doctor import capacity, compare, pairs, trial
from dragoman.doctor.check import Check, verdict
from dragoman.doctor.facts import DataFacts, GpuFacts, Interface, OtherProgram
from dragoman.doctor.judge import judge
from dragoman.doctor.show import lines
from tests.doctor.build import NEEDS, host
from tests.doctor.test_capacity import A100, CUDA_13, GIGABYTE, T4, usable, with_gpus
from tests.doctor.test_pairs import attempt
from tests.doctor.test_trial import FOUND

Cases = Iterator[tuple[str, list[Check]]]


def page() -> str:
    parts = []
    for title, checks in (*alike(), *capable(), *connected(), *tried()):
        parts += [f"== {title}", *lines(checks), f"-> {verdict(checks)}", ""]
    found = trial.described(FOUND, [host(0), host(1)])
    assert found
    return "\n".join([*parts, "== ten steps", trial.block(found, "ok")])


def alike() -> Cases:
    yield "sound hosts", judge([host(0), host(1)], NEEDS)
    torch, python = (host(0).versions | change for change in ({"torch": "9.9"}, {"python": "3.11.9"}))
    yield "versions", compare.versions([host(0), host(1, versions=torch), host(2, versions=python)])
    other = DataFacts(path="data/mine", fingerprint="0" * 64)
    missing = DataFacts(path="data/mine", problem="data/mine: no such folder", hint="make one")
    yield "data", compare.data([host(0), host(1, data=other), host(2, data=missing), host(3)])
    loopback, nameless = host(1, own_name_addresses=["127.0.1.1"]), host(2, own_name_addresses=[])
    yield "own names", compare.names([host(0), loopback, nameless])
    yield "two hosts of one name", compare.names([host(0), host(1, name="h0")])
    views = [{"h1": ["127.0.0.1"]}, {"h0": ["10.9.9.9"]}]
    yield "names of others", compare.peer_names([host(0), host(1)], views)
    ahead, behind = host(1, clock_offset_seconds=90.0), host(2, clock_offset_seconds=-1.5)
    yield "clocks", compare.clocks([host(0), ahead, behind, host(3)])
    wired, tunnel = (
        Interface(name=name, is_up=True, addresses=[address])
        for name, address in (("eth0", "10.77.0.1"), ("wg0", "10.8.0.1"))
    )
    both = [wired, tunnel]
    chosen, not_chosen = host(0, interfaces=both, interface="wg0"), host(1, interfaces=both)
    yield "interfaces", compare.interfaces([chosen, not_chosen])


def capable() -> Cases:
    small, tiny = host(0, disk_free_bytes=2 * GIGABYTE), host(1, disk_free_bytes=GIGABYTE)
    yield "disks", capacity.disk([small, tiny, host(2)], NEEDS)
    used = host(0, memory_available_bytes=2 * GIGABYTE)
    little = host(1, memory_bytes=GIGABYTE, memory_available_bytes=GIGABYTE, ranks=2)
    yield "memory", capacity.memory([used, little], NEEDS)
    yield "ranks and cores", capacity.ranks([host(0, ranks=8), host(1, ranks=9)])
    others = [OtherProgram(name="burn", cores=1.5), OtherProgram(name="cron", cores=0.1)]
    slow = host(1, peaks=[50e9], load=7.0, programs=others)
    yield "a slow host", capacity.speed([host(0), slow])
    yield "a host that others use", capacity.cores([host(0), slow])
    without, older = with_gpus(usable=[], cuda=None), with_gpus(driver="535.2")
    no_kernels = with_gpus(cuda="13.0", architectures=CUDA_13)
    gpus = (with_gpus(), with_gpus(usable=[usable()]), without, older, GpuFacts(), no_kernels)
    yield "GPUs", capacity.gpus([host(number, gpus=found, ranks=2) for number, found in enumerate(gpus)])
    mixed = [host(0, gpus=with_gpus(usable=[A100])), host(1, gpus=with_gpus(usable=[T4]))]
    for asked in ("auto", "bf16", "fp32"):
        yield f"precision {asked} on two kinds of GPUs", capacity.precision(mixed, asked)
    yield "a place that is none", capacity.place([host(0, run_problem="/runs/a: is a file")])


def connected() -> Cases:
    attempts = [attempt("h0", "h1"), attempt("h0", "h2"), attempt("h1", "h2", 1e8, 1e8)]
    yield "open ports", pairs.ports(attempts)
    yield "a closed port", pairs.ports([*attempts, attempt("h2", "h0", 0, 0, "refused")])
    yield "links", pairs.links(attempts)
    hosts = [host(0, ranks=2), host(1, ranks=2)]
    yield "an exchange that is hidden", pairs.exchange(hosts, [attempt("h0", "h1")], NEEDS)
    yield "an exchange that is not", pairs.exchange(hosts, [attempt("h0", "h1", 1e8, 1e7)], NEEDS)


def tried() -> Cases:
    changes: tuple[dict[str, int], ...] = ({}, {"bad_steps": 2}, {"steps": 4})
    yield "ten steps of three runs", [trial._judged(FOUND | change) for change in changes]
