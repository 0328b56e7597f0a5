"""Is a text of the kind that a calibration knows? And calibrations that know several kinds."""

import json

import pytest

from idiograph.answer.kinds import kind_rates, ranges_of_texts, unlike_ranges
from idiograph.answer.pairs import open_mixture, open_pairs, split_label
from idiograph.errors import SpecError
from idiograph.recipe import CalibrateRecipe
from idiograph.synth.anthology import anthology

ESSAYS = [d.text for d in anthology()]
STORY = (
    '"Don\'t you dare!" she cried. "I\'m not going, and you can\'t make me." He laughed at her. "You\'ll see," he said. '
    '"I\'ve been there." She didn\'t answer him. "Won\'t you come?" he asked her again. "I won\'t!" '
) * 3


def test_rates_are_counted_in_a_thousand_words():
    found = kind_rates("You and I don't know 12 of them. Why?")
    assert found["I and you"] == pytest.approx(1000 * 2 / 8)
    assert found["contractions"] == pytest.approx(1000 / 8)
    assert found["figures"] == pytest.approx(1000 / 8)
    assert found["words a sentence"] == pytest.approx(4)


def test_a_story_is_unlike_essays_and_an_essay_is_not():
    known = ranges_of_texts(ESSAYS[::2])
    said = unlike_ranges([STORY], known)
    assert any(note.startswith("he and she") and "there 0 to" in note for note in said)
    assert sum(bool(unlike_ranges([text], known)) for text in ESSAYS[1::2]) <= 2


def test_one_rate_out_of_range_says_nothing():
    assert unlike_ranges(["He, she, he, she. " * 30], {"he and she": (0.0, 5.0)}) == []
    assert ranges_of_texts([]) == {}
    assert unlike_ranges([STORY], {}) == []


def test_texts_of_another_kind_get_no_ratio_unless_one_is_wanted(idiograph, tmp_path, backbones, anthology_corpus):
    model = ("--model", backbones["bert"], "--patch", "ngram:2")
    file = tmp_path / "papers.json"
    args = ("calibrate", backbones["bert"], anthology_corpus.folder, "--patch", "ngram:2", "--pairs", 40)
    status, _, err = idiograph(*args, "-o", file)
    assert status == 0, err
    saved = json.loads(file.read_text())
    assert "register" in saved["about"]
    saved["about"]["register"] |= {
        "he and she": [0, 1],
        "contractions": [0, 0],
        "I and you": [0, 2],
    }  # as papers have it
    saved["calibration"] |= {"weights": [0.5, 0, 0, 0], "low": -1, "high": 1}  # a model of chance may have learned none
    file.write_text(json.dumps(saved))
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(STORY)
    status, out, _ = idiograph("verify", tmp_path / "a.txt", tmp_path / "b.txt", *model, "--calibration", file)
    assert status == 0
    assert "No answer" in out
    assert "log10 LR +" not in out.split("Note:")[0]
    assert "of another kind than those of the calibration" in " ".join(out.split())
    asked = ("verify", tmp_path / "a.txt", tmp_path / "b.txt", *model, "--calibration", file, "--json")
    silent, anyway = (json.loads(idiograph(*asked, *more)[1]) for more in ((), ("--anyway",)))
    assert (silent["llr"], silent["same"], bool(silent["outside"])) == (0, None, True)
    assert silent["probability"] == 0.5  # what the prior odds say
    assert anyway["llr"] > 0
    assert not anyway["outside"]
    assert anyway["score"] == silent["score"]


def test_a_mixture_has_the_pairs_of_every_folder_and_names_them(anthology_corpus):
    recipe = CalibrateRecipe(pairs=10)
    once, fingerprint = open_pairs(anthology_corpus.folder, recipe)
    folder = str(anthology_corpus.folder)
    found, source = open_mixture([folder, f"{folder}@first"], recipe)
    assert len(found) == 2 * len(once)
    name = f"{anthology_corpus.folder.name} ({fingerprint})"
    assert source == f"{name}, {name}"


def test_a_folder_may_have_a_label_of_its_own(tmp_path):
    folder = tmp_path / "a@b"
    folder.mkdir()
    assert split_label(str(folder), "set") == (folder, "set")  # a folder with an @ in its name is a folder
    assert split_label(f"{folder}@last", "set") == (folder, "last")
    with pytest.raises(SpecError, match=r"unknown label 'lst'; choose from .*did you mean 'last'"):
        split_label("corpus@lst", "set")


def test_a_calibration_that_comes_with_the_package_is_for_the_model_that_does():
    from idiograph.answer.verify import calibration_path, open_calibration
    from idiograph.loading import load

    if not calibration_path().is_file():
        pytest.skip("the model that comes with the package has no calibration yet: idiograph calibrate default CORPUS")
    known = open_calibration(calibration_path(), load())
    assert known.calibration.same >= 100
    assert "/" not in known.calibration.source.replace(" (", "")  # names of corpora, not places on somebody's disk
    assert set(known.about["register"]) == set(kind_rates("One text."))
