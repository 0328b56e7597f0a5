"""The study from end to end, on the built-in corpus and a tiny model: what it writes, and that it goes on where it was."""

import json
import shutil
from dataclasses import replace

import pytest

from idiograph.cli.study import backbones_of
from idiograph.errors import InputError, SpecError
from idiograph.neural.encoder import TorchEncoder
from idiograph.recipe import make_recipe
from idiograph.study import remote
from idiograph.study.pack import Pack
from idiograph.study.plan import QUICK
from idiograph.study.prepare import Portions
from idiograph.study.results import Store
from idiograph.study.run import StudyRequest, run_study


@pytest.fixture(scope="module")
def wanted(backbones) -> StudyRequest:
    few = replace(QUICK, steps=1, grains=("whole", "ngram:1", "ngram:2"), temperatures=(0.05,), tempered=("whole",))
    given = Portions(40, (2, 4), 16, 40, (8, 20), (4,), 64, 32)
    about = {"quick": True, "device": "cpu", "commands": ("typed",), "sizes": few, "portions": given}
    about["semantic"] = {"meaning": str(backbones["modernbert"])}
    return StudyRequest(make_recipe("sound"), {"tiny": str(backbones["bert"])}, **about)


@pytest.fixture(scope="module")
def finished(wanted, tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "out"
    return out, run_study(["anthology"], out, wanted)


def test_the_report_is_one_page_with_tables_figures_and_claims(finished):
    _out, found = finished
    page = found.page.read_text(encoding="utf-8")
    assert page.count("<table>") > 10
    assert page.count("<svg") > 5
    assert "A quick run." in page
    assert "http://www.w3.org" in page
    assert 'src="http' not in page
    assert "<link" not in page


def test_a_model_of_meaning_is_read_as_it_comes(finished):
    out, _found = finished
    assert (out / "tables" / "meaning-meaning.csv").is_file()
    (meaning,) = (o for o in Store(out / "runs") if o.run.stage == "semantic")
    assert "steps" not in meaning.about


def test_every_table_is_there_as_latex_csv_and_json(finished):
    out, _ = finished
    tables = json.loads((out / "tables.json").read_text())
    assert {"overlap", "decoupling-tiny", "lead-main-tiny", "geometry-main-tiny"} <= {t["name"] for t in tables}
    for table in tables:
        assert (out / "tables" / f"{table['name']}.tex").read_text().startswith("\\begin{table}")
        assert (out / "tables" / f"{table['name']}.csv").read_text().count("\n") > 1


def test_every_run_is_accounted_for_with_its_seed(finished):
    out, found = finished
    account = json.loads((out / "account.json").read_text())
    assert account["commands"] == ["typed"]
    assert len(account["runs"]) == found.runs == len(Pack.open(out / "pack").runs)
    assert {run["seed"] for run in account["runs"]} == {7}


def test_models_are_trained_for_the_same_number_of_steps(finished):
    out, _ = finished
    steps = {o.about["steps"] for o in Store(out / "runs") if o.run.rule != "none" and o.run.stage != "negatives"}
    assert steps == {1}


def test_no_author_that_is_measured_was_trained_on(finished):
    pack = Pack.open(finished[0] / "pack")
    trained = {int(label) for part in pack.train("base") for label in part.labels[part.rows[:, :2]].ravel()}
    measured = {int(label) for bench in pack.benches for label in bench.clusters}
    chosen_by = {int(label) for bench in pack.valid for label in bench.clusters}
    assert not trained & measured
    assert not trained & chosen_by
    assert not measured & chosen_by


def test_pools_are_of_one_size_for_every_length(finished):
    benches = [bench for bench in Pack.open(finished[0] / "pack").benches if bench.rule == "base"]
    assert len({bench.sentences for bench in benches}) == 2
    assert len({len(bench.pool) for bench in benches}) == 1


def test_a_stopped_study_goes_on_without_training_again(finished, wanted, monkeypatch):
    out, found = finished
    monkeypatch.setattr(TorchEncoder, "open", None)  # any training would fail
    assert run_study(["anthology"], out, replace(wanted, stages=("mine", "pack", "models"))) is None
    assert len(Store(out / "runs").names()) == found.runs


def test_quick_runs_include_the_published_temperature(finished):
    runs = Pack.open(finished[0] / "pack").runs
    assert {(r.patch, r.tau, r.score) for r in runs if r.stage == "published"} == {
        (grain, 0.5, "maxsim") for grain in ("whole", "ngram:1", "ngram:2")
    }


def test_the_remote_entry_does_only_what_is_left(finished, tmp_path, capsys):
    out, _found = finished
    given = [str(out / "pack"), str(tmp_path / "more"), "--backbone", "tiny=nowhere", "--workers", "0"]
    assert remote.run_remote([*given, "--done", str(out / "runs")]) == 0
    assert "0/0 runs done" in capsys.readouterr().err


def test_an_unknown_stage_is_refused_with_the_choices():
    with pytest.raises(SpecError, match="unknown stage 'modles'; choose from mine, models, pack, report"):
        StudyRequest(make_recipe("sound"), {}, stages=("modles",))


def test_a_report_without_models_says_what_to_do_first(wanted, finished, tmp_path):
    shutil.copytree(finished[0] / "pack", tmp_path / "out" / "pack")
    source = str(finished[0] / "triplets" / "anthology")
    with pytest.raises(InputError, match="--stage models first"):
        run_study([source], tmp_path / "out", replace(wanted, stages=("report",)))


def test_two_backbones_need_two_names():
    with pytest.raises(InputError, match="two backbones are called 'a'; give them names: --backbone NAME=FOLDER"):
        backbones_of(["x/a", "y/a"])
