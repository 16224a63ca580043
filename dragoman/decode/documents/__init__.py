"""Fills in the targets of documents: one file per format, chosen by the document's suffix."""

from __future__ import annotations

from pathlib import Path

from dragoman.data.compression import SUFFIXES
from dragoman.data.files import without_compression
from dragoman.decode.documents import languages, lines, po, tsv, xliff
from dragoman.decode.documents.document import Format, OutputWriter, Translate, UnitTally
from dragoman.errors import UsageError

__all__ = ["Format", "OutputWriter", "Translate", "UnitTally", "check_languages", "format_of", "is_plain"]

_FORMATS: dict[str, Format] = {
    ".tsv": tsv.fill,
    ".xlf": xliff.fill,
    ".xliff": xliff.fill,
    ".po": po.fill,
}
# Suffixes of documents, subtitles and data that are also language codes: .srt is Sauri, .ts is Tsonga.
_NOT_LANGUAGES = frozenset(
    {"ass", "bak", "bin", "cfg", "csv", "doc", "dot", "log", "msg", "odt", "pot", "sgm", "sh", "srt"}
    | {"sub", "tex", "ts", "xls", "xml", "yml"}
)


def format_of(path: Path, plain: bool = False) -> Format:
    """The function that translates this file, chosen by its suffix, or line by line if `plain`."""
    suffix = _suffix(path)
    if plain:
        return lines.fill
    if known := _FORMATS.get(suffix):  # before languages: .tsv is Tsaangi
        return known
    if suffix not in ("", ".txt") and not _is_language(suffix):
        raise UsageError(
            f"unknown file type {suffix}. Known are plain text (.txt, no suffix, or a "
            f"language as in news.en), {', '.join(_FORMATS)}; each may be compressed ({', '.join(SUFFIXES)})",
            path=path,
            hint="convert it to one of these, or use --plain to translate each of its lines as text",
        )
    return lines.fill


def check_languages(path: Path, model: tuple[str, str] | None, plain: bool = False) -> None:
    """Refuses a file that names other languages than the model's, if the model's are known."""
    named = {xliff.fill: xliff.languages, po.fill: po.languages}.get(format_of(path, plain))
    if model and named:
        languages.check(path, named(path), model)


def is_plain(path: Path, plain: bool = False) -> bool:
    return format_of(path, plain) is lines.fill


def _is_language(suffix: str) -> bool:
    """`.de`, `.zh-Hans` and `.eng_Latn` are; `.html` and `.md` are not."""
    import langcodes  # imported here: its tables take 0.1 s, and only this needs them

    name = suffix.removeprefix(".")
    return name not in _NOT_LANGUAGES and langcodes.tag_is_valid(name)


def _suffix(path: Path) -> str:
    return Path(without_compression(path.name)).suffix.lower()
