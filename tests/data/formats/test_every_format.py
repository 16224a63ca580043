"""What holds for each reader of parallel text: nothing lost, and no error but our own."""

import gzip
import lzma
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

import polib
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data import compression, corpus
from dragoman.data.corpus import Corpus, Files
from dragoman.errors import DragomanError

Pairs = list[tuple[str, str]]


def tsv(pairs: Pairs) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def tmx(pairs: Pairs) -> str:
    units = "".join(
        f'<tu><tuv xml:lang="de"><seg>{escape(target)}</seg></tuv>\n'
        f'<tuv xml:lang="en"><seg>{escape(source)}</seg></tuv></tu>\n'
        for source, target in pairs
    )
    return f'<?xml version="1.0"?>\n<tmx version="1.4"><header/><body>\n{units}</body></tmx>'


def xliff_1(pairs: Pairs) -> str:
    units = "".join(
        f"<trans-unit><source>{escape(source)}</source>\n<target>{escape(target)}</target></trans-unit>\n"
        for source, target in pairs
    )
    return (
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
        f'<file source-language="en" target-language="de"><body><group>{units}</group></body></file></xliff>'
    )


def xliff_2(pairs: Pairs) -> str:
    segments = "".join(
        f"<segment><source>{escape(source)}</source>\n<target>{escape(target)}</target></segment>\n"
        for source, target in pairs
    )
    return (
        '<xliff version="2.0" srcLang="en" trgLang="de" xmlns="urn:oasis:names:tc:xliff:document:2.0">'
        f"<file><unit>{segments}</unit></file></xliff>"
    )


def po(pairs: Pairs) -> str:
    catalogue = polib.POFile(wrapwidth=0)
    catalogue.metadata = {"Language": "de", "Content-Type": "text/plain; charset=UTF-8"}
    for source, target in pairs:
        catalogue.append(polib.POEntry(msgid=source, msgstr=target))
    return str(catalogue)


WRITERS: dict[str, tuple[str, Callable[[Pairs], str]]] = {
    "tsv": ("text.tsv", tsv),
    "tmx": ("text.tmx", tmx),
    "xliff 1.2": ("text.xlf", xliff_1),
    "xliff 2.0": ("text.xliff", xliff_2),
    "po": ("text.po", po),
}
COMPRESS = [lambda data: data, gzip.compress, lzma.compress, zstandard.ZstdCompressor().compress]

# No control characters: XML cannot hold them, polib's writer does not escape them all. U+2028, U+0085 and
# their like are in.
letters = st.characters(exclude_categories=["Cs", "Cc"]).filter(lambda c: c not in "\ufeff\ufffe\uffff")
sentences = (
    st.text(letters | st.sampled_from('\u2028\u2029\u0085 &<>"\\'), min_size=1)
    .map(lambda text: text.strip(" "))
    .filter(bool)
)
some_pairs = st.lists(st.tuples(sentences, sentences), max_size=8, unique_by=lambda pair: pair[0])
every_format = pytest.mark.parametrize("kind", WRITERS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("formats")


def read(path: Path) -> list[corpus.RawPair]:
    files = Files(path)
    return list(corpus.read(Corpus("text", "en", "de", (files,)), files, Counter()))


def read_or_refuse(path: Path) -> None:
    try:
        read(path)
    except DragomanError as error:
        assert error.path == str(path)
        assert error.hint


@every_format
@given(pairs=some_pairs, compress=st.sampled_from(COMPRESS))
def test_pairs_come_back_as_written_and_in_order(
    kind: str, folder: Path, pairs: Pairs, compress: Callable[[bytes], bytes]
) -> None:
    name, write = WRITERS[kind]
    (folder / name).write_bytes(compress(write(pairs).encode()))
    got = read(folder / name)
    assert [(pair.source.decode(), pair.target.decode()) for pair in got] == pairs
    assert [pair.line for pair in got] == sorted(pair.line for pair in got)


@every_format
@given(content=st.binary() | st.text().map(str.encode))
def test_arbitrary_bytes_are_refused_with_our_own_error(kind: str, folder: Path, content: bytes) -> None:
    path = folder / WRITERS[kind][0]
    path.write_bytes(content)
    read_or_refuse(path)


PIECES = [
    b"\x00", b"\xff\xfe", b"<", b">", b"&", b"&x;", b"<tu>", b"</tu>", b"<seg/>", b"<target/>", b"<!--",
    b"<!DOCTYPE tmx [<!ENTITY x SYSTEM 'x'>]>", b"<!DOCTYPE a [<!ENTITY % p SYSTEM 'p'> %p;]>", b"-->",
    b'"', b"\\", b"\n", b"\t", b"msgid", b"msgstr[9]", b"msgid_plural \"x\"\n", b"#~ ", b"#, fuzzy\n",
    b"<![CDATA[", b"charset=utf-7", b"charset=rot13", b"charset=utf-16", b"\x1f\x8b", b"\x28\xb5\x2f\xfd",
    b"\xe4",
]  # fmt: skip


@every_format
@given(data=st.data())
def test_damaged_files_are_refused_with_our_own_error(kind: str, folder: Path, data: st.DataObject) -> None:
    name, write = WRITERS[kind]
    content = bytearray(write([("a house", "ein Haus"), ('two "trees"', "zwei & <Bäume>")] * 2).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content)))
        length = data.draw(st.integers(0, 30))
        content[place : place + length] = data.draw(st.sampled_from(PIECES) | st.binary(max_size=8))
    (folder / name).write_bytes(content)
    read_or_refuse(folder / name)


@every_format
def test_a_truncated_gzip_says_the_file_and_the_line(kind: str, folder: Path) -> None:
    name, write = WRITERS[kind]
    path = folder / name
    pairs = [(f"house {number * 7919 % 10007}", f"Haus {number * 104729 % 1009}") for number in range(5000)]
    compressed = gzip.compress(write(pairs).encode())
    path.write_bytes(compressed[: len(compressed) // 2])
    with pytest.raises(DragomanError) as caught:
        read(path)
    assert caught.value.path == str(path) and caught.value.line is not None
    assert isinstance(caught.value.__cause__, compression.Damaged)
