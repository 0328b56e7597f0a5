"""`idiograph index` and `idiograph search`: make, change and search an index by hand, and one line for what is wrong."""

import json

import pytest

from idiograph.corpus.corpus import build_corpus
from idiograph.corpus.readers import read_documents
from idiograph.store import locked_folder


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """The essays of three writers, and those of a fourth."""
    folder = tmp_path_factory.mktemp("corpora")
    every = [d for d in read_documents("anthology") if d.domains[0] in ("maps", "bees")]
    named = [d.authors[0].name for d in every]
    writers = [name for name in sorted(set(named)) if named.count(name) == 2][:4]
    for name, people in (("three", writers[:3]), ("fourth", writers[3:])):
        build_corpus((d for d in every if d.authors[0].name in people), folder / name)
    (folder / "a.txt").write_text(every[0].text)
    return folder


@pytest.fixture(scope="module")
def tiny(backbones):
    return ("--model", backbones["modernbert"], "--patch", "ngram:2")


@pytest.fixture
def index(corpora, tmp_path, encoder):
    from idiograph.corpus.corpus import Corpus
    from idiograph.index.index import Index
    from idiograph.style.model import Style

    Index.build(Corpus(corpora / "three"), tmp_path / "index", Style(encoder, patch="ngram:2"))
    return tmp_path / "index"


def test_an_index_is_made_with_the_settings_asked_for(idiograph, corpora, tmp_path, tiny):
    settings = ("--dtype", "int4", "--dim", 16, "--passages-per-document", 1)
    status, out, err = idiograph("index", corpora / "three", "-o", tmp_path / "index", *tiny, *settings, "--json")
    assert status == 0, err
    found = json.loads(out)
    assert found["passages"] == found["documents"] == 6
    assert (found["recipe"]["dtype"], found["recipe"]["dim"], found["preset"]) == ("int4", 16, "sound")


def test_a_folder_of_texts_is_indexed_as_it_is(idiograph, corpora, tmp_path, tiny):
    texts = tmp_path / "texts"
    texts.mkdir()
    for name in ("Ada_one", "Ada_two", "Bea_one"):
        (texts / f"{name}.txt").write_text((corpora / "a.txt").read_text().replace("the", name))
    status, out, err = idiograph("index", texts, "-o", tmp_path / "index", *tiny, "--json")
    assert status == 0, err
    assert json.loads(out)["documents"] == 3
    (texts / "nobody.txt").write_text("A text whose writer is not named.")
    status, out, err = idiograph("index", texts, "-o", tmp_path / "other", *tiny)
    assert (status, out, "nobody.txt" in err) == (1, "", True)
    assert not (tmp_path / "other").exists()


def test_documents_are_added_deleted_and_listed(idiograph, corpora, index, tiny):
    status, out, err = idiograph("index", corpora / "fourth", "-o", index, "--add", *tiny, "--json")
    assert (status, json.loads(out)["documents"]) == (0, 8), err
    status, out, _ = idiograph("index", "-o", index, "--info", *tiny, "--json")
    ids = json.loads(out)["ids"]
    status, out, _ = idiograph("index", "-o", index, "--delete", ids[0], "--delete", ids[1], "--compact", *tiny)
    assert status == 0
    assert "of 6 documents" in out
    status, out, _ = idiograph("index", "-o", index, "--info", *tiny, "--json")
    assert json.loads(out)["ids"] == ids[2:]


def test_a_search_prints_passages_and_honours_filters(idiograph, corpora, index, tiny):
    status, out, err = idiograph("search", index, corpora / "a.txt", *tiny, "-k", 3)
    assert status == 0, err
    assert "score" in out
    for extra in ((), ("--exact",), ("--depth", 3), ("--parts", 2)):
        args = ("--domain", "maps", *extra, *tiny, "-k", 3, "--json")
        status, out, err = idiograph("search", index, corpora / "a.txt", *args)
        assert status == 0, err
        (hits,) = json.loads(out).values()
        assert len(hits) == 3
        assert all(h["domains"] == ["maps"] for h in hits)
    status, out, _ = idiograph("search", index, corpora / "a.txt", *tiny, "--only-lang", "xx")
    assert (status, "no document of the index passes these filters" in out) == (0, True)


WRONG = {
    "nothing to do": (("index", "-o", "{index}"), "give a CORPUS to index, or --delete"),
    "a corpus to delete from": (("index", "{three}", "-o", "{index}", "--info"), "give no CORPUS with them"),
    "another dtype later": (
        ("index", "{three}", "-o", "{index}", "--add", "--dtype", "int8"),
        "--dtype is chosen when",
    ),
    "an unknown dtype": (("index", "{three}", "-o", "{new}", "--dtype", "int9"), "dtype"),
    "an unknown document": (("index", "-o", "{index}", "--delete", "nobody"), "has no document 'nobody'"),
    "another model": (("index", "-o", "{index}", "--info", "--patch", "whole"), "was made with model"),
    "no index": (("search", "{new}", "{a}"), "there is no index folder"),
    "a corpus, not an index": (("search", "{three}", "{a}"), "is a corpus, not an index"),
    "an index that is there": (("index", "{three}", "-o", "{index}"), "is there already"),
    "years": (("search", "{index}", "{a}", "--since", "2005", "--until", "2001"), "no year is both"),
    "a file for a folder": (("index", "{three}", "-o", "{a}/index"), "cannot make the folder"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_gets_one_line_and_status_1(idiograph, corpora, index, tmp_path, tiny, case):
    args, said = WRONG[case]
    places = {"index": index, "three": corpora / "three", "new": tmp_path / "new", "a": corpora / "a.txt"}
    patch = () if "--patch" in args else tiny[2:]
    status, _, err = idiograph(*(a.format(**places) for a in args), *tiny[:2], *patch)
    assert status == 1
    assert err.count("\n") == 1
    assert said in err


def test_a_second_writer_gets_one_line(idiograph, corpora, index, tiny):
    with locked_folder(index):
        status, _, err = idiograph("index", corpora / "fourth", "-o", index, "--add", *tiny)
    assert status == 1
    assert "another run is writing" in err


def test_an_empty_index_says_so(idiograph, corpora, index, tiny):
    _, out, _ = idiograph("index", "-o", index, "--info", *tiny, "--json")
    gone = [part for name in json.loads(out)["ids"] for part in ("--delete", name)]
    status, out, _ = idiograph("index", "-o", index, *gone, *tiny)
    assert status == 0
    status, _, err = idiograph("search", index, corpora / "a.txt", *tiny)
    assert status == 1
    assert "is empty; add documents" in err


def test_a_new_index_brings_no_warnings_of_the_storage_below(corpora, tmp_path, tiny):
    import subprocess
    import sys

    command = [sys.executable, "-m", "idiograph", "index", corpora / "three", "-o", tmp_path / "new", *tiny]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, check=True)
    assert "WARN" not in done.stdout + done.stderr
