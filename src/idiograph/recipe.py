"""Settings per stage, as frozen values that read from and write to TOML. A key that does not exist is an error.

Two presets: `sound` is our default; `paper` repeats the published protocol so that its numbers can be compared.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.fields import FieldInfo

from idiograph.errors import InputError, SpecError
from idiograph.presets import PRESETS
from idiograph.runner import MAX_WORKERS
from idiograph.spec import did_you_mean, unknown_choice

Preset = Literal["sound", "paper"]

LARGEST_NUMBER = 10**15
Seconds = Annotated[float, Field(ge=0, le=604_800)]  # up to a week: what no clock of a socket takes is refused here
SomeSeconds = Annotated[float, Field(gt=0, le=604_800)]
_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s]*@")


def without_passwords(text: str) -> str:
    """A text whose addresses do not say who asks there.

    >>> without_passwords("https://ada:secret@api.example.org/x")
    'https://api.example.org/x'
    """
    return _CREDENTIALS.sub("", text)


def stored_form(value: Any) -> Any:
    if isinstance(value, list):
        return [stored_form(each) for each in value]
    return without_passwords(value) if isinstance(value, str) else value


class Stage(BaseModel):
    """One stage's settings."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _of_this_world(cls, given: Any) -> Any:
        """No number that would overflow somewhere far from here."""
        for each in given if isinstance(given, tuple) else (given,):
            if isinstance(each, int | float) and abs(each) > LARGEST_NUMBER:
                raise ValueError(f"must be a number up to {LARGEST_NUMBER:.0e}")
        return given

    def as_stored(self) -> dict[str, Any]:
        """The settings as a manifest keeps them: as JSON, and without what an address says of its user."""
        return {key: stored_form(value) for key, value in self.model_dump(mode="json").items()}


class HarvestRecipe(Stage):
    """What is asked of HAL, and how gently."""

    server: str = "https://api.archives-ouvertes.fr"
    portal: str = ""
    query: str = "*:*"
    date: Literal["indexed", "modified", "released", "submitted"] = "indexed"
    since: str = ""
    until: str = ""
    lang: tuple[str, ...] = ()
    domain: tuple[str, ...] = ()
    doctype: tuple[str, ...] = ()
    licence: str = "open"
    roles: tuple[str, ...] = ("aut", "crp")
    files: bool = True
    tei: bool = True
    timestamp: Literal["modified", "accessed"] = "modified"  # of a record: when the archive changed it, or we asked
    limit: int = Field(default=0, ge=0)
    rows: int = Field(default=500, ge=1, le=1000)
    interval: Seconds = 1.0
    attempts: int = Field(default=8, ge=1)
    backoff: Seconds = 1.0
    timeout: SomeSeconds = 60.0
    deadline: SomeSeconds = 600.0
    contact: str = ""
    proxy: str = ""


class DownloadRecipe(Stage):
    """Which files are fetched, and how gently.

    `interval` is in seconds between two requests to one site and `per_host` how many connections it has to bear, from
    all `workers` together, be they threads (`runner` inline), processes or tasks on the Ray cluster at `address`, whose
    nodes must see the same folder.
    """

    licence: str = "open"
    max_bytes: int = Field(default=200_000_000, ge=1)
    min_bytes: int = Field(default=500, ge=0)
    interval: Seconds = 1.0
    per_host: int = Field(default=1, ge=1, le=64)
    workers: int = Field(default=4, ge=1, le=MAX_WORKERS)
    attempts: int = Field(default=5, ge=1)
    backoff: Seconds = 2.0
    timeout: SomeSeconds = 60.0
    deadline: SomeSeconds = 1200.0
    give_up: int = Field(default=20, ge=1)
    allow_private: bool = False  # may a record or a redirect lead to this machine or its neighbours?
    contact: str = ""
    proxy: str = ""
    runner: Literal["inline", "processes", "ray"] = "inline"
    address: str = ""


class ExtractRecipe(Stage):
    """How PDFs become TEI. Without `grobid`, the embedded extractor is used.

    `workers` is the number of processes, or of requests in flight per server; 0 takes all cores, or what the server's
    pool holds. `timeout` is in seconds per document, `memory` in MiB per process, `wait` in seconds before the second
    of `attempts` requests (doubled each time, a minute at most), `ready` how long a server may take to come up. `retry`
    does all failures again, not only those of the moment; `prune` removes the results of PDFs that are gone. With
    `runner` ray, the embedded extractor works on the nodes of the cluster at `address`, which must see the same folders.
    """

    grobid: tuple[str, ...] = ()
    workers: int = Field(default=0, ge=0, le=MAX_WORKERS)
    timeout: SomeSeconds = 180.0
    memory: int = Field(default=2048, ge=256)
    max_bytes: int = Field(default=200_000_000, ge=1)
    max_pages: int = Field(default=2000, ge=1)
    attempts: int = Field(default=6, ge=1)
    wait: Seconds = 5.0
    ready: Seconds = 60.0
    consolidate_header: int = Field(default=0, ge=0, le=3)
    consolidate_citations: int = Field(default=0, ge=0, le=2)
    flavor: str = ""
    runner: Literal["inline", "processes", "ray"] = "processes"
    address: str = ""
    retry: bool = False
    prune: bool = False


class CorpusRecipe(Stage):
    """How texts become a corpus. `citations` print names, and names give the author away: they are masked."""

    citations: Literal["keep", "mask", "drop", "published"] = "mask"  # published: between [START_REF] and [END_REF]
    formulae: Literal["mask", "drop"] = "mask"
    abstract: bool = True
    filters: bool = True
    language: Literal["agree", "depositor", "detector"] = "agree"
    duplicates: Literal["collapse", "keep"] = "collapse"
    signals: bool = False  # write the quality signals of every document, too
    tokenizer: str = ""  # a tokenizer.json, by which the signals count tokens
    perplexity: str = ""  # a folder with language models, by which the signals tell how surprising a text is


class MineRecipe(Stage):
    """How triplets are drawn from a corpus."""

    rule: tuple[Literal["base", "unrestricted", "ict"], ...] = Field(default=("base",), min_length=1)
    sentences: tuple[Annotated[int, Field(ge=1, le=50)], ...] = Field(default=(4,), min_length=1)
    per_document: int = Field(default=5, ge=1)
    negatives_per_positive: int = Field(
        default=1, ge=1
    )  # so many triplets of a document in a row have one positive's document
    form: Literal["ours", "published"] = "ours"  # of what is written: year 1 for unknown, years as text, `neg_halids`
    label: Literal["identified", "set", "first", "last", "single"] = "identified"
    identity: Literal["author", "ids"] = "author"  # ids: in a corpus with ids, nobody without one counts
    negatives: Literal["domain", "lexical", "matched", "any"] = "domain"
    field_codes: tuple[str, ...] | Literal["all", "auto", "13"] = "all"  # auto: those with documents enough; 13: HAL's
    fields: Literal["primary", "exact"] = "primary"  # is a negative of the same primary domain good enough?
    positives: Literal["any", "far"] = "any"
    containers: Literal["apart", "any"] = "apart"  # may a positive be from the book that its anchor is from?
    candidates: int = Field(default=30, ge=2, le=1000)  # of which the lexically nearest or farthest is taken
    lang: str = "en"
    detector: bool = True  # must a detector of languages agree, for every span?
    near_duplicates: Literal["drop", "keep"] = "drop"
    split: Literal["groups", "people", "triplet"] = "groups"  # what is in one split as a whole, groups of co-authors
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1)
    filters: bool = True
    abbreviations: Literal["ours", "published"] = "ours"  # after which a full stop ends no sentence
    short_documents: Literal["drop", "keep"] = "drop"
    spans_per_document: int = Field(default=10, ge=1)
    repeats: bool = False  # may a triplet come twice, and a span overlap with its positive?
    seed: int = 7

    @field_validator("rule", "sentences", mode="before")
    @classmethod
    def _one_or_several(cls, given: Any) -> Any:
        """One value stands for a list of one."""
        return given if isinstance(given, list | tuple) else (given,)

    @field_validator("rule", "sentences")
    @classmethod
    def _once_each(cls, given: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(given))

    @field_validator("fractions")
    @classmethod
    def _of_a_whole(cls, given: tuple[float, ...]) -> tuple[float, ...]:
        if min(given) < 0 or sum(given) <= 0:
            raise ValueError("must be three shares from 0, not all 0")
        return given


class StyleRecipe(Stage):
    """How two texts are compared. `beyond` a model's window a text is read in further pieces, or it is cut there."""

    patch: str = "auto"
    keep: Literal["all", "words"] = "all"
    score: str = "meansim"
    beyond: Literal["read", "cut"] = "read"


class EvaluateRecipe(Stage):
    """What counts in a retrieval evaluation."""

    own_document: Literal["exclude", "keep"] = "exclude"
    split: Literal["train", "valid", "test"] = "test"
    measures: tuple[str, ...] = ("R@5", "R@20", "Hit@1", "Hit@5", "nDCG@20", "RR")
    pool: Annotated[int, Field(ge=2)] | Literal["natural", "equal"] = "natural"  # equal: over all configurations
    reading: Literal["sound", "published"] = "sound"  # see the same setting of [train]
    depth: int = Field(default=100, ge=1)  # ranks that are kept for a run file
    resamples: int = Field(default=1000, ge=0)
    seed: int = 7


class CalibrateRecipe(Stage):
    """Which pairs of texts a calibration is learned from. `lengths` are in words; `split` as `mine` divides people.

    `split_by` is the `split` of [mine] that the people a model was trained on were divided by.
    """

    method: Literal["isotonic", "kde", "logistic"] = "logistic"
    label: Literal["identified", "set", "first", "last", "single"] = "identified"
    split: tuple[Literal["all", "train", "valid", "test"], ...] = Field(default=("all",), min_length=1)
    split_by: Literal["groups", "people"] = "groups"
    lang: str = "any"
    pairs: int = Field(default=1000, ge=1)  # by one hand; of the other kind there are `different` times as many
    per_author: int = Field(default=2, ge=1)
    containers: Literal["apart", "any"] = "apart"
    different: int = Field(default=2, ge=1)
    lengths: tuple[Annotated[int, Field(ge=50)], ...] = Field(default=(120, 240, 480, 960), min_length=1)
    seed: int = 7


class PanRecipe(Stage):
    """What is asked of a ranker on PAN19: which unknown texts, against how many of the other candidates.

    `window` is how many tokens a model reads at once, if it can read as many.
    """

    lang: str = "en"
    unknowns: Literal["all", "last"] = "all"  # `last`: the last fifth by file name
    negatives: Literal["all", "one"] = "all"  # `one`: another candidate drawn at random
    known: Literal["joined", "each"] = "joined"  # `each`: the mean over a candidate's texts, each read from its start
    words: int = Field(default=0, ge=0)  # that every ranker reads of a text; 0: as far as it can
    window: int = Field(default=512, ge=4)
    resamples: int = Field(default=1000, ge=0)
    seed: int = 7


class IndexRecipe(Stage):
    """What is put into an index. `dim` keeps that many directions of the vectors, `none` all of them."""

    words: int = Field(default=120, ge=20, le=1000)  # of a passage, about
    passages_per_document: int = Field(default=200, ge=0)  # at most, from all over it; 0: all
    dtype: Literal["float32", "float16", "int8", "int4"] = "int8"
    dim: Annotated[int, Field(ge=1)] | Literal["none"] = "none"


class TrainRecipe(Stage):
    """How a model is trained: what it is, what it learns from, and how. `auto` leaves a number to the run.

    `tau` and `margin` are in the units of the score: a mean cosine, or with `maxsim` a sum of them.
    """

    backbone: str = "default"
    patch: str = "auto"
    keep: Literal["all", "words"] = "all"
    head: Literal["none", "linear", "mlp"] = "none"
    dim: Annotated[int, Field(ge=1)] | Literal["none"] = "none"  # none: the width of the backbone
    layers: Literal["last", "mean", "wording"] = "last"  # wording adds the first to the last, rare words most
    center: bool = False  # take the mean vector of all tokens off each
    boundaries: Literal["budget", "reg1", "reg2"] = "budget"  # how `learned:N` patches are found
    compress: Literal["mean", "max", "attention"] = "mean"  # what a patch is made of its tokens by
    reading: Literal["sound", "published"] = "sound"  # published: special tokens count; see docs/training.md
    adapters: int = Field(default=0, ge=0)  # rank of what is learned beside the weights of the backbone; 0: these learn
    weights: tuple[float, ...] = ()  # of each collection of triplets, in the order given; none: by size
    size_power: float = Field(default=1.0, ge=0, le=1)  # without weights: 0.5 by the root of its size, 0 all alike
    mixing: Literal["rows", "batches", "fields"] = "rows"  # a batch is of anything, one collection, one field
    distort: float = Field(default=0.0, ge=0, le=1)  # share of the batches in which content words are replaced
    distorted_words: tuple[float, float] = (0.3, 0.95)  # share of the content words of such a text, between these
    teacher: str = ""  # a ranker, as `default+0.5*ngrams`, whose scores are learned beside who wrote what
    teaching: float = Field(default=0.5, ge=0, le=1)  # its share of the loss
    teacher_tau: float = Field(default=0.5, gt=0)  # how sharp it is, in units of the spread of its scores
    apart: bool = True  # leave out rows with a text, document or author-set that is validated or tested on
    anchors: int = Field(default=500, ge=1)  # in each validation
    pool: int = Field(default=4000, ge=1)
    loss: Literal["infonce", "triplet", "margin", "hard-margin", "hybrid"] = "infonce"
    tau: Annotated[float, Field(gt=0)] | Literal["learn"] = "learn"
    score: Literal["meansim", "maxsim"] = "meansim"
    margin: float = Field(default=0.2, ge=0)
    mix: float = Field(default=0.5, ge=0, le=1)  # the share of the triplet loss in `hybrid`
    symmetric: bool = False
    mask_false_negatives: bool = True
    score_rows: int = Field(default=0, ge=0)  # anchors scored at once, 0 for all: less memory, scores computed twice
    match: Literal["max", "softmax", "gumbel"] = "max"  # a patch finds its best match, or a mixture of all
    match_tau: float = Field(default=0.1, gt=0)  # how sharp the mixture is
    decay: Literal["none", "exp", "linear"] = "none"  # what is far apart in the two texts counts less
    batch: int = Field(default=64, ge=1)  # triplets a device
    accumulate: int = Field(default=1, ge=1)
    epochs: float = Field(default=1.0, gt=0)
    steps: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    lr: float = Field(default=2e-5, gt=0)
    head_lr: Annotated[float, Field(gt=0)] | Literal["auto"] = 1e-3  # of new layers and of the temperature
    weight_decay: float = Field(default=0.01, ge=0)
    decay_all: bool = False  # biases and norms too
    warmup: float = Field(default=0.1, ge=0, le=1)
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    clip: float = Field(default=1.0, ge=0)  # largest norm of the gradient; 0 for none
    precision: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    max_length: int = Field(default=512, ge=4)  # tokens of a text, as far as the model reads
    chunk: int = Field(default=0, ge=0)  # texts in memory at a time (GradCache); 0 for all
    layer_decay: float = Field(default=1.0, gt=0, le=1)
    freeze_layers: int = Field(default=0, ge=0)
    ema: float = Field(default=0.0, ge=0, lt=1)
    average_with_base: float = Field(default=0.0, ge=0, le=1)
    validate_every: Annotated[int, Field(ge=1)] | Literal["auto", "log"] = "auto"  # steps; log: ever more rarely
    save_every: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    log_every: int = Field(default=10, ge=1)
    seed: int = 7


class Recipe(Stage):
    """All stages of one run."""

    preset: Preset = "sound"
    harvest: HarvestRecipe = HarvestRecipe()
    download: DownloadRecipe = DownloadRecipe()
    extract: ExtractRecipe = ExtractRecipe()
    corpus: CorpusRecipe = CorpusRecipe()
    mine: MineRecipe = MineRecipe()
    style: StyleRecipe = StyleRecipe()
    evaluate: EvaluateRecipe = EvaluateRecipe()
    pan: PanRecipe = PanRecipe()
    calibrate: CalibrateRecipe = CalibrateRecipe()
    index: IndexRecipe = IndexRecipe()
    train: TrainRecipe = TrainRecipe()


def make_recipe(preset: str = "sound", changes: Mapping[str, Mapping[str, Any]] | None = None) -> Recipe:
    """A preset with changes on top; each change is checked."""
    if preset not in PRESETS:
        raise SpecError(unknown_choice("preset", preset, PRESETS))
    merged: dict[str, Any] = {"preset": preset}
    for layer in (PRESETS[preset], changes or {}):
        for stage, settings in layer.items():
            merged[stage] = {**merged.get(stage, {}), **settings} if isinstance(settings, Mapping) else settings
    try:
        return Recipe.model_validate(merged)
    except ValidationError as error:
        raise SpecError(explain_error(error)) from error


def read_recipe(path: Path) -> Recipe:
    """A recipe from a TOML file, which may name its `preset` at the top."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no recipe file '{path}'") from None
    except (ValueError, RecursionError) as error:  # also of a number with thousands of digits
        raise InputError(f"{path}: not TOML: {error}") from error
    try:
        return make_recipe(str(raw.pop("preset", "sound")), raw)
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from error


def explain_error(error: ValidationError) -> str:
    """The first thing wrong with a recipe, in one line."""
    first = error.errors()[0]
    where = [str(part) for part in first["loc"]]
    table, key = f"[{where[0]}] " if len(where) > 1 else "", where[min(len(where), 2) - 1]
    if first["type"] == "extra_forbidden":
        known = stage_fields(where[0]) if len(where) > 1 else Recipe.model_fields
        return f"{table}has no key '{key}'{did_you_mean(key, known)}"
    return f"{table}{key}: {first['msg'].lower()}, but got {first['input']!r}"


def parse_settings(stage: str, lines: Iterable[str]) -> dict[str, Any]:
    """Settings of one stage from `key=value` texts, as the command line takes them.

    >>> parse_settings("train", ["dim=16", "weights=[2, 1]", "head=linear"])
    {'dim': 16, 'weights': [2, 1], 'head': 'linear'}
    """
    fields = stage_fields(stage)
    settings: dict[str, Any] = {}
    for line in lines:
        key, equals, text = (part.strip() for part in line.partition("="))
        if not equals or not key or not text:
            raise SpecError(f"'{line}' is no setting; write key=value, such as 'seed=8'")
        if key not in fields:
            raise SpecError(f"[{stage}] has no key '{key}'{did_you_mean(key, fields)}; all keys: idiograph recipe")
        if key in settings:
            raise SpecError(f"'{key}' is set twice, to {settings[key]!r} and to '{text}'")
        settings[key] = parse_setting(text, plain=fields[key].annotation is str)
    return settings


def stage_fields(stage: str) -> Mapping[str, FieldInfo]:
    """The settings that a stage has, by name."""
    return getattr(Recipe.model_fields[stage].annotation, "model_fields", {})


def parse_setting(text: str, plain: bool = False) -> Any:
    """A number, truth value or list as TOML writes it; a `plain` setting, or what is no TOML, is taken as text.

    >>> parse_setting("2e-5"), parse_setting("learn"), parse_setting("true"), parse_setting("7", plain=True)
    (2e-05, 'learn', True, '7')
    """
    try:
        read = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError) as error:
        if text[0] in "[{\"'":
            raise SpecError(f"'{text}' is not TOML: {error}; write a list as [2, 1]") from error
        return text
    return read["value"] if isinstance(read["value"], str) or not plain else text


def to_toml(value: Recipe) -> str:
    """The recipe as TOML that `read_recipe` reads back to the same value."""
    lines = [f'preset = "{value.preset}"']
    for name, stage in value:
        if isinstance(stage, Stage):
            lines += ["", f"[{name}]", *(f"{key} = {toml_literal(item)}" for key, item in stage)]
    return "\n".join(lines) + "\n"


def toml_literal(value: Any) -> str:
    """A TOML literal of a setting: text, number, truth value or a flat list of these."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml_literal, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
