"""What are the ratios of `verify --reference` worth? Pairs of texts by writers of whom the reference knows nothing.

    python benchmarks/reference.py ../shared/corpora [--only federalist pan14] [--keep FOLDER] [--markdown FILE]

- **federalist**: every pair of signed papers. The papers are dealt into groups; two groups at a time are taken out whole, and
  the pairs between them are compared among all the rest (of the 68 papers that are neither of a pair, 56).
- **federalist, writer away**: one of the three writers is taken out whole, and in turn a fifth of the others' papers.
- **pan14**: the problems of each set are halved, and either half is the reference of the other. The known texts of a problem
  are one text; in the reference they are texts of one writer, and the unknown one is theirs if that is the answer.
- **the others**: writers are dealt into parts, and the texts of each part are compared among those of the others: all pairs by
  one writer, and four times as many by two. Of papers and abstracts only people are taken whom the model was tested on
  (`scripts/kinds.py` divides them); there the model takes part, and is also asked alone, by the calibration of its kind.

Answers are what `verify` says: where there is no ratio, 1. AUC is that of the ratios as if there always were one,
the mean of what it is among each reference (of the Federalist papers, where references are nearly the same, of all). In
brackets are 95 % intervals from drawing writers (of the Federalist papers, texts). "Single" are the AUC of each method
alone. Answers are kept in --keep, and are not asked for again.
"""

import argparse
import importlib.util
import io
import json
import pickle
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
from sklearn.metrics import roc_auc_score

from idiograph.answer.likelihood import effective_count
from idiograph.answer.pairs import text_score
from idiograph.answer.reference import Population, learn_population, names_of_columns
from idiograph.answer.verify import calibrations_by_kind, open_calibration, shipped_style
from idiograph.measures.likelihood import cllr, cllr_min, mean_bits
from idiograph.rankers.counts import LetterFeatures, WordFeatures, WordPairFeatures
from idiograph.rankers.library import Library
from idiograph.rankers.model import ModelRanker, read_once
from idiograph.style.patches import Patches, join_patches
from idiograph.text.copies import MAX_RUNS, RUN_WORDS, SHARE_OF_A_COPY
from idiograph.text.passages import count_words, passage_texts
from idiograph.text.words import content_words, word_overlap

GROUP = 7  # Federalist papers that are taken out together
WORDS_OF_PAPERS = 600  # that papers are cut to
MOST_TEXTS = 400  # of papers or abstracts; each half is a reference
DIFFERENT_FOR_ONE = 4  # pairs by two hands for each by one
RESAMPLES = 300
FALSE = 0.5  # log10 ratio above which a pair by two hands is a false answer
LABELS = {"elife": "elife", "langsci": "langsci", "acl": "acl-abstracts", "arxiv": "arxiv-abstracts"}


@dataclass(frozen=True)
class Asked:
    """Pairs of texts, by whom they are, and what was answered."""

    same: np.ndarray
    units: np.ndarray  # (pairs, 2): what is drawn together for intervals
    would: np.ndarray  # the log10 ratio, were there one in every case
    silent: np.ndarray
    standings: np.ndarray  # (pairs, methods), each method alone
    names: tuple[str, ...]
    part: np.ndarray  # which reference each pair was compared among

    @property
    def llr(self) -> np.ndarray:
        """What is answered: a ratio of 1 where there is none."""
        return np.where(self.silent, 0.0, self.would)

    @classmethod
    def join(cls, parts: Sequence["Asked"]) -> "Asked":
        columns = ("same", "units", "would", "silent", "standings")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
        number = np.repeat(np.arange(len(parts)), [len(part.same) for part in parts])
        return cls(**joined, names=parts[0].names, part=number)


@dataclass(frozen=True)
class Questions:
    """Texts to be compared among a reference, and which pairs of them."""

    reference: Library
    texts: tuple[str, ...]
    pairs: np.ndarray  # (pairs, 2) places in `texts`
    same: np.ndarray
    units: np.ndarray


def ask(questions: Questions, model: ModelRanker | None = None) -> Asked:
    """What `verify` would say of each pair; the reference loses what is a copy of any of the texts."""
    population = learn_population(without_copies(questions.reference, questions.texts), model=model)
    texts, (one, two) = questions.texts, questions.pairs.T
    standings = population.evidence.standings(texts)[one, two]
    counts = population.evidence.cut(texts).words
    sizes = effective_count(counts[one], counts[two])
    silent = np.array([bool(population.check.why_silent(population.nearest_length(size))) for size in sizes])
    far = far_texts(population, texts, sizes, questions.pairs)
    would = population.ratios.ratios(standings, sizes)
    names = names_of_columns(population.methods)
    return Asked(questions.same, questions.units, would, silent | far, standings, names, np.zeros(len(would), int))


def without_copies(library: Library, texts: Sequence[str]) -> Library:
    """As `verify` leaves copies away, for many texts at once: those that hold three in ten of the other's runs of words."""
    everybody = [*library.texts, *texts]
    holders: dict[str, set[int]] = defaultdict(set)
    for at, text in enumerate(everybody):
        for run in runs_of_words(text):
            holders[run].add(at)
    copies = set()
    for at, text in enumerate(everybody):
        runs = runs_of_words(text)
        some = set(runs[:: max(len(runs) // MAX_RUNS, 1)])
        found = Counter(
            other for run in some for other in holders[run] if (other < len(library)) != (at < len(library))
        )
        copies |= {min(at, other) for other, count in found.items() if count >= SHARE_OF_A_COPY * len(some)}
    return library.take([at for at in range(len(library)) if at not in copies])


def runs_of_words(text: str) -> list[str]:
    words = text.lower().split()
    return [" ".join(words[at : at + RUN_WORDS]) for at in range(len(words) - RUN_WORDS + 1)]


def far_texts(population: Population, texts: Sequence[str], sizes: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Which pairs have a text that is unlike those of the reference."""
    from idiograph.answer.crossvalidate import cut_middle

    lengths = np.array([population.nearest_length(size) for size in sizes])
    far = np.zeros(len(pairs), bool)
    for words in np.unique(lengths):
        remote = population.evidence.remoteness([cut_middle(text, int(words)) for text in texts])
        here = lengths == words
        far[here] = (remote[pairs[here]] > population.furthest[int(words)]).any(axis=1)
    return far


def remember_counts() -> None:
    """Nothing is counted twice: many references have most of their texts in common."""
    for kind in (WordFeatures, LetterFeatures, WordPairFeatures):
        kind.tally = cache(kind.tally)  # pyright: ignore[reportAttributeAccessIssue]


# --- the collections


def rows(folder: Path, name: str) -> list[dict]:
    with pa.input_stream(str(folder / f"{name}.jsonl.zst"), compression="zstd") as stream:
        return [json.loads(line) for line in io.TextIOWrapper(stream, encoding="utf8")]


def federalist_library(folder: Path) -> Library:
    signed = [row for row in rows(folder, "federalist") if len(row["authors"]) == 1]
    signed = [row for row in signed if row["authors"][0]["name"] != "Disputed"]
    return Library(tuple(r["text"] for r in signed), tuple(r["authors"][0]["name"] for r in signed), "en")


def questions_among(library: Library, asked: np.ndarray, reference: np.ndarray, wanted: Callable) -> Questions:
    """The pairs of some texts that are wanted; units are the texts."""
    pairs = np.array([(i, j) for i, j in combinations(range(len(asked)), 2) if wanted(asked[i], asked[j])])
    who = np.array(library.authors)[asked]
    texts = tuple(library.texts[at] for at in asked)
    same = who[pairs[:, 0]] == who[pairs[:, 1]]
    return Questions(library.take(reference.tolist()), texts, pairs, same, asked[pairs])


def federalist(folder: Path) -> Iterator[Questions]:
    library = federalist_library(folder)
    group = np.random.default_rng(3).permutation(len(library)) // GROUP
    everything = np.arange(len(library))
    for one, two in combinations(np.unique(group), 2):
        out = np.isin(group, (one, two))
        within = {int(one)} if two == (one + 1) % (group.max() + 1) else set()
        within |= {int(two)} if one == 0 and two == group.max() else set()

        def wanted(i: int, j: int, within: set = within) -> bool:
            return group[i] != group[j] or int(group[i]) in within

        yield questions_among(library, everything[out], everything[~out], wanted)


def federalist_writer_away(folder: Path) -> Iterator[Questions]:
    library = federalist_library(folder)
    who, everything = np.array(library.authors), np.arange(len(library))
    fold = np.random.default_rng(4).permutation(len(library)) % 5
    for away in sorted(set(library.authors)):
        for number in range(5):
            out = (who == away) | (fold == number)

            def wanted(i: int, j: int, away: str = away, number: int = number) -> bool:
                return away in (who[i], who[j]) and (who[i] != who[j] or number == 0)

            yield questions_among(library, everything[out], everything[~out], wanted)


def pan14(folder: Path, name: str) -> Iterator[Questions]:
    """Problems that have a text by one hand in common are by one writer, and in the same half."""
    problems = [row for row in rows(folder, "pan14-train") if row["set"] == name]
    writers = [f"writer {number}" for number in join_problems(problems)]
    names, often = np.unique(writers, return_counts=True)
    half: dict[str, int] = {}
    for at in np.random.default_rng(5).permutation(len(names)).tolist():
        sizes = [sum(often[names == who].sum() for who in half if half[who] == part) for part in (0, 1)]
        half[str(names[at])] = int(np.argmin(sizes))
    for asked in (0, 1):
        here = [(row, who) for row, who in zip(problems, writers, strict=True) if half[who] == asked]
        texts: dict[str, str] = {}
        for row, who in zip(problems, writers, strict=True):
            if half[who] != asked:
                unknown = who if row["same"] else f"{row['id']} unknown"
                texts |= dict.fromkeys(row["known"], who) | {row["unknown"]: texts.get(row["unknown"], unknown)}
        reference = Library(tuple(texts), tuple(texts.values()), here[0][0]["lang"])
        both = [text for row, _ in here for text in ("\n\n".join(row["known"]), row["unknown"])]
        pairs = np.arange(len(both)).reshape(-1, 2)
        units = np.repeat([who for _, who in here], 2).reshape(-1, 2)
        yield Questions(reference, tuple(both), pairs, np.array([bool(row["same"]) for row, _ in here]), units)


def join_problems(problems: Sequence[dict]) -> list[int]:
    """A number for each problem, the same where texts that are by one writer are."""
    number, owner = list(range(len(problems))), dict[str, int]()
    for at, row in enumerate(problems):
        for text in [*row["known"], *([row["unknown"]] if row["same"] else [])]:
            one, two = number[owner.setdefault(text, at)], number[at]
            number = [one if each == two else each for each in number]
    return number


def by_writers(library: Library, parts: int, seed: int = 6) -> Iterator[Questions]:
    """The texts of a part of the writers among those of the other parts: all pairs by one writer, and some by two."""
    names = np.random.default_rng(seed).permutation(sorted(set(library.authors)))
    counts = Counter(library.authors)
    order = sorted(names.tolist(), key=lambda name: counts[name] < 2)  # writers with several texts in every part
    part = {name: at % parts for at, name in enumerate(order)}
    own = np.array([part[who] for who in library.authors])
    for number in range(parts):
        asked, rest = np.flatnonzero(own == number), np.flatnonzero(own != number)
        who = np.array(library.authors)[asked]
        every = np.array(list(combinations(range(len(asked)), 2)))
        same = who[every[:, 0]] == who[every[:, 1]]
        count = min(DIFFERENT_FOR_ONE * max(int(same.sum()), 10), int((~same).sum()))
        others = np.random.default_rng(seed).choice(np.flatnonzero(~same), count, replace=False)
        chosen = np.sort(np.concatenate([np.flatnonzero(same), others]))
        pairs = every[chosen]
        texts = tuple(library.texts[at] for at in asked)
        yield Questions(library.take(rest.tolist()), texts, pairs, same[chosen], who[pairs])


def pan19(folder: Path, lang: str) -> Iterator[Questions]:
    known = [row for row in rows(folder, "pan19") if row["lang"] == lang and row["doc_type"] == "known"]
    named = [(row["text"], row["authors"][0]["name"]) for row in known if row["authors"]]
    yield from by_writers(Library(*map(tuple, zip(*dict(named).items(), strict=True)), lang), 2)  # pyright: ignore


def eltec(folder: Path, lang: str, words: int) -> Iterator[Questions]:
    novels = rows(folder, f"eltec-{lang}")
    texts = tuple(middle_words(row["text"], words) for row in novels)
    yield from by_writers(Library(texts, tuple(row["authors"][0]["name"] for row in novels), novels[0]["lang"]), 4)


def scholarly(folder: Path, name: str, keep: Path) -> Iterator[Questions]:
    library = people_of_tests(folder, name, keep)
    texts = tuple(middle_words(text, WORDS_OF_PAPERS) for text in library.texts)
    yield from by_writers(Library(texts, library.authors, "en"), 2)


def people_of_tests(folder: Path, name: str, keep: Path) -> Library:
    """Papers or abstracts of people whom the model was tested on."""
    if name == "peerread-dev":
        found = [(" & ".join(sorted(a["name"] for a in row["authors"])), row["text"]) for row in rows(folder, name)]
    else:
        path = keep / f"{name}.pickle"
        if not path.exists():
            kinds = open_script("kinds")
            divided = kinds.divide_documents(folder, LABELS[name])["test"]
            label = kinds.SOURCES[LABELS[name]].label
            rows_ = [(writer_of(document, label), document.text) for document in divided]
            path.write_bytes(pickle.dumps(rows_))
        found = pickle.loads(path.read_bytes())
    texts: dict[str, list[str]] = defaultdict(list)
    for who, text in found:
        texts[who].append(text)
    chosen: list[tuple[str, str]] = []
    for who in sorted(texts, key=lambda who: len(texts[who]) < 2):
        chosen += [(text, who) for text in texts[who][:4]]
        if len(chosen) >= MOST_TEXTS:
            break
    return Library(tuple(text for text, _ in chosen), tuple(who for _, who in chosen), "en")


def open_script(name: str):
    """A module of `scripts`, whatever else is called like it."""
    spec = importlib.util.spec_from_file_location(
        f"script_{name}", Path(__file__).parents[1] / "scripts" / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)  # pyright: ignore[reportArgumentType]
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)  # pyright: ignore[reportOptionalMemberAccess]
    return module


def writer_of(document, label: str) -> str:
    names = [author.name for author in document.authors]
    return names[-1] if label == "last" else names[0] if label == "first" else " & ".join(sorted(names))


def middle_words(text: str, words: int) -> str:
    parts = text.split(" ")
    start = max(0, len(parts) // 2 - words // 2)
    return " ".join(parts[start : start + words])


# --- what the answers are worth


def area_within(asked: Asked, scores: np.ndarray, weight: np.ndarray) -> float:
    """The mean AUC of the references, by how many pairs by one writer were compared among each.

    Ratios of two references are bounded apart, so that pairs of both in one order would be ranked by their reference.
    """
    areas, counts = [], []
    for number in np.unique(asked.part):
        here = asked.part == number
        one, two = (weight[here & kind].sum() for kind in (asked.same, ~asked.same))
        if one > 0 and two > 0:
            areas.append(roc_auc_score(asked.same[here], scores[here], sample_weight=weight[here]))
            counts.append(one)
    return float(np.average(areas, weights=counts))


def weighted_cost(llr: np.ndarray, same: np.ndarray, weight: np.ndarray) -> float:
    cost = mean_bits(np.where(same, -llr, llr))
    return 0.5 * sum(float(np.average(cost[kind], weights=weight[kind])) for kind in (same, ~same))


def intervals(asked: Asked, measures: Sequence[Callable], seed: int = 8) -> list[tuple[float, float]]:
    """95 % intervals, each unit drawn with replacement; a pair of two units counts as often as both together."""
    names, place = np.unique(asked.units, return_inverse=True)
    place = place.reshape(asked.units.shape)
    draw, found = np.random.default_rng(seed), []
    for _ in range(RESAMPLES):
        often = np.bincount(draw.integers(len(names), size=len(names)), minlength=len(names)).astype(float)
        weight = np.where(place[:, 0] == place[:, 1], often[place[:, 0]], often[place[:, 0]] * often[place[:, 1]])
        if weight[asked.same].sum() > 0 and weight[~asked.same].sum() > 0:
            found.append([measure(asked, weight) for measure in measures])
    low, high = np.quantile(np.array(found), (0.025, 0.975), axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


MEASURES = {
    "Cllr": lambda a, w: weighted_cost(a.llr, a.same, w),
    "AUC": lambda a, w: area_within(a, a.would, w),
    "two hands over +0.5": lambda a, w: float(np.average((a.llr > FALSE)[~a.same], weights=w[~a.same])),
}
HEAD = ("pairs by one + by two", "no ratio", *MEASURES, "Cllr_cal", "c@1", "best single AUC", "which")


def answered_rightly(asked: Asked) -> float:
    """c@1, as PAN counts it: what is not answered counts as right as often as what is."""
    unanswered = np.abs(asked.llr) < 0.3
    right = ((asked.llr > 0) == asked.same) & ~unanswered
    return float((right.sum() + unanswered.sum() * right.mean()) / len(right))


def row_of(name: str, asked: Asked) -> str:
    ends = intervals(asked, tuple(MEASURES.values()))
    whole = [measure(asked, np.ones(len(asked.llr))) for measure in MEASURES.values()]
    shown = [f"{value:.3f} [{low:.3f}, {high:.3f}]" for value, (low, high) in zip(whole, ends, strict=True)]
    same, different = asked.llr[asked.same], asked.llr[~asked.same]
    everyone = np.ones(len(asked.same))
    singles = {each: area_within(asked, asked.standings[:, at], everyone) for at, each in enumerate(asked.names)}
    print("    single:", ", ".join(f"{each} {area:.3f}" for each, area in singles.items()), flush=True)
    best = max(singles, key=lambda each: singles[each])
    count = f"{len(same)} + {len(different)}"
    rest = [f"{cllr(same, different) - cllr_min(same, different):.3f}", f"{answered_rightly(asked):.3f}"]
    return " | ".join(
        [f"| {name}", count, f"{asked.silent.mean():.1%}", *shown, *rest, f"{singles[best]:.3f}", f"{best} |"]
    )


class Reader:
    """The shipped model; every passage is read once."""

    def __init__(self) -> None:
        self.style, self.known = shipped_style(), {}

    def encode(self, passages: Sequence[str]) -> Patches:
        if new := [each for each in dict.fromkeys(passages) if each not in self.known]:
            found = self.style.encode(new)
            self.known |= {passage: found.take([at]) for at, passage in enumerate(new)}
        return join_patches([self.known[passage] for passage in passages])

    def ranker(self) -> ModelRanker:
        return ModelRanker(self.encode, read=read_once(self.encode))

    def ask(self, questions: Questions, kind: str) -> Asked:
        """The model alone, by the calibration of a kind."""
        read = [self.encode(passage_texts(text)) for text in questions.texts]
        scores = np.array([text_score(read[one], read[two]) for one, two in questions.pairs.tolist()])
        counts = np.array([count_words(text) for text in questions.texts], np.float64)
        sizes = effective_count(*counts[questions.pairs.T])
        known = open_calibration(calibrations_by_kind(self.style)[kind], self.style)
        words = [content_words(text) for text in questions.texts]
        shared = [word_overlap(words[one], words[two]) for one, two in questions.pairs.tolist()]
        would = np.array([known.llr(*each) for each in zip(scores, sizes, shared, strict=True)])
        return Asked(
            questions.same,
            questions.units,
            would,
            np.zeros(len(would), bool),
            scores[:, None],
            ("score",),
            np.zeros(len(would), int),
        )


def collections(folder: Path, keep: Path) -> dict[str, Callable[[], Iterator[Questions]]]:
    found: dict[str, Callable[[], Iterator[Questions]]] = {
        "federalist": lambda: federalist(folder),
        "federalist, writer away": lambda: federalist_writer_away(folder),
    }
    for name in ("du_essays", "du_reviews", "en_essays", "en_novels", "gr_articles", "sp_articles"):
        found[f"pan14 {name}"] = lambda name=name: pan14(folder, name)
    for lang in ("en", "es", "fr", "it"):
        found[f"pan19 {lang}"] = lambda lang=lang: pan19(folder, lang)
    for lang in ("eng", "spa", "hun"):
        for words in (2000, 5000):
            found[f"eltec-{lang}, {words} words"] = lambda lang=lang, words=words: eltec(folder, lang, words)
    for name in ("elife", "langsci", "peerread-dev", "acl", "arxiv"):
        found[name] = lambda name=name: scholarly(folder, name, keep)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--only", nargs="+", default=[""], help="collections whose names begin like one of these")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "idiograph-bench" / "reference")
    parser.add_argument("--no-model", action="store_true", help="no row with the model")
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    given.keep.mkdir(parents=True, exist_ok=True)
    remember_counts()
    table = [f"| {' | '.join(['collection', *HEAD])} |", "|---" * (len(HEAD) + 1) + "|"]
    for name, make in collections(given.corpora, given.keep).items():
        if not name.startswith(tuple(given.only)):
            continue
        ways: dict[str, Callable[[Questions], Asked]] = {name: ask}
        if name in (*LABELS, "peerread-dev") and not given.no_model:
            reader, kind = Reader(), "abstracts" if name in ("acl", "arxiv") else "papers"
            model = reader.ranker()
            ways[f"{name}, with the model"] = lambda q, model=model: ask(q, model)
            ways[f"{name}, the model alone"] = lambda q, reader=reader, kind=kind: reader.ask(q, kind)
        for said, way in ways.items():
            kept = given.keep / f"{said}.answers"
            if not kept.exists():
                kept.write_bytes(pickle.dumps(Asked.join([way(questions) for questions in make()])))
            found = pickle.loads(kept.read_bytes())
            if name == "federalist":
                found = replace(found, part=np.zeros_like(found.part))
            table.append(row_of(said, found))
            print(table[-1], flush=True)
    if given.markdown:
        given.markdown.write_text("\n".join(table) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
