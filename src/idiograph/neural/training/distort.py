"""Texts with other content words in the old places: what the topic says is gone, how the writer says it stays.

Function words, punctuation, capitals, numbers and the endings of words are kept; a content word is replaced by another of
the same kind, drawn from the words of the training texts. A model that sees such pairs cannot win by topic.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from os import cpu_count
from random import Random
from typing import Any

from idiograph.neural.triplets import Triplets

WORD = re.compile(r"[A-Za-z]+(?:['’-][A-Za-z]+)*")
ENDINGS = (
    *("ations", "ation", "ities", "ments", "ically", "ously", "ings", "ness", "ment", "able", "ible", "ally", "ical"),
    *("ing", "ity", "ous", "ive", "ers", "ors", "ies", "est", "ed", "ly", "al", "er", "or", "ic", "es", "s"),
)
CHUNK = 2000  # texts that one process takes at a time
TOOLS: dict[str, Any] = {}  # of this process
COMMON = 300  # the most frequent words are how things are said; none of them is replaced


def ending(word: str) -> str:
    """The kind of a word: its ending, and whether it is short.

    >>> ending("measurements"), ending("tide")
    ('ments', '-')
    """
    low = word.lower()
    found = next((e for e in ENDINGS if low.endswith(e) and len(low) > len(e) + 2), "")
    return found or ("-" if len(low) < 6 else "--")


class Distorter:
    """Replaces a share of the content words of texts by others that end alike."""

    def __init__(self, counts: Counter[str], common: int = COMMON) -> None:
        ranked = [word for word, _ in counts.most_common()]
        self.kept = frozenset(ranked[:common])
        self.kinds: dict[str, list[str]] = defaultdict(list)
        for word in ranked[common:]:
            self.kinds[ending(word)].append(word)

    def __call__(self, text: str, share: float, random: Random) -> str:
        """The text with about `share` of its content words replaced; the same word becomes the same word throughout."""
        swapped: dict[str, str] = {}

        def swap(match: re.Match[str]) -> str:
            word = match[0]
            low = word.lower()
            if low in self.kept:
                return word
            if low not in swapped:
                swapped[low] = random.choice(self.kinds.get(ending(low)) or [low]) if random.random() < share else low
            return like_original(word, swapped[low])

        return WORD.sub(swap, text)


def like_original(word: str, other: str) -> str:
    """`other` with the capitals of `word`."""
    if word.isupper() and len(word) > 1:
        return other.upper()
    return other.capitalize() if word[:1].isupper() else other


def with_distorted(
    parts: Sequence[Triplets], weights: Sequence[float], share: float, words: tuple[float, float], seed: int = 7
) -> tuple[list[Triplets], tuple[float, ...]]:
    """The collections and their distorted twins, and weights by which the twins make up `share` of the whole."""
    if not share:
        return list(parts), tuple(weights)
    plain = weights or [float(len(part)) for part in parts]
    chunks = [
        (at, begin, part.texts[begin : begin + CHUNK])
        for at, part in enumerate(parts)
        for begin in range(0, len(part.texts), CHUNK)
    ]
    counts = Counter[str]()
    with draw_mapping(len(chunks)) as run:
        for found in run(count_words, [texts for _, _, texts in chunks]):
            counts.update(found)
    seeds = [f"{seed} {parts[at].name} {begin}" for at, begin, _ in chunks]
    with draw_mapping(len(chunks), Distorter(counts)) as run:
        found = run(partial(distort_all, words=words), zip((texts for _, _, texts in chunks), seeds, strict=True))
        changed = defaultdict[int, list[str]](list)
        for (at, _, _), texts in zip(chunks, found, strict=True):
            changed[at] += texts
    twins = [replace(p, name=f"{p.name}, distorted", texts=changed[at]) for at, p in enumerate(parts)]
    return [*parts, *twins], (*((1 - share) * w for w in plain), *(share * w for w in plain))


@contextmanager
def draw_mapping(jobs: int, distorter: "Distorter | None" = None) -> Iterator[Callable[..., Iterator[Any]]]:
    """Something like `map`, over as many processes as there is work for; each is given the distorter once."""
    count = min(jobs, cpu_count() or 1)
    if count == 1:
        equip(distorter)
        yield map
        return
    with ProcessPoolExecutor(count, get_context("spawn"), equip, (distorter,)) as pool:
        yield pool.map


def equip(distorter: "Distorter | None") -> None:
    TOOLS["distorter"] = distorter


def count_words(texts: Sequence[str]) -> Counter[str]:
    return Counter(word for text in texts for word in WORD.findall(text.lower()))


def distort_all(job: tuple[Sequence[str], str], words: tuple[float, float]) -> list[str]:
    """Each text distorted for itself, by a share of its content words between the two of `words`."""
    texts, seed = job
    random, distorter = Random(seed), TOOLS["distorter"]
    return [distorter(text, random.uniform(*words), random) for text in texts]
