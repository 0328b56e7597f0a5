"""The evidence of several methods in an index that is too large to compare every text with every other.

What the methods need to know of the library is learned from a sample of it. For a question the sketches choose candidates:
those who seem nearest to the model, and those who seem nearest by their frequent words. Their texts are read and compared; a
panel of authors drawn at random stands for everybody else. Weights, calibration and the check are learned by asking some of
the index's own documents in this same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idiograph.answer.authors import IndexAuthors
from idiograph.answer.crossvalidate import (
    BEST,
    sample_places,
)
from idiograph.answer.evidence import (
    Bools,
    Floats,
    Longs,
    author_standings,
)
from idiograph.answer.large.sketch import (
    WordSketches,
    read_texts,
    read_vectors,
    word_sketches,
)
from idiograph.answer.large.views import CountView, ModelView, PanelView, ReadTexts, View
from idiograph.answer.methods import METHODS, MODEL, language_of
from idiograph.answer.ranking import NEAREST_CANDIDATES, PANEL_CANDIDATES, seeming_scores
from idiograph.index.candidates import as_patches
from idiograph.index.index import Index
from idiograph.rankers.library import Library, PlacingRanker
from idiograph.rankers.model import PassageVectors
from idiograph.style.tokens import Ints
from idiograph.text.passages import count_words

NEAREST_BY_WORDS = 50  # candidates who seem nearest by their frequent words
TEXTS_PER_AUTHOR = 3  # of a candidate that are compared: those that seem nearest
TEXTS_TO_LEARN = 600  # from which the methods learn what is frequent, and what is stable in a writer
COMPARES_WHOLE_LIBRARIES = ("grammar", "impostors", "regression")  # what these know of a text depends on all the others


@dataclass(frozen=True)
class SampledQuestion:
    """A text, and its passages as vectors."""

    text: str
    vectors: NDArray[np.float32]  # (passages, d)
    near: Floats | None = None  # how near each document is to the model, where that is known; else its sketches say

    @property
    def size(self) -> float:
        return float(np.log10(max(count_words(self.text), 1)))


@dataclass(frozen=True)
class SampledAnswer:
    """How questions stand with those authors who were compared."""

    who: Ints  # authors
    near: Bools  # (questions, authors) seems near
    sure: Bools  # (questions, authors) seems near, or was to be compared in any case
    panel: Bools  # (authors) is of the panel
    members: tuple[Longs, ...]  # the places of each author's texts
    standings: Floats  # (questions, texts, methods)
    documents: Ints  # whose texts were read
    texts: tuple[str, ...]
    everybody: int  # how many authors there are

    def authors(self, best: int) -> Floats:
        """(questions, authors, methods)."""
        return author_standings(self.standings, self.members, best)

    def weights(self, question: int) -> Floats:
        """How many authors each one stands for; 0 for one who was compared for another question."""
        sure = self.sure[question]
        rest = self.panel & ~sure
        return np.where(sure, 1.0, rest * (self.everybody - sure.sum()) / max(rest.sum(), 1))


@dataclass(frozen=True)
class SampledEvidence:
    """A large index as the methods see it."""

    index: Index
    everybody: IndexAuthors
    names: tuple[str, ...]
    views: tuple[tuple[PanelView, ...], ...]
    panel: Ints  # authors
    panel_documents: Ints
    sketches: WordSketches
    texts: int  # that were compared to learn what is known of the index
    lang: str

    def ask(
        self,
        questions: Sequence[SampledQuestion],
        exclude: Ints,
        also: Bools,
        counts: tuple[int, int] | None = None,
    ) -> SampledAnswer:
        """Compare some questions with whoever seems near to any of them, with `also` and with the panel; documents in
        `exclude` do not count. `counts` is how many candidates are chosen by the model and by frequent words."""
        seems = [self.seeming(question, exclude) for question in questions]
        chosen = np.stack([self.choose(each, counts) for each in seems])
        who = np.flatnonzero(chosen.any(axis=0) | also)
        near = np.mean([standard_scores(a) + standard_scores(b) for a, b in seems], axis=0)
        documents = [nearest_documents(self.everybody, author, near) for author in who.tolist()]
        kept = [at for at, some in enumerate(documents) if len(some)]
        who, documents = who[kept], [documents[at] for at in kept]
        read = np.unique(np.concatenate(documents))
        texts = read_texts(self.index, self.everybody, read)
        standings = self._standings(questions, read, texts, np.isin(self.panel_documents, exclude))
        standings[:, np.flatnonzero(np.isin(self.panel_documents, exclude))] = np.nan
        rest = np.setdiff1d(self.panel, who)
        places = [np.flatnonzero(np.isin(self.panel_documents, self.everybody.documents_of(int(at)))) for at in rest]
        members = [*(len(self.panel_documents) + np.searchsorted(read, some) for some in documents), *places]
        everyone = np.concatenate([who, rest])
        seen = chosen[:, everyone], (chosen | also)[:, everyone], np.isin(everyone, self.panel)
        return SampledAnswer(everyone, *seen, tuple(members), standings, read, tuple(texts), len(self.everybody.keys))

    def seeming(self, question: SampledQuestion, exclude: Ints) -> tuple[Floats, Floats]:
        """How near each document seems, to the model and by its frequent words."""
        sketch = as_patches(question.vectors)
        model = seeming_scores(self.index, self.everybody, sketch) if question.near is None else question.near.copy()
        words = self.sketches.near(question.text)
        model[exclude], words[exclude] = np.nan, np.nan
        return model, words

    def choose(self, seems: tuple[Floats, Floats], counts: tuple[int, int] | None = None) -> Bools:
        """The authors who seem nearest, by either."""
        chosen = np.zeros(len(self.everybody.keys), bool)
        for near, count in zip(seems, counts or (NEAREST_CANDIDATES, NEAREST_BY_WORDS), strict=True):
            scores = self.everybody.scores(near)
            here = np.flatnonzero(~np.isnan(scores))
            chosen[here[np.argsort(-scores[here], kind="stable")[:count]]] = True
        return chosen

    def _standings(self, questions: Sequence[SampledQuestion], read: Ints, texts: Sequence[str], out: Bools) -> Floats:
        """(questions, panel and documents, methods)."""
        lengths = np.array([len(question.vectors) for question in questions], np.int64)
        vectors = PassageVectors(np.concatenate([question.vectors for question in questions]), lengths)
        asked = ReadTexts([question.text for question in questions], vectors)
        documents = ReadTexts(texts, read_vectors(self.index, self.everybody, read))
        itself = self.panel_documents[:, None] == read
        by_method = []
        for views in self.views:
            placed = ((each, each.view.place(asked), each.view.place(documents)) for each in views)
            by_method.append(np.mean([each.standings(a, b, out, itself) for each, a, b in placed], axis=0))
        return np.stack(by_method, axis=-1)


def standard_scores(near: Floats) -> Floats:
    """What documents score, in units of spread."""
    known = near[~np.isnan(near)]
    return (near - known.mean()) / max(known.std(), 1e-9)


def nearest_documents(everybody: IndexAuthors, author: int, near: Floats) -> Ints:
    documents = everybody.documents_of(author)
    documents = documents[~np.isnan(near[documents])]
    return np.sort(documents[np.argsort(-near[documents], kind="stable")[:TEXTS_PER_AUTHOR]])


def prepare_evidence(index: Index, everybody: IndexAuthors, method: str, asked: Ints) -> SampledEvidence:
    """Let the methods learn from a sample, without the documents that will be asked about, and compare the panel."""
    rest = np.setdiff1d(np.arange(len(index.documents)), asked)
    names = [" & ".join(sorted(index.documents[at].names)) for at in rest]
    sample = rest[sample_places(names, TEXTS_TO_LEARN)]
    texts = tuple(read_texts(index, everybody, sample))
    library = Library(texts, tuple(names[at] for at in np.searchsorted(rest, sample)), language_of(texts))
    panel, documents = draw_panel(everybody, asked)
    read = ReadTexts(read_texts(index, everybody, documents), read_vectors(index, everybody, documents))
    views = {name: tuple(PanelView.of(view, read) for view in make_views(name, library)) for name in methods_of(method)}
    compared = len(set(sample.tolist()) | set(documents.tolist()) | set(asked.tolist()))
    sketches = index.once("word sketches", lambda: word_sketches(index, everybody))
    return SampledEvidence(
        index, everybody, tuple(views), tuple(views.values()), panel, documents, sketches, compared, library.lang
    )


def methods_of(method: str) -> tuple[str, ...]:
    """The methods that `best` weighs in a large index, or one."""
    every = (*(name for name in METHODS if name not in COMPARES_WHOLE_LIBRARIES), MODEL)
    return every if method == BEST else (method,)


def make_views(name: str, library: Library) -> list[View]:
    if name == MODEL:
        return [ModelView()]
    learned: list[PlacingRanker] = [ranker.learn(library) for ranker in METHODS[name]()]  # pyright: ignore[reportAssignmentType]
    return [CountView(ranker.placer()) for ranker in learned]


def draw_panel(everybody: IndexAuthors, asked: Ints) -> tuple[Ints, Ints]:
    """The authors of the panel and their documents, without those that are asked about."""
    out = np.isin(np.arange(len(everybody.documents)), asked)
    authors, documents = list[int](), list[Ints]()
    for author in np.random.default_rng(7).permutation(len(everybody.keys)).tolist():
        some = everybody.documents_of(author)
        if len(some := some[~out[some]][:TEXTS_PER_AUTHOR]):
            authors.append(author)
            documents.append(some)
        if len(authors) == PANEL_CANDIDATES:
            break
    return np.sort(np.array(authors, np.int64)), np.unique(np.concatenate(documents))
