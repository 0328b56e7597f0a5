"""What does `pip install idiograph` put on a machine, and does it work there? Builds the wheel, installs it alone into an empty
environment of each interpreter that is named, and runs the commands from another folder on texts made for it.

    python scripts/check_install.py [python3.11 python3.12 …] [--megabytes 900] [--packages 60] [--size-only]

Exits 1 where a command fails, and where the installation is larger than wanted.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXTS = """
from pathlib import Path
from idiograph.synth.anthology import anthology
for essay in anthology():
    name = f"{essay.authors[0].name}_{essay.domains[0]}.txt"
    Path("asked" if essay.domains[0] == "bees" else "texts", name).write_text(essay.text, encoding="utf-8")
"""
COMMANDS = (
    "--help",
    "corpus texts -o corpus",
    "corpus stats corpus -o stats",
    "mine corpus -o triplets --per-document 1",
    "evaluate bm25 delta ngrams triplets --split train -o report",
    "index corpus -o index",
    "attribute index {a} --html answer.html",
    "search index {a}",
    "verify {a} {b}",
    "explain {a} {b} --html match.html",
    "demo -o demo",
)
UNWANTED = ("torch", "transformers", "sentence_transformers")


def call(*command: object, cwd: Path | None = None) -> str:
    """Run a command; what it printed if it went well, and an end with its last lines if it did not."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False, env=clean)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{ran.stdout[-1500:]}{ran.stderr[-1500:]}")
    return ran.stdout


def build_wheel(folder: Path) -> Path:
    """The wheel of the working tree."""
    call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    return next(folder.glob("idiograph-*.whl"))


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if not path.is_symlink()) / 1e6


def install(python: str, wheel: Path, room: Path) -> tuple[Path, dict[str, float]]:
    """An environment with the wheel alone, and what it costs; pip itself does not count."""
    call(python, "-m", "venv", room / "venv")
    own, inside = megabytes(room / "venv"), room / "venv" / "bin" / "python"
    begun = time.monotonic()
    call(inside, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel)
    seconds = time.monotonic() - begun
    listed = json.loads(call(inside, "-m", "pip", "list", "--format", "json"))
    names = {each["name"] for each in listed} - {"pip", "setuptools", "wheel"}
    return inside, {"MB": megabytes(room / "venv") - own, "packages": len(names), "seconds": seconds}


def try_commands(python: Path, room: Path) -> None:
    """Every command from another folder; and nothing that an extra brings is there."""
    for name in UNWANTED:
        call(python, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec({name!r}) is not None)")
    for folder in ("texts", "asked"):
        (room / folder).mkdir()
    call(python, "-c", TEXTS, cwd=room)
    a, b = sorted((room / "asked").iterdir())[:2]
    for line in COMMANDS:
        words = [word.format(a=a, b=b) for word in line.split()]
        begun = time.monotonic()
        call(python.with_name("idiograph"), *words, cwd=room)
        print(f"  {time.monotonic() - begun:6.1f} s  idiograph {line}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", default=[sys.executable], help="interpreters; default: this one")
    parser.add_argument("--megabytes", type=float, default=900)
    parser.add_argument("--packages", type=int, default=60)
    parser.add_argument("--size-only", action="store_true", help="install and count, and run nothing")
    args = parser.parse_args()
    large = []
    with tempfile.TemporaryDirectory(prefix="idiograph-wheel-") as folder:
        wheel = build_wheel(Path(folder))
        for python in args.pythons:
            with tempfile.TemporaryDirectory(prefix="idiograph-install-") as room:
                inside, cost = install(python, wheel, Path(room))
                version = call(inside, "--version").strip()
                print(
                    f"{version}: {cost['MB']:.0f} MB, {cost['packages']} packages, {cost['seconds']:.0f} s", flush=True
                )
                if cost["MB"] > args.megabytes or cost["packages"] > args.packages:
                    large.append(version)
                if not args.size_only:
                    try_commands(inside, Path(room))
    if large:
        sys.exit(f"more than {args.megabytes:.0f} MB or {args.packages} packages on {', '.join(large)}")


if __name__ == "__main__":
    main()
