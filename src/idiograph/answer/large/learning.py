"""What a large index teaches about itself: some of its documents are asked about, each left out, as a question would be.

Weights, ratios and the check are learned from that, and kept beside the index.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from idiograph.answer.authors import IndexAuthors, author_sets_of
from idiograph.answer.crossvalidate import (
    BEST,
    QUESTION_WORDS,
    CrossValidation,
    LibraryKnowledge,
    MethodCheck,
    best_author,
    check_ratios,
    confusion_of,
    groups_of,
    keep_within,
    learn_open_set,
    split_by_truth,
    wilson_interval,
)
from idiograph.answer.evidence import (
    Bools,
    Floats,
    KnownQuestions,
    fold_numbers,
    learn_evidence,
)
from idiograph.answer.large.sampled import COMPARES_WHOLE_LIBRARIES, SampledEvidence, SampledQuestion, prepare_evidence
from idiograph.answer.large.sketch import (
    join_passages,
    passages_to_read,
)
from idiograph.answer.methods import METHODS, MODEL, NOTE, authors_of_index, check_method_name
from idiograph.errors import InputError
from idiograph.index.index import Index
from idiograph.style.tokens import Ints
from idiograph.text.passages import count_words

DOCUMENTS_TO_ASK = 200  # of the index, whose writers are known
STRANGERS_PER_QUESTION = 20  # that weights are learned from, drawn as they stand for everybody
BEST_TEXTS = (1, 3)  # how many texts of an author may count


@dataclass(frozen=True)
class SampledIndex:
    """A large index that was asked about its own documents."""

    evidence: SampledEvidence
    known: LibraryKnowledge


def sampled_evidence_of_index(index: Index, by: str = "set", method: str = BEST) -> SampledIndex:
    """What a large index teaches the methods; learned once, and kept beside it."""
    return index.once(f"sampled evidence {by} {method}", lambda: learn_large_index(index, by, method))


def learn_large_index(index: Index, by: str, method: str) -> SampledIndex:
    if method in COMPARES_WHOLE_LIBRARIES:
        others = ", ".join([BEST, MODEL, *(name for name in METHODS if name not in COMPARES_WHOLE_LIBRARIES)])
        raise InputError(
            f"'{method}' compares every text of a library with all others, and index '{index.where}' has "
            f"{len(index.documents)}; choose from {others}"
        )
    check_method_name(method)
    everybody = author_sets_of(index, by)
    asked = documents_to_ask(index, everybody)
    evidence = prepare_evidence(index, everybody, method, asked)
    name = NOTE.format(by=by, method=method)
    saved = index.read_note(name) or {}
    if saved.get("version") == index.version and saved.get("names") == list(evidence.names):
        return SampledIndex(evidence, LibraryKnowledge.from_json(saved["known"]))
    known = learn_by_asking(evidence, asked)
    index.write_note(name, {"version": index.version, "names": list(evidence.names), "known": known.to_json()})
    return SampledIndex(evidence, known)


def documents_to_ask(index: Index, everybody: IndexAuthors) -> Ints:
    """Some documents whose writer is known and has another one."""
    writers = authors_of_index(everybody).known_writers(len(index.documents))
    places = np.flatnonzero(writers >= 0)
    if len(places) < 2:
        raise InputError(
            f"no author of index '{index.where}' has two texts alone, so none can be left out; add texts by the same "
            "authors, or ask the model alone (--method model)"
        )
    return np.sort(np.random.default_rng(7).permutation(places)[: min(DOCUMENTS_TO_ASK, max(len(places) // 2, 2))])


@dataclass(frozen=True)
class SampledQuestions:
    """Questions whose writers are known. `everyone` has all who were compared, `pairs` strangers drawn from everybody; in
    both the writer is the last."""

    pairs: KnownQuestions
    everyone: KnownQuestions
    who: Ints  # (questions, authors): the author in each column of `everyone`
    found: Bools  # whether the writer would have been compared had nobody named them

    def alone(self, method: int) -> "SampledQuestions":
        """The same questions, asked of one method."""
        return replace(self, pairs=self.pairs.alone(method), everyone=self.everyone.alone(method))


@dataclass(frozen=True, slots=True)
class AskedDocument:
    """One question about a document of the index; in `pairs`, `everyone` and `who` its writer is the last."""

    document: int
    size: float
    pairs: dict[int, Floats]  # how many texts of an author count → (authors, methods)
    everyone: dict[int, Floats]
    who: Ints
    found: bool


def learn_by_asking(evidence: SampledEvidence, asked: Ints) -> LibraryKnowledge:
    """Ask about documents of the index, whole and cut, each left out; learn weights, ratios and how often it is right."""
    writers = authors_of_index(evidence.everybody).known_writers(len(evidence.index.documents))
    rounds = [ask_document(evidence, int(document), int(writers[document])) for document in asked]
    cuts = [cut for cuts in rounds for cut in cuts[1:]]
    whole, every = (join_questions(some) for some in ([c[0] for c in rounds], [*(c[0] for c in rounds), *cuts]))
    ratios, scores = cross_fit_sampled(every, evidence.names)
    weights, count = learn_evidence(every.pairs, evidence.names), len(asked)
    same, different = split_by_truth(ratios[:count], every.pairs.truth[:count])
    weights = replace(weights, calibration=keep_within(weights.calibration, same, different))
    open_set = learn_open_set(every.everyone, scores, count)
    return LibraryKnowledge(weights, open_set, check_sampled(evidence, whole))


def ask_document(evidence: SampledEvidence, document: int, writer: int) -> list[AskedDocument]:
    """A document of the index, whole and cut to so many words from its middle, without itself."""
    questions = cut_document(evidence.index, evidence.everybody, document)
    also = np.arange(len(evidence.everybody.keys)) == writer
    answer = evidence.ask(questions, np.array([document]), also)
    people = set(evidence.everybody.keys[writer])
    stranger = np.array([not people & set(evidence.everybody.keys[who]) for who in answer.who])
    own = int(np.flatnonzero(answer.who == writer)[0])
    standings = {best: answer.authors(best) for best in BEST_TEXTS}
    asked = []
    for at, question in enumerate(questions):
        weights = answer.weights(at) * stranger
        others = np.flatnonzero(weights)
        random = np.random.default_rng((7, document, at))
        count = min(STRANGERS_PER_QUESTION, len(others))
        drawn = random.choice(others, count, replace=False, p=weights[others] / weights[others].sum())
        pairs, everyone = (
            {best: values[at, np.append(some, own)] for best, values in standings.items()} for some in (drawn, others)
        )
        found = bool(answer.near[at, own] or answer.panel[own])
        asked.append(AskedDocument(document, question.size, pairs, everyone, answer.who[np.append(others, own)], found))
    return asked


def cut_document(index: Index, everybody: IndexAuthors, document: int) -> list[SampledQuestion]:
    """All that is read of a document, and passages from its middle that make up so many words."""
    rows = passages_to_read(everybody, document)
    texts, vectors = index.texts_at(rows), index.means_at(rows)
    sizes = np.cumsum([count_words(text) for text in texts])
    cuts = [(0, len(rows))]
    for words in QUESTION_WORDS:
        if 2 * words < sizes[-1]:
            begin = int(np.searchsorted(sizes, (sizes[-1] - words) / 2))
            cuts.append((begin, min(int(np.searchsorted(sizes, (sizes[-1] + words) / 2)) + 1, len(rows))))
    return [SampledQuestion(join_passages(texts[a:b], [b - a])[0], vectors[a:b]) for a, b in cuts]


def join_questions(asked: Sequence[AskedDocument]) -> SampledQuestions:
    """Questions as one table. Those with fewer authors have columns without a number before the writer's."""
    width = max(len(each.who) for each in asked)
    who = np.array([[*each.who[:-1], *[-1] * (width - len(each.who)), each.who[-1]] for each in asked])
    groups = groups_of(who[:, -1], np.array([each.document for each in asked]))
    sizes = np.array([each.size for each in asked])
    tables = [
        KnownQuestions(standings, np.full(len(asked), next(iter(standings.values())).shape[1] - 1), sizes, groups)
        for standings in (stack_padded([e.pairs for e in asked]), stack_padded([e.everyone for e in asked]))
    ]
    return SampledQuestions(tables[0], tables[1], who, np.array([each.found for each in asked]))


def stack_padded(parts: Sequence[dict[int, Floats]]) -> dict[int, Floats]:
    """(questions, authors, methods), with NaN before the last author where there are fewer."""
    tables = {}
    for best in BEST_TEXTS:
        rows = [part[best] for part in parts]
        table = np.full((len(rows), max(map(len, rows)), rows[0].shape[1]), np.nan)
        for at, row in enumerate(rows):
            table[at, : len(row) - 1], table[at, -1] = row[:-1], row[-1]
        tables[best] = table
    return tables


def cross_fit_sampled(asked: SampledQuestions, names: Sequence[str], folds: int = 10) -> tuple[Floats, Floats]:
    """The ratio of each question with the strangers drawn and its writer, and its score with everyone who was compared, by
    weights that did not see its group. A writer whom the sketches did not find has no score."""
    fold = fold_numbers(asked.pairs.groups, folds, seed=7)
    shape = [next(iter(table.standings.values())).shape[:2] for table in (asked.pairs, asked.everyone)]
    ratios, scores = (np.full(each, np.nan) for each in shape)
    for number in np.unique(fold):
        held_out = fold == number
        learned = learn_evidence(asked.pairs.take(~held_out), names)
        pairs, everyone = (table.standings[learned.best_texts][held_out] for table in (asked.pairs, asked.everyone))
        ratios[held_out] = learned.ratios(pairs, asked.pairs.sizes[held_out])
        scores[held_out] = learned.scores(everyone)
    scores[~asked.found, -1] = np.nan
    return ratios, scores


def check_sampled(evidence: SampledEvidence, asked: SampledQuestions) -> CrossValidation:
    """How often each method, and all together, name the writer of a document that was left out."""
    weights = learn_evidence(asked.pairs, evidence.names)
    ratios, scores = cross_fit_sampled(asked, evidence.names)
    checks = {BEST: check_found(BEST, asked, ratios, scores)}
    if len(evidence.names) > 1:
        for at, name in enumerate(evidence.names):
            checks[name] = check_found(name, asked, *cross_fit_sampled(asked.alone(at), [name]))
    rows, names = np.arange(len(scores)), authors_of_index(evidence.everybody).names
    truth, named = asked.who[:, -1], asked.who[rows, best_author(scores)]
    counts = Counter(truth.tolist())
    return CrossValidation(
        methods=checks,
        weights={name: round(weight, 4) for name, weight in zip(weights.names, weights.weights, strict=True)},
        authors={names[who]: {"of": n, "right": int((named[truth == who] == who).sum())} for who, n in counts.items()},
        confusion=confusion_of(names, truth, named),
        majority=max(counts.values()),
        texts=evidence.texts,
        lang=evidence.lang,
        words=0,
        sampled_from=len(evidence.index.documents),
    )


def check_found(name: str, asked: SampledQuestions, ratios: Floats, scores: Floats) -> MethodCheck:
    """What ratios with strangers are worth, and how often the writer comes before everyone who was compared."""
    check = check_ratios(name, ratios, ratios, asked.pairs.truth)
    right = int((best_author(scores) == asked.everyone.truth).sum())
    return replace(check, right=right, interval=wilson_interval(right, check.of))
