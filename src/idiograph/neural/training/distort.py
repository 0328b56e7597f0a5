"""Texts with other content words in the old places: what the topic says is gone, how the writer says it stays.

Function words, punctuation, capitals, numbers and the endings of words are kept; a content word is replaced by another of
the same kind, drawn from the words of the training texts. A model that sees such pairs cannot win by topic.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from random import Random

from idiograph.neural.triplets import Triplets
from idiograph.runner import Workers, cores

WORD = re.compile(r"[A-Za-z]+(?:['’-][A-Za-z]+)*")
ENDINGS = (
    *("ations", "ation", "ities", "ments", "ically", "ously", "ings", "ness", "ment", "able", "ible", "ally", "ical"),
    *("ing", "ity", "ous", "ive", "ers", "ors", "ies", "est", "ed", "ly", "al", "er", "or", "ic", "es", "s"),
)
Chunk = tuple[Sequence[str], str]  # some texts, and what their chance is drawn from
CHUNK = 2000  # texts that one process takes at a time
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


def add_distorted(
    parts: Sequence[Triplets],
    weights: Sequence[float],
    share: float,
    words: tuple[float, float],
    seed: int = 7,
    workers: Workers | None = None,
) -> tuple[list[Triplets], tuple[float, ...]]:
    """The collections and their distorted twins, and weights by which the twins make up `share` of the whole."""
    if not share:
        return list(parts), tuple(weights)
    plain = weights or [float(len(part)) for part in parts]
    chunks = [
        (part.texts[begin : begin + CHUNK], f"{seed} {part.name} {begin}")
        for part in parts
        for begin in range(0, len(part.texts), CHUNK)
    ]
    texts = distort_chunks(chunks, words, workers or workers_for(len(chunks)))
    twins = [replace(p, name=f"{p.name}, distorted", texts=list(islice(texts, len(p.texts)))) for p in parts]
    return [*parts, *twins], (*((1 - share) * w for w in plain), *(share * w for w in plain))


def workers_for(jobs: int) -> Workers:
    """As many processes as there are cores and work for."""
    count = min(jobs, cores())
    return Workers("processes", count) if count > 1 else Workers("inline")


def distort_chunks(chunks: Sequence[Chunk], words: tuple[float, float], workers: Workers) -> Iterator[str]:
    """The texts of all chunks, distorted with the words of all of them."""
    counts = Counter[str]()
    for _, found in workers.run(count_words, [texts for texts, _ in chunks], "counting words"):
        counts.update(found)
    distort = partial(distort_all, distorter=Distorter(counts), words=words)
    for _, texts in workers.run(distort, chunks, "distorting texts"):
        yield from texts


def count_words(texts: Sequence[str]) -> Counter[str]:
    return Counter(word for text in texts for word in WORD.findall(text.lower()))


def distort_all(chunk: Chunk, distorter: Distorter, words: tuple[float, float]) -> list[str]:
    """Each text distorted for itself, by a share of its content words between the two of `words`."""
    texts, seed = chunk
    random = Random(seed)
    return [distorter(text, random.uniform(*words), random) for text in texts]
