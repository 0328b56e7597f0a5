"""The scripts that make idiograph-small: commands that there are, each stage once, and whoever is tested on is held apart."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from typer.main import get_command

from idiograph.cli import build_app
from idiograph.cli.shared import settings
from idiograph.loading import load, terms
from idiograph.recipe import parse_settings
from idiograph.store import fingerprint
from idiograph.synth.synth import synth

SCRIPTS = Path(__file__).parents[1] / "recipes" / "idiograph-small"
CORPORA = ("peerread-dev", "langsci", "elife", "peerread-train", "acl-abstracts", "arxiv-abstracts")
RECORD = """
import json, sys
from pathlib import Path
given = sys.argv[1:]
with open(Path(__file__).with_name("given.jsonl"), "a") as file:
    file.write(json.dumps(given) + "\\n")
if given[0] == "calibrate":
    (Path(given[1]) / "calibration.json").write_text("{}")
else:
    out = Path(given[given.index("-o") + 1])
    out.mkdir(parents=True)
    (out / "manifest.json").write_text("{}")
"""


def run(script, *given, command, **more):
    line = ["sh", str(SCRIPTS / script), *map(str, given)]
    return subprocess.run(
        line, env={**os.environ, "IDIOGRAPH": command, **more}, capture_output=True, text=True, check=True
    )


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> list[list[str]]:
    """The commands that both scripts give, each script run twice."""
    folder = tmp_path_factory.mktemp("recipe")
    (folder / "record.py").write_text(RECORD)
    command = f"{sys.executable} {folder / 'record.py'}"
    for _ in range(2):
        run("data.sh", folder / "texts", folder / "work", command=command)
        run("train.sh", folder / "work", folder / "granite", command=command)
    return [json.loads(line) for line in (folder / "given.jsonl").read_text().splitlines()]


def value(line, option):
    return line[line.index(option) + 1]


def test_every_command_and_option_is_there(given):
    known = get_command(build_app())
    for name, *rest in given:
        command = known.commands[name]
        command.make_parser(command.context_class(command)).parse_args(rest)
        if "--recipe" in rest:
            settings("sound", Path(value(rest, "--recipe")), {})
        if name == "train":
            parse_settings("train", [rest[at + 1] for at, word in enumerate(rest) if word == "--set"])


def test_what_is_done_is_not_done_again(given):
    outputs = [value(line, "-o") for line in given if line[0] != "calibrate"]
    assert len(outputs) == len(set(outputs))
    assert [line[0] for line in given].count("corpus") == len(CORPORA)
    assert Path(outputs[-1]).name == "idiograph-small"
    (calibrated,) = [line for line in given if line[0] == "calibrate"]
    assert calibrated[1] == outputs[-1]
    assert value(calibrated, "--split") == "valid"


def test_whoever_is_tested_on_is_held_apart_from_all_that_is_mined_later(given):
    mined = [line for line in given if line[0] == "mine"]
    held = [Path(word).name for word in mined[-1] if "/triplets/" in word and word != value(mined[-1], "-o")]
    assert held == ["peerread-dev", "langsci", "elife", "peerread", "acl", "arxiv"]
    assert "--apart" not in mined[0]
    tests_only = settings("sound", Path(value(mined[0], "--recipe")), {}).mine
    assert tests_only.fractions == (0, 0, 1)
    assert not any(Path(word).name == "peerread-dev" for line in given if line[0] == "train" for word in line)


def test_the_last_run_is_taught_by_what_was_made_before(given):
    (taught,) = [line for line in given if "--teacher" in line]
    made = [Path(value(line, "-o")).name for line in given[: given.index(taught)]]
    names = [Path(ranker.partition("@")[0]).name for _, ranker in terms(value(taught, "--teacher"))]
    assert names == ["fourth", "minilm-authors", "variant", "ngrams"]
    assert {"fourth", "minilm-authors", "variant"} <= set(made)


def test_a_file_beside_the_model_says_what_it_was_made_of(tmp_path):
    work = tmp_path / "work"
    kept = {"kind": "model", "inputs": {}, "counts": {}, "dropped": {}, "fingerprint": "f", "created": "", "format": 1}
    teacher = "/elsewhere/w/models/first@ngram:3+0.5*/elsewhere/w/models/other@ngram:3+0.5*ngrams"
    recipe = {"backbone": "/elsewhere/granite", "teacher": teacher, "steps": 3}
    counts = {"validation": {"/elsewhere/w/triplets/acl/R@20": 0.5, "elife/R@20": 0.4}}
    for folder, about in {
        "corpora/acl": {"kind": "corpus", "recipe": {}},
        "triplets/acl": {"kind": "triplets", "recipe": {"label": "first"}, "inputs": {"corpus": "c"}},
        "models/first": {"recipe": recipe, "inputs": {"/elsewhere/w/triplets/acl": "f"}, "counts": counts},
        "models/unfinished": None,
    }.items():
        (work / folder / "base-4").mkdir(parents=True)
        (work / folder / "base-4" / "train-00000.parquet").write_bytes(b"rows")
        if about is not None:
            (work / folder / "manifest.json").write_text(json.dumps(kept | about))
    subprocess.run([sys.executable, SCRIPTS / "runs.py", work, work / "models" / "first"], check=True)
    told = json.loads((work / "models" / "first" / "runs.json").read_text())
    assert set(told["models"]) == {"first"}
    first = told["models"]["first"]
    assert first["recipe"] == {
        "backbone": "granite",
        "teacher": "first@ngram:3+0.5*other@ngram:3+0.5*ngrams",
        "steps": 3,
    }
    assert first["inputs"] == {"acl": told["triplets"]["acl"]["fingerprint"]}
    assert first["counts"]["validation"] == {"acl/R@20": 0.5, "elife/R@20": 0.4}
    assert told["triplets"]["acl"]["sha256"] == {"base-4/train-00000.parquet": hashlib.sha256(b"rows").hexdigest()}
    sealed = json.loads((work / "models" / "first" / "manifest.json").read_text())
    assert sealed["fingerprint"] == fingerprint(work / "models" / "first")
    assert sealed["recipe"] == recipe


def written(name: str, seed: int) -> str:
    """A made-up corpus; nobody is in two of them."""
    rows = []
    for made in synth(f"synth:documents=120,authors=20,topics=2,coauthors=0.3,sentences=30,seed={seed}"):
        authors = [{"name": f"{name} {author.name}"} for author in made.authors]
        about = {"title": f"{name} {made.title}", "domain": list(made.domains), "year": made.year, "lang": "en"}
        rows.append(json.dumps({"id": f"{name}:{made.id}", "authors": authors, "text": made.text, **about}))
    return "\n".join(rows)


@pytest.mark.slow
def test_from_texts_to_a_model(tmp_path, backbones, monkeypatch):
    """Everything as it is, on little: made-up corpora, tiny weights, two steps a run."""
    texts, scripts = tmp_path / "texts", tmp_path / "scripts"
    texts.mkdir()
    scripts.mkdir()
    for seed, name in enumerate(CORPORA):
        with pa.CompressedOutputStream(str(texts / f"{name}.jsonl.zst"), "zstd") as file:
            file.write(written(name, seed).encode())
    for path in SCRIPTS.glob("*.*"):
        short = re.sub(r"--steps \d+", "--steps 2", path.read_text())
        short = re.sub(r"batch = \d+", "batch = 4", re.sub(r"anchors = \d+", "anchors = 4", short))
        (scripts / path.name).write_text(short)
    monkeypatch.setattr(sys.modules[__name__], "SCRIPTS", scripts)
    command = f"{sys.executable} -m idiograph"
    run("data.sh", texts, tmp_path / "work", command=command)
    run("train.sh", tmp_path / "work", backbones["xlmr"], command=command, MINILM=str(backbones["bert"]))
    made = load(tmp_path / "work" / "models" / "idiograph-small")
    assert made.patch == "ngram:3"
    assert made.compare(["a map of the harbour"], ["a map of the harbour"])[0, 0] == pytest.approx(1, abs=1e-3)
    told = json.loads((tmp_path / "work" / "models" / "fifth" / "manifest.json").read_text())["recipe"]
    assert (told["teaching"], told["steps"], told["layers"]) == (0.7, 2, "wording")
    learned = json.loads((tmp_path / "work" / "models" / "idiograph-small" / "calibration.json").read_text())
    assert learned["calibration"]["same"] > 0
