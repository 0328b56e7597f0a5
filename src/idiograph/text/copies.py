"""Is the text that is asked about in the library already? Then who wrote it is read off, and nothing has to be weighed."""

from collections.abc import Sequence
from dataclasses import dataclass

RUN_WORDS = 8  # in a row; two texts hardly share so many by chance
MAX_RUNS = 40  # of a question that are looked for, evenly spread
SHARE_OF_A_COPY = 0.3  # of the runs, from which a document is named


@dataclass(frozen=True, slots=True)
class Copy:
    """A document of the library that holds the text, or much of it: the share of the text's runs of words found there."""

    doc_id: str
    share: float


def find_copies(text: str, library: Sequence[str], names: Sequence[str]) -> tuple[Copy, ...]:
    """The documents that hold at least three in ten of the text's runs of eight words, the likeliest first."""
    words = text.lower().split()
    starts = range(0, max(len(words) - RUN_WORDS + 1, 0), max((len(words) - RUN_WORDS) // MAX_RUNS, 1))
    runs = {" ".join(words[at : at + RUN_WORDS]) for at in starts}
    if not runs:
        return ()
    shares = ((name, share_of_runs(runs, other)) for name, other in zip(names, library, strict=True))
    copies = [Copy(name, share) for name, share in shares if share >= SHARE_OF_A_COPY]
    return tuple(sorted(copies, key=lambda copy: -copy.share))


def share_of_runs(runs: set[str], text: str) -> float:
    plain = " ".join(text.lower().split())
    return sum(run in plain for run in runs) / len(runs)
