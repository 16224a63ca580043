"""Kills a process that saves checkpoint after checkpoint, at random moments, and looks at what it left.

    python -m tests.train.killed_saves FOLDER --kills 1000 --seed 2

Every life begins as a run that resumes, removes what the life before left, and then trains nothing. Lives are
forks of a process that has imported everything and has no threads, so that one takes tenths of a second. The
answer is a line of JSON: what the kills hit, and the most bytes that were on disk.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import torch
import torch._dynamo  # noqa: F401  the first optimizer of a life would import it

from dragoman.checkpoint import manifest, saved_state
from dragoman.config import Checkpoint, Evaluate, Model, Train, Training
from dragoman.leave import leave
from dragoman.measure.quality import Evaluation, Score
from dragoman.model import Transformer
from dragoman.rundir import RunFolder
from dragoman.sync import topology
from dragoman.sync.world import World
from dragoman.train import optimizer, resume
from dragoman.train.run_folders import RunFolders
from dragoman.train.saver import main_saver
from dragoman.train.state import State
from tests import ranks

SETTINGS = Training(
    model=Model(width=96, heads=2, encoder_layers=1, decoder_layers=1, feedforward=192),
    train=Train(optimizer="adam"),
    evaluate=Evaluate(metric="loss"),
    checkpoint=Checkpoint(keep_last=2, keep_best=2),
)
VOCABULARY, FINGERPRINT = b"subwords", "f" * 64
WORLD = World(0, 1, 0, 1, torch.device("cpu"))
_KEPT = SETTINGS.checkpoint.keep_last + SETTINGS.checkpoint.keep_best
MOST_FOLDERS = _KEPT + 2  # on disk: one that is being written, and one whose removal is next
_SAVES = 3  # begun by a life before it is killed, at most


def new_state() -> State:
    """2.8 MB with the moments."""
    model = Transformer(SETTINGS.model, vocabulary=500)
    state = State(SETTINGS, model, optimizer.build(model, SETTINGS.train))
    optimizer.restore(state.optimizer, model, optimizer.empty_state(state.optimizer, model))
    return state


def advance(state: State) -> None:
    """The next step: all tensors hold its number, and it is scored at random, the same in every life."""
    state.step += 1
    moments = optimizer.state(state.optimizer, state.model)
    with torch.no_grad():
        for tensor in (*state.model.parameters(), *moments.values()):
            tensor.fill_(state.step)
    loss = random.Random(state.step).uniform(1, 9)
    score = Score(value=0.0, signature="")
    state.history.append(
        Evaluation(
            step=state.step, eval_loss=loss, train_sample_loss=1.0, bleu=score, chrf=score, seconds=1.0
        )
    )


def check(path: Path) -> None:
    """Raises unless a checkpoint is sound, can be loaded, and holds what was saved at its step."""
    step = saved_state.verify(path).step
    loaded = saved_state.load(path)
    assert loaded.state.step == step == int(path.name.removeprefix("step-"))
    for tensor in (*loaded.model.values(), *loaded.optimizer.values()):
        assert tensor.min() == tensor.max() == step, f"{path} holds another step's tensors"


def leftovers(run: RunFolder) -> list[str]:
    """What is neither a checkpoint nor the link to the best."""
    known = {run.checkpoint(step) for step in run.checkpoint_steps()}
    folders = [path for path in run.checkpoints.glob("*") if path not in known]
    return sorted(path.name for path in [*folders, *run.path.glob("*.unfinished")])


# --- a life -----------------------------------------------------------------------------------------------


def live(run: RunFolder, tell: Callable[..., None]) -> None:
    """Resumes, then saves until it is killed."""
    tell("starts")
    with topology.join(60) as placement:
        folders, state = RunFolders(run, placement), new_state()
        lock = folders.lock()
        assert lock, "closed when this function ends: never"
        step, lines = folders.bring_together(SETTINGS, FINGERPRINT)
        if lines:
            raise AssertionError(f"a checkpoint was not sound: {lines}")
        if step is not None:
            resume.restore(state, run, step, placement)
        tell("resumed", step, leftovers(run))
        saver = main_saver(run, VOCABULARY, WORLD, FINGERPRINT)
        while True:
            advance(state)
            tell("saves", state.step)
            saver.save(state)
            saver.wait()
            if saver.failure:
                raise saver.failure
            tell("saved", state.step)


# --- the killer -------------------------------------------------------------------------------------------


@dataclass
class Killer:
    """Starts lives, ends them, and keeps count."""

    run: RunFolder
    dice: random.Random
    reported: int = 0  # the newest step whose save was reported complete
    newest: int | None = None  # the newest checkpoint on disk
    hits: Counter[str] = field(default_factory=Counter)
    save_seconds: list[float] = field(default_factory=lambda: [0.05])
    start_seconds: list[float] = field(default_factory=lambda: [0.1])
    most_bytes: int = 0

    def kill(self) -> None:
        """One life and its end."""
        life = _Life(self.run)
        saves = self.dice.randint(0, _SAVES)  # 0: it is killed while it starts
        usual = statistics.median(self.save_seconds if saves else self.start_seconds)
        for _ in range(saves):
            life.read_until("saves")
        if not saves:
            life.read_until("starts")
        time.sleep(self.dice.uniform(0.2, 1.4) * usual)  # the first part only copies tensors in memory
        life.end()
        self._learn(life)
        self._look()
        self.hits[self._hit(life)] += 1

    def _learn(self, life: _Life) -> None:
        for (name, began, *_), (end, ended, *rest) in zip(life.told, life.told[1:], strict=False):
            if end == "resumed":
                assert rest == [self.newest, []], f"resumed at {rest}, the newest was {self.newest}"
            if end in ("resumed", "saved"):
                assert name in ("starts", "saves")
                (self.save_seconds if end == "saved" else self.start_seconds).append(ended - began)
        self.reported = max([self.reported, *(rest[0] for name, _, *rest in life.told if name == "saved")])

    def _look(self) -> None:
        """Whether what is on disk is as it must be."""
        steps = self.run.checkpoint_steps()
        self.newest = steps[-1] if steps else None
        assert (self.newest or 0) >= self.reported, f"{self.newest} is on disk, {self.reported} was reported"
        best = self.run.best.resolve()
        if self.reported:
            assert best in map(self.run.checkpoint, steps), "best leads nowhere"
        for step in steps:
            if step == self.newest or self.run.checkpoint(step) == best:
                check(self.run.checkpoint(step))
            else:  # half the time
                saved_state.verify_only(self.run.checkpoint(step), saved_state.REQUIRED)
        folders = [path for path in self.run.checkpoints.glob("*") if path.is_dir()]
        assert len(folders) <= MOST_FOLDERS, sorted(path.name for path in folders)
        taken = sum(path.stat().st_size for path in self.run.path.rglob("*") if path.is_file())
        self.most_bytes = max(self.most_bytes, taken)

    def _hit(self, life: _Life) -> str:
        """What the kill interrupted."""
        name, _, *rest = life.told[-1]
        if name in ("starts", "resumed"):
            return "the start"
        if name == "saved":
            return "between saves"
        folder = self.run.checkpoint(rest[0])
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        if (unfinished / manifest.MANIFEST_FILE).exists():
            return "a save: fsync and rename"
        if unfinished.exists():
            return "a save: writing"
        return "a save: link and removal" if folder.exists() else "a save: copying"


class _Life:
    """A fork that saves, and what it told."""

    def __init__(self, run: RunFolder):
        reading, writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(reading)
            _be(run, writing)
        os.close(writing)
        self._pipe = open(reading)  # noqa: SIM115  closed by `end`
        self.told: list[list] = []  # name, time, and what belongs to it

    def read_until(self, name: str) -> None:
        while line := self._pipe.readline():
            self.told.append(json.loads(line))
            if self.told[-1][0] == name:
                return
        raise AssertionError(f"ended by itself before it {name}: see its traceback")

    def end(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        _, status = os.waitpid(self._pid, 0)
        assert os.WIFSIGNALED(status), f"ended by itself with status {status}: see its traceback"
        self.told += [json.loads(line) for line in self._pipe if line.endswith("\n")]
        self._pipe.close()


def _be(run: RunFolder, pipe: int) -> NoReturn:
    def tell(name: str, *what: object) -> None:
        os.write(pipe, json.dumps([name, time.monotonic(), *what]).encode() + b"\n")

    try:
        live(run, tell)
    except BaseException:
        import traceback

        traceback.print_exc()
    leave(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)  # a fork with torch's threads would hang
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    os.environ.update(ranks.place(0, 1, 0, 1, "127.0.0.1", port))
    began = time.monotonic()
    killer = Killer(RunFolder(given.folder), random.Random(given.seed))
    for _ in range(given.kills):
        killer.kill()
    newest = killer.run.checkpoint(killer.newest or 0)
    answer = {
        "kills": given.kills,
        "hits": dict(sorted(killer.hits.items())),
        "seconds": round(time.monotonic() - began, 1),
        "newest_step": killer.newest,
        "save_seconds": round(statistics.median(killer.save_seconds), 4),
        "start_seconds": round(statistics.median(killer.start_seconds), 4),
        "checkpoint_bytes": sum(path.stat().st_size for path in newest.iterdir()),
        "most_bytes": killer.most_bytes,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
