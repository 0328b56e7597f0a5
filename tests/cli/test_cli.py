"""The command line: the whole line by hand, and one clear line for every wrong input."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from idiograph.synth.anthology import anthology

ESSAYS = {d.id: d for d in anthology()}


@pytest.fixture(scope="module")
def room(tmp_path_factory, backbones):
    """A folder with a tiny model and two essays as files."""
    folder = tmp_path_factory.mktemp("room")
    (folder / "a.txt").write_text(ESSAYS["ansel-brook/bees"].text)
    (folder / "b.txt").write_text(ESSAYS["ansel-brook/maps"].text)
    return folder


@pytest.fixture(scope="module")
def corpus(room):
    from idiograph.corpus.corpus import build_corpus
    from idiograph.corpus.readers import read_documents

    build_corpus(read_documents("anthology"), room / "corpus")
    return room / "corpus"


@pytest.fixture(scope="module")
def index(room, corpus, encoder):
    from idiograph.index.index import Index
    from idiograph.style.model import Style

    Index.build(
        (d for d in ESSAYS.values() if d.domains == ("maps",) or "bees" in d.id), room / "index", Style(encoder)
    )
    return room / "index"


@pytest.fixture(scope="module")
def tiny(backbones):
    return ("--model", backbones["modernbert"])


def test_the_line_from_texts_to_an_answer(idiograph, tmp_path, room, tiny):
    status, out, _ = idiograph("corpus", "anthology", "-o", tmp_path / "corpus", "--json")
    assert (status, json.loads(out)["documents"]) == (0, 60)
    status, out, _ = idiograph("mine", tmp_path / "corpus", "-o", tmp_path / "triplets", "--per-document", 2, "--json")
    assert status == 0
    assert sum(json.loads(out)["base-4"].values()) > 20
    status, out, _ = idiograph("evaluate", "bm25", "delta", tmp_path / "triplets", "--split", "train", "--json")
    assert [r["ranker"] for r in json.loads(out)] == ["bm25", "delta"]
    status, out, _ = idiograph("index", tmp_path / "corpus", "-o", tmp_path / "index", *tiny, "--json")
    assert json.loads(out)["passages"] > 200
    assert "calibrated on 60" in json.loads(out)["calibration"]
    status, out, _ = idiograph("attribute", tmp_path / "index", room / "a.txt", *tiny, "--json")
    (answer,) = json.loads(out).values()
    assert answer["candidates"][0]["authors"] == ["ansel-brook"]


def test_evaluate_prints_a_table_and_writes_a_report(idiograph, tmp_path, corpus, backbones):
    idiograph("mine", corpus, "-o", tmp_path / "t", "--per-document", 1)
    model = backbones["bert"]
    args = ("--patch", "whole", "--patch", "ngram:3", "--split", "train", "-o", tmp_path / "report")
    status, out, err = idiograph("evaluate", model, tmp_path / "t", *args)
    assert status == 0, err
    assert "@ ngram:3" in out
    assert "| tiny-bert @ whole |" in (tmp_path / "report" / "report.md").read_text()


def test_attribute_prints_candidates_and_passages(idiograph, room, index, tiny):
    status, out, _ = idiograph("attribute", index, room / "a.txt", *tiny, "-k", 2)
    assert status == 0
    assert "Ansel Brook" in out
    assert "asked:" in out


def test_verify_gives_a_ratio_in_words_and_says_what_it_rests_on(idiograph, room, tiny):
    status, out, _ = idiograph("verify", room / "a.txt", room / "b.txt", "--reference", "anthology", "--prior", "0.1")
    printed = " ".join(out.split())
    assert status == 0
    assert "log10 LR" in printed
    assert "prior odds of 0.1:1" in printed
    assert "Checked on" in printed
    assert "Evidence, not a verdict." in printed


def test_verify_without_a_reference_gives_no_ratio_for_texts_unlike_papers(idiograph, room, tiny):
    status, out, _ = idiograph("verify", room / "a.txt", room / "b.txt", *tiny)
    assert status == 0
    assert out.startswith("No ratio, because:")
    status, out, _ = idiograph("verify", room / "a.txt", room / "b.txt", *tiny, "--json")
    assert json.loads(out)["calibration"]["same"] > 100


def test_explain_writes_a_page_whose_patches_are_linked(idiograph, room, tmp_path, tiny):
    status, out, _ = idiograph("explain", room / "a.txt", room / "b.txt", *tiny, "--html", tmp_path / "x.html")
    assert status == 0
    assert "score" in out
    page = (tmp_path / "x.html").read_text()
    assert 'data-partner="0"' in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_explain_escapes_what_it_shows(idiograph, tmp_path, tiny):
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("<script>alert(1)</script> & some words; " * 4)
    idiograph("explain", tmp_path / "a.txt", tmp_path / "b.txt", *tiny, "--html", tmp_path / "x.html")
    assert "<script>alert" not in (tmp_path / "x.html").read_text()


def test_standard_input_is_a_text(idiograph, room, index, tiny, monkeypatch):
    import io

    raw = io.TextIOWrapper(io.BytesIO((room / "a.txt").read_bytes()))
    monkeypatch.setattr(sys, "stdin", raw)
    status, out, _ = idiograph("attribute", index, "-", *tiny, "--json")
    assert status == 0
    assert "-" in json.loads(out)


def test_recipe_prints_every_setting(idiograph, tmp_path):
    status, out, _ = idiograph("recipe", "--preset", "paper")
    assert (status, 'split = "triplet"' in out) == (0, True)
    (tmp_path / "r.toml").write_text(out)
    assert idiograph("recipe", "--recipe", tmp_path / "r.toml")[1] == out


def test_without_a_command_the_help_is_shown(idiograph):
    status, out, err = idiograph()
    assert (status, err) == (0, "")
    assert "attribute" in out


def test_help_lists_every_command_once_by_what_it_is_for_in_whole_sentences(idiograph):
    from idiograph.cli import COMMANDS

    _, out, _ = idiograph("--help")
    lines = out.splitlines()
    panels = [line.rstrip(":") for line in lines if line.endswith(":") and line[:1].isalpha()]
    assert panels == ["Options", "Ask", "Look", "Measure", "Collect", "Train"]
    listed = [line.split(maxsplit=1) for line in lines[lines.index("Ask:") :] if line.startswith("  ")]
    assert [name for name, _ in listed] == list(COMMANDS)
    assert [summary for _, summary in listed if not summary.endswith(".") or summary.endswith("...")] == []


def test_a_text_is_not_refused_for_its_language(idiograph, index, tiny, tmp_path):
    (tmp_path / "french.txt").write_text(FRENCH)
    status, out, err = idiograph("attribute", index, tmp_path / "french.txt", *tiny, "--json")
    assert (status, len(json.loads(out))) == (0, 1), err


FRENCH = "Les marées sont mesurées depuis longtemps dans les ports, mais on les prédit encore assez mal. " * 8
BAD = {
    "a missing file": (("attribute", "{index}", "nowhere.txt"), "there is no file 'nowhere.txt'"),
    "an empty file": (("attribute", "{index}", "empty.txt"), "empty"),
    "a binary file": (("attribute", "{index}", "binary.txt"), "binary"),
    "a file that is not UTF-8": (("attribute", "{index}", "latin.txt"), "not UTF-8"),
    "a text of 100 MB on one line": (("attribute", "{index}", "huge.txt"), "100 MB; a text may have 20 MB at most"),
    "a text in another language than asked for": (
        ("attribute", "{index}", "french.txt", "--lang", "en"),
        "looks like 'fr', not 'en'",
    ),
    "too short a text": (("verify", "short.txt", "short.txt"), "too short to say who wrote it"),
    "a missing corpus": (("mine", "nowhere", "-o", "out"), "there is no corpus folder 'nowhere'"),
    "a corpus of empty files": (("corpus", "hollow", "-o", "out"), "nothing could be read"),
    "a corpus of one author": (("mine", "{one}", "-o", "out"), "no triplet can be drawn"),
    "a corpus in no such language": (("mine", "{corpus}", "-o", "out", "--lang", "fr"), "no document is in 'fr'"),
    "an unknown preset": (("mine", "{corpus}", "-o", "out", "--preset", "papr"), "did you mean 'paper'"),
    "an unknown patch policy": (("explain", "a.txt", "a.txt", "--patch", "ngrm:2"), "did you mean 'ngram:2'"),
    "a missing model": (("explain", "a.txt", "a.txt", "--model", "./nowhere"), "no model folder './nowhere'"),
    "the wrong index for a model": (("attribute", "{index}", "a.txt", "--patch", "whole"), "was made with model"),
    "no index": (("attribute", "nowhere", "a.txt"), "there is no index folder 'nowhere'"),
    "an output that is there": (("corpus", "anthology", "-o", "{corpus}"), "is there already"),
    "an output that is a file": (("corpus", "anthology", "-o", "a.txt"), "is a file; choose a folder"),
    "an unknown source": (("corpus", "x.docx", "-o", "out"), "there is no file or folder"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_gets_one_line_and_status_1(idiograph, case, corpus, index, backbones, tmp_path, monkeypatch):
    from idiograph.corpus.corpus import build_corpus

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text(ESSAYS["ansel-brook/bees"].text)
    (tmp_path / "empty.txt").touch()
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)))
    (tmp_path / "latin.txt").write_bytes("café ".encode("latin1") * 60)
    (tmp_path / "french.txt").write_text(FRENCH)
    (tmp_path / "short.txt").write_text("Not enough here.")
    (tmp_path / "hollow").mkdir()
    (tmp_path / "hollow" / "A_x.txt").touch()
    if "100 MB" in case:
        (tmp_path / "huge.txt").write_bytes(b"word " * 20_000_000)
    if "one author" in case:
        build_corpus([d for d in ESSAYS.values() if "ansel-brook" in d.id], tmp_path / "one")
    args, message = BAD[case]
    filled = [a.format(index=index, corpus=corpus, one=tmp_path / "one") for a in args]
    needs_model = filled[0] in ("attribute", "explain", "verify") and "--model" not in filled
    before = {p.name for p in tmp_path.iterdir()}
    status, out, err = idiograph(*filled, *(("--model", backbones["modernbert"]) if needs_model else ()))
    assert (status, out) == (1, "")
    assert message in err
    *said, last = err.splitlines()
    assert last.startswith("idiograph: ")
    assert not said or filled[0] == "mine"  # which says first who would be where
    assert {p.name for p in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("mine", "--sentense", "4"), "--sentences"),
        (("nope",), "No such command 'nope'"),
        (("mine",), "Missing argument"),
    ],
)
def test_wrong_usage_gets_one_line_and_status_2(idiograph, args, message):
    status, out, err = idiograph(*args)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_files_that_cannot_be_read_are_named_and_the_rest_goes_on(idiograph, tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "A_one.txt").write_text(ESSAYS["ansel-brook/bees"].text)
    (texts / "B_two.txt").write_bytes(b"\xff\x00")
    status, out, err = idiograph("corpus", texts, "-o", tmp_path / "c")
    assert (status, "1 documents" in out) == (0, True)
    assert "B_two.txt: a binary file" in " ".join(err.split())


def test_control_c_leaves_no_broken_folder(tmp_path):
    command = [sys.executable, "-c", "from idiograph.cli import main; main()", "corpus", "synth:documents=3000000"]
    with (tmp_path / "err").open("w") as err:
        running = subprocess.Popen([*command, "-o", str(tmp_path / "out")], stderr=err, stdout=err)
        hidden = tmp_path / ".out.partial" / "all" / "en"
        for _ in range(600):
            if hidden.is_dir() and any(hidden.iterdir()):
                break
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
    assert sorted(os.listdir(tmp_path)) == ["err"]
    assert "idiograph: stopped; nothing half-written was left behind" in (tmp_path / "err").read_text().splitlines()
