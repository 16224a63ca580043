"""Files that were made to harm: they draw in no other file, call nobody, and fill neither memory nor time.

For all that reads XML and PO, in `prepare` and in `translate`.
"""

from __future__ import annotations

import gzip
import io
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from dragoman.data.formats import reader, xml
from dragoman.data.formats.po import MOST_LINES
from dragoman.decode.documents import format_of
from dragoman.errors import DataError
from tests.facts import lacking, raising

SECRET = "secret words"


def read(path: Path) -> bytes:
    """As `prepare` does."""
    return b"".join(pair.source for pair in reader(path)(path, "en", "de", Counter()))


def fill(path: Path) -> bytes:
    """As `translate` does."""

    def same(texts: Sequence[str]) -> list[str]:
        return list(texts)

    out = io.BytesIO()
    format_of(path)(path, out, same, True)
    return out.getvalue()


def tmx(text: str, start: str = "") -> str:
    unit = f'<tu><tuv xml:lang="en"><seg>{text}</seg></tuv><tuv xml:lang="de"><seg>x</seg></tuv></tu>'
    return f"{start.replace('ROOT', 'tmx')}<tmx><body>{unit}</body></tmx>"


def xliff(text: str, start: str = "") -> str:
    unit = f"<trans-unit><source>{text}</source><target>x</target></trans-unit>"
    return f"{start.replace('ROOT', 'xliff')}<xliff><file><body>{unit}</body></file></xliff>"


WAYS: dict[str, tuple[Callable[..., str], str, Callable[[Path], bytes]]] = {
    "tmx": (tmx, "text.tmx", read),
    "xliff": (xliff, "text.xlf", read),
    "xliff to translate": (xliff, "text.xlf", fill),
}
every_way = pytest.mark.parametrize("way", WAYS)

_LAUGHS = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
_MANY = "".join(f'<!ENTITY % p{n + 1} "{f"%p{n};" * 10}">' for n in range(9))
_INCLUDE = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="secret" parse="text"/>'
# FILE is a file beside the document, HTTP an address on this machine.
OUTSIDE = {
    "an external entity": ('<!DOCTYPE ROOT [<!ENTITY x SYSTEM "secret">]>', "a &x; b"),
    "an external entity by address": ('<!DOCTYPE ROOT [<!ENTITY x SYSTEM "FILE">]>', "a &x; b"),
    "an external entity by http": ('<!DOCTYPE ROOT [<!ENTITY x SYSTEM "HTTP">]>', "a &x; b"),
    "a public entity": ('<!DOCTYPE ROOT [<!ENTITY x PUBLIC "y" "FILE">]>', "a &x; b"),
    "a parameter entity": ('<!DOCTYPE ROOT [<!ENTITY % p SYSTEM "secret"> %p;]>', "a &x; b"),
    "a parameter entity by http": ('<!DOCTYPE ROOT [<!ENTITY % p SYSTEM "HTTP"> %p;]>', "a &x; b"),
    "an external DTD": ('<!DOCTYPE ROOT SYSTEM "secret">', "a &x; b"),
    "an external DTD by http": ('<!DOCTYPE ROOT SYSTEM "HTTP">', "a &x; b"),
    "an external DTD in use": ('<!DOCTYPE ROOT PUBLIC "y" "HTTP" [<!ENTITY z "a">]>', "&z;"),
    "an inclusion": ("", _INCLUDE),
    "an inclusion by http": ("", _INCLUDE.replace('"secret"', '"HTTP"')),
    "a style sheet": ('<?xml-stylesheet href="HTTP"?>', "a"),
    "an unparsed entity": (
        '<!DOCTYPE ROOT [<!NOTATION n SYSTEM "n"><!ENTITY x SYSTEM "FILE" NDATA n>]>',
        "&x;",
    ),
}
SWELLING = {
    "a billion laughs": (f'<!DOCTYPE ROOT [<!ENTITY e0 "lol">{_LAUGHS}]>', "&e12;"),
    "parameters that laugh": (f'<!DOCTYPE ROOT [<!ENTITY % p0 "lol">{_MANY} <!ENTITY x "%p9;">]>', "&x;"),
    "one long entity, many times": (f'<!DOCTYPE ROOT [<!ENTITY e "{"a" * 50_000}">]>', "&e;" * 20_000),
    "an entity of tags": (f'<!DOCTYPE ROOT [<!ENTITY e "{"<g/>" * 10_000}">]>', "&e;" * 20_000),
    "an entity of itself": ('<!DOCTYPE ROOT [<!ENTITY a "&b;"><!ENTITY b "&a;">]>', "&a;"),
    "tags in tags": ("", "<g>" * 100_000),
}


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Somebody to call on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


@every_way
@pytest.mark.parametrize("case", OUTSIDE)
def test_nothing_outside_the_file_is_drawn_in(
    way: str, case: str, tmp_path: Path, server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write, name, take = WAYS[way]
    (tmp_path / "secret").write_text(f'<!ENTITY x "{SECRET}">')
    start, text = OUTSIDE[case]
    content = write(text, start).replace("FILE", (tmp_path / "secret").as_uri())
    (tmp_path / name).write_text(content.replace("HTTP", f"http://127.0.0.1:{server.getsockname()[1]}/x"))
    try:
        assert SECRET.encode() not in take(tmp_path / name)
    except DataError as error:
        assert error.path == str(tmp_path / name) and SECRET not in str(error)
    with pytest.raises(BlockingIOError):
        server.accept()


@every_way
@pytest.mark.parametrize("case", SWELLING)
def test_entities_that_swell_are_refused(way: str, case: str, tmp_path: Path) -> None:
    write, name, take = WAYS[way]
    start, text = SWELLING[case]
    (tmp_path / name).write_text(write(text, start))
    before = peak_bytes()
    with raising(DataError, f"{tmp_path / name}:1"):
        take(tmp_path / name)
    assert peak_bytes() - before < 100e6


@every_way
@pytest.mark.parametrize("place", ["in the text", "before the units"])
def test_a_small_file_that_becomes_millions_of_tags_is_refused(way: str, place: str, tmp_path: Path) -> None:
    write, name, take = WAYS[way]
    tags = "<hi/>" * (xml.MOST_OF_A_TREE[1] + 1)
    content = (
        write(tags)
        if place == "in the text"
        else write("a").replace("<body>", f"<header>{tags}</header><body>")
    )
    (tmp_path / name).write_bytes(gzip.compress(content.encode(), compresslevel=1))
    before = peak_bytes()
    with pytest.raises(DataError) as caught:
        take(tmp_path / name)
    assert caught.value.path == str(tmp_path / name)
    limits = [f"{most:,}" for _, most in (xml.MOST_OF_A_UNIT, xml.MOST_OF_A_TREE)]
    assert len(lacking(caught.value.what, *limits)) == 1, "of a unit, or of a file that is held whole"
    assert peak_bytes() - before < 200e6


def test_units_inside_a_source_do_not_double_with_every_level(tmp_path: Path) -> None:
    unit = "a"
    for _ in range(50):
        unit = f"<trans-unit><source>{unit}</source></trans-unit>"
    (tmp_path / "a.xlf").write_text(f"<xliff><file><body>{unit}</body></file></xliff>")
    assert len(fill(tmp_path / "a.xlf")) < 20_000


@pytest.mark.parametrize(
    "text", ["<" + "a" * 200_000, "%" + "0" * 200_000, "word" + "<br>" * 10_000 + "<b></b>" * 10_000]
)
def test_a_text_that_is_all_placeholder_takes_no_longer_than_another(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.po").write_text(f'msgid "word {text}"\nmsgstr ""\n')
    assert fill(tmp_path / "a.po")


@pytest.mark.parametrize("take", [read, fill])
@pytest.mark.parametrize(
    "content",
    [
        'msgid "a"\nmsgstr ""\n' + '"a"\n' * (MOST_LINES + 1),
        'msgid "a"\nmsgstr ""\n' + '"a"\n\n' * MOST_LINES,
        "# a\n" * (MOST_LINES + 1) + 'msgid "a"\nmsgstr "b"\n',
        '#~ "a"\n' * (MOST_LINES + 1),
    ],
)
def test_a_po_that_would_take_hours_to_join_is_refused(
    take: Callable[[Path], bytes], content: str, tmp_path: Path
) -> None:
    (tmp_path / "a.po").write_text(content)
    with raising(DataError, f"{MOST_LINES:,}") as caught:
        take(tmp_path / "a.po")
    assert caught.value.path == str(tmp_path / "a.po") and caught.value.line


@pytest.mark.parametrize("forms", ["21", "99999999", "9" * 5000])
def test_a_po_with_more_plural_forms_than_any_language_is_refused(forms: str, tmp_path: Path) -> None:
    header = f'msgid ""\nmsgstr "Plural-Forms: nplurals={forms}; plural=0;\\n"\n\n'
    (tmp_path / "a.po").write_text(header + 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n')
    with pytest.raises(DataError, match=r"a\.po: .*\bnplurals="):
        fill(tmp_path / "a.po")


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
