"""One search, shared among workers: each opens the index and looks at a part of its documents. The answer is that of one
process: candidates are chosen from all parts together, and only then scored."""

import pickle
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from idiograph.errors import InputError
from idiograph.index.build import EmbeddingWorkers, unpickle_style
from idiograph.index.candidates import count_candidates, count_finalists, highest_scores, pool_neighbours
from idiograph.index.filter import Filter
from idiograph.index.index import Index
from idiograph.index.passages import Hit
from idiograph.runner import Failure
from idiograph.style.patches import Patches
from idiograph.style.tokens import Floats, Ints

IndexOpener = Callable[[], Index]


def search_parts(
    index: Index,
    texts: Sequence[str],
    k: int = 10,
    *,
    only: Filter | None = None,
    exact: bool = False,
    depth: int | None = None,
    parts: int = 1,
    workers: EmbeddingWorkers | None = None,
) -> list[list[Hit]]:
    """`index.search_many`, with the index cut into `parts` that workers look at."""
    workers = workers or EmbeddingWorkers()
    if parts == 1 or not len(index):
        return index.search_many(texts, k, only=only, exact=exact, depth=depth)
    reach, asked, allowed = index_opener(index, workers), index.embed(texts), index.rows(only or Filter())
    shares, depth = np.array_split(allowed, parts), count_candidates(len(allowed), k, depth)
    if exact or len(allowed) <= depth:
        nearest = [allowed] * len(texts)
    else:
        nearest = best_of_parts(
            spread_over_workers(partial(propose_candidates, reach, asked, depth), shares, workers, index), depth
        )
        if depth > (last := count_finalists(depth, k)):
            rough = spread_over_workers(
                partial(narrow_candidates, reach, asked), divide_index(nearest, shares), workers, index
            )
            nearest = best_of_parts(rough, last)
    wanted = divide_index(nearest, shares)
    return best_documents(
        index, spread_over_workers(partial(rescore_candidates, reach, asked), wanted, workers, index), wanted, k
    )


def divide_index(nearest: list[Ints], shares: list[Ints]) -> list[list[Ints]]:
    """What each part has of the passages that are wanted for each text."""
    return [[np.intersect1d(rows, share) for rows in nearest] for share in shares]


def index_opener(index: Index, workers: EmbeddingWorkers) -> IndexOpener:
    """How a worker comes by the index: in this process it is there, elsewhere it is opened once."""
    if workers.pool.runner == "inline":
        return lambda: index
    if workers.opener is None:
        raise InputError(f"the runner '{workers.pool.runner}' needs to know how a worker opens the model")
    storage = tuple(sorted(index.tables.storage.items()))
    return partial(reopen_index, index.where, index.version, pickle.dumps(workers.opener), storage)


@lru_cache(maxsize=2)
def reopen_index(where: str, version: str, opener: bytes, storage: tuple[tuple[str, str], ...]) -> Index:
    index = Index.open(where, unpickle_style(opener), storage=dict(storage))
    if index.version != version:
        raise InputError(f"index '{where}' changed while it was searched; search again")
    return index


def spread_over_workers(
    function: Callable[[Any], Any], items: Iterable[Any], workers: EmbeddingWorkers, index: Index
) -> list[Any]:
    """A function over the parts, on the workers."""
    results = list(workers.pool.map(function, items))
    for one in results:
        if isinstance(one, Failure):
            raise InputError(f"a part of index '{index.where}' could not be searched: {one.reason} ({one.detail})")
    return results


def propose_candidates(reach: IndexOpener, asked: Patches, depth: int, rows: Ints) -> list[tuple[Ints, Floats]]:
    """For each text the candidates among some passages, and how near they seem."""
    return reach().propose(asked, rows, depth)


def narrow_candidates(reach: IndexOpener, asked: Patches, wanted: list[Ints]) -> list[tuple[Ints, Floats]]:
    """For each text the passages that are wanted for it, and how near they are to its few vectors."""
    few = pool_neighbours(asked)
    return [(rows, reach().score_rows(few.take([at]), rows)[0]) for at, rows in enumerate(wanted)]


def rescore_candidates(reach: IndexOpener, asked: Patches, wanted: list[Ints]) -> list[Floats]:
    """For each text the exact scores of the passages that are wanted for it."""
    return [reach().score_rows(asked.take([at]), rows)[0] for at, rows in enumerate(wanted)]


def best_of_parts(proposals: list[list[tuple[Ints, Floats]]], depth: int) -> list[Ints]:
    """The best candidates of all parts, for each text."""
    chosen = []
    for of_text in zip(*proposals, strict=True):
        rows = np.concatenate([r for r, _ in of_text])
        order = np.argsort(rows)
        chosen.append(rows[order][highest_scores(np.concatenate([s for _, s in of_text])[order], depth)])
    return chosen


def best_documents(index: Index, scored: list[list[Floats]], wanted: list[list[Ints]], k: int) -> list[list[Hit]]:
    hits = []
    for at in range(len(wanted[0])):
        rows = np.concatenate([share[at] for share in wanted])
        scores = np.concatenate([share[at] for share in scored])
        order = np.lexsort((rows, -scores))[:k]
        hits.append([Hit(p, float(s)) for p, s in zip(index.passages_at(rows[order]), scores[order], strict=True)])
    return hits
