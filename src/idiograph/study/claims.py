"""What the paper claims, put to the test: each with a number, an interval and a word. Nothing is decided by a point alone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from idiograph.evaluate.published import DECOUPLING, RETRIEVAL, SEMANTIC
from idiograph.evaluate.topic import STRICT
from idiograph.study.outcomes import Sample, StudyOutcomes, paired_lead
from idiograph.study.plan import SAME_SHARPNESS
from idiograph.study.table import NAN, Cell
from idiograph.study.tables.decoupling import lexical_scores, trained_on
from idiograph.study.tables.depth import relative_lead
from idiograph.study.tables.failures import QUANTITIES, distractors, ranked_failures
from idiograph.study.tables.geometry import correlate, cosine_table, effect
from idiograph.study.tables.patchsize import SIZES, curve, fit_curve, samples_of
from idiograph.study.tables.temperature import SUM, chosen_temperatures, temperature_order, temperature_runs_of
from idiograph.study.tables.training import how_trained, kind_of_run, same_loss, tokens_a_patch

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
READS_ALIKE = 0.005  # of R@20, untrained: less than this between grains, and a backbone has one vector a text


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim: what is said, the quantity that would have to be above (or below) zero, and what came out."""

    claim: str
    quantity: str
    backbone: str
    cell: Cell
    verdict: str
    remark: str = ""


def above_zero(cell: Cell, threshold: float = 0.0) -> str:
    """Holds if the whole interval is above the threshold, does not if the whole is below; else nobody knows."""
    if not cell.known:
        return UNDECIDED
    return HOLDS if cell.low > threshold else FAILS if cell.high < threshold else UNDECIDED


def state_claim(
    claim: str, quantity: str, backbone: str, sample: Sample | None, published: float = NAN, remark: str = ""
) -> Claim:
    """A claim that a mean is above zero."""
    cell = Cell(published=published) if sample is None else sample.cell(published)
    return Claim(claim, quantity, backbone, cell, above_zero(cell), remark)


def topic_claims(study: StudyOutcomes, backbone: str) -> Iterator[Claim]:
    size = study.main
    loose, strict = (lexical_scores(study.on(rule, size), STRICT) for rule in ("unrestricted", "base"))
    cell = unpaired_claim(
        loose, strict, DECOUPLING["BM25", "unrestricted", 4] / 100 - DECOUPLING["BM25", "base", 4] / 100
    )
    yield Claim(
        "Words help less once positives are from other documents",
        "BM25 accuracy, unrestricted − base",
        backbone,
        cell,
        above_zero(cell),
    )
    base, other = (study.triplets(trained_on(study, backbone, rule)) for rule in ("base", "unrestricted"))
    theirs = (DECOUPLING["base", "base", 4] - DECOUPLING["unrestricted", "base", 4]) / 100
    yield state_claim(
        "Training on base beats training on unrestricted",
        "accuracy on base",
        backbone,
        paired_lead(base, other),
        theirs,
    )
    cloze = study.triplets(trained_on(study, backbone, "ict"))
    theirs = (DECOUPLING["base", "base", 4] - DECOUPLING["ict", "base", 4]) / 100
    yield state_claim(
        "Training on base beats cloze pairs", "accuracy on base", backbone, paired_lead(base, cloze), theirs
    )
    for rule, statement in (("unrestricted", "training on unrestricted"), ("ict", "cloze pairs")):
        base_, other = (study.measure(trained_on(study, backbone, each)) for each in ("base", rule))
        yield state_claim(f"Training on base beats {statement}", "R@20", backbone, paired_lead(base_, other))
    words = lexical_scores(study.on("base", size), STRICT)
    theirs = (DECOUPLING["base", "base", 4] - DECOUPLING["BM25", "base", 4]) / 100
    yield state_claim(
        "A trained model beats BM25 on base", "accuracy on base", backbone, paired_lead(base, words), theirs
    )


def unpaired_claim(a: Sample | None, b: Sample | None, published: float) -> Cell:
    """The difference of two means of different triplets; the interval adds both variances."""
    if a is None or b is None:
        return Cell(published=published)
    x, y = a.cell(), b.cell()
    half = np.hypot((x.high - x.low) / 2, (y.high - y.low) / 2)
    value = x.value - y.value
    return Cell(value, value - float(half), value + float(half), published)


def lead_claims(study: StudyOutcomes, backbone: str) -> Iterator[Claim]:
    """Is late interaction ahead of mean pooling, by how much, and what does the temperature have to do with it?"""
    theirs = RETRIEVAL[4]["ngram:1"][0], RETRIEVAL[4]["whole"][0]
    lead, limit = {}, limit_of_backbone(study, backbone)
    for stage in ("published", "main"):
        how = study.loss(stage)
        token, whole = (study.measure(study.outcome(backbone, grain, stage)) for grain in ("ngram:1", "whole"))
        lead[stage] = paired_lead(token, whole)
        claim, quantity = "Late interaction is ahead of mean pooling", f"R@20, ngram:1 − whole, {how}"
        yield state_claim(claim, quantity, backbone, lead[stage], theirs[0] - theirs[1], limit)
        ratio = relative_lead(token, whole, theirs[0] / theirs[1] - 1)
        statement = "Late interaction is far ahead: it finds at least twice as much"
        yield Claim(statement, f"R@20, ngram:1 / whole − 1, {how}", backbone, ratio, above_zero(ratio, 1.0), limit)
    for grain, statement in (("whole", "mean pooling"), ("ngram:1", "late interaction")):
        own, theirs_ = (study.measure(study.outcome(backbone, grain, stage)) for stage in ("main", "published"))
        quantity = f"R@20, {grain}, temperature learned − published loss"
        yield state_claim(f"The published loss holds {statement} back", quantity, backbone, paired_lead(own, theirs_))
    statement, quantity = (
        "The lead is an effect of the temperature",
        "how much of the lead goes when each grain has its own temperature",
    )
    gone, remark = paired_lead(lead["published"], lead["main"]), what_is_explained(study, backbone)
    yield state_claim(statement, quantity, backbone, gone, remark=remark)
    best = chosen_temperatures(study, backbone)
    for grain in ("ngram:1", "ngram:2", "ngram:3"):
        sample = paired_lead(study.measure(best.get(grain)), study.measure(best.get("whole")))
        statement = f"{grain} is ahead of mean pooling when each has its best temperature"
        quantity = "R@20, temperatures chosen on other writers"
        yield state_claim(statement, quantity, backbone, sample, remark=limit)


def limit_of_backbone(study: StudyOutcomes, backbone: str) -> str:
    """What keeps a backbone from showing a lead at all: token vectors that are nearly one, so that every grain reads alike."""
    untrained = study.untrained(backbone)
    whole = study.measure(untrained, reading="whole")
    leads = [paired_lead(study.measure(untrained, reading=grain), whole) for grain in ("ngram:1", "ngram:3")]
    cells = [lead.cell() for lead in leads if lead is not None]
    if len(cells) < len(leads) or any(max(-cell.low, cell.high) > READS_ALIKE for cell in cells):
        return ""
    return "its token vectors are nearly one: untrained, every grain reads alike, so it cannot show a lead"


def what_is_explained(study: StudyOutcomes, backbone: str) -> str:
    """How much of the paper's lead there is here to explain, on how many backbones and after how much training."""
    token, whole = (study.outcome(backbone, grain, "published") for grain in ("ngram:1", "whole"))
    theirs = RETRIEVAL[4]["ngram:1"][0] / RETRIEVAL[4]["whole"][0] - 1
    ratio = relative_lead(study.measure(token), study.measure(whole), theirs)
    if token is None or not ratio.known:
        return ""
    rows, backbones = token.run.steps * token.run.batch, len(study.backbones)
    return (
        f"that is {100 * ratio.value:+.0f} % of the paper's {100 * theirs:+.0f} %, on {backbones} "
        f"backbone{'s' if backbones > 1 else ''}, {rows:,} rows a run; what makes up the rest is not measured here"
    )


def grain_claims(study: StudyOutcomes, backbone: str) -> Iterator[Claim]:
    """Are patches ahead of tokens, and does it matter at which grain a model was trained?"""
    for size in study.lengths:
        known = RETRIEVAL.get(size, {})
        theirs = known["ngram:2"][0] - known["ngram:1"][0] if known else NAN
        patch, token = (study.measure(study.outcome(backbone, grain), "R@20", size) for grain in ("ngram:2", "ngram:1"))
        statement = f"Patches of two are ahead of single tokens, {size} sentences"
        yield state_claim(statement, "R@20, ngram:2 − ngram:1", backbone, paired_lead(patch, token), theirs)
    theirs = RETRIEVAL[4]["whole as ngram:1"][0] - RETRIEVAL[4]["whole"][0]
    for stage, outcome in (("untrained", study.untrained(backbone)), ("trained", study.outcome(backbone, "whole"))):
        finer = paired_lead(study.measure(outcome, reading="ngram:3"), study.measure(outcome, reading="whole"))
        statement = f"Reading mean-pooled weights in patches of three helps ({stage})"
        yield state_claim(statement, "R@20, read at ngram:3 − whole", backbone, finer)
        swapped = paired_lead(study.measure(outcome, reading="ngram:1"), study.measure(outcome, reading="whole"))
        yield state_claim(
            f"Reading mean-pooled weights token by token helps ({stage})",
            "R@20, read at ngram:1 − whole",
            backbone,
            swapped,
            theirs,
        )
    trained = paired_lead(
        study.measure(study.outcome(backbone, "ngram:3")), study.measure(study.untrained(backbone), reading="ngram:3")
    )
    same = paired_lead(
        study.measure(study.outcome(backbone, "ngram:3")),
        study.measure(study.outcome(backbone, "whole"), reading="ngram:3"),
    )
    yield state_claim(
        "Training at the grain that is read helps",
        "R@20 read at ngram:3, trained at ngram:3 − at whole",
        backbone,
        same,
    )
    yield state_claim("Training helps at all", "R@20, ngram:3 trained − untrained", backbone, trained)


def by_temperature(study: StudyOutcomes, backbone: str) -> Iterator[Claim]:
    """Is the conclusion the same at every temperature? And mean pooling at the sharpness that a sum of cosines has?"""
    grid = temperature_runs_of(study, backbone)
    whole = grid.get("whole", {})
    for grain in ("ngram:1", "ngram:3"):
        for setting in temperature_order(set(grid.get(grain, {})) & set(whole)):
            sample = paired_lead(study.measure(grid[grain][setting]), study.measure(whole[setting]))
            statement = f"{grain} is ahead of mean pooling at τ = {setting}"
            yield state_claim(statement, f"R@20, {grain} − whole, τ = {setting}", backbone, sample)
    sharp, published = whole.get(f"{SAME_SHARPNESS}"), grid.get("ngram:1", {}).get(SUM)
    sample = paired_lead(study.measure(published), study.measure(sharp))
    statement = "Late interaction as published is ahead of mean pooling that is as sharp"
    yield state_claim(statement, f"R@20, ngram:1 at {SUM} − whole at {SAME_SHARPNESS}", backbone, sample)


def length_claims(study: StudyOutcomes, backbone: str) -> Iterator[Claim]:
    """Every model gets better with longer spans, at equal pools."""
    outcome, (least, *_, most) = study.patched(backbone), study.lengths
    grain = outcome.run.patch if outcome else ""
    short, long = (study.measure(outcome, "R@20", size) for size in (least, most))
    theirs = RETRIEVAL[most][grain][0] - RETRIEVAL[least][grain][0] if grain and most in RETRIEVAL else NAN
    cell = unpaired_claim(long, short, theirs)
    statement = "Longer spans are easier, with pools of equal size"
    yield Claim(statement, f"R@20 at {grain}, {most} − {least} sentences", backbone, cell, above_zero(cell))


def size_claims(study: StudyOutcomes, backbone: str) -> Iterator[Claim]:
    for stage in ("main", "published"):
        for measure in ("R@20", "nDCG@20"):
            samples = samples_of(study, backbone, measure, stage)
            if samples is None:
                continue
            fits = fit_curve(curve(*samples))
            power = fits["free exponent"]
            share = fits["best in resamples, root"].value
            factor = fits["factor of the root"]
            remark = (
                f"factor {factor.text} [{factor.range}]; the root fits best in {100 * share:.0f} % of resamples; "
                f"among sizes up to {max(SIZES)}, {study.loss(stage)} only"
            )
            statement = f"The best patch size grows with length ({study.loss(stage)}, {measure})"
            yield Claim(statement, "exponent of length, free", backbone, power, above_zero(power), remark)


def meaning_claims(study: StudyOutcomes, backbone: str) -> Iterator[Claim]:
    both = cosine_table(study, backbone)
    if both is None:
        return
    semantic, style = both
    inside = correlate(semantic, style, (0,))
    remark = f"pooled {correlate(semantic, style, (0, 1)).text} (paper {SEMANTIC['pooled correlation']})"
    verdict = FAILS if inside.low > 0.5 else HOLDS if inside.high < 0.3 else UNDECIDED
    statement = "Style is another thing than meaning: hardly correlated within same-author pairs"
    yield Claim(statement, "correlation of style and meaning, same author", backbone, inside, verdict, remark)
    a, b = effect(style), effect(semantic)
    gain = Sample(
        (style.values[:, 0] - style.values[:, 1]) / style.values[:, 1].std()
        - (semantic.values[:, 0] - semantic.values[:, 1]) / semantic.values[:, 1].std(),
        style.clusters,
    )
    note = f"style {a.text}, meaning {b.text} standard deviations"
    yield state_claim(
        "Style separates authors better than meaning",
        "difference of margins, in standard deviations",
        backbone,
        gain,
        remark=note,
    )


def failure_claims(study: StudyOutcomes, backbone: str) -> Iterator[Claim]:
    outcome = study.patched(backbone)
    if outcome is None or not ranked_failures(study, outcome):
        return
    benchmarks = study.on("base")
    parts = [distractors(b, outcome.arrays[f"{outcome.run.patch}|{b.name}|top"]) for b in benchmarks]
    clusters = np.concatenate([benchmark.clusters for benchmark in benchmarks])
    for quantity, statement in (
        ("same field", "Distractors share the anchor's field more often than chance"),
        ("words of the anchor", "Distractors share no more words with the anchor than chance"),
        ("words of the positive", "Distractors look like the true positive, which is left out here"),
    ):
        at = QUANTITIES.index(quantity)
        values = np.concatenate([part["ranks 2–5"][:, at] - part["random"][:, at] for part in parts])
        cell = Sample(values, clusters).cell()
        verdict = above_zero(cell)
        if "no more" in statement:
            verdict = {HOLDS: FAILS, FAILS: HOLDS}.get(verdict, verdict)
        yield Claim(statement, f"{quantity}, ranks 2–5 − random", backbone, cell, verdict)


def pool_claims(study: StudyOutcomes, backbone: str) -> Iterator[Claim]:
    usual = study.outcome(backbone, "ngram:1")
    more = [o for o in study.outcomes if o.run.stage == "negatives" and o.run.backbone == backbone]
    for outcome in more:
        if usual is not None and outcome.run.batch > usual.run.batch:
            statement = "More negatives help"
            remark = "more text too, at equal steps"
            quantity = f"R@20, batch {outcome.run.batch} − {usual.run.batch}"
            yield state_claim(
                statement, quantity, backbone, paired_lead(study.measure(outcome), study.measure(usual)), remark=remark
            )


def boundary_claims(study: StudyOutcomes, backbone: str) -> Iterator[Claim]:
    theirs = RETRIEVAL[4]["ngram:3"][0] - RETRIEVAL[4]["learned:3"][0]
    for outcome in study.outcomes:
        run = outcome.run
        if (run.stage, run.backbone) == ("learned", backbone):
            sample = paired_lead(study.measure(same_loss(study, run)), study.measure(outcome))
            quantity = f"R@20, ngram:3 − learned:3 ({kind_of_run(run)}), {how_trained(run)}"
            note = f"{tokens_a_patch(study, outcome):.1f} tokens a learned patch"
            yield state_claim("Fixed patches beat learned boundaries", quantity, backbone, sample, theirs, note)


def luck_claims(study: StudyOutcomes, backbone: str) -> Iterator[Claim]:
    """The lead of late interaction with another seed."""
    for outcome in study.outcomes:
        run = outcome.run
        if (run.stage, run.backbone, run.patch) == ("seeds", backbone, "ngram:1"):
            whole = study.outcome(backbone, "whole", "seeds", seed=run.seed, score=run.score)
            quantity = f"R@20, ngram:1 − whole, {how_trained(run)}, seed {run.seed}"
            sample = paired_lead(study.measure(outcome), study.measure(whole))
            yield state_claim("Late interaction is ahead of mean pooling with another seed", quantity, backbone, sample)


MAKERS: tuple[Callable[[StudyOutcomes, str], Iterator[Claim]], ...] = (
    topic_claims, length_claims, lead_claims, grain_claims, by_temperature, luck_claims,
    size_claims, meaning_claims, failure_claims, pool_claims, boundary_claims,
)  # fmt: skip


def all_claims(study: StudyOutcomes) -> list[Claim]:
    """Every claim on every backbone; a claim that nothing was measured for is left out."""
    every = [claim for maker in MAKERS for backbone in study.backbones for claim in maker(study, backbone)]
    return [claim for claim in every if claim.cell.known]
