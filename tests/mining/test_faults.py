"""Kill mining anywhere, fifty times over: nothing half done is ever seen, and the end is as if nobody had."""

import json
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.mining.mine import mine_triplets
from idiograph.recipe import CorpusRecipe, make_recipe
from idiograph.synth.synth import synth

CHANGES = {"sentences": 2, "per_document": 2, "spans_per_document": 2, "negatives": "matched", "candidates": 3}

# Dies when a file or a folder is about to be opened, renamed or removed for the n-th time after mining began.
DIES = """
import json, os, signal, sys
from pathlib import Path
from idiograph.corpus.corpus import Corpus
from idiograph.mining.mine import mine_triplets
from idiograph.recipe import make_recipe

left = int(sys.argv[3])
WATCHED = {"open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree"}

def hook(event, arguments):
    global left
    if event in WATCHED and any(sys.argv[2].rpartition("/")[0] in str(each) for each in arguments):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

settings = make_recipe("sound", {"mine": json.loads(sys.argv[4])}).mine
corpus = Corpus(Path(sys.argv[1]))
sys.addaudithook(hook)
mine_triplets(corpus, settings, Path(sys.argv[2]))
print(int(sys.argv[3]) - left)
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    """More than one block of documents."""
    folder = tmp_path_factory.mktemp("world") / "corpus"
    world = "synth:documents=2100,authors=500,topics=3,sentences=3"
    build_corpus(
        synth(world), folder, CorpusRecipe(citations="keep", filters=False, language="depositor", duplicates="keep")
    )
    return Corpus(folder)


def attempt(corpus: Corpus, out: Path, dies_at: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", DIES, str(corpus.folder), str(out), str(dies_at), json.dumps(CHANGES)]
    return subprocess.run(command, check=False, timeout=300, capture_output=True, text=True)


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.suffix in (".parquet", ".md")}


def killed_over_and_over(corpus: Corpus, room: Path, kills: int) -> int:
    """Kill at places drawn from all that there are; whenever a run gets through, it must be whole. Returns the kills."""
    mine_triplets(corpus, make_recipe("sound", {"mine": CHANGES}).mine, room / "unbroken")
    expected = files(room / "unbroken")
    (room / "there").mkdir()
    out = room / "there" / "out"
    places = int(attempt(corpus, out, 10**9).stdout)
    shutil.rmtree(out)
    draw, done = random.Random(11), 0
    while done < kills:
        ended = attempt(corpus, out, draw.randint(1, places))
        if ended.returncode == -signal.SIGKILL:
            done += 1
        else:
            assert ended.returncode == 0, ended.stderr
        if out.exists():
            assert whole(out, expected)
            shutil.rmtree(out)
    assert attempt(corpus, out, 10**9).returncode == 0
    assert whole(out, expected)
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    return done


def whole(out: Path, expected: dict[str, bytes]) -> bool:
    return files(out) == expected and (out / "manifest.json").is_file()


def test_a_few_kills_at_any_file_change_nothing(corpus, tmp_path):
    assert killed_over_and_over(corpus, tmp_path, 2) == 2


@pytest.mark.slow
def test_fifty_kills_at_any_file_change_nothing(corpus, tmp_path):
    assert killed_over_and_over(corpus, tmp_path, 50) == 50
