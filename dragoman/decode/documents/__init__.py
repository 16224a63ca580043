"""Documents whose targets are filled in, one format to a file; the name of a document tells which it is."""

from __future__ import annotations

from pathlib import Path

from dragoman.data.compression import SUFFIXES
from dragoman.data.files import without_compression
from dragoman.decode.documents import lines, po, tsv, xliff
from dragoman.decode.documents.document import Format, OutputWriter, Translate, UnitTally
from dragoman.errors import UsageError

__all__ = ["Format", "OutputWriter", "Translate", "UnitTally", "format_of", "is_plain"]

_FORMATS: dict[str, Format] = {
    ".tsv": tsv.fill,
    ".xlf": xliff.fill,
    ".xliff": xliff.fill,
    ".po": po.fill,
}
# Documents, subtitles and data whose suffixes are also codes of languages: .srt is Sauri, .ts is Tsonga.
_RATHER_FILES_THAN_LANGUAGES = frozenset(
    {"ass", "bak", "bin", "cfg", "csv", "doc", "dot", "log", "msg", "odt", "pot", "sgm", "sh", "srt"}
    | {"sub", "tex", "ts", "xls", "xml", "yml"}
)


def format_of(path: Path, plain: bool = False) -> Format:
    """What translates this file, by its suffix, or a line at a time if it is `plain`."""
    suffix = _suffix(path)
    if plain:
        return lines.fill
    if known := _FORMATS.get(suffix):  # before languages: .tsv is Tsaangi
        return known
    if suffix not in ("", ".txt") and not _is_language(suffix):
        raise UsageError(
            f"files of the kind {suffix} are not known. Known are plain text (.txt, no suffix, or a "
            f"language as in news.en), {', '.join(_FORMATS)}; each may be compressed ({', '.join(SUFFIXES)})",
            path=path,
            hint="convert it to one of these; with --plain each of its lines is translated as text",
        )
    return lines.fill


def is_plain(path: Path, plain: bool = False) -> bool:
    return format_of(path, plain) is lines.fill


def _is_language(suffix: str) -> bool:
    """`.de`, `.zh-Hans` and `.eng_Latn` are; `.html` and `.md` are not."""
    import langcodes  # here, as the other commands do without: its tables take 0.1 s to load

    name = suffix.removeprefix(".")
    return name not in _RATHER_FILES_THAN_LANGUAGES and langcodes.tag_is_valid(name)


def _suffix(path: Path) -> str:
    return Path(without_compression(path.name)).suffix.lower()
