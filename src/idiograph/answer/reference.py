"""Two texts against a population: what likeness is worth among the texts of a reference, whose writers are known.

A part of the reference is held out at a time, whole authors where there are many, and its texts are compared by what the rest
teaches, as two texts would be of which the reference knows nothing. From these pairs is learned what each method counts for
and what the weighted sum is worth, by length of text; among all writers, and among those who write most alike. A text that is
much longer than the reference's is compared by its pieces. Nothing is kept on disk.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from idiograph.answer.authors import author_sets_of
from idiograph.answer.crossvalidate import (
    MIN_AUTHORS_TO_LEAVE_OUT,
    CrossValidation,
    LibraryAuthors,
    crossvalidate_evidence,
    cut_middle,
    reliability_curve,
    sample_library,
)
from idiograph.answer.evidence import (
    SPREAD_FLOOR,
    Bools,
    EvidenceWeights,
    Floats,
    LibraryEvidence,
    Longs,
    Method,
    QuestionPairs,
    author_standings,
    fit_weights,
    fold_numbers,
    row_statistics,
    standardise,
)
from idiograph.answer.likelihood import MIN_PAIRS_TO_CALIBRATE, Scored, effective_count, fit_scores
from idiograph.answer.methods import METHODS, MODEL, library_of, library_of_index
from idiograph.errors import InputError
from idiograph.index.index import Index
from idiograph.measures.likelihood import auc, cllr, cllr_min
from idiograph.rankers.counts import remember_tallies
from idiograph.rankers.features import CountedParts, FeatureShare, choose_strongest, strongest_features
from idiograph.rankers.library import Library, PairRanker
from idiograph.rankers.model import ModelRanker
from idiograph.text.copies import find_copies
from idiograph.text.language import identify
from idiograph.text.passages import count_words, word_starts
from idiograph.types import Document

CHEAP = ("delta", "letters", "words", "pairs", "stable")  # methods that compare two texts among a reference by counting
NEIGHBOURS = "neighbours"  # whether two texts are near to the same authors of the reference
NEAREST_TEXTS = 3  # of an author say how near a text is to them; all of them tell pairs of the Federalist apart worse
MIN_AUTHORS_TO_STRIKE_ONE = 3  # the reference without one of them still has two
HELD_OUT_PARTS, ROUNDS = 4, 2  # pairs are taken from one part of a reference, by what the others teach; so often
TEXTS_COMPARED = 300  # of a reference; more are sampled
LENGTHS = (150, 500)  # to which texts are cut for pairs, besides whole texts
DIFFERENT_FOR_ONE = 20  # pairs by two hands for each by one, at most
LONG = 1.5  # times as many words as texts of a reference usually have: compared by pieces of the usual length
MOST_PIECES = 5  # of a text are compared, evenly placed in it
ALIKE = 0.15  # of pairs by two hands, whose writers' other texts are nearest; chosen on PAN14
FOLDS = 5
ROUNDING = 1e-9  # what differs by less in a log10 ratio agrees
RATIOS_KEPT = 200  # of each kind of pair, for a curve
SHOWN = 10  # features of each method, in either direction
PAIR_COLUMNS = ("standings", "same", "sizes", "one", "two", "away", "closeness")
Reference = Library | Index | Iterable[Document]


@dataclass(frozen=True)
class ReferencePairs:
    """Pairs of texts of a reference: how each stands by method, and which texts they are."""

    standings: Floats  # (pairs, methods)
    same: Bools
    sizes: Floats
    one: Longs
    two: Longs
    away: Bools  # what the pair was compared by knew nothing of an author that one may be by
    closeness: Floats  # how other pairs of texts by these two writers stand, all methods alike; NaN without others
    words: int  # that the texts were cut to; 0: whole

    def take(self, which: Bools | Longs) -> "ReferencePairs":
        return replace(self, **{name: getattr(self, name)[which] for name in PAIR_COLUMNS})


@dataclass(frozen=True, slots=True)
class LengthCheck:
    """What ratios were worth at one length of text, by weights that saw neither of the texts compared."""

    words: int  # 0: whole texts
    same: int
    different: int
    cllr: float
    auc: float
    size: float = 0.0  # log10 of how many words a comparison rested on, the median
    reliability: tuple[tuple[float, float, int], ...] = ()  # promised probability, how often it came true, pairs
    ratios: tuple[tuple[float, ...], tuple[float, ...]] = (
        (),
        (),
    )  # log10 LR of pairs by one hand and by two, quantiles


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
    strangers: bool = True  # whether pairs by writers of whom nothing was known are among those learned from

    def at_size(self, size: float) -> LengthCheck:
        """What was checked at the length nearest to a comparison of this size."""
        return min(self.lengths, key=lambda row: abs(row.size - size))

    def why_silent(self, words: int = 0) -> str | None:
        """Why ratios of texts of this length (that of a check; 0: whole) are not given, if so."""
        if not self.strangers:
            return (
                f"the reference has texts by {self.authors} authors, too few to leave one out: what tells these apart "
                "need not tell others apart; give several texts each of three or more"
            )
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
    """What one method adds to the log10 ratio, and what carries that.

    `features` are the strongest for and against one hand; they, `others` (all the other features) and `usual` (less what any
    text of the reference would add) sum to `share`.
    """

    method: str
    share: float
    features: tuple[FeatureShare, ...] = ()
    others: float = 0.0
    usual: float = 0.0


@dataclass(frozen=True, slots=True)
class ReferenceAnswer:
    """The two texts among the reference."""

    score: float
    llr: float
    shares: tuple[MethodShare, ...]


@dataclass(frozen=True)
class PairEvidence:
    """A library as the population of pairs of texts that it does not have: what each method and the library's authors say."""

    library: Library
    names: tuple[str, ...]
    learned: tuple[tuple[PairRanker, ...], ...]
    members: tuple[Longs, ...]  # the places of each author's texts
    usual_words: float  # of a text of the library, the median

    @classmethod
    def learn(cls, library: Library, methods: Sequence[Method]) -> "PairEvidence":
        learned = tuple(tuple(one.learn(library) for one in method.rankers) for method in methods)
        members = LibraryAuthors.of(library).members
        names = tuple(method.name for method in methods)
        return cls(library, names, learned, members, median_words(library.texts))  # pyright: ignore[reportArgumentType]

    def cut(self, texts: Sequence[str]) -> "TextPieces":
        """What of each text is compared: a long one in pieces, as several texts in one are near to everything."""
        return TextPieces.cut(texts, self.usual_words)

    def standings(self, texts: Sequence[str]) -> Floats:
        """How each two texts stand by each method, and by their neighbours: (texts, texts, methods + 1).

        A score is read against what each of the two scores with the library. Neighbours are the authors of the library:
        two texts by one hand are near to the same of them. Texts of several pieces stand as these do on average.
        """
        by_method, near, pieces = [], [], self.cut(texts)
        for views in self.learned:
            each = [self._view(view, pieces.texts) for view in views]
            by_method.append(np.mean([pairs for pairs, _ in each], axis=0))
            near.append(np.mean([authors for _, authors in each], axis=0))
        by_method.append(angles_between(np.concatenate(near, axis=1)))
        return np.stack([pieces.mean @ pairs @ pieces.mean.T for pairs in by_method], axis=-1)

    def remoteness(self, texts: Sequence[str]) -> Floats:
        """How far each text lies from what is usual in the library, by its groups of three letters."""
        ranker = self.learned[self.names.index("letters")][0]
        return ranker.remoteness(texts)  # pyright: ignore[reportAttributeAccessIssue]

    def explain(
        self, name: str, share: float, standing: float, texts: tuple[str, str], count: int = SHOWN
    ) -> MethodShare:
        """What carries the share of a method in the ratio of two texts that stand so by it.

        A standing is the mean over views of (score less its mean with the library) over its spread there, from both sides; so
        each feature's part of a score is its part of the standing, times that.
        """
        if name == NEIGHBOURS:
            return self._explain_neighbours(share, standing, texts, count)
        if name == MODEL:
            return MethodShare(name, share)  # it counts nothing
        views = self.learned[self.names.index(name)]
        factor = share / standing / len(views)
        parts = [part.times(factor) for view in views for part in self._parts_of_standing(view, texts)]
        total = sum(float(part.parts.sum()) for part in parts)
        shown = strongest_features(parts, *texts, self.library, count)
        return MethodShare(name, share, shown, total - sum(each.share for each in shown), share - total)

    def _parts_of_standing(self, view: PairRanker, texts: tuple[str, str]) -> list[CountedParts]:
        """What each feature adds to how two texts stand by a view, the mean over their pieces."""
        one, two = (TextPieces.cut([text], self.usual_words).texts for text in texts)
        steep = [1 / np.maximum(row_statistics(view.score(each))[1][:, 0], SPREAD_FLOOR) for each in (one, two)]
        found: list[CountedParts] = []
        for (i, a), (j, b) in product(enumerate(one), enumerate(two)):
            factor = float(steep[0][i] + steep[1][j]) / 2 / (len(one) * len(two))
            parts: list[CountedParts] = view.parts_between(a, b)  # pyright: ignore[reportAttributeAccessIssue]
            scaled = [part.times(factor) for part in parts]
            found = [old.add(new) for old, new in zip(found, scaled, strict=True)] if found else scaled
        return found

    def _explain_neighbours(self, share: float, standing: float, texts: tuple[str, str], count: int) -> MethodShare:
        """Which authors both texts are near to, or far from: in place of rates, how near either is, in spreads."""
        pieces = self.cut(texts)
        each = [np.mean([self._view(view, pieces.texts)[1] for view in views], axis=0) for views in self.learned]
        all_near = np.concatenate(each, axis=1)  # (pieces, methods × authors)
        near = pieces.mean @ all_near  # (2, methods × authors)
        one, two = pieces.mean @ (all_near / np.maximum(np.linalg.norm(all_near, axis=1, keepdims=True), SPREAD_FLOOR))
        shape = (len(self.learned), len(self.members))
        parts = (one * two * share / standing).reshape(shape).sum(axis=0)
        columns = [parts, *near.reshape(2, *shape).mean(axis=1), np.zeros(len(parts))]
        names = LibraryAuthors.of(self.library).names
        values = zip(names, np.stack(columns, axis=1).tolist(), strict=True)
        shown = choose_strongest([FeatureShare(name, "author", *numbers) for name, numbers in values], count)
        return MethodShare(NEIGHBOURS, share, shown, share - sum(feature.share for feature in shown))

    def _view(self, ranker: PairRanker, texts: Sequence[str]) -> tuple[Floats, Floats]:
        """Each two texts, and each text with each author of the library."""
        among, pairs = ranker.score(texts), ranker.between(texts, texts)
        mean, spread = row_statistics(among)
        known = standardise((pairs + pairs.T) / 2, mean, spread)
        authors = author_standings(standardise(among, mean, spread)[:, :, None], self.members, NEAREST_TEXTS)[:, :, 0]
        return (known + known.T) / 2, authors - authors.mean(axis=1, keepdims=True)


@dataclass(frozen=True)
class TextPieces:
    """What of some texts is compared: each whole, or a long one in pieces."""

    texts: tuple[str, ...]
    mean: Floats  # (given texts, pieces), rows sum to 1

    @classmethod
    def cut(cls, texts: Sequence[str], words: float) -> "TextPieces":
        """Texts that have well over `words` words in pieces of about so many."""
        pieces = [cut_evenly(text, words) for text in texts]
        owner = np.repeat(np.arange(len(texts)), [len(each) for each in pieces])
        own = (owner == np.arange(len(texts))[:, None]).astype(np.float64)
        return cls(tuple(piece for each in pieces for piece in each), own / own.sum(axis=1, keepdims=True))

    @property
    def words(self) -> Floats:
        """Of a piece of each text, on average."""
        return self.mean @ np.array([max(count_words(piece), 1) for piece in self.texts], np.float64)


def cut_evenly(text: str, words: float) -> list[str]:
    """A text of over `LONG` times so many words in equal pieces of about so many; of many, some that are evenly placed."""
    starts = word_starts(text)
    count = round(len(starts) / words) if len(starts) > LONG * words else 1
    if count < 2:
        return [text]
    edges = [0, *(starts[len(starts) * at // count] for at in range(1, count)), len(text)]
    some = np.linspace(0, count - 1, min(count, MOST_PIECES)).round().astype(int).tolist()
    return [text[edges[at] : edges[at + 1]] for at in some]


def median_words(texts: Sequence[str]) -> float:
    return max(float(np.median([count_words(text) for text in texts])), 1.0)


def angles_between(rows: Floats) -> Floats:
    """The cosine of each two rows; 0 with a row of zeros."""
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return unit @ unit.T


@dataclass(frozen=True)
class PairRatios:
    """What pairs are worth among writers of the reference, among those of them who write most alike and, where authors are few,
    among others as well.

    Who wrote two texts need not be in the reference, nor be drawn from it at random, and nobody knows. So the ratio nearest
    to 1 counts, and where they point apart it is 1.
    """

    learned: tuple[EvidenceWeights, ...]

    def ratios(self, standings: Floats, sizes: Floats) -> Floats:
        """log10 likelihood ratios of (pairs, methods)."""
        each = np.stack([one.calibration.ratios(one.scores(standings), sizes) for one in self.learned])
        agreed = np.where((each > 0).all(axis=0), each.min(axis=0), 0.0)
        return np.where((each < 0).all(axis=0), each.max(axis=0), agreed)

    def shares(self, standing: Floats, size: float) -> tuple[tuple[str, float], ...]:
        """What each method adds to the ratio of one pair, by the weights that keep it nearest to 1; they sum to it."""
        parts = min(
            (one.shares(standing, size) for one in self.learned), key=lambda found: abs(sum(v for _, v in found))
        )
        left = float(self.ratios(standing[None], np.array([size]))[0]) - sum(value for _, value in parts)
        return (*parts, *([("agreement", left)] if abs(left) > ROUNDING else []))


@dataclass(frozen=True)
class Population:
    """A reference that was learned from."""

    library: Library
    methods: tuple[Method, ...]
    pairs: tuple[ReferencePairs, ...]  # by length
    ratios: PairRatios
    check: PopulationCheck
    furthest: dict[int, float]  # by length: how far from the rest the reference's own texts lie at most

    @property
    def weights(self) -> EvidenceWeights:
        """What is learned among writers of the reference."""
        return self.ratios.learned[0]

    def strange(self, texts: Sequence[str]) -> list[str]:
        """Why texts are unlike those of the reference, so that what was learned there says nothing of them."""
        words = self.nearest_length(self.size(*texts))
        far, most = self.evidence.remoteness([cut_middle(text, words) for text in texts]), self.furthest[words]
        if max(far) <= most:
            return []
        return [
            f"the texts are unlike those of the reference (its own lie up to {most:.2f} from its middle, "
            f"these {' and '.join(f'{each:.2f}' for each in far)})"
        ]

    @cached_property
    def evidence(self) -> PairEvidence:
        return PairEvidence.learn(self.library, self.methods)

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

    def size(self, a: str, b: str) -> float:
        """log10 of how many words a comparison of two texts rests on: of long ones, that of a piece of each."""
        return float(effective_count(*self.evidence.cut([a, b]).words))

    def compare(self, a: str, b: str) -> ReferenceAnswer:
        """Two new texts, which the reference does not have."""
        size = self.size(a, b)
        standing = self.evidence.standings([a, b])[0, 1]
        score = float(self.weights.scores(standing))
        llr = float(self.ratios.ratios(standing[None], np.array([size]))[0])
        return ReferenceAnswer(score, llr, self._shares(a, b, standing, size))

    def _shares(self, a: str, b: str, standing: Floats, size: float) -> tuple[MethodShare, ...]:
        stands: dict[str, float] = dict(zip(self.weights.names, standing.tolist(), strict=True))
        return tuple(
            self.evidence.explain(name, share, stands[name], (a, b)) if stands.get(name) else MethodShare(name, share)
            for name, share in self.ratios.shares(standing, size)
        )


def pair_methods(model: ModelRanker | None = None) -> tuple[Method, ...]:
    """The methods that compare two texts."""
    counting = tuple(Method(name, METHODS[name]()) for name in CHEAP)
    return (*counting, Method(MODEL, (model,))) if model else counting


def read_reference(reference: Reference) -> Library:
    """The texts of a reference and who wrote each."""
    if isinstance(reference, Library):
        return reference
    if isinstance(reference, Index):
        return library_of_index(reference, author_sets_of(reference, "set"))
    return library_of(reference)


@remember_tallies()
def learn_population(
    library: Library, texts: Sequence[str] = (), source: str = "the reference", model: ModelRanker | None = None
) -> Population:
    """Learn from a reference, without its texts that are much the same as one of `texts`. A `model` takes part."""
    kept = sample_library(without_copies(library, texts), TEXTS_COMPARED)
    authors = LibraryAuthors.of(kept)
    if len(kept) < 2 or not any(len(each) > 1 for each in authors.members) or len(authors.names) < 2:
        raise InputError(
            f"the reference has {len(kept)} texts by {len(authors.names)} authors, so it cannot say what likeness is "
            "worth; give at least two texts each of several authors (copies of the texts in question do not count)"
        )
    lengths = (0, *(words for words in LENGTHS if 2 * words < median_words(kept.texts)))
    methods = pair_methods(model)
    held = hold_out_pairs(kept, authors, lengths, methods)
    pairs = tuple(thin_out(join_pairs(parts.pairs, words)) for words, parts in held.items())
    ratios = learn_ratios(pairs, names_of_columns(methods), source, len(kept))
    named = crossvalidate_evidence(LibraryEvidence(kept, methods), authors)
    check = check_population(kept, authors, pairs, ratios, named)
    furthest = {words: max(parts.remoteness) for words, parts in held.items()}
    return Population(kept, methods, pairs, ratios, check, furthest)


def names_of_columns(methods: Sequence[Method]) -> tuple[str, ...]:
    """What pairs are compared by: the methods, and the neighbours that they find."""
    return (*(method.name for method in methods), NEIGHBOURS)


def without_copies(library: Library, texts: Sequence[str]) -> Library:
    """The texts of a library of which none holds, or is held by, one of some texts."""
    names = list(map(str, range(len(library))))
    held = {int(copy.doc_id) for text in texts for copy in find_copies(text, library.texts, names)}
    for at, own in enumerate(library.texts):
        if at not in held and find_copies(own, texts, [""] * len(texts)):
            held.add(at)
    return library.take([at for at in range(len(library)) if at not in held]) if held else library


@dataclass(frozen=True)
class HeldOutPairs:
    """Texts of a reference that were held out at one length: their pairs, and how far each lies from the rest."""

    pairs: list[ReferencePairs]
    remoteness: list[float]


def hold_out_pairs(
    library: Library, authors: LibraryAuthors, lengths: Sequence[int], methods: Sequence[Method]
) -> dict[int, HeldOutPairs]:
    """Pairs of the library's texts, at each length, by what is learned without either of the two."""
    found = {words: HeldOutPairs([], []) for words in lengths}
    for held, rest, usual in parts_to_hold_out(library, authors):
        evidence = PairEvidence.learn(library.take(rest.tolist()), methods)
        for words in lengths:
            own = library.take(held.tolist())
            found[words].pairs.append(pairs_among(own, held, evidence, words, away=not usual))
            if usual:
                found[words].remoteness.extend(evidence.remoteness([cut_middle(text, words) for text in own.texts]))
    return found


def parts_to_hold_out(library: Library, authors: LibraryAuthors) -> Iterator[tuple[Longs, Longs, bool]]:
    """Texts that are held out together, those that are learned from, and whether the first are a part like any other.

    Where authors are few, texts are held out and not authors; then, each author in turn is left out whole as well, and some
    of theirs held out with some of the others': who wrote the texts in question need not be in the reference.
    """
    everything = np.arange(len(library))
    for seed in range(ROUNDS):
        fold = folds_of_texts(library, authors, seed, HELD_OUT_PARTS)
        for number in np.unique(fold):
            held = np.flatnonzero(fold == number)
            if 2 <= len(held) < len(library):
                yield held, np.setdiff1d(everything, held), True
    if MIN_AUTHORS_TO_STRIKE_ONE <= len(authors.names) < MIN_AUTHORS_TO_LEAVE_OUT:
        fold = fold_numbers(everything, HELD_OUT_PARTS, ROUNDS)
        for at, own in enumerate(authors.members):
            some = own[np.argsort(fold[own], kind="stable")][: len(library) // HELD_OUT_PARTS]
            others = np.setdiff1d(np.flatnonzero(fold == at % HELD_OUT_PARTS), own)
            yield np.union1d(some, others), np.setdiff1d(everything, np.union1d(own, others)), False


def pairs_among(held: Library, places: Longs, evidence: PairEvidence, words: int, away: bool = False) -> ReferencePairs:
    """Every two of some texts, cut to so many words, that `evidence` has not seen; `places` are theirs in the reference."""
    texts = [cut_middle(text, words) for text in held.texts]
    counts = evidence.cut(texts).words
    one, two = np.triu_indices(len(texts), 1)
    who = np.unique(held.authors, return_inverse=True)[1]
    standings = evidence.standings(texts)[one, two]
    return ReferencePairs(
        standings,
        who[one] == who[two],
        effective_count(counts[one], counts[two]),
        places[one],
        places[two],
        np.full(len(one), away),
        closeness_of_writers(who[one], who[two], standings.mean(axis=1)),
        words,
    )


def closeness_of_writers(one: Longs, two: Longs, nearness: Floats) -> Floats:
    """For pairs of texts by these writers, how near the other pairs by the same two are on average; NaN without others.

    The pair itself has no part: among pairs that were chosen for being near, nearness would mean nothing.
    """
    both = np.stack([np.minimum(one, two), np.maximum(one, two)], axis=1)
    _, writers = np.unique(both, axis=0, return_inverse=True)
    count, total = np.bincount(writers), np.bincount(writers, nearness)
    others = count[writers] - 1
    return np.where(others > 0, (total[writers] - nearness) / np.maximum(others, 1), np.nan)


def thin_out(pairs: ReferencePairs, seed: int = 7) -> ReferencePairs:
    """All pairs by one hand, and not too many by two."""
    same, different = np.flatnonzero(pairs.same), np.flatnonzero(~pairs.same)
    most = DIFFERENT_FOR_ONE * max(len(same), 50)
    if len(different) > most:
        different = np.random.default_rng(seed).choice(different, most, replace=False)
    return pairs.take(np.sort(np.concatenate([same, different])))


def join_pairs(parts: Sequence[ReferencePairs], words: int = 0) -> ReferencePairs:
    """Several collections of pairs as one."""
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in PAIR_COLUMNS}
    return ReferencePairs(**columns, words=words)


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


def fewest_of_a_kind(parts: Sequence[ReferencePairs]) -> int:
    """How many pairs there are by one hand or by two, whichever are fewer."""
    same = join_pairs(parts).same
    return int(min(same.sum(), (~same).sum()))


def learn_ratios(
    parts: Sequence[ReferencePairs],
    names: Sequence[str],
    source: str,
    texts: int,
    least: int = MIN_PAIRS_TO_CALIBRATE,
) -> PairRatios:
    """Learn what pairs are worth, also for writers who write alike, and where there are enough of them, of elsewhere."""
    near, away = (those_away(parts, kind) for kind in (False, True))
    alike = [part.take(alike_pairs(part)) for part in near]
    enough = [near, *(some for some in (alike, away) if fewest_of_a_kind(some) >= MIN_PAIRS_TO_CALIBRATE)]
    return PairRatios(tuple(learn_pairs(some, names, source, texts, least) for some in enough))


def those_away(parts: Sequence[ReferencePairs], away: bool = True) -> list[ReferencePairs]:
    """Pairs by writers of whom nothing was known, or the others."""
    return [part.take(part.away == away) for part in parts]


def alike_pairs(pairs: ReferencePairs) -> Bools:
    """Which pairs are by one hand, or by two whose other texts are the nearest."""
    two_hands = ~pairs.same & ~np.isnan(pairs.closeness)
    if not two_hands.any():
        return pairs.same
    return pairs.same | (two_hands & (pairs.closeness >= np.quantile(pairs.closeness[two_hands], 1 - ALIKE)))


def cross_fit_pairs(parts: Sequence[ReferencePairs], names: Sequence[str], fold: Longs) -> list[Floats]:
    """The ratio of every pair, by weights learned from the texts of other folds; NaN where those have too few pairs."""
    ratios = [np.full(len(part.same), np.nan) for part in parts]
    for one in range(FOLDS):
        for two in range(one, FOLDS):
            train = [
                part.take(~np.isin(fold[part.one], (one, two)) & ~np.isin(fold[part.two], (one, two))) for part in parts
            ]
            if fewest_of_a_kind(train) < 2:
                continue
            learned = learn_ratios(train, names, "", int((~np.isin(fold, (one, two))).sum()), least=1)
            for ratio, part in zip(ratios, parts, strict=True):
                f, g = fold[part.one], fold[part.two]
                held = (np.minimum(f, g) == one) & (np.maximum(f, g) == two)
                ratio[held] = learned.ratios(part.standings[held], part.sizes[held])
    return ratios


def folds_of_texts(library: Library, authors: LibraryAuthors, seed: int = 7, folds: int = FOLDS) -> Longs:
    """The fold of each text: all of an author in one where authors are many."""
    if len(authors.names) < MIN_AUTHORS_TO_LEAVE_OUT:
        return fold_numbers(np.arange(len(library)), folds, seed)
    return fold_numbers(np.unique(library.authors, return_inverse=True)[1], folds, seed)


def check_population(
    library: Library,
    authors: LibraryAuthors,
    parts: Sequence[ReferencePairs],
    learned: PairRatios,
    named: CrossValidation,
) -> PopulationCheck:
    """What the ratios are worth on pairs that nothing was learned from."""
    weights = learned.learned[0]
    ratios = cross_fit_pairs(parts, weights.names, folds_of_texts(library, authors))
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
        strangers=len(authors.names) >= MIN_AUTHORS_TO_LEAVE_OUT
        or fewest_of_a_kind(those_away(parts)) >= MIN_PAIRS_TO_CALIBRATE,
    )


def check_length(pairs: ReferencePairs, ratios: Floats) -> LengthCheck:
    known = ~np.isnan(ratios)
    same, different = ratios[known & pairs.same], ratios[known & ~pairs.same]
    size = float(np.median(pairs.sizes))
    if not len(same) or not len(different):
        return LengthCheck(pairs.words, len(same), len(different), 1.0, 0.5, size)
    worth = (cllr(same, different), auc(same, different))
    kept = (some_quantiles(same), some_quantiles(different))
    return LengthCheck(pairs.words, len(same), len(different), *worth, size, reliability_curve(same, different), kept)


def some_quantiles(ratios: Floats) -> tuple[float, ...]:
    """The ratios in order; of many, as many quantiles as a curve needs."""
    count = min(len(ratios), RATIOS_KEPT)
    return tuple(np.round(np.quantile(ratios, np.linspace(0, 1, count)), 3).tolist())


def foreign_to(library: Library, texts: Sequence[str]) -> list[str]:
    """Why two texts cannot be compared among a reference: they are in another language."""
    found = sorted({identify(text)[0] for text in texts} - {library.lang})
    return [f"text in {', '.join(found)}, the reference is in {library.lang}"] if found and library.lang else []
