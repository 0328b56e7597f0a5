"""The line from the archive to the corpus, as the documentation tells it, against servers on this machine."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from idiograph import cli
from tests.standin.archive import make_archive
from tests.standin.hal import HalStandIn

PAGE = Path(__file__).parents[1] / "docs" / "corpus.md"
FAST = 'preset = "sound"\n[harvest]\ninterval = 0.0\n[download]\ninterval = 0.0\nallow_private = true\n'


def run(monkeypatch, line):
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code or 0


def test_the_commands_of_the_page_lead_from_the_archive_to_a_corpus(tmp_path, monkeypatch, capsys):
    from idiograph.corpus.corpus import Corpus

    monkeypatch.chdir(tmp_path)
    (tmp_path / "fast.toml").write_text(FAST)
    commands = re.search(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[1].splitlines()
    with HalStandIn(make_archive(40)) as server:
        for line in commands:
            verb = line.split()[1]
            extra = f" --server {server.url}" if verb == "harvest" else ""
            fast = " --recipe fast.toml" if verb in ("harvest", "download") else ""
            line = re.sub(r"--since \S+", "", line)
            assert run(monkeypatch, line + extra + fast) == 0, f"{line}: {capsys.readouterr().err}"
    corpus = list(Corpus(tmp_path / "data" / "corpus"))
    assert corpus
    assert all(d.source == "HAL" and d.licence and d.authors and d.domains for d in corpus)
    assert "What is in the corpus" in (tmp_path / "reports" / "corpus" / "stats.html").read_text()


def test_a_server_that_is_not_there_gets_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "fast.toml").write_text(
        FAST.replace("interval = 0.0\n[download]", "interval = 0.0\nattempts = 1\n[download]")
    )
    line = f"idiograph harvest -o {tmp_path}/r --server http://127.0.0.1:9 --recipe {tmp_path}/fast.toml"
    assert run(monkeypatch, line) == 1
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith("idiograph: ")


def test_a_model_is_trained_from_the_command_line(tmp_path, monkeypatch, capsys, backbones, anthology_corpus):
    from idiograph.loading import load

    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, f"idiograph mine {anthology_corpus.folder} -o triplets --per-document 2 --seed 3") == 0
    options = "--patch ngram:2 --batch 8 --steps 2 --device cpu"
    status = run(monkeypatch, f"idiograph train triplets -o model --backbone {backbones['bert']} {options}")
    assert status == 0, capsys.readouterr().err
    assert load(tmp_path / "model").patch == "ngram:2"


def test_an_audit_passes_sound_triplets_and_fails_leaking_ones(tmp_path, monkeypatch, anthology_corpus):
    monkeypatch.chdir(tmp_path)
    for preset, status in (("sound", 0), ("paper", 1)):
        changes = "[mine]\nfractions = [0.6, 0.2, 0.2]\nper_document = 6\n"
        (tmp_path / f"{preset}.toml").write_text(f'preset = "{preset}"\n{changes}')
        assert run(monkeypatch, f"idiograph mine {anthology_corpus.folder} -o {preset} --recipe {preset}.toml") == 0
        assert run(monkeypatch, f"idiograph audit {preset}") == status


def test_the_topic_check_prints_and_writes_its_page(tmp_path, monkeypatch, capsys, anthology_corpus):
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, f"idiograph mine {anthology_corpus.folder} -o triplets") == 0
    assert run(monkeypatch, "idiograph topic triplets -o reports --split train --limit 100") == 0
    assert "base-4" in capsys.readouterr().out
    assert (tmp_path / "reports" / "topic.html").is_file()
