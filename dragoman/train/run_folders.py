"""A run's folder on every host. Hosts may change between starts, and rank 0's need not have the newest state.

Each host's first rank examines its own run folder. Rank 0's host gets what it lacks, and every other host the
newest checkpoint; hosts that share a disk count as one. Everything is sent over the process group, so nothing
has to be set up between hosts.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from dragoman import atomic
from dragoman.checkpoint import saved_state
from dragoman.config import Training
from dragoman.errors import DataError
from dragoman.measure import database
from dragoman.rundir import RunFolder
from dragoman.sync import diloco, transfer
from dragoman.sync.agree import done_by, done_by_main, ranks_that, stop_all_if_one_failed
from dragoman.sync.topology import Placement
from dragoman.sync.transfer import Chain
from dragoman.train import saver
from dragoman.train.job import CheckedSettings, checked_settings
from dragoman.train.state import State

_TIE = 1e-12  # of a start; no run has as many steps


@dataclass(frozen=True)
class SoundCheckpoint:
    """A checkpoint that can be used, and the ranks that have it on their disk."""

    step: int
    holders: list[int]
    replicas: dict[int, list[int]]  # for each replica but the first, the ranks that have its own state

    @property
    def is_complete(self) -> bool:
        """Does some rank have the state of every replica?"""
        return all(self.replicas.values())


class RunFolders:
    """A run's folder on each host. All public methods are collective."""

    def __init__(self, folder: RunFolder, placement: Placement):
        """Finds the host with the run's records, and changes nothing. Collective."""
        self._folder = folder
        self._placement = placement
        self._world = placement.world
        self._topology = placement.topology
        self._starts = self._starts_by_rank()  # that each host's records know of
        self._home = self._starts.index(max(self._starts))  # the rank whose host has the run's records
        self.damaged: list[str] = []  # what `bring_together` set aside, in words
        self._owners = {0: 0}  # for each host's first rank, the rank that acts for all that share its disk

    def check_settings(self, settings: Training) -> CheckedSettings:
        """The settings to train with, checked on the host that has the run."""
        is_home = self._world.rank == self._home
        checked = done_by(
            self._world, is_home, lambda: checked_settings(self._folder, settings)
        )  # collective
        content = checked.model_dump_json().encode() if checked else b""
        content_of_home = self._world.broadcast_bytes(content, self._home)  # collective
        return CheckedSettings.model_validate_json(content_of_home)

    def lock(self) -> IO[str] | None:
        """Makes and locks the run folder on every host; returns the lock on the rank that holds it."""
        lock_of_main = done_by_main(self._world, self._folder.lock)  # collective
        leaders = self._topology.leaders
        self._owners = transfer.owners(self._world, leaders, self._folder.path)  # collective
        self._home = self._owners[self._home]
        is_other = self._is_owner and not self._world.is_main
        return done_by(self._world, is_other, self._folder.lock) or lock_of_main  # collective

    def bring_together(self, settings: Training, data_fingerprint: str) -> tuple[int | None, list[str]]:
        """Returns the step to continue from, then sound on every host, or None; and lines for people."""
        replicas = diloco.replicas(settings.sync, self._topology)
        newest, lines = self._newest(replicas)  # collective
        if newest:
            lines += self._send_checkpoint(newest, data_fingerprint)  # collective
            lines += self._send_replicas(newest, replicas)  # collective
        lines += self._send_records()  # collective
        done_by(self._world, self._is_owner, lambda: self._tidy(newest, settings))  # collective
        return (newest.step if newest else None), lines

    @property
    def keepers(self) -> list[int]:
        """The ranks that keep records and checkpoints: rank 0 and, with several disks, one on another host.

        Should the first host be lost for good, the run continues from what the second one has.
        """
        return sorted(set(self._owners.values()))[:2]

    def follow(self, state: State) -> list[str]:
        """Brings the folders of hosts that joined a run under way to its state; returns lines for people.

        What they have of steps that the run has not made, or has made otherwise since, is removed.
        """
        lines = self._send_records()  # collective

        def tidy() -> None:
            _remove_unfinished(self._folder)
            replicas = (self._folder.replica(number) for number in sorted(set(state.replicas)))
            for each in (self._folder.checkpoint_folders, *replicas):
                saver.remove_newer(each, state.step)

        done_by(self._world, self._is_owner, tidy)  # collective
        return lines

    @property
    def _is_owner(self) -> bool:
        return self._world.rank in self._owners.values()

    def _starts_by_rank(self) -> list[float]:
        """The starts in the records of each host, at its first rank; 0 without any. Collective.

        Each start adds a row, so the records with most rows are the newest. Of equal ones, a full disk may
        have kept some from the last steps: the newest step decides.
        """
        starts = [0.0] * self._world.size
        if self._placement.is_leader and len(self._topology.hosts) > 1 and self._folder.config.exists():
            known = database.attempts(self._folder.records)
            starts[self._world.rank] = 1.0 + known + database.newest_step(self._folder.records) * _TIE
        return self._world.sum(starts)  # collective

    # --- finding ------------------------------------------------------------------------------------------

    def _newest(self, replicas: Sequence[int]) -> tuple[SoundCheckpoint | None, list[str]]:
        """The newest sound checkpoint that is complete for all replicas, or else the newest. Collective.

        Damaged ones are set aside, but only if there is a sound one. Starting over is the user's decision:
        hours of training may be on another disk.
        """
        done_by(self._world, self._is_owner, lambda: _remove_unfinished(self._folder))  # collective
        damaged: list[tuple[Path, DataError]] = []
        newest = None
        for step, holders in self._sound(damaged):  # collective
            replica_holders = self._replica_holders(step, holders, replicas)  # collective
            checkpoint = SoundCheckpoint(step, holders, replica_holders or {})
            newest = newest or checkpoint
            if replica_holders is None:  # saved with other replicas: no earlier one fits better
                break
            if checkpoint.is_complete:
                newest = checkpoint
                break
        if not newest:
            stop_all_if_one_failed(self._world, _none_is_sound(self._folder, damaged))  # collective
            return None, []
        aside = done_by(  # collective
            self._world, bool(damaged), lambda: [self._set_aside(*each) for each in damaged]
        )
        self.damaged = self._lines_of_all(aside or [])  # collective
        return newest, list(self.damaged)

    def _sound(self, damaged: list[tuple[Path, DataError]]) -> Iterator[tuple[int, list[int]]]:
        """Steps with a sound checkpoint on some disk, newest first, and the ranks with it. Collective.

        Those of the latest attempt come first, even before later steps of earlier ones: a host that was lost
        may have steps that the run has made again since, without it.
        """
        folder = self._folder
        own = sorted((_attempt(folder.checkpoint(step)), step) for step in folder.checkpoint_steps())
        own = own if self._is_owner else []
        while True:
            attempt = int(self._world.most([own[-1][0] if own else -1])[0])  # collective
            if attempt < 0:
                return
            has_one = bool(own) and own[-1][0] == attempt
            step = int(self._world.most([own[-1][1] if has_one else -1])[0])  # collective
            is_sound = False
            if own and own[-1] == (attempt, step):
                own.pop()
                is_sound = _is_sound(folder.checkpoint(step), damaged)
            if holders := ranks_that(self._world, is_sound):  # collective
                yield step, holders

    def _replica_holders(
        self, step: int, holders: Sequence[int], replicas: Sequence[int]
    ) -> dict[int, list[int]] | None:
        """The ranks that have each other replica's state; None if the replicas have changed. Collective."""
        folder = self._folder
        are_same = self._world.rank == holders[0] and _replicas_of(folder.checkpoint(step)) == list(replicas)
        if not ranks_that(self._world, are_same):  # collective
            return None
        has_own = {
            number: self._is_owner
            and _is_sound(folder.replica(number).at(step), [], saved_state.verify_replica)
            for number in sorted(set(replicas))
            if number > 0
        }
        return {number: ranks_that(self._world, has_it) for number, has_it in has_own.items()}  # collective

    def _set_aside(self, path: Path, error: DataError) -> str:
        aside = path.with_name(path.name + ".damaged")
        atomic.remove(aside)
        path.rename(aside)
        host = f"{self._host(self._world.rank)}: " if len(self._topology.hosts) > 1 else ""
        return f"{host}{error.where}: {error.what}; set aside as {aside.name}, using the one before"

    def _host(self, rank: int) -> str:
        return self._topology.hosts[self._topology.rank_hosts[rank]]

    def _lines_of_all(self, lines: list[str]) -> list[str]:
        """The lines of all ranks, in their order, on every rank. Collective."""
        of_all: list[str] = []
        for rank in ranks_that(self._world, bool(lines)):  # collective
            of_all += json.loads(self._world.broadcast_bytes(json.dumps(lines).encode(), rank))  # collective
        return of_all

    def _check(self, step: int, data_fingerprint: str) -> None:
        fingerprint = saved_state.saved_state(self._folder.checkpoint(step)).data_fingerprint
        if fingerprint != data_fingerprint:
            raise DataError(
                "this run was trained on other data: its data set has the fingerprint "
                f"{fingerprint[:16]}, the one given has {data_fingerprint[:16]}",
                path=self._folder.path,
                hint="give the run's own data set with --data, or another --run",
            )

    # --- sending ------------------------------------------------------------------------------------------

    def _send_checkpoint(self, checkpoint: SoundCheckpoint, data_fingerprint: str) -> list[str]:
        """Sends a checkpoint to every disk that lacks it; returns lines for people. Collective."""
        step, holders = checkpoint.step, checkpoint.holders
        path = self._folder.checkpoint(step)
        # With DiLoCo the copy on a second host has the moments of the replica there.
        is_original = self._world.rank in holders and saved_state.saved_state(path).moments_of == 0
        originals = ranks_that(self._world, is_original) or holders  # collective
        source = self._home if self._home in originals else originals[0]
        is_source = self._world.rank == source
        done_by(self._world, is_source, lambda: self._check(step, data_fingerprint))  # collective
        lacking = [rank for rank in sorted(set(self._owners.values())) if rank not in holders]
        if 0 in holders and 0 not in originals:
            lacking = [0, *lacking]
        if not lacking:
            return []
        # One of the same step may be there that was saved in a history that did not survive.
        is_other = self._world.rank in lacking and path.exists()
        done_by(self._world, is_other, lambda: atomic.remove(path))  # collective
        sent = Chain(self._world, source, lacking).folder(path, saved_state.verify)  # collective
        return [self._sent(f"the checkpoint of step {step:,}", sent, source, lacking)]

    def _send_replicas(self, checkpoint: SoundCheckpoint, replicas: Sequence[int]) -> list[str]:
        """Sends each replica its own state if its ranks were on another host; returns lines. Collective."""
        lines = []
        for number, holders in checkpoint.replicas.items():
            host = self._topology.rank_hosts[replicas.index(number)]
            owner = self._owners[self._topology.leaders[host]]
            path = self._folder.replica(number).at(checkpoint.step)
            is_damaged = self._is_owner and self._world.rank not in holders
            remove = partial(shutil.rmtree, path, ignore_errors=True)
            done_by(self._world, is_damaged, remove)  # collective
            if holders and owner not in holders:
                chain = Chain(self._world, holders[0], [owner])
                sent = chain.folder(path, saved_state.verify_replica)  # collective
                lines.append(
                    self._sent(f"the optimizer state of replica {number}", sent, holders[0], [owner])
                )
        return lines

    def _send_records(self) -> list[str]:
        """Sends the keepers what makes them the run's home, if theirs is older; returns lines. Collective.

        The records go last, as they decide which host is the home.
        """
        lacking = [rank for rank in self.keepers if self._starts[rank] < self._starts[self._home]]
        if not lacking:
            return []
        folder, chain = self._folder, Chain(self._world, self._home, lacking)
        sent = self._send_best() if 0 in lacking else 0  # collective
        sent += chain.files(folder.path, folder.accompanying())  # collective
        with ExitStack() as stack:
            is_lacking = self._world.rank in lacking
            done_by(self._world, is_lacking, lambda: database.remove(folder.records))  # collective
            whole = done_by(  # collective
                self._world,
                self._world.rank == self._home and folder.records.exists(),
                lambda: stack.enter_context(database.snapshot(folder.records)),
            )
            if ranks_that(self._world, whole is not None):  # collective
                sent += chain.replace(whole or folder.records, folder.records)  # collective
        return [self._sent("the best checkpoint, records, log and curves", sent, self._home, lacking)]

    def _send_best(self) -> int:
        """Sends the best checkpoint unless rank 0's host has it; returns its bytes. Collective."""
        best_step = 0
        if self._world.rank == self._home and self._folder.best.exists():
            best_step = self._folder.checkpoint_folders.step_of(self._folder.best.resolve()) or 0
        step = int(self._world.most([best_step])[0])  # collective
        path = self._folder.checkpoint(step)
        lacks = self._world.is_main and not path.exists()
        if not step or not ranks_that(self._world, lacks):  # collective
            return 0
        return Chain(self._world, self._home, [0]).folder(path, saved_state.verify)  # collective

    def _sent(self, what: str, sent: int, source: int, to: Sequence[int]) -> str:
        hosts = ", ".join(self._host(rank) for rank in to)
        return f"sent from {self._host(source)} to {hosts}: {what} ({sent / 1e6:,.1f} MB)"

    def _tidy(self, checkpoint: SoundCheckpoint | None, settings: Training) -> None:
        """Brings this disk to the state at that step.

        A process that was killed just after its last save has not yet done what follows a save. And where the
        disk is full, room is made here for those who now keep fewer checkpoints.
        """
        folder = self._folder
        if not checkpoint or not checkpoint.replicas:
            shutil.rmtree(folder.replicas, ignore_errors=True)
        if not checkpoint:
            return
        for each in (folder.checkpoint_folders, *map(folder.replica, checkpoint.replicas)):
            saver.remove_newer(each, checkpoint.step)
        history = saved_state.saved_state(folder.checkpoint(checkpoint.step)).history
        saver.tidy(folder.checkpoint_folders, settings, history, folder.best)


def _remove_unfinished(folder: RunFolder) -> None:
    for leftover in (
        folder.best.with_name(folder.best.name + atomic.UNFINISHED),
        *folder.checkpoints.glob(f"*{atomic.UNFINISHED}"),
        *folder.replicas.glob(f"*/*{atomic.UNFINISHED}"),
    ):
        atomic.remove(leftover)


def _is_sound(
    path: Path,
    damaged: list[tuple[Path, DataError]],
    verify: Callable[[Path], object] = saved_state.verify,
) -> bool:
    try:
        verify(path)
    except DataError as error:
        damaged.append((path, error))
        return False
    return True


def _attempt(path: Path) -> int:
    """The attempt that saved this checkpoint; 0 if that cannot be read, which is found out later."""
    with suppress(DataError, OSError):
        return saved_state.saved_state(path).attempt
    return 0


def _replicas_of(path: Path) -> list[int]:
    return saved_state.saved_state(path).replicas


def _none_is_sound(folder: RunFolder, damaged: Sequence[tuple[Path, DataError]]) -> DataError | None:
    if not damaged:
        return None
    return DataError(
        f"no checkpoint is sound; the newest one: {damaged[0][1].where}: {damaged[0][1].what}",
        path=folder.checkpoints,
        hint="put a sound copy back, or remove this folder to begin at step 0",
    )
