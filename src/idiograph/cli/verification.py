"""Commands about one writer or two: verify, calibrate, and what `evaluate --verify` does."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from idiograph.cli.attribution import list_candidates, long_enough
from idiograph.cli.checks import (
    check_folder,
    check_page,
    check_rankers,
    check_reading,
    check_report,
    check_sources,
    check_texts,
)
from idiograph.cli.shared import (
    AsJson,
    Keep,
    Lang,
    Model,
    Overwrite,
    Patch,
    Preset,
    RecipeFile,
    bar,
    err,
    literal,
    open_style,
    out,
    say,
    settings,
    write_page,
    wrote,
)
from idiograph.errors import ArtifactError, SpecError

FEATURES_SHOWN = 4  # of a method on a terminal, for one hand and for two
LEAST_SHARE_SHOWN = 0.005  # of the log10 ratio

Label = Annotated[str | None, typer.Option(help="Who counts as the writer: identified, set, first, last or single.")]
Split = Annotated[list[str] | None, typer.Option(help="Take people of this split of `mine`; may be repeated.")]
UseModel = Annotated[
    bool | None,
    typer.Option(
        "--use-model/--no-model",
        help="With --reference: let the model take part, which reads every text. If neither: in an index, and among "
        "English papers and abstracts.",
    ),
]


def verify_command(
    a: Annotated[
        Path | None,
        typer.Argument(help="A text (txt, docx, odt, …, pdf), a folder of texts by one hand, or - for standard input."),
    ] = None,
    b: Annotated[Path | None, typer.Argument(help="Another.")] = None,
    reference: Annotated[
        str | None,
        typer.Option(help="Texts of known writers to compare among: a corpus, an index, a folder of Author_title.txt."),
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="Many pairs instead, in the form of PAN: {id, pair: [known, unknown]} a line.")
    ] = None,
    answers: Annotated[Path | None, typer.Option("--out", "-o", help="With --pairs: where the answers go.")] = None,
    corpus_folder: Annotated[
        Path | None, typer.Option("--corpus", help="Calibrate the model on this corpus folder.")
    ] = None,
    calibration: Annotated[Path | None, typer.Option(help="A file that `calibrate -o` wrote.")] = None,
    prior: Annotated[
        float | None,
        typer.Option(help="Your odds that one person wrote both, before this; gives a probability.", min=1e-9),
    ] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="A ratio for texts of another kind, too.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page: the ratio, what carries it, its limits.")] = None,
    use_model: UseModel = None,
    model: Model = "default",
    patch: Patch = None,
    keep: Keep = None,
    preset: Preset = "sound",
    lang: Lang = "any",
    as_json: AsJson = False,
) -> None:
    """Say whether two texts are by one writer. A calibrated likelihood ratio for two texts, or for two folders of texts."""
    check_reading(model, patch, keep)
    check_page(html)
    settings(preset, None, {})
    opening = partial(open_style, model, patch, keep)
    how = {"use_model": use_model, "opening": opening if use_model or model != "default" else None}
    if pairs:
        refuse_pairs_without(a, reference, answers)
        check_texts(pairs)
        answer_pairs(pairs, open_reference(reference or "", opening), answers or Path(), **how)
        return
    if a is None or b is None:
        raise SpecError("two texts are wanted: idiograph verify A B, or --pairs FILE")
    check_texts(a, b, *([calibration] if calibration else []))
    check_population(reference, corpus_folder, bool(corpus_folder or calibration or anyway))
    one, two = ([long_enough(file, lang) for file in list_candidates(path)] for path in (a, b))
    style = None if reference else opening()
    opened = open_population(reference, opening) if reference else None
    if reference:
        verdict, about = verify_among(one, two, opened, prior, **how), {"reference": reference}
    else:
        verdict, about = verify_by_model(
            one, two, style, calibration_for(style, corpus_folder, calibration, preset), prior, anyway, preset
        )
    if html:
        trail = {"prior odds": prior, "preset": preset, "any kind of text": anyway, "calibration file": calibration}
        case = Compared(one, two, (str(a), str(b)), (reference, opened) if reference else None, trail)
        write_verdict_page(html, verdict, case, style)
    say({**verdict.to_json(), "about": about}, as_json, lambda: print_verdict(verdict))


@dataclass(frozen=True, slots=True)
class Compared:
    """What was compared, and among what: texts, names, the reference and the settings."""

    one: list[str]
    two: list[str]
    names: tuple[str, str]
    reference: tuple[str, Any] | None
    settings: dict[str, Any]


def write_verdict_page(file: Path, verdict: Any, case: Compared, style: Any) -> None:
    """Write the page of a verdict; passages that a model finds alike are shown where a model took part."""
    from idiograph.answer.explain import find_reasons
    from idiograph.answer.reference import read_reference
    from idiograph.answer.report import verdict_page, verdict_trail

    reference = (case.reference[0], read_reference(case.reference[1])) if case.reference else None
    took_part = style if any(each.method == "model" for each in verdict.shares) else None
    reasons = find_reasons("\n\n".join(case.one), "\n\n".join(case.two), verdict, took_part)
    given = {name: value for name, value in case.settings.items() if value}
    write_page(file, verdict_page(reasons, case.names, verdict_trail(reasons, case.names, reference, given)))


def open_population(source: str, style: Callable[[], Any]) -> Any:
    """An index as it is, as a model has read it; of anything else the texts and who wrote each."""
    from idiograph.answer.reference import read_reference
    from idiograph.index.index import Index

    opened = open_reference(source, style)
    return opened if isinstance(opened, Index) else read_reference(opened)


def read_population(source: str, style: Callable[[], Any]) -> Any:
    """The texts of a reference and who wrote each."""
    from idiograph.answer.reference import read_reference

    return read_reference(open_reference(source, style))


def check_population(reference: str | None, corpus_folder: Path | None, other: bool) -> None:
    """A reference is there, and nothing that it takes the place of."""
    if corpus_folder:
        check_folder(corpus_folder, "corpus")
    if reference:
        check_sources([reference])
    if reference and other:
        raise SpecError("--reference takes the place of --corpus, --calibration and --anyway; give it without them")


def refuse_pairs_without(a: Path | None, reference: str | None, answers: Path | None) -> None:
    """Pairs need a reference and a file for the answers, before anything is read."""
    if a or not reference or not answers:
        raise SpecError("--pairs stands alone with --reference CORPUS and -o FILE; give both, and no other text")
    check_sources([reference])
    check_page(answers)


def answer_pairs(
    source: Path, reference: Any, target: Path, use_model: bool | None, opening: Callable[[], Any] | None
) -> None:
    """Answer pairs in the form of PAN20 to PAN23; a value of 0.5 is no answer."""
    from idiograph.answer.likelihood import posterior
    from idiograph.answer.verify import verify_each

    asked = [json.loads(line) for line in source.read_text("utf-8").splitlines() if line.strip()]
    given = ((each["pair"][0], each["pair"][1]) for each in asked)
    style = opening() if opening else None
    with bar("verifying", len(asked)) as update, target.open("w", encoding="utf-8") as file:
        for number, (each, verdict) in enumerate(
            zip(asked, verify_each(given, reference, style, use_model), strict=True), 1
        ):
            answer = {"id": each["id"], "value": posterior(verdict.llr, 1.0), "llr": verdict.llr}
            file.write(json.dumps(answer) + "\n")
            update(number, None, "verifying")
    wrote(target.parent, f"{len(asked)} answers in {target.name}")


def calibration_for(style: Any, corpus_folder: Path | None, calibration: Path | None, preset: str) -> Any:
    """What the options name; None for what lies beside the model."""
    from idiograph.answer.verify import calibrate_on_documents, open_calibration
    from idiograph.corpus.corpus import Corpus

    if corpus_folder:
        with err.status("calibrating"):
            return calibrate_on_documents(Corpus(corpus_folder), style, str(corpus_folder))
    return open_calibration(calibration, style, preset) if calibration else None


def verify_by_model(
    one: list[str], two: list[str], style: Any, known: Any, prior: float | None, anyway: bool, preset: str
) -> tuple[Any, Any]:
    """The verdict and what the calibration says of itself."""
    from idiograph.answer.verify import calibration_for_texts, has_calibration, verify

    if not known and (anyway or has_calibration(style)):
        known = calibration_for_texts(style, one + two, preset)
    if known and anyway:
        known = known.for_any_kind()
    with err.status("comparing"):
        verdict = verify(one, two, style, known, prior)
    return verdict, (known or calibration_for_texts(style, one + two, preset)).about


def verify_among(
    one: list[str],
    two: list[str],
    reference: Any,
    prior: float | None,
    use_model: bool | None,
    opening: Callable[[], Any] | None,
) -> Any:
    """The verdict that a reference gives; `opening` opens the model that was asked for."""
    from idiograph.answer.verify import verify

    with err.status("comparing the texts of the reference"):
        style = opening() if opening else None
        return verify(one, two, style, prior_odds=prior, reference=reference, use_model=use_model)


def open_reference(source: str, style: Callable[[], Any]) -> Any:
    """The documents of a corpus or of texts, or an index, which wants its model."""
    from idiograph.corpus.corpus import read_library
    from idiograph.index.index import Index
    from idiograph.store import find_manifest

    manifest = find_manifest(Path(source))
    if manifest and manifest.kind == "index":
        return Index.open(source, style())
    return read_library(source)


def print_verdict(v: Any) -> None:
    (print_silence if v.refusals else print_ratio)(v)
    for warning in v.warnings:
        out.print(f"Note: {warning}.", style="yellow", highlight=False)
    if v.checked:
        print_checked(v)
    if v.checks and not v.refusals:
        print_checks(v)
    known = v.calibration
    out.print(
        f"Learned from {known.same} same-author and {known.different} different-author pairs of {known.source}; "
        f"log10 LR from {known.low:+.2f} to {known.high:+.2f}. "
        "It holds for texts like those. Evidence, not a verdict.",
        style="dim",
        highlight=False,
    )


def print_silence(v: Any) -> None:
    out.print(f"No ratio, because: {'; '.join(v.refusals)}.", style="bold", highlight=False)
    if not v.checked:
        ways = "Give texts like yours whose writers are known: --reference CORPUS."
        out.print(
            f"What the model's score ({v.score:.3f}) means was not learned from such texts. {ways}", highlight=False
        )


def print_ratio(v: Any) -> None:
    out.print(f"log10 LR {v.llr:+.2f}: {v.words}", style="bold", highlight=False)
    out.print(f"The resemblance is {v.times}.", highlight=False)
    if v.same is None:
        out.print("That is too little to say either way.", highlight=False)
    if v.probability is not None:
        odds = f"With your prior odds of {v.prior_odds:g}:1 that one person wrote both: {v.probability:.0%}."
        out.print(odds, highlight=False)
    print_shares(v)


def print_shares(v: Any, features: int = FEATURES_SHOWN) -> None:
    """What each method adds, and the features that carry it with how often they come, per thousand words."""
    table = Table("adds", "method", title="what adds to the log10 ratio; per 1,000 words (authors: how near)")
    for column in ("feature", "first", "second", "usual", "adds"):
        table.add_column(column, justify="left" if column == "feature" else "right")
    for each in v.shares:
        if abs(each.share) < LEAST_SHARE_SHOWN and not each.features:
            continue
        table.add_row(f"{each.share:+.2f}", each.method, "", "", "", "", "")
        for sign in (1, -1):
            for one in [one for one in each.features if one.share * sign > 0][:features]:
                rates = [f"{rate:.2f}" for rate in (one.a, one.b, one.usual)]
                rates[2] = "" if one.kind == "author" else rates[2]
                table.add_row("", "", literal(f"“{one.feature}”"), *rates, f"{one.share:+.3f}")
    if table.row_count:
        out.print(table)


def print_checks(v: Any) -> None:
    """What the calibration of a kind was checked on."""
    table = Table("pairs", title=f"Calibration for {v.kind}, checked on writers of whom it knew nothing")
    for column in ("one hand", "two hands", "Cllr", "AUC"):
        table.add_column(column, justify="right")
    for row in v.checks:
        table.add_row(row.pairs, str(row.same), str(row.different), f"{row.cllr:.2f}", f"{row.auc:.2f}")
    out.print(table)


def print_checked(v: Any) -> None:
    """What the ratio was checked on, by length of text; how its promises were kept at the length nearest to these texts."""
    checked, here = v.checked, v.checked_at
    whose = f"{checked.texts} texts by {checked.authors} authors ({checked.lang})"
    table = Table("texts cut to", title=f"Checked on {whose}, each pair by weights that saw neither text")
    for column in ("one hand", "two hands", "Cllr", "AUC"):
        table.add_column(column, justify="right")
    for row in checked.lengths:
        shown = (str(row.same), str(row.different), f"{row.cllr:.2f}", f"{row.auc:.2f}")
        table.add_row(length_in_words(row) + (" *" if row == here else ""), *shown)
    out.print(table)
    curve = Table("promised", title=f"* probability of one hand at even odds, texts {length_in_words(here)}")
    curve.add_column("came true", justify="right")
    curve.add_column("pairs", justify="right")
    for promised, true, count in here.reliability:
        curve.add_row(f"{promised:.0%}", f"{true:.0%}", str(count))
    if here.reliability:
        out.print(curve)


def length_in_words(row: Any) -> str:
    return f"{row.words} words" if row.words else "whole"


def calibrate_command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model folder, or `default`.")],
    folders: Annotated[
        list[str],
        typer.Argument(
            metavar="CORPUS|TRIPLETS…", help="Texts of known writers; FOLDER@LABEL where folders differ in --label."
        ),
    ],
    label: Label = None,
    split: Split = None,
    method: Annotated[str | None, typer.Option(help="logistic, kde or isotonic.")] = None,
    pairs: Annotated[int | None, typer.Option(help="Same-author pairs to draw, at most.", min=1)] = None,
    patch: Patch = None,
    keep: Keep = None,
    file: Annotated[Path | None, typer.Option("--out", "-o", help="Write it here, not into the model folder.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also measure it, leaving out one writer at a time; a folder for the report.")
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(help="Measure this ranker on the same pairs; may be repeated (ngrams, delta, …)."),
    ] = None,
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Learn from known pairs what a model's scores mean. What was learned is kept beside the model."""
    given = {"label": label, "split": tuple(split) if split else None, "method": method, "pairs": pairs}
    chosen = settings(preset, recipe_file, {"calibrate": given, "style": {"keep": keep}})
    check_reading(model, patch, keep)
    check_sources([each if Path(each).exists() else each.rpartition("@")[0] or each for each in folders])
    check_rankers(against or ())
    check_report(report)

    from idiograph.answer.pairs import open_mixture
    from idiograph.answer.verify import calibration_path, learn_from_pairs
    from idiograph.loading import load_ranker

    target = file or calibration_path(model)
    if not target.parent.is_dir():
        raise ArtifactError(f"there is no folder '{target.parent}' to keep the calibration in; name a file with -o")
    if target.exists() and not overwrite:
        raise ArtifactError(f"'{target}' is there already; choose another -o, or pass --overwrite")
    with err.status("drawing pairs"):
        found, source = open_mixture(folders, chosen.calibrate)
    style = open_style(model, patch, keep)
    with bar("calibrating") as update:
        known = learn_from_pairs(found, style, source, chosen.calibrate, preset=preset, progress=update)
    known.save(target)
    if report:
        others = [load_ranker(name) for name in against or ()]
        measured = verify_systems([(each.name, each) for each in (style, *others)], folders, report, chosen)
        if not as_json:
            print_verified(measured)
    say({"file": str(target), **known.to_json()}, as_json, lambda: print_calibration(target, known))


def print_calibration(target: Path, known: Any) -> None:
    c = known.calibration
    out.print(
        f"{target}: {c.method}, from {c.same} same-author and {c.different} different-author pairs; "
        f"log10 LR from {c.low:+.2f} to {c.high:+.2f}",
        highlight=False,
        soft_wrap=True,
    )


def verify_systems(
    systems: Sequence[tuple[str, Any]], folders: Path | Sequence[str], report: Path | None, chosen: Any
) -> list[Any]:
    """Measure systems on the pairs of one folder or several, each pair calibrated on the pairs of other writers."""
    import numpy as np

    from idiograph.answer.likelihood import INCONCLUSIVE, cross_fit
    from idiograph.answer.pairs import open_mixture
    from idiograph.answer.verify import score_known_pairs
    from idiograph.evaluate.verification import Judged, measure_verification, write_verification

    given = [str(folders)] if isinstance(folders, Path) else folders
    pairs, source = open_mixture(given, chosen.calibrate)
    name_of_pairs = ", ".join(Path(folder).name for folder in given)
    results = []
    with bar("verifying", len(systems)) as update:
        for number, (name, ranker) in enumerate(systems):
            update(number, None, f"verifying with {name}")
            known = score_known_pairs(pairs, ranker)
            llr = cross_fit(known, [p.writers for p in pairs], chosen.calibrate.method)
            judged = Judged(known.scores, llr, np.asarray(known.same), tuple(p.anchor for p in pairs), INCONCLUSIVE)
            how = (chosen.evaluate.resamples // 5, chosen.evaluate.seed)
            results.append(measure_verification(judged, name, name_of_pairs, *how))
    if report:
        about = {"preset": chosen.preset, "source": source, "recipe": chosen.calibrate.model_dump()}
        write_verification(results, report, about)
    return results


def print_verified(results: Sequence[Any]) -> None:
    from idiograph.evaluate.verification import SUMMARY

    first = results[0]
    table = Table(title=f"{first.pairs}: {first.same} pairs by one hand, {first.different} by two", padding=(0, 0))
    table.add_column("system")
    for name in SUMMARY:
        table.add_column(name, justify="right", no_wrap=True)
    for one in results:
        table.add_row(one.system.replace(" @ ", "\n@ "), *(f"{one[name].value:.3f}" for name in SUMMARY))
    out.print(table)
    out.print("Each pair was calibrated on the pairs of other writers.", style="dim")
