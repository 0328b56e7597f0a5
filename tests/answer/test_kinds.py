"""Is a text of the kind that a calibration knows? And calibrations that know several kinds."""

import json

import pytest

from idiograph.answer.kinds import (
    Kind,
    KnownKinds,
    LinearRule,
    kind_rates,
    kind_windows,
    known_kinds,
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


NOVEL = (
    "She turned away from the window, and for some moments neither of them spoke. The old man had taken up his hat, but he "
    'did not go; he stood looking at the fire as if he had forgotten that she was there. "You will not tell him?" she '
    'said at last. "I shall tell him nothing, my dear," he answered, "but I think that he knows." She put her hand upon '
    "his arm, and he saw that her eyes were full of tears. "
) * 8


def test_each_text_is_told_for_what_it_is():
    known = known_kinds()
    assert getattr(known.choose([ABSTRACT, ABSTRACT]), "name", "") == "abstracts"
    assert getattr(known.choose([NOVEL, NOVEL]), "name", "") == "fiction"
    assert known.strange([ABSTRACT]) == []


def test_two_kinds_and_unknown_kinds_are_refused_with_a_reason():
    known = known_kinds()
    assert known.choose([NOVEL, ABSTRACT]) is None
    assert known.strange([NOVEL, ABSTRACT]) == ["the texts are of two kinds"]
    assert known.strange([NOVEL, ABSTRACT], known.named("abstracts")) == [
        "1 of 2 texts do not read like abstracts of papers"
    ]
    essays = [known.strange([text]) for text in ESSAYS[::6]]
    assert essays.count([]) <= 1
    assert ["1 of 1 texts do not read like scholarly papers, abstracts of papers or English fiction"] in essays


def test_fiction_that_is_short_or_written_lately_is_not_that_of_the_calibration():
    known = known_kinds()
    short = NOVEL[: len(NOVEL) // 8]
    assert known.strange([short, NOVEL]) == [
        "English fiction of under 500 words is too short to compare without a reference"
    ]
    lately = NOVEL.replace("fire", "smartphone").replace("window", "laptop").replace("hat", "hoodie")
    assert known.strange([lately, lately]) == ["their words are not those of the English fiction that is known"]


def test_a_text_in_another_language_is_of_another_kind():
    french = (
        "Nous proposons une méthode pour estimer les paramètres de modèles linéaires dont les erreurs dépendent. " * 4
    )
    assert known_kinds().strange([french]) == ["text in fr, there only en"]


def test_a_kind_score_is_the_mean_of_a_long_text_s_windows():
    rule = LinearRule((1.0, *[0.0] * 26), 0.0)
    known = KnownKinds(("word",), (), (Kind("kind", "words", "en", rule, 0.0),))
    assert rule.score(known.rows("word " * 60)) == pytest.approx(1.0)
    assert rule.score(known.rows("word " * 400 + "other " * 400)) == pytest.approx(0.5)
    assert [len(each) for each in kind_windows("word " * 800)] == [400, 400]
    assert len(kind_windows("word " * 40_000)) == 12
    assert KnownKinds.from_json(json.loads(json.dumps(known.to_json()))) == known


def corpus_rows(shared, name):
    import io

    import pyarrow as pa

    with pa.input_stream(str(shared / "corpora" / f"{name}.jsonl.zst"), compression="zstd") as stream:
        return [json.loads(line) for line in io.TextIOWrapper(stream, encoding="utf8")]


def test_the_federalist_papers_are_of_no_kind_that_is_known(shared):
    texts = [row["text"] for row in corpus_rows(shared, "federalist")]
    assert sum(bool(known_kinds().strange([text])) for text in texts[::4]) >= 21


def test_papers_of_a_field_that_nothing_was_learned_from_are_papers(shared):
    texts = [" ".join(row["text"].split()[300:1500]) for row in corpus_rows(shared, "peerread-dev")[:60]]
    assert sum(bool(known_kinds().strange([text])) for text in texts) <= 6


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


SHIPPED = ("papers", "abstracts", "fiction")


@pytest.mark.parametrize("kind", SHIPPED)
def test_a_calibration_comes_with_the_package_for_each_kind(kind):
    from idiograph.answer.verify import calibrations_by_kind, open_calibration
    from idiograph.loading import load

    style = load()
    known = open_calibration(calibrations_by_kind(style)[kind], style)
    assert known.about["kind"] == kind
    assert known.calibration.same >= 100
    assert "/" not in known.calibration.source  # names of corpora, not places on somebody's disk
    assert known.checks[0].cllr < 1
    assert known.strange([{"papers": ABSTRACT, "abstracts": ABSTRACT, "fiction": NOVEL}[kind]]) == []


def test_bounds_go_no_further_than_the_people_that_they_rest_on():
    from idiograph.answer.verify import calibrations_by_kind, open_calibration
    from idiograph.loading import load

    style = load()
    fiction = open_calibration(calibrations_by_kind(style)["fiction"], style).calibration
    assert fiction.low >= -1  # ten authors with several novels
    assert fiction.high <= 1.6  # 79 authors, 39 pairs without one of them twice


def test_what_a_calibration_does_not_ship_with_is_learned_from_nobody_s_weights():
    from idiograph.loading import default_folder

    assert not (default_folder() / "calibration.json").exists()  # kept free for a calibration of one's own


def test_fiction_is_compared_by_words_and_letters_and_the_verdict_says_what_it_was_checked_on():
    from idiograph.answer.verify import verify

    found = verify(NOVEL, NOVEL.replace("fire", "sea"))
    assert found.kind == "English fiction"
    assert found.calibration.style == "background/fiction"
    assert found.checks[0].same > 0
    assert not found.refusals


def test_texts_of_no_known_kind_get_no_ratio_and_hear_why():
    from idiograph.answer.verify import verify

    found = verify(NOVEL, ABSTRACT * 3)
    assert (found.llr, found.same) == (0, None)
    assert found.refusals == ("the texts are of two kinds",)
