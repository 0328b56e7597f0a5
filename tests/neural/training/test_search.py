"""A search draws the same trials always, goes on where it was, gives up the poorer ones, and reads no test passages."""

import json

import pytest
from trainees import one_thread, passages, triplets, write_jsonl  # noqa: F401

from idiograph.errors import ArtifactError, InputError, SpecError
from idiograph.neural.training.search import (
    SearchPlan,
    SearchTrial,
    Space,
    TrialOutcome,
    count_trials,
    pick_value,
    read_space,
    rungs,
    search_settings,
)
from idiograph.neural.triplets import triplets_from_rows
from idiograph.runner import Workers

SHARED = {"patch": "ngram:2", "batch": 4, "max_length": 64, "anchors": 20, "pool": 40, "save_every": 1000}
SPACE = Space({"lr": {"low": 1e-5, "high": 1e-2, "log": True}, "tau": [0.05, 0.2]}, SHARED)


@pytest.fixture
def data(tmp_path):
    write_jsonl(triplets(12), tmp_path / "some.jsonl")
    rows = passages(24, seed=3)
    for at, row in enumerate(rows):
        for role in range(2):
            row[role] = (row[role][0], f"author {at % 6}", row[role][2])
    write_jsonl(triplets_from_rows(rows, "valid"), tmp_path / "valid.jsonl")
    return [tmp_path / "some.jsonl"], [tmp_path / "valid.jsonl"]


def search(data, backbones, folder, **changes):
    sources, valid = data
    how = SearchPlan(**{"trials": 3, "steps": 2, **changes})
    return search_settings(sources, folder, SPACE, how, valid=valid, device="cpu", backbone=backbones["bert"])


def test_a_draw_depends_on_the_seed_and_the_number_alone():
    assert SPACE.draw(7, 3) == SPACE.draw(7, 3)
    assert len({str(SPACE.draw(7, number)) for number in range(10)}) > 5
    wider = Space({**SPACE.choices, "batch": [4, 8]}, {})
    assert {key: wider.draw(7, 3)[key] for key in SPACE.choices} == SPACE.draw(7, 3)


def test_a_range_is_drawn_evenly_in_its_logarithm():
    from random import Random

    chance = Random(0)
    drawn = [pick_value(chance, {"low": 1e-5, "high": 1e-3, "log": True}) for _ in range(400)]
    assert 1e-5 <= min(drawn) < max(drawn) <= 1e-3
    assert 0.4 < sum(value < 1e-4 for value in drawn) / 400 < 0.6
    assert {pick_value(chance, {"low": 1, "high": 3, "whole": True}) for _ in range(50)} == {1, 2, 3}


def test_a_third_goes_on_with_three_times_the_steps():
    how, outcomes = SearchPlan(trials=9, rungs=3, steps=90), []
    taken = []
    for trials in rungs(SPACE, how, outcomes):
        taken.append([(trial.number, trial.steps) for trial in trials])
        outcomes += [TrialOutcome(trial, trial.number / 10, {}) for trial in trials]
    assert taken == [[(n, 10) for n in range(9)], [(6, 30), (7, 30), (8, 30)], [(8, 90)]]
    assert count_trials(how) == 13


def test_a_search_ranks_its_trials_and_keeps_the_best_model(data, backbones, tmp_path):
    from idiograph.loading import load

    found = search(data, backbones, tmp_path / "search")
    scores = [outcome.score for outcome in found]
    assert scores == sorted(scores, reverse=True)
    assert sorted(outcome.trial.number for outcome in found) == [0, 1, 2]
    assert load(tmp_path / "search" / "best").patch == "ngram:2"
    best = json.loads((tmp_path / "search" / "best" / "manifest.json").read_text())
    assert best["recipe"]["lr"] == found[0].trial.settings["lr"]
    assert not list((tmp_path / "search").glob("trial-*"))


def test_a_search_goes_on_where_it_was_and_may_be_prolonged(data, backbones, tmp_path):
    first = search(data, backbones, tmp_path / "search", trials=2)
    done = (tmp_path / "search" / "trials.jsonl").read_text()
    longer = search(data, backbones, tmp_path / "search", trials=3)
    assert (tmp_path / "search" / "trials.jsonl").read_text().startswith(done)
    assert {(o.trial.number, o.score) for o in first} < {(o.trial.number, o.score) for o in longer}
    assert (tmp_path / "search" / "best" / "manifest.json").is_file()


@pytest.mark.slow  # each process opens torch for itself
@pytest.mark.parametrize("runner", ["processes", pytest.param("ray", marks=pytest.mark.slow)])
def test_others_find_what_one_finds(data, backbones, tmp_path, runner):
    pytest.importorskip("ray" if runner == "ray" else "multiprocessing", reason="Ray is not installed")
    one = search(data, backbones, tmp_path / "one", trials=2)
    many = search(data, backbones, tmp_path / "many", trials=2, workers=Workers(runner, 2))
    assert [(o.trial.number, o.score) for o in one] == [(o.trial.number, o.score) for o in many]


def test_another_search_in_the_same_folder_is_refused(data, backbones, tmp_path):
    search(data, backbones, tmp_path / "search", trials=1)
    with pytest.raises(ArtifactError, match="holds another search; choose another -o"):
        search(data, backbones, tmp_path / "search", trials=1, steps=3)


def test_a_folder_of_something_else_is_left_alone(data, backbones, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(ArtifactError, match="holds something else than a search"):
        search(data, backbones, tmp_path / "thesis")


def test_a_search_needs_something_to_validate_on(data, backbones, tmp_path):
    with pytest.raises(InputError, match="there is nothing to validate on"):
        search((data[0], []), backbones, tmp_path / "search", trials=1)


def test_a_run_that_breaks_down_comes_last(tmp_path):
    good, bad = (TrialOutcome(SearchTrial(n, 0, 1, {}), score, {}) for n, score in ((0, 0.1), (1, None)))
    assert min((bad, good), key=lambda o: o.place) is good


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[space]\nlr = 3", "lr must be a list of choices or {low = …, high = …}, but is 3"),
        ("[space]\nlr = {low = 1.0, high = 0.1}", "lr goes from 1.0 to 0.1; the low end must be the lower"),
        ("[train]\nlr = 0.1", r"a space has a table \[space\]"),
        ("[space", "not TOML"),
    ],
)
def test_a_space_that_is_none_is_refused(tmp_path, text, words):
    (tmp_path / "space.toml").write_text(text)
    with pytest.raises(InputError, match=words):
        read_space(tmp_path / "space.toml")


def test_a_setting_that_does_not_exist_is_named_before_anything_runs(tmp_path):
    (tmp_path / "space.toml").write_text("[space]\nlearning_rte = [0.1]")
    with pytest.raises(SpecError, match="has no key 'learning_rte'"):
        read_space(tmp_path / "space.toml")


def test_the_command_prints_a_table(data, backbones, tmp_path, idiograph):
    (tmp_path / "space.toml").write_text(
        '[space]\nlr = [1e-3, 1e-5]\n[train]\npatch = "ngram:2"\nbatch = 4\nmax_length = 64\nanchors = 20\npool = 40\n'
    )
    sources, valid = data
    status, said, _ = idiograph(
        "tune", sources[0], "-o", tmp_path / "found", "--space", tmp_path / "space.toml", "--trials", 2, "--steps", 1,
        "--valid", valid[0], "--backbone", backbones["bert"], "--device", "cpu", "--seed", 2,
    )  # fmt: skip
    assert status == 0
    assert "R@20" in said
    assert "0.001" in said
    assert (tmp_path / "found" / "best" / "modules.json").is_file()


def test_an_ablation_changes_one_thing_at_a_time():
    width = [{"dim": 8, "head": "linear"}]
    space = Space(
        {"patch": ["whole", "ngram:2", "word"], "tau": [0.05], "width": width}, {"patch": "ngram:2", "lr": 1e-4}
    )
    how = SearchPlan(ablate=True, trials=5)
    taken = [trial.settings for trials in rungs(space, how, []) for trial in trials]
    base = {"patch": "ngram:2", "lr": 1e-4}
    assert taken == [
        base,  # and not again for the choice that is the base
        {**base, "patch": "whole"},
        {**base, "patch": "word"},
        {**base, "tau": 0.05},
        {**base, "dim": 8, "head": "linear"},
    ]


def ablated(folder, space, steps, data, backbone, idiograph):
    """The rows that `tune --ablate` prints for a space."""
    shared = '[train]\npatch = "ngram:2"\nbatch = 4\nmax_length = 64\n'
    (folder / "space.toml").write_text(f"[space]\n{space[0]}\n{shared}{space[1]}\n")
    sources, valid = data
    status, said, _ = idiograph(
        "tune", sources[0], "-o", folder / "found", "--space", folder / "space.toml", "--ablate", "--steps", steps,
        "--valid", valid[0], "--backbone", backbone, "--device", "cpu", "--json",
    )  # fmt: skip
    assert status == 0
    return json.loads(said)


def test_a_run_that_training_made_no_better_says_that_it_kept_what_it_began_with(data, backbones, tmp_path, idiograph):
    space = ("lr = [1e-30]", "lr = 1e-5\nanchors = 20\npool = 40")
    assert ablated(tmp_path, space, 3, data, backbones["bert"], idiograph)[1]["step"] == 0


def test_other_seeds_are_validated_on_the_same_passages(data, backbones, tmp_path, idiograph):
    """Else a difference between two seeds would be one between two samples."""
    space = ("seed = [8]", "lr = 1e-30\nanchors = 3\npool = 12")
    one, other = ablated(tmp_path, space, 1, data, backbones["bert"], idiograph)
    assert one["measures"] == pytest.approx(other["measures"])


def test_a_table_of_settings_is_drawn_as_one():
    space = Space({"width": [{"dim": 8, "head": "linear"}, {"dim": "none", "head": "none"}]}, {})
    drawn = [space.draw(7, number) for number in range(20)]
    assert all(set(found) == {"dim", "head"} for found in drawn)
    assert {(found["dim"], found["head"]) for found in drawn} == {(8, "linear"), ("none", "none")}


def test_an_ablation_goes_through_lists_and_has_one_rung():
    with pytest.raises(InputError, match="lr is a range; write some values"):
        SPACE.alone()
    with pytest.raises(SpecError, match="leave out --rungs"):
        SearchPlan(ablate=True, rungs=2, steps=9)


def test_an_ablation_is_one_table(data, backbones, tmp_path, idiograph):
    (tmp_path / "space.toml").write_text(
        '[space]\npatch = ["whole", "ngram:1"]\nwidth = [{dim = 8, head = "linear"}]\n'
        '[train]\npatch = "ngram:2"\nbatch = 4\nmax_length = 64\nanchors = 20\npool = 40\n'
    )
    sources, valid = data
    given = (
        "tune", sources[0], "-o", tmp_path / "found", "--space", tmp_path / "space.toml", "--ablate", "--steps", 1,
        "--valid", valid[0], "--backbone", backbones["bert"], "--device", "cpu",
    )  # fmt: skip
    status, said, _ = idiograph(*given, "--json")
    rows = json.loads(said)
    assert status == 0
    assert [row["changed"] for row in rows] == [
        {},
        {"patch": "whole"},
        {"patch": "ngram:1"},
        {"dim": 8, "head": "linear"},
    ]
    assert rows[0]["measures"] != rows[1]["measures"]
    assert all(row["score"] == pytest.approx(row["measures"]["score"]) for row in rows)
    assert all(row["step"] in (0, 1) for row in rows)
    status, said, _ = idiograph(*given)  # done already: the table alone
    assert status == 0
    lines = [line for line in said.splitlines() if "│" in line or "|" in line]
    assert ["nothing" in lines[0], "patch whole" in lines[1]] == [True, True]
    assert f"{rows[1]['score'] - rows[0]['score']:+.4f}" in lines[1]
