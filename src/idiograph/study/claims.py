"""What the paper claims, put to the test: each with a number, an interval and a word. Nothing is decided by a point alone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from idiograph.evaluate.topic import STRICT
from idiograph.study.decoupling import lexical, trained_on
from idiograph.study.depth import relative
from idiograph.study.failures import QUANTITIES, distractors, ranked
from idiograph.study.found import Found, Sample, minus
from idiograph.study.geometry import correlated, effect, pairs
from idiograph.study.patchsize import curve, fitted, samples_of
from idiograph.study.plan import SAME_SHARPNESS
from idiograph.study.published import DECOUPLING, RETRIEVAL, SEMANTIC
from idiograph.study.table import NAN, Cell
from idiograph.study.temperature import SUM, chosen, order, tempered
from idiograph.study.training import how_trained, kind, same_loss, tokens_a_patch

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim: what is said, the quantity that would have to be above (or below) zero, and what came out."""

    claim: str
    quantity: str
    backbone: str
    cell: Cell
    verdict: str
    remark: str = ""


def above(cell: Cell, threshold: float = 0.0) -> str:
    """Holds if the whole interval is above the threshold, does not if the whole is below; else nobody knows."""
    if not cell.known:
        return UNDECIDED
    return HOLDS if cell.low > threshold else FAILS if cell.high < threshold else UNDECIDED


def stated(
    claim: str, quantity: str, backbone: str, sample: Sample | None, published: float = NAN, remark: str = ""
) -> Claim:
    """A claim that a mean is above zero."""
    cell = Cell(published=published) if sample is None else sample.cell(published)
    return Claim(claim, quantity, backbone, cell, above(cell), remark)


def topic(found: Found, backbone: str) -> Iterator[Claim]:
    size = found.main
    loose, strict = (lexical(found.on(rule, size), STRICT) for rule in ("unrestricted", "base"))
    cell = unpaired(loose, strict, DECOUPLING["BM25", "unrestricted", 4] / 100 - DECOUPLING["BM25", "base", 4] / 100)
    yield Claim(
        "Words help less once positives are from other documents",
        "BM25 accuracy, unrestricted − base",
        backbone,
        cell,
        above(cell),
    )
    base, other = (found.triplets(trained_on(found, backbone, rule)) for rule in ("base", "unrestricted"))
    theirs = (DECOUPLING["base", "base", 4] - DECOUPLING["unrestricted", "base", 4]) / 100
    yield stated(
        "Training on base beats training on unrestricted", "accuracy on base", backbone, minus(base, other), theirs
    )
    cloze = found.triplets(trained_on(found, backbone, "ict"))
    theirs = (DECOUPLING["base", "base", 4] - DECOUPLING["ict", "base", 4]) / 100
    yield stated("Training on base beats cloze pairs", "accuracy on base", backbone, minus(base, cloze), theirs)
    for rule, said in (("unrestricted", "training on unrestricted"), ("ict", "cloze pairs")):
        base_, other = (found.measure(trained_on(found, backbone, each)) for each in ("base", rule))
        yield stated(f"Training on base beats {said}", "R@20", backbone, minus(base_, other))
    words = lexical(found.on("base", size), STRICT)
    theirs = (DECOUPLING["base", "base", 4] - DECOUPLING["BM25", "base", 4]) / 100
    yield stated("A trained model beats BM25 on base", "accuracy on base", backbone, minus(base, words), theirs)


def unpaired(a: Sample | None, b: Sample | None, published: float) -> Cell:
    """The difference of two means of different triplets; the interval adds both variances."""
    if a is None or b is None:
        return Cell(published=published)
    x, y = a.cell(), b.cell()
    half = np.hypot((x.high - x.low) / 2, (y.high - y.low) / 2)
    value = x.value - y.value
    return Cell(value, value - float(half), value + float(half), published)


def grains(found: Found, backbone: str) -> Iterator[Claim]:
    theirs = RETRIEVAL[4]["ngram:1"][0], RETRIEVAL[4]["whole"][0]
    lead = {}
    for stage in ("published", "main"):
        how = found.loss(stage)
        token, whole = (found.measure(found.outcome(backbone, grain, stage)) for grain in ("ngram:1", "whole"))
        lead[stage] = minus(token, whole)
        claim = "Late interaction is ahead of mean pooling"
        yield stated(claim, f"R@20, ngram:1 − whole, {how}", backbone, lead[stage], theirs[0] - theirs[1])
        ratio = relative(token, whole, theirs[0] / theirs[1] - 1)
        said = "Late interaction is far ahead: it finds at least twice as much"
        yield Claim(said, f"R@20, ngram:1 / whole − 1, {how}", backbone, ratio, above(ratio, 1.0))
    for grain, said in (("whole", "mean pooling"), ("ngram:1", "late interaction")):
        own, theirs_ = (found.measure(found.outcome(backbone, grain, stage)) for stage in ("main", "published"))
        told = f"R@20, {grain}, temperature learned − published loss"
        yield stated(f"The published loss holds {said} back", told, backbone, minus(own, theirs_))
    yield stated(
        "The lead is an effect of the temperature",
        "how much of the lead goes when each grain has its own temperature",
        backbone,
        minus(lead["published"], lead["main"]),
    )
    best = chosen(found, backbone)
    for grain in ("ngram:1", "ngram:2", "ngram:3"):
        sample = minus(found.measure(best.get(grain)), found.measure(best.get("whole")))
        said = f"{grain} is ahead of mean pooling when each has its best temperature"
        yield stated(said, "R@20, temperatures chosen on other writers", backbone, sample)
    for size in found.lengths:
        known = RETRIEVAL.get(size, {})
        theirs = known["ngram:2"][0] - known["ngram:1"][0] if known else NAN
        patch, token = (found.measure(found.outcome(backbone, grain), "R@20", size) for grain in ("ngram:2", "ngram:1"))
        said = f"Patches of two are ahead of single tokens, {size} sentences"
        yield stated(said, "R@20, ngram:2 − ngram:1", backbone, minus(patch, token), theirs)
    theirs = RETRIEVAL[4]["whole as ngram:1"][0] - RETRIEVAL[4]["whole"][0]
    for stage, outcome in (("untrained", found.untrained(backbone)), ("trained", found.outcome(backbone, "whole"))):
        finer = minus(found.measure(outcome, reading="ngram:3"), found.measure(outcome, reading="whole"))
        said = f"Reading mean-pooled weights in patches of three helps ({stage})"
        yield stated(said, "R@20, read at ngram:3 − whole", backbone, finer)
        swapped = minus(found.measure(outcome, reading="ngram:1"), found.measure(outcome, reading="whole"))
        yield stated(
            f"Reading mean-pooled weights token by token helps ({stage})",
            "R@20, read at ngram:1 − whole",
            backbone,
            swapped,
            theirs,
        )
    trained = minus(
        found.measure(found.outcome(backbone, "ngram:3")), found.measure(found.untrained(backbone), reading="ngram:3")
    )
    same = minus(
        found.measure(found.outcome(backbone, "ngram:3")),
        found.measure(found.outcome(backbone, "whole"), reading="ngram:3"),
    )
    yield stated(
        "Training at the grain that is read helps",
        "R@20 read at ngram:3, trained at ngram:3 − at whole",
        backbone,
        same,
    )
    yield stated("Training helps at all", "R@20, ngram:3 trained − untrained", backbone, trained)


def by_temperature(found: Found, backbone: str) -> Iterator[Claim]:
    """Is the conclusion the same at every temperature? And mean pooling at the sharpness that a sum of cosines has?"""
    grid = tempered(found, backbone)
    whole = grid.get("whole", {})
    for grain in ("ngram:1", "ngram:3"):
        for setting in order(set(grid.get(grain, {})) & set(whole)):
            sample = minus(found.measure(grid[grain][setting]), found.measure(whole[setting]))
            said = f"{grain} is ahead of mean pooling at τ = {setting}"
            yield stated(said, f"R@20, {grain} − whole, τ = {setting}", backbone, sample)
    sharp, published = whole.get(f"{SAME_SHARPNESS}"), grid.get("ngram:1", {}).get(SUM)
    sample = minus(found.measure(published), found.measure(sharp))
    said = "Late interaction as published is ahead of mean pooling that is as sharp"
    yield stated(said, f"R@20, ngram:1 at {SUM} − whole at {SAME_SHARPNESS}", backbone, sample)


def lengths(found: Found, backbone: str) -> Iterator[Claim]:
    """Every model gets better with longer spans, at equal pools."""
    outcome, (least, *_, most) = found.patched(backbone), found.lengths
    grain = outcome.run.patch if outcome else ""
    short, long = (found.measure(outcome, "R@20", size) for size in (least, most))
    theirs = RETRIEVAL[most][grain][0] - RETRIEVAL[least][grain][0] if grain and most in RETRIEVAL else NAN
    cell = unpaired(long, short, theirs)
    said = "Longer spans are easier, with pools of equal size"
    yield Claim(said, f"R@20 at {grain}, {most} − {least} sentences", backbone, cell, above(cell))


def sizes(found: Found, backbone: str) -> Iterator[Claim]:
    for stage in ("main", "published"):
        for measure in ("R@20", "nDCG@20"):
            given = samples_of(found, backbone, measure, stage)
            if given is None:
                continue
            fits = fitted(curve(*given))
            power = fits["free exponent"]
            share = fits["best in resamples, root"].value
            factor = fits["factor of the root"]
            remark = f"factor {factor.shown} [{factor.range}]; the root fits best in {100 * share:.0f} % of resamples"
            said = f"The best patch size grows with length ({found.loss(stage)}, {measure})"
            yield Claim(said, "exponent of length, free", backbone, power, above(power), remark)


def meaning(found: Found, backbone: str) -> Iterator[Claim]:
    both = pairs(found, backbone)
    if both is None:
        return
    semantic, style = both
    inside = correlated(semantic, style, (0,))
    remark = f"pooled {correlated(semantic, style, (0, 1)).shown} (paper {SEMANTIC['pooled correlation']})"
    verdict = FAILS if inside.low > 0.5 else HOLDS if inside.high < 0.3 else UNDECIDED
    said = "Style is another thing than meaning: hardly correlated within same-author pairs"
    yield Claim(said, "correlation of style and meaning, same author", backbone, inside, verdict, remark)
    a, b = effect(style), effect(semantic)
    gain = Sample(
        (style.values[:, 0] - style.values[:, 1]) / style.values[:, 1].std()
        - (semantic.values[:, 0] - semantic.values[:, 1]) / semantic.values[:, 1].std(),
        style.clusters,
    )
    note = f"style {a.shown}, meaning {b.shown} standard deviations"
    yield stated(
        "Style separates authors better than meaning",
        "difference of margins, in standard deviations",
        backbone,
        gain,
        remark=note,
    )


def failing(found: Found, backbone: str) -> Iterator[Claim]:
    outcome = found.patched(backbone)
    if outcome is None or not ranked(found, outcome):
        return
    benches = found.on("base")
    parts = [distractors(b, outcome.arrays[f"{outcome.run.patch}|{b.name}|top"]) for b in benches]
    clusters = np.concatenate([bench.clusters for bench in benches])
    for quantity, said in (
        ("same field", "Distractors share the anchor's field more often than chance"),
        ("words of the anchor", "Distractors share no more words with the anchor than chance"),
        ("words of the positive", "Distractors look like the true positive, which is left out here"),
    ):
        at = QUANTITIES.index(quantity)
        values = np.concatenate([part["ranks 2–5"][:, at] - part["random"][:, at] for part in parts])
        cell = Sample(values, clusters).cell()
        verdict = above(cell)
        if "no more" in said:
            verdict = {HOLDS: FAILS, FAILS: HOLDS}.get(verdict, verdict)
        yield Claim(said, f"{quantity}, ranks 2–5 − random", backbone, cell, verdict)


def pool(found: Found, backbone: str) -> Iterator[Claim]:
    usual = found.outcome(backbone, "ngram:1")
    more = [o for o in found.outcomes if o.run.stage == "negatives" and o.run.backbone == backbone]
    for outcome in more:
        if usual is not None and outcome.run.batch > usual.run.batch:
            said = "More negatives help"
            remark = "more text too, at equal steps"
            quantity = f"R@20, batch {outcome.run.batch} − {usual.run.batch}"
            yield stated(said, quantity, backbone, minus(found.measure(outcome), found.measure(usual)), remark=remark)


def boundary(found: Found, backbone: str) -> Iterator[Claim]:
    theirs = RETRIEVAL[4]["ngram:3"][0] - RETRIEVAL[4]["learned:3"][0]
    for outcome in found.outcomes:
        run = outcome.run
        if (run.stage, run.backbone) == ("learned", backbone):
            sample = minus(found.measure(same_loss(found, run)), found.measure(outcome))
            told = f"R@20, ngram:3 − learned:3 ({kind(run)}), {how_trained(run)}"
            note = f"{tokens_a_patch(found, outcome):.1f} tokens a learned patch"
            yield stated("Fixed patches beat learned boundaries", told, backbone, sample, theirs, note)


def luck(found: Found, backbone: str) -> Iterator[Claim]:
    """The lead of late interaction with another seed."""
    for outcome in found.outcomes:
        run = outcome.run
        if (run.stage, run.backbone, run.patch) == ("seeds", backbone, "ngram:1"):
            whole = found.outcome(backbone, "whole", "seeds", seed=run.seed, score=run.score)
            told = f"R@20, ngram:1 − whole, {how_trained(run)}, seed {run.seed}"
            sample = minus(found.measure(outcome), found.measure(whole))
            yield stated("Late interaction is ahead of mean pooling with another seed", told, backbone, sample)


MAKERS: tuple[Callable[[Found, str], Iterator[Claim]], ...] = (
    topic, lengths, grains, by_temperature, luck, sizes, meaning, failing, pool, boundary,
)  # fmt: skip


def claims(found: Found) -> list[Claim]:
    """Every claim on every backbone; a claim that nothing was measured for is left out."""
    every = [claim for maker in MAKERS for backbone in found.backbones for claim in maker(found, backbone)]
    return [claim for claim in every if claim.cell.known]
