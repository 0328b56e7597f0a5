"""Two texts against a population: what likeness is worth among the texts of a reference, whose writers are known.

Every two texts of the reference are compared, each asked about as if it were not there, and the other way round. From these
pairs is learned what each method counts for and what the weighted sum is worth, by length of text. The two texts in question
are then put among the reference and compared in the same way. Nothing is kept on disk.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from idiograph.answer.authors import author_sets_of
from idiograph.answer.crossvalidate import (
    MIN_AUTHORS_TO_LEAVE_OUT,
    CrossValidation,
    LibraryAuthors,
    check_asked,
    cut_middle,
    groups_of,
    reliability_curve,
    sample_library,
)
from idiograph.answer.evidence import (
    BEST_TEXTS,
    Bools,
    EvidenceWeights,
    Floats,
    KnownQuestions,
    LibraryEvidence,
    Longs,
    Method,
    QuestionPairs,
    author_standings,
    fit_weights,
    fold_numbers,
)
from idiograph.answer.likelihood import MIN_PAIRS_TO_CALIBRATE, Scored, effective_count, fit_scores
from idiograph.answer.methods import METHODS, library_of, library_of_index
from idiograph.errors import InputError
from idiograph.index.index import Index
from idiograph.measures.likelihood import auc, cllr, cllr_min
from idiograph.rankers.library import Library
from idiograph.text.copies import find_copies
from idiograph.text.language import identify
from idiograph.text.passages import count_words
from idiograph.types import Document

CHEAP = ("delta", "letters", "words", "stable")  # the methods that a reference is read with
TEXTS_COMPARED = 300  # of a reference; more are sampled
LENGTHS = (150, 500)  # to which texts are cut for pairs, besides whole texts
DIFFERENT_FOR_ONE = 20  # pairs by two hands for each by one, at most
FOLDS = 5
SHOWN = 10  # features of each method, in either direction
UNKNOWN_AUTHORS = ("?a", "?b")  # the two texts in question; no name, as a fold is of texts with names
Reference = Library | Index | Iterable[Document]


@dataclass(frozen=True)
class ReferencePairs:
    """Pairs of texts of a reference: how each stands by method, and which texts they are."""

    standings: Floats  # (pairs, methods)
    same: Bools
    sizes: Floats
    one: Longs
    two: Longs
    words: int  # that the texts were cut to; 0: whole

    def take(self, which: Bools | Longs) -> "ReferencePairs":
        texts = (self.one[which], self.two[which])
        return ReferencePairs(self.standings[which], self.same[which], self.sizes[which], *texts, self.words)


@dataclass(frozen=True, slots=True)
class LengthCheck:
    """What ratios were worth at one length of text, by weights that saw neither of the texts compared."""

    words: int  # 0: whole texts
    same: int
    different: int
    cllr: float
    auc: float


@dataclass(frozen=True, slots=True)
class PopulationCheck:
    """What the ratios of a reference were checked on."""

    texts: int
    authors: int
    lang: str
    same: int  # pairs of whole texts
    different: int
    cllr: float
    cllr_cal: float
    reliability: tuple[tuple[float, float, int], ...]
    lengths: tuple[LengthCheck, ...]
    weights: tuple[tuple[str, float], ...]
    right: int  # texts whose author is named, each left out
    of: int
    tells_apart: bool
    says: str

    def why_silent(self, words: int = 0) -> str | None:
        """Why ratios of texts of this length (that of a check; 0: whole) are not given, if so."""
        if not self.tells_apart:
            return (
                self.says if "do not tell" in self.says else f"{self.says}: these texts do not tell their authors apart"
            )
        for row in self.lengths:
            if row.words in (0, words) and not row.cllr < 1:
                cut = f"cut to {row.words} words" if row.words else "whole"
                return f"ratios of the reference's texts, {cut}, are no better than none (Cllr {row.cllr:.2f})"
        least = sure_auc(self.lengths[0], self.texts)
        if least <= 0.5:
            shown = f"AUC {self.lengths[0].auc:.2f}, {self.texts} texts"
            return f"pairs by one hand and by two could not surely be told apart ({shown})"
        return None


def sure_auc(row: LengthCheck, texts: int) -> float:
    """The lower end of the 95 % interval of an AUC (Hanley and McNeil), as if no text came in two pairs."""
    pairs = max(texts / 2, 1)
    area, one, two = row.auc, min(row.same, pairs), min(row.different, pairs)
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (one - 1) * (q1 - area**2) + (two - 1) * (q2 - area**2)
    return float(area - 1.96 * np.sqrt(max(spread, 0.0) / max(one * two, 1)))


@dataclass(frozen=True, slots=True)
class MethodShare:
    """What one method adds to the log10 ratio, and the features that make the texts more or less alike by it."""

    method: str
    share: float
    features: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class ReferenceAnswer:
    """The two texts among the reference."""

    score: float
    llr: float
    shares: tuple[MethodShare, ...]


@dataclass(frozen=True)
class Population:
    """A reference that was learned from."""

    library: Library
    pairs: tuple[ReferencePairs, ...]  # by length
    weights: EvidenceWeights
    check: PopulationCheck

    @cached_property
    def usual_overlap(self) -> float:
        """How many content words pairs by two hands share."""
        from idiograph.text.words import usual_overlap

        pairs = self.pairs[0].take(np.flatnonzero(~self.pairs[0].same)[:400])
        one, two = ([self.library.texts[at] for at in places.tolist()] for places in (pairs.one, pairs.two))
        return usual_overlap(one, two)

    def nearest_length(self, size: float) -> int:
        """The length that was checked which is nearest to a comparison of this size; 0: whole texts."""
        return min(self.pairs, key=lambda pairs: abs(float(np.median(pairs.sizes)) - size)).words

    def compare(self, a: str, b: str) -> ReferenceAnswer:
        """Two new texts: each is asked about with the other among the reference, and the mean counts."""
        size = float(effective_count(count_words(a), count_words(b)))
        among = cut_library(self.library, self.nearest_length(size))
        joined = replace(among, texts=(*among.texts, a, b), authors=(*among.authors, *UNKNOWN_AUTHORS))
        evidence = LibraryEvidence(joined, cheap_methods())
        at, other = len(among), len(among) + 1
        rows = evidence.standings([a, b], [at, other])
        standing = (rows[0, other] + rows[1, at]) / 2
        llr = self.weights.calibration.llr(float(self.weights.scores(standing)), size)
        return ReferenceAnswer(float(self.weights.scores(standing)), llr, self._shares(evidence, standing, size))

    def _shares(self, evidence: LibraryEvidence, standing: Floats, size: float) -> tuple[MethodShare, ...]:
        counted = dict(zip(self.weights.names, self.weights.weights, strict=True))
        return tuple(
            MethodShare(name, share, features_of(evidence, name) if counted.get(name, 0.0) > 0 else ())
            for name, share in self.weights.shares(standing, size)
        )


def cheap_methods() -> tuple[Method, ...]:
    return tuple(Method(name, METHODS[name]()) for name in CHEAP)


def features_of(evidence: LibraryEvidence, name: str) -> tuple[tuple[str, float], ...]:
    """What makes the last two texts of a library alike (above 0) or unlike (below) by a method, the largest first."""
    a, b = len(evidence.library) - 2, len(evidence.library) - 1
    totals: dict[str, float] = {}
    for asked, other in ((a, b), (b, a)):
        ranker = evidence.views[evidence.names.index(name)][0].ranker
        found = getattr(ranker, "shares", lambda *_: [])(evidence.library.texts[asked], other, asked)
        for feature, share in found:
            totals[feature] = totals.get(feature, 0.0) + share / 2
    ordered = sorted(totals.items(), key=lambda each: (-abs(each[1]), each[0]))
    alike = [each for each in ordered if each[1] > 0][:SHOWN]
    return tuple(alike + [each for each in ordered if each[1] < 0][:SHOWN])


def read_reference(reference: Reference) -> Library:
    """The texts of a reference and who wrote each."""
    if isinstance(reference, Library):
        return reference
    if isinstance(reference, Index):
        return library_of_index(reference, author_sets_of(reference, "set"))
    return library_of(reference)


def learn_population(library: Library, texts: Sequence[str] = (), source: str = "the reference") -> Population:
    """Learn from a reference, without its texts that are much the same as one of `texts`."""
    kept = sample_library(without_copies(library, texts), TEXTS_COMPARED)
    authors = LibraryAuthors.of(kept)
    if len(kept) < 2 or not any(len(each) > 1 for each in authors.members) or len(authors.names) < 2:
        raise InputError(
            f"the reference has {len(kept)} texts by {len(authors.names)} authors, so it cannot say what likeness is "
            "worth; give at least two texts each of several authors (copies of the texts in question do not count)"
        )
    middle = float(np.median([count_words(text) for text in kept.texts]))
    lengths = (0, *(words for words in LENGTHS if 2 * words < middle))
    compared = [ComparedTexts.of(kept, words) for words in lengths]
    pairs = tuple(each.pairs() for each in compared)
    weights = learn_pairs(pairs, CHEAP, source, len(kept))
    check = check_population(kept, authors, pairs, weights, compared[0].check_authors(authors))
    return Population(kept, pairs, weights, check)


def without_copies(library: Library, texts: Sequence[str]) -> Library:
    """The texts of a library of which none holds, or is held by, one of some texts."""
    names = list(map(str, range(len(library))))
    held = {int(copy.doc_id) for text in texts for copy in find_copies(text, library.texts, names)}
    for at, own in enumerate(library.texts):
        if at not in held and find_copies(own, texts, [""] * len(texts)):
            held.add(at)
    return library.take([at for at in range(len(library)) if at not in held]) if held else library


def cut_library(library: Library, words: int) -> Library:
    return replace(library, texts=tuple(cut_middle(text, words) for text in library.texts)) if words else library


@dataclass(frozen=True)
class ComparedTexts:
    """The texts of a reference, cut to so many words, each asked about without it: (questions, texts, methods)."""

    evidence: LibraryEvidence
    standings: Floats
    counts: Floats  # words of each
    words: int

    @classmethod
    def of(cls, library: Library, words: int) -> "ComparedTexts":
        evidence = LibraryEvidence(cut_library(library, words), cheap_methods())
        texts = evidence.library.texts
        counts = np.array([max(count_words(text), 1) for text in texts], np.float64)
        return cls(evidence, evidence.standings(texts, range(len(texts))), counts, words)

    def pairs(self) -> ReferencePairs:
        """Every two texts, the mean of both ways of asking."""
        both = (self.standings + self.standings.transpose(1, 0, 2)) / 2
        one, two = np.triu_indices(len(self.counts), 1)
        who = np.array(self.evidence.library.authors)
        sizes = effective_count(self.counts[one], self.counts[two])
        return thin_out(ReferencePairs(both[one, two], who[one] == who[two], sizes, one, two, self.words))

    def check_authors(self, authors: LibraryAuthors) -> CrossValidation:
        """How often the author of a text is named."""
        writers = authors.known_writers(len(self.counts))
        asked = np.flatnonzero(writers >= 0)
        standings = {best: author_standings(self.standings[asked], authors.members, best) for best in BEST_TEXTS}
        groups = groups_of(writers[asked], asked)
        questions = KnownQuestions(standings, writers[asked], np.log10(self.counts[asked]), groups)
        return check_asked(self.evidence, authors, questions, self.words)


def thin_out(pairs: ReferencePairs, seed: int = 7) -> ReferencePairs:
    """All pairs by one hand, and not too many by two."""
    same, different = np.flatnonzero(pairs.same), np.flatnonzero(~pairs.same)
    most = DIFFERENT_FOR_ONE * max(len(same), 50)
    if len(different) > most:
        different = np.random.default_rng(seed).choice(different, most, replace=False)
    return pairs.take(np.sort(np.concatenate([same, different])))


def join_pairs(parts: Sequence[ReferencePairs]) -> ReferencePairs:
    """The pairs of several lengths as one."""
    return ReferencePairs(
        np.concatenate([part.standings for part in parts]),
        np.concatenate([part.same for part in parts]),
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.one for part in parts]),
        np.concatenate([part.two for part in parts]),
        0,
    )


def learn_pairs(
    parts: Sequence[ReferencePairs], names: Sequence[str], source: str, texts: int, least: int = MIN_PAIRS_TO_CALIBRATE
) -> EvidenceWeights:
    """What each method counts for in telling pairs by one hand from pairs by two, and what the sum is worth.

    A ratio is bounded by how many pairs there are in which no text comes twice: half the texts.
    """
    pairs = join_pairs(parts)
    weights, _ = fit_weights(QuestionPairs(pairs.standings, pairs.same, pairs.sizes))
    known = fit_scores(Scored(pairs.standings @ weights, pairs.sizes, pairs.same), "", source, least=least)
    reach = float(np.log10(max(texts / 2, 1)))
    bounded = replace(known, low=max(known.low, -reach), high=min(known.high, reach))
    return EvidenceWeights(tuple(names), tuple(map(float, weights)), 1, bounded)


def cross_fit_pairs(parts: Sequence[ReferencePairs], fold: Longs) -> list[Floats]:
    """The ratio of every pair, by weights learned from the texts of other folds; NaN where those have too few pairs."""
    ratios = [np.full(len(part.same), np.nan) for part in parts]
    for one in range(FOLDS):
        for two in range(one, FOLDS):
            train = [
                part.take(~np.isin(fold[part.one], (one, two)) & ~np.isin(fold[part.two], (one, two))) for part in parts
            ]
            same = join_pairs(train).same
            if min(same.sum(), (~same).sum()) < 2:
                continue
            learned = learn_pairs(train, CHEAP, "", int((~np.isin(fold, (one, two))).sum()), least=1)
            for ratio, part in zip(ratios, parts, strict=True):
                f, g = fold[part.one], fold[part.two]
                held = (np.minimum(f, g) == one) & (np.maximum(f, g) == two)
                ratio[held] = learned.calibration.ratios(learned.scores(part.standings[held]), part.sizes[held])
    return ratios


def folds_of_texts(library: Library, authors: LibraryAuthors, seed: int = 7) -> Longs:
    """The fold of each text: all of an author in one where authors are many."""
    if len(authors.names) < MIN_AUTHORS_TO_LEAVE_OUT:
        return fold_numbers(np.arange(len(library)), FOLDS, seed)
    return fold_numbers(np.unique(library.authors, return_inverse=True)[1], FOLDS, seed)


def check_population(
    library: Library,
    authors: LibraryAuthors,
    parts: Sequence[ReferencePairs],
    weights: EvidenceWeights,
    named: CrossValidation,
) -> PopulationCheck:
    """What the ratios are worth on pairs that nothing was learned from."""
    ratios = cross_fit_pairs(parts, folds_of_texts(library, authors))
    lengths = tuple(check_length(part, ratio) for part, ratio in zip(parts, ratios, strict=True))
    known = ~np.isnan(ratios[0])
    same, different = ratios[0][known & parts[0].same], ratios[0][known & ~parts[0].same]
    enough = len(same) > 0 and len(different) > 0
    return PopulationCheck(
        texts=len(library),
        authors=len(authors.names),
        lang=library.lang,
        same=len(same),
        different=len(different),
        cllr=lengths[0].cllr,
        cllr_cal=lengths[0].cllr - cllr_min(same, different) if enough else 0.0,
        reliability=reliability_curve(same, different) if enough else (),
        lengths=lengths,
        weights=tuple(zip(weights.names, weights.weights, strict=True)),
        right=named.best.right,
        of=named.best.of,
        tells_apart=named.tells_apart,
        says=named.sentence,
    )


def check_length(pairs: ReferencePairs, ratios: Floats) -> LengthCheck:
    known = ~np.isnan(ratios)
    same, different = ratios[known & pairs.same], ratios[known & ~pairs.same]
    if not len(same) or not len(different):
        return LengthCheck(pairs.words, len(same), len(different), 1.0, 0.5)
    return LengthCheck(pairs.words, len(same), len(different), cllr(same, different), auc(same, different))


def foreign_to(library: Library, texts: Sequence[str]) -> list[str]:
    """Why two texts cannot be compared among a reference: they are in another language."""
    found = sorted({identify(text)[0] for text in texts} - {library.lang})
    return [f"text in {', '.join(found)}, the reference is in {library.lang}"] if found and library.lang else []
