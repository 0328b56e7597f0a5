"""check: are finished folders what they were when they were written?"""

from pathlib import Path
from typing import Annotated, Any

import typer

from idiograph.cli.shared import AsJson, out, say
from idiograph.errors import ArtifactError
from idiograph.store import MAKE, one_of_kind, verify_folder

FAULTS_SHOWN = 20
EARLIER = "an earlier version made it, whose manifests do not name every file; make it again to have them all compared"


def check_command(
    folders: Annotated[list[Path], typer.Argument(help="Folders that a command wrote: a corpus, an index, a model, …")],
    as_json: AsJson = False,
) -> None:
    """Read finished folders again and compare every checksum."""
    found = [check_folder(folder) for folder in folders]
    say(found, as_json, lambda: print_checked(found))
    if damaged := [each for each in found if each["faults"]]:
        first = damaged[0]
        more = f", and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        raise ArtifactError(f"'{first['folder']}' is damaged{more}; make it again: {first['make']}")


def check_folder(folder: Path) -> dict[str, Any]:
    """What there is to say of one folder."""
    manifest, faults = verify_folder(folder)
    sizes = [each["bytes"] for each in manifest.files.values()]
    about = {"folder": str(folder), "kind": manifest.kind, "format": manifest.format, "files": len(sizes)}
    make = MAKE.get(manifest.kind, "with the command that made it")
    return {**about, "bytes": sum(sizes), "faults": faults, "make": make}


def print_checked(found: list[dict[str, Any]]) -> None:
    for each in found:
        what = f"{each['folder']}: {one_of_kind(each['kind'])}, {each['files']:,} files, {each['bytes'] / 1e6:,.1f} MB"
        if each["format"] == 1:
            what = f"{each['folder']}: {one_of_kind(each['kind'])}; {EARLIER}"
        out.print(f"{what}: {'damaged' if each['faults'] else 'as it was written'}", soft_wrap=True)
        for fault in each["faults"][:FAULTS_SHOWN]:
            out.print(f"  {fault}", soft_wrap=True)
        if len(each["faults"]) > FAULTS_SHOWN:
            out.print(f"  {len(each['faults']) - FAULTS_SHOWN} more")
