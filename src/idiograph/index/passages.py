"""Documents cut into the passages that an index holds, and what a search gives back."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from idiograph.recipe import IndexRecipe
from idiograph.text.passages import cut_passages
from idiograph.types import Document


@dataclass(frozen=True, slots=True)
class Passage:
    """An indexed passage, without its vectors; `text` is what stood at `start` to `end` of the document."""

    id: str
    doc_id: str
    title: str
    text: str
    authors: tuple[str, ...]
    names: tuple[str, ...]
    domains: tuple[str, ...]
    year: int | None
    lang: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found, and its score."""

    passage: Passage
    score: float


def index_passages(document: Document, recipe: IndexRecipe) -> list[Passage]:
    """The passages of a document that go into the index; one without a letter or digit has nothing to compare."""
    people = sorted(document.authors, key=lambda a: a.key)
    places = cut_passages(document.text, document.lang, recipe.words)
    places = [(start, end) for start, end in places if any(map(str.isalnum, document.text[start:end]))]
    if recipe.passages_per_document:
        places = spread_passages(places, recipe.passages_per_document)
    return [
        Passage(
            f"{document.id}#{start}",
            document.id,
            document.title,
            document.text[start:end],
            tuple(a.key for a in people),
            tuple(a.name for a in people),
            document.domains,
            document.year,
            document.lang,
            start,
            end,
        )
        for start, end in places
    ]


def spread_passages(places: list[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """At most `count` of them, evenly from the beginning to the end.

    >>> spread_passages([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], 3)
    [(0, 1), (2, 3), (4, 5)]
    """
    if len(places) <= count:
        return places
    return [places[round(at * (len(places) - 1) / max(count - 1, 1))] for at in range(count)]


def passage_blocks(
    documents: Iterable[Document], recipe: IndexRecipe, size: int
) -> Iterator[tuple[list[str], list[Passage]]]:
    """The ids of whole documents and their passages, about `size` at a time."""
    ids: list[str] = []
    passages: list[Passage] = []
    for document in documents:
        ids.append(document.id)
        passages += index_passages(document, recipe)
        if len(passages) >= size:
            yield ids, passages
            ids, passages = [], []
    if ids:
        yield ids, passages
