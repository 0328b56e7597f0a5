"""Settings are checked, named and read back as they were written."""

import pytest

from idiograph.errors import InputError, SpecError
from idiograph.presets import PRESETS
from idiograph.recipe import TrainRecipe, make_recipe, parse_settings, read_recipe, to_toml, toml_literal


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_recipe_reads_back_as_it_was_written(tmp_path, preset):
    (tmp_path / "recipe.toml").write_text(to_toml(make_recipe(preset)))
    assert read_recipe(tmp_path / "recipe.toml") == make_recipe(preset)


def test_the_presets_differ_where_the_protocols_do():
    sound, paper = make_recipe("sound"), make_recipe("paper")
    assert (sound.mine.split, paper.mine.split) == ("groups", "triplet")
    assert (sound.evaluate.own_document, paper.evaluate.own_document) == ("exclude", "keep")
    assert (sound.style.score, paper.style.score) == ("meansim", "maxsim")


def test_an_unknown_key_is_refused_with_a_suggestion(tmp_path):
    (tmp_path / "r.toml").write_text("[mine]\nsentnces = 4\n")
    with pytest.raises(SpecError, match=r"r\.toml: \[mine\] has no key 'sentnces' \(did you mean 'sentences'\?\)"):
        read_recipe(tmp_path / "r.toml")


def test_an_unknown_table_is_refused_with_a_suggestion():
    with pytest.raises(SpecError, match="has no key 'mien'.*did you mean 'mine'"):
        make_recipe("sound", {"mien": {"sentences": 4}})


def test_a_wrong_value_is_named_with_its_table():
    with pytest.raises(SpecError, match=r"\[mine\] seed: .*but got 'x'"):
        make_recipe("sound", {"mine": {"seed": "x"}})


def test_an_unknown_preset_is_refused():
    with pytest.raises(SpecError, match="unknown preset 'papr'.*did you mean 'paper'"):
        make_recipe("papr")


def test_a_missing_or_broken_file_is_named(tmp_path):
    with pytest.raises(InputError, match="no recipe file"):
        read_recipe(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[mine")
    with pytest.raises(InputError, match="not TOML"):
        read_recipe(tmp_path / "bad.toml")


def test_a_recipe_cannot_be_changed_in_place():
    with pytest.raises(ValueError, match="frozen"):
        make_recipe().mine.seed = 8


def test_every_setting_can_be_given_as_text():
    for key, value in TrainRecipe():
        given = parse_settings("train", [f"{key}={toml_literal(value)}"])
        assert getattr(make_recipe("sound", {"train": given}).train, key) == value


def test_a_plain_word_is_text_and_a_number_is_none_where_text_is_meant():
    given = parse_settings("train", ["head=mlp", "backbone=7", "seed=7", "tau=.5", "center=True", "teacher=a=b"])
    chosen = make_recipe("sound", {"train": given}).train
    assert (chosen.head, chosen.backbone, chosen.seed) == ("mlp", "7", 7)
    assert (chosen.tau, chosen.center, chosen.teacher) == (0.5, True, "a=b")


def test_a_text_with_quotes_comes_back_from_toml(tmp_path):
    asked = make_recipe("sound", {"harvest": {"query": 'title_t:"style" AND \\x'}})
    (tmp_path / "r.toml").write_text(to_toml(asked))
    assert read_recipe(tmp_path / "r.toml") == asked
