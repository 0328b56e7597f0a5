"""The "name:arg" grammar in which patches, scorers and measures are chosen, and what to say about a typo."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from idiograph.errors import SpecError


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed choice; its `str` is what the parser accepts.

    >>> str(parse_spec("ngram:2", "patch policy", ("ngram:N", "whole")))
    'ngram:2'
    """

    name: str
    number: int | None = None

    def __str__(self) -> str:
        return self.name if self.number is None else f"{self.name}:{self.number}"


def parse_spec(text: str, kind: str, known: Iterable[str]) -> Spec:
    """Read `text` as one of `known`, whose entries look like `word` or `ngram:N` (N a whole number from 1)."""
    known = sorted(known)
    name, colon, argument = text.strip().partition(":")
    if f"{name}:N" in known:
        if argument.isascii() and argument.isdigit() and int(argument) >= 1:
            return Spec(name, int(argument))
        raise SpecError(f"{kind} '{text}' needs a whole number from 1 after the colon, such as '{name}:2'")
    if name in known and not colon:
        return Spec(name)
    raise SpecError(unknown_choice(kind, text, known))


def unknown_choice(kind: str, given: str, known: Iterable[str]) -> str:
    """The sentence for a choice that does not exist, with the nearest one that does."""
    known = sorted(known)
    head = f"unknown {kind} '{given}'; choose from {', '.join(known)}"
    return head + did_you_mean(given, known)


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or nothing when no known word is near."""
    name, _, argument = given.partition(":")
    names = {entry.partition(":")[0]: entry for entry in known}
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    if not near:
        return ""
    takes_number = names[near[0]].endswith(":N")
    best = f"{near[0]}:{argument or '2'}" if takes_number else near[0]
    return f" (did you mean '{best}'?)"
