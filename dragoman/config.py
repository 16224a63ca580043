"""Settings: TOML into frozen models, `--set` on top, checked before anything starts, written back whole."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import tomlkit
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman.errors import ConfigError


class Section(BaseModel):
    """A group of settings. Frozen: what a run was told stays what it was told."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# --- dragoman prepare -------------------------------------------------------------------------------------


class CleanRules(Section):
    """Which training pairs are dropped. Held-out pairs are never dropped: that would change the test."""

    min_words: int = Field(1, ge=1, description="fewest words on either side, split at white space")
    max_words: int = Field(80, ge=1, description="most words on either side")
    max_ratio: float = Field(9.0, gt=1, description="longer side over shorter side, in words")
    drop_control_characters: bool = Field(True, description="NUL, U+2028, U+0085 and their like")
    drop_identical: bool = Field(True, description="source equals target")
    drop_duplicates: bool = Field(True, description="the same pair again")
    drop_leakage: bool = Field(True, description="a source that also stands in dev or test")
    check_script: bool = Field(False, description="most letters are of the language's script")
    check_language: bool = Field(False, description="the language is recognised (needs dragoman[language])")
    normalise: Literal["NFC", "none"] = Field("NFC", description="Unicode form of all text")


class VocabularySettings(Section):
    """How subwords are learnt."""

    size: int = Field(32_768, ge=16, description="pieces, the four special ones included")
    sample_pairs: int = Field(250_000, ge=1, description="pairs to learn from, drawn by seed (about 1 GB)")
    character_coverage: float = Field(0.9995, gt=0, le=1, description="share of characters that get a piece")


class HeldOut(Section):
    """What is set aside when no dev set is given."""

    pairs: int = Field(2_000, ge=1, description="pairs held out of training as dev, if none is given")
    most_share: float = Field(0.05, gt=0, lt=1, description="but never more than this share of all pairs")


class Preparation(Section):
    """Everything `dragoman prepare` can be told beside its files."""

    seed: int = Field(1, ge=0, description="of the vocabulary sample and the held-out pairs")
    clean: CleanRules = CleanRules()
    vocabulary: VocabularySettings = VocabularySettings()
    held_out: HeldOut = HeldOut()


# --- dragoman train ---------------------------------------------------------------------------------------


class Model(Section):
    """The Transformer's measures. The defaults are Transformer-base."""

    width: int = Field(512, ge=8, description="of every layer's input and output")
    heads: int = Field(8, ge=1, description="attention heads; must divide the width")
    encoder_layers: int = Field(6, ge=1)
    decoder_layers: int = Field(6, ge=1)
    feedforward: int = Field(2048, ge=1, description="inner width of the feed-forward blocks")
    dropout: float = Field(0.1, ge=0, lt=1, description="after embedding and at the end of each block")
    attention_dropout: float = Field(0.1, ge=0, lt=1, description="on attention weights")
    feedforward_dropout: float = Field(0.1, ge=0, lt=1, description="inside the feed-forward blocks")


# --- reading and writing ----------------------------------------------------------------------------------

M = TypeVar("M", bound=Section)


def load(model: type[M], path: Path | None = None, overrides: Sequence[str] = ()) -> M:
    """The settings of a file (or the defaults), with `key=value` overrides on top."""
    text = _read(path) if path else ""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not valid TOML: {error}", path=path) from None
    for override in overrides:
        _apply(values, override)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _explain(error, model, path, text, overrides) from None


def write(settings: Section, path: Path) -> None:
    """The settings as TOML, every one of them, each with its meaning beside it."""
    path.write_text(tomlkit.dumps(_document(settings)), encoding="utf-8")


def flat(settings: Section, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting under its dotted name."""
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, Section):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError("no such config file", path=path, hint="give the path of a .toml file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read as text: {error}", path=path) from None


def _apply(values: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key:
        raise ConfigError(f"--set {override}: expected key=value", hint="for example --set train.steps=1000")
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        value = text  # a bare word is a string: --set sync.mode=diloco
    *sections, name = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"--set {override}: {section} is a value, not a section")
    values[name] = value


def _explain(
    error: ValidationError, model: type[Section], path: Path | None, text: str, overrides: Sequence[str]
) -> ConfigError:
    """Pydantic's findings as one error: the key, what was found, what was expected, the nearest known key."""
    overridden = {override.partition("=")[0] for override in overrides}
    messages = []
    first_line = None
    for finding in error.errors():
        key = ".".join(str(part) for part in finding["loc"])
        if finding["type"] == "extra_forbidden":
            messages.append(f"unknown key {key}{_nearest(key, model)}")
        elif key:
            messages.append(f"{key} = {finding['input']!r}: {_lower(finding['msg'])}")
        else:
            messages.append(_lower(finding["msg"].removeprefix("Value error, ")))
        if key not in overridden:
            first_line = first_line or _line_of(text, finding["loc"])
    from_set = bool(overridden) and first_line is None
    return ConfigError("; ".join(messages), path="--set" if from_set else path, line=first_line)


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]


def _nearest(key: str, model: type[Section]) -> str:
    known = [name for name, _ in flat(model.model_construct())]
    sections = {name.rpartition(".")[0] for name in known} - {""}
    match = difflib.get_close_matches(key, [*known, *sections], n=1, cutoff=0.5)
    if not match:  # right name, wrong section
        match = [name for name in known if name.rpartition(".")[2] == key.rpartition(".")[2]][:1]
    return f" (did you mean {match[0]}?)" if match else ""


def _line_of(text: str, location: tuple[Any, ...]) -> int | None:
    """The line of a file on which a key stands, to point at it."""
    *sections, name = (str(part) for part in location) if location else ("",)
    wanted, current = ".".join(sections), ""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            current = stripped.strip("[]").strip()
            if current == name and not wanted:
                return number
        elif current == wanted and stripped.split("=")[0].strip() == name:
            return number
    return None


def _document(settings: Section) -> tomlkit.TOMLDocument:
    document = tomlkit.document()
    _fill(document, settings)
    return document


def _fill(table: Any, settings: Section) -> None:
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if value is None:  # TOML has no null: an absent key is the default
            continue
        if isinstance(value, Section):
            section = tomlkit.table()
            _fill(section, value)
            table.add(name, section)
        else:
            item = tomlkit.item(value)
            if field.description:
                item.comment(field.description)
            table.add(name, item)
