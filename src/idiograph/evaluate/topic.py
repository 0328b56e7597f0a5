"""Is topic decoupled? What shared words alone can do on a set of triplets, next to what little of style is cheap to see.

If the positive is on the anchor's topic and the negative is not, BM25 finds it and the benchmark measures topic. The closer
BM25 is to a half and the smaller its lead over function words, the more a model has to learn about style.

Each scorer takes distinct texts and, as numbers of these, anchors with their positives and negatives; it returns two scores
for every triplet. Sparse matrices, no loop over pairs.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array

from idiograph.errors import InputError
from idiograph.evaluate.published import DECOUPLING
from idiograph.evaluate.report import MeasuredValue, interval
from idiograph.html import render
from idiograph.mining.split import SPLITS
from idiograph.mining.triplets import configurations, read_triplets, splits
from idiograph.plots.panels import signal_and_noise
from idiograph.rankers.delta import count_tokens, standard_rates
from idiograph.rankers.letters import weight_counts
from idiograph.rankers.words import FUNCTION_TOKENS
from idiograph.runner import Progress
from idiograph.seeded import key
from idiograph.types import AuthorSet, Triplet

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Scores = tuple[Floats, Floats]  # of positives and negatives

K1, B = 1.5, 0.75  # of BM25
IDF_FLOOR = 0.25  # of the mean weight of a word
GRAM, GRAM_COLUMNS = 4, 1 << 18  # letters of an n-gram, and columns that their hashes fall into
MAX_TRIPLETS = 10_000  # triplets of a configuration that are looked at
HISTOGRAM_BARS = 40
STRICT = "BM25 (Okapi)"  # a tie counts as lost, as in the published study


@dataclass(frozen=True)
class WordNumbers:
    """The lower-cased pieces between white space of some texts, as numbers."""

    rows: tuple[list[int], ...]
    vocabulary: dict[str, int]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "WordNumbers":
        vocabulary: defaultdict[str, int] = defaultdict()
        vocabulary.default_factory = vocabulary.__len__
        rows = tuple([vocabulary[word] for word in text.lower().split()] for text in texts)
        return cls(rows, dict(vocabulary))

    def counts(self) -> csr_array:
        """How often each word occurs: (texts, words)."""
        return count_matrix(self.rows, len(self.vocabulary))


@dataclass(frozen=True)
class TripletTexts:
    """Distinct texts, and the triplets that they make: (T,) places of anchors, positives and negatives."""

    texts: tuple[str, ...]
    anchor: Longs
    positive: Longs
    negative: Longs

    @cached_property
    def words(self) -> "WordNumbers":
        return WordNumbers.of(self.texts)

    @property
    def candidates(self) -> Longs:
        """Every positive and negative once: the collection that a search would go through."""
        return np.unique(np.concatenate([self.positive, self.negative]))


def count_matrix(rows: Sequence[Sequence[int] | Longs], width: int) -> csr_array:
    """Numbers per row as a matrix of counts."""
    first = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    flat = np.concatenate([np.zeros(0, np.int64), *(np.asarray(row, dtype=np.int64) for row in rows)])
    counts = csr_array((np.ones(len(flat)), flat, first), shape=(len(rows), max(width, 1)))
    counts.sum_duplicates()
    return counts


def dot_scores(a: Any, b: Any) -> Floats:
    """Row by row."""
    return np.asarray(a.multiply(b).sum(axis=1)).ravel()


def both_scores(query: Any, weights: Any, triplets: TripletTexts) -> Scores:
    """Products of anchors' rows of `query` with the rows of `weights` of their positives and negatives."""
    anchors = query[triplets.anchor]
    return dot_scores(anchors, weights[triplets.positive]), dot_scores(anchors, weights[triplets.negative])


def okapi(triplets: TripletTexts) -> Scores:
    """BM25 as in rank_bm25, which the published study used: frequent words get a quarter of the mean weight, not less.

    IDF and mean length are those of the candidates; words are what stands between spaces, lower-cased.
    """
    counts = triplets.words.counts()
    pool: Any = counts[triplets.candidates]
    df = np.bincount(pool.indices, minlength=len(triplets.words.vocabulary))
    size = len(triplets.candidates)
    idf = np.log((size - df + 0.5) / (df + 0.5))
    idf = np.where(idf < 0, IDF_FLOOR * idf[df > 0].mean(), idf) * (df > 0)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    mean = float(pool.sum() / size)
    weights = counts.copy()
    norm = K1 * (1 - B + B * lengths / mean)
    weights.data = counts.data * (K1 + 1) / (counts.data + np.repeat(norm, np.diff(counts.indptr)))
    return both_scores(counts, weights @ diags_array(idf), triplets)


def bm25(triplets: TripletTexts) -> Scores:
    """BM25 as bm25s scores it (Lucene's form), read off its index."""
    counts, pool = triplets.words.counts(), triplets.candidates
    tokens = [triplets.words.rows[at] for at in pool.tolist()]
    index = bm25s.BM25(k1=K1, b=B, method="lucene")
    index.index((tokens, triplets.words.vocabulary), show_progress=False)
    stored = index.scores
    shape = (len(pool), len(stored["indptr"]) - 1)
    weights = csc_array((stored["data"], stored["indices"], stored["indptr"]), shape=shape).tocsr()
    place = np.zeros(len(triplets.texts), dtype=np.int64)
    place[pool] = np.arange(len(pool))
    query = counts[:, : shape[1]]
    moved = TripletTexts(triplets.texts, triplets.anchor, place[triplets.positive], place[triplets.negative])
    return both_scores(query, weights, moved)


def character_scores(triplets: TripletTexts) -> Scores:
    """Cosine of character 4-grams, weighted by TF-IDF: the strongest of the simple measures of style, and of topic too."""
    counts = count_matrix([hash_grams(text) for text in triplets.texts], GRAM_COLUMNS)
    unit = weight_counts(counts)
    return both_scores(unit, unit, triplets)


def hash_grams(text: str) -> Longs:
    """Hashes of every four characters in a row, lower case, spaces as one."""
    points = np.frombuffer(" ".join(text.lower().split()).encode("utf-32-le", "replace"), dtype=np.uint32)
    points = points.astype(np.uint64)
    if len(points) < GRAM:
        return np.zeros(0, dtype=np.int64)
    rolled = sum(points[at : len(points) - GRAM + 1 + at] * np.uint64(31 ** (GRAM - 1 - at)) for at in range(GRAM))
    mixed = np.asarray(rolled, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(46)).astype(np.int64)


def function_words(triplets: TripletTexts) -> Scores:
    """Cosine of the z-scores of how often each function word and punctuation mark is used: style without topic."""
    scores = standard_rates(count_tokens(triplets.texts), FUNCTION_TOKENS)
    anchors = scores[triplets.anchor]
    return (anchors * scores[triplets.positive]).sum(axis=1), (anchors * scores[triplets.negative]).sum(axis=1)


SCORERS: dict[str, Callable[[TripletTexts], Scores]] = {
    "BM25 (Okapi)": okapi,
    "BM25 (bm25s)": bm25,
    "character 4-grams": character_scores,
    "function words": function_words,
}


def triplet_jaccard(triplets: TripletTexts) -> tuple[Floats, Floats, Floats]:
    """Share of words in common, of those of either: anchor and positive, anchor and negative, positive and negative."""
    sets = triplets.words.counts()
    sets.data[:] = 1
    sizes = np.diff(sets.indptr)

    def of(a: Longs, b: Longs) -> Floats:
        common = dot_scores(sets[a], sets[b])
        return common / np.maximum(sizes[a] + sizes[b] - common, 1)

    return (
        of(triplets.anchor, triplets.positive),
        of(triplets.anchor, triplets.negative),
        of(triplets.positive, triplets.negative),
    )


@dataclass(frozen=True, slots=True)
class Spread:
    """How a number is distributed over triplets."""

    mean: float
    deviation: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, values: Floats, low: float) -> "Spread":
        counts, edges = np.histogram(values, bins=HISTOGRAM_BARS, range=(low, 1.0))
        return cls(float(values.mean()), float(values.std()), tuple(edges.tolist()), tuple(counts.tolist()))


@dataclass(frozen=True, slots=True)
class WordOverlaps:
    """Jaccard overlaps of the words in a triplet. Signal is how much nearer the positive is than the negative; noise is how
    much the positive has in common with the negative."""

    anchor_positive: Spread
    anchor_negative: Spread
    signal: Spread
    noise: Spread


@dataclass(frozen=True, slots=True)
class CheckedConfiguration:
    """One configuration: how many triplets were looked at, of how many, and what was found."""

    folder: str
    name: str
    rule: str
    sentences: int
    triplets: int
    of: int
    own_document: float  # share of positives from the anchor's own document
    words: WordOverlaps
    accuracy: tuple[MeasuredValue, ...]
    paper: float | None

    def __getitem__(self, scorer: str) -> MeasuredValue:
        return next(row for row in self.accuracy if row.measure == scorer)


@dataclass(frozen=True, slots=True)
class Topic:
    """What was found for every configuration."""

    split: str
    checked: tuple[CheckedConfiguration, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def pairs(self) -> list[tuple[int, CheckedConfiguration | None, CheckedConfiguration | None]]:
        """(sentences, base, unrestricted) of one folder side by side, for those that have a published number."""
        by_name = {(each.rule, each.sentences): each for each in reversed(self.checked)}
        sizes = sorted({size for rule, size in by_name if rule in ("base", "unrestricted")})
        return [(size, by_name.get(("base", size)), by_name.get(("unrestricted", size))) for size in sizes]


def check_topic(
    folders: Sequence[Path],
    split: str = "test",
    *,
    limit: int = MAX_TRIPLETS,
    seed: int = 7,
    progress: Progress | None = None,
) -> Topic:
    """Check every configuration of some triplet folders; `split` may be `all`."""
    wanted = [(folder, name) for folder in folders for name in configurations(folder)]
    checked: list[CheckedConfiguration] = []
    for done, (folder, name) in enumerate(wanted):
        if progress:
            progress(done, len(wanted), f"{folder.name}/{name}")
        checked.append(check_configuration(folder, name, split, limit, seed))
    return Topic(split, tuple(checked))


def check_configuration(folder: Path, name: str, split: str, limit: int, seed: int) -> CheckedConfiguration:
    triplets, total = sample_triplets(read_split(folder, name, split), limit, seed)
    if not triplets:
        raise InputError(f"'{folder}' has no triplets in '{name}', split '{split}'")
    texts, clusters = triplet_texts(triplets), [t.anchor.authors for t in triplets]
    rule, _, size = name.rpartition("-")
    own = float(np.mean([t.anchor.doc_id == t.positive.doc_id for t in triplets]))
    rows = tuple(scorer_accuracy(scorer, texts, clusters, seed) for scorer in SCORERS)
    sentences = int(size) if size.isdigit() else 0
    published = DECOUPLING.get(("BM25", rule, sentences))
    about = (str(folder), name, rule, sentences, len(triplets), total, own)
    return CheckedConfiguration(*about, overlap_rows(texts), rows, published)


def read_split(folder: Path, name: str, split: str) -> Iterator[Triplet]:
    if split not in (*SPLITS, "all"):
        raise InputError(f"there is no split '{split}'; choose from {', '.join((*SPLITS, 'all'))}")
    for each in splits(folder, name) if split == "all" else [split]:
        yield from read_triplets(folder, name, each)


def sample_triplets(triplets: Iterator[Triplet], limit: int, seed: int) -> tuple[list[Triplet], int]:
    """At most `limit` triplets, those with the least keys, whatever their order; and how many there were."""
    sample: list[tuple[int, int, Triplet]] = []
    total = 0
    for total, triplet in enumerate(triplets, 1):
        number = key(seed, triplet.anchor.text, triplet.positive.text, triplet.negative.text)
        sample.append((number, total, triplet))
        if len(sample) >= 2 * limit:
            sample = sorted(sample, key=lambda each: each[:2])[:limit]
    return [triplet for _, _, triplet in sorted(sample, key=lambda each: each[:2])[:limit]], total


def triplet_texts(triplets: Sequence[Triplet]) -> TripletTexts:
    places: dict[str, int] = {}
    rows = [
        [places.setdefault(span.text, len(places)) for span in (t.anchor, t.positive, t.negative)] for t in triplets
    ]
    anchor, positive, negative = np.array(rows, dtype=np.int64).T
    return TripletTexts(tuple(places), anchor, positive, negative)


def scorer_accuracy(scorer: str, triplets: TripletTexts, clusters: Sequence[AuthorSet], seed: int) -> MeasuredValue:
    """How often the positive scores higher, with an interval over author-sets."""
    positive, negative = SCORERS[scorer](triplets)
    won = np.where(positive > negative, 1.0, 0.0 if scorer == STRICT else np.where(positive == negative, 0.5, 0.0))
    return MeasuredValue(scorer, float(won.mean()), *interval(won, clusters, seed=seed))


def overlap_rows(triplets: TripletTexts) -> WordOverlaps:
    positive, negative, noise = triplet_jaccard(triplets)
    return WordOverlaps(
        Spread.of(positive, 0.0), Spread.of(negative, 0.0), Spread.of(positive - negative, -1.0), Spread.of(noise, 0.0)
    )


def write_topic_report(topic: Topic, folder: Path) -> Path:
    """Write `topic.json` and the page `topic.html`; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "topic.json").write_text(json.dumps(topic.to_json(), indent=1), encoding="utf-8")
    page = folder / "topic.html"
    figures = [(each, signal_and_noise(each.words)) for each in topic.checked]
    values = {"found": topic, "figures": figures, "scorers": list(SCORERS), "okapi": STRICT}
    page.write_text(render("topic.html", title="Is topic decoupled?", **values), encoding="utf-8")
    return page
