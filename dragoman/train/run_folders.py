"""A run's folder on every host: hosts come and go, and the one with the newest state need not be rank 0's.

Each host's first rank looks at its own run folder. What rank 0's host lacks is sent there, and the newest
checkpoint to every other host as well; hosts that share a disk count as one. All of it goes over the process
group, so nothing has to be set up between hosts.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
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


@dataclass(frozen=True)
class SoundCheckpoint:
    """A checkpoint that can be used, and the ranks that have it on their disk."""

    step: int
    holders: list[int]
    replicas: dict[int, list[int]]  # and who has what each replica but the first keeps for itself

    @property
    def is_complete(self) -> bool:
        return all(self.replicas.values())


class RunFolders:
    """A run's folder on each host. All that others call is collective."""

    def __init__(self, folder: RunFolder, placement: Placement):
        """Looks and changes nothing."""
        self._folder = folder
        self._placement = placement
        self._world = placement.world
        self._topology = placement.topology
        self._home = self._most_often_started()  # the rank whose host has the run's records
        self._owners = {0: 0}  # of each host's first rank: the one that acts for all that share its disk

    def check_settings(self, settings: Training) -> CheckedSettings:
        """The settings to train with, checked on the host that has the run."""
        is_home = self._world.rank == self._home
        own = done_by(self._world, is_home, lambda: checked_settings(self._folder, settings))  # collective
        content = own.model_dump_json().encode() if own else b""
        heard = self._world.broadcast_bytes(content, self._home)  # collective
        return CheckedSettings.model_validate_json(heard)

    def lock(self) -> IO[str] | None:
        """Makes the run folder on every host; the lock, where this rank is the one to hold it."""
        own = done_by_main(self._world, self._folder.lock)  # collective
        leaders = self._topology.leaders
        self._owners = transfer.owners(self._world, leaders, self._folder.path)  # collective
        self._home = self._owners[self._home]
        is_other = self._is_owner and not self._world.is_main
        return done_by(self._world, is_other, self._folder.lock) or own  # collective

    def bring_together(self, settings: Training, data_fingerprint: str) -> tuple[int | None, list[str]]:
        """The step to continue from, sound on every host afterwards, or None; and lines for people."""
        replicas = diloco.replicas(settings.sync, self._topology)
        newest, lines = self._newest(replicas)  # collective
        if newest:
            lines += self._send_checkpoint(newest, data_fingerprint)  # collective
            lines += self._send_replicas(newest, replicas)  # collective
        if self._home != 0:
            lines += self._send_records()  # collective
        done_by(self._world, self._is_owner, lambda: self._tidy(newest, settings))  # collective
        return (newest.step if newest else None), lines

    @property
    def _is_owner(self) -> bool:
        return self._world.rank in self._owners.values()

    def _most_often_started(self) -> int:
        """Every start with a step to make adds a row to the records, on rank 0's host: most are newest."""
        starts = [0.0] * self._world.size
        if self._placement.is_leader and len(self._topology.hosts) > 1 and self._folder.config.exists():
            starts[self._world.rank] = 1.0 + database.attempts(self._folder.records)
        starts = self._world.sum(starts)  # collective
        return starts.index(max(starts))

    # --- finding ------------------------------------------------------------------------------------------

    def _newest(self, replicas: Sequence[int]) -> tuple[SoundCheckpoint | None, list[str]]:
        """The newest sound checkpoint that every replica has its part of; if there is none, the newest.

        Damaged ones are set aside, but only if there is a sound one: to begin anew is not ours to decide,
        as hours of training may be on another disk. Collective.
        """
        done_by(self._world, self._is_owner, lambda: _remove_unfinished(self._folder))  # collective
        damaged: list[tuple[Path, DataError]] = []
        newest = None
        for step, holders in self._sound(damaged):  # collective
            own = self._replica_holders(step, holders, replicas)  # collective
            checkpoint = SoundCheckpoint(step, holders, own or {})
            newest = newest or checkpoint
            if own is None:  # replicas were others then: none before it fits any better
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
        return newest, self._lines_of_all(aside or [])  # collective

    def _sound(self, damaged: list[tuple[Path, DataError]]) -> Iterator[tuple[int, list[int]]]:
        """Steps of which some disk has a sound checkpoint, the newest first, and who has it. Collective."""
        own = self._folder.checkpoint_steps() if self._is_owner else []
        while (step := int(self._world.most([own[-1] if own else -1])[0])) >= 0:  # collective
            is_sound = False
            if own and own[-1] == step:
                own.pop()
                is_sound = _is_sound(self._folder.checkpoint(step), damaged)
            if holders := ranks_that(self._world, is_sound):  # collective
                yield step, holders

    def _replica_holders(
        self, step: int, holders: Sequence[int], replicas: Sequence[int]
    ) -> dict[int, list[int]] | None:
        """Who has what each other replica keeps for itself; None if replicas are others now. Collective."""
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
        return f"{host}{error.where}: {error.what}; set aside as {aside.name}, taking the one before"

    def _host(self, rank: int) -> str:
        return self._topology.hosts[self._topology.rank_hosts[rank]]

    def _lines_of_all(self, own: list[str]) -> list[str]:
        """The lines of all ranks, in their order, on every rank. Collective."""
        lines: list[str] = []
        for rank in ranks_that(self._world, bool(own)):  # collective
            lines += json.loads(self._world.broadcast_bytes(json.dumps(own).encode(), rank))  # collective
        return lines

    def _check(self, step: int, data_fingerprint: str) -> None:
        own = saved_state.saved_state(self._folder.checkpoint(step)).data_fingerprint
        if own != data_fingerprint:
            raise DataError(
                "this run was trained on other data: its fingerprint is "
                f"{own[:16]}, that of the data given {data_fingerprint[:16]}",
                path=self._folder.path,
                hint="give the data set of the run, or another --run",
            )

    # --- sending ------------------------------------------------------------------------------------------

    def _send_checkpoint(self, checkpoint: SoundCheckpoint, data_fingerprint: str) -> list[str]:
        """To every disk that lacks it. Collective."""
        step, holders = checkpoint.step, checkpoint.holders
        source = self._home if self._home in holders else holders[0]
        is_source = self._world.rank == source
        done_by(self._world, is_source, lambda: self._check(step, data_fingerprint))  # collective
        lacking = [rank for rank in sorted(set(self._owners.values())) if rank not in holders]
        if not lacking:
            return []
        path = self._folder.checkpoint(step)
        sent = Chain(self._world, source, lacking).folder(path, saved_state.verify)  # collective
        return [self._sent(f"the checkpoint of step {step:,}", sent, source, lacking)]

    def _send_replicas(self, checkpoint: SoundCheckpoint, replicas: Sequence[int]) -> list[str]:
        """To each replica what it kept for itself, if its ranks were on another host then. Collective."""
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
        """What rank 0's host needs to become the run's home: the records last, as they decide. Collective."""
        folder, chain = self._folder, Chain(self._world, self._home, [0])
        sent = self._send_best()  # collective
        sent += chain.files(folder.path, folder.accompanying())  # collective
        with ExitStack() as stack:
            done_by_main(self._world, lambda: database.remove(folder.records))  # collective
            whole = done_by(  # collective
                self._world,
                self._world.rank == self._home and folder.records.exists(),
                lambda: stack.enter_context(database.snapshot(folder.records)),
            )
            if ranks_that(self._world, whole is not None):  # collective
                sent += chain.replace(whole or folder.records, folder.records)  # collective
        return [self._sent("the best checkpoint, records, log and curves", sent, self._home, [0])]

    def _send_best(self) -> int:
        """Sends the best checkpoint, unless rank 0's host has it; how many bytes. Collective."""
        own = 0
        if self._world.rank == self._home and self._folder.best.exists():
            own = self._folder.checkpoint_folders.step_of(self._folder.best.resolve()) or 0
        step = int(self._world.most([own])[0])  # collective
        path = self._folder.checkpoint(step)
        lacks = self._world.is_main and not path.exists()
        if not step or not ranks_that(self._world, lacks):  # collective
            return 0
        return Chain(self._world, self._home, [0]).folder(path, saved_state.verify)  # collective

    def _sent(self, what: str, sent: int, source: int, to: Sequence[int]) -> str:
        hosts = ", ".join(self._host(rank) for rank in to)
        return f"sent from {self._host(source)} to {hosts}: {what} ({sent / 1e6:,.1f} MB)"

    def _tidy(self, checkpoint: SoundCheckpoint | None, settings: Training) -> None:
        """This disk as it was at that step. Old checkpoints go when rank 0 saves, elsewhere now."""
        folder = self._folder
        if not checkpoint or not checkpoint.replicas:
            shutil.rmtree(folder.replicas, ignore_errors=True)
        if not checkpoint:
            return
        for each in (folder.checkpoint_folders, *map(folder.replica, checkpoint.replicas)):
            saver.remove_newer(each, checkpoint.step)
        history = saved_state.saved_state(folder.checkpoint(checkpoint.step)).history
        if not self._world.is_main:
            saver.tidy(folder.checkpoint_folders, settings, history, folder.best)
        elif self._home != 0:
            saver.link_best(folder.checkpoint_folders, settings, history, folder.best)


def _remove_unfinished(folder: RunFolder) -> None:
    for leftover in (
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


def _replicas_of(path: Path) -> list[int]:
    return saved_state.saved_state(path).replicas


def _none_is_sound(folder: RunFolder, damaged: Sequence[tuple[Path, DataError]]) -> DataError | None:
    if not damaged:
        return None
    return DataError(
        f"no checkpoint is sound; of the newest: {damaged[0][1].where}: {damaged[0][1].what}",
        path=folder.checkpoints,
        hint="put a sound copy back, or remove this folder to begin at step 0",
    )
