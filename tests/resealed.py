"""Folders that were changed on purpose, sealed as if they had been made so."""

from pathlib import Path

from idiograph.store import MAKE, MANIFEST, parse_manifest, seal


def reseal(folder: Path, kind: str) -> None:
    """Let the manifest of a folder list what is in it now."""
    seal(folder, parse_manifest(folder / MANIFEST, kind, MAKE[kind]))
