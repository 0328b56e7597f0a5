"""Commands that make a corpus and triplets of texts: corpus, mine, audit, topic."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from idiograph.cli.checks import (
    check_choice,
    check_folder,
    check_output,
    check_page,
    check_report,
    check_runner,
    check_sources,
    check_triplets,
    count_files,
)
from idiograph.cli.shared import (
    Address,
    AsJson,
    Overwrite,
    Preset,
    RecipeFile,
    Runner,
    Shard,
    Workers,
    bar,
    err,
    out,
    say,
    settings,
    wrote,
)
from idiograph.errors import InputError

if TYPE_CHECKING:
    from idiograph.corpus.corpus import Corpus
    from idiograph.recipe import MineRecipe

HELP = "Text folders, .jsonl(.zst), Parquet, TEI and JATS folders with their records, `anthology`, `synth:…`; or `stats CORPUS`."

NEGATIVES = (
    "domain (any of the field), lexical (the nearest in words), matched (as near as the positive), or any (of all)."
)
SplitsFrom = Annotated[
    list[Path] | None, typer.Option(help="Other triplets: whoever is in them stays in the split they are in there.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say who would be in which split and what is lost; draw nothing.")
]


Text = str | None
Citing = Annotated[Text, typer.Option(help="keep, mask, drop or published: names in citations give authors away.")]
Formulae = Annotated[Text, typer.Option(help="mask or drop.")]
KeepDuplicates = Annotated[bool, typer.Option("--keep-duplicates", help="Do not collapse versions of one work.")]
Signals = Annotated[bool, typer.Option("--signals", help="Write quality signals of every document, too.")]
Tokenizer = Annotated[
    Path | None, typer.Option(help="A tokenizer.json, whose tokens the signals and `stats` count as well.")
]
Models = Annotated[
    Path | None,
    typer.Option(help="A folder of language models (`corpus language-model`, or KenLM's), for the signals."),
]
AuthorList = Annotated[
    Path | None,
    typer.Option(
        help="A CSV with id, title, authors of papers that do not name theirs; written to fill in if missing."
    ),
]
Export = Annotated[Text, typer.Option(help="Write a corpus in another form: halvest (with its records, their times).")]
PerFile = Annotated[int, typer.Option(help="With --export: documents in a file.", min=1)]


def corpus_command(
    sources: Annotated[list[str], typer.Argument(help=HELP)],
    out_folder: Annotated[Path | None, typer.Option("--out", "-o", help="The folder to write.")] = None,
    authors: AuthorList = None,
    citations: Citing = None,
    formulae: Formulae = None,
    keep_duplicates: KeepDuplicates = False,
    signals: Signals = False,
    tokenizer: Tokenizer = None,
    perplexity: Models = None,
    export: Export = None,
    per_file: PerFile = 2000,
    shard: Shard = "1/1",
    runner: Runner = "inline",
    workers: Workers = None,
    address: Address = None,
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Read texts with their authors into a corpus folder. `corpus stats FOLDER` shows what is in one; `corpus
    language-model FOLDER` learns a language model of its characters."""
    check_tokenizer(tokenizer)
    if sources[0] == "stats":
        return stats_command(sources[1:], out_folder, tokenizer, as_json)
    if out_folder is None:
        raise InputError("say where the corpus goes: idiograph corpus TEXTS -o FOLDER")
    if sources[0] == "language-model":
        return language_model_command(sources[1:], out_folder, overwrite, as_json)
    if export:
        return export_command(export, sources, out_folder, per_file, overwrite, as_json)
    given = {"citations": citations, "formulae": formulae, "signals": signals or bool(tokenizer or perplexity) or None}
    given |= {"duplicates": "keep" if keep_duplicates else None}
    given |= {"tokenizer": str(tokenizer) if tokenizer else None, "perplexity": str(perplexity) if perplexity else None}
    chosen = settings(preset, recipe_file, {"corpus": given}).corpus
    check_sources(sources)
    check_output(out_folder, overwrite)
    check_perplexity(chosen.perplexity)
    check_runner(runner)
    if authors and not authors.exists():
        return list_papers(sources, authors, as_json)
    pool = {"runner": runner, "count": workers, "address": address}
    return build_command(sources, out_folder, chosen, authors, {"overwrite": overwrite, "part": shard}, pool, as_json)


def build_command(
    sources: list[str],
    out_folder: Path,
    chosen: Any,
    authors: Path | None,
    options: dict[str, Any],
    pool: dict[str, Any],
    as_json: bool,
) -> None:
    """The corpus of these sources."""
    from idiograph.corpus.build import paper_sources, read_paper_list
    from idiograph.corpus.corpus import build_corpus
    from idiograph.runner import Workers
    from idiograph.store import digest

    inputs = {f"source {at}": source for at, source in enumerate(sources)}
    listed = read_paper_list(authors) if authors else {}
    if authors:
        inputs["authors"] = digest(authors)
    with bar("reading", count_files(sources)) as update:
        workers = Workers(pool["runner"], pool["count"], pool["address"], update)
        items = paper_sources(sources, listed)
        built = build_corpus(items, out_folder, chosen, inputs=inputs, workers=workers, **options)
    for failure in built.failures[:20]:
        err.print(f"left out: {failure.where}: {failure.reason}", markup=False, highlight=False, soft_wrap=True)
    if len(built.failures) > 20:
        more = f"left out: {len(built.failures) - 20} more; see {out_folder}/left_out.csv"
        err.print(more, highlight=False, soft_wrap=True)
    found = {"documents": built.documents, "languages": built.languages, "dropped": built.dropped}
    say(found, as_json, lambda: wrote(out_folder, f"{built.documents} documents", built.dropped))


def list_papers(sources: list[str], path: Path, as_json: bool) -> None:
    """A list of the papers to fill in."""
    check_page(path)

    from idiograph.corpus.build import write_paper_list

    with bar("listing", count_files(sources)):
        count = write_paper_list(sources, path)
    hint = "fill in `authors` (separated by ;) and run the same command again"
    say({"papers": count, "list": str(path)}, as_json, lambda: wrote(path, f"{count} papers; {hint}"))


def check_perplexity(folder: str) -> None:
    if folder:
        from idiograph.text.ngrams import check_language_models

        check_language_models(folder)


def export_command(
    form: str, folders: list[str], out_folder: Path, per_file: int, overwrite: bool, as_json: bool
) -> None:
    """A corpus, perhaps with the records that it was made of, in a form that others know."""
    check_choice("form to export to", form, ("halvest",))
    if len(folders) > 2:
        raise InputError(
            "name a corpus, and perhaps its records: idiograph corpus data/corpus data/records --export halvest -o OUT"
        )
    check_folder(folders[0], "corpus")
    for records in folders[1:]:
        check_folder(records, "records")
    check_output(out_folder, overwrite)

    from idiograph.corpus.corpus import Corpus
    from idiograph.corpus.export import export_corpus

    with bar("writing"):
        counts = export_corpus(
            Corpus(Path(folders[0])), out_folder, *map(Path, folders[1:]), per_file=per_file, overwrite=overwrite
        )
    found = {"documents": sum(counts.values()), "languages": counts}
    say(found, as_json, lambda: wrote(out_folder, f"{found['documents']} documents in {len(counts)} languages"))


def check_tokenizer(path: Path | None) -> None:
    """A tokenizer that can be opened, before anything else is done."""
    if path:
        from idiograph.text.subwords import open_subwords

        open_subwords(str(path))


def language_model_command(folders: list[str], out_folder: Path, overwrite: bool, as_json: bool) -> None:
    """A language model of characters for each language of a corpus."""
    if len(folders) != 1:
        raise InputError("name one corpus folder: idiograph corpus language-model data/corpus -o models/characters")
    check_folder(folders[0], "corpus")
    check_output(out_folder, overwrite)

    from idiograph.corpus.corpus import Corpus
    from idiograph.corpus.signals import learn_language_models

    with bar("learning"):
        learned = learn_language_models(Corpus(Path(folders[0])), out_folder, overwrite)
    say({"characters": learned}, as_json, lambda: wrote(out_folder, f"models of {', '.join(sorted(learned))}"))


def stats_command(folders: list[str], out_folder: Path | None, tokenizer: Path | None, as_json: bool) -> None:
    """What is in a corpus; with -o also as a page with figures."""
    if len(folders) != 1:
        raise InputError("name one corpus folder: idiograph corpus stats data/corpus")
    check_folder(folders[0], "corpus")
    check_report(out_folder)

    from idiograph.corpus.corpus import Corpus
    from idiograph.corpus.stats import corpus_statistics
    from idiograph.html import render
    from idiograph.loading import default_folder
    from idiograph.plots.panels import horizontal_bars
    from idiograph.text.subwords import SubwordCounter

    with bar("counting"):
        own = SubwordCounter(str(tokenizer)) if tokenizer else None
        found = corpus_statistics(Corpus(Path(folders[0])), own, own or SubwordCounter(str(default_folder())))
    if out_folder:
        out_folder.mkdir(parents=True, exist_ok=True)
        words = {"words": found.word_entropy, "trigrams": found.trigram_entropy}
        entropy = {
            f"{kind}, corrected": {n or "(none)": e.corrected for n, e in v.items()} for kind, v in words.items()
        }
        sizes = {"documents": {str(size): float(count) for size, count in sorted(found.author_sets.sizes.items())[:12]}}
        figures = {"entropy": horizontal_bars(entropy, "bits"), "sizes": horizontal_bars(sizes, "documents")}
        page = render("stats.html", title="What is in the corpus", found=found, folder=folders[0], **figures)
        (out_folder / "stats.html").write_text(page, encoding="utf-8")
        err.print(f"wrote {out_folder / 'stats.html'}", highlight=False, soft_wrap=True)
    value = {**asdict(found), "cells": {" ".join(cell): asdict(t) for cell, t in found.cells.items()}}
    say(value, as_json, lambda: print_stats(found))


def print_stats(found: Any) -> None:
    for title, tallies in (("language", found.languages), ("field", found.domains)):
        table = Table(title)
        for name in ("documents", "words", "with this label"):
            table.add_column(name, justify="right")
        holding = {name: tally for name, tally in tallies.items() if tally.documents}
        for name, tally in list(holding.items())[:25]:
            table.add_row(name or "(none)", f"{tally.documents:,}", f"{tally.tokens:,}", f"{tally.labelled:,}")
        out.print(table)
        if len(tallies) > len(holding):
            out.print(f"{len(tallies) - len(holding)} more fields are named only beside another one", highlight=False)
    sets = found.author_sets
    out.print(f"{sets.sets:,} author-sets, {sets.recurring:,} with several documents; mean size {sets.mean_size:.2f}")
    lengths = ", ".join(f"{size}: {found.spans[size].mean:.0f}" for size in found.spans)
    out.print(f"words and marks in a span, by its number of sentences: {lengths}", highlight=False)
    longest = found.spans[max(found.spans)]
    if longest.fertility:
        made = f"{100 * longest.punctuation:.0f} % of these are marks; {longest.fertility:.2f} subwords for each word"
        out.print(made, highlight=False)
    print_faults(found)


def print_faults(found: Any) -> None:
    """What extraction does badly, where it is more than nothing."""
    table = Table("of 100 documents in")
    titles = {"right_to_left": "right to left", "wrong_order": "of these backwards", "unspaced": "no spaces"}
    titles |= {"formulae": "formulae"}
    for name in (*titles.values(), "sentences with one"):
        table.add_column(name, justify="right")
    hit = {**found.faults_by_language, **found.faults_by_domain}
    for name, each in list(hit.items())[:25]:
        if any(each.shares.values()):
            cells = (f"{100 * each.shares[fault]:.1f}" for fault in titles)
            table.add_row(name, *cells, f"{100 * each.sentences_with_formulae:.1f} %")
    if table.row_count:
        out.print(table)


FieldCodes = Annotated[
    Text, typer.Option(help="auto (those with documents enough), 13 (HAL's), all, or a file with a code a line.")
]


def mine_command(
    corpus_folder: Annotated[Path, typer.Argument(metavar="CORPUS", help="A corpus folder.")],
    out_folder: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder to write. Not needed with --dry-run.")
    ] = None,
    rule: Annotated[list[str] | None, typer.Option(help="base, unrestricted or ict; may be repeated.")] = None,
    sentences: Annotated[list[int] | None, typer.Option(help="Sentences in a span; may be repeated.")] = None,
    per_document: Annotated[int | None, typer.Option(help="Triplets with an anchor in one document.")] = None,
    label: Annotated[str | None, typer.Option(help="identified, set, first, last or single.")] = None,
    negatives: Annotated[str | None, typer.Option(help=NEGATIVES)] = None,
    positives: Annotated[str | None, typer.Option(help="any, or far (the farthest in words).")] = None,
    candidates: Annotated[
        int | None, typer.Option(help="Of how many the nearest, matching or farthest is taken.")
    ] = None,
    containers: Annotated[
        str | None, typer.Option(help="apart (a positive is from another book), or any (two chapters of one will do).")
    ] = None,
    fields: FieldCodes = None,
    lang: Annotated[str | None, typer.Option(help="Language of the documents; `any` for all.")] = None,
    apart: Annotated[
        list[Path] | None, typer.Option(help="Other triplets: whoever is validated or tested there is not in train.")
    ] = None,
    splits_from: SplitsFrom = None,
    dry_run: DryRun = False,
    seed: Annotated[int | None, typer.Option(help="Another seed, another draw.")] = None,
    runner: Runner = "inline",
    workers: Workers = None,
    address: Annotated[str | None, typer.Option(help="With `--runner ray`: the cluster, as HOST:PORT.")] = None,
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Draw triplets from a corpus, split by groups of co-authors. Anchor and positive have one author-set and two
    documents. First it says who is in which split and what is lost; that takes seconds."""
    given: dict[str, Any] = {"per_document": per_document, "label": label, "lang": lang, "seed": seed}
    given |= {"rule": rule or None, "sentences": sentences or None, "negatives": negatives, "positives": positives}
    given |= {"candidates": candidates, "containers": containers, "field_codes": read_fields(fields)}
    chosen = settings(preset, recipe_file, {"mine": given}).mine
    check_triplets(*apart or (), *splits_from or ())
    check_mining(corpus_folder, None if dry_run else out_folder or Path(), overwrite)
    check_runner(runner)

    from idiograph.corpus.corpus import Corpus
    from idiograph.mining.mine import mine_plan
    from idiograph.mining.plan import plan_mining
    from idiograph.runner import Workers

    opened = Corpus(corpus_folder)
    chosen = without_unknown_fields(opened, chosen) if negatives is None else chosen
    with bar("reading authors and fields"):
        plan = plan_mining(opened, chosen, tuple(apart or ()), tuple(splits_from or ()))
    if dry_run or out_folder is None:
        return say(plan.to_json(), as_json, lambda: print_plan(plan, out))
    print_plan(plan, err)
    with bar("drawing", len(opened)) as update:
        counts = mine_plan(plan, out_folder, overwrite, Workers(runner, workers, address, update))
    return say(counts, as_json, lambda: print_counts(out_folder, counts))


def check_mining(corpus: Path, out_folder: Path | None, overwrite: bool) -> None:
    """Is there a corpus, and a place for its triplets? None: none is needed."""
    check_folder(corpus, "corpus")
    if out_folder == Path():
        raise InputError("say where the triplets go: idiograph mine CORPUS -o FOLDER (or only look: --dry-run)")
    if out_folder:
        check_output(out_folder, overwrite)


def without_unknown_fields(corpus: "Corpus", recipe: "MineRecipe") -> "MineRecipe":
    """Where no document names its field, negatives cannot be drawn from it."""
    from idiograph.mining.catalog import names_fields

    if recipe.negatives != "domain" or names_fields(corpus):
        return recipe
    err.print("no document names its field: negatives are drawn from all of them", style="dim")
    return recipe.model_copy(update={"negatives": "any"})


def print_plan(plan: Any, console: Console) -> None:
    """Who is in which split, by what there is to draw from, and what is lost."""
    table = Table(
        "split", caption="in %: documents by 1, 2, 3 and more people; anchors have another document by their author-set"
    )
    for name in ("documents", "author-sets", "by 1", "2", "3", "4+", "anchors", "by 1"):
        table.add_column(name, justify="right")
    for each in plan.sizes:
        shares = (f"{100 * share:.0f}" for share in each.by_authors)
        anchors = (f"{each.anchors:,}", f"{100 * each.single_anchors:.0f}")
        table.add_row(each.name, f"{each.documents:,}", f"{each.author_sets:,}", *shares, *anchors)
    console.print(table)
    for reason, count in plan.catalog.dropped.items():
        console.print(f"  left out {count:>7,}  {reason}", markup=False, highlight=False, soft_wrap=True)
    text = f"{100 * plan.lost:.1f} % of {plan.asked:,} documents are lost because their authors are in several splits"
    console.print(text, highlight=False, soft_wrap=True)


def read_fields(choice: str | None) -> Any:
    """A word that the recipe knows, or the codes in a file."""
    if choice is None or choice in ("all", "auto", "13"):
        return choice
    if not Path(choice).is_file():
        raise InputError(
            f"--fields '{choice}' is neither all, auto or 13 nor a file; write one code a line into a file"
        )
    from idiograph.corpus.formats import read_file

    return tuple(line.strip() for line in read_file(Path(choice)).splitlines() if line.strip())


def print_counts(folder: Path, counts: Any) -> None:
    for name, splits in counts.items():
        text = ", ".join(f"{split} {count}" for split, count in splits.items())
        wrote(folder, f"triplets {name}: {text}")


def audit_command(
    triplets: Annotated[Path, typer.Argument(help="A triplet folder, ours or a published one.")],
    as_json: AsJson = False,
) -> None:
    """Look for leaks between the splits of triplets. Exit 1 if there are any."""
    check_triplets(triplets)

    from idiograph.mining.audit import audit_triplets as audit_

    with bar("looking") as update:
        found = audit_(triplets, update)
    say(found.to_json(), as_json, lambda: print_audit(found))
    if not found.sound:
        raise typer.Exit(1)


def print_audit(found: Any) -> None:
    table = Table(title=f"{found.folder} ({found.preset})")
    for name in ("", "distinct authors", "documents", "spans", "sentences"):
        table.add_column(name, justify="right" if name else "left")
    for split, sizes in found.sizes.items():
        table.add_row(split, *(f"{sizes.get(k, 0):,}" for k in ("authors", "documents", "spans", "sentences")))
    out.print(table)
    for fault in found.faults:
        out.print(f"leak: {fault}", style="yellow", highlight=False, markup=False)
    out.print("no leak was found" if found.sound else "these triplets do not keep what `sound` promises", style="bold")


def topic_command(
    triplets: Annotated[list[Path], typer.Argument(help="Triplet folders.")],
    out_folder: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write topic.html and topic.json.")
    ] = None,
    split: Annotated[str, typer.Option(help="train, valid, test or all.")] = "test",
    limit: Annotated[int, typer.Option(help="Triplets to look at in each configuration.", min=10)] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Say how far topic gives authors away in triplets. Shared words, and how far BM25 gets by them; published numbers beside."""
    check_choice("split", split, ("train", "valid", "test", "all"))
    check_triplets(*triplets)
    check_report(out_folder)

    from idiograph.evaluate.topic import check_topic as topic_
    from idiograph.evaluate.topic import write_topic_report

    with bar("checking") as update:
        found = topic_(triplets, split, limit=limit, progress=update)
    if out_folder:
        err.print(f"wrote {write_topic_report(found, out_folder)}", highlight=False, soft_wrap=True)
    say(found.to_json(), as_json, lambda: print_topic(found))


def print_topic(found: Any) -> None:
    """A row for each way of guessing by topic, so that 80 columns are enough."""
    table = Table("triplets", "guessing by")
    for name in ("right of 100", "95 %", "paper"):
        table.add_column(name, justify="right")
    for each in found.checked:
        for number, row in enumerate(each.accuracy):
            interval = f"{100 * row.low:.0f}–{100 * row.high:.0f}"
            paper = f"{each.paper:.1f}" if each.paper and not number else ""
            name = each.name if not number else ""
            table.add_row(
                name, row.measure, f"{100 * row.value:.1f}", interval, paper, end_section=row is each.accuracy[-1]
            )
    out.print(table)
    for each in found.checked:
        signal, noise = each.words.signal.mean, each.words.noise.mean
        line = f"{each.name}: {each.triplets} triplets; words in common: signal {signal:.3f}, noise {noise:.3f}"
        out.print(line, highlight=False, markup=False, soft_wrap=True)
