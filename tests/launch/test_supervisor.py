"""What the supervisor of a run decides, with played hosts, ranks and time."""

from __future__ import annotations

import queue
import signal
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.launch import supervisor
from dragoman.launch.death import Cause
from dragoman.launch.events import Events, HostIsUp, RankEnded, RankSaid
from dragoman.launch.rank_processes import RankProcess
from dragoman.launch.restarts import MOST_IN_VAIN, Restarts
from dragoman.launch.supervisor import Supervisor
from dragoman.launch.watch import LEAST_STEP_SECONDS
from dragoman.sync.silence import SILENT_SECONDS
from tests.facts import lacking
from tests.launch.stage import PORT, FakeHost, FakeMeeting, Stage, did, joins, told

A, B = (0, 0), (1, 0)  # the only ranks of two hosts
Staged = Callable[..., Stage]


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> Staged:
    return lambda *workers, **options: Stage(monkeypatch, workers or (1, 1), **options)


def ranks(orders: dict[tuple[int, int], dict[str, Any]]) -> dict[tuple[int, int], int]:
    return {place: order["rank"] for place, order in orders.items()}


# --- the first world --------------------------------------------------------------------------------------


def test_the_first_world_waits_for_all_hosts_and_all_their_ranks(staged: Staged) -> None:
    stage = staged(1, 2)
    assert did(stage.is_up(0), "start") == [A]
    assert not joins(stage.are_ready(A))
    stage.is_up(1)
    assert not joins(stage.are_ready(B))
    assert ranks(joins(stage.are_ready((1, 1)))) == {A: 0, B: 1, (1, 1): 2}


def test_each_rank_is_told_its_place_and_all_but_the_first_the_port_that_it_listens_at(
    staged: Staged,
) -> None:
    stage = staged(1, 2)
    orders = stage.begins()
    assert [order["port"] for order in orders.values()] == [0, PORT, PORT]
    assert [(order["local_rank"], order["local_size"]) for order in orders.values()] == [
        (0, 1),
        (0, 2),
        (1, 2),
    ]
    assert {(order["size"], order["generation"], order["address"]) for order in orders.values()} == {
        (3, 1, "10.0.0.0")
    }
    assert len({order["key"] for order in orders.values()}) == 1


def test_a_host_that_cannot_be_had_at_the_start_ends_the_run(
    staged: Staged, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = staged()
    stage.is_up(0)
    assert did(stage.is_lost(1, hint="start sshd"), "kill") == [A]
    stage.ends(A)
    assert stage.outcome == 1
    assert not lacking(capsys.readouterr().err, "error: h1", "no route", "start sshd")


def test_with_fewer_hosts_than_named_as_enough_the_first_world_forms_without_the_absent_one(
    staged: Staged,
) -> None:
    stage = staged(least_hosts=1)
    stage.is_up(0)
    assert not joins(stage.are_ready(A)), "the other host may still answer"
    assert ranks(joins(stage.is_lost(1))) == {A: 0}


def test_a_host_whose_ranks_cannot_connect_to_the_others_is_left_out_until_they_can(staged: Staged) -> None:
    stage = staged(least_hosts=1)
    stage.meeting.cut_off = {1}
    orders = stage.begins()
    assert ranks(orders) == {A: 0}
    assert [fault["kind"] for fault in orders[A]["faults"]] == ["port_blocked"]
    stage.is_at(A, 3)
    stage.now += 10
    stage.is_at(A, 4)
    stage.meeting.cut_off = set()
    stage.now += 10
    at = {"step": 5, "activity": "step", "phase": "exchange"}
    assert told(stage.says(A, at=at), "regroup") == {A: 1}
    orders = stage.regroups(A, step=5)
    assert ranks(orders) == {A: 0, B: 1}


# --- a rank is lost ---------------------------------------------------------------------------------------


def test_the_others_continue_without_a_rank_that_ended_and_it_joins_when_it_is_ready(staged: Staged) -> None:
    stage = staged(2, 2)
    first = stage.begins(step=7)
    lost, others = (1, 0), [(0, 0), (0, 1), (1, 1)]
    done = stage.ends(lost)
    assert told(done, "cut") == dict.fromkeys(others, 1)
    assert did(done, "start") == [lost]
    second = stage.regroups(*others, step=7)
    assert ranks(second) == {(0, 0): 0, (0, 1): 1, (1, 1): 2}
    assert {order["generation"] for order in second.values()} == {2}
    (fault,) = second[(0, 0)]["faults"]
    assert (fault["kind"], fault["host"], fault["rank"], fault["phase"]) == ("killed", "h1", 2, "exchange")
    assert second[(0, 0)]["key"] != first[(0, 0)]["key"], "strangers to this world must not meet it"
    assert told(stage.are_ready(lost), "regroup") == dict.fromkeys(others, 2)
    third = stage.regroups(*others, step=8)
    assert set(third) == set(stage.places)
    assert third[(0, 0)]["faults"] == []


def test_a_world_forms_only_when_all_ranks_have_left_the_one_before(staged: Staged) -> None:
    stage = staged(1, 1, 1)
    stage.begins(step=7)
    stage.ends((2, 0))
    assert not joins(stage.are_ready(A, step=7))
    assert set(joins(stage.are_ready(B, step=8))) == {A, B}


def test_the_ranks_of_a_host_join_together(staged: Staged) -> None:
    stage = staged(1, 2)
    stage.begins(step=7)
    stage.ends((1, 0))
    stage.ends((1, 1))
    stage.regroups(A, step=7)
    assert not told(stage.are_ready((1, 0)), "regroup")
    assert told(stage.are_ready((1, 1)), "regroup") == {A: 2}
    assert set(stage.regroups(A, step=8)) == set(stage.places)


def test_if_all_are_lost_the_next_world_waits_for_all_new_processes(staged: Staged) -> None:
    stage = staged(2)
    stage.begins(step=7)
    first, second = stage.places
    assert did(stage.ends(first), "start") == [first]
    assert did(stage.ends(second), "start") == [second]
    assert not joins(stage.are_ready(first))
    assert set(joins(stage.are_ready(second))) == {first, second}


def test_what_a_replaced_process_says_or_how_it_ends_is_ignored(staged: Staged) -> None:
    stage = staged()
    stage.begins(step=7)
    old = stage.process(B)
    stage.ends(B)
    assert stage.process(B) != old
    stage.regroups(A, step=7)
    stage.are_ready(B)
    stage.regroups(A, step=8)
    for stale in (
        RankEnded(1, old, -9, Cause("killed", "SIGKILL")),
        RankSaid(1, old, {"ready": 3}),
        RankSaid(1, old, {"failed": "oh", "is_final": True, "is_quiet": False}),
        RankSaid(1, old, {"done": "finished"}),
    ):
        assert stage.happens(stale) == []
    assert stage.outcome is None


def test_a_first_rank_that_is_lost_before_it_listens_costs_the_others_nothing(staged: Staged) -> None:
    stage = staged(1, 1, 1)
    stage.begins(step=7)
    stage.ends((2, 0))
    orders = joins(stage.happens(*(RankSaid(at[0], stage.process(at), {"ready": 7}) for at in (A, B))))
    assert set(orders) == {A}, "B waits for the port"
    done = stage.ends(A)
    assert ranks(joins(done)) == {B: 0}
    assert not did(stage.passes(60), "kill")


def test_ranks_that_do_not_leave_a_dead_world_are_killed(staged: Staged) -> None:
    stage = staged(1, 1, 1)
    stage.begins(step=7)
    stage.ends(B)
    stage.are_ready(A, step=7)
    assert not did(stage.passes(supervisor._RETURN_SECONDS - 1), "kill")
    assert did(stage.passes(2), "kill") == [(2, 0)]
    assert ranks(joins(stage.ends((2, 0)))) == {A: 0}


def test_ranks_that_lose_each_other_for_no_known_reason_meet_again_after_a_moment(staged: Staged) -> None:
    stage = staged()
    stage.begins(step=7)
    assert told(stage.are_ready(A, step=7), "cut")[B] == 1
    assert not joins(stage.are_ready(B, step=7)), "the news of why may be on its way"
    stage.now += supervisor._REASON_SECONDS + 0.1
    orders = joins(stage.happens())
    assert [fault["kind"] for fault in orders[A]["faults"]] == ["link_cut"]


# --- limits -----------------------------------------------------------------------------------------------


def test_without_restarts_the_first_fault_ends_the_run_and_the_others_save(staged: Staged) -> None:
    stage = staged(most_restarts=0)
    stage.begins(step=7)
    done = stage.ends(B)
    assert not did(done, "start")
    assert told(done, "stop") == {A: signal.SIGTERM}
    done = stage.are_ready(A, step=7)
    assert ranks(joins(done)) == {A: 0}
    assert told(done, "stop") == {A: signal.SIGTERM}
    stage.says(A, done="stopped")
    stage.ends(A, code=0)
    assert stage.outcome == 1


def test_ranks_that_end_again_and_again_without_a_step_end_the_run(staged: Staged) -> None:
    stage = staged(2)
    stage.is_up(0)
    first, second = stage.places
    stage.are_ready(first)
    for _ in range(MOST_IN_VAIN):
        assert did(stage.ends(second), "start") == [second]
        stage.now += 10.0
    assert not did(stage.ends(second), "start")
    stage.ends(first, code=0)
    assert stage.outcome == 1


def test_ranks_that_all_end_without_a_reason_are_started_again(staged: Staged) -> None:
    stage = staged()
    stage.begins(step=7)
    for place in (A, B):
        stage.says(place, failed="", is_final=False, is_quiet=True)
    done = [*stage.ends(A, code=1), *stage.ends(B, code=1)]
    assert sorted(did(done, "start")) == [A, B]


def test_too_many_faults_in_an_hour_end_the_run(staged: Staged) -> None:
    stage = staged(most_restarts=2)
    stage.begins(step=7)
    for step in (8, 9):
        assert did(stage.ends(B), "start") == [B]
        stage.regroups(A, step=step)
        stage.are_ready(B)
        stage.regroups(A, step=step)
        stage.is_at(A, step)
        stage.now += 5.0
    done = stage.ends(B)
    assert not did(done, "start")
    assert told(done, "stop") == {A: signal.SIGTERM}


def test_a_host_whose_ranks_end_before_they_can_join_is_left_out(
    staged: Staged, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = staged()
    stage.begins(step=7)
    stage.ends(B)
    stage.regroups(A, step=7)
    for step in range(supervisor._MOST_FAILED_STARTS):
        stage.is_at(A, 8 + step)
        done = stage.ends(B, code=1, cause=Cause("exception", "exit code 1"))
    assert not did(done, "start")
    assert not lacking(capsys.readouterr().err, "h1")
    assert stage.outcome is None


# --- errors -----------------------------------------------------------------------------------------------


def test_a_final_error_of_a_rank_ends_the_run_and_the_others_save(staged: Staged) -> None:
    stage = staged()
    stage.begins(step=7)
    done = stage.says(B, failed="DragomanError: no data", is_final=True, is_quiet=False)
    assert told(done, "cut") == {A: 1, B: 1}
    stage.ends(B, code=2, cause=Cause("exception", "exit code 2"))
    assert told(stage.are_ready(A, step=7), "stop") == {A: signal.SIGTERM}
    stage.says(A, done="stopped")
    stage.ends(A, code=0)
    assert stage.outcome == 2


def test_a_final_error_of_a_rank_that_has_trained_in_a_later_world_ends_the_run(staged: Staged) -> None:
    stage = staged()
    stage.begins(step=7)
    stage.ends(B)
    stage.regroups(A, step=7)
    stage.are_ready(B)
    stage.regroups(A, step=8)
    for place in (A, B):
        stage.is_at(place, 9)
    stage.says(B, failed="DragomanError: the loss is not finite", is_final=True, is_quiet=False)
    stage.ends(B, code=1)
    stage.ends(A, code=1)
    assert stage.outcome == 1


def test_a_final_error_of_a_newcomer_only_leaves_out_its_host(
    staged: Staged, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = staged(1, 2)
    stage.begins(step=7)
    stage.ends(B)
    stage.regroups(A, (1, 1), step=7)
    done = stage.says(B, failed="DragomanError: no data", is_final=True, is_quiet=False)
    assert set(told(done, "leave")) == {B, (1, 1)}
    assert not lacking(capsys.readouterr().err, "h1", "no data")
    assert told(done, "cut") == {A: 2, (1, 1): 2}
    stage.ends(B, code=1)
    assert ranks(stage.regroups(A, (1, 1), step=8)) == {A: 0}
    assert stage.outcome is None


def test_an_error_that_may_pass_is_tried_again(staged: Staged) -> None:
    stage = staged()
    stage.begins(step=7)
    stage.says(B, failed="RuntimeError: oh", is_final=False, is_quiet=False)
    assert did(stage.ends(B, code=1, cause=Cause("exception", "exit code 1")), "start") == [B]
    (fault,) = stage.regroups(A, step=7)[A]["faults"]
    assert (fault["kind"], fault["detail"]) == ("exception", "RuntimeError: oh")


def test_a_rank_that_leaves_because_of_anothers_error_is_not_the_reason(staged: Staged) -> None:
    stage = staged()
    stage.begins()
    stage.says(B, failed="", is_final=False, is_quiet=True)
    stage.ends(B, code=1, cause=Cause("exception", "exit code 1"))
    stage.says(A, failed="DragomanError: no data", is_final=True, is_quiet=False)
    assert stage.ends(A, code=2) == []
    assert stage.outcome == 2


# --- stop -------------------------------------------------------------------------------------------------


def test_signals_are_passed_on_and_a_run_that_was_stopped_ends_well(staged: Staged) -> None:
    stage = staged()
    stage.begins(step=7)
    assert told(stage.is_stopped(signal.SIGINT), "stop") == {A: signal.SIGINT, B: signal.SIGINT}
    assert told(stage.is_stopped(signal.SIGTERM), "stop") == {A: signal.SIGTERM, B: signal.SIGTERM}
    for place in (A, B):
        stage.says(place, done="stopped")
    for place in (A, B):
        stage.ends(place, code=0)
    assert stage.outcome == 0


def test_the_survivor_of_a_fault_during_the_stop_still_saves(staged: Staged) -> None:
    stage = staged()
    stage.begins(step=7)
    stage.is_stopped()
    done = stage.ends(B)
    assert told(done, "cut") == {A: 1} and not did(done, "start")
    done = stage.are_ready(A, step=8)
    assert ranks(joins(done)) == {A: 0}
    assert told(done, "stop") == {A: signal.SIGTERM}
    stage.says(A, done="stopped")
    stage.ends(A, code=0)
    assert stage.outcome == 0


def test_a_stop_before_there_is_anything_to_save_ends_at_once(staged: Staged) -> None:
    stage = staged()
    stage.is_up(0)
    stage.are_ready(A)
    stage.is_up(1)
    done = stage.is_stopped(signal.SIGINT)
    assert told(done, "leave") == {A: True}
    assert did(done, "kill") == [B], "it would hear us only when it has started"
    stage.ends(A, code=1)
    stage.ends(B)
    assert stage.outcome == 1


def test_a_host_that_comes_back_during_the_stop_starts_no_rank(staged: Staged) -> None:
    stage = staged()
    stage.begins(step=7)
    stage.is_stopped()
    assert not did(stage.is_lost(1), "start")
    assert not did(stage.is_up(1), "start")


# --- hosts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_a_rank", [False, True])
def test_a_host_that_is_to_shut_down_leaves_after_the_step_and_the_others_continue(
    staged: Staged, by_a_rank: bool
) -> None:
    stage = staged()
    stage.begins(step=7)
    done = stage.says(B, signal=signal.SIGTERM) if by_a_rank else stage.is_told_to_leave(1)
    assert told(done, "regroup") == {A: 1, B: 1}
    assert not told(done, "cut"), "the step under way is completed"
    done = stage.are_ready(A, B, step=8)
    assert told(done, "leave") == {B: True}
    assert ranks(joins(done)) == {A: 0}
    assert [fault["kind"] for fault in joins(done)[A]["faults"]] == ["notice"]
    assert not did(stage.ends(B, code=0), "start")
    assert stage.outcome is None


def test_if_too_few_hosts_would_be_left_the_run_stops_instead(staged: Staged) -> None:
    stage = staged(least_hosts=2)
    stage.begins(step=7)
    assert told(stage.is_told_to_leave(1), "stop") == {A: signal.SIGTERM, B: signal.SIGTERM}


def test_a_host_that_is_lost_and_back_joins_again(staged: Staged) -> None:
    stage = staged(1, 2)
    stage.begins(step=7)
    done = stage.is_lost(1)
    assert told(done, "cut") == {A: 1}
    assert not did(done, "start")
    orders = stage.regroups(A, step=7)
    assert [fault["kind"] for fault in orders[A]["faults"]] == ["host_unreachable"]
    stage.is_lost(1)  # tried again in vain: no new fault
    assert did(stage.is_up(1), "start") == [(1, 0), (1, 1)]
    assert told(stage.are_ready((1, 0), (1, 1)), "regroup") == {A: 2}
    orders = stage.regroups(A, step=9)
    assert set(orders) == set(stage.places)
    assert orders[A]["faults"] == []


def test_with_too_few_hosts_the_run_waits_and_then_saves_and_ends(
    staged: Staged, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = staged(least_hosts=2)
    stage.begins(step=7)
    stage.is_lost(1)
    assert not joins(stage.are_ready(A, step=7))
    assert not lacking(capsys.readouterr().err, "--min-hosts", 2)
    assert not joins(stage.passes(supervisor._HOSTS_SECONDS - 10))
    stage.passes(11)
    stage.now += 1
    done = stage.happens()
    orders = joins(done)
    assert set(orders) == {A}
    assert told(done, "stop") == {A: signal.SIGTERM}
    stage.says(A, done="stopped")
    stage.ends(A, code=0)
    assert stage.outcome == 1


def test_with_too_few_hosts_the_run_continues_once_there_are_enough(staged: Staged) -> None:
    stage = staged(least_hosts=2)
    stage.begins(step=7)
    stage.is_lost(1)
    stage.are_ready(A, step=7)
    stage.passes(60)
    stage.is_up(1)
    stage.now += 1
    assert set(joins(stage.are_ready(B))) == {A, B}


def test_a_silent_host_is_given_up(staged: Staged) -> None:
    stage = staged()
    stage.begins(step=7)
    stage.hosts[1].silent_seconds = SILENT_SECONDS + 1
    done = stage.happens()
    assert did(done, "drop") == [1]
    assert told(done, "cut") == {A: 1}
    stage.hosts[1].silent_seconds = 0.0
    (fault,) = stage.regroups(A, step=7)[A]["faults"]
    assert (fault["kind"], fault["host"]) == ("link_cut", "h1")


# --- ranks that do not move -------------------------------------------------------------------------------


def test_a_stopped_rank_is_told_of_with_its_stacks_and_replaced(
    staged: Staged, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = staged()
    stage.begins(step=7)
    stage.now += SILENT_SECONDS + 1
    done = stage.says(A, at={"step": 7, "activity": "step", "phase": "exchange"})
    assert did(done, "examine") == [A, B]
    stage.is_found(A, Cause("slow_rank", "uses 0.00 cores"), "stacks/1.txt")
    done = stage.is_found(B, Cause("stopped", "state T"), "stacks/2.txt")
    assert did(done, "kill") == did(done, "start") == [B]
    assert told(done, "cut") == {A: 1}
    assert not lacking(capsys.readouterr().err, "rank 1", "stopped")
    (fault,) = stage.regroups(A, step=7)[A]["faults"]
    assert (fault["kind"], fault["stacks"]) == ("stopped", "stacks/2.txt")
    assert fault["noticed_seconds"] == pytest.approx(SILENT_SECONDS + 1)
    assert fault["age_seconds"] == pytest.approx(SILENT_SECONDS + 1)


def stuck(stage: Stage, seconds: float, **behind: Any) -> list[tuple[Any, ...]]:
    """All ranks say that they are where they were; the last one is elsewhere. What is done then."""
    done = []
    until = stage.now + seconds
    while stage.now < until and not did(done, "examine"):
        stage.now += SILENT_SECONDS / 2
        for place in stage.places[:-1]:
            done += stage.says(place, at={"step": 7, "activity": "step", "phase": "exchange"})
        at = {"step": 7, "activity": "step", "phase": "exchange"} | behind
        done += stage.says(stage.places[-1], at=at)
    return done


def test_a_rank_that_holds_up_the_others_is_replaced(staged: Staged) -> None:
    stage = staged(1, 1, 1)
    stage.begins()
    for step in (5, 6, 7):
        stage.now += 1
        for place in stage.places:
            stage.is_at(place, step)
    assert did(stuck(stage, LEAST_STEP_SECONDS + 20, phase="data"), "examine") == stage.places
    for place in stage.places:
        done = stage.is_found(place, Cause("slow_rank", "uses 0.00 cores"))
    assert did(done, "kill") == did(done, "start") == [(2, 0)]
    assert set(told(done, "cut")) == {A, B}


def test_if_all_wait_at_the_same_place_the_link_is_to_blame_and_nobody_is_killed(staged: Staged) -> None:
    stage = staged()
    stage.begins()
    for step in (5, 6, 7):
        stage.now += 1
        for place in stage.places:
            stage.is_at(place, step)
    assert did(stuck(stage, LEAST_STEP_SECONDS + 20), "examine") == [A, B]
    for place in (A, B):
        done = stage.is_found(place, Cause("slow_rank", "uses 0.00 cores"))
    assert not did(done, "kill")
    assert told(done, "cut") == {A: 1, B: 1}
    orders = stage.regroups(A, B, step=7)
    assert [fault["kind"] for fault in orders[A]["faults"]] == ["link_cut"]


def test_ranks_that_cannot_be_examined_are_not_waited_for(staged: Staged) -> None:
    stage = staged()
    stage.begins(step=7)
    stage.now += SILENT_SECONDS + 1
    assert did(stage.says(A, at={"step": 7, "activity": "step", "phase": "exchange"}), "examine") == [A, B]
    stage.now += supervisor._EXAMINE_SECONDS + 1
    assert did(stage.says(A, at={"step": 7, "activity": "step", "phase": "exchange"}), "kill") == [B]


def test_a_rank_that_falls_silent_before_it_said_where_it_is_is_replaced(staged: Staged) -> None:
    stage = staged()
    stage.begins()
    stage.now += SILENT_SECONDS + 1
    stage.is_at(A, 1)
    for place in (A, B):
        done = stage.is_found(place, Cause("stopped", "state T"))
    assert B in did(done, "kill")


# --- the end ----------------------------------------------------------------------------------------------


def test_the_run_ends_when_the_first_rank_is_done_and_all_have_ended(staged: Staged) -> None:
    stage = staged()
    stage.begins(step=7)
    stage.says(B, done="finished")
    assert stage.outcome is None
    stage.says(A, done="finished")
    stage.ends(B, code=0)
    assert stage.outcome is None
    stage.ends(A, code=0)
    assert stage.outcome == 0


def test_a_rank_that_starts_while_the_others_finish_is_not_needed(staged: Staged) -> None:
    stage = staged()
    stage.begins(step=7)
    stage.ends(B)
    stage.regroups(A, step=7)
    assert did(stage.says(A, done="finished"), "kill") == [B]
    stage.ends(A, code=0)
    stage.ends(B, code=1)
    assert stage.outcome == 0


def test_a_rank_that_is_lost_in_the_farewell_of_the_others_does_not_spoil_the_end(staged: Staged) -> None:
    stage = staged()
    stage.begins(step=7)
    stage.says(A, done="finished")
    assert not did(stage.ends(B), "start")
    stage.ends(A, code=0)
    assert stage.outcome == 0


class ObedientHost(FakeHost):
    """Its ranks do at once what they are told, and are done with the first world."""

    events: Events

    def open(self) -> None:
        self.events.put(HostIsUp(self.number))

    def start(self, process: RankProcess) -> None:
        super().start(process)
        self.events.put(RankSaid(self.number, process, {"ready": -1}))

    def tell(self, slot: int, message: dict[str, Any]) -> None:
        super().tell(slot, message)
        process = RankProcess(slot, self.processes[slot])
        if "join" in message:
            if message["join"]["rank"] == 0:
                self.events.put(RankSaid(self.number, process, {"listening": PORT}))
            self.events.put(RankSaid(self.number, process, {"done": "finished"}))
            self.events.put(RankEnded(self.number, process, 0, Cause("exception", "exit code 0")))


def test_a_run_from_its_start_to_its_end_closes_its_hosts() -> None:
    played: list[tuple[Any, ...]] = []
    events: Events = queue.SimpleQueue()
    hosts = [ObedientHost(number, 1, played) for number in (0, 1)]
    for host in hosts:
        host.events = events
    handler = signal.getsignal(signal.SIGTERM)
    assert Supervisor(hosts, events, FakeMeeting(), Restarts(), 0).run() == 0
    assert signal.getsignal(signal.SIGTERM) == handler
    assert did(played, "close") == [0, 1]
    assert not did(played, "kill")
