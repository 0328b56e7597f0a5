"""Commands that fetch papers: harvest, download, extract."""

from pathlib import Path
from typing import Annotated, Any

import typer

from idiograph.cli.checks import check_folder, check_pdfs, check_report, check_runner
from idiograph.cli.shared import (
    Address,
    AsJson,
    Out,
    Preset,
    RecipeFile,
    Runner,
    Shard,
    Workers,
    bar,
    err,
    say,
    settings,
    wrote,
)
from idiograph.recipe import without_passwords
from idiograph.store import Manifest

Several = list[str] | None
Contact = Annotated[str | None, typer.Option(help="Your e-mail or page, so that the archive can reach you.")]
Licence = Annotated[str | None, typer.Option(help="open, any, or a list such as by,by-sa,cc0.")]


def harvest_command(
    out_folder: Out,
    since: Annotated[str | None, typer.Option(help="From this day on (2024-01-31), or `last` for what is new.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to this day.")] = None,
    lang: Annotated[Several, typer.Option(help="Language as deposited, such as en; may be repeated.")] = None,
    domain: Annotated[Several, typer.Option(help="Field, such as info or shs; may be repeated.")] = None,
    doctype: Annotated[Several, typer.Option(help="ART, COMM, THESE, …; may be repeated.")] = None,
    licence: Licence = None,
    portal: Annotated[str | None, typer.Option(help="A portal (tel) or a collection (INRIA).")] = None,
    query: Annotated[str | None, typer.Option(help="A Solr query.")] = None,
    limit: Annotated[int | None, typer.Option(help="Stop after so many records.", min=0)] = None,
    server: Annotated[str | None, typer.Option(help="Another server, such as a stand-in.")] = None,
    contact: Contact = None,
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    as_json: AsJson = False,
) -> None:
    """Fetch records from the HAL archive. Goes on where an earlier run was stopped."""
    given: dict[str, Any] = {"since": since, "until": until, "licence": licence, "portal": portal, "query": query}
    given |= {"limit": limit, "server": server, "contact": contact}
    given |= {name: tuple(v) if v else None for name, v in (("lang", lang), ("domain", domain), ("doctype", doctype))}
    chosen = settings(preset, recipe_file, {"harvest": given}).harvest
    check_report(out_folder)

    from idiograph.hal.harvest import harvest as harvest_

    with bar("harvesting") as update:
        done = harvest_(out_folder, chosen, update, tell_retry)
    print_finished(out_folder, done, as_json)


def download_command(
    records: Annotated[Path, typer.Argument(help="A folder that `harvest` wrote.")],
    out_folder: Out,
    licence: Licence = None,
    max_bytes: Annotated[int | None, typer.Option(help="Leave out larger files.", min=1)] = None,
    shard: Shard = "1/1",
    runner: Runner = "inline",
    workers: Annotated[int | None, typer.Option(help="Files at a time, over all sites.", min=1)] = None,
    address: Address = None,
    contact: Contact = None,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Ask this machine and its neighbours, too, if a record leads there.")
    ] = False,
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    as_json: AsJson = False,
) -> None:
    """Fetch the PDFs of records, one by one and politely. Embargo and licence are respected."""
    given = {"licence": licence, "max_bytes": max_bytes, "contact": contact, "runner": runner}
    given |= {"workers": workers, "address": address, "allow_private": allow_private or None}
    chosen = settings(preset, recipe_file, {"download": given}).download
    check_folder(records, "records")
    check_report(out_folder)
    check_runner(chosen.runner)

    from idiograph.hal.download import download as download_

    with bar("downloading") as update:
        done = download_(records, out_folder, chosen, shard, update, tell_retry)
    print_finished(out_folder, done, as_json)


def extract_command(
    pdfs: Annotated[Path, typer.Argument(help="A folder of PDFs.")],
    out_folder: Out,
    grobid: Annotated[Several, typer.Option(help="Address of a GROBID server; may be repeated.")] = None,
    workers: Workers = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds a document may take.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try failures of earlier runs again.")] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Remove the results of PDFs that are gone.")] = False,
    shard: Shard = "1/1",
    runner: Runner = "processes",
    address: Address = None,
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    as_json: AsJson = False,
) -> None:
    """Turn PDFs into TEI. With GROBID servers or, without any, with the extractor that comes along."""
    given: dict[str, Any] = {"grobid": tuple(grobid) if grobid else None, "workers": workers, "timeout": timeout}
    given |= {"retry": retry or None, "prune": prune or None, "runner": runner, "address": address}
    chosen = settings(preset, recipe_file, {"extract": given}).extract
    check_pdfs(pdfs)
    check_report(out_folder)
    check_runner(chosen.runner)

    from idiograph.pdf.extract import extract as extract_

    with bar("extracting") as update:
        done = extract_(pdfs, out_folder, chosen, shard, update)
    print_finished(out_folder, done, as_json)


def tell_retry(line: str) -> None:
    """Say why a server is asked again, above the bar."""
    err.print(without_passwords(line), style="dim", highlight=False, soft_wrap=True)


def print_finished(folder: Path, done: Manifest, as_json: bool) -> None:
    counts = ", ".join(
        f"{count} {name}"
        for name, count in done.counts.items()
        if isinstance(count, int) and not isinstance(count, bool)
    )
    value = {"counts": dict(done.counts), "dropped": dict(done.dropped), "fingerprint": done.fingerprint}
    say(value, as_json, lambda: wrote(folder, counts, done.dropped))
