"""Seal the folder of the model that comes with the package anew, after its card or its calibration was changed on purpose.

python scripts/seal_model.py
"""

from idiograph.loading import default_folder
from idiograph.store import MAKE, MANIFEST, parse_manifest, seal


def main() -> None:
    folder = default_folder()
    manifest = seal(folder, parse_manifest(folder / MANIFEST, "model", MAKE["model"]))
    print(f"{folder}: {len(manifest.files)} files, fingerprint {manifest.fingerprint}")


if __name__ == "__main__":
    main()
