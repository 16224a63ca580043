"""Writes docs/settings.md: every config key with its meaning, default and range, from dragoman/config.py.

python tools/settings_page.py > docs/settings.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from dragoman.config import Preparation, Section, Training

PAGE = """# Settings

Every key of a config file, with its meaning, its default and what it may be. `python tools/settings_page.py >
docs/settings.md` writes this page from `dragoman/config.py`; a test fails when the two differ.

`--set section.key=value` sets one key on the command line and overrides the file. An unknown key is an error
that names the nearest known one. The settings in use are saved with the data set or the run.

## `dragoman prepare`

{prepare}
## `dragoman train`

{train}"""


FAR = 10**9  # upper limits from here on only prevent overflow, so they are not shown


def page() -> str:
    return PAGE.format(prepare=_tables(Preparation), train=_tables(Training))


def _tables(settings: type[Section]) -> str:
    return "\n".join(_table(name, section) for name, section in _sections(settings))


def _sections(settings: type[Section]) -> Iterator[tuple[str, type[Section]]]:
    """Yield dotted name and type of each group of keys, starting with keys outside any section."""
    if any(not _is_section(field) for field in settings.model_fields.values()):
        yield "", settings
    for name, field in settings.model_fields.items():
        if _is_section(field):
            assert field.annotation
            yield name, field.annotation


def _is_section(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, Section)


def _table(name: str, section: type[Section]) -> str:
    lines = [f"### {name}", "", f"{(section.__doc__ or '').strip()}", ""] if name else []
    lines += ["| key | default | may be | meaning |", "| --- | --- | --- | --- |"]
    for key, field in section.model_fields.items():
        if not _is_section(field):
            dotted = f"{name}.{key}" if name else key
            cells = (f"`{dotted}`", _default(field.default), _range(field), field.description or "")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _default(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, bool | str):
        return f"`{str(value).lower()}`" if isinstance(value, bool) else f'`"{value}"`'
    return f"`{value}`"


def _range(field: FieldInfo) -> str:
    """The allowed values or the range, in words."""
    kinds = [kind for kind in (field.annotation, *get_args(field.annotation)) if kind is not type(None)]
    words = [f"`{value}`" for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)]
    for kind in kinds:
        if get_origin(kind) is Annotated:  # a number or a word
            number, rules = get_args(kind)
            return ", ".join([*words, _numbers(number is int, rules.metadata)])
    if words:
        return ", ".join(words)
    if bool in kinds:
        return "`true`, `false`"
    return _numbers(int in kinds, field.metadata)


def _numbers(is_whole: bool, rules: Iterable[Any]) -> str:
    ends = []
    for rule in rules:
        for name, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<")):
            end = getattr(rule, name, None)
            if end is not None and end < FAR:
                ends.append(f"{sign} {_figure(end)}")
    return ", ".join(["whole number" if is_whole else "number", *ends])


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


if __name__ == "__main__":
    print(page(), end="")
