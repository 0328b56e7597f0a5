"""Is topic decoupled? What shared words alone can do on a set of triplets, next to what little of style is cheap to see.

If the positive is on the anchor's topic and the negative is not, BM25 finds it and the benchmark measures topic. The closer
BM25 is to a half and the smaller its lead over function words, the more a model has to learn about style.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from idiograph.errors import InputError
from idiograph.evaluate.pairs import SCORERS, Floats, TripletTexts, triplet_jaccard
from idiograph.evaluate.published import DECOUPLING
from idiograph.evaluate.report import MeasuredValue, interval
from idiograph.html import render
from idiograph.mining.split import SPLITS
from idiograph.mining.triplets import configurations, read_triplets, splits
from idiograph.plots.panels import signal_and_noise
from idiograph.runner import Progress
from idiograph.seeded import key
from idiograph.types import AuthorSet, Triplet

LIMIT = 10_000  # triplets of a configuration that are looked at
BARS = 40
STRICT = "BM25 (Okapi)"  # a tie counts as lost, as in the published study


@dataclass(frozen=True, slots=True)
class Spread:
    """How a number is distributed over triplets."""

    mean: float
    deviation: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, values: Floats, low: float) -> "Spread":
        counts, edges = np.histogram(values, bins=BARS, range=(low, 1.0))
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
class Checked:
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
    checked: tuple[Checked, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def pairs(self) -> list[tuple[int, Checked | None, Checked | None]]:
        """(sentences, base, unrestricted) of one folder side by side, for those that have a published number."""
        found = {(each.rule, each.sentences): each for each in reversed(self.checked)}
        sizes = sorted({size for rule, size in found if rule in ("base", "unrestricted")})
        return [(size, found.get(("base", size)), found.get(("unrestricted", size))) for size in sizes]


def check_topic(
    folders: Sequence[Path],
    split: str = "test",
    *,
    limit: int = LIMIT,
    seed: int = 7,
    progress: Progress | None = None,
) -> Topic:
    """Check every configuration of some triplet folders; `split` may be `all`."""
    wanted = [(folder, name) for folder in folders for name in configurations(folder)]
    found: list[Checked] = []
    for done, (folder, name) in enumerate(wanted):
        if progress:
            progress(done, len(wanted), f"{folder.name}/{name}")
        found.append(check_configuration(folder, name, split, limit, seed))
    return Topic(split, tuple(found))


def check_configuration(folder: Path, name: str, split: str, limit: int, seed: int) -> Checked:
    triplets, total = sample_triplets(read_split(folder, name, split), limit, seed)
    if not triplets:
        raise InputError(f"'{folder}' has no triplets in '{name}', split '{split}'")
    found, clusters = triplet_texts(triplets), [t.anchor.authors for t in triplets]
    rule, _, size = name.rpartition("-")
    own = float(np.mean([t.anchor.doc_id == t.positive.doc_id for t in triplets]))
    rows = tuple(scorer_accuracy(scorer, found, clusters, seed) for scorer in SCORERS)
    sentences = int(size) if size.isdigit() else 0
    published = DECOUPLING.get(("BM25", rule, sentences))
    about = (str(folder), name, rule, sentences, len(triplets), total, own)
    return Checked(*about, overlap_rows(found), rows, published)


def read_split(folder: Path, name: str, split: str) -> Iterator[Triplet]:
    if split not in (*SPLITS, "all"):
        raise InputError(f"there is no split '{split}'; choose from {', '.join((*SPLITS, 'all'))}")
    for each in splits(folder, name) if split == "all" else [split]:
        yield from read_triplets(folder, name, each)


def sample_triplets(triplets: Iterator[Triplet], limit: int, seed: int) -> tuple[list[Triplet], int]:
    """At most `limit` triplets, those with the least keys, whatever their order; and how many there were."""
    held: list[tuple[int, int, Triplet]] = []
    total = 0
    for total, triplet in enumerate(triplets, 1):
        number = key(seed, triplet.anchor.text, triplet.positive.text, triplet.negative.text)
        held.append((number, total, triplet))
        if len(held) >= 2 * limit:
            held = sorted(held, key=lambda each: each[:2])[:limit]
    return [triplet for _, _, triplet in sorted(held, key=lambda each: each[:2])[:limit]], total


def triplet_texts(triplets: Sequence[Triplet]) -> TripletTexts:
    places: dict[str, int] = {}
    rows = [
        [places.setdefault(span.text, len(places)) for span in (t.anchor, t.positive, t.negative)] for t in triplets
    ]
    anchor, positive, negative = np.array(rows, dtype=np.int64).T
    return TripletTexts(tuple(places), anchor, positive, negative)


def scorer_accuracy(scorer: str, found: TripletTexts, clusters: Sequence[AuthorSet], seed: int) -> MeasuredValue:
    """How often the positive scores higher, with an interval over author-sets."""
    positive, negative = SCORERS[scorer](found)
    won = np.where(positive > negative, 1.0, 0.0 if scorer == STRICT else np.where(positive == negative, 0.5, 0.0))
    return MeasuredValue(scorer, float(won.mean()), *interval(won, clusters, seed=seed))


def overlap_rows(found: TripletTexts) -> WordOverlaps:
    positive, negative, noise = triplet_jaccard(found)
    return WordOverlaps(
        Spread.of(positive, 0.0), Spread.of(negative, 0.0), Spread.of(positive - negative, -1.0), Spread.of(noise, 0.0)
    )


def write_topic_report(found: Topic, folder: Path) -> Path:
    """Write `topic.json` and the page `topic.html`; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "topic.json").write_text(json.dumps(found.to_json(), indent=1), encoding="utf-8")
    page = folder / "topic.html"
    figures = [(each, signal_and_noise(each.words)) for each in found.checked]
    values = {"found": found, "figures": figures, "scorers": list(SCORERS), "okapi": STRICT}
    page.write_text(render("topic.html", title="Is topic decoupled?", **values), encoding="utf-8")
    return page


def topic_as_markdown(found: Topic) -> str:
    """Accuracies in per cent, configurations as rows."""
    head = ["triplets", "looked at", "paper's BM25", *SCORERS, "signal", "noise"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for each in found.checked:
        cells = [f"{100 * r.value:.1f} [{100 * r.low:.1f}, {100 * r.high:.1f}]" for r in each.accuracy]
        paper = f"{each.paper:.1f}" if each.paper else "–"
        overlap = [f"{each.words.signal.mean:.3f}", f"{each.words.noise.mean:.3f}"]
        lines.append(f"| {' | '.join([each.name, str(each.triplets), paper, *cells, *overlap])} |")
    return "\n".join(lines)
