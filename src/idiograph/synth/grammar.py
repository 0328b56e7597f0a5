"""From tables of preferences and random bytes to sentences: the machinery behind `synth`.

Every choice is a slot with alternatives. A table gives each of a slot's alternatives its share of 256 levels (habits)
or 4096 (content words), and two random bytes pick a level. All slots of a document are looked up in one go.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from idiograph.synth import lexicon

Ints = NDArray[np.int64]
Tables = NDArray[np.uint16]  # small, because those of many authors are kept

CLOSED_LEVELS, OPEN_LEVELS = 256, 4096
COMMON = 4096  # prior weight of a slot's first alternative
CLOSED_ZIPF = {"exponent": 0.7, "head": 1}
OPEN_ZIPF = {"exponent": 0.9, "head": 3}
TAILS_AT_MOST = 3
END, BREAK = ".\n", "\n"
PLAN = ("opening", "clause", "length", *["tail"] * TAILS_AT_MOST)
KINDS = {
    "noun": ("noun", "nouns"),
    "verb": ("verb", "verbs", "verbed"),
    "adjective": ("adjective",),
}


@dataclass(frozen=True, slots=True)
class Slots:
    """Groups of alternatives, one after another: where each group begins, whose each alternative is, what it weighs."""

    starts: Ints
    owner: Ints
    prior: Ints

    def tables(self, weights: Ints, levels: int) -> Tables:
        """Per group, `levels` entries that name its alternatives in proportion to the weights; flat."""
        ends = np.cumsum(weights)
        before = ends[self.starts] - weights[self.starts]
        edges = (ends - before[self.owner]) * levels // np.add.reduceat(weights, self.starts)[self.owner]
        counts = np.diff(edges, prepend=0)
        counts[self.starts] = edges[self.starts]
        return np.repeat(np.arange(len(weights), dtype=np.uint16), counts)


def slots_of(sizes: list[int], exponent: float, head: int) -> Slots:
    """Groups with Zipf-Mandelbrot priors: the greater the `head`, the less the first alternatives stand out."""
    ranks = [rank for size in sizes for rank in range(size)]
    prior = np.array([round(COMMON * (head / (head + rank)) ** exponent) for rank in ranks])
    return Slots(np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(sizes)), sizes), prior)


@dataclass(frozen=True, slots=True)
class Grammar:
    """A lexicon made ready. Slots are numbered: first those of the author, then those of the topic."""

    names: tuple[str, ...]
    words: tuple[str, ...]
    lemmas: tuple[str, ...]
    pieces: tuple[str, ...]  # what is written for each word, then for each form of each lemma
    rows: tuple[bytes, ...]  # the slots of each word that is a pattern
    traits: tuple[str, ...]
    loadings: Ints  # (words, traits): how habits go together
    habits: Slots
    content: Slots
    ranks: Ints  # of each lemma: its common log-rank, in hundredths
    offset: Ints  # per slot: where its table begins,
    shift: Ints  # which bits of a draw choose,
    base: Ints  # and what to add to get a piece
    sentence: bytes  # the slots that choose a sentence's patterns
    title: bytes
    end: bytes

    def voice(self, tilt: Ints) -> Tables:
        """The tables of an author whose habits weigh `tilt` times the common ones."""
        return self.habits.tables(self.habits.prior * tilt, CLOSED_LEVELS)

    def subject(self, shift: Ints) -> Tables:
        """The tables of a topic: as Zipfian as all, but with the words' log-ranks moved by `shift` hundredths."""
        order = np.lexsort((self.ranks + shift, self.content.owner))
        weights = np.empty_like(self.content.prior)
        weights[order] = self.content.prior
        return self.content.tables(weights, OPEN_LEVELS)

    def plan_bytes(self, sentences: int) -> int:
        return 2 * len(PLAN) * sentences

    def plan(self, tables: Tables, draws: bytes) -> bytes:
        """The slots of a title and as many sentences as there are draws for."""
        slots = self.sentence * (len(draws) // (2 * len(PLAN)))
        chosen = iter(self._choose(tables, slots, draws))
        parts = [self.title]
        for opening, clause, length, *tails in zip(*[chosen] * len(PLAN), strict=True):
            kept = tails[: int(self.words[length])]
            parts += [self.rows[row] for row in (opening, clause, *kept)]
            parts.append(self.end)
        return b"".join(parts)

    def write(self, tables: Tables, slots: bytes, draws: bytes) -> list[str]:
        """The title and the sentences that these slots become."""
        text = "".join([self.pieces[piece] for piece in self._choose(tables, slots, draws)])
        for vowel in "aeiou":
            text = text.replace(f" a {vowel}", f" an {vowel}")
        return [line[1].upper() + line[2:] for line in text.split(BREAK)[:-1]]

    def _choose(self, tables: Tables, slots: bytes, draws: bytes) -> list[int]:
        slot = np.frombuffer(slots, np.uint8)
        level = np.frombuffer(draws, "<u2") >> self.shift[slot]
        return (tables[self.offset[slot] + level] + self.base[slot]).tolist()

    def named(self, values: NDArray[np.float64]) -> dict[str, dict[str, float]]:
        """One value per word, as slot → word → value; slots without a choice are left out."""
        shares_of: dict[str, dict[str, float]] = {}
        for owner, word, value in zip(self.habits.owner, self.words, values.tolist(), strict=True):
            shares_of.setdefault(self.names[owner], {})[word] = value
        return {name: shares for name, shares in shares_of.items() if len(shares) > 1}


@cache
def english() -> Grammar:
    """The grammar of `lexicon`."""
    choices = alternatives()
    forms = [form for kind in KINDS.values() for form in kind]
    names = (*choices, *forms)
    words = tuple(word for group in choices.values() for word in group)
    lemmas = {"noun": lexicon.NOUNS.split(), "verb": lexicon.VERBS.split(), "adjective": lexicon.ADJECTIVES.split()}
    habits = slots_of([len(group) for group in choices.values()], **CLOSED_ZIPF)
    traits, loadings = go_together(words)
    offset, shift, base, written = layout_slots(len(choices), len(words), lemmas)
    return Grammar(
        names=names,
        words=words,
        lemmas=tuple(lemma for group in lemmas.values() for lemma in group),
        pieces=(*map(spaced_word, words), *written),
        rows=tuple(compile_row(word, names) if "{" in word else b"" for word in words),
        traits=traits,
        loadings=loadings,
        habits=habits,
        content=slots_of([len(group) for group in lemmas.values()], **OPEN_ZIPF),
        ranks=np.array([round(100 * math.log(rank + 1)) for group in lemmas.values() for rank in range(len(group))]),
        offset=offset,
        shift=shift,
        base=base,
        sentence=bytes(map(names.index, PLAN)),
        title=compile_row(lexicon.TITLE, names) + bytes([names.index(BREAK)]),
        end=bytes([names.index(END)]),
    )


def alternatives() -> dict[str, tuple[str, ...]]:
    """Every slot that an author fills, patterns and literal words included."""
    patterns = {
        "opening": lexicon.OPENINGS,
        "clause": lexicon.CLAUSES,
        "length": lexicon.LENGTHS,
        "tail": lexicon.TAILS,
    }
    rows = [*lexicon.OPENINGS, *lexicon.CLAUSES, *lexicon.TAILS, lexicon.TITLE]
    literals = {word for row in rows for slot, word in pattern_slots(row) if not slot and word != "-"}
    habits = {name: tuple(text.split("|")) for name, text in lexicon.HABITS.items()}
    return habits | patterns | {word: (word,) for word in (END, BREAK, *sorted(literals))}


def layout_slots(closed: int, words: int, lemmas: Mapping[str, Sequence[str]]) -> tuple[Ints, Ints, Ints, list[str]]:
    """Per slot its offset, shift and base, and the written forms of the content words."""
    inflect = {"nouns": lexicon.plural, "verbs": lexicon.plural, "verbed": lexicon.past}
    offset = [CLOSED_LEVELS * slot for slot in range(closed)]
    shift, base, written, before = [8] * closed, [0] * closed, [], 0
    for number, (kind, group) in enumerate(lemmas.items()):
        for form in KINDS[kind]:
            offset.append(CLOSED_LEVELS * closed + OPEN_LEVELS * number)
            shift.append(4)
            base.append(words + len(written) - before)
            written += [f" {inflect.get(form, str)(lemma)}" for lemma in group]
        before += len(group)
    return np.array(offset), np.array(shift), np.array(base), written


def go_together(words: tuple[str, ...]) -> tuple[tuple[str, ...], Ints]:
    """The names of the traits, and which words show each: 1 for, -1 against."""
    traits = tuple(sorted({trait for trait, _, _ in lexicon.TOGETHER}))
    loadings = np.zeros((len(words), len(traits)), np.int64)
    for trait, members, sign in lexicon.TOGETHER:
        for row, word in enumerate(words):
            bare = f" {word.strip(',; ')} "
            if any(f" {member} " in bare for member in members):
                loadings[row, traits.index(trait)] = sign
    return traits, loadings


def pattern_slots(row: str) -> list[tuple[str, str]]:
    """A pattern as (slot, "") and ("", literal word) in turn."""
    return re.findall(r"\{([^}]+)\}|([^\s{}]+)", row)


def compile_row(row: str, names: tuple[str, ...]) -> bytes:
    return bytes(names.index(slot or word) for slot, word in pattern_slots(row))


def spaced_word(word: str) -> str:
    """A word as it is written: with a space before it, unless it begins with punctuation or is nothing."""
    if word == "-":
        return ""
    return word if word[0] in ",;:. \n" else f" {word}"
