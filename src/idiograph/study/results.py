"""What the runs of a study gave, kept in zip files: a run is there whole or not at all, and a stopped study goes on."""

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from idiograph.errors import ArtifactError
from idiograph.study.plan import StudyRun, plan_from_json

FULL = 12 * 2**20  # a file that has grown so large is followed by another


@dataclass(frozen=True)
class RunOutcome:
    """What a run gave. The names of arrays are `reading|bench|what`."""

    run: StudyRun
    about: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)


class Store:
    """The outcomes in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("runs-*.zip"))

    def names(self) -> set[str]:
        """The runs that are done."""
        return {outcome["name"] for path in self.files for outcome in read_listing(path)}

    def add(self, outcome: RunOutcome) -> None:
        """Append one outcome: its arrays, and last its description, without which it does not count."""
        files = self.files
        path = files[-1] if files and files[-1].stat().st_size < FULL else self.folder / f"runs-{len(files)}.zip"
        held = io.BytesIO()
        arrays: Any = dict(outcome.arrays)
        np.savez_compressed(held, **arrays)
        about = {"name": outcome.run.name, "run": outcome.run.to_json(), "about": dict(outcome.about)}
        key = f"{len(read_listing(path)) if path.is_file() else 0:03d}"
        longer = self.folder / ".longer"
        longer.write_bytes(path.read_bytes() if path.is_file() else b"")
        with zipfile.ZipFile(longer, "a") as archive:
            archive.writestr(f"{key}.npz", held.getvalue())
            archive.writestr(f"{key}.json", json.dumps(about))
        longer.replace(path)  # whoever stops us leaves the old file or the new one

    def __iter__(self) -> Iterator[RunOutcome]:
        for path in self.files:
            with zipfile.ZipFile(path) as archive:
                for name in sorted(n for n in archive.namelist() if n.endswith(".json")):
                    about = json.loads(archive.read(name))
                    with np.load(io.BytesIO(archive.read(name.replace(".json", ".npz")))) as arrays:
                        yield RunOutcome(plan_from_json(about["run"]), about["about"], dict(arrays))


def read_listing(path: Path) -> list[dict[str, Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            return [json.loads(archive.read(name)) for name in archive.namelist() if name.endswith(".json")]
    except zipfile.BadZipFile as error:
        raise ArtifactError(f"'{path}' is damaged ({error}); remove it, and the runs in it are done again") from error
