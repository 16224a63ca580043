"""Settings: TOML into frozen models, `--set` on top, checked before anything starts, written back whole."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import tomlkit
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dragoman.bounds import WIDEST_BEAM
from dragoman.content import read_whole
from dragoman.errors import ConfigError
from dragoman.exchange_way import LOCAL_STEPS, AskedMode, Wire

_LARGEST_BYTES = 2**20  # of a config file


class Section(BaseModel):
    """A group of settings. Frozen: what a run was told stays what it was told."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


# Upper ends of what can be asked for. They are no advice: past them no machine follows, or numbers overflow.
_MOST = 10**12  # of anything that is counted over a whole run or corpus
_MOST_SEED = 2**63 - 1  # TOML's and torch's largest whole number
_MOST_WIDTH = 2**17
_MOST_FLOAT = 1e38  # single precision
_LONGEST_SECONDS = 7 * 86_400.0


# --- dragoman prepare -------------------------------------------------------------------------------------


class CleanRules(Section):
    """Which training pairs are dropped. Held-out pairs are never dropped: that would change the test."""

    min_words: int = Field(1, ge=1, le=_MOST, description="fewest words on either side, split at white space")
    max_words: int = Field(80, ge=1, le=_MOST, description="most words on either side")
    max_ratio: float = Field(9.0, gt=1, le=1e6, description="longer side over shorter side, in words")
    drop_control_characters: bool = Field(True, description="NUL, U+2028, U+0085 and their like")
    drop_identical: bool = Field(True, description="source equals target")
    drop_duplicates: bool = Field(True, description="the same pair again")
    drop_leakage: bool = Field(True, description="a source that also stands in dev or test")
    check_script: bool = Field(False, description="most letters are of the language's script")
    check_language: bool = Field(False, description="the language is recognised (needs dragoman[language])")
    normalise: Literal["NFC", "none"] = Field("NFC", description="Unicode form of all text")

    @model_validator(mode="after")
    def _limits_fit(self) -> Self:
        if self.min_words > self.max_words:
            raise ValueError(f"min_words {self.min_words} is more than max_words {self.max_words}")
        return self


class VocabularySettings(Section):
    """How subwords are learnt."""

    size: int | None = Field(
        None,
        ge=16,
        le=10**6,
        description="pieces, the four special ones included; absent: as many as suit the corpus",
    )
    sample_pairs: int = Field(
        250_000, ge=1, le=_MOST, description="pairs to learn from, drawn by seed (about 1 GB)"
    )
    rarest_character: float = Field(
        1e-6, ge=0, lt=1, description="share of the text that a character must have to get a piece"
    )


class HeldOutSettings(Section):
    """What is set aside when no dev set is given."""

    pairs: int = Field(
        2_000, ge=1, le=_MOST, description="pairs held out of training as dev, if none is given"
    )
    most_share: float = Field(0.05, gt=0, lt=1, description="but never more than this share of all pairs")


class Preparation(Section):
    """Everything `dragoman prepare` can be told beside its files."""

    seed: int = Field(1, ge=0, le=_MOST_SEED, description="for the vocabulary sample and the held-out pairs")
    clean: CleanRules = CleanRules()
    vocabulary: VocabularySettings = VocabularySettings()
    held_out: HeldOutSettings = HeldOutSettings()


# --- dragoman train ---------------------------------------------------------------------------------------


class Model(Section):
    """The Transformer's measures. The defaults are Transformer-base."""

    width: int = Field(512, ge=8, le=_MOST_WIDTH, description="of every layer's input and output")
    heads: int = Field(8, ge=1, le=_MOST_WIDTH, description="attention heads; must divide the width")
    encoder_layers: int = Field(6, ge=1, le=1_000, description="layers that read the source")
    decoder_layers: int = Field(6, ge=1, le=1_000, description="layers that write the translation")
    feedforward: int = Field(2048, ge=1, le=_MOST_WIDTH, description="inner width of the feed-forward blocks")
    dropout: float = Field(0.1, ge=0, lt=1, description="after embedding and at the end of each block")
    attention_dropout: float = Field(0.1, ge=0, lt=1, description="on attention weights")
    feedforward_dropout: float = Field(0.1, ge=0, lt=1, description="inside the feed-forward blocks")

    @model_validator(mode="after")
    def _heads_fit(self) -> Self:
        if self.width % self.heads or self.width % 2:
            raise ValueError(f"width {self.width} must be even and a multiple of heads {self.heads}")
        return self


class Data(Section):
    """How much a step holds. The step does not depend on the number of ranks."""

    unit: Literal["tokens", "pairs"] = Field("tokens", description="what data.step and data.microbatch count")
    step: int = Field(
        25_000, ge=1, le=10**9, description="size of a step over all ranks (tokens are counted per side)"
    )
    microbatch: int = Field(3_125, ge=1, le=10**9, description="most in one forward and backward pass")
    split: int = Field(
        1, ge=1, le=10**6, description="compute each microbatch in this many parts: less memory, same step"
    )


class Train(Section):
    """Steps, learning rate, optimizer."""

    seed: int = Field(1, ge=0, le=_MOST_SEED, description="for initial weights, order of pairs and dropout")
    steps: int = Field(100_000, ge=1, le=_MOST, description="optimizer updates")
    minutes: float = Field(
        0.0,
        ge=0,
        le=10**7,
        description="time for the run: steps, warm-up, evaluations and checkpoints are fitted to it; "
        "0 takes them as they are",
    )
    fitted_at: int = Field(
        0,
        ge=0,
        le=_MOST,
        description="the step at which a run chose its steps by train.minutes; it writes this",
    )
    stop_at: int = Field(
        0, ge=0, le=_MOST, description="stop here as by SIGTERM: saved, not evaluated; 0 is never"
    )
    schedule: Literal["transformer", "inverse_sqrt", "linear", "cosine", "constant"] = Field(
        "transformer", description="how the learning rate changes over the steps"
    )
    rate: float = Field(
        2.0, gt=0, le=_MOST_FLOAT, description="factor of the transformer schedule; peak rate of the others"
    )
    warmup_steps: int = Field(8_000, ge=0, le=_MOST, description="steps over which the rate rises")
    optimizer: Literal["adam", "adamw", "muon"] = Field(
        "adam", description="muon: Muon for the matrices of the layers, AdamW for the rest"
    )
    beta1: float = Field(0.9, ge=0, lt=1, description="Adam: decay of the running mean of gradients")
    beta2: float = Field(
        0.997, ge=0, lt=1, description="Adam: decay of the running mean of squared gradients"
    )
    epsilon: float = Field(1e-9, gt=0, le=1, description="Adam: keeps it from dividing by zero")
    weight_decay: float = Field(0.0, ge=0, le=1_000, description="AdamW and Muon: how fast matrices shrink")
    label_smoothing: float = Field(
        0.1, ge=0, lt=1, description="share of the target spread evenly over all pieces"
    )
    clip_norm: float = Field(0.0, ge=0, le=_MOST_FLOAT, description="largest gradient norm (0: no limit)")
    precision: Literal["fp32", "bf16", "fp16"] = Field("fp32", description="of the computation on GPUs")
    most_bad_steps: int = Field(
        20, ge=1, le=_MOST, description="non-finite steps in a row before the run is stopped"
    )

    @model_validator(mode="after")
    def _decay_has_an_effect(self) -> Self:
        if self.weight_decay and self.optimizer == "adam":
            raise ValueError(f'weight_decay {self.weight_decay} needs optimizer "adamw" or "muon"')
        return self


class Sync(Section):
    """How ranks meet."""

    mode: AskedMode = Field(
        "allreduce", description="auto measures at the start and picks wire, hierarchy and bucket size"
    )
    wire: Wire | None = Field(None, description="of gradients between hosts; absent: auto picks, else fp32")
    hierarchical: bool | None = Field(
        None, description="only one rank per host uses the network; absent: auto picks, else false"
    )
    bucket_mb: float | None = Field(
        None,
        gt=0,
        le=1024,
        description="MiB of gradients sent together; absent: chosen by the measured link",
    )
    inner_steps: int = Field(
        LOCAL_STEPS, ge=1, le=10**6, description="DiLoCo: steps of a replica between two exchanges"
    )
    outer_rate: float = Field(0.7, gt=0, le=1_000, description="DiLoCo: learning rate of the outer step")
    outer_momentum: float = Field(
        0.5, ge=0, lt=1, description="DiLoCo: Nesterov momentum of the outer step (0: none)"
    )
    timeout_seconds: float = Field(
        600.0, ge=1, le=_LONGEST_SECONDS, description="a rank silent for this long counts as dead"
    )

    @property
    def bucket_bytes(self) -> int | None:
        return max(1, int(self.bucket_mb * 2**20)) if self.bucket_mb else None


class Evaluate(Section):
    """What is scored during training, on the data set's dev part."""

    every: int = Field(1_000, ge=1, le=_MOST, description="steps between evaluations")
    beam: int = Field(4, ge=1, le=WIDEST_BEAM, description="width of the search (1: greedy)")
    length_penalty: float = Field(
        0.6,
        ge=0,
        le=10,
        description="a hypothesis's score is divided by its length to this power, as in CTranslate2",
    )
    train_sample_pairs: int = Field(
        1_000, ge=1, le=10**7, description="training pairs scored like the dev part"
    )
    samples: int = Field(3, ge=0, le=10_000, description="translations shown at each evaluation")
    metric: Literal["bleu", "chrf", "loss"] = Field(
        "bleu", description="the score that decides which checkpoint is best"
    )
    patience: int = Field(
        0, ge=0, le=_MOST, description="stop after this many evaluations without improvement (0: never)"
    )


class Checkpoint(Section):
    """What is kept on disk."""

    every: int = Field(1_000, ge=1, le=_MOST, description="steps between checkpoints")
    keep_last: int = Field(
        2, ge=1, le=_MOST, description="newest checkpoints kept; two survive damage to one"
    )
    keep_best: int = Field(1, ge=1, le=_MOST, description="best checkpoints kept, by evaluate.metric")


class Measure(Section):
    """What is written down."""

    every: int = Field(50, ge=1, le=_MOST, description="steps between two lines in the log")


class Training(Section):
    """Everything `dragoman train` can be told beside its folders."""

    model: Model = Model()
    data: Data = Data()
    train: Train = Train()
    sync: Sync = Sync()
    evaluate: Evaluate = Evaluate()
    checkpoint: Checkpoint = Checkpoint()
    measure: Measure = Measure()


_LONGEST_SHOWN = 60  # characters of a wrong value

# --- reading and writing ----------------------------------------------------------------------------------


def located(path: Path | None) -> Path | None:
    """The file, or the one of that name that comes with dragoman: `transformer-tiny`, configs/demo.toml."""
    if path is None or path.exists():
        return path
    shipped = {file.stem: file for file in sorted((Path(__file__).parent / "configs").glob("*.toml"))}
    if path.stem in shipped and str(path) in (path.stem, f"configs/{path.name}"):
        return shipped[path.stem]
    hint = f"give the path of a .toml file, or one of {', '.join(shipped)}"
    raise ConfigError("no such config file", path=path, hint=hint)


M = TypeVar("M", bound=Section)


def load(
    model: type[M], path: Path | None = None, overrides: Sequence[str] = (), defaults: Sequence[str] = ()
) -> M:
    """The settings of a file, with `key=value` overrides on top, and `key=value` defaults below."""
    given = _read(path) if path else ""
    try:
        values = tomllib.loads(given)
    except (ValueError, RecursionError) as error:  # ValueError: also a number of thousands of digits
        raise ConfigError(f"not valid TOML: {error}", path=path) from None
    for override in overrides:
        _apply(values, override)
    for default in defaults:
        _apply(values, default, replace=False)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _explain(error, model, path, given, overrides) from None


def text(settings: Section) -> str:
    """The settings as TOML, every one of them, each with its meaning beside it."""
    return tomlkit.dumps(_document(settings))


def write(settings: Section, path: Path) -> None:
    """The same as a file."""
    path.write_text(text(settings), encoding="utf-8")


def flat(settings: Section, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting under its dotted name."""
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, Section):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """What `flat` made of settings, as a model takes it again."""
    whole: dict[str, Any] = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        inner = whole
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[name] = value
    return whole


def _read(path: Path) -> str:
    try:
        return read_whole(path, ConfigError, _LARGEST_BYTES).decode()
    except FileNotFoundError:
        raise ConfigError("no such config file", path=path, hint="give the path of a .toml file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read as text: {error}", path=path) from None


def _apply(values: dict[str, Any], override: str, replace: bool = True) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key:
        raise ConfigError(f"--set {override}: expected key=value", hint="for example --set train.steps=1000")
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except (ValueError, RecursionError):
        value = text  # a bare word is a string: --set sync.mode=diloco
    *sections, name = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"--set {override}: {section} is a value, not a section")
    values[name] = value if replace else values.get(name, value)


def _explain(
    error: ValidationError, model: type[Section], path: Path | None, text: str, overrides: Sequence[str]
) -> ConfigError:
    """Pydantic's findings as one error: the key, what was found, what was expected, the nearest known key."""
    overridden = tuple(override.partition("=")[0] for override in overrides)
    messages = []
    first_line = None
    from_set = True
    for finding in error.errors():
        key = ".".join(str(part) for part in finding["loc"])
        if finding["type"] == "extra_forbidden":
            messages.append(f"unknown key {key}{_nearest(key, model)}")
        elif key:
            messages.append(f"{key} = {_shown(finding['input'])}: {_lower(finding['msg'])}")
        else:
            messages.append(_lower(finding["msg"].removeprefix("Value error, ")))
        line = _line_of(text, finding["loc"])
        is_within = f"{key}.".startswith(tuple(f"{name}." for name in overridden))
        is_around = any(name.startswith(f"{key}.") for name in overridden)  # a section that only --set names
        if not is_within and not (is_around and line is None):
            from_set = False
            first_line = first_line or line
    return ConfigError("; ".join(messages), path="--set" if from_set else path, line=first_line)


def _shown(value: Any) -> str:
    """What was given, or the beginning of it."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # thousands of digits, or of tables in tables
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


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
