"""The study from end to end, on the built-in corpus and a tiny model: what it writes, and that it goes on where it was."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from resealed import reseal

from idiograph.cli.study import backbones_of
from idiograph.errors import InputError, SpecError
from idiograph.neural.encoder import TorchEncoder
from idiograph.recipe import make_recipe
from idiograph.runner import Workers
from idiograph.study.outcomes import RunOutcome, outcome_file, read_outcomes
from idiograph.study.plan import PLAN, QUICK, Portions, StudyTexts, read_plan
from idiograph.study.run import StudyRequest, run_study


@pytest.fixture(scope="module")
def wanted(backbones) -> StudyRequest:
    few = replace(QUICK, steps=1, grains=("whole", "ngram:1", "ngram:2"), temperatures=(0.05,), tempered=("whole",))
    given = Portions(40, (2, 4), 16, 40, (8, 20), (4,), 64, 32)
    about = {"quick": True, "device": "cpu", "commands": ("typed",), "sizes": few, "portions": given}
    about["semantic"] = {"meaning": str(backbones["modernbert"])}
    return StudyRequest(make_recipe("sound"), {"tiny": str(backbones["bert"])}, **about)


def texts_of(out) -> StudyTexts:
    return read_plan(out).texts({"anthology": out / "triplets" / "anthology"})


def outcomes_of(out) -> list[RunOutcome]:
    return read_outcomes(out / "runs", read_plan(out).runs)


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
    (meaning,) = (o for o in outcomes_of(out) if o.run.stage == "semantic")
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
    assert len(account["runs"]) == found.runs == len(read_plan(out).runs)
    assert {run["seed"] for run in account["runs"]} == {7}


def test_models_are_trained_for_the_same_number_of_steps(finished):
    out, _ = finished
    steps = {o.about["steps"] for o in outcomes_of(out) if o.run.rule != "none" and o.run.stage != "negatives"}
    assert steps == {1}


def test_no_author_that_is_measured_was_trained_on(finished):
    texts = texts_of(finished[0])
    trained = {int(label) for part in texts.train("base") for label in part.labels[part.rows[:, :2]].ravel()}
    measured = {int(label) for each in texts.benchmarks for label in each.clusters}
    chosen_by = {int(label) for each in texts.valid for label in each.clusters}
    assert not trained & measured
    assert not trained & chosen_by
    assert not measured & chosen_by


def test_pools_are_of_one_size_for_every_length(finished):
    benchmarks = [each for each in texts_of(finished[0]).benchmarks if each.rule == "base"]
    assert len({each.sentences for each in benchmarks}) == 2
    assert len({len(each.pool) for each in benchmarks}) == 1


def test_a_stopped_study_goes_on_without_training_again(finished, wanted, monkeypatch):
    out, found = finished
    monkeypatch.setattr(TorchEncoder, "open", None)  # any training would fail
    assert run_study(["anthology"], out, replace(wanted, stages=("mine", "pack", "models"))) is None
    assert len(list((out / "runs").iterdir())) == found.runs


def test_runs_that_are_lost_are_done_again_by_other_processes(finished, wanted, tmp_path):
    done, found = finished
    out = tmp_path / "out"
    shutil.copytree(done, out)
    lost = [outcome_file(out / "runs", run) for run in read_plan(out).runs[:2]]
    before = {path.name: path.stat().st_mtime_ns for path in (out / "runs").iterdir()}
    for path in lost:
        path.unlink()
    workers = Workers("processes", 2)
    assert run_study(["anthology"], out, replace(wanted, stages=("models",), workers=workers)) is None
    after = {path.name: path.stat().st_mtime_ns for path in (out / "runs").iterdir()}
    assert len(after) == found.runs
    assert {name for name in after if after[name] != before[name]} == {path.name for path in lost}
    for first, again in zip(outcomes_of(done), outcomes_of(out), strict=True):
        for name, array in first.arrays.items():
            np.testing.assert_allclose(again.arrays[name], array, atol=1e-4)


def test_no_model_is_begun_when_the_time_is_up(finished, wanted, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished[0], out, ignore=shutil.ignore_patterns("runs"))
    assert run_study(["anthology"], out, replace(wanted, stages=("models",), budget=0.0)) is None
    assert not (out / "runs").exists()


def test_a_run_that_fails_stops_no_other_and_is_named(finished, wanted, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished[0], out)
    runs = read_plan(out).runs
    meaning = next(run for run in runs if run.stage == "semantic")
    for run in (meaning, runs[-2]):
        outcome_file(out / "runs", run).unlink()
    broken = replace(wanted, stages=("models",), semantic={"meaning": str(tmp_path / "nothing.npz")})
    with pytest.raises(
        InputError, match=r"1 runs failed \(meaning whole untrained: InputError: .* is no file of vectors"
    ):
        run_study(["anthology"], out, broken)
    assert outcome_file(out / "runs", runs[-2]).is_file()


def test_a_study_goes_on_with_the_triplets_that_it_was_begun_with(finished, wanted, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished[0], out)
    other = out / "triplets" / "anthology"
    next(other.rglob("train-*.parquet")).unlink()
    reseal(other, "triplets")
    with pytest.raises(InputError, match="begun with other triplets, of anthology; give the sources"):
        run_study(["anthology"], out, wanted)


def test_quick_runs_include_the_published_temperature(finished):
    runs = read_plan(finished[0]).runs
    assert {(r.patch, r.tau, r.score) for r in runs if r.stage == "published"} == {
        (grain, 0.5, "maxsim") for grain in ("whole", "ngram:1", "ngram:2")
    }


def test_an_unknown_stage_is_refused_with_the_choices():
    with pytest.raises(SpecError, match="unknown stage 'modles'; choose from mine, models, pack, report"):
        StudyRequest(make_recipe("sound"), {}, stages=("modles",))


def test_a_report_without_models_says_what_to_do_first(wanted, finished, tmp_path):
    (tmp_path / "out").mkdir()
    shutil.copy(finished[0] / PLAN, tmp_path / "out")
    source = str(finished[0] / "triplets" / "anthology")
    with pytest.raises(InputError, match="--stage models first"):
        run_study([source], tmp_path / "out", replace(wanted, stages=("report",)))


def test_two_backbones_need_two_names():
    with pytest.raises(InputError, match="two backbones are called 'a'; give them names: --backbone NAME=FOLDER"):
        backbones_of(["x/a", "y/a"])
