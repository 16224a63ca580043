"""The rows of three real ranks, in the one file that rank 0 writes."""

from __future__ import annotations

import math

import numpy as np
import psutil
import pytest

from dragoman.measure.database import read
from dragoman.measure.meters import interface_bytes
from dragoman.measure.records import PHASES, Records, core_shares
from tests import ranks
from tests.measure.ranks import HOST_A_EARLIER_SECONDS, PROBED_EARLIER_SECONDS, SAVE_SECONDS

RANKS = 3


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    folder = tmp_path_factory.mktemp("recorded")
    done = ranks.run("tests.measure.ranks", [folder], RANKS)
    assert done.returncode == 0, done.stderr
    return read(folder / "records.db")


def test_every_ranks_phases_reach_rank_0(records: Records) -> None:
    windows = records.windows
    for rank in range(RANKS):
        mine = windows["rank"] == rank
        assert mine.any()
        steps = windows["last_step"][mine] - windows["first_step"][mine] + 1
        for number, phase in enumerate(PHASES):
            assert windows[phase][mine] == pytest.approx(steps * ((number + 1) * 10 + rank) / 1e3)


def test_every_ranks_counters_reach_rank_0(records: Records) -> None:
    windows = records.windows
    steps = windows["last_step"] - windows["first_step"] + 1
    assert windows["sent_bytes"] == pytest.approx(steps * 1e6)
    assert windows["cpu"] == pytest.approx(steps * (0.1 + windows["rank"]))
    has_no_counter = windows["rank"] == 1
    assert np.isnan(windows["received_bytes"][has_no_counter]).all()
    assert windows["received_bytes"][~has_no_counter] == pytest.approx(steps[~has_no_counter] * 2e6)


def test_a_step_holds_mean_least_most_and_slowest_over_ranks(records: Records) -> None:
    for number, phase in enumerate(PHASES):
        least = (number + 1) / 100
        assert records.phase(phase, "least") == pytest.approx(np.full(12, least))
        assert records.phase(phase, "mean") == pytest.approx(np.full(12, least + 0.001))
        assert records.phase(phase, "most") == pytest.approx(np.full(12, least + 0.002))
        assert (records.phase(phase, "slowest") == RANKS - 1).all()
    assert records.steps["seconds"] == pytest.approx(np.full(12, 0.15)), "rank 0's phases together"


def test_steps_made_again_are_there_once_with_their_attempt(records: Records) -> None:
    assert records.steps["step"].tolist() == list(range(1, 13))
    assert records.steps["attempt"].tolist() == [0] * 6 + [1] * 6
    assert records.steps["loss"].tolist() == [1, 2, 3, 4, 5, 6, *(100 + step for step in range(7, 13))]
    assert [(attempt.first_step, attempt.reason) for attempt in records.attempts] == [
        (1, None),
        (7, "finished"),
    ]


def test_evaluations_made_again_supersede_and_keep_what_is_not_a_number(records: Records) -> None:
    (first, before), (second, after) = [(row.step, row.eval_loss) for row in records.evaluations]
    assert (first, before, second) == (4, 3.0, 8)
    assert after is not None and math.isnan(after)


def test_a_probe_has_the_time_of_its_beginning(records: Records) -> None:
    (probe,) = records.probes_of("peak")
    assert (probe.seconds, probe.attempt, probe.step) == (0.25, 1, 6)
    assert probe.time == pytest.approx(records.attempts[1].started - PROBED_EARLIER_SECONDS, abs=10)


def test_a_fault_has_the_time_of_its_reading_and_the_attempt_that_it_ended(records: Records) -> None:
    (fault,) = records.faults
    assert (fault.kind, fault.attempt, fault.step, fault.host, fault.rank) == ("killed", 0, 10, "b", 2)
    assert fault.time == pytest.approx(records.attempts[1].started - PROBED_EARLIER_SECONDS, abs=10)
    (joined,) = [event for event in records.events if event.kind == "joined"]
    assert (joined.detail, joined.seconds, joined.attempt) == ("b", 0.0, 1)
    assert records.repeated["step"].tolist() == [7, 8, 9, 10]


def test_waiting_for_rank_0s_checkpoint_belongs_to_the_checkpoint(records: Records) -> None:
    (checkpoint,) = [event for event in records.events if event.kind == "checkpoint"]
    assert SAVE_SECONDS <= checkpoint.seconds < SAVE_SECONDS + 0.3
    (next_exchange,) = records.probes_of("all_reduce")
    assert next_exchange.seconds < SAVE_SECONDS / 2


def test_hosts_with_unequal_numbers_of_rows_keep_their_own(records: Records) -> None:
    counts = [int((records.hosts["host"] == host).sum()) for host in (0, 1)]
    assert counts[1] >= 2, "a row or more of each attempt"
    assert counts[0] >= counts[1] + int(HOST_A_EARLIER_SECONDS)
    # what fills up the shorter table on its way is not taken for measured
    assert (records.hosts["time"] > 1e9).all() and (records.hosts["span"] > 0.5).all()
    assert (records.nics["time"] > 1e9).all()
    assert set(records.nics["interface"]) == set(interface_bytes())
    for host in (0, 1):
        rows = int((records.nics["host"] == host).sum())
        assert rows == counts[host] * len(interface_bytes())


def test_every_core_is_recorded_beside_their_mean_and_the_busiest(records: Records) -> None:
    rows = records.hosts
    by_core = np.array([core_shares(packed) for packed in rows["core_shares"]])
    assert by_core.shape == (len(rows["time"]), psutil.cpu_count())
    assert by_core.mean(1) == pytest.approx(rows["cpu_share"], abs=0.011)
    assert by_core.max(1) == pytest.approx(rows["cpu_share_most"], abs=0.011)


def test_the_cost_of_recording_is_recorded(records: Records) -> None:
    assert records.facts.recording_seconds is not None
    assert 0 < records.facts.recording_seconds < 5
