"""Twenty random faults, as in the bench of faults: runs go on with the right history. Seeds repeat them."""

from __future__ import annotations

import pytest

from benchmarks.fault_site import Layout
from benchmarks.faults import Bench, Plan, table
from testbed import ssh

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("hosts_are_possible")]  # it measures seconds
IN_PROCESS_SECONDS = 5.0
STEPS = 500
MOST_PAUSE_SECONDS = 1.0
# The bench draws kinds; here those that take seconds, once each and some again, and three that take longer.
PLANS = [
    Plan(
        "three-hosts",
        Layout((1, 1, 1), "allreduce"),
        (
            "rank_killed",
            "host_crashed",
            "rank_exception",
            "agent_killed",
            "traffic",
            "rank_aborted",
            "notice",
        ),
        STEPS,
        MOST_PAUSE_SECONDS,
    ),
    Plan(
        "rounds",
        Layout((1, 1), "diloco", is_launched_inside=True),
        ("rank_killed", "killed_at_save", "rank_exception", "agent_killed", "rank_aborted", "all_killed"),
        STEPS,
        MOST_PAUSE_SECONDS,
    ),
    Plan(
        "one-disk",
        Layout((1, 1), "allreduce", has_own_disks=False),
        (
            "rank_aborted",
            "slow_host",
            "first_host_crashed",
            "rank_stopped",
            "killed_at_save",
            "rank_killed",
            "launcher_killed",
        ),
        STEPS,
        MOST_PAUSE_SECONDS,
    ),
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    if reason := ssh.why_not():
        pytest.skip(reason)
    return Bench(tmp_path_factory.mktemp("faults"))


def test_the_plans_hold_twenty_faults() -> None:
    assert sum(len(plan.kinds) for plan in PLANS) == 20


@pytest.mark.parametrize("plan", PLANS, ids=[plan.name for plan in PLANS])
def test_a_run_survives_its_faults_with_the_right_history(bench: Bench, plan: Plan) -> None:
    row = bench.row(plan)
    told = "\n".join(table([row]))
    assert row["ended"] == "well", told
    assert not row["wrong"], told
    assert [fault["kind"] for fault in row["faults"]] == list(plan.kinds), told
    in_process = sorted(fault["seconds"] for fault in row["faults"] if fault.get("in_process"))
    assert in_process[len(in_process) // 2] <= IN_PROCESS_SECONDS, told
