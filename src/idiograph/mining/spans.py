"""Candidate spans of a corpus: drawn once per document, filtered, and kept on disk so that memory does not grow with text.

Documents are read in blocks, which any worker may do in any order. A block leaves two files: `N.text`, the spans one after
another, and `N.npz`, how many and how long they are. The second is written last, so that a killed run goes on after it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from idiograph.corpus.corpus import Corpus
from idiograph.corpus.filters import SPAN_RULES, TextView, first_fault
from idiograph.recipe import MineRecipe
from idiograph.runner import Workers
from idiograph.text.counts import PARTS, join_terms, term_counts
from idiograph.text.language import identify
from idiograph.text.sentences import Offsets, find_sentences, sentence_runs

ROW_GROUPS_PER_BLOCK = 8  # row groups in a block: 2048 documents
PLAIN, CLOZE = "spans", "cloze"  # what is drawn: single spans, or an anchor with its context and a negative
TRIES_PER_SPAN = 5  # spans looked at for each that is wanted: of some texts hardly any pass
SURE_FUNCTION_WORD_SHARE = 0.25  # of the words are function words of the language: no detector is needed
KEEP_ANCHOR = 0.10  # how often a cloze's context still holds the anchor, so that shared words may count a little

Longs = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FoundSpan:
    """A span that passed the rules: its text, its first sentence, and whether its language is beyond doubt."""

    text: str
    at: int
    sure: bool = True


@dataclass(frozen=True, slots=True)
class DocumentBlock:
    """Documents that are read together: `wanted` says which of them."""

    number: int
    path: Path
    groups: tuple[int, ...]
    wanted: NDArray[np.bool_]


def span_kind(rule: str, size: int) -> str:
    """What a rule draws from: `spans-4`, `cloze-2`."""
    return f"{CLOZE if rule == 'ict' else PLAIN}-{size}"


def span_kinds(recipe: MineRecipe) -> list[str]:
    return list(dict.fromkeys(span_kind(rule, size) for rule in recipe.rule for size in recipe.sentences))


def document_blocks(corpus: Corpus, wanted: NDArray[np.bool_]) -> Iterator[DocumentBlock]:
    """The corpus in pieces whose bounds depend on its files alone."""
    first = number = 0
    for path in corpus.paths:
        meta = pq.read_metadata(path)
        sizes = [meta.row_group(group).num_rows for group in range(meta.num_row_groups)]
        for group in range(0, len(sizes), ROW_GROUPS_PER_BLOCK):
            rows = sum(sizes[group : group + ROW_GROUPS_PER_BLOCK])
            chosen = tuple(range(group, min(group + ROW_GROUPS_PER_BLOCK, len(sizes))))
            yield DocumentBlock(number, path, chosen, wanted[first : first + rows])
            first, number = first + rows, number + 1


def draw_spans(
    corpus: Corpus, wanted: NDArray[np.bool_], recipe: MineRecipe, folder: Path, workers: Workers
) -> Counter[str]:
    """Draw the spans of the wanted documents into `folder`; what a killed run left there is kept. Returns the drop reasons."""
    work = partial(draw_block, recipe=recipe, folder=folder)
    dropped: Counter[str] = Counter()
    for _, reasons in workers.run(
        work, list(document_blocks(corpus, wanted)), "drawing spans", lambda block: len(block.wanted)
    ):
        dropped.update(reasons)
    return dropped


def draw_block(block: DocumentBlock, recipe: MineRecipe, folder: Path) -> Counter[str]:
    """Draw the spans of one block and write them, unless that was done before."""
    marker = folder / f"{block.number:06d}.npz"
    if not marker.is_file():
        write_block(block, recipe, folder, marker)
    with np.load(marker) as marked:
        return Counter(dict(zip(marked["reasons"].tolist(), marked["times"].tolist(), strict=True)))


def write_block(block: DocumentBlock, recipe: MineRecipe, folder: Path, marker: Path) -> None:
    dropped: Counter[str] = Counter()
    drawn: dict[str, list[list[FoundSpan]]] = {name: [] for name in span_kinds(recipe)}
    for wanted, (identity, text, lang) in zip(block.wanted.tolist(), block_texts(block), strict=True):
        found = spans_of(identity, text, lang, recipe, dropped) if wanted else {}
        for name, rows in drawn.items():
            rows.append(found.get(name, []))
    if recipe.detector:
        drawn = {name: in_language(rows, block_languages(block), name, dropped) for name, rows in drawn.items()}
    columns = save_texts(drawn, folder / f"{block.number:06d}.text")
    if recipe.negatives in ("lexical", "matched") or recipe.positives == "far":
        columns |= term_columns(drawn)
    reasons = {"reasons": np.array(list(dropped), dtype=str), "times": np.array(list(dropped.values()), dtype=np.int64)}
    partial_file = marker.with_suffix(".partial.npz")
    np.savez(partial_file, **columns, **reasons)  # pyright: ignore[reportArgumentType]
    partial_file.rename(marker)


def block_texts(block: DocumentBlock) -> Iterator[tuple[str, str, str]]:
    """(id, text, language) of every document; a few hundred are in memory at a time."""
    file = pq.ParquetFile(block.path)
    for group in block.groups:
        rows = file.read_row_group(group, columns=["id", "text", "lang"])
        yield from zip(*(rows.column(name).to_pylist() for name in ("id", "text", "lang")), strict=True)


def block_languages(block: DocumentBlock) -> list[str]:
    found = pq.ParquetFile(block.path).read_row_groups(list(block.groups), columns=["lang"])
    return found.column("lang").to_pylist()


def spans_of(
    identity: str, text: str, lang: str, recipe: MineRecipe, dropped: Counter[str]
) -> dict[str, list[FoundSpan]]:
    """What is drawn from a document, by kind; by its id and the seed alone."""
    offsets = find_sentences(text, lang, recipe.abbreviations)
    found: dict[str, list[FoundSpan]] = {}
    for name in span_kinds(recipe):
        what, _, size = name.partition("-")
        random = Random(f"{recipe.seed}/{name}/{identity}")
        judge = Judge(lang, recipe, dropped)
        draw = plain_spans if what == PLAIN else cloze_spans
        found[name] = draw(text, offsets, int(size), random, recipe, judge)
    return found


@dataclass(frozen=True, slots=True)
class Judge:
    """Lets a span pass or counts the reason why not."""

    lang: str
    recipe: MineRecipe
    dropped: Counter[str]

    def __call__(self, text: str, at: int) -> FoundSpan | None:
        if not self.recipe.filters:
            return FoundSpan(text, at, sure=False)
        reading = TextView(text, self.lang)
        if reason := first_fault(reading, SPAN_RULES):
            self.dropped[f"span: {reason}"] += 1
            return None
        return FoundSpan(text, at, (reading.function_words or 0) >= SURE_FUNCTION_WORD_SHARE * len(reading.tokens))


def plain_spans(
    text: str, offsets: Offsets, size: int, random: Random, recipe: MineRecipe, judge: Judge
) -> list[FoundSpan]:
    """Up to `spans_per_document` runs of `size` sentences that pass every rule, in random order."""
    if len(offsets) < size and recipe.short_documents == "drop":
        judge.dropped[f"document: fewer than {size} sentences"] += 1
        return []
    spans: list[FoundSpan] = []
    candidates = sentence_runs(offsets, size)
    for at in islice(draw_in_random_order(range(len(candidates)), random), TRIES_PER_SPAN * recipe.spans_per_document):
        start, end = candidates[at]
        if span := judge(text[start:end], at):
            spans.append(span)
            if len(spans) == recipe.spans_per_document:
                break
    return spans


def cloze_spans(
    text: str, offsets: Offsets, size: int, random: Random, recipe: MineRecipe, judge: Judge
) -> list[FoundSpan]:
    """Anchor, context and negative of up to `per_document` cloze_triplets, one after another."""
    if len(offsets) < 5 * size:
        judge.dropped[f"document: fewer than {5 * size} sentences"] += 1
        return []
    spans: list[FoundSpan] = []
    places = range(size, len(offsets) - 2 * size + 1)
    for at in islice(draw_in_random_order(places, random), TRIES_PER_SPAN * recipe.per_document):
        three = [judge(piece, place) for piece, place in make_cloze(text, offsets, at, size, random)]
        spans += [span for span in three if span] if all(three) else []
        if len(spans) == 3 * recipe.per_document:
            break
    return spans


def make_cloze(text: str, offsets: Offsets, at: int, size: int, random: Random) -> list[tuple[str, int]]:
    """(text, first sentence) of anchor, context and negative for an anchor of `size` sentences that begins at `at`.

    The context is `size` sentences before and `size` after; the negative is 2 · `size` sentences that overlap with
    neither. A text of 5 · `size` sentences has room for that wherever the anchor is, unless it is in the very middle.
    """
    around = (at - size, at + 2 * size)
    elsewhere = [s for s in range(len(offsets) - 2 * size + 1) if s + 2 * size <= around[0] or s >= around[1]]
    if not elsewhere:
        return []
    negative = random.choice(elsewhere)
    keep = random.random() < KEEP_ANCHOR
    before, anchor, after = (piece_at(text, offsets, at + step * size, size) for step in (-1, 0, 1))
    context = piece_at(text, offsets, at - size, 3 * size) if keep else f"{before} {after}"
    return [(anchor, at), (context, at - size), (piece_at(text, offsets, negative, 2 * size), negative)]


def piece_at(text: str, offsets: Offsets, at: int, size: int) -> str:
    return text[offsets[at][0] : offsets[at + size - 1][1]]


def draw_in_random_order(items: Iterable[int], random: Random) -> Iterator[int]:
    """The items in random order, drawn as they are asked for: a paper has hundreds of runs, of which ten are looked at."""
    left = list(items)
    while left:
        at = random.randrange(len(left))
        left[at], left[-1] = left[-1], left[at]
        yield left.pop()


def in_language(
    rows: list[list[FoundSpan]], langs: list[str], name: str, dropped: Counter[str]
) -> list[list[FoundSpan]]:
    """The spans whose language is the document's; a cloze stands or falls as a whole."""
    doubtful = [span.text for row in rows for span in row if not span.sure]
    verdicts = map(identify, doubtful)
    step = 3 if name.startswith(CLOZE) else 1
    good_rows: list[list[FoundSpan]] = []
    for row, lang in zip(rows, langs, strict=True):
        good = [span.sure or next(verdicts)[0] == lang for span in row]
        dropped["span: the detector finds another language"] += good.count(False)
        whole = [all(good[at : at + step]) for at in range(0, len(row), step)]
        good_rows.append([span for at, span in enumerate(row) if whole[at // step]])
    return good_rows


def save_texts(drawn: dict[str, list[list[FoundSpan]]], path: Path) -> dict[str, NDArray[Any]]:
    """Write all spans into one file; returns for each kind how many a document has, how long and where they are."""
    columns: dict[str, NDArray[Any]] = {}
    with path.open("wb") as file:
        for name, rows in drawn.items():
            columns[f"{name}.base"] = np.array(file.tell(), dtype=np.int64)
            encoded = [span.text.encode("utf-8", "replace") for row in rows for span in row]
            file.write(b"".join(encoded))
            columns[f"{name}.count"] = np.array([len(row) for row in rows], dtype=np.int32)
            columns[f"{name}.length"] = np.array([len(each) for each in encoded], dtype=np.int32)
            columns[f"{name}.at"] = np.array([span.at for row in rows for span in row], dtype=np.int32)
    return columns


def term_columns(drawn: dict[str, list[list[FoundSpan]]]) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {}
    for name, rows in drawn.items():
        terms = term_counts(span.text for row in rows for span in row)
        columns |= {f"{name}.sizes": terms.sizes, f"{name}.words": terms.words, f"{name}.times": terms.times}
    return columns


@dataclass(frozen=True)
class SpanPool:
    """The spans of all documents; those of document `at` are numbers `first[at]` to `first[at + 1]` - 1."""

    paths: tuple[Path, ...]
    bounds: Longs  # (blocks + 1,) first span of each block
    bases: Longs  # (blocks,) where they begin in the block's file
    first: Longs  # (documents + 1,)
    at: NDArray[np.int32]  # (spans,) first sentence
    ends: Longs  # (spans + 1,) running length in bytes

    @classmethod
    def open(cls, folder: Path, name: str) -> "SpanPool":
        paths = sorted(folder.glob("[0-9]*.npz"))
        parts = [read_columns(path, name, "base", "count", "length", "at") for path in paths]
        sizes = [len(part["length"]) for part in parts]
        return cls(
            tuple(path.with_suffix(".text") for path in paths),
            running_total(np.array(sizes)),
            np.array([part["base"] for part in parts], dtype=np.int64),
            running_total(np.concatenate([part["count"] for part in parts])),
            np.concatenate([part["at"] for part in parts]),
            running_total(np.concatenate([part["length"] for part in parts])),
        )

    @cached_property
    def counts(self) -> Longs:
        return np.diff(self.first)

    def owners(self, numbers: Longs) -> Longs:
        """The document of each span."""
        return np.searchsorted(self.first, numbers, side="right") - 1

    def texts(self, numbers: Longs) -> pa.Array:
        """The texts of spans, read from where they are; in the order asked for."""
        distinct, where = np.unique(numbers, return_inverse=True)
        encoded: list[bytes] = []
        edges = np.searchsorted(distinct, self.bounds)
        for block in np.flatnonzero(np.diff(edges)).tolist():
            mine = distinct[edges[block] : edges[block + 1]]
            starts = self.ends[mine] + (self.bases[block] - self.ends[self.bounds[block]])
            with self.paths[block].open("rb", buffering=0) as file:
                encoded += read_pieces(file, starts.tolist(), (self.ends[mine + 1] - self.ends[mine]).tolist())
        return pa.array(encoded, pa.binary()).cast(pa.string()).take(pa.array(where))


def read_pieces(file: Any, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
    pieces = []
    for start, length in zip(starts, lengths, strict=True):
        file.seek(start)
        pieces.append(file.read(length))  # unbuffered: a span alone, not the page around it
    return pieces


def collect_terms(folder: Path, to: Path, name: str) -> Path:
    """Join the words of all spans of a kind in the folder `to`; returns the prefix of the files."""
    paths = sorted(folder.glob("[0-9]*.npz"))
    return join_terms((read_columns(path, name, *PARTS) for path in paths), to / f"terms-{name}")


def read_columns(path: Path, name: str, *wanted: str) -> dict[str, NDArray[Any]]:
    with np.load(path) as found:
        return {column: found[f"{name}.{column}"] for column in wanted}


def running_total(sizes: NDArray[Any]) -> Longs:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
