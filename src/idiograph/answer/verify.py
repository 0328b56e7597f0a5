"""One writer or two? A calibrated likelihood ratio for two texts or two collections: evidence, not a verdict, and it may
abstain. What a score means is learned from the texts of a reference, or from known pairs and kept beside the model; without
either, and for texts unlike those that it was learned from, there is no ratio."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from idiograph.answer.kinds import known_kinds, ranges_of_texts, unlike_ranges
from idiograph.answer.likelihood import (
    INCONCLUSIVE,
    Calibration,
    RatioCheck,
    Scored,
    TopicDiscount,
    effective_count,
    fit_scores,
    posterior,
    ratio_in_words,
    times,
)
from idiograph.answer.methods import encode_with_index
from idiograph.answer.pairs import TextPair, draw_pairs, pair_scores, text_passages, text_score, word_counts
from idiograph.answer.reference import (
    SHOWN,
    LengthCheck,
    MethodShare,
    Population,
    PopulationCheck,
    Reference,
    foreign_to,
    learn_population,
    read_reference,
    without_copies,
)
from idiograph.corpus.corpus import Corpus
from idiograph.corpus.formats import given_texts
from idiograph.errors import ArtifactError, InputError, ModelError
from idiograph.html import notebook_rows
from idiograph.index.index import Index
from idiograph.loading import shipped_style
from idiograph.rankers.background import BackgroundRates, UsualRates
from idiograph.rankers.features import choose_strongest
from idiograph.rankers.library import Library
from idiograph.rankers.model import ModelRanker, read_once
from idiograph.recipe import CalibrateRecipe
from idiograph.runner import Progress
from idiograph.store import add_sealed_json, read_sealed_json, timestamp
from idiograph.style.model import Ranker, Style
from idiograph.synth.anthology import anthology
from idiograph.text.passages import count_words
from idiograph.text.words import content_words, usual_overlap, word_overlap
from idiograph.types import Document

Texts = str | Path | Sequence[str | Path]
CALIBRATION_FILE = "calibration.json"  # that somebody made of texts of their own
CALIBRATIONS_BY_KIND = "calibrations"  # a folder beside the model, with a file for each kind that comes with it
MAKE = "idiograph calibrate MODEL CORPUS"
SCHOLARLY = ("papers", "abstracts")  # kinds that the shipped model was trained on
TEXTS_TO_TELL_KIND = 20  # of a reference
SHARE_OF_KIND = 0.9  # of a calibration's texts that must be of one kind, for it to be a calibration of that kind
VERDICT_SCHEMA = pa.schema(
    {
        "llr": pa.float64(),
        "words": pa.string(),
        "same": pa.bool_(),
        **dict.fromkeys(("probability", "prior_odds", "score", "overlap"), pa.float64()),
        "words_a": pa.int64(),
        "words_b": pa.int64(),
        **dict.fromkeys(("kind", "refusals", "warnings"), pa.string()),
        **dict.fromkeys(("checked_cllr", "checked_auc"), pa.float64()),
    }
)
SMALL_COLLECTION = CalibrateRecipe(per_author=10, different=4, lengths=(120, 240, 480, 1920))  # a few dozen texts


@dataclass(frozen=True, slots=True)
class PairCalibration:
    """What pairs from a known corpus look like: their scores, and how many content words they share.

    With a `background` the scores are not the model's, but those of words and letters against its rates.
    """

    calibration: Calibration
    usual_overlap: float
    about: dict[str, Any] = field(default_factory=dict)  # preset, languages, kind of text, recipe, date
    topic: TopicDiscount | None = None
    background: BackgroundRates | None = None
    checks: tuple[RatioCheck, ...] = ()

    def strange(self, texts: Sequence[str]) -> list[str]:
        """How texts differ in kind from those that this was learned from; nothing where they do not."""
        if "kinds" in self.about:
            return known_kinds().strange(texts)
        if kind := known_kinds().named(self.about.get("kind") or ""):
            return known_kinds().strange(texts, kind)
        return unlike_ranges(texts, self.about.get("register") or {})

    def score(self, one: Sequence[str], two: Sequence[str], style: Style) -> float:
        """How alike two collections of texts are, by what was calibrated."""
        if self.background:
            return float(self.background.compare(["\n\n".join(one)], ["\n\n".join(two)])[0, 0])
        passages = [[p for text in each for p in text_passages(text)] for each in (one, two)]
        return text_score(*map(style.encode, passages))

    def llr(self, score: float, size: float, overlap: float) -> float:
        """The log10 ratio of a score between texts of a size that share so many content words."""
        ratio = self.calibration.llr(score, size)
        return float(self.topic.lower([ratio], [overlap], [size])[0]) if self.topic else ratio

    def shares(self, texts: Sequence[str], score: float, size: float, overlap: float) -> tuple[MethodShare, ...]:
        """What the resemblance, the shared words and the bounds add to the log10 ratio; they sum to it."""
        whole = float(self.calibration.unbounded(np.array([score]), np.array([size]))[0])
        kept, ratio = self.calibration.llr(score, size), self.llr(score, size, overlap)
        parts = [("bound", kept - whole)] + ([("topic", ratio - kept)] if self.topic else [])
        rest = tuple(MethodShare(name, share) for name, share in parts)
        if not self.background or self.calibration.knots:
            return (MethodShare("words and letters" if self.background else "model", whole), *rest)
        _, slope, _, twist = self.calibration.weights
        steep = slope + twist * float(np.clip(size, *self.calibration.sizes))
        counted = [self._share_of_rates(rates, texts, steep) for rates in self.background.tables]
        return (*counted, MethodShare("prior", whole - sum(each.share for each in counted)), *rest)

    def _share_of_rates(self, rates: UsualRates, texts: Sequence[str], steep: float) -> MethodShare:
        features = rates.shares(texts[0], texts[1], steep)
        share, shown = sum(each.share for each in features), choose_strongest(features, SHOWN)
        return MethodShare(rates.counts, share, shown, share - sum(each.share for each in shown))

    def for_any_kind(self) -> "PairCalibration":
        """The same, giving a ratio for texts of any kind, with a note."""
        return replace(self, about={**self.about, "any_kind": True})

    def for_no_kind(self) -> "PairCalibration":
        """The same, asked about texts of none of the kinds that are known."""
        return replace(self, about={**self.about, "kind": "", "kinds": [kind.name for kind in known_kinds().kinds]})

    def to_json(self) -> dict[str, Any]:
        more = {"topic": self.topic, "background": self.background}
        known = {name: asdict(part) for name, part in more.items() if part}
        checks = {"checks": [asdict(check) for check in self.checks]} if self.checks else {}
        about = {"calibration": self.calibration.to_json(), "usual_overlap": self.usual_overlap}
        return {**about, "about": self.about, **known, **checks}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "PairCalibration":
        return cls(
            Calibration.from_json(saved["calibration"]),
            saved["usual_overlap"],
            saved["about"],
            TopicDiscount.from_json(saved["topic"]) if saved.get("topic") else None,
            BackgroundRates.from_json(saved["background"]) if saved.get("background") else None,
            tuple(RatioCheck(**check) for check in saved.get("checks") or ()),
        )

    def save(self, path: Path) -> None:
        add_sealed_json(path, self.to_json())


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the comparison of two texts says. `same` is None where it abstains.

    `refusals` say why there is no ratio, if so: a ratio of 1. There is a probability where the reader gave prior odds, and
    `checked` is what the ratio was checked on where a reference was given; without one `kind` is the kind of text whose
    calibration gave it, and `checks` what that was checked on.
    """

    score: float
    llr: float
    words: str
    times: str
    same: bool | None
    probability: float | None
    prior_odds: float | None
    overlap: float
    topic_warning: bool
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]
    lengths: tuple[int, int]  # words
    calibration: Calibration
    checked: PopulationCheck | None = None
    shares: tuple[MethodShare, ...] = ()
    kind: str = ""
    checks: tuple[RatioCheck, ...] = ()

    @property
    def sentence(self) -> str:
        """The answer in a sentence."""
        if self.refusals:
            return f"no ratio, because: {'; '.join(self.refusals)}"
        return f"{self.words} (log10 LR {self.llr:+.2f}): {self.times}"

    @property
    def checked_at(self) -> LengthCheck | None:
        """What the ratio was checked on, at the length nearest to that of these texts; None without a reference."""
        return self.checked.at_size(float(effective_count(*self.lengths))) if self.checked else None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "says": self.sentence}

    def to_frame(self) -> pa.Table:
        """One row, so that the rows of many verdicts can be put together."""
        known = self.checked_at
        row = {"llr": self.llr, "words": self.words, "same": self.same, "probability": self.probability}
        row |= {"prior_odds": self.prior_odds, "score": self.score, "overlap": self.overlap}
        row |= {"words_a": self.lengths[0], "words_b": self.lengths[1], "kind": self.kind}
        row |= {"refusals": "; ".join(self.refusals), "warnings": "; ".join(self.warnings)}
        row |= {"checked_cllr": known.cllr if known else None, "checked_auc": known.auc if known else None}
        return pa.Table.from_pylist([row], VERDICT_SCHEMA)

    def __repr__(self) -> str:
        return f"Verdict(llr={self.llr:+.2f}, words={self.words!r}, refusals={self.refusals!r}, …)"

    def _repr_html_(self) -> str:
        rows = [{"method": each.method, "log10 ratio": each.share} for each in self.shares]
        return notebook_rows(self.sentence, rows, self.warnings)


def learn_from_pairs(
    pairs: Sequence[TextPair],
    ranker: Ranker,
    source: str,
    recipe: CalibrateRecipe | None = None,
    *,
    preset: str = "sound",
    progress: Progress | None = None,
) -> PairCalibration:
    """Learn from known pairs what scores mean."""
    recipe = recipe or CalibrateRecipe()
    known = score_known_pairs(pairs, ranker, progress)
    name = ranker.fingerprint if isinstance(ranker, Style) else ranker.name
    shared = usual_overlap([p.a for p in pairs if not p.same], [p.b for p in pairs if not p.same])
    texts = sorted({text for p in pairs if p.same for text in (p.a, p.b)})
    about = {
        "preset": preset,
        "recipe": recipe.model_dump(mode="json"),
        "created": timestamp(),
        "languages": main_languages(pairs),
        "register": ranges_of_texts(texts),
        "kind": kind_of_texts(texts),
    }
    return PairCalibration(fit_scores(known, name, source, recipe.method), shared, about)


def score_known_pairs(pairs: Sequence[TextPair], ranker: Ranker, progress: Progress | None = None) -> Scored:
    """Known pairs with their scores."""
    scores = pair_scores(pairs, ranker, progress)
    return Scored(scores, effective_count(*word_counts(pairs)), np.array([p.same for p in pairs]))


def kind_of_texts(texts: Sequence[str]) -> str:
    """The kind that nearly all of some texts are, where it is one that can be told; else ""."""
    known = known_kinds()
    counts = {kind.name: sum(known.accepts(kind, text) for text in texts) for kind in known.kinds}
    best = max(counts, key=counts.__getitem__)
    return best if texts and counts[best] >= SHARE_OF_KIND * len(texts) else ""


def main_languages(pairs: Sequence[TextPair]) -> list[str]:
    """The languages that a twentieth of the pairs or more are in."""
    from collections import Counter

    from idiograph.text.language import identify

    found = Counter(identify(p.a)[0] for p in pairs)
    return sorted(lang for lang, count in found.items() if count >= len(pairs) / 20)


def calibrate_on_documents(
    documents: Corpus | Sequence[Document], style: Style, source: str, recipe: CalibrateRecipe | None = None
) -> PairCalibration:
    """Learn from documents of known writers what scores mean."""
    return learn_from_pairs(
        draw_pairs(documents, recipe or SMALL_COLLECTION), style, source, recipe or SMALL_COLLECTION
    )


def open_calibration(path: Path, style: Style, preset: str = "sound") -> PairCalibration:
    """A calibration from a file; refuses one that was made for another model, grain or preset."""
    if not path.is_file():
        raise ArtifactError(f"there is no calibration '{path}'; make it: {MAKE}")
    try:
        calibration = PairCalibration.from_json(read_sealed_json(path, f"make it again: {MAKE}"))
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"calibration '{path}' cannot be read ({error}); make it again: {MAKE}") from error
    model = calibration.calibration.style
    if model != style.fingerprint and not calibration.background:
        raise ModelError(f"calibration '{path}' is for model {model}, not {style.fingerprint}; calibrate: {MAKE}")
    if calibration.about.get("preset", preset) != preset:
        raise ModelError(
            f"calibration '{path}' is for preset {calibration.about['preset']}, not {preset}; calibrate: {MAKE} --preset {preset}"
        )
    return calibration


def calibration_path(model: str | Path | None = None) -> Path:
    """Where the calibration of a model lies, whether it is there or not: beside the model."""
    from idiograph.loading import folder_of

    return Path(folder_of(model)) / CALIBRATION_FILE


def calibration_of_model(style: Style, preset: str = "sound") -> PairCalibration:
    """What lies beside the model, or else what the built-in essays say of it."""
    if style.folder and (path := style.folder / CALIBRATION_FILE).is_file():
        return open_calibration(path, style, preset)
    return calibrate_on_anthology(style)


def calibration_for_texts(style: Style, texts: Sequence[str], preset: str = "sound") -> PairCalibration:
    """The calibration beside the model that is for such texts: somebody's own if they are like its texts, else that of
    their kind. Where there is none for them, the one whose `strange` says why."""
    own = calibration_of_model(style, preset) if has_own_calibration(style) else None
    if own and not own.strange(texts):
        return own
    shipped = calibrations_by_kind(style)
    kind = known_kinds().choose(texts)
    if kind and kind.name in shipped:
        return open_calibration(shipped[kind.name], style, preset)
    if own or not shipped:
        return own or calibrate_on_anthology(style)
    return open_calibration(next(iter(shipped.values())), style, preset).for_no_kind()


@lru_cache(maxsize=1)
def calibrate_on_anthology(style: Style) -> PairCalibration:
    """A calibration on the built-in essays; kept, as it takes a while."""
    return calibrate_on_documents(list(anthology()), style, "the built-in anthology")


def verify(
    a: Texts,
    b: Texts,
    style: Style | None = None,
    known: PairCalibration | None = None,
    prior_odds: float | None = None,
    *,
    reference: Reference | None = None,
    use_model: bool | None = None,
) -> Verdict:
    """Compare two texts, or two collections of texts; `prior_odds` are the reader's own, before seeing the texts.

    A text may also be a file: a Path, or a string such as "letter.txt" that names one; in a list strings are texts.

    With a `reference` (documents, a corpus, an index) its texts are the population: what likeness is worth, and how often
    that is right, is learned there. Methods that count compare, and with `use_model` a model as well; where that is None,
    it takes part if a `style` is given, in an index, and among English papers and abstracts. Without a reference a model
    compares, the one that comes with the package if no `style` is given. What its score means is said by the calibration
    `known`, or else by the one beside the model; texts of another kind than those of the calibration get no ratio.
    """
    if prior_odds is not None and prior_odds <= 0:
        raise InputError(f"prior odds must be above 0, but got {prior_odds:g}")
    one, two = as_texts(a), as_texts(b)
    if reference is not None:
        joined = ["\n\n".join(each) for each in (one, two)]
        library = read_reference(reference)
        model = choose_model(library, reference, style, use_model)
        population = learn_population(library, joined, model=model)
        return verify_in_population(joined[0], joined[1], population, prior_odds)
    for text in one + two:
        text_passages(text)  # refuses what is too short
    return verify_by_calibration(one, two, style or shipped_style(), known, prior_odds)


def verify_by_calibration(
    one: Sequence[str], two: Sequence[str], style: Style, known: PairCalibration | None, prior_odds: float | None
) -> Verdict:
    """Compare two collections of texts by a calibration; None for the one beside the model that is for such texts."""
    texts = [*one, *two]
    refusals = [] if known or has_calibration(style) else ["no calibration lies beside the model"]
    known = known or calibration_for_texts(style, texts)
    score = known.score(one, two, style)
    lengths = (sum(map(count_words, one)), sum(map(count_words, two)))
    size = float(effective_count(*lengths))
    strange = known.strange(texts)
    refusals += [] if known.about.get("any_kind") else strange
    joined = ["\n\n".join(each) for each in (one, two)]
    shared = word_overlap(*(content_words(" ".join(each)) for each in (one, two)))
    llr = 0.0 if refusals else known.llr(score, size, shared)
    topical = shared > known.usual_overlap
    notes = caveats_of(texts, llr, size, shared if topical else None, known)
    if not refusals:
        notes += caveats_of_topic(known, known.calibration.llr(score, size), llr, shared)
    if strange and not refusals:
        notes.append(f"the texts are of another kind than those of the calibration ({'; '.join(strange)})")
    kind = known_kinds().named(known.about.get("kind") or "")
    about = {"kind": kind.says if kind else "", "checks": known.checks, "calibration": known.calibration}
    about |= {"overlap": shared, "topic_warning": topical, "lengths": lengths}
    about |= {"shares": () if refusals else known.shares(joined, score, size, shared)}
    return conclude(score, llr, prior_odds, refusals=tuple(refusals), warnings=tuple(notes), **about)


def conclude(score: float, llr: float, prior_odds: float | None, **rest: Any) -> Verdict:
    """What a ratio says, in words."""
    return Verdict(
        score=score,
        llr=llr,
        words=ratio_in_words(llr),
        times=times(llr),
        same=None if abs(llr) < INCONCLUSIVE else llr > 0,
        probability=None if prior_odds is None else posterior(llr, prior_odds),
        prior_odds=prior_odds,
        **rest,
    )


def verify_in_population(a: str, b: str, population: Population, prior_odds: float | None = None) -> Verdict:
    """Compare two texts among the texts of a reference."""
    for text in (a, b):
        text_passages(text)  # refuses what is too short
    lengths = (count_words(a), count_words(b))
    size = population.size(a, b)
    why = population.check.why_silent(population.nearest_length(size))
    refusals = ([why] if why else []) + (foreign_to(population.library, (a, b)) or population.strange((a, b)))
    found = population.compare(a, b)
    shared = word_overlap(content_words(a), content_words(b))
    topical = shared > population.usual_overlap
    llr = 0.0 if refusals else found.llr
    known = population.weights.calibration
    notes = caveats_of_length(llr, size, shared if topical else None, known)
    return conclude(
        found.score,
        llr,
        prior_odds,
        refusals=tuple(refusals),
        warnings=tuple(notes),
        overlap=shared,
        topic_warning=topical,
        lengths=lengths,
        calibration=known,
        checked=population.check,
        shares=() if refusals else found.shares,
    )


def choose_model(
    library: Library, reference: Reference, style: Style | None, use_model: bool | None
) -> ModelRanker | None:
    """The model that reads the texts of a reference; None where it has no part, as reading takes minutes."""
    if use_model is None:
        use_model = style is not None or isinstance(reference, Index) or reads_like_papers(library)
    if not use_model:
        return None
    encode = encode_with_index(reference) if isinstance(reference, Index) else (style or shipped_style()).encode
    return ModelRanker(encode, read=read_once(encode))


def reads_like_papers(library: Library) -> bool:
    """Whether most texts of a reference are English papers or abstracts, as the model was trained on."""
    scholarly = [kind for kind in known_kinds().kinds if kind.name in SCHOLARLY]
    some = library.texts[:: max(len(library) // TEXTS_TO_TELL_KIND, 1)]
    alike = [any(known_kinds().accepts(kind, text) for kind in scholarly) for text in some]
    return sum(alike) > len(some) / 2


def verify_each(
    pairs: Iterable[tuple[str, str]],
    reference: Reference,
    style: Style | None = None,
    use_model: bool | None = None,
) -> Iterator[Verdict]:
    """Compare many pairs of texts among the same reference, each without its texts that are copies of one of the two."""
    library = read_reference(reference)
    model = choose_model(library, reference, style, use_model)
    learned: dict[tuple[str, ...], Population] = {}
    for a, b in pairs:
        kept = without_copies(library, (a, b))
        if kept.texts not in learned:
            learned = {kept.texts: learn_population(kept, model=model)}  # the last is kept: most pairs have no copies
        yield verify_in_population(a, b, learned[kept.texts])


def has_calibration(style: Style) -> bool:
    return has_own_calibration(style) or bool(calibrations_by_kind(style))


def has_own_calibration(style: Style) -> bool:
    return bool(style.folder and (style.folder / CALIBRATION_FILE).is_file())


def calibrations_by_kind(style: Style) -> dict[str, Path]:
    """The calibrations that come with a model, by the kind of text that each is for."""
    files = sorted((style.folder / CALIBRATIONS_BY_KIND).glob("*.json"), reverse=True) if style.folder else []
    return {path.stem: path for path in files}


def as_texts(texts: Texts) -> list[str]:
    """One text or several as a list; together they must be long enough, each alone is then cut into passages."""
    several = given_texts(texts)
    if not several:
        raise InputError("there is no text to compare")
    return several


def caveats_of(
    texts: Sequence[str], llr: float, size: float, shared: float | None, known: PairCalibration
) -> list[str]:
    """What a reader must know before trusting the ratio of a model."""
    from idiograph.text.language import identify

    caveats = caveats_of_length(llr, size, shared, known.calibration)
    languages = known.about.get("languages") or []
    foreign = {lang for lang, sure in map(identify, texts) if sure > 0.9} - set(languages)
    if languages and foreign:
        caveats.append(
            f"the calibration is for {', '.join(languages)}, but there is text in {', '.join(sorted(foreign))}"
        )
    return caveats


def caveats_of_topic(known: PairCalibration, before: float, llr: float, shared: float) -> list[str]:
    """What the shared content words took off the ratio."""
    if not known.topic or before <= llr:
        return []
    if llr == 0:
        return [
            f"sharing {shared:.0%} of their content words accounts for the resemblance: it is no evidence of one hand"
        ]
    return [f"sharing {shared:.0%} of their content words took {before - llr:.2f} off the log10 ratio"]


def caveats_of_length(llr: float, size: float, shared: float | None, known: Calibration) -> list[str]:
    """What the lengths, the shared words and the bounds mean for the ratio."""
    caveats = []
    least, most = known.sizes
    if size < least - 0.1:
        caveats.append(f"the texts are shorter than any that the ratio was learned from ({10**size:.0f} words count)")
    if size > most + 0.3:
        caveats.append("the texts are longer than any that the ratio was learned from")
    if shared is not None and llr > 0:
        caveats.append(
            f"the texts share {shared:.0%} of their content words: topic alone could explain the resemblance"
        )
    if llr in (known.low, known.high):
        caveats.append("the ratio is the furthest that the known pairs support")
    return caveats
