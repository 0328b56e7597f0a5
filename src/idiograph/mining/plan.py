"""What there is to mine, known in seconds, before the minutes that drawing takes: who is in which split, and what is lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.corpus.corpus import Corpus
from idiograph.mining.catalog import IN_SEVERAL_SPLITS, NONE, OTHER_LANGUAGE, Catalog, read_catalog
from idiograph.mining.leaks import fingerprint_folders, read_held_out_people, read_known_people
from idiograph.mining.split import SIZES_BALANCED, SPLITS
from idiograph.recipe import MineRecipe

TOGETHER = "all"  # the name of what has no splits: the corpus as it is, or triplets that are split one by one


@dataclass(frozen=True, slots=True)
class SplitSizes:
    """What one split has to draw from."""

    name: str
    documents: int
    author_sets: int
    recurring: int  # of these, with two documents or more: whose documents can be anchors
    anchors: int  # documents of recurring author-sets
    single_anchors: float  # the share of these that one person wrote
    by_authors: tuple[float, ...]  # shares of the documents by one, two, three, and four or more people


@dataclass(frozen=True, slots=True)
class MiningPlan:
    """A corpus as it will be mined."""

    corpus: Corpus
    recipe: MineRecipe
    inputs: Mapping[str, str]  # what it is made of, by fingerprint
    catalog: Catalog

    @property
    def asked(self) -> int:
        """Documents in the language asked for."""
        return len(self.catalog) - self.catalog.dropped.get(OTHER_LANGUAGE, 0)

    @property
    def lost(self) -> float:
        """The share of these whose authors are in several splits."""
        return self.catalog.dropped.get(IN_SEVERAL_SPLITS, 0) / max(self.asked, 1)

    @property
    def sizes(self) -> list[SplitSizes]:
        """The corpus, then each split of it."""
        where, whole = self.catalog.split, np.ones(len(self.catalog), dtype=bool)
        kept = [(name, where == at) for at, name in enumerate(SPLITS) if self.recipe.split != "triplet"]
        return [split_sizes(name, rows, self.catalog) for name, rows in [(TOGETHER, whole), *kept]]

    def to_json(self) -> dict[str, Any]:
        sizes = {each.name: {at: getattr(each, at) for at in SplitSizes.__slots__} for each in self.sizes}
        return {"documents": len(self.catalog), "lost": self.lost, "dropped": self.catalog.dropped, "sizes": sizes}


def plan_mining(
    corpus: Corpus, recipe: MineRecipe, apart: Sequence[Path] = (), splits_from: Sequence[Path] = ()
) -> MiningPlan:
    """Read who wrote what, and decide who is in which split.

    Whoever is validated or tested on in the triplets of `apart` is not in train. Whoever is in those of `splits_from` stays in
    the split that they are in there.
    """
    inputs = {"corpus": corpus.manifest.fingerprint} | fingerprint_folders(apart)
    inputs |= fingerprint_folders(splits_from, "splits from")
    catalog = read_catalog(corpus, recipe, read_held_out_people(apart), read_known_people(splits_from))
    return MiningPlan(corpus, recipe, inputs, catalog)


def split_sizes(name: str, rows: NDArray[np.bool_], catalog: Catalog) -> SplitSizes:
    """What those documents of a corpus have to draw from."""
    label, people = catalog.label[rows], np.diff(catalog.people.first)[rows]
    counts = np.bincount(label[label != NONE], minlength=1)
    anchors = (label != NONE) & (counts[label] > 1)
    return SplitSizes(
        name,
        int(rows.sum()),
        int((counts > 0).sum()),
        int((counts > 1).sum()),
        int(anchors.sum()),
        share(people[anchors] == 1),
        tuple(
            share(people >= SIZES_BALANCED if n == SIZES_BALANCED else people == n)
            for n in range(1, SIZES_BALANCED + 1)
        ),
    )


def share(which: NDArray[np.bool_]) -> float:
    return float(which.mean()) if len(which) else 0.0
