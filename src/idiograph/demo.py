"""The whole line on the built-in corpus, from texts to one page that shows what was found. Calls what a user would call."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from idiograph.answer.attribute import Candidate, attribute
from idiograph.answer.explain import explain
from idiograph.answer.likelihood import Scored, cross_fit, effective_count, ratio_in_words
from idiograph.answer.pairs import score_matrix
from idiograph.answer.report import linked_page
from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.corpus.readers import read_documents
from idiograph.evaluate.report import Report
from idiograph.evaluate.retrieval import evaluate_ranker, open_benchmark
from idiograph.html import render
from idiograph.index.index import Index
from idiograph.loading import load, load_ranker
from idiograph.measures.likelihood import cllr
from idiograph.mining.mine import mine_triplets
from idiograph.plots.panels import retrieval_panels, two_hills
from idiograph.recipe import make_recipe
from idiograph.runner import Progress
from idiograph.store import timestamp
from idiograph.style.model import Style
from idiograph.types import Document

GRAINS = ("whole", "ngram:1", "ngram:2", "ngram:3", "auto")
BASELINES = ("bm25", "delta", "ngrams")
SHOWN = ("R@20", "Hit@1", "nDCG@20", "triplet accuracy")


@dataclass(frozen=True)
class Asked:
    """An unseen text and what the index says of it."""

    title: str
    topic: str
    writer: str
    text: str
    rank: int
    first: Candidate
    says: str = ""  # how often such an answer is right


@dataclass(frozen=True)
class Demo:
    """What the demo found."""

    reports: tuple[Report, ...]
    asked: tuple[Asked, ...]
    cllr: float
    page: Path
    seconds: float


def run_demo(folder: Path, tell: Progress, version: str) -> Demo:
    """Run everything and write `folder/report.html`."""
    begun = time.monotonic()
    settings = make_recipe(
        "sound", {"mine": {"fractions": (0.0, 0.0, 1.0)}}
    )  # nothing is trained: every writer is unseen
    tell(0, 1, "corpus")
    build_corpus(read_documents("anthology"), folder / "corpus", inputs={"source": "anthology"}, overwrite=True)
    corpus = Corpus(folder / "corpus")
    tell(0, 1, "mine")
    mine_triplets(corpus, settings.mine, folder / "triplets", overwrite=True)
    style, documents = load(progress=tell), list(corpus)
    with style.encoder.remembering():  # the essays are read for the index, as questions and in pairs
        reports = evaluate_methods(folder / "triplets", style, tell)
        asked = attribute_questions(documents, folder / "index", style, tell)
        scores = score_matrix([d.text for d in documents], style)
    ratios = judge_answers(scores, documents)
    cost = cost_of(ratios, documents)
    shown = max(asked, key=lambda q: (q.rank == 1, q.first.llr))
    tell(0, 1, "explain")
    matched = explain(shown.first.evidence[0].asked, shown.first.evidence[0].found, style)
    page = folder / "report.html"
    seconds = time.monotonic() - begun
    values = {
        **write_about(documents, style, version, folder, seconds),
        **table(reports),
        **demo_questions(asked, shown),
        **verify_pairs_of_demo(ratios, documents, scores, cost),
        "explained": linked_page(matched, f"{shown.title} (the question)", f"{shown.first.names[0]}"),
    }
    page.write_text(render("demo.html", **values), encoding="utf-8")
    return Demo(reports, asked, cost, page, seconds)


def evaluate_methods(triplets: Path, style: Style, tell: Progress) -> tuple[Report, ...]:
    """The baselines, and the default model at every grain."""
    benchmark = open_benchmark(triplets)
    rankers = [*map(load_ranker, BASELINES), *(style.at(grain) for grain in GRAINS)]
    reports = []
    for number, ranker in enumerate(rankers):
        tell(number, len(rankers), f"evaluate {ranker.name}")
        reports.append(evaluate_ranker(ranker, benchmark))
    return tuple(reports)


def leave_out(documents: Sequence[Document]) -> set[str]:
    """One text of each writer, on topics that go round."""
    topics = sorted({d.domains[0] for d in documents})
    left_out = set()
    for number, writer in enumerate(sorted({d.author_set for d in documents}, key=min)):
        wanted = [topics[(number + step) % len(topics)] for step in range(len(topics))]
        own = {d.domains[0]: d.id for d in documents if d.author_set == writer}
        left_out.add(next(own[topic] for topic in wanted if topic in own))
    return left_out


def attribute_questions(documents: Sequence[Document], folder: Path, style: Style, tell: Progress) -> tuple[Asked, ...]:
    unseen = leave_out(documents)
    tell(0, 1, "index")
    index = Index.build((d for d in documents if d.id not in unseen), folder, style, source="anthology", overwrite=True)
    answers = []
    for number, document in enumerate(d for d in documents if d.id in unseen):
        tell(number, len(unseen), f"attribute {document.id}")
        answer = attribute(document.text, index, k=100, unknown=0.0)  # the reader is told that all writers are indexed
        rank = 1 + [set(c.authors) for c in answer.candidates].index(set(document.author_set))
        writer = document.authors[0].name
        first, says = answer.candidates[0], answer.check.sentence if answer.check else ""
        answers.append(Asked(document.title, document.domains[0], writer, document.text, rank, first, says))
    return tuple(answers)


def judge_answers(scores: np.ndarray, documents: Sequence[Document]) -> dict[tuple[int, int], float]:
    """The log10 ratio of every pair of essays, each learned from pairs of other writers."""
    pairs = list(combinations(range(len(documents)), 2))
    writers = [documents[a].author_set | documents[b].author_set for a, b in pairs]
    count = [len(d.text.split()) for d in documents]
    known = Scored(
        np.array([scores[pair] for pair in pairs]),
        effective_count([count[a] for a, _ in pairs], [count[b] for _, b in pairs]),
        np.array([documents[a].author_set == documents[b].author_set for a, b in pairs]),
    )
    return dict(zip(pairs, cross_fit(known, writers).tolist(), strict=True))


def cost_of(ratios: dict[tuple[int, int], float], documents: Sequence[Document]) -> float:
    one = {pair: documents[pair[0]].author_set == documents[pair[1]].author_set for pair in ratios}
    same = np.array([llr for pair, llr in ratios.items() if one[pair]])
    different = np.array([llr for pair, llr in ratios.items() if not one[pair]])
    return cllr(same, different)


def write_about(
    documents: Sequence[Document], style: Style, version: str, folder: Path, seconds: float
) -> dict[str, Any]:
    return {
        "title": "idiograph demo",
        "version": version,
        "date": timestamp()[:10],
        "model": style.encoder.name,
        "fingerprint": style.fingerprint,
        "documents": len(documents),
        "writers": len({d.author_set for d in documents}),
        "topics": len({d.domains for d in documents}),
        "folder": folder.name,
        "seconds": round(seconds),
        "seed": make_recipe().mine.seed,
    }


def table(reports: Sequence[Report]) -> dict[str, Any]:
    best = max(reports, key=lambda r: r["R@20"].value)
    rankers = [
        {"name": r.ranker, "best": r is best, "cells": [r[m] for m in SHOWN], "topic": r.same_field} for r in reports
    ]
    return {
        "measures": SHOWN,
        "rankers": rankers,
        "anchors": reports[0].anchors,
        "pool": reports[0].pool,
        "chance": "By chance, triplet accuracy is 0.5.",
        "figure_retrieval": retrieval_panels(
            [r.ranker for r in reports], [r["R@20"] for r in reports], [r.same_field for r in reports]
        ),
        "topical_model": follows_topic(reports),
    }


def follows_topic(reports: Sequence[Report]) -> bool:
    """Is the passage nearest to a question more often on its topic than by its writer, at every grain of the model?"""
    grains = reports[len(BASELINES) :]
    return all(r.same_field > r["Hit@1"].value for r in grains)


def demo_questions(asked: Sequence[Asked], shown: Asked) -> dict[str, Any]:
    right = sum(q.rank == 1 for q in asked)
    return {"asked": asked, "shown": shown, "right": right, "expected": sum(q.first.probability for q in asked)}


def verify_pairs_of_demo(
    ratios: dict[tuple[int, int], float], documents: Sequence[Document], scores: np.ndarray, cost: float
) -> dict[str, Any]:
    """A few pairs: one writer on two topics, two writers on one topic, two writers on two."""
    pairs = list(combinations(range(len(documents)), 2))
    same = [p for p in pairs if documents[p[0]].author_set == documents[p[1]].author_set]
    different = [p for p in pairs if p not in set(same)]
    topic = [p for p in different if documents[p[0]].domains == documents[p[1]].domains]
    chosen = [*same[:: len(same) // 4][:4], *topic[:: len(topic) // 3][:3], *different[:: len(different) // 3][:3]]
    rows = [
        {
            "a": documents[a].id,
            "b": documents[b].id,
            "truth": "one writer" if (a, b) in same else "two writers",
            "llr": ratios[a, b],
            "words": ratio_in_words(ratios[a, b]),
        }
        for a, b in chosen
    ]
    hills = two_hills([float(scores[p]) for p in same], [float(scores[p]) for p in different])
    return {"verified": rows, "figure_calibration": hills, "cllr": cost}
