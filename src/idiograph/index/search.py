"""One search, shared among workers: each keeps a part of the index and opens nothing else of it. The answer is that of one
process: candidates are chosen from all parts together, and only then scored.

A part is the documents whose ids fall into it. Whoever asks keeps nothing of the index but the directions of its vectors.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast
from uuid import uuid4

import numpy as np

from idiograph.errors import InputError
from idiograph.index.build import open_tables, project_vectors
from idiograph.index.candidates import count_candidates, count_finalists, pool_neighbours
from idiograph.index.filter import Filter
from idiograph.index.index import Index, refuse_empty_index
from idiograph.index.passages import Hit
from idiograph.runner import Failure, WorkerPool, Workers
from idiograph.style.model import Encoder, Style
from idiograph.style.patches import Patches
from idiograph.style.tokens import Floats, Ints

MAX_PARTS_OPEN = 1024  # in one worker

Scored = list[tuple[Ints, Floats]]  # for each text some rows of a part, and how near they are


@dataclass(frozen=True)
class EncoderFacts:
    """What a part must know of the encoder: it embeds nothing, so it opens no model."""

    dim: int
    name: str
    fingerprint: str


@dataclass(frozen=True)
class PartAddress:
    """Where a worker finds its part, and with which style it is to be compared; `run` keeps two searches apart."""

    where: str
    part: str
    style: Style
    storage: tuple[tuple[str, str], ...]
    run: str


@lru_cache(maxsize=MAX_PARTS_OPEN)
def open_part(address: PartAddress) -> Index:
    """The part that this worker keeps, opened once."""
    return Index.open(address.where, address.style, storage=dict(address.storage), part=address.part)


@dataclass(frozen=True)
class PartRequest:
    """Something to do with a part that is in the state that is expected."""

    address: PartAddress
    version: str | None
    work: Callable[..., Any]
    arguments: tuple[Any, ...]


def answer_request(request: PartRequest) -> Any:
    index = open_part(request.address)
    if request.version not in (None, index.version):
        raise InputError(f"index '{index.where}' changed while it was searched; search again")
    return request.work(index, *request.arguments)


@contextmanager
def open_parts(
    where: str,
    style: Style,
    parts: int,
    workers: Workers | None = None,
    storage: Mapping[str, str] | None = None,
) -> Iterator["IndexParts"]:
    """An index in parts, each kept by a worker for the length of the block."""
    few = EncoderFacts(style.encoder.dim, style.encoder.name, style.encoder.fingerprint)
    bare = replace(style, encoder=cast(Encoder, few), progress=None)
    stored, run = tuple(sorted((storage or {}).items())), uuid4().hex
    addresses = [PartAddress(where, f"{at}/{parts}", bare, stored, run) for at in range(1, parts + 1)]
    with (workers or Workers()).reside(answer_request, parts) as team:
        try:
            index = IndexParts(team, addresses, style)
            index.open(storage)
            yield index
        finally:
            open_part.cache_clear()  # of this process, which is a worker, too, where there is no other


class IndexParts:
    """What asks the parts and puts their answers together."""

    def __init__(self, team: WorkerPool[PartRequest, Any], addresses: Sequence[PartAddress], style: Style) -> None:
        self.team, self.addresses, self.style = team, addresses, style
        self.version: str | None = None
        self.passages = 0
        self.basis: Floats | None = None

    def open(self, storage: Mapping[str, str] | None) -> None:
        """Let the workers open their parts, and see that all have seen the same state."""
        facts = self.ask(part_facts)
        if len({version for version, _ in facts}) > 1:
            raise InputError(f"index '{self.addresses[0].where}' changed while it was searched; search again")
        self.version, self.passages = facts[0][0], sum(size for _, size in facts)
        self.basis = open_tables(self.addresses[0].where, storage).codebook().get("basis")

    def ask(self, work: Callable[..., Any], *common: Any, own: Sequence[Any] | None = None) -> list[Any]:
        """The answer of each part to the same question, with something of its own to it."""
        each = own or [()] * len(self.addresses)
        requests = [
            PartRequest(address, self.version, work, (*common, *([] if own is None else [mine])))
            for address, mine in zip(self.addresses, each, strict=True)
        ]
        answers = self.team.ask(requests)
        for answer in answers:
            if isinstance(answer, Failure):
                said = f"{answer.reason} ({answer.detail})"
                raise InputError(f"a part of index '{self.addresses[0].where}' could not be searched: {said}")
        return answers

    def search_many(
        self,
        texts: Sequence[str],
        k: int = 10,
        *,
        only: Filter | None = None,
        exact: bool = False,
        depth: int | None = None,
    ) -> list[list[Hit]]:
        """`Index.search_many` of the whole."""
        refuse_empty_index(self.addresses[0].where, self.passages)
        only, asked = only or Filter(), project_vectors(self.style.encode(texts), self.basis)
        allowed = sum(self.ask(count_allowed, only))
        depth = count_candidates(allowed, k, depth)
        if exact or allowed <= depth:
            return best_hits(self.ask(score_part, asked, only, k), k)
        wanted = self._best(self.ask(propose_candidates, asked, only, depth), depth)
        if depth > (last := count_finalists(depth, k)):
            wanted = self._best(self.ask(narrow_candidates, asked, own=wanted), last)
        return best_hits(self.ask(rescore_candidates, asked, k, own=wanted), k)

    def _best(self, proposals: list[Scored], count: int) -> list[list[Ints]]:
        """The rows of each part that are among the best of all, for each text."""
        chosen = [self._best_of_text(list(of_text), count) for of_text in zip(*proposals, strict=True)]
        return [list(of_part) for of_part in zip(*chosen, strict=True)]

    def _best_of_text(self, proposed: Scored, count: int) -> list[Ints]:
        scores = np.concatenate([found for _, found in proposed])
        if len(scores) <= count:
            return [rows for rows, _ in proposed]
        edge = np.partition(scores, len(scores) - count)[len(scores) - count]
        above = [rows[found > edge] for rows, found in proposed]
        at_edge = [rows[found == edge] for rows, found in proposed]
        room = count - sum(map(len, above))
        if sum(map(len, at_edge)) > room:  # as near as each other: the least ids, as if all lay in one place
            ids = self.ask(passage_ids, own=at_edge)
            last = sorted(name for names in ids for name in names)[:room]
            at_edge = [rows[[name in set(last) for name in names]] for rows, names in zip(at_edge, ids, strict=True)]
        return [np.sort(np.concatenate(pair)) for pair in zip(above, at_edge, strict=True)]


def search_parts(
    where: str,
    style: Style,
    texts: Sequence[str],
    k: int = 10,
    *,
    parts: int,
    workers: Workers | None = None,
    storage: Mapping[str, str] | None = None,
    **options: Any,
) -> list[list[Hit]]:
    """`search_many` of an index that nobody opens as a whole; `options` are those of a search."""
    with open_parts(where, style, parts, workers, storage) as index:
        return index.search_many(texts, k, **options)


def part_facts(index: Index) -> tuple[str, int]:
    return index.version, len(index)


def count_allowed(index: Index, only: Filter) -> int:
    return len(index.rows(only))


def passage_ids(index: Index, rows: Ints) -> list[str]:
    return [passage.id for passage in index.passages_at(rows)]


def propose_candidates(index: Index, asked: Patches, only: Filter, depth: int) -> Scored:
    """For each text the candidates of a part, and how near they seem."""
    allowed = index.rows(only)
    if not len(allowed):
        return [(allowed, np.zeros(0, np.float32))] * len(asked)
    return index.propose(asked, allowed, depth)


def narrow_candidates(index: Index, asked: Patches, wanted: list[Ints]) -> Scored:
    """For each text the passages that are wanted for it, and how near they are to its few vectors."""
    few = pool_neighbours(asked)
    return [(rows, score_some(index, few, at, rows)) for at, rows in enumerate(wanted)]


def rescore_candidates(index: Index, asked: Patches, k: int, wanted: list[Ints]) -> list[list[Hit]]:
    """For each text the best of the passages that are wanted for it, by their exact scores."""
    return [rank_rows(index, rows, score_some(index, asked, at, rows), k) for at, rows in enumerate(wanted)]


def score_part(index: Index, asked: Patches, only: Filter, k: int) -> list[list[Hit]]:
    """For each text the best of all passages that are allowed."""
    rows = index.rows(only)
    return [rank_rows(index, rows, found, k) for found in index.score_many_rows(asked, rows)]


def score_some(index: Index, asked: Patches, at: int, rows: Ints) -> Floats:
    return index.score_rows(asked.take([at]), rows)[0] if len(rows) else np.zeros(0, np.float32)


def rank_rows(index: Index, rows: Ints, scores: Floats, k: int) -> list[Hit]:
    order = np.argsort(-scores, kind="stable")[:k]
    return [Hit(p, float(s)) for p, s in zip(index.passages_at(rows[order]), scores[order], strict=True)]


def best_hits(by_part: list[list[list[Hit]]], k: int) -> list[list[Hit]]:
    """The best of what the parts found, for each text; of equal ones the least id."""
    together = ([hit for hits in of_text for hit in hits] for of_text in zip(*by_part, strict=True))
    return [sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))[:k] for hits in together]
