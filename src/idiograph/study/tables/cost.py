"""What a comparison costs: operations, bytes, and the time it takes here."""

import time
from collections.abc import Callable

import numpy as np

from idiograph.evaluate.published import COST, STORAGE
from idiograph.study.table import NAN, Cell, Table, TableRow, slug_of
from idiograph.study.tables.granularity import grain_name
from idiograph.style.patches import Patches, unit_vectors
from idiograph.style.score import maxsim

SIZES = {"whole": 0, "ngram:1": 1, "ngram:2": 2, "ngram:3": 3, "ngram:4": 4, "ngram:5": 5}


def patches_of(tokens: int, grain: str) -> int:
    """How many patches a text of so many tokens has.

    >>> patches_of(512, "ngram:3")
    171
    """
    return 1 if grain == "whole" else -(-tokens // SIZES[grain])


def operations(tokens: int, width: int, grain: str) -> float:
    """Multiplications and additions of one MaxSim: two for each number of each pair of patches."""
    return 2.0 * patches_of(tokens, grain) ** 2 * width


def kilobytes(tokens: int, width: int, grain: str) -> float:
    """Of a text in 16-bit numbers."""
    return patches_of(tokens, grain) * width * 2 / 1024


def time_calls(tokens: int, width: int, grain: str, texts: int = 4, rounds: int = 5, seed: int = 7) -> list[float]:
    """Seconds of one comparison, by our definition in numpy: all pairs of some texts, several times."""
    chance = np.random.default_rng(seed)
    count = patches_of(tokens, grain)
    rows = unit_vectors(chance.standard_normal((texts * count, width)))
    patches = Patches(rows, np.full(texts, count, np.int64), np.zeros((len(rows), 2), np.int64))
    maxsim(patches, patches)
    return [clock_encoding(lambda: maxsim(patches, patches)) / texts**2 for _ in range(rounds)]


def clock_encoding(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def cost_table(tokens: int = 512, width: int = 768, texts: int = 4) -> Table:
    """At the published length and width; the time is the least of several rounds, its range all of them."""
    rows = []
    for grain in SIZES:
        same = (tokens, width) == (512, 768)
        count, flops = COST.get(grain, (NAN, NAN)) if same else (NAN, NAN)
        size = STORAGE.get(grain, NAN) if same else NAN
        spent = [1e6 * each for each in time_calls(tokens, width, grain, texts)]
        cells = (
            Cell(patches_of(tokens, grain), published=count, digits=0),
            Cell(operations(tokens, width, grain) / 1e6, published=flops / 1e6, digits=2),
            Cell(kilobytes(tokens, width, grain), published=size, digits=0),
            Cell(min(spent), min(spent), max(spent), digits=1),
        )
        rows.append(TableRow(grain_name(grain), cells))
    columns = ("patches", "million operations a pair", "kB a text", "µs a pair, measured")
    text = (
        f"Texts of {tokens} tokens, vectors of {width} numbers; kB in 16 bits; times on this machine, one thread pool."
    )
    return Table(
        f"cost-{slug_of(str(width))}",
        f"What a comparison costs, {width} dimensions",
        columns,
        tuple(rows),
        text,
        "grain",
    )
