"""Answers as pages and tables: an explanation with the two texts cut into their patches, each tied to its counterpart; an
attribution with its passages and what somebody else needs to do it again."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from idiograph import __version__
from idiograph.answer.attribute import Attribution
from idiograph.answer.crossvalidate import CrossValidation
from idiograph.answer.explain import Explanation, MarkedPassage, Match, Reasons
from idiograph.answer.habits import Habit, Habits
from idiograph.answer.large.sampled import NEAREST_BY_WORDS
from idiograph.answer.methods import MODEL, is_large
from idiograph.answer.openset import calibration_of_index
from idiograph.answer.ranking import MAX_PASSAGES_TO_SCORE_ALL, NEAREST_CANDIDATES, PANEL_CANDIDATES
from idiograph.answer.reference import MethodShare
from idiograph.answer.rolling import Rolling
from idiograph.html import ShadedPiece, cut_at_marks, render
from idiograph.index.index import Index
from idiograph.rankers.library import Library
from idiograph.store import timestamp
from idiograph.text.cells import PeopleCsv

MAX_LINES_BETWEEN_TEXTS = 60  # matches drawn as lines: more would be a carpet
LEAST_SHARE_SHOWN = 0.005  # of the log10 ratio
FEATURES_SHOWN = 8  # of a method, for one hand, and for two
PARTS_IN_WORDS = {  # what the parts of a ratio are
    "delta": "how often frequent words come",
    "letters": "sequences of letters",
    "words": "words, the rarer the more they count",
    "pairs": "words and marks in a row",
    "stable": "words and letters that vary little within a writer and much between writers",
    "neighbours": "whether both are near to the same authors of the reference",
    "agreement": "what is taken off where ways of asking disagree",
    "prior": "what a pair gets that is as alike as any two texts of the reference, or of the kind",
    "bound": "what keeps the ratio within its bounds",
    "topic": "what shared content words take off",
    "model": "how alike the model finds the passages, read by what that is worth for this kind of text",
    "words and letters": "how often words and sequences of letters come, against what is usual in this kind of text",
}
CANDIDATE_COLUMNS = ("text", "rank", "authors", "names", "score", "log10_lr", "in_words", "probability", "documents")
CANDIDATE_COLUMNS += ("topic_warning", "none_of_these", "evidence_document", "evidence_score", "evidence_overlap")


def linked_page(explanation: Explanation, name_a: str, name_b: str) -> dict[str, Any]:
    """The two texts cut into their patches, each with the number of its counterpart."""
    forward = [m for m in explanation.matches if not m.from_b]
    places = sorted({(m.other_start, m.other_end) for m in forward})
    shade = match_shades([m.similarity for m in forward])
    left = [
        (
            m.start,
            m.end,
            ShadedPiece("", at, places.index((m.other_start, m.other_end)), shade[at], match_note(explanation, m)),
        )
        for at, m in enumerate(forward)
    ]
    best = {(m.other_start, m.other_end): at for at, m in sorted(enumerate(forward), key=lambda e: e[1].similarity)}
    right = [
        (
            *place,
            ShadedPiece("", number, best[place], shade[best[place]], match_note(explanation, forward[best[place]])),
        )
        for number, place in enumerate(places)
    ]
    return {
        "name_a": name_a,
        "name_b": name_b,
        "a": cut_at_marks(explanation.a, left),
        "b": cut_at_marks(explanation.b, right),
    }


def text_strips(explanation: Explanation) -> dict[str, Any]:
    """Both texts as strips from 0 to 1000, patches shaded by how near their counterpart is, and lines between the nearest."""
    forward = [m for m in explanation.matches if not m.from_b]
    shade = match_shades([m.similarity for m in forward])
    size_a, size_b = 1000 / max(len(explanation.a), 1), 1000 / max(len(explanation.b), 1)
    nearest: dict[tuple[int, int], float] = {}
    for m, s in zip(forward, shade, strict=True):
        place = (m.other_start, m.other_end)
        nearest[place] = max(nearest.get(place, 0.0), s)
    top = sorted(range(len(forward)), key=lambda at: -forward[at].similarity)[:MAX_LINES_BETWEEN_TEXTS]
    lines = [
        {
            "x": (forward[at].start + forward[at].end) / 2 * size_a,
            "y": (forward[at].other_start + forward[at].other_end) / 2 * size_b,
            "shade": shade[at],
            "note": match_note(explanation, forward[at]),
        }
        for at in top
    ]
    return {
        "first": [(m.start * size_a, (m.end - m.start) * size_a, s) for m, s in zip(forward, shade, strict=True)],
        "second": [(start * size_b, (end - start) * size_b, s) for (start, end), s in sorted(nearest.items())],
        "lines": lines,
    }


def match_note(explanation: Explanation, match: Match) -> str:
    here, there = explanation.a[match.start : match.end], explanation.b[match.other_start : match.other_end]
    return f"“{here}” ~ “{there}”: similarity {match.similarity:.3f}, gives {match.part:.4f} of {explanation.score:.4f}"


def match_shades(values: Sequence[float]) -> list[float]:
    """Ranks from 0 to 1, so that a page shows differences however close the values are."""
    order = np.argsort(np.argsort(values))
    return [float(rank) / max(len(values) - 1, 1) for rank in order]


def explanation_page(explanation: Explanation, habits: Habits, name_a: str, name_b: str, count: int) -> str:
    """The two texts side by side, and the habits that they share or do not."""
    about = {
        "title": f"{name_a} and {name_b}",
        "score": explanation.score,
        "scorer": explanation.scorer,
        "patch": explanation.patch,
    }
    patches = {"best": explanation.best(count), "strips": text_strips(explanation), "cut": explanation.cut}
    both = {"habits": habits, "shown_habits": strongest_habits(habits.rows, count)}
    return render("explain.html", **about, **patches, **both, **linked_page(explanation, name_a, name_b))


def strongest_habits(rows: Sequence[Habit], count: int) -> list[Habit]:
    """The habits that speak most for one hand, and those that speak most against it."""
    if len(rows) <= count:
        return list(rows)
    return [*rows[:count], *(row for row in rows[-(count // 2) :] if row.agreement < 0)]


def search_in_words(index: Index, exact: bool, method: str) -> str:
    """How candidates were found, in words."""
    if method != MODEL and not is_large(index):
        return "every text was compared"
    if method == MODEL and (exact or len(index) <= MAX_PASSAGES_TO_SCORE_ALL):
        return "every passage was scored"
    by_words = "" if method == MODEL else f" and the {NEAREST_BY_WORDS} who seem nearest by frequent words"
    near = f"the {NEAREST_CANDIDATES} candidates who seem nearest to the model{by_words} were compared"
    return f"{near}, and {PANEL_CANDIDATES} drawn at random who stand for the others"


def index_provenance(index: Index, by: str, candidates: Sequence[str], unknown: float) -> dict[str, Any]:
    """What somebody else needs to do it again."""
    known = calibration_of_index(index, by).calibration
    return {
        "version": f"idiograph {__version__}",
        "date": timestamp(),
        "model": index.about["model"],
        "model fingerprint": index.style.fingerprint,
        "score": index.style.score,
        "index": index.where,
        "corpus": index.about.get("source") or "not recorded",
        "index version": index.version,
        "preset": index.about.get("preset", "sound"),
        "passages": len(index),
        "settings": str(index.recipe.model_dump()),
        "candidates": ", ".join(candidates) if candidates else f"every {by} of the index",
        "prior of 'none of these'": 0.0 if candidates else unknown,
        "calibration": f"{known.method}, {known.same} same-author and {known.different} different-author comparisons, "
        f"log10 LR from {known.low:+.2f} to {known.high:+.2f}",
    }


def attribution_page(
    answers: Mapping[str, Attribution], parts: Mapping[str, Rolling], trail: Mapping[str, Any], closed: bool
) -> str:
    """The candidates of each text, the passages behind them, and the audit trail."""
    from idiograph.plots.curves import along_axis

    questions = []
    for name, answer in answers.items():
        rolled = parts.get(name)
        figure, rows = "", []
        if rolled:
            names = [", ".join(n) for n in rolled.candidates]
            figure = along_axis([start for start, _ in rolled.windows], rolled.llr, names, rolled.owners)
            rows = rolled.to_json()["parts"]
        rolled_by = rolled.method if rolled else ""
        questions.append({"name": name, "answer": answer, "figure": figure, "parts": rows, "rolled_by": rolled_by})
    return render("attribute.html", title="Who wrote this?", questions=questions, audit=trail, closed=closed)


def write_candidates(path: Path, answers: Mapping[str, Attribution]) -> None:
    """The candidates of each text as a CSV table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = PeopleCsv(file)
        table.row(CANDIDATE_COLUMNS)
        for name, answer in answers.items():
            for rank, c in enumerate(answer.candidates, 1):
                best = c.evidence[0]
                row = [name, rank, "; ".join(c.authors), "; ".join(c.names), f"{c.score:.4f}", f"{c.llr:.3f}", c.words]
                row += [f"{c.probability:.4f}", c.documents, c.topical, f"{answer.none.probability:.4f}"]
                table.row([*row, best.doc_id, f"{best.score:.4f}", f"{best.overlap:.3f}"])


def verdict_trail(
    reasons: Reasons, names: tuple[str, str], reference: tuple[str, Library] | None, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What somebody else needs to compare the same two texts again. A reference is its name and its texts."""
    v, trail = reasons.verdict, {"version": f"idiograph {__version__}", "date": timestamp()}
    for which, name, text in (("first", names[0], reasons.a), ("second", names[1], reasons.b)):
        trail |= {f"{which} text": name, f"SHA-256 of the {which} text": digest_text(text)}
    if reference and v.checked:
        where, library = reference
        lines = sorted(
            f"{author} {digest_text(text)}" for author, text in zip(library.authors, library.texts, strict=True)
        )
        trail |= {"reference": where, "SHA-256 of the reference": digest_text("\n".join(lines))}
        held = (
            f"{len(library)} texts; compared with: {v.checked.texts}, by {v.checked.authors} authors ({v.checked.lang})"
        )
        trail |= {"texts of the reference": held}
        trail["weights among the writers of the reference"] = ", ".join(
            f"{name} {weight:.2f}" for name, weight in v.checked.weights
        )
    elif v.calibration.style:
        trail["model"] = v.calibration.style
    known = f"{v.calibration.method}, from {v.calibration.same} pairs by one hand and {v.calibration.different} by two"
    kind = f"{known}; for {v.kind}" if v.kind else known
    bounds = f"log10 LR from {v.calibration.low:+.2f} to {v.calibration.high:+.2f}"
    return {**trail, "calibration": kind, "bounds": bounds, **{name: str(each) for name, each in settings.items()}}


def digest_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def verdict_page(reasons: Reasons, names: tuple[str, str], trail: Mapping[str, Any]) -> str:
    """One comparison on one page: the ratio, what it was checked on, what carries it, its limits, and how it was made."""
    from idiograph.plots.cases import promises_kept, ratio_scale, share_bars, tippett_of_case

    v, at = reasons.verdict, reasons.verdict.checked_at
    shares = [(each.method, each.share) for each in v.shares if abs(each.share) >= LEAST_SHARE_SHOWN]
    curves = {"tippett": "", "promises": ""}
    if at and all(at.ratios):
        marked = None if v.refusals else v.llr
        curves = {"tippett": tippett_of_case(*at.ratios, marked), "promises": promises_kept(at.reliability)}
    figures = {"bars": share_bars(shares) if shares else "", **curves}
    figures["scale"] = "" if v.refusals else ratio_scale(v.llr, v.calibration.low, v.calibration.high)
    words = {
        "carried": [carried_by(each) for each in v.shares if each.features],
        "parts_in_words": [(name, PARTS_IN_WORDS.get(name, ""), share) for name, share in shares],
        "population": "like the writers of the reference"
        if v.checked
        else f"among those who write {v.kind or 'such texts'}",
    }
    passages = {
        "passages_a": shown_passages(reasons.a, reasons.in_a),
        "passages_b": shown_passages(reasons.b, reasons.in_b),
    }
    ratio = {"factor": size_of_ratio(v.llr), "in_words": ratio_explained(v.llr)}
    about = {"title": f"One hand or two? {names[0]} and {names[1]}", "name_a": names[0], "name_b": names[1]}
    return render("verdict.html", reasons=reasons, at=at, audit=trail, **about, **ratio, **figures, **words, **passages)


def carried_by(part: MethodShare) -> dict[str, Any]:
    """A method's strongest features for one hand and for two."""
    speaks = {"for_one": [each for each in part.features if each.share > 0][:FEATURES_SHOWN]}
    speaks["for_two"] = [each for each in part.features if each.share < 0][:FEATURES_SHOWN]
    shown = sum(each.share for each in (*speaks["for_one"], *speaks["for_two"]))
    rest = part.share - part.usual - shown
    return {"part": part, "says": PARTS_IN_WORDS.get(part.method, ""), "rest": rest, **speaks}


def size_of_ratio(llr: float) -> str:
    """The ratio as a number to one."""
    size = 10 ** abs(llr)
    return f"{size:.1f} to 1" if size < 10 else f"{size:,.0f} to 1"


def ratio_explained(llr: float) -> str:
    """Both propositions in a sentence, as forensic reports put it."""
    if llr == 0:
        return "Such a resemblance is as likely if one person wrote both as if two did."
    sides = ("one person wrote both", "two people did") if llr > 0 else ("two people wrote them", "one person did")
    size = size_of_ratio(llr).removesuffix(" to 1")
    return f"Such a resemblance is {size} times more likely if {sides[0]} than if {sides[1]}."


def shown_passages(text: str, passages: Sequence[MarkedPassage]) -> list[list[ShadedPiece]]:
    """Passages cut at their marks; a piece with a partner speaks for two hands."""
    shown = []
    for each in passages:
        marks = [
            (
                mark.start - each.start,
                mark.end - each.start,
                ShadedPiece("", 0, int(mark.share < 0), 0.0, f"{mark.feature}: {mark.share:+.3f}"),
            )
            for mark in each.marks
        ]
        shown.append(cut_at_marks(text[each.start : each.end].strip("\n"), marks))
    return shown


def crossvalidation_page(result: CrossValidation, source: str) -> str:
    """A page that says how often an answer would be right on a library."""
    from idiograph.plots.panels import svg

    figure = svg(result.plot())
    about = {"title": "How often would this be right?", "version": __version__, "date": timestamp()[:10]}
    return render("crossvalidate.html", result=result, source=source, figure=figure, **about)
