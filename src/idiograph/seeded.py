"""Hashes of texts, and draws by a seed and names alone. There is no state: order and number of workers cannot matter."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Keys = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def hash_text(text: str, size: int = 8) -> int:
    """A number of `size` bytes for a text, the same in every process, on every machine and in every version.

    >>> hash_text("upon"), hash_text("upon", size=2)
    (14420259528291897640, 40987)
    """
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest(), "big")


def key(seed: int, *names: object) -> int:
    """A number below 2^64 for a seed and some names."""
    return hash_text("\0".join(map(str, (seed, *names))))


def keys(seed: int, names: Iterable[str]) -> Keys:
    """`key` of each name."""
    return np.fromiter((key(seed, name) for name in names), dtype=np.uint64)


def uniform(items: Keys, *draw: ArrayLike) -> NDArray[np.float64]:
    """A number in [0, 1) for each key and draw; `draw` says which, as whole numbers that broadcast against the keys."""
    state: Any = np.atleast_1d(items)
    for part in draw:
        state = _mixed(state + (np.atleast_1d(part).astype(np.uint64) + np.uint64(1)) * _STEP)
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def below(items: Keys, size: ArrayLike, *draw: ArrayLike) -> NDArray[np.int64]:
    """A whole number from 0 to `size` - 1 for each key and draw; 0 where `size` is 0."""
    return (uniform(items, *draw) * np.asarray(size)).astype(np.int64)


def _mixed(values: Any) -> Any:
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))
