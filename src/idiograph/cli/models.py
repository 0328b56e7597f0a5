"""Commands about models: evaluate, compare."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from idiograph.cli.checks import check_rankers, check_report, check_triplets
from idiograph.cli.shared import AsJson, Keep, Preset, RecipeFile, bar, out, say, settings, with_note
from idiograph.errors import InputError
from idiograph.extras import is_installed

Measure = Annotated[str, typer.Option(help="R@K, Hit@K, nDCG@K or RR.")]


def evaluate_command(
    rankers: Annotated[
        list[str],
        typer.Argument(
            help="Models (MODEL@GRAIN, native:MODEL), `default`, bm25, delta, ngrams, words, function-words or stop-words; "
            "last the TRIPLETS."
        ),
    ],
    patch: Annotated[list[str] | None, typer.Option(help="Read the models at this grain; may be repeated.")] = None,
    keep: Keep = None,
    split: Annotated[str | None, typer.Option(help="train, valid or test.")] = None,
    config: Annotated[
        list[str] | None, typer.Option(help="Only these, such as base-4; default: all there are.")
    ] = None,
    pool: Annotated[str | None, typer.Option(help="natural, equal (all cut to the smallest) or a number.")] = None,
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    out_folder: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write report.json, report.md and what `compare` reads.")
    ] = None,
    trec: Annotated[bool, typer.Option("--trec", help="Write TREC runs and qrels there, too.")] = False,
    beir: Annotated[bool, typer.Option("--beir", help="Write the benchmark there as BEIR, too.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Pairs of texts instead: likelihood ratios, Cllr, EER, …")
    ] = False,
    label: Annotated[str | None, typer.Option(help="With --verify and a corpus: whose text it is (see mine).")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure rankers by retrieval on held-out triplets. RANKER [RANKER …] TRIPLETS; a BEIR folder will do, too."""
    if len(rankers) < 2:
        raise InputError("name at least one ranker and the triplets: idiograph evaluate default bm25 data/base-4")
    if (trec or beir) and not out_folder:
        raise InputError("say with -o where the files should go")
    size = int(pool) if pool and pool.isdigit() else pool
    asked = {"evaluate": {"split": split, "pool": size}, "style": {"keep": keep}}
    if verify:
        asked = {"calibrate": {"label": label, "split": (split,) if split else None}, "style": {"keep": keep}}
    chosen = settings(preset, recipe_file, asked)
    check_triplets(Path(rankers[-1]))
    check_report(out_folder)
    check_rankers(rankers[:-1], patch or (), keep)
    if verify:
        systems = open_rankers(rankers[:-1], patch or [], reading_of_name(chosen, keep))
        verify_pairs(systems, Path(rankers[-1]), out_folder, as_json, chosen)
        return

    from idiograph.evaluate.retrieval import evaluate_ranker as evaluate_
    from idiograph.evaluate.retrieval import size_pools, write_evaluation
    from idiograph.mining.benchmark import open_benchmarks

    found = open_benchmarks(Path(rankers[-1]), chosen.evaluate.split, config or ())
    benchmarks = size_pools(found, chosen.evaluate.pool, chosen.evaluate.seed)
    reports: list[Any] = []
    with bar("evaluating") as update:
        options = {**reading_of_name(chosen, keep), "progress": update}
        for ranker in open_rankers(rankers[:-1], patch or [], options):
            reports += [evaluate_(ranker, each, chosen.evaluate, update, pairs_by_model) for each in benchmarks]
    if out_folder:
        write_evaluation(reports, benchmarks, out_folder, chosen.evaluate, trec=trec, beir=beir)
    say([report.to_json() for report in reports], as_json, lambda: print_model_reports(reports))


def pairs_by_model(*given: Any) -> Any:
    """How a model's passages are compared: the fast way where torch is there, which without a model nobody needs to open."""
    if is_installed("torch"):
        from idiograph.neural.maxsim.pruned import fast_score_blocks as compared
    else:
        from idiograph.evaluate.retrieval import full_precision_blocks as compared
    return compared(*given)


def verify_pairs(rankers: Iterator[Any], source: Path, folder: Path | None, as_json: bool, chosen: Any) -> None:
    """How good the likelihood ratios of each ranker are on pairs of held-out authors."""
    from idiograph.cli.verification import print_verified, verify_systems

    found = verify_systems([(ranker.name, ranker) for ranker in rankers], source, folder, chosen)
    say([each.to_json() for each in found], as_json, lambda: print_verified(found))


def compare_command(
    reports: Annotated[list[Path], typer.Argument(help="Folders that `evaluate -o` wrote.")],
    measure: Measure = "R@20",
    as_json: AsJson = False,
) -> None:
    """Say which ranker beats which, with intervals. Paired differences over the same anchors, resampled by author-set."""
    for folder in reports:
        if not folder.exists():
            raise InputError(f"there is no folder '{folder}'; write it: idiograph evaluate RANKER TRIPLETS -o {folder}")

    from idiograph.evaluate.compare import compare_rankers as compare_
    from idiograph.evaluate.compare import read_values

    found = compare_([values for folder in reports for values in read_values(folder)], measure)
    say([each.to_json() for each in found], as_json, lambda: print_differences(found))


def print_differences(found: Sequence[Any]) -> None:
    for name in dict.fromkeys(each.benchmark for each in found):
        table = Table(title=f"{name}, {found[0].measure}: first minus second")
        for column in ("first", "second", "difference", "verdict"):
            table.add_column(column)
        for d in (each for each in found if each.benchmark == name):
            gap = with_note(f"{d.value:+.3f}", f" {d.low:+.3f} to {d.high:+.3f}")
            table.add_row(d.first, d.second, gap, d.verdict)
        out.print(table)
    pairs = len(found)
    note = "95 % intervals" if pairs == 1 else f"Intervals are wide enough for all {pairs} comparisons together"
    out.print(f"{note}: at most one chance in twenty that any verdict is wrong.", style="dim")


def reading_of_name(chosen: Any, keep: str | None) -> dict[str, Any]:
    """How a model reads and compares, by the recipe."""
    return {"keep": keep, "score": chosen.style.score, "beyond": chosen.style.beyond}


def open_rankers(names: Sequence[str], grains: Sequence[str], options: Mapping[str, Any]) -> Iterator[Any]:
    """Each ranker that is named; a model at each grain. A model is opened once, and its texts are read once."""
    from idiograph.loading import BASELINES, NATIVE, load_ranker, model_and_grain, terms

    wanted: dict[str, list[str | None]] = {}
    for name in names:
        plain = name in BASELINES or name.startswith(NATIVE) or len(terms(name)) > 1
        model, grain = (name, None) if plain else model_and_grain(name)
        wanted.setdefault(model, []).extend([grain] if grain or plain else list(grains) or [None])
    for model, asked in wanted.items():
        ranker: Any = load_ranker(model, **options)
        if not hasattr(ranker, "at") or len(asked) == 1:
            yield from (ranker.at(grain) if grain else ranker for grain in asked)
            continue
        with ranker.encoder.remembering():
            yield from (ranker.at(grain) if grain else ranker for grain in asked)


def print_model_reports(reports: Sequence[Any]) -> None:
    for name in dict.fromkeys(report.benchmark for report in reports):
        print_reports([report for report in reports if report.benchmark == name])


def print_reports(reports: Any) -> None:
    first = reports[0]
    table = Table(title=f"{first.benchmark}: {first.anchors} anchors, {first.pool} passages", padding=(0, 0))
    table.add_column("ranker", no_wrap=True)
    left_out = ("R@5", "Hit@5") if out.width < 100 else ()  # a narrow terminal shows fewer; --json has all
    for row in (row for row in first.rows if row.measure not in left_out):
        table.add_column(row.measure.replace(" ", "\n"), justify="right", no_wrap=True)
    table.add_column("topic", justify="right", no_wrap=True)
    for report in reports:
        cells = [
            with_note(f"{row.value:.3f}", f"\n{two_digits(row.low)}–{two_digits(row.high)}")
            for row in report.rows
            if row.measure not in left_out
        ]
        table.add_row(report.ranker.replace(" @ ", "\n@ "), *cells, f"{100 * report.same_field:.0f} %")
    out.print(table)
    out.print(
        f"Below each value its 95 % interval; topic: how often the first hit is from the anchor's field. "
        f"Relevant: {first.relevance}.",
        style="dim",
    )


def two_digits(value: float) -> str:
    """Two decimals without the leading zero: .32"""
    return f"{value:.2f}".replace("0.", ".")
