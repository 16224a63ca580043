"""Files that are damaged or made up: an answer or our error with the file's name, and never anything else."""

from __future__ import annotations

import gzip
import os
import random
import re
from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]

from benchmarks import csv_runs
from dragoman.errors import DragomanError, UsageError
from dragoman.foreign import show
from dragoman.foreign.answers import Diagnosis, diagnose
from dragoman.foreign.facts import Given
from tests.facts import failed
from tests.foreign import logs, test_fairseq, test_nmon, test_nvidia, test_tfcheckpoint

GIVEN = Given(machines=2, link="1gbit", gpu="V100", batch=256, params=60_000_000)


def events(late: float | None = None) -> bytes:
    """A TensorBoard file, with checksums that nobody looks at; one event may have a time of its own."""
    data = b""
    messages = [Event(wall_time=1.6e9, file_version="brain.Event:2")]
    for step in range(0, 300, 10):
        time = late if late and step == 150 else 1.6e9 + 2 * step
        values = {"train_loss": 5 - step / 500, "learning_rate": 1e-3, "eval_loss": 2 + 100 / (step + 1)}
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=v) for tag, v in values.items()])
        messages.append(Event(step=step, wall_time=time, summary=summary))
    for message in messages:
        body = message.SerializeToString()
        data += len(body).to_bytes(8, "little") + b"crc_" + body + b"crc_"
    return data


CSV = "run,n_ranks,nodes_x_gpus,hours,steps_done,sec_per_step_written,requested_network,gpu\n" + (
    "a,4,2x2,23h 36m,50k,1.7 s,1 Gbps,V100\nb,,2 machines,24,100k,0.6 steps/s,1000,P100\n"
)
FILES = {
    "nohup.out": logs.openseq2seq(1000).encode(),
    "nohup.out.gz": gzip.compress(logs.openseq2seq(1000).encode()),
    "fairseq.log": test_fairseq.log().encode(),
    "json.log": test_fairseq.log(as_json=True).encode(),
    "trainer_state.json": (Path(__file__).parent / "trainer_state.json").read_bytes(),
    "events.out.tfevents.1": events(),
    "a1.nmon": test_nmon.recording([200_210.0] * 9).encode(),
    "smi.log": (test_nvidia.TABLE + test_nvidia.DMON).encode(),
    "query.log": test_nvidia.CSV.encode(),
    "model.ckpt-1.index": test_tfcheckpoint.table(test_tfcheckpoint.checkpoint(True)),
    "runs.csv": CSV.encode(),
}
NUMBERS = (
    b"inf",
    b"-inf",
    b"nan",
    b"9" * 5000,
    b"1e308",
    b"-1",
    b"0",
    b"1e-320",
    b"99999999999999999999",
    b"",
)
WORDS = (b"null", b"{}", b"[[]]", b'"x"', b"true", b"\0", b"\xff\xfe", b"\n", b" " * 500, b"'", b"[" * 2000)


def damaged(data: bytes, dice: random.Random) -> bytes:
    """With some of its bytes, lines or numbers changed."""
    for _ in range(dice.choice((1, 1, 3, 20))):
        at = dice.randrange(len(data) + 1)
        way = dice.randrange(7)
        if way == 0:
            data = data[:at]
        elif way == 1:
            data = data[:at] + dice.randbytes(dice.choice((1, 4, 40))) + data[at + 1 :]
        elif way == 2:
            data = data[:at] + dice.choice(WORDS + NUMBERS) + data[at:]
        elif way == 3:
            lines = data.splitlines(keepends=True)
            dice.shuffle(lines)
            data = b"".join(lines[: dice.choice((len(lines), len(lines) // 2))])
        elif way == 4:
            data = data[:at] + data[max(0, at - 500) :]
        else:  # most often: it comes closest to what a program would write
            places = list(re.finditer(rb"\d+(?:\.\d+)?", data))
            if places:
                place = dice.choice(places)
                data = data[: place.start()] + dice.choice(NUMBERS) + data[place.end() :]
    return data


def read_whole(path: Path, with_page: bool = False) -> None:
    """As the command does, to the last word that is shown."""
    if path.suffix == ".csv":
        for _, made in csv_runs.read(path, GIVEN):
            checked(made)
            show.diagnosis(made, True, None)
        return
    answered = diagnose([path], GIVEN)
    checked(answered)
    show.diagnosis(answered, True, path.with_name("page.html") if with_page else None)


def checked(made: Diagnosis) -> None:
    assert not failed(made.findings)


def answers_or_names(path: Path) -> None:
    try:
        read_whole(path)
    except DragomanError as error:
        assert path.name in str(error), error


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_answered_or_named(name: str, tmp_path: Path, capsys) -> None:
    read_whole(logs.written(tmp_path, FILES[name], name), with_page=True)
    dice = random.Random(name)
    for _ in range(int(os.environ.get("DRAGOMAN_FUZZ", "5"))):
        answers_or_names(logs.written(tmp_path, damaged(FILES[name], dice), name))


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    for path in (tmp_path / "pipe.log", Path("/dev/zero"), tmp_path / "absent"):
        for read in (lambda path: diagnose([path], Given()), lambda path: csv_runs.read(path, Given())):
            with pytest.raises(UsageError, match=path.name):
                read(path)
    with pytest.raises(UsageError):
        csv_runs.read(tmp_path, Given())


@pytest.mark.parametrize(
    "text",
    [
        '{"best_metric": null, "log_history": ' + "[" * 100_000,
        '{"best_metric": null, "log_history": [], "global_step": ' + "9" * 5000 + "}",
        '{"best_metric": null, "log_history": [[], 3, {"step": [], "loss": {}}], "global_step": "a"}',
        '{"log_history": {"a": 1}, "global_step": 1e999, "max_steps": [], "total_flos": -1}',
    ],
    ids=["deep", "many digits", "wrong types", "infinite"],
)
def test_a_state_with_anything_in_it_is_answered_or_named(text: str, tmp_path: Path) -> None:
    answers_or_names(logs.written(tmp_path, text, "trainer_state.json"))
