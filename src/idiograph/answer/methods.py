"""The methods that an answer can rest on, by name, and what a library or an index teaches them.

To add a ranker to the answers, add a line to `METHODS`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from idiograph.answer.authors import IndexAuthors, author_sets_of
from idiograph.answer.crossvalidate import (
    BEST,
    MAX_TEXTS,
    CrossValidation,
    LibraryAuthors,
    LibraryKnowledge,
    crossvalidate_evidence,
    learn_library,
    sample_library,
)
from idiograph.answer.evidence import ColumnStatistics, LibraryEvidence, Method
from idiograph.errors import InputError, SpecError
from idiograph.index.index import Index
from idiograph.loading import shipped_style
from idiograph.rankers.delta import Delta
from idiograph.rankers.grammar import GrammarRanker
from idiograph.rankers.impostors import Impostors
from idiograph.rankers.letters import LetterRates, LetterTfIdf
from idiograph.rankers.library import LearningRanker, Library
from idiograph.rankers.model import Encode, ModelRanker, PassageVectors, mean_patches
from idiograph.rankers.stable import LetterRegression, Stable, WordRegression
from idiograph.rankers.words import WordPairs, WordTfIdf
from idiograph.spec import unknown_choice
from idiograph.style.model import Style
from idiograph.style.patches import Patches, join_patches
from idiograph.text.language import identify
from idiograph.types import Document

MODEL = "model"
METHODS: dict[str, Callable[[], tuple[LearningRanker, ...]]] = {
    "delta": lambda: (Delta(),),
    "letters": lambda: (LetterRates(3), LetterRates(4, features=6000), LetterTfIdf()),
    "words": lambda: (WordTfIdf(),),
    "pairs": lambda: (WordPairs(),),
    "stable": lambda: (Stable(),),
    "regression": lambda: (LetterRegression(), WordRegression()),
    "grammar": lambda: (GrammarRanker(),),
    "impostors": lambda: (Impostors(),),
}
NOTE = "evidence-{by}-{method}"  # what was learned is kept beside the index under this name
TEXTS_TO_TELL_LANGUAGE = 20  # of a library, from its beginning
CHARACTERS_TO_TELL_LANGUAGE = 2000  # of each


def choose_methods(name: str, model: ModelRanker | None = None) -> tuple[Method, ...]:
    """One method by its name, or all of them for `best`."""
    with_model = {MODEL: (model,)} if model else {}
    if name == BEST:
        return tuple(Method(each, make()) for each, make in METHODS.items()) + tuple(
            Method(each, rankers) for each, rankers in with_model.items()
        )
    if name in with_model:
        return (Method(name, with_model[name]),)
    check_method_name(name)
    return (Method(name, METHODS[name]()),)


def check_method_name(name: str) -> None:
    """Refuse a method that does not exist, before anything is read."""
    if name not in (BEST, MODEL, *METHODS):
        raise SpecError(unknown_choice("method", name, (BEST, MODEL, *METHODS)))


def library_of(documents: Iterable[Document]) -> Library:
    """The texts of documents that name an author; an author-set is one hand."""
    named = [document for document in documents if document.author_set]
    if not named:
        raise InputError("no document names an author")
    authors = tuple(" & ".join(sorted(author.name for author in document.authors)) for document in named)
    texts = tuple(document.text for document in named)
    return Library(texts, authors, language_of(texts))


def language_of(texts: Sequence[str]) -> str:
    """The language that most of some texts are in."""
    languages = [identify(text[:CHARACTERS_TO_TELL_LANGUAGE])[0] for text in texts[:TEXTS_TO_TELL_LANGUAGE]]
    return max(set(languages), key=languages.count) if languages else ""


def crossvalidate(
    documents: Iterable[Document], words: int = 0, method: str = BEST, model: Style | bool = True
) -> CrossValidation:
    """How often would we be right on texts like these? Every text is left out in turn, cut to `words` from its middle.

    `model` is the one that comes with the package, another one that was opened with `idiograph.load`, or False: then the
    methods that only count answer, which is much quicker.
    """
    check_method_name(method)
    if method == MODEL and model is False:
        raise SpecError("the method 'model' reads with a model; leave out model=False")
    whole = library_of(documents)
    library, ranker = sample_library(whole), None
    if model is not False and method in (BEST, MODEL):
        ranker = ModelRanker((shipped_style() if model is True else model).encode)
    check = crossvalidate_evidence(LibraryEvidence(library, choose_methods(method, ranker)), words=words)
    return check if len(library) == len(whole) else replace(check, sampled_from=len(whole))


@dataclass(frozen=True)
class IndexEvidence:
    """An index as a library: what its methods know, what they are worth there, and who its authors are."""

    evidence: LibraryEvidence
    authors: LibraryAuthors
    known: LibraryKnowledge


def is_large(index: Index) -> bool:
    """Are there too many documents to compare each with all the others?"""
    return len(index.documents) > MAX_TEXTS


def evidence_of_index(index: Index, by: str = "set", method: str = BEST) -> IndexEvidence:
    """What an index teaches the methods; the weights are learned once, and kept beside it."""
    return index.once(f"evidence {by} {method}", lambda: learn_index(index, by, method))


def learn_index(index: Index, by: str, method: str) -> IndexEvidence:
    everybody = author_sets_of(index, by)
    library = library_of_index(index, everybody)
    model = ModelRanker(index.embed, vectors_of_index(index)) if method in (BEST, MODEL) else None
    methods, authors = choose_methods(method, model), authors_of_index(everybody)
    saved = index.read_note(NOTE.format(by=by, method=method)) or {}
    if saved.get("version") == index.version and saved.get("names") == [each.name for each in methods]:
        columns = [ColumnStatistics(*map(np.array, each)) for each in saved["columns"]]
        return IndexEvidence(
            LibraryEvidence(library, methods, columns), authors, LibraryKnowledge.from_json(saved["known"])
        )
    evidence = LibraryEvidence(library, methods)
    known = learn_library(evidence, authors)
    columns = [[each.count.tolist(), each.total.tolist(), each.squares.tolist()] for each in evidence.columns]
    note = {"version": index.version, "names": list(evidence.names), "columns": columns, "known": known.to_json()}
    index.write_note(NOTE.format(by=by, method=method), note)
    return IndexEvidence(evidence, authors, known)


def library_of_index(index: Index, everybody: IndexAuthors) -> Library:
    """The documents of an index, put together from their passages."""
    passages = index.passages
    texts = tuple(
        "\n\n".join(passages[row].text for row in everybody.passages_of([at])) for at in range(len(everybody.documents))
    )
    authors = tuple(" & ".join(sorted(document.names)) for document in index.documents)
    return Library(texts, authors, language_of(texts))


def vectors_of_index(index: Index) -> PassageVectors:
    """The passages of an index as they are stored, document after document."""
    order = np.argsort(index.owner, kind="stable")
    patches = index.vectors_at(order)
    return PassageVectors(mean_patches(patches), np.bincount(index.owner, minlength=len(index.documents)))


def encode_with_index(index: Index) -> Encode:
    """Reads passages as an index does; the vectors of those that it holds are taken from it."""
    rows = {passage.text: at for at, passage in enumerate(index.passages)}

    def encode(passages: Sequence[str]) -> Patches:
        held = [at for at, passage in enumerate(passages) if passage in rows]
        new = [at for at, passage in enumerate(passages) if passage not in rows]
        parts = [index.vectors_at(np.array([rows[passages[at]] for at in held], np.int64))] if held else []
        parts += [index.embed([passages[at] for at in new])] if new else []
        return join_patches(parts).take(np.argsort(np.array(held + new)))

    return encode


def authors_of_index(everybody: IndexAuthors) -> LibraryAuthors:
    names = tuple(", ".join(people) for people in everybody.names)
    return LibraryAuthors(names, tuple(everybody.documents_of(at) for at in range(len(names))))
