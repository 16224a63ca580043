"""The quick form: some inputs for every entrance. The large form is `python -m tests.fuzz --count 20000`."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from dragoman.errors import DataError
from tests.fuzz import driver, finds, mutate
from tests.fuzz.child import Find
from tests.fuzz.driver import Tally
from tests.fuzz.entrances import ENTRANCES, Entrance
from tests.fuzz.feeds import Opened

BY_NAME = {entrance.name: entrance for entrance in ENTRANCES}
KEPT = finds.kept()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with driver.workspace() as made:
        yield made


def run(entrance: Entrance, inputs: Sequence[int | bytes], folder: Path) -> tuple[list[Find], Tally]:
    *found, tally = driver.run(entrance, inputs, folder)
    assert isinstance(tally, Tally)
    return [find for find in found if isinstance(find, Find)], tally


@pytest.mark.parametrize("name", BY_NAME)
def test_only_our_own_errors_come_out(name: str, folder: Path) -> None:
    found, tally = run(BY_NAME[name], range(BY_NAME[name].quick), folder)
    assert not found, "\n".join(map(str, found))
    assert tally.inputs == BY_NAME[name].quick
    assert tally.counts["accepted"], "not even the seeds are accepted"


@pytest.mark.parametrize("name", KEPT)
def test_what_once_was_a_find_is_none_any_more(name: str, folder: Path) -> None:
    found, tally = run(BY_NAME[name], KEPT[name], folder)
    assert not found, "\n".join(map(str, found))
    assert tally.inputs == len(KEPT[name])


def test_a_number_always_makes_the_same_input() -> None:
    for kind, seed in (("bytes", b"abc"), ("text", b"a 1\nb"), ("json", b'{"a": [1]}'), ("toml", b"a = 1")):
        made = [mutate.make("x", kind, [seed], number) for number in range(50)]  # type: ignore[arg-type]
        assert made == [mutate.make("x", kind, [seed], number) for number in range(50)]  # type: ignore[arg-type]
        assert made[0] == seed
        assert len(set(made)) > 20


# --- readers broken on purpose: the driver must tell ------------------------------------------------------


def broken(shared: Path, own: Path) -> Opened:
    """Does what its input says."""

    def feed(data: bytes) -> None:
        match data:
            case b"accept":
                pass
            case b"refuse":
                raise DataError("is wrong", path=own / "a")
            case b"refuse without a name":
                raise DataError("is wrong")
            case b"ask for much":
                try:
                    bytearray(1 << 40)
                except MemoryError:
                    raise DataError("is wrong", path=own / "a") from None
            case b"take much":
                bytearray(b"x" * (600 << 20))
            case b"system":
                (own / "missing").read_bytes()
            case b"raise":
                raise KeyError("a")
            case b"in thread":
                thread = threading.Thread(target={}.__getitem__, args=("a",))
                thread.start()
                time.sleep(5)
            case b"crash":
                ctypes.string_at(0)
            case b"compute":
                while True:
                    pass

    return [b"accept"], feed


BROKEN = Entrance("broken", "bytes", broken, slow_seconds=0.3)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"refuse without a name", "no file named"),
        (b"ask for much", "memory refused"),
        (b"take much", "memory"),
        (b"raise", "KeyError"),
        (b"in thread", "KeyError"),
        (b"crash", "killed by SIGSEGV"),
        (b"compute", "TooSlow"),
    ],
)
def test_a_broken_reader_is_a_find_and_the_inputs_after_it_are_run(
    data: bytes, kind: str, folder: Path
) -> None:
    found, tally = run(BROKEN, [b"accept", data, b"refuse", b"system"], folder)
    assert [find.kind for find in found] == [kind]
    assert tally.counts == {"accepted": 1, "refused": 1, "system": 1, "find": 1}


def test_a_reader_that_hangs_is_a_find(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "STUCK_SECONDS", 1.0)  # of the parent alone: the child waits for longer
    found, _ = run(Entrance("hangs", "bytes", hangs), [b"", b""], folder)
    assert [find.kind for find in found] == ["hangs"]


def hangs(shared: Path, own: Path) -> Opened:
    return [b""], lambda data: threading.Event().wait()


def test_a_find_is_reported_once_with_the_number_that_repeats_it(folder: Path) -> None:
    found, tally = run(Entrance("raises", "bytes", raises), range(3, 30), folder)
    (find,) = found
    assert tally.counts["find"] == tally.times[find.key] > 1
    assert len(find.data) != 4
    again, _ = run(Entrance("raises", "bytes", raises), [find.number], folder)
    assert again == found


def raises(shared: Path, own: Path) -> Opened:
    """Takes short input only."""

    def feed(data: bytes) -> None:
        if len(data) != 4:
            raise ValueError("four bytes")

    return [b"abcd"], feed
