"""Loads settings from TOML, applies `--set`, checks them before anything starts, and writes them back."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import tomlkit
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dragoman.bounds import WIDEST_BEAM
from dragoman.content import read_whole
from dragoman.cost.capability import AskedPrecision
from dragoman.cost.size import OptimizerName
from dragoman.errors import ConfigError
from dragoman.exchange_way import LOCAL_STEPS, AskedMode, Wire

_LARGEST_BYTES = 2**20  # of a config file


class Section(BaseModel):
    """A group of settings. They cannot change once they are loaded."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


# Upper limits. They are not advice: beyond them numbers overflow, or no machine is large enough.
_MOST = 10**12  # for anything counted over a whole run or corpus
_MOST_SEED = 2**63 - 1  # TOML's and torch's largest whole number
_MOST_WIDTH = 2**17
_MOST_FLOAT = 1e38  # single precision
_LONGEST_SECONDS = 7 * 86_400.0


# --- dragoman prepare -------------------------------------------------------------------------------------


class CleanRules(Section):
    """Which training pairs are dropped. Held-out pairs are never dropped: that would change the test."""

    min_words: int = Field(
        1,
        ge=1,
        le=_MOST,
        description="pairs with fewer words than this on either side are dropped; words are split at "
        "white space",
    )
    max_words: int = Field(
        80, ge=1, le=_MOST, description="pairs with more words than this on either side are dropped"
    )
    max_ratio: float = Field(
        9.0,
        gt=1,
        le=1e6,
        description="pairs are dropped if one side has more than this many times the other's words",
    )
    drop_control_characters: bool = Field(
        True,
        description="drop pairs with control characters or line separators (NUL, U+2028, U+0085 and "
        "the like)",
    )
    drop_identical: bool = Field(True, description="drop pairs whose source and target are equal")
    drop_duplicates: bool = Field(True, description="drop repetitions of a pair")
    drop_leakage: bool = Field(True, description="drop pairs whose source is also in dev or test")
    check_script: bool = Field(
        False,
        description="drop pairs in which fewer than half of a side's letters are of its language's script",
    )
    check_language: bool = Field(
        False,
        description="drop pairs in which a side is recognised as another language (needs dragoman[language])",
    )
    normalise: Literal["NFC", "none"] = Field("NFC", description="Unicode normalisation of all text")

    @model_validator(mode="after")
    def _limits_fit(self) -> Self:
        if self.min_words > self.max_words:
            raise ValueError(f"min_words {self.min_words} is more than max_words {self.max_words}")
        return self


class VocabularySettings(Section):
    """How the subword vocabulary is learnt."""

    size: int | None = Field(
        None,
        ge=16,
        le=10**6,
        description="number of subword pieces, including the four special ones; absent: chosen by "
        "the size of the corpus",
    )
    sample_pairs: int = Field(
        250_000,
        ge=1,
        le=_MOST,
        description="most training pairs to learn the pieces from, drawn by seed (the default needs "
        "about 1 GB)",
    )
    rarest_character: float = Field(
        1e-6,
        ge=0,
        lt=1,
        description="smallest share of the text that earns a character a piece; rarer characters are unknown",
    )


class HeldOutSettings(Section):
    """The dev set that is split off when none is given."""

    pairs: int = Field(
        2_000, ge=1, le=_MOST, description="training pairs to set aside as the dev set if none is given"
    )
    most_share: float = Field(
        0.05, gt=0, lt=1, description="the dev set takes at most this share of all pairs"
    )


class Preparation(Section):
    """All settings of `dragoman prepare`."""

    seed: int = Field(
        1, ge=0, le=_MOST_SEED, description="seed for the vocabulary sample and the held-out pairs"
    )
    clean: CleanRules = CleanRules()
    vocabulary: VocabularySettings = VocabularySettings()
    held_out: HeldOutSettings = HeldOutSettings()


# --- dragoman train ---------------------------------------------------------------------------------------


class Model(Section):
    """The size of the Transformer. The defaults are Transformer-base."""

    width: int = Field(
        512,
        ge=8,
        le=_MOST_WIDTH,
        description="size of every layer's input and output; even, and a multiple of model.heads",
    )
    heads: int = Field(
        8, ge=1, le=_MOST_WIDTH, description="attention heads of each layer; must divide model.width"
    )
    encoder_layers: int = Field(
        6, ge=1, le=1_000, description="layers of the encoder, which reads the source"
    )
    decoder_layers: int = Field(
        6, ge=1, le=1_000, description="layers of the decoder, which writes the translation"
    )
    feedforward: int = Field(2048, ge=1, le=_MOST_WIDTH, description="inner width of the feed-forward blocks")
    dropout: float = Field(
        0.1, ge=0, lt=1, description="dropout rate after the embedding and at the end of each block"
    )
    attention_dropout: float = Field(0.1, ge=0, lt=1, description="dropout rate on attention weights")
    feedforward_dropout: float = Field(
        0.1, ge=0, lt=1, description="dropout rate inside the feed-forward blocks"
    )

    @model_validator(mode="after")
    def _heads_fit(self) -> Self:
        if self.width % self.heads or self.width % 2:
            raise ValueError(f"width {self.width} must be even and a multiple of heads {self.heads}")
        return self


class Data(Section):
    """How much a step holds. A step is the same for any number of ranks."""

    unit: Literal["tokens", "pairs"] = Field("tokens", description="what data.step and data.microbatch count")
    step: int = Field(
        25_000,
        ge=1,
        le=10**9,
        description="size of a step over all ranks; in tokens, a pair counts as the mean of its two sides",
    )
    microbatch: Annotated[int, Field(ge=1, le=10**9)] | Literal["auto"] = Field(
        "auto",
        description="largest size of one forward and backward pass on one rank; auto: 3,125 tokens or 128 "
        "pairs, and on GPUs as many of these together as memory holds",
    )
    split: int = Field(
        1,
        ge=1,
        le=10**6,
        description="parts in which each microbatch is computed; more parts need less memory and "
        "give the same step",
    )

    @property
    def microbatch_size(self) -> int:
        return microbatch_size(self.microbatch, self.unit)


def microbatch_size(asked: int | Literal["auto"], unit: str) -> int:
    """The size of the microbatches into which a step is cut, the same on any hardware."""
    if asked == "auto":
        return 3_125 if unit == "tokens" else 128
    return asked


class Train(Section):
    """Steps, learning rate and optimizer."""

    seed: int = Field(
        1, ge=0, le=_MOST_SEED, description="seed for the initial weights, the order of pairs and dropout"
    )
    steps: int = Field(100_000, ge=1, le=_MOST, description="optimizer updates in the run")
    minutes: float = Field(
        0.0,
        ge=0,
        le=10**7,
        description="minutes for the whole run: steps, warm-up, evaluations and checkpoints are "
        "fitted to them; 0: no fitting",
    )
    fitted_at: int = Field(
        0,
        ge=0,
        le=_MOST,
        description="the step at which the run fitted itself to train.minutes; the run writes this, "
        "leave it out",
    )
    stop_at: int = Field(
        0,
        ge=0,
        le=_MOST,
        description="stop after this step as on SIGTERM, with a checkpoint but no evaluation; 0: never",
    )
    schedule: Literal["transformer", "inverse_sqrt", "linear", "cosine", "constant"] = Field(
        "transformer", description="how the learning rate changes over the steps"
    )
    rate: float = Field(
        2.0, gt=0, le=_MOST_FLOAT, description="peak learning rate; for the transformer schedule, a factor"
    )
    warmup_steps: int = Field(
        8_000, ge=0, le=_MOST, description="steps over which the learning rate rises to its peak"
    )
    optimizer: OptimizerName = Field(
        "adam", description="muon: Muon for the layers' matrices, AdamW for the rest"
    )
    beta1: float = Field(0.9, ge=0, lt=1, description="Adam: decay of the running mean of gradients")
    beta2: float = Field(
        0.997, ge=0, lt=1, description="Adam: decay of the running mean of squared gradients"
    )
    epsilon: float = Field(1e-9, gt=0, le=1, description="Adam: small number that prevents division by zero")
    weight_decay: float = Field(
        0.0,
        ge=0,
        le=1_000,
        description="AdamW and Muon: each step shrinks the matrices by this times the learning rate",
    )
    label_smoothing: float = Field(
        0.1,
        ge=0,
        lt=1,
        description="share of each target's probability that is spread evenly over all pieces",
    )
    clip_norm: float = Field(
        0.0,
        ge=0,
        le=_MOST_FLOAT,
        description="gradients with a larger norm are scaled down to this norm; 0: no limit",
    )
    precision: AskedPrecision = Field(
        "auto",
        description="number format of computation on GPUs; auto: bf16 if all of them have units for it, else "
        "fp16; a CPU always computes in fp32",
    )
    deterministic: bool = Field(
        False,
        description="on GPUs, use only kernels that give the same bits each time; a CPU always does",
    )
    recompute: bool = Field(
        False,
        description="keep only the input of each layer and compute the layer again in the backward pass: the "
        "same gradients with far less memory, for up to a third more computing",
    )
    most_bad_steps: int = Field(
        20,
        ge=1,
        le=_MOST,
        description="the run stops after this many steps in a row with non-finite gradients",
    )

    @model_validator(mode="after")
    def _decay_has_an_effect(self) -> Self:
        if self.weight_decay and self.optimizer == "adam":
            raise ValueError(f'weight_decay {self.weight_decay} needs optimizer "adamw" or "muon"')
        return self


class Sync(Section):
    """How ranks exchange gradients."""

    mode: AskedMode = Field(
        "allreduce",
        description="allreduce exchanges in every step, diloco every few; auto is allreduce with wire, "
        "hierarchy and bucket size chosen by measurement; sharded also divides weights, gradients and "
        "moments among the ranks of each host",
    )
    wire: Wire | None = Field(
        None, description="number format of gradients between hosts; absent: fp32, or chosen by auto"
    )
    hierarchical: bool | None = Field(
        None, description="let only one rank per host use the network; absent: false, or chosen by auto"
    )
    bucket_mb: float | None = Field(
        None,
        gt=0,
        le=1024,
        description="MiB of gradients sent together; absent: 25 on one host, else chosen by the "
        "measured link",
    )
    inner_steps: int = Field(
        LOCAL_STEPS, ge=1, le=10**6, description="DiLoCo: steps of each replica between two exchanges"
    )
    outer_rate: float = Field(0.7, gt=0, le=1_000, description="DiLoCo: learning rate of the outer step")
    outer_momentum: float = Field(
        0.5, ge=0, lt=1, description="DiLoCo: Nesterov momentum of the outer step; 0: none"
    )
    timeout_seconds: float = Field(
        600.0, ge=1, le=_LONGEST_SECONDS, description="a rank that is silent for this long counts as dead"
    )

    @model_validator(mode="after")
    def _shards_travel_one_way(self) -> Self:
        given = {"wire": self.wire not in (None, "fp32"), "hierarchical": self.hierarchical is not None}
        given["bucket_mb"] = self.bucket_mb is not None
        if self.mode == "sharded" and (wrong := [name for name, is_given in given.items() if is_given]):
            raise ValueError(
                f'{" and ".join(wrong)} cannot be set with mode "sharded": it sums inside each host first, a '
                "layer at a time, in fp32"
            )
        return self

    @property
    def bucket_bytes(self) -> int | None:
        return max(1, int(self.bucket_mb * 2**20)) if self.bucket_mb else None


class Evaluate(Section):
    """How the model is scored during training, on the dev part of the data set."""

    every: int = Field(1_000, ge=1, le=_MOST, description="steps between evaluations")
    beam: int = Field(4, ge=1, le=WIDEST_BEAM, description="hypotheses that the search keeps; 1: greedy")
    length_penalty: float = Field(
        0.6,
        ge=0,
        le=10,
        description="a hypothesis's score is divided by its length to this power, as in CTranslate2",
    )
    train_sample_pairs: int = Field(
        1_000,
        ge=1,
        le=10**7,
        description="training pairs scored in the same way as the dev part, for comparison",
    )
    samples: int = Field(3, ge=0, le=10_000, description="translations shown at each evaluation")
    metric: Literal["bleu", "chrf", "loss"] = Field(
        "bleu", description="the score that decides which checkpoint is best"
    )
    patience: int = Field(
        0,
        ge=0,
        le=_MOST,
        description="stop after this many evaluations in a row without improvement; 0: never",
    )


class Checkpoint(Section):
    """When checkpoints are written, and which are kept."""

    every: int = Field(1_000, ge=1, le=_MOST, description="steps between checkpoints")
    keep_last: int = Field(
        2, ge=1, le=_MOST, description="newest checkpoints to keep; with two, the run survives damage to one"
    )
    keep_best: int = Field(1, ge=1, le=_MOST, description="best checkpoints to keep, by evaluate.metric")


class Measure(Section):
    """How often progress is logged."""

    every: int = Field(50, ge=1, le=_MOST, description="steps between two lines in the log")


class Training(Section):
    """All settings of `dragoman train`."""

    model: Model = Model()
    data: Data = Data()
    train: Train = Train()
    sync: Sync = Sync()
    evaluate: Evaluate = Evaluate()
    checkpoint: Checkpoint = Checkpoint()
    measure: Measure = Measure()

    @model_validator(mode="after")
    def _optimizer_works_on_shards(self) -> Self:
        if self.sync.mode == "sharded" and self.train.optimizer == "muon":
            raise ValueError(
                'train.optimizer "muon" needs whole matrices, and with sync.mode "sharded" no rank has them: '
                'use "adam" or "adamw", or sync.mode "allreduce"'
            )
        return self


_LONGEST_SHOWN = 60  # characters of a wrong value

# --- reading and writing ----------------------------------------------------------------------------------


def located(path: Path | None) -> Path | None:
    """The path itself if it exists, else the shipped config of that name: `demo`, configs/demo.toml."""
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
    """The settings of a file, after `key=value` overrides; `key=value` defaults fill in what is left out."""
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
    """All settings as TOML, each with its meaning as a comment."""
    return tomlkit.dumps(_document(settings))


def write(settings: Section, path: Path) -> None:
    """Writes the TOML of `text` to a file."""
    path.write_text(text(settings), encoding="utf-8")


def flat(settings: Section, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields every setting with its dotted name."""
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, Section):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `flat`: nested sections that a model can validate."""
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
    """One error for all of pydantic's findings: key, value, what was expected and the nearest known key."""
    overridden = tuple(override.partition("=")[0] for override in overrides)
    messages = []
    first_line = None
    from_set = True
    for finding in error.errors():
        location = _without_types(finding["loc"], model)
        key = ".".join(str(part) for part in location)
        is_section = bool(key) and finding["type"] == "value_error" and isinstance(finding["input"], Mapping)
        if finding["type"] == "extra_forbidden":
            messages.append(f"unknown key {key}{_nearest(key, model)}")
        elif is_section:
            messages.append(f"{key}: {_lower(finding['msg'].removeprefix('Value error, '))}")
        elif messages and messages[-1].startswith(f"{key} = "):  # a value of another type would do as well
            messages[-1] += f" or {_lower(finding['msg']).removeprefix('input should be ')}"
        elif key:
            messages.append(f"{key} = {_shown(finding['input'])}: {_lower(finding['msg'])}")
        else:
            messages.append(_lower(finding["msg"].removeprefix("Value error, ")))
        line = _line_of(text, location)
        is_within = f"{key}.".startswith(tuple(f"{name}." for name in overridden))
        is_around = any(name.startswith(f"{key}.") for name in overridden)  # a section that only --set names
        if not is_within and not (is_around and (line is None or is_section)):
            from_set = False
            first_line = first_line or line
    return ConfigError("; ".join(messages), path="--set" if from_set else path, line=first_line)


def _without_types(location: tuple[Any, ...], model: type[Section]) -> tuple[Any, ...]:
    """The location of a finding without the names that pydantic appends for a value of several types."""
    known = {tuple(name.split(".")) for name, _ in flat(model.model_construct())}
    whole = [location[:end] for end in range(1, len(location)) if location[:end] in known]
    return whole[0] if whole else location


def _shown(value: Any) -> str:
    """The value as text, shortened if it is long."""
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
    """The number of the line that sets a key, or None if no line does."""
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
