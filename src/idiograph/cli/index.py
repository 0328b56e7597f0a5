"""Commands that make, change and search an index."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.table import Table

from idiograph.cli.checks import check_folder, check_output, check_reading, check_runner, check_sources, check_texts
from idiograph.cli.progress import Update
from idiograph.cli.shared import (
    Address,
    AsJson,
    Keep,
    Lang,
    Model,
    Overwrite,
    Patch,
    Preset,
    RecipeFile,
    Runner,
    Workers,
    bar,
    open_style,
    out,
    read_text,
    say,
    settings,
    shorten_text,
)
from idiograph.errors import InputError, SpecError
from idiograph.recipe import Recipe
from idiograph.runner import MAX_WORKERS

T = TypeVar("T")
Place = Annotated[str, typer.Option("--out", "-o", help="The index: a folder or s3://bucket/place.")]
Domains = Annotated[list[str] | None, typer.Option("--domain", help="Only documents of this field, or below it.")]


def index(
    place: Place,
    corpus: Annotated[
        str | None, typer.Argument(metavar="[CORPUS]", help="A corpus folder, or texts: a folder of Author_title.txt.")
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Add to the index, replacing documents that are there.")] = False,
    delete: Annotated[list[str] | None, typer.Option(help="Remove the document with this id; may be repeated.")] = None,
    compact: Annotated[bool, typer.Option("--compact", help="Give back the space of what was removed.")] = False,
    info: Annotated[bool, typer.Option("--info", help="Only say what is in the index.")] = False,
    model: Model = "default",
    patch: Patch = None,
    keep: Keep = None,
    dtype: Annotated[str | None, typer.Option(help="Numbers of a vector: float32, float16, int8 or int4.")] = None,
    dim: Annotated[int | None, typer.Option(help="Directions of the vectors to keep; fewer lose accuracy.")] = None,
    passages_per_document: Annotated[
        int | None, typer.Option(help="Passages of a document at most, from all over it; 0: all.  [default: 200]")
    ] = None,
    runner: Runner = "inline",
    workers: Workers = None,
    address: Address = None,
    gpus: Annotated[float, typer.Option(help="GPUs of each Ray worker, 0.5 for half of one.", min=0)] = 0,
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Embed a corpus into an index that knows its writers. Or change an index, or say what is in it."""
    changes = {"dtype": dtype, "dim": dim, "passages_per_document": passages_per_document}
    chosen = settings(preset, recipe_file, {"style": {"keep": keep}, "index": changes})
    check_index_options(corpus, add, bool(delete) or compact or info, [n for n, v in changes.items() if v is not None])
    check_reading(model, patch, keep)
    check_runner(runner, gpus)
    if corpus:
        check_sources([corpus])
    if corpus and not add:
        check_output(place, overwrite)
    else:
        check_folder(place, "index")

    from idiograph.index.build import EmbeddingWorkers
    from idiograph.index.index import Index
    from idiograph.loading import load
    from idiograph.runner import Workers

    style = open_style(model, patch, keep, chosen.style.score)
    embedders = EmbeddingWorkers(
        Workers(runner, workers or None, address, gpus=gpus),
        partial(load, None if model == "default" else model, **grain(style)),
    )
    if corpus is None:
        opened = Index.open(place, style)
        change(opened, delete or [], compact)
        note = ""
    else:
        with bar("embedding passages") as update:
            opened = embed_corpus(corpus, place, style, chosen, embedders, add=add, overwrite=overwrite, update=update)
            update(len(opened.documents), len(opened.documents), "calibrating")
            note = calibrate_new_index(opened)
    say(print_index_note(opened, note), as_json, lambda: print_index(opened, note))


def check_index_options(corpus: str | None, add: bool, other: bool, fixed: list[str]) -> None:
    """Refuse options that do not go together."""
    if corpus is None and not other:
        raise SpecError("give a CORPUS to index, or --delete, --compact or --info for an index that is there")
    if corpus is not None and other:
        raise SpecError("--delete, --compact and --info are for an index that is there: give no CORPUS with them")
    if (add or corpus is None) and fixed:
        raise SpecError(f"--{fixed[0].replace('_', '-')} is chosen when an index is made; it cannot be changed later")


def grain(style: Any) -> dict[str, str]:
    return {"patch": style.patch, "keep": style.keep, "score": style.score}


def embed_corpus(
    corpus: str, place: str, style: Any, chosen: Recipe, embedders: Any, *, add: bool, overwrite: bool, update: Any
) -> Any:
    from idiograph.corpus.corpus import Corpus
    from idiograph.index.index import Index

    documents = Corpus.read(corpus)
    taken, tell = count_documents(documents, len(documents), update)
    if not add:
        return Index.build(
            taken,
            place,
            style,
            chosen.index,
            source=documents.fingerprint,
            preset=chosen.preset,
            overwrite=overwrite,
            workers=embedders,
            progress=tell,
        )
    opened = Index.open(place, style)
    opened.add(taken, workers=embedders, progress=tell)
    return opened


def count_documents(documents: Iterable[T], total: int, update: Update) -> tuple[Iterator[T], Update]:
    """The documents, and what is to be told of their passages: nobody knows how many there will be, but of documents one
    does, so that there is an end in sight."""
    begun = 0

    def count_documents() -> Iterator[T]:
        nonlocal begun
        for document in documents:
            begun += 1
            yield document

    def tell(passages: int, total_passages: int | None = None, text: str | None = None) -> None:
        del total_passages
        update(begun, total, f"{text or 'embedding passages'} ({passages:,})")

    return count_documents(), tell


def change(opened: Any, delete: list[str], compact: bool) -> None:
    unknown = sorted(set(delete) - {d.id for d in opened.documents})
    if unknown:
        raise InputError(f"index '{opened.where}' has no document '{unknown[0]}'; --info --json lists them")
    if delete:
        opened.delete(delete)
    if compact:
        opened.compact()


def calibrate_new_index(opened: Any) -> str:
    """Learn what scores mean in the index and how often its answers are right; what came of it, in words."""
    from idiograph.answer.crossvalidate import MAX_TEXTS
    from idiograph.answer.methods import evidence_of_index
    from idiograph.answer.openset import calibration_of_index

    try:
        known = calibration_of_index(opened).calibration
        note = f"calibrated on {known.same} same-author and {known.different} different-author comparisons"
        return (
            note if len(opened.documents) > MAX_TEXTS else f"{note}; {evidence_of_index(opened).known.check.sentence}"
        )
    except InputError as error:
        return f"not calibrated: {error}"


def print_index_note(opened: Any, note: str) -> dict[str, Any]:
    facts = {"passages": len(opened), "documents": len(opened.documents), "model": opened.style.name}
    facts |= {"fingerprint": opened.style.fingerprint, "bytes_per_passage": round(opened.bytes_per_passage, 1)}
    facts |= {"languages": opened.languages}
    facts |= {"recipe": opened.about["recipe"], "preset": opened.about["preset"], "version": opened.version}
    return {**facts, "calibration": note} if note else {**facts, "ids": [d.id for d in opened.documents]}


def print_index(opened: Any, note: str) -> None:
    size = f"{opened.bytes_per_passage / 1000:.1f} kB a passage ({opened.recipe.dtype})"
    languages = ", ".join(f"{lang} {count}" for lang, count in opened.languages.items())
    documents = f"{len(opened)} passages of {len(opened.documents)} documents ({languages})"
    facts = [documents, size, opened.style.name, note]
    out.print(f"{opened.where}: {'; '.join(filter(None, facts))}", highlight=False, markup=False, soft_wrap=True)
    if full := opened.full_documents:
        most = opened.recipe.passages_per_document
        said = f"long documents, of which {most} passages from all over each were taken: {full} (--passages-per-document 0: all)"
        out.print(said, style="dim", highlight=False, soft_wrap=True)


def search(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="An index: a folder or s3://bucket/place.")],
    texts: Annotated[list[Path], typer.Argument(help="Text files, or - for standard input.")],
    k: Annotated[int, typer.Option("-k", help="How many passages to show.", min=1)] = 10,
    exact: Annotated[bool, typer.Option("--exact", help="Score every passage, not only candidates.")] = False,
    depth: Annotated[
        int | None,
        typer.Option(help="Candidates that are scored exactly; default: 1000, and 3 % of a large index.", min=1),
    ] = None,
    domain: Domains = None,
    since: Annotated[int | None, typer.Option(help="Only documents of this year or later.")] = None,
    until: Annotated[int | None, typer.Option(help="Only documents of this year or earlier.")] = None,
    only_lang: Annotated[list[str] | None, typer.Option(help="Only documents in this language.")] = None,
    author: Annotated[list[str] | None, typer.Option(help="Only documents by this author (id or name).")] = None,
    exclude_author: Annotated[list[str] | None, typer.Option(help="Nothing by this author.")] = None,
    exclude_document: Annotated[list[str] | None, typer.Option(help="Not this document.")] = None,
    parts: Annotated[int, typer.Option(help="Parts of the index, each kept by a worker.", min=1, max=MAX_WORKERS)] = 1,
    runner: Runner = "inline",
    workers: Workers = None,
    address: Address = None,
    model: Model = "default",
    patch: Patch = None,
    keep: Keep = None,
    lang: Lang = "any",
    as_json: AsJson = False,
) -> None:
    """Find the passages whose style is nearest to each text."""
    check_texts(*texts)
    check_folder(place, "index")
    check_reading(model, patch, keep)
    check_runner(runner)

    from idiograph.index.filter import Filter
    from idiograph.index.index import Index
    from idiograph.index.search import search_parts
    from idiograph.runner import Workers

    asked = [read_text(path, lang) for path in texts]
    people = {"authors": tuple(author or ()), "exclude_authors": tuple(exclude_author or ())}
    only = Filter(
        tuple(domain or ()),
        tuple(only_lang or ()),
        since,
        until,
        exclude_documents=tuple(exclude_document or ()),
        **people,
    )
    style = open_style(model, patch, keep)
    how: dict[str, Any] = {"only": only, "exact": exact, "depth": depth}
    if parts == 1:
        found = Index.open(place, style).search_many(asked, k, **how)
    else:
        team = Workers(runner, workers or None, address)
        found = search_parts(place, style, asked, k, parts=parts, workers=team, **how)
    answers = dict(zip(map(str, texts), found, strict=True))
    say(
        {path: [as_row(hit) for hit in hits] for path, hits in answers.items()},
        as_json,
        lambda: print_search_answers(answers),
    )


def print_search_answers(answers: dict[str, Any]) -> None:
    for path, hits in answers.items():
        if hits:
            print_hits(path, hits)
        else:
            said = f"{path}: no document of the index passes these filters"
            out.print(said, highlight=False, markup=False, soft_wrap=True)


def as_row(hit: Any) -> dict[str, Any]:
    p = hit.passage
    return {"score": hit.score, **{name: getattr(p, name) for name in p.__slots__}}


def print_hits(path: str, hits: Any) -> None:
    table = Table("", "score", "authors", "document", "passage", title=path)
    for rank, hit in enumerate(hits, 1):
        p = hit.passage
        table.add_row(str(rank), f"{hit.score:.4f}", ", ".join(p.names), p.title or p.doc_id, shorten_text(p.text, 160))
    out.print(table)
