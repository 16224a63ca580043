"""Recognises files by their content and passes them to the readers.

A log often holds the output of several programs, so each line goes to the reader that recognises it. One
regular expression with the beginnings of all known lines keeps that fast. Other lines are not kept.
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
_LONGEST_LINE = 20_000  # bytes of a line that are read
_CHECKPOINT_PARTS = re.compile(r"\.(data-\d+-of-\d+|meta)$")


class LineReader(Protocol):
    """A reader of one program's lines. `is_recognised` is true once it has seen such a line."""

    is_recognised: bool

    def line(self, text: str) -> None: ...
    def finish(self) -> None: ...


def read(paths: Sequence[Path]) -> Gathered:
    """Everything that the files hold. Notes each file that is not recognised; raises if none is."""
    gathered = Gathered()
    damaged: list[LogError] = []
    for path in sorted(_files(paths), key=_priority):
        try:
            kind = _read_one(path, gathered)
        except LogError as error:  # the other files may be enough
            damaged.append(error)
            gathered.notes.append(f"{error.where}: {error.what}")
            continue
        finally:
            gathered.note_what_was_left_out(path)
        if kind:
            gathered.file_kinds[str(path)] = kind
        else:
            gathered.notes.append(_nothing(path))
    if not gathered.file_kinds and damaged:
        raise damaged[0]
    if not gathered.file_kinds:
        hint = "give the log of the training itself, or give facts as options (dragoman diagnose --help)"
        raise LogError(_nothing(*paths), hint=hint)
    return gathered


def _nothing(*paths: Path) -> str:
    known = ", ".join(module.LOOKS_FOR for module in LOOKED_FOR)
    return f"nothing recognised in {', '.join(map(str, paths))}: diagnose reads {known}"


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """The given files, and the files with known names in the given folders."""
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
        yield from indexes[-1:]  # only the newest checkpoint; the others are like it
        yield from states[-1:]  # only the longest history, which includes the others
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
    """Whether a finer file exists: fairseq writes curves per epoch (train) and per interval (train_inner)."""
    folder = path.parent
    return "tfevents" in path.name and folder.name == "train" and (folder.parent / "train_inner").is_dir()


def _checkpoint_step(path: Path) -> int:
    match = re.search(r"-(\d+)\.index$", path.name)
    return int(match[1]) if match else -1


def _priority(path: Path) -> int:
    """Sorts logs before TensorBoard curves, because a log describes the steps in more detail."""
    return 1 if "tfevents" in path.name else 0


def _read_one(path: Path, gathered: Gathered) -> str | None:
    """Reads a file and returns its kind; None if it is not recognised."""
    if path.is_dir():
        return None
    start, lines = head(path), Lines(path)
    if tfcheckpoint.is_one(path):
        tfcheckpoint.read(path, gathered)
        return "TensorFlow checkpoint index"
    if _CHECKPOINT_PARTS.search(path.name):
        index = path.with_name(_CHECKPOINT_PARTS.sub("", path.name) + ".index")
        is_known = str(index) in gathered.file_kinds or index.exists()
        return "part of a TensorFlow checkpoint" if is_known else None
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
    line_methods = {f"r{number}": reader.line for number, reader in enumerate(readers)}
    failures = faults.Faults(gathered)
    for piece, rows in lines.pieces():
        rows = unwrapped(piece, rows)
        matches = list(map(_MATCH, rows))
        # Search the words of faults in all other lines at once, because few pieces of a log hold any.
        others = b"\n".join(
            [row for row, match in zip(rows, matches, strict=True) if not match and row[:3] != b"***"]
        )
        words = [word for word in faults.WORDS if word in others]
        for row, match in zip(rows, matches, strict=True):
            if match:
                line_methods[match.lastgroup or ""](_decoded(row, gathered))
            elif words and row[:3] != b"***" and any(word in row for word in words):
                failures.line(_decoded(row, gathered))
    for reader in (*readers, failures):
        reader.finish()
    names = [name for name, reader in zip(_NAMES, readers, strict=True) if reader.is_recognised]
    names += ["errors"] if failures.is_recognised else []
    return ", ".join(names) or None


def _decoded(row: bytes, gathered: Gathered) -> str:
    if len(row) > _LONGEST_LINE:
        gathered.left_out[f"ends of lines with over {_LONGEST_LINE:,} bytes"] += 1
    return row[:_LONGEST_LINE].decode("utf-8", "replace").rstrip()
