"""Who is in train, valid and test: by a hash of the person, before any mining, so that a triplet cannot cross splits."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idiograph.seeded import key

SPLITS = ("train", "valid", "test")
Splits = NDArray[np.int8]  # places in SPLITS


def place_draws(draws: ArrayLike, fractions: Sequence[float]) -> Splits:
    """The split of each draw from [0, 1): `fractions` of them in train, valid and test."""
    edges = np.cumsum(fractions)[:-1] / sum(fractions)
    return np.searchsorted(edges, np.atleast_1d(draws), side="right").astype(np.int8)


def split_people(names: Iterable[str], fractions: Sequence[float], seed: int) -> Splits:
    """The split of each person, by name and seed alone."""
    draws = np.fromiter((key(seed, "split", name) / 2.0**64 for name in names), dtype=np.float64)
    return place_draws(draws, fractions)
