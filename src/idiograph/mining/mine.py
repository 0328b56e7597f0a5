"""From a corpus to triplets. The positive is by the same author-set but from another document; the negative shares the
field and no author. Everything is drawn by (seed, document id): order and number of workers do not matter."""

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from idiograph.corpus.card import write_croissant, write_triplet_card
from idiograph.corpus.corpus import Corpus
from idiograph.corpus.duplicates import near_duplicates
from idiograph.errors import InputError
from idiograph.mining.catalog import IN_SEVERAL_SPLITS, NONE, OTHER_LANGUAGE, REPEATS_ANOTHER, Catalog
from idiograph.mining.draw import (
    LEXICAL,
    NO_DOMAIN,
    NO_LABEL,
    NO_MATE,
    NO_OTHER,
    NO_OTHER_BOOK,
    DrawTask,
    candidates_per_document,
    draw_triplets,
    make_tables,
)
from idiograph.mining.leaks import overlapping_spans
from idiograph.mining.plan import MiningPlan, plan_mining
from idiograph.mining.spans import SpanPool, collect_terms, draw_spans, span_kind
from idiograph.mining.split import SPLITS, Splits, place_draws
from idiograph.mining.triplets import TripletSource, schema_of, write_triplets
from idiograph.recipe import MineRecipe
from idiograph.runner import Progress, Workers
from idiograph.seeded import uniform
from idiograph.store import Manifest, clear_folder, draft, locked_folder, seal, write_json

CANDIDATES_PER_BLOCK = 1_000_000  # drawn at once: a hundred megabytes of arrays
PLACING_DRAW = 99  # the draw that places a single triplet
WORK_FOLDER_VERSION = 2  # of what lies in a work folder

Longs = NDArray[np.int64]
Counts = dict[str, dict[str, int]]  # configuration → split → triplets


def mine_triplets(
    corpus: Corpus,
    recipe: MineRecipe,
    out: Path,
    *,
    apart: Sequence[Path] = (),
    overwrite: bool = False,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> Counts:
    """Write triplets to `out/RULE-K/SPLIT-*.parquet`; returns how many there are. A killed run goes on where it was.

    Whoever is validated or tested on in the triplets of `apart` is not in train; to take over the splits of other triplets, or
    to see what is lost before it is drawn: `plan_mining`, then `mine_plan`.
    """
    workers = workers or Workers(progress=progress)
    workers.tell(0, None, "reading authors and fields")
    return mine_plan(plan_mining(corpus, recipe, apart), out, overwrite, workers)


def mine_plan(plan: MiningPlan, out: Path, overwrite: bool = False, workers: Workers | None = None) -> Counts:
    """Draw and write the triplets of a plan. With runner `ray` the nodes must see corpus and `out` under the same paths."""
    with draft(out, overwrite) as folder, work_folder(out, plan.inputs, plan.recipe) as work:
        miner = Miner(plan, work, workers or Workers())
        counts = miner.write(folder)
        if not counts:
            raise InputError(no_triplets(miner.dropped, plan.recipe))
        if len(plan.catalog.writers.who):
            plan.catalog.writers.save(folder)
        about = write_triplet_card(folder, counts, plan.recipe, +miner.dropped)
        write_croissant(folder, counts, about, "same-author-triplets", schema_of(plan.recipe.form))
        seal(folder, Manifest("triplets", plan.recipe.model_dump(), dict(plan.inputs), counts, dict(+miner.dropped)))
    return counts


@contextmanager
def work_folder(out: Path, inputs: Mapping[str, str], recipe: MineRecipe) -> Iterator[Path]:
    """A hidden folder for what is worked out on the way; it outlives a kill, and is used again by the same run alone."""
    folder = out.parent / f".{out.name}.work"
    plan = json.dumps([WORK_FOLDER_VERSION, inputs, recipe.model_dump()])
    with locked_folder(folder):
        if read_work_plan(folder / "plan.json") != plan:
            clear_folder(folder)
            write_json(folder / "plan.json", plan)
        try:
            yield folder
        except InputError:
            discard_draft(folder)
            raise
        discard_draft(folder)


def read_work_plan(path: Path) -> str:
    """What a work folder was begun for; nothing where that cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""


def discard_draft(folder: Path) -> None:
    """Remove a work folder, its plan first: what a kill leaves of the rest is then nobody's, and not taken up again."""
    (folder / "plan.json").unlink()
    shutil.rmtree(folder)


def run_folder(work: Path) -> Path:
    """A folder for this run alone; what a killed one left is removed. Workers remember what they opened by its name."""
    for old in work.glob("run-*"):
        shutil.rmtree(old)
    folder = work / f"run-{uuid4().hex}"
    folder.mkdir()
    return folder


class Miner:
    """A corpus made ready: who is in which split, and spans on disk."""

    def __init__(self, plan: MiningPlan, work: Path, workers: Workers) -> None:
        self.recipe, self.work, self.workers = plan.recipe, work, workers
        self.run = run_folder(work)
        check_language(plan.catalog, plan.recipe)
        workers.tell(0, None, "looking for copies")
        self.catalog = without_version_copies(plan.catalog, plan.corpus, plan.recipe, work)
        wanted = np.asarray(self.catalog.split != NONE)
        self.dropped = Counter(self.catalog.dropped) + draw_spans(plan.corpus, wanted, plan.recipe, work, workers)

    def write(self, folder: Path) -> Counts:
        """Draw and write the triplets of every rule and number of sentences; those without any are left out."""
        names = [(rule, size) for rule in self.recipe.rule for size in self.recipe.sentences]
        drawn = {name: self._draw(*name) for name in names}
        if self.recipe.split != "triplet":
            drawn = self._drop_overlaps(drawn)
        counts = {f"{rule}-{size}": self._write(rule, size, rows, folder) for (rule, size), rows in drawn.items()}
        return {name: splits for name, splits in counts.items() if sum(splits.values())}

    def _write(self, rule: str, size: int, rows: Longs, folder: Path) -> dict[str, int]:
        name, where = f"{rule}-{size}", self._splits(rows)
        source = TripletSource(SpanPool.open(self.work, span_kind(rule, size)), self.catalog.shown, self.recipe.form)
        counts: dict[str, int] = {}
        for at, split in enumerate(SPLITS):
            self.workers.tell(at, len(SPLITS), f"writing {name}")
            counts[split] = write_triplets(rows[where == at, 1:], source, folder / name, split)
        return counts

    def _draw(self, rule: str, size: int) -> Longs:
        """The triplets of a rule, ordered by the key of the anchor's document: shuffled, but always the same way."""
        source = span_kind(rule, size)
        pool = SpanPool.open(self.work, source)
        if rule == "ict":
            return cloze_triplets(self.catalog, pool)
        tables = self.run / f"tables-{source}"
        make_tables(self.catalog, pool, self.recipe).save(tables)
        lexical = self.recipe.negatives in LEXICAL or self.recipe.positives == "far"
        task = DrawTask(
            rule, size, tables, collect_terms(self.work, self.run, source) if lexical else None, self.recipe
        )
        order = np.argsort(self.catalog.keys, kind="stable")
        step = max(1, CANDIDATES_PER_BLOCK // candidates_per_document(self.recipe))
        blocks = [order[at : at + step] for at in range(0, len(order), step)]
        blocks_drawn: list[Longs] = []
        for _, chosen in self.workers.run(partial(draw_triplets, task=task), blocks, f"drawing {rule}-{size}", len):
            self.dropped.update({f"{rule}-{size}: {reason}": count for reason, count in chosen.dropped.items()})
            blocks_drawn.append(chosen.rows)
        return np.concatenate([np.zeros((0, 4), dtype=np.int64), *blocks_drawn])

    def _drop_overlaps(self, drawn: dict[tuple[str, int], Longs]) -> dict[tuple[str, int], Longs]:
        """The triplets without those that have wording in common with a later split."""
        used: dict[str, list[Longs]] = defaultdict(list)
        for name, rows in drawn.items():
            used[span_kind(*name)].append(rows[:, 1:])
        numbers = {source: np.unique(np.concatenate(parts)) for source, parts in used.items()}
        spans = {
            source: (found, self.catalog.split[SpanPool.open(self.work, source).owners(found)])
            for source, found in numbers.items()
        }
        faulty = overlapping_spans(spans, self.run, self.workers)
        return {name: self._without(name, rows, faulty[span_kind(*name)]) for name, rows in drawn.items()}

    def _without(self, name: tuple[str, int], rows: Longs, faulty: dict[str, Longs]) -> Longs:
        for reason, spans in faulty.items():
            gone = np.isin(rows[:, 1:], spans).any(axis=1)
            self.dropped[f"{name[0]}-{name[1]}: {reason}"] += int(gone.sum())
            rows = rows[~gone]
        return rows

    def _splits(self, rows: Longs) -> Splits:
        """The split of each triplet: that of its document or, in the published protocol, its own."""
        if self.recipe.split != "triplet":
            return self.catalog.split[rows[:, 0]]
        new = np.flatnonzero(np.diff(rows[:, 0], prepend=NONE))
        turn = np.arange(len(rows)) - np.repeat(new, np.diff(np.append(new, len(rows))))  # place in its document
        return place_draws(uniform(self.catalog.keys[rows[:, 0]], PLACING_DRAW, turn), self.recipe.fractions)


def cloze_triplets(catalog: Catalog, pool: SpanPool) -> Longs:
    """Anchor, context and negative as they were drawn, three in a row."""
    anchors = np.arange(0, int(pool.first[-1]), 3)
    docs = pool.owners(anchors)
    rows = np.stack([docs, anchors, anchors + 1, anchors + 2], axis=1)
    return rows[np.argsort(catalog.keys[docs], kind="stable")]


def without_version_copies(catalog: Catalog, corpus: Corpus, recipe: MineRecipe, work: Path) -> Catalog:
    """The catalog with all but one of the versions of a work left out, unless that was done when the corpus was made."""
    if recipe.near_duplicates == "keep" or corpus.manifest.recipe.get("duplicates") == "collapse":
        return catalog
    known = work / "copies.json"
    if not known.is_file():
        entries = ((d.id, d.title, d.author_set, d.text) for d in corpus if recipe.lang in ("any", d.lang))
        write_json(known, sorted(near_duplicates(entries)))
    copies = set(json.loads(known.read_text(encoding="utf-8")))
    ids = catalog.shown.column("id").to_pylist()
    return catalog.without(np.fromiter((i in copies for i in ids), dtype=bool, count=len(ids)), REPEATS_ANOTHER)


def check_language(catalog: Catalog, recipe: MineRecipe) -> None:
    if recipe.lang != "any" and recipe.lang not in catalog.langs:
        common = Counter(catalog.langs).most_common(3)
        found = ", ".join(f"{lang} ({count})" for lang, count in common)
        raise InputError(f"no document is in '{recipe.lang}'; the corpus has {found}: try --lang {common[0][0]}")


def no_triplets(dropped: Mapping[str, int], recipe: MineRecipe) -> str:
    """Why there is nothing to write, and what to type next."""
    whole = Counter(
        {
            reason: count
            for reason, count in dropped.items()
            if not reason.startswith("span") and reason != OTHER_LANGUAGE
        }
    )
    common = (whole or Counter(dropped)).most_common(3)
    reasons = ", ".join(f"{reason} ({count})" for reason, count in common)
    parts = (max((part for part in ADVICE if part in reason), key=len, default="") for reason, _ in common)
    hints = [ADVICE[part] for part in dict.fromkeys(parts) if part]
    advice = "".join(hints[:2]).format(min(recipe.sentences))
    return f"no triplet can be drawn from this corpus: {reasons or 'it is empty'}{advice}"


ADVICE = {
    NO_DOMAIN: "; to draw negatives from all documents: --negatives any",
    NO_LABEL: "; to pass over such authors: --label set",
    NO_OTHER_BOOK: "; to allow two chapters of one book: --containers any",
    NO_MATE: "; to go by one author of each: --label first or last; to allow a second span: --rule unrestricted",
    NO_OTHER: "; add texts by others in the same field, or draw from all fields: --negatives any",
    IN_SEVERAL_SPLITS: "; to go by one author of each: --label first or last",
    "document: fewer than": "; ask for shorter spans than {}: --sentences 2",
    "span: ": "; to let every span pass: filters = false under [mine] in a recipe",
}
