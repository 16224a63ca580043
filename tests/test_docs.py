"""The documentation holds: links lead somewhere, and every command line in it is one that dragoman takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from dragoman.cli import app
from tools import settings_page

HERE = Path(__file__).parents[1]
PAGES = sorted([*HERE.glob("*.md"), *HERE.glob("docs/*.md"), *HERE.glob("benchmarks/*.md")])
PROGRAM = typer.main.get_command(app)
LINK = re.compile(r"\[[^][]*\]\(([^)\s]+)\)")
INLINE = re.compile(r"`(dragoman [a-z][^`]*)`")


@dataclass(frozen=True)
class CommandLine:
    page: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(HERE)}:{self.line}: {self.text}"

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)[1:]


def anchors(page: Path) -> set[str]:
    """What GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ +(.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def whole_command_lines() -> Iterator[CommandLine]:
    """Those that stand in an indented block, to be typed as they are."""
    for page in PAGES:
        lines = page.read_text().splitlines()
        for number, line in enumerate(lines, 1):
            text = line.strip().removeprefix("$ ")
            is_advice = "CONFIG" in text  # of a report, to be filled in
            if not re.match(r"dragoman [a-z]", text) or not line.startswith("    ") or is_advice:
                continue
            following = number
            while text.endswith("\\"):
                text = f"{text[:-1]}{lines[following].strip()}"
                following += 1
            yield CommandLine(page, number, text)


def mentioned_command_lines() -> Iterator[CommandLine]:
    """Those in running text, which may leave things out."""
    for page in PAGES:
        for number, line in enumerate(page.read_text().splitlines(), 1):
            for text in INLINE.findall(line):
                yield CommandLine(page, number, text)


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    command: Any = PROGRAM
    while hasattr(command, "commands"):
        assert words and words[0] in command.commands, f"no such command: {' '.join(words)}"
        command, words = command.commands[words[0]], words[1:]
    return command, words


def test_the_page_of_settings_is_the_one_that_the_config_makes() -> None:
    assert (HERE / "docs" / "settings.md").read_text() == settings_page.page()


def test_every_relative_link_leads_to_a_file_and_heading_that_exist() -> None:
    broken = []
    for page in PAGES:
        for link in LINK.findall(page.read_text()):
            path, _, anchor = link.partition("#")
            if "://" in link:
                continue
            target = (page.parent / path) if path else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{page.relative_to(HERE)}: {link}")
    assert not broken


@pytest.mark.parametrize("line", [*whole_command_lines()], ids=str)
def test_every_command_line_to_be_typed_is_one_that_parses(line: CommandLine) -> None:
    command, words = command_of(line.words)
    with command.make_context(command.name, words):
        pass


@pytest.mark.parametrize("line", [*mentioned_command_lines()], ids=str)
def test_every_command_mentioned_exists_with_its_options(line: CommandLine) -> None:
    command, words = command_of(line.words)
    known = {option for parameter in command.params for option in parameter.opts} | {"--help", "--debug"}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("name", sorted(PROGRAM.commands))  # type: ignore[attr-defined]
def test_every_command_has_a_page_that_shows_it(name: str) -> None:
    assert any(line.page.name == f"{name}.md" and line.words[0] == name for line in whole_command_lines())


def test_the_index_leads_to_every_page() -> None:
    index = HERE / "docs" / "index.md"
    linked = set(LINK.findall(index.read_text()))
    assert {page.name for page in index.parent.glob("*.md")} <= linked | {index.name}
