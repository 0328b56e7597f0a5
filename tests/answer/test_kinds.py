"""Is a text of the kind that a calibration knows? And calibrations that know several kinds."""

import json

import pytest

from idiograph.answer.kinds import (
    KindClassifier,
    kind_features,
    kind_of_papers,
    kind_rates,
    kind_windows,
    ranges_of_texts,
    unlike_ranges,
)
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
    del saved["checksum"]  # whoever writes one by hand
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
    assert "No ratio, because: I and you" in out
    assert "--reference CORPUS" in " ".join(out.split())
    assert "log10 LR +" not in out.split("Learned from")[0]
    asked = ("verify", tmp_path / "a.txt", tmp_path / "b.txt", *model, "--calibration", file, "--json")
    silent, anyway = (json.loads(idiograph(*asked, *more)[1]) for more in ((), ("--anyway",)))
    assert (silent["llr"], silent["same"], bool(silent["refusals"])) == (0, None, True)
    assert silent["probability"] is None  # nobody gave prior odds
    assert anyway["llr"] > 0
    assert not anyway["refusals"]
    assert any("of another kind" in note for note in anyway["warnings"])
    assert anyway["score"] == silent["score"]


ABSTRACT = (
    "We propose a method for the estimation of parameters in linear models with correlated errors, and show that the "
    "resulting estimator is consistent under weak assumptions. Experiments on several data sets demonstrate that the "
    "proposed approach outperforms previous methods in terms of accuracy, while the computational cost is comparable. "
    "We discuss the implications of these results for the analysis of large data."
)


def test_a_paper_reads_like_papers_and_an_essay_or_a_story_does_not():
    known = kind_of_papers()
    assert known.strange([ABSTRACT]) == []
    assert known.strange([STORY, ABSTRACT]) == ["1 of 2 texts do not read like scholarly papers or abstracts"]
    assert all(known.strange([text]) for text in ESSAYS[::6])


def test_a_text_in_another_language_is_of_another_kind():
    french = (
        "Nous proposons une méthode pour estimer les paramètres de modèles linéaires dont les erreurs dépendent. " * 4
    )
    assert kind_of_papers().strange([french]) == ["text in fr, there only en"]


def test_a_kind_score_is_the_mean_of_a_long_text_s_windows():
    known = KindClassifier("kind", "en", ("word",), (1.0, *[0.0] * 677), 0.0, 0.0)
    assert known.score("word " * 60) == pytest.approx(1.0)
    assert known.score("word " * 400 + "other " * 400) == pytest.approx(0.5)
    assert [len(each) for each in kind_windows("word " * 800)] == [400, 400]
    assert len(kind_windows("word " * 40_000)) == 12
    assert kind_features(["word", "other"], ("word",))[:2] == pytest.approx([0.5**0.5] * 2)


def test_the_federalist_papers_get_no_ratio_from_a_calibration_on_papers(shared):
    import io

    import pyarrow as pa

    with pa.input_stream(str(shared / "corpora" / "federalist.jsonl.zst"), compression="zstd") as stream:
        texts = [json.loads(line)["text"] for line in io.TextIOWrapper(stream, encoding="utf8")]
    known = kind_of_papers()
    assert all(known.strange([text]) for text in texts[::4])


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
    assert known.about["kind"] == "papers"
