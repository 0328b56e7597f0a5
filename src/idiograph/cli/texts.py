"""Commands that bring texts in: corpus, mine."""

from pathlib import Path
from typing import Annotated

import typer

from idiograph.cli.shared import AsJson, Out, Overwrite, Preset, RecipeFile, bar, err, say, settings, wrote


def corpus(
    sources: Annotated[list[str], typer.Argument(help="Text folders, .jsonl(.zst), Parquet, `anthology`, `synth:…`.")],
    out_folder: Out,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Read texts with their authors into a corpus folder."""
    from idiograph.corpus.documents import build
    from idiograph.corpus.readers import read_all

    with bar("reading") as update:
        inputs = {f"source {at}": source for at, source in enumerate(sources)}
        built = build(read_all(sources), out_folder, inputs=inputs, overwrite=overwrite, progress=update)
    for failure in built.failures[:20]:
        err.print(f"left out: {failure.where}: {failure.reason}", markup=False, highlight=False)
    if len(built.failures) > 20:
        err.print(f"left out: {len(built.failures) - 20} more; see {out_folder}/manifest.json", highlight=False)
    found = {"documents": built.documents, "languages": built.languages, "dropped": built.dropped}
    say(found, as_json, lambda: wrote(out_folder, f"{built.documents} documents", built.dropped))


def mine(
    corpus_folder: Annotated[Path, typer.Argument(metavar="CORPUS", help="A corpus folder.")],
    out_folder: Out,
    rule: Annotated[str | None, typer.Option(help="How positives are chosen: base.")] = None,
    sentences: Annotated[int | None, typer.Option(help="Sentences in a span.")] = None,
    per_document: Annotated[int | None, typer.Option(help="Triplets with an anchor in one document.")] = None,
    label: Annotated[str | None, typer.Option(help="identified, set, first, last or single.")] = None,
    lang: Annotated[str | None, typer.Option(help="Language of the documents; `any` for all.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed, another draw.")] = None,
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Draw same-author, different-document triplets from a corpus, split by author."""
    from idiograph.corpus.documents import Corpus
    from idiograph.corpus.mine import mine as mine_

    given = {
        "rule": rule,
        "sentences": sentences,
        "per_document": per_document,
        "label": label,
        "lang": lang,
        "seed": seed,
    }
    chosen = settings(preset, recipe_file, {"mine": given}).mine
    opened = Corpus(corpus_folder)
    with bar("drawing spans", len(opened)) as update:
        counts = mine_(opened, chosen, out_folder, overwrite=overwrite, progress=update)
    text = ", ".join(f"{split} {count}" for split, count in counts.items())
    say(dict(counts), as_json, lambda: wrote(out_folder, f"triplets {chosen.rule}-{chosen.sentences}: {text}"))
