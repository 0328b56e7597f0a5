"""One writer or two? A calibrated likelihood ratio for two texts or two collections: evidence, not a verdict, and it may
abstain. What a score means is learned from known pairs and kept beside the model."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from idiograph.answer.kinds import ranges_of_texts, unlike_ranges
from idiograph.answer.likelihood import (
    INCONCLUSIVE,
    Calibration,
    Scored,
    effective_count,
    fit_scores,
    posterior,
    ratio_in_words,
    times,
)
from idiograph.answer.pairs import TextPair, draw_pairs
from idiograph.answer.scores import pair_scores, text_passages, text_score, word_counts
from idiograph.corpus.corpus import Corpus
from idiograph.errors import ArtifactError, InputError, ModelError
from idiograph.recipe import CalibrateRecipe
from idiograph.runner import Progress
from idiograph.store import timestamp, write_json
from idiograph.style.model import Ranker, Style
from idiograph.synth.anthology import anthology
from idiograph.text.passages import count_words
from idiograph.text.words import content_words, usual_overlap, word_overlap
from idiograph.types import Document

CALIBRATION_FILE = "calibration.json"
MAKE = "idiograph calibrate MODEL CORPUS"
SMALL_COLLECTION = CalibrateRecipe(per_author=10, different=4, lengths=(120, 240, 480, 1920))  # a few dozen texts


@dataclass(frozen=True, slots=True)
class PairCalibration:
    """What pairs from a known corpus look like: their scores, and how many content words they share."""

    calibration: Calibration
    usual_overlap: float
    about: dict[str, Any] = field(default_factory=dict)  # preset, languages, kind of text, recipe, date

    def to_json(self) -> dict[str, Any]:
        about = {"calibration": self.calibration.to_json(), "usual_overlap": self.usual_overlap}
        return {**about, "about": self.about}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "PairCalibration":
        return cls(Calibration.from_json(saved["calibration"]), saved["usual_overlap"], saved["about"])

    def save(self, path: Path) -> None:
        write_json(path, self.to_json())


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the comparison of two texts says. `same` is None where it abstains.

    `outside` names how the texts differ in kind from those of the calibration. They then have no ratio, which is a ratio of 1.
    """

    score: float
    llr: float
    words: str
    times: str
    same: bool | None
    probability: float
    prior_odds: float
    overlap: float
    topic_warning: bool
    outside: tuple[str, ...]
    warnings: tuple[str, ...]
    lengths: tuple[int, int]  # words
    calibration: Calibration

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


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
    about = {
        "preset": preset,
        "recipe": recipe.model_dump(mode="json"),
        "created": timestamp(),
        "languages": main_languages(pairs),
        "register": ranges_of_texts(sorted({text for p in pairs if p.same for text in (p.a, p.b)})),
    }
    return PairCalibration(fit_scores(known, name, source, recipe.method), shared, about)


def score_known_pairs(pairs: Sequence[TextPair], ranker: Ranker, progress: Progress | None = None) -> Scored:
    """Known pairs with their scores."""
    import numpy as np

    scores = pair_scores(pairs, ranker, progress)
    return Scored(scores, effective_count(*word_counts(pairs)), np.array([p.same for p in pairs]))


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
    try:
        calibration = PairCalibration.from_json(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise ArtifactError(f"there is no calibration '{path}'; make it: {MAKE}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"calibration '{path}' cannot be read ({error}); make it again: {MAKE}") from error
    model = calibration.calibration.style
    if model != style.fingerprint:
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


@lru_cache(maxsize=1)
def calibrate_on_anthology(style: Style) -> PairCalibration:
    """A calibration on the built-in essays; kept, as it takes a while."""
    return calibrate_on_documents(list(anthology()), style, "the built-in anthology")


@cache
def shipped_style() -> Style:
    """The model that comes with the package, opened once."""
    from idiograph.loading import load

    return load()


def verify(
    a: str | Sequence[str],
    b: str | Sequence[str],
    style: Style | None = None,
    known: PairCalibration | None = None,
    prior_odds: float = 1.0,
    *,
    anyway: bool = False,
) -> Verdict:
    """Compare two texts, or two collections of texts; `prior_odds` are the reader's own, before seeing the texts.

    Without a `style` the model that comes with the package compares them, and without a calibration `known` the one that
    lies beside the model says what the score means, or one on the built-in essays. Texts of another kind than those of
    the calibration get no ratio, unless one is wanted `anyway`.
    """
    if prior_odds <= 0:
        raise InputError(f"prior odds must be above 0, but got {prior_odds:g}")
    one, two = as_texts(a), as_texts(b)
    passages = [[p for text in each for p in text_passages(text)] for each in (one, two)]
    style = style or shipped_style()
    known = known or calibration_of_model(style)
    score = text_score(*map(style.encode, passages))
    lengths = (sum(map(count_words, one)), sum(map(count_words, two)))
    size = float(effective_count(*lengths))
    strange = unlike_ranges(one + two, known.about.get("register") or {})
    llr = 0.0 if strange and not anyway else known.calibration.llr(score, size)
    shared = word_overlap(*(content_words(" ".join(each)) for each in (one, two)))
    topical = shared > known.usual_overlap
    return Verdict(
        score=score,
        llr=llr,
        words=ratio_in_words(llr),
        times=times(llr),
        same=None if abs(llr) < INCONCLUSIVE else llr > 0,
        probability=posterior(llr, prior_odds),
        prior_odds=prior_odds,
        overlap=shared,
        topic_warning=topical,
        outside=() if anyway else tuple(strange),
        warnings=tuple(caveats_of(one + two, llr, size, shared if topical else None, known, strange)),
        lengths=lengths,
        calibration=known.calibration,
    )


def as_texts(texts: str | Sequence[str]) -> list[str]:
    """One text or several as a list; together they must be long enough, each alone is then cut into passages."""
    several = [texts] if isinstance(texts, str) else list(texts)
    if not several:
        raise InputError("there is no text to compare")
    return several


def caveats_of(
    texts: Sequence[str], llr: float, size: float, shared: float | None, known: PairCalibration, strange: Sequence[str]
) -> list[str]:
    """What a reader must know before trusting the ratio."""
    from idiograph.text.language import identify

    caveats = []
    least, most = known.calibration.sizes
    if size < least - 0.1:
        caveats.append(f"the texts are shorter than any that the calibration saw ({10**size:.0f} words count)")
    if size > most + 0.3:
        caveats.append("the texts are longer than any that the calibration saw: the ratio is on the safe side")
    languages = known.about.get("languages") or []
    foreign = {lang for lang, sure in map(identify, texts) if sure > 0.9} - set(languages)
    if languages and foreign:
        caveats.append(
            f"the calibration is for {', '.join(languages)}, but there is text in {', '.join(sorted(foreign))}"
        )
    if strange:
        caveats.append(f"the texts are of another kind than those of the calibration ({'; '.join(strange)})")
    if shared is not None and llr > 0:
        caveats.append(
            f"the texts share {shared:.0%} of their content words: topic alone could explain the resemblance"
        )
    if llr in (known.calibration.low, known.calibration.high):
        caveats.append("the ratio is at the bound that the calibration pairs support; it may be stronger")
    return caveats
