"""An explanation as a page shows it: two texts cut into their patches, each patch tied to its counterpart."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from idiograph.answer.explain import Explanation, Match
from idiograph.html import ShadedPiece, cut_at_marks

THREADS = 60  # matches drawn as lines: more would be a carpet


def linked_page(found: Explanation, name_a: str, name_b: str) -> dict[str, Any]:
    """The two texts cut into their patches, each with the number of its counterpart."""
    forward = [m for m in found.matches if not m.from_b]
    places = sorted({(m.other_start, m.other_end) for m in forward})
    shade = match_shades([m.similarity for m in forward])
    left = [
        (
            m.start,
            m.end,
            ShadedPiece("", at, places.index((m.other_start, m.other_end)), shade[at], match_note(found, m)),
        )
        for at, m in enumerate(forward)
    ]
    best = {(m.other_start, m.other_end): at for at, m in sorted(enumerate(forward), key=lambda e: e[1].similarity)}
    right = [
        (*place, ShadedPiece("", number, best[place], shade[best[place]], match_note(found, forward[best[place]])))
        for number, place in enumerate(places)
    ]
    return {"name_a": name_a, "name_b": name_b, "a": cut_at_marks(found.a, left), "b": cut_at_marks(found.b, right)}


def text_strips(found: Explanation) -> dict[str, Any]:
    """Both texts as strips from 0 to 1000, patches shaded by how near their counterpart is, and lines between the nearest."""
    forward = [m for m in found.matches if not m.from_b]
    shade = match_shades([m.similarity for m in forward])
    size_a, size_b = 1000 / max(len(found.a), 1), 1000 / max(len(found.b), 1)
    nearest: dict[tuple[int, int], float] = {}
    for m, s in zip(forward, shade, strict=True):
        place = (m.other_start, m.other_end)
        nearest[place] = max(nearest.get(place, 0.0), s)
    top = sorted(range(len(forward)), key=lambda at: -forward[at].similarity)[:THREADS]
    lines = [
        {
            "x": (forward[at].start + forward[at].end) / 2 * size_a,
            "y": (forward[at].other_start + forward[at].other_end) / 2 * size_b,
            "shade": shade[at],
            "note": match_note(found, forward[at]),
        }
        for at in top
    ]
    return {
        "first": [(m.start * size_a, (m.end - m.start) * size_a, s) for m, s in zip(forward, shade, strict=True)],
        "second": [(start * size_b, (end - start) * size_b, s) for (start, end), s in sorted(nearest.items())],
        "lines": lines,
    }


def match_note(found: Explanation, match: Match) -> str:
    here, there = found.a[match.start : match.end], found.b[match.other_start : match.other_end]
    return f"“{here}” ~ “{there}”: similarity {match.similarity:.3f}, gives {match.part:.4f} of {found.score:.4f}"


def match_shades(values: Sequence[float]) -> list[float]:
    """Ranks from 0 to 1, so that a page shows differences however close the values are."""
    order = np.argsort(np.argsort(values))
    return [float(rank) / max(len(values) - 1, 1) for rank in order]
