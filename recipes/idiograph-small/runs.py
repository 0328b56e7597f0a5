"""What a model was made of, in one file beside it:  runs.py WORK MODEL

The settings, counts and fingerprints of every corpus, collection of triplets and run in WORK, and the SHA-256 of each file of
triplets that was trained on. MODEL is a folder of models in WORK, or a copy of one.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from idiograph.store import MANIFEST, digest, read_manifest, seal, write_json

KINDS = ("corpora", "triplets", "models")
TOLD = ("recipe", "inputs", "counts", "dropped", "fingerprint")
ELSEWHERE = re.compile(rf"(?:/[\w.-]+)*/(?:{'|'.join(KINDS)})/")  # where it lay when it was made tells nothing


def lineage(work: Path) -> dict[str, Any]:
    """What each finished folder in `work` says of itself."""
    found = {kind: {path.parent.name: told(path) for path in finished(work / kind)} for kind in KINDS}
    for name, one in found["triplets"].items():
        files = sorted((work / "triplets" / name).rglob("train*.parquet"))
        one["sha256"] = {path.relative_to(work / "triplets" / name).as_posix(): digest(path) for path in files}
    return json.loads(ELSEWHERE.sub("", json.dumps(found)))


def finished(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*/{MANIFEST}"))


def told(path: Path) -> dict[str, Any]:
    manifest = json.loads(path.read_text(encoding="utf-8"))
    if "backbone" in manifest["recipe"]:
        manifest["recipe"]["backbone"] = Path(manifest["recipe"]["backbone"]).name
    return {key: manifest[key] for key in TOLD if manifest.get(key)}


def main(work: Path, model: Path) -> None:
    made = read_manifest(model, "model", "idiograph train")
    write_json(model / "runs.json", lineage(work))
    seal(model, made)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:])) if len(sys.argv) == 3 else sys.exit(__doc__)
