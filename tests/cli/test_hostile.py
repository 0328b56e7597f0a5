"""What strangers put into names, texts and settings: every command shows it as it is, or says in one line what is wrong."""

import json
import os
from pathlib import Path

import pytest

from idiograph.synth.anthology import anthology

NAME = "[/x] [sic] :smile:"  # what rich would obey
MARK = "[sic]"


@pytest.fixture(scope="module")
def room(tmp_path_factory, backbones):
    """A corpus, triplets, an index and files whose names and texts are markup."""
    folder = tmp_path_factory.mktemp("room") / "[b]room[i]"
    folder.mkdir()
    writers = {d.authors[0].name: None for d in anthology()}
    named = {writer: f"{NAME} {number}" for number, writer in enumerate(writers)}
    with (folder / "rows.jsonl").open("w") as file:
        for d in list(anthology())[:24]:
            text = f"As they say [/x] and {MARK} in [bold]print. {d.text}"
            row = {"id": f"{MARK}{d.id}", "title": f"[/x] {d.title}", "text": text, "domain": list(d.domains)}
            file.write(json.dumps({**row, "authors": [named[d.authors[0].name]], "lang": "en"}) + "\n")
    texts = [d.text for d in anthology()][:2]
    for name, text in zip(("[a].txt", "[b].txt"), texts, strict=True):
        (folder / name).write_text(f"{text} As they say [/x] and {MARK} in [bold]print.")
    return folder


@pytest.fixture(scope="module")
def tiny(backbones):
    return ("--model", backbones["bert"])


def test_every_command_shows_names_paths_and_passages_as_they_are(idiograph, room, tiny, monkeypatch):
    monkeypatch.setattr("idiograph.cli.shared.out.width", 400)
    monkeypatch.setattr("idiograph.cli.shared.err.width", 400)

    def shown(*line):
        status, out, err = idiograph(*line)
        assert status == 0, f"{line}: {err}"
        assert "\N{GRINNING FACE}" not in out + err
        return out + err

    corpus, index, triplets = room / "c", room / "i", room / "t"
    assert "[b]room[i]" in shown("corpus", room / "rows.jsonl", "-o", corpus)
    assert "[b]room[i]" in shown("index", corpus, "-o", index, *tiny)
    assert MARK in shown("search", index, room / "[b].txt", *tiny)
    assert "[b]room[i]" in shown("mine", corpus, "-o", triplets, "--per-document", 1)
    assert shown("audit", triplets)
    found = shown("attribute", index, room / "[a].txt", *tiny)
    assert NAME in found
    assert "[a].txt" in found
    assert MARK in shown("search", index, room / "[a].txt", *tiny)
    assert MARK in shown("explain", room / "[a].txt", room / "[b].txt", *tiny)
    assert shown("verify", room / "[a].txt", room / "[b].txt", *tiny)
    assert "[b]room[i]" in shown("check", corpus, index, triplets)


@pytest.mark.parametrize("name", ["zero", "pipe"])
def test_a_text_that_never_ends_is_refused_at_once(idiograph, tmp_path, name):
    path = tmp_path / name
    path.symlink_to("/dev/zero") if name == "zero" else os.mkfifo(path)
    (tmp_path / "a.txt").write_text("Some words.")
    status, _, err = idiograph("verify", path, tmp_path / "a.txt")
    assert status == 1
    assert err == f"idiograph: '{path}': not a regular file\n"


def test_a_name_that_is_not_utf8_is_shown(idiograph, tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt"))
    status, _, err = idiograph("verify", path, path)
    assert status == 1
    assert "there is no file" in err


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ("[download]\ninterval = nan", "interval"),
        ("[download]\ninterval = inf", "interval"),
        ("[download]\nworkers = 1000000", "workers"),
        ("[extract]\ntimeout = 1e300", "timeout"),
        ("[mine]\nfractions = [nan, 0.1, 0.1]", "fractions"),
        ("[train]\nseed = 99999999999999999999", "seed"),
        ("[train]\nlr = inf", "lr"),
        (f"[train]\nseed = {'9' * 5000}", "not TOML"),
        (f"[train]\nweights = {'[' * 5000}", "not TOML"),
    ],
)
def test_settings_that_nothing_can_work_with_are_refused_in_one_line(idiograph, tmp_path, recipe, said):
    (tmp_path / "r.toml").write_text(recipe)
    status, _, err = idiograph("recipe", "--recipe", tmp_path / "r.toml")
    assert status == 1
    assert said in err
    assert err.count("\n") == 1


def test_a_million_workers_are_refused(idiograph, tmp_path):
    status, _, err = idiograph("corpus", "anthology", "-o", tmp_path / "c", "--runner", "processes", "--workers", 10**6)
    assert status == 2
    assert "1024" in err
