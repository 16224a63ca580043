"""Files to what they hold: recognised by their content, and text given to every reader of lines at once.

A log is seldom one program's alone, so all readers look at every line; one alternation of what their lines
begin with keeps that fast, and nothing is kept but what they take.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from dragoman.errors import LogError, reading
from dragoman.foreign import (
    cluster,
    fairseq,
    faults,
    huggingface,
    nmon,
    nvidia,
    openseq2seq,
    tensorboard,
    tfcheckpoint,
)
from dragoman.foreign.lines import Lines, check_is_file, head
from dragoman.foreign.log_facts import Gathered
from dragoman.foreign.wrapping import unwrapped

LOOKED_FOR = (openseq2seq, fairseq, nmon, nvidia, cluster, faults, huggingface, tensorboard, tfcheckpoint)
_NAMES = ("OpenSeq2Seq log", "fairseq log", "nmon recording", "nvidia-smi output", "NCCL and device lines")
_MATCH = re.compile(
    b"|".join(
        b"(?P<r%d>%s)" % (number, module.BEGINS)
        for number, module in enumerate((openseq2seq, fairseq, nmon, nvidia, cluster))
    )
).match
_LONGEST_LINE = 20_000  # bytes of a line that are looked at
_CHECKPOINT_PARTS = re.compile(r"\.(data-\d+-of-\d+|meta)$")


class LineReader(Protocol):
    is_found: bool

    def line(self, text: str) -> None: ...
    def finish(self) -> None: ...


def read(paths: Sequence[Path]) -> Gathered:
    """What the files hold together. A file that holds nothing known is noted; none at all is an error."""
    gathered = Gathered()
    damaged: list[LogError] = []
    for path in sorted(_files(paths), key=_rank):
        try:
            kind = _read_one(path, gathered)
        except LogError as error:  # the others may tell enough
            damaged.append(error)
            gathered.notes.append(f"{error.where}: {error.what}")
            continue
        finally:
            gathered.say_what_was_left_out(path)
        if kind:
            gathered.found[str(path)] = kind
        else:
            gathered.notes.append(_nothing(path))
    if not gathered.found and damaged:
        raise damaged[0]
    if not gathered.found:
        hint = "give the training's log itself, or facts by options (dragoman diagnose --help)"
        raise LogError(_nothing(*paths), hint=hint)
    return gathered


def _nothing(*paths: Path) -> str:
    looked = ", ".join(module.LOOKS_FOR for module in LOOKED_FOR)
    return f"nothing recognised in {', '.join(map(str, paths))}: looked for {looked}"


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """Files as given; in folders, those whose names are known."""
    for path in paths:
        if not path.is_dir():
            check_is_file(path)
            yield path
            continue
        inside = [file for file in sorted(path.rglob("*")) if file.is_file() and _is_known_name(file.name)]
        inside = [file for file in inside if not _has_finer(file)]
        indexes = sorted((file for file in inside if file.suffix == ".index"), key=_checkpoint_step)
        states = sorted(
            (file for file in inside if file.suffix == ".json"), key=lambda file: file.stat().st_size
        )
        yield from (file for file in inside if file not in indexes and file not in states)
        yield from indexes[-1:]  # the newest checkpoint; the others are like it
        yield from states[-1:]  # the longest history holds the others
        if not inside:
            yield path


def _is_known_name(name: str) -> bool:
    plain = name.removesuffix(".gz")
    return (
        "tfevents" in name
        or plain in ("trainer_state.json", "nohup.out")
        or plain.endswith((".nmon", ".log", ".out", ".err", ".index"))
    )


def _has_finer(path: Path) -> bool:
    """fairseq writes the same curves once an epoch (train) and once an interval (train_inner)."""
    folder = path.parent
    return "tfevents" in path.name and folder.name == "train" and (folder.parent / "train_inner").is_dir()


def _checkpoint_step(path: Path) -> int:
    found = re.search(r"-(\d+)\.index$", path.name)
    return int(found[1]) if found else -1


def _rank(path: Path) -> int:
    """Logs before curves: where both tell of the steps, the log is finer."""
    return 1 if "tfevents" in path.name else 0


def _read_one(path: Path, gathered: Gathered) -> str | None:
    """What the file turned out to be; None if nothing known."""
    if path.is_dir():
        return None
    start, lines = head(path), Lines(path)
    if tfcheckpoint.is_one(path):
        tfcheckpoint.read(path, gathered)
        return "TensorFlow checkpoint index"
    if _CHECKPOINT_PARTS.search(path.name):
        index = path.with_name(_CHECKPOINT_PARTS.sub("", path.name) + ".index")
        return "part of a TensorFlow checkpoint" if str(index) in gathered.found or index.exists() else None
    with reading(path, LogError):
        kind = _lines(start, lines, gathered)
    if lines.damage:
        gathered.notes.append(f"{path}: {lines.damage}")
    return kind


def _lines(start: bytes, lines: Lines, gathered: Gathered) -> str | None:
    if huggingface.is_one(start):
        huggingface.read(lines, gathered)
        return "Hugging Face trainer state"
    if tensorboard.is_one(start):
        return "TensorBoard events" if tensorboard.read(lines, gathered) else None
    return _text(lines, gathered)


def _text(lines: Lines, gathered: Gathered) -> str | None:
    readers: list[LineReader] = [
        openseq2seq.OpenSeq2Seq(gathered),
        fairseq.Fairseq(gathered),
        nmon.Nmon(gathered),
        nvidia.Nvidia(gathered),
        cluster.LoggedCluster(gathered),
    ]
    takers = {f"r{number}": reader.line for number, reader in enumerate(readers)}
    failures = faults.Faults(gathered)
    for piece, rows in lines.pieces():
        rows = unwrapped(piece, rows)
        matches = list(map(_MATCH, rows))
        # Words of faults are looked for in all other lines at once; few pieces of a log hold any.
        others = b"\n".join(
            [row for row, found in zip(rows, matches, strict=True) if not found and row[:3] != b"***"]
        )
        words = [word for word in faults.WORDS if word in others]
        for row, found in zip(rows, matches, strict=True):
            if found:
                takers[found.lastgroup or ""](_decoded(row, gathered))
            elif words and row[:3] != b"***" and any(word in row for word in words):
                failures.line(_decoded(row, gathered))
    for reader in (*readers, failures):
        reader.finish()
    names = [name for name, reader in zip(_NAMES, readers, strict=True) if reader.is_found]
    names += ["errors"] if failures.is_found else []
    return ", ".join(names) or None


def _decoded(row: bytes, gathered: Gathered) -> str:
    if len(row) > _LONGEST_LINE:
        gathered.left_out[f"ends of lines of over {_LONGEST_LINE:,} bytes"] += 1
    return row[:_LONGEST_LINE].decode("utf-8", "replace").rstrip()
