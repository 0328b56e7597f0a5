"""Who among the authors of an index wrote this? Ranked author-sets with a likelihood ratio, and the passages behind it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from idiograph.answer.authors import IndexAuthors, author_sets_of
from idiograph.answer.crossvalidate import BEST, CrossValidation, LibraryKnowledge
from idiograph.answer.evidence import author_standings
from idiograph.answer.large.learning import sampled_evidence_of_index
from idiograph.answer.large.sampled import SampledQuestion
from idiograph.answer.likelihood import Calibration, effective_count, ratio_in_words
from idiograph.answer.methods import MODEL, evidence_of_index, is_large
from idiograph.answer.openset import (
    IndexCalibration,
    OpenSetAnswer,
    calibration_of_index,
    open_answer,
    open_answer_of_strange,
    why_strange,
)
from idiograph.answer.pairs import text_passages
from idiograph.answer.ranking import Bools, Floats, Ints, Matches, Ranking, match_candidates, rank_candidates
from idiograph.corpus.formats import given_texts
from idiograph.errors import InputError
from idiograph.html import notebook_rows
from idiograph.index.index import Index, Passage
from idiograph.rankers.model import mean_patches
from idiograph.style.patches import Patches
from idiograph.text.copies import Copy, find_copies
from idiograph.text.passages import count_words
from idiograph.text.words import content_words, word_overlap

EVIDENCE_PER_CANDIDATE = 3
CANDIDATE_SCHEMA = pa.schema(
    {
        "rank": pa.int64(),
        "authors": pa.list_(pa.string()),
        "names": pa.list_(pa.string()),
        "score": pa.float64(),
        "llr": pa.float64(),
        "words": pa.string(),
        "probability": pa.float64(),
        "documents": pa.int64(),
        "topic_warning": pa.bool_(),
        "evidence": pa.string(),
        "shares": pa.map_(pa.string(), pa.float64()),
    }
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage of the question and one of the candidate's that resembles it; `topical` where shared words explain it.

    `expected` is the similarity that passages by others have when they share as many content words.
    """

    asked: str
    found: str
    doc_id: str
    title: str
    score: float
    overlap: float
    expected: float
    topical: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """An author-set, or an author over all their sets, that may have written the text."""

    authors: tuple[str, ...]
    names: tuple[str, ...]
    score: float
    llr: float
    words: str
    probability: float
    documents: int
    evidence: tuple[Evidence, ...]
    shares: tuple[tuple[str, float], ...] = ()  # what each method adds to the log10 ratio, before it is bounded

    @property
    def topical(self) -> bool:
        """Would shared content words alone explain the best of the evidence, or most of it?"""
        return self.evidence[0].topical or sum(e.topical for e in self.evidence) * 2 > len(self.evidence)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "topic_warning": self.topical}

    def to_row(self, rank: int) -> dict[str, Any]:
        """The candidate as a row of a table."""
        about = {"rank": rank, "authors": self.authors, "names": self.names, "score": self.score, "llr": self.llr}
        about |= {"words": self.words, "probability": self.probability, "documents": self.documents}
        return {**about, "topic_warning": self.topical, "evidence": self.evidence[0].doc_id, "shares": self.shares}


@dataclass(frozen=True, slots=True)
class Attribution:
    """Candidates, best first, and whether any of them stands out.

    `check` says how often the method is right on the library's own texts; `copies` names documents of the library that hold
    the text, or much of it. `refusals` say why there are no ratios, if so: all are 1, and the order is that of likeness.
    """

    candidates: tuple[Candidate, ...]
    none: OpenSetAnswer  # is the writer among them at all?
    none_stands_out: bool
    calibration: Calibration
    lengths: int  # words of the question
    asked: int  # passages of the question
    method: str = MODEL
    check: CrossValidation | None = None
    copies: tuple[Copy, ...] = ()
    refusals: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """How often answers like this one are right, and what they rest on; or why there is none."""
        if self.refusals:
            return f"no answer: {'; '.join(self.refusals)}"
        if self.check is None:
            return ""
        weights = ", ".join(f"{name} {weight:.2f}" for name, weight in self.check.weights.items() if weight > 0)
        return f"{self.check.sentence}; weights: {weights}" if len(self.check.weights) > 1 else self.check.sentence

    def to_json(self) -> dict[str, Any]:
        about = {"none_stands_out": self.none_stands_out, "open_set": asdict(self.none), "words": self.lengths}
        about |= {"method": self.method, "says": self.sentence, "copies": [asdict(copy) for copy in self.copies]}
        about |= {"refusals": list(self.refusals)}
        checked = {"check": self.check.to_json()} if self.check else {}
        return {**about, **checked, "candidates": [c.to_json() for c in self.candidates]}

    def to_frame(self) -> pa.Table:
        """A row a candidate, best first; `shares` is what each method adds to the ratio."""
        return pa.Table.from_pylist([c.to_row(rank) for rank, c in enumerate(self.candidates, 1)], CANDIDATE_SCHEMA)

    def __repr__(self) -> str:
        first = self.candidates[0]
        return f"Attribution(first={first.names!r}, llr={first.llr:+.2f}, none_stands_out={self.none_stands_out}, …)"

    def _repr_html_(self) -> str:
        first, none = self.candidates[0], f"none of these: {self.none.probability:.0%}"
        said = f"nearest is {', '.join(first.names)}, log10 LR {first.llr:+.2f}, {first.words}; {none}"
        rows = [
            {"candidate": ", ".join(c.names), "log10 LR": c.llr, "in words": c.words, "probability": c.probability}
            for c in self.candidates
        ]
        notes = [self.sentence] if self.sentence else []
        if self.refusals:
            said = "No answer"
        return notebook_rows(said, rows, [*notes, *(["None of these stands out."] if self.none_stands_out else [])])


def attribute(
    text: str | Path | Sequence[str | Path],
    index: Index,
    k: int = 5,
    *,
    by: str = "set",
    exclude: Sequence[str] = (),
    candidates: Sequence[str] = (),
    unknown: float = 0.5,
    exact: bool = False,
    method: str = BEST,
) -> Attribution:
    """Rank the author-sets of an index (`by="author"`: its single authors) for a text, or for several by one hand.

    A text may also be a file: a Path, or a string such as "letter.txt" that names one; in a list strings are texts.
    `candidates` limits them to those with one of these authors; `exclude` names documents that do not count; `unknown`
    is the reader's own probability, before seeing the text, that the writer is not in the index at all. In a large index
    those who seem near are compared, and a sample of the others stands for the rest; `exact` lets the model score
    everything. `method` is `best`, the weighed evidence of all methods, or one of them by its name. A text that is unlike
    those of the index gets no ratios, and the answer's `refusals` say so.
    """
    texts = given_texts(text)
    asked = [p for one in texts for p in text_passages(one, index.recipe.words)]
    index.refuse_empty()
    everybody = author_sets_of(index, by)
    closed = bool(candidates)
    wanted = everybody.with_names(candidates) if closed else np.ones(len(everybody.keys), bool)
    if not wanted.any():
        raise InputError(f"no author of index '{index.where}' is among the candidates")
    question = AskedText(texts, asked, index.embed(asked), by, tuple(exclude), 0.0 if closed else unknown, exact)
    if method == MODEL:
        answer = answer_by_model(index, everybody, question, wanted, k)
    else:
        weigh = weigh_sampled if is_large(index) else weigh_everybody
        answer = answer_by_evidence(index, everybody, weigh(index, everybody, question, wanted, method), question, k)
    why = why_strange(index, question.whole)
    return without_ratios(answer, why, question.unknown, int(wanted.sum())) if why else answer


def without_ratios(answer: Attribution, why: tuple[str, ...], unknown: float, authors: int) -> Attribution:
    """The same order, of which nothing is said: every ratio is 1, and what was held likely before is so still."""
    each = replace_each(answer.candidates, llr=0.0, words="no ratio", probability=(1 - unknown) / authors, shares=())
    none = open_answer_of_strange(unknown)
    return replace(answer, candidates=each, none=none, none_stands_out=True, refusals=why)


def replace_each(candidates: Sequence[Candidate], **changes: Any) -> tuple[Candidate, ...]:
    return tuple(replace(candidate, **changes) for candidate in candidates)


@dataclass(frozen=True, slots=True)
class AskedText:
    """What is asked of an index. `unknown` is the probability before the text that the writer is not there."""

    texts: Sequence[str]
    passages: Sequence[str]
    patches: Patches  # of the passages
    by: str
    exclude: tuple[str, ...]
    unknown: float
    exact: bool

    @property
    def whole(self) -> str:
        return "\n\n".join(self.texts)

    @property
    def words(self) -> int:
        return sum(count_words(text) for text in self.texts)

    @property
    def closed(self) -> bool:
        return self.unknown == 0.0


def answer_by_model(index: Index, everybody: IndexAuthors, question: AskedText, wanted: Bools, k: int) -> Attribution:
    """The candidates by the model alone, with what its scores mean in this index."""
    also = None if wanted.all() else wanted
    how: dict[str, Any] = {"exclude": question.exclude, "exact": question.exact}
    ranking = rank_candidates(index, everybody, question.patches, also=also, **how).of(wanted)
    if not len(ranking):
        raise InputError(f"no text by the candidates is left in index '{index.where}'")
    known = calibration_of_index(index, question.by)
    ratios = known.calibration.ratios(ranking.z, np.full(len(ranking), size_of(question.words)))
    none = open_answer(known.open_set, float(ranking.z[0]), size_of(question.words), question.unknown)
    chances = shares_of_ratios(ratios, ranking.weights) * (1 - none.probability)
    proofs = gather_evidence(index, everybody, question.passages, ranking.take(np.arange(min(k, len(ranking)))), known)
    best = [
        make_candidate(everybody, ranking, at, (float(ratios[at]), float(chances[at])), proof, question.exclude)
        for at, proof in enumerate(proofs)
    ]
    alone = stands_alone(best, none, question.closed)
    return Attribution(tuple(best), none, alone, known.calibration, question.words, len(question.passages))


@dataclass(frozen=True)
class WeighedCandidates:
    """The candidates who were compared, nearest first, by the evidence of one method or of several."""

    method: str
    who: Ints
    standings: Floats  # (candidates, methods)
    scores: Floats
    ratios: Floats
    weights: Floats  # how many candidates each one stands for
    known: LibraryKnowledge
    documents: Ints  # that passages are shown from
    copies: tuple[Copy, ...]

    def in_order(self) -> "WeighedCandidates":
        order = np.argsort(-self.scores, kind="stable")
        order = order[~np.isnan(self.scores[order])]
        some = {name: getattr(self, name)[order] for name in ("who", "standings", "scores", "ratios", "weights")}
        return replace(self, **some)


def weigh_everybody(
    index: Index, everybody: IndexAuthors, question: AskedText, wanted: Bools, method: str
) -> WeighedCandidates:
    """Every text of the index is compared with the question."""
    learned = evidence_of_index(index, question.by, method)
    weights, documents = learned.known.weights, np.arange(len(everybody.documents))
    standings = learned.evidence.standings([question.whole])
    standings[:, everybody.numbers(question.exclude)] = np.nan
    each = author_standings(standings, learned.authors.members, weights.best_texts)
    scores, ratios = weights.scores(each)[0], weights.ratios(each, np.log10([max(question.words, 1)]))[0]
    who = np.flatnonzero(wanted)
    copies = find_copies(question.whole, learned.evidence.library.texts, everybody.documents)
    one = np.ones(len(who))
    return WeighedCandidates(
        method, who, each[0, who], scores[who], ratios[who], one, learned.known, documents, copies
    ).in_order()


def weigh_sampled(
    index: Index, everybody: IndexAuthors, question: AskedText, wanted: Bools, method: str
) -> WeighedCandidates:
    """Whoever seems near is compared with the question, and a panel stands for the others."""
    learned = sampled_evidence_of_index(index, question.by, method)
    weights = learned.known.weights
    near = everybody.near(np.arange(len(index)), index.score_everything(question.patches)) if question.exact else None
    asked = SampledQuestion(question.whole, mean_patches(question.patches), near)
    exclude = np.array(everybody.numbers(question.exclude), np.int64)
    found = learned.evidence.ask([asked], exclude, wanted & ~wanted.all())
    each, stands_for = found.authors(weights.best_texts), found.weights(0)
    scores, ratios = weights.scores(each)[0], weights.ratios(each, np.log10([max(question.words, 1)]))[0]
    kept = wanted[found.who] & (stands_for > 0)
    names = [everybody.documents[at] for at in found.documents]
    copies = find_copies(question.whole, found.texts, names)
    documents = np.union1d(found.documents, learned.evidence.panel_documents)
    parts = (found.who[kept], each[0, kept], scores[kept], ratios[kept], stands_for[kept])
    return WeighedCandidates(method, *parts, learned.known, documents, copies).in_order()


def answer_by_evidence(
    index: Index, everybody: IndexAuthors, weighed: WeighedCandidates, question: AskedText, k: int
) -> Attribution:
    """The candidates by the weighed evidence of several methods, or of one that is not the model."""
    who, known, size = weighed.who, weighed.known, float(np.log10(max(question.words, 1)))
    if not len(who):
        raise InputError(f"no text by the candidates is left in index '{index.where}'")
    none = open_answer(known.open_set, float(weighed.scores[0]), size, question.unknown)
    chances = shares_of_ratios(weighed.ratios, weighed.weights) * (1 - none.probability)
    few = np.arange(min(k, len(who)))
    documents = np.setdiff1d(weighed.documents, everybody.numbers(question.exclude))
    matches = match_candidates(index, everybody, question.patches, who[few], documents, question.exact)
    first = Ranking(
        who[few], weighed.scores[few], weighed.scores[few], weighed.weights[few], np.ones(len(few), bool), matches
    )
    proofs = gather_evidence(index, everybody, question.passages, first, calibration_of_index(index, question.by))
    best = [
        replace(
            make_candidate(
                everybody, first, at, (float(weighed.ratios[at]), float(chances[at])), proof, question.exclude
            ),
            shares=known.weights.shares(weighed.standings[at], size),
        )
        for at, proof in enumerate(proofs)
    ]
    alone = not known.check.tells_apart or stands_alone(best, none, question.closed)
    about = (known.weights.calibration, question.words, len(question.passages), weighed.method, known.check)
    return Attribution(tuple(best), none, alone, *about, weighed.copies)


def size_of(count: int) -> float:
    """log10 of the words of the question; what is known of the candidates counts as given."""
    return float(effective_count(count, 1e9))


def shares_of_ratios(ratios: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ratios as shares of 1: how likely each candidate is if one of them it is, all being as likely before. A weight is
    the number of candidates that one stands for."""
    odds = 10.0 ** (ratios - ratios.max())
    return odds / (weights @ odds)


def stands_alone(candidates: Sequence[Candidate], none: OpenSetAnswer, closed: bool) -> bool:
    """Does nobody stand out? Said of an open set where its calibrated answer is not for somebody in the index."""
    from idiograph.answer.likelihood import INCONCLUSIVE

    return candidates[0].llr < INCONCLUSIVE or (not closed and none.llr < INCONCLUSIVE)


def make_candidate(
    everybody: IndexAuthors,
    ranking: Ranking,
    at: int,
    ratio_and_chance: tuple[float, float],
    proof: tuple[Evidence, ...],
    exclude: Sequence[str],
) -> Candidate:
    llr, chance = ratio_and_chance
    who = int(ranking.who[at])
    count = sum(everybody.documents[d] not in exclude for d in everybody.documents_of(who).tolist())
    about = (everybody.keys[who], everybody.names[who], float(ranking.scores[at]))
    return Candidate(*about, llr, ratio_in_words(llr), chance, count, proof)


def gather_evidence(
    index: Index, everybody: IndexAuthors, asked: Sequence[str], ranking: Ranking, known: IndexCalibration
) -> list[tuple[Evidence, ...]]:
    """For each candidate the best passage pair of their nearest documents."""
    places = [best_pairs(everybody, ranking.matches, int(who)) for who in ranking.who]
    used = sorted({row for each in places for _, row, _ in each})
    passage = dict(zip(used, index.passages_at(used), strict=True))
    return [tuple(show_passage(asked[i], passage[row], score, known) for i, row, score in each) for each in places]


def best_pairs(everybody: IndexAuthors, matches: Matches, who: int) -> list[tuple[int, int, float]]:
    """(passage asked, passage found, score) of the documents that have the best ones."""
    documents = [d for d in everybody.documents_of(who).tolist() if not np.isnan(matches.near[d])]
    return sorted((matches.best(everybody, d) for d in documents), key=lambda pair: -pair[2])[:EVIDENCE_PER_CANDIDATE]


def show_passage(asked: str, passage: Passage, score: float, known: IndexCalibration) -> Evidence:
    shared = word_overlap(content_words(asked), content_words(passage.text))
    usual = known.expected[0] + known.expected[1] * shared
    topical = shared > known.usual_overlap
    return Evidence(asked, passage.text, passage.doc_id, passage.title, score, shared, usual, topical)
