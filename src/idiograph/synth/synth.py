"""Simulated authors and topics with known ground truth, at any scale. Not a language model: the sentences mean nothing.

How a document is worded comes from its authors' preferences among near-equivalents (function words, connectives,
punctuation, spelling, contractions, sentence length), what it is about from its topic's preferences among content
words. An author tilts the shared prior by a logistic-normal, a topic reorders the shared Zipfian vocabulary; `style` and
`topic` say how much, and at 0 all are alike.

A document is a function of the settings and its number: hashes of (seed, number) decide everything, in whole numbers,
so that it is the same on every machine, in every shard and in any order. Memory does not grow with the documents.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import InputError, SpecError
from idiograph.runner import shard
from idiograph.spec import unknown_choice
from idiograph.synth.grammar import CLOSED_LEVELS, Grammar, Tables, english
from idiograph.types import Author, Document

STYLE_SPREAD = 0.5  # standard deviation of an author's log-preferences at style=1
TOPIC_SPREAD = 1.0  # standard deviation of a topic's shifts of log-ranks at topic=1
LAB = 8  # authors who write papers together
TEAMS = 2  # author-sets in a lab
PARAGRAPH = 6  # sentences
YEARS = range(2000, 2025)
LICENCE = "https://creativecommons.org/publicdomain/zero/1.0/"
HEADER = 64  # bytes of a document's hash that say who and what; the rest says how
CENTI = 900  # tilts are whole hundredths within ±9 standard deviations
UNIT = 1024  # weight of no tilt
SYLLABLES = [c + v for c in "bdfghjklmnprstvz" for v in "aeiou"]


LIMITS: dict[str, tuple[float, float]] = {
    "documents": (1, 1e12),
    "authors": (1, 1e9),
    "topics": (1, 1e6),
    "style": (0, 100),
    "topic": (0, 100),
    "sentences": (1, 10_000),
    "coauthors": (0, 1),
    "loyalty": (0, 1),
    "seed": (0, 2**63),
}


@dataclass(frozen=True, slots=True)
class World:
    """What is simulated. `coauthors`: share of documents by several; `loyalty`: share on their lab's own topic.

    >>> str(parse_world("synth:documents=10,style=0"))[:48]
    'synth:documents=10,authors=100,topics=10,style=0'
    """

    documents: int = 1000
    authors: int = 100
    topics: int = 10
    style: float = 1.0
    topic: float = 1.0
    sentences: int = 12
    coauthors: float = 0.2
    loyalty: float = 0.0
    seed: int = 7

    def __post_init__(self) -> None:
        for key, (low, high) in LIMITS.items():
            if not low <= getattr(self, key) <= high:
                raise SpecError(f"synth: {key} must be from {low:g} to {high:g}, but got {getattr(self, key)}")

    def __str__(self) -> str:
        return "synth:" + ",".join(f"{key}={getattr(self, key)}" for key in LIMITS)


def parse_world(spec: str) -> World:
    """The settings in a string such as `synth:documents=1000,style=0.5`; those that it does not name have defaults."""
    name, _, rest = spec.partition(":")
    if name != "synth":
        raise SpecError(f"'{spec}' is not a simulated corpus; write synth:documents=1000,authors=100")
    given: dict[str, Any] = {}
    for setting in filter(None, rest.split(",")):
        key, _, value = setting.partition("=")
        if key not in LIMITS:
            raise SpecError(unknown_choice("setting of synth", key, LIMITS))
        if key in given:
            raise SpecError(f"'{spec}' sets {key} twice")
        given[key] = number_for(key, value)
    return World(**given)


def number_for(key: str, value: str) -> int | float:
    kind = {field.name: field.type for field in fields(World)}[key]
    try:
        return int(value) if kind is int else float(value)
    except ValueError:
        sort = "a whole number" if kind is int else "a number"
        raise SpecError(f"synth: {key} must be {sort}, but got '{value}'") from None


def synth(spec: str | World, part: str = "1/1") -> Iterator[Document]:
    """All documents in order, or those of one shard; each is made when it is asked for."""
    simulator = simulate(spec)
    return map(simulator.document, shard(range(simulator.world.documents), part, key=document_id))


def make_document(spec: str | World, number: int) -> Document:
    """One document by its number, from 0, without making any other."""
    return simulate(spec).document(number)


def preferences(spec: str | World, authors: Sequence[int]) -> dict[str, dict[str, float]]:
    """The truth that a style model tries to find: how likely each habit's alternatives are when these authors write."""
    simulator = simulate(spec)
    counts = np.bincount(simulator.voice(tuple(authors)), minlength=len(simulator.grammar.words))
    return simulator.grammar.named(counts / CLOSED_LEVELS)


def document_id(number: int) -> str:
    return f"synth-d{number:09d}"


def author_of(number: int) -> Author:
    """An author by number; the name is the number in syllables, so that no two share one."""
    digits = []
    rest = number
    while rest or len(digits) < 4:
        rest, digit = divmod(rest, len(SYLLABLES))
        digits.append(SYLLABLES[digit])
    name = f"{''.join(digits[:2])} {''.join(digits[2:])}".title()
    return Author(name, f"synth-a{number:06d}")


def topic_name(number: int) -> str:
    return f"synth-t{number:06d}"


@lru_cache(maxsize=2)
def simulate(spec: str | World) -> "Simulator":
    return Simulator(parse_world(spec) if isinstance(spec, str) else spec)


@dataclass(frozen=True, slots=True)
class DocumentHeader:
    """Who wrote a document, on what and when."""

    authors: tuple[int, ...]
    topic: int
    year: int


class Simulator:
    """A world that is ready to write. Keeps the tables of the authors and topics that were used last."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.grammar: Grammar = english()
        self._tilts = tilts(world.style * STYLE_SPREAD)
        self.voice = lru_cache(maxsize=1024)(self._voice)
        self.subject = lru_cache(maxsize=512)(self._subject)
        self.team = lru_cache(maxsize=4096)(self._team)

    def document(self, number: int) -> Document:
        if not 0 <= number < self.world.documents:
            raise InputError(f"there is no document {number}; they are numbered from 0 to {self.world.documents - 1}")
        plan = self._bytes(f"plan/{number}", HEADER + self.grammar.plan_bytes(self.world.sentences))
        header = self._header(plan)
        tables = np.concatenate((self.voice(header.authors), self.subject(header.topic)))
        slots = self.grammar.plan(tables, plan[HEADER:])
        title, *sentences = self.grammar.write(tables, slots, self._bytes(f"words/{number}", 2 * len(slots)))
        return Document(
            id=document_id(number),
            text="\n\n".join(" ".join(sentences[i : i + PARAGRAPH]) for i in range(0, len(sentences), PARAGRAPH)),
            authors=tuple(map(author_of, header.authors)),
            domains=(topic_name(header.topic),),
            lang="en",
            title=title,
            year=header.year,
            licence=LICENCE,
            source="synth",
        )

    def _bytes(self, what: str, count: int) -> bytes:
        return hashlib.shake_128(f"{self.world.seed}/{what}".encode()).digest(count)

    def _header(self, plan: bytes) -> DocumentHeader:
        lead = int.from_bytes(plan[:8], "big") % self.world.authors
        topic = int.from_bytes(plan[8:16], "big") % self.world.topics
        if unit_draw(plan[16:20]) < self.world.loyalty:
            topic = int.from_bytes(self._bytes(f"home/{lead // LAB}", 8), "big") % self.world.topics
        several = unit_draw(plan[20:24]) < self.world.coauthors
        authors = self.team(lead // LAB, plan[24] % TEAMS) if several else (lead,)
        return DocumentHeader(authors, topic, YEARS[plan[25] % len(YEARS)])

    def _team(self, lab: int, which: int) -> tuple[int, ...]:
        """Two to four of a lab, always the same ones; fewer where the lab is smaller."""
        members = range(lab * LAB, min((lab + 1) * LAB, self.world.authors))
        draws = self._bytes(f"team/{lab}/{which}", 1 + 8 * LAB)
        order = sorted(members, key=lambda member: draws[1 + 8 * (member % LAB) :][:8])
        return tuple(order[: 2 + draws[0] % 3])

    def _voice(self, authors: tuple[int, ...]) -> Tables:
        """Habits of an author, or of several who write together: then the mean of theirs."""
        size = len(self.grammar.words) + len(self.grammar.traits)
        each = [normals(self._bytes(f"author/{author}", size)) for author in authors]
        mean = sum(each[1:], each[0]) // len(each)
        words = len(self.grammar.words)
        habits = mean[:words] + self.grammar.loadings @ mean[words:] * 3 // 2
        return self.grammar.voice(self._tilts[np.clip(habits, -CENTI, CENTI) + CENTI])

    def _subject(self, topic: int) -> Tables:
        drawn = normals(self._bytes(f"topic/{topic}", len(self.grammar.lemmas)))
        return self.grammar.subject(np.rint(drawn * (self.world.topic * TOPIC_SPREAD)).astype(np.int64))


def unit_draw(draw: bytes) -> float:
    """A number from 0 to just under 1."""
    return int.from_bytes(draw, "big") / 256 ** len(draw)


@lru_cache(maxsize=1)
def quantiles() -> NDArray[np.int64]:
    """The standard normal at 256 equal steps, in whole hundredths."""
    return np.array([round(100 * NormalDist().inv_cdf((step + 0.5) / 256)) for step in range(256)])


def normals(draws: bytes) -> NDArray[np.int64]:
    return quantiles()[np.frombuffer(draws, np.uint8)]


def tilts(spread: float) -> NDArray[np.int64]:
    """The weight of each tilt from -CENTI to CENTI. Whole numbers: no machine's rounding can change a document."""
    logs = (min(max(spread * tilt / 100, -6.5), 6.5) for tilt in range(-CENTI, CENTI + 1))
    return np.array([round(UNIT * math.exp(log)) for log in logs])
