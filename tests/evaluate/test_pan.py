"""PAN formats go round, and the scores are those of the official evaluators."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from pan19 import write_problems

from idiograph.errors import InputError
from idiograph.evaluate import pan
from idiograph.evaluate.pan import PanPair, Truth, scores
from idiograph.evaluate.pan19 import attribution_as_markdown, evaluate_attribution
from idiograph.evaluate.problems import (
    NOBODY,
    Problem,
    macro_f1,
    problems_by_language,
    read_problem_answers,
    read_problems,
    write_problem_answers,
)
from idiograph.recipe import PanRecipe, make_recipe

OFFICIAL = {  # auc, c@1, f05u, f1, brier, overall, as the shared task's own script prints them
    "boenninghoff20-large": (0.969, 0.928, 0.918, 0.936, 0.933, 0.937),
    "halvani20-small": (0.878, 0.796, 0.820, 0.807, 0.785, 0.817),
    "faber20-small": (0.293, 0.331, 0.294, 0.262, 0.610, 0.358),
}


@pytest.mark.parametrize("name", OFFICIAL)
def test_real_submissions_get_their_official_scores(shared, name):
    folder = shared / "fixtures" / "pan20"
    found = scores(pan.read_pan_truth(folder / "truth.jsonl"), pan.read_pan_answers(folder / f"{name}.answers.jsonl"))
    assert tuple(found.values()) == OFFICIAL[name]
    assert list(found) == ["auc", "c@1", "f05u", "f1", "brier", "overall"]


TRUTH = [Truth("1", True), Truth("2", True), Truth("3", False), Truth("4", False)]


def test_a_perfect_submission_gets_one_everywhere():
    assert set(scores(TRUTH, {"1": 1.0, "2": 1.0, "3": 0.0, "4": 0.0}).values()) == {1.0}


def test_a_missing_answer_is_no_answer():
    said = {"1": 0.9, "3": 0.2, "4": 0.4}
    assert scores(TRUTH, said) == scores(TRUTH, {**said, "2": 0.5})


def test_an_unanswered_pair_earns_the_accuracy_of_the_others():
    assert scores(TRUTH, {"1": 1.0, "2": 0.5, "3": 0.0, "4": 0.0})["c@1"] == round((3 + 3 / 4) / 4, 3)


def test_answers_to_other_pairs_count_for_nothing():
    said = {"1": 0.9, "2": 0.6, "3": 0.7, "4": 0.1}
    assert scores(TRUTH, {**said, "99": 1.0}) == scores(TRUTH, said)


def test_truth_of_one_kind_is_refused():
    with pytest.raises(InputError, match="pairs by one author and pairs by two"):
        scores(TRUTH[:2], {})


def test_pairs_truth_and_answers_are_read(tmp_path):
    rows = [{"id": "1", "fandoms": ["x", "y"], "pair": ["a\nb", "ç"]}, {"id": "2", "topic": "z", "pair": ["d", "e"]}]
    (tmp_path / "p").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "t").write_text('{"id": "1", "same": true, "authors": ["A", "A"]}\n{"id": "2", "same": false}\n')
    (tmp_path / "a").write_text('{"id": "1", "value": 0.25}\n\n{"id": "2", "value": 1}\n')
    assert pan.read_pairs(tmp_path / "p") == [
        PanPair("1", ("a\nb", "ç"), {"fandoms": ["x", "y"]}),
        PanPair("2", ("d", "e"), {"topic": "z"}),
    ]
    assert pan.read_pan_truth(tmp_path / "t") == [Truth("1", True, ("A", "A")), Truth("2", False)]
    assert pan.read_pan_answers(tmp_path / "a") == {"1": 0.25, "2": 1.0}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"id": "1", "value": 1.5}', "must be a number from 0 to 1, but is 1.5"),
        ('{"id": "1", "value": true}', "must be a number from 0 to 1, but is True"),
        ('{"value": 0.5}', 'a line needs an "id"'),
        ("[", "a:1': not JSON"),
        ('{"id": "1", "value": 0.5}\n{"id": "1", "value": 0.6}', "a:2': a second answer for '1'"),
    ],
)
def test_a_wrong_answer_file_is_refused_with_its_line(tmp_path, line, words):
    (tmp_path / "a").write_text(line)
    with pytest.raises(InputError, match=words):
        pan.read_pan_answers(tmp_path / "a")


def problem(**changes):
    known = {"A": ("a a", "aa"), "B": ("b b",), "C": ("c c",)}
    unknown = {"u1.txt": "a", "u2.txt": "b", "u3.txt": "z", "u4.txt": "c", "u5.txt": "aaa"}
    truth = {"u1.txt": "A", "u2.txt": "B", "u3.txt": NOBODY, "u4.txt": "C", "u5.txt": "A"}
    return Problem(
        **{"name": "problem00001", "lang": "en", "known": known, "unknown": unknown, "truth": truth, **changes}
    )


def test_problem_folders_are_read_as_they_were_written(tmp_path):
    problems = [problem(), problem(name="problem00002", lang="fr", truth={})]
    write_problems(problems, tmp_path)
    assert read_problems(tmp_path) == problems
    assert [p.name for p in read_problems(tmp_path, "fr")] == ["problem00002"]
    with pytest.raises(InputError, match="no problem in 'it'; there are en, fr"):
        read_problems(tmp_path, "it")


def test_problems_in_which_nothing_can_be_answered_are_left_out(tmp_path):
    write_problems([problem(), problem(name="problem00002", lang="fr", truth={})], tmp_path)
    assert problems_by_language(tmp_path) == {"en": [problem()]}
    assert problem().answerable == ["u1.txt", "u2.txt", "u4.txt", "u5.txt"]
    write_problems([problem(truth={})], tmp_path)
    with pytest.raises(InputError, match="no unknown text in .* is by one of the candidates"):
        problems_by_language(tmp_path)


def test_a_folder_without_its_listing_says_what_is_missing(tmp_path):
    with pytest.raises(InputError, match="collection-info.json'; a PAN19 folder has"):
        read_problems(tmp_path)


def test_problems_are_read_from_json_lines(tmp_path):
    def row(id, kind, writer, text):
        author = {"name": f"problem00001/{writer}"}
        return {"id": id, "problem": "problem00001", "doc_type": kind, "authors": [author], "lang": "en", "text": text}

    rows = [row("p:A:known1", "known", "A", "x"), row("p:unknown:u1", "unknown", "A", "y")]
    rows.append(row("p:unknown:u2", "unknown", "somebody", "z"))
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (found,) = read_problems(tmp_path / "x.jsonl")
    assert found.truth == {"u1.txt": "A", "u2.txt": NOBODY}
    assert found.known == {"A": ("x",)}


def test_the_first_answer_counts(tmp_path):
    path = write_problem_answers({"u1.txt": "A"}, tmp_path, "problem00001")
    rows = json.loads(path.read_text())
    path.write_text(json.dumps([*rows, {"unknown-text": "u1.txt", "predicted-author": "B"}]))
    assert read_problem_answers(tmp_path, "problem00001") == {"u1.txt": "A"}


def test_macro_f1_leaves_nobody_out_of_the_mean_but_not_out_of_precision():
    from sklearn.metrics import f1_score

    random = np.random.default_rng(3)
    names = ["A", "B", "C", NOBODY]
    gold, said = random.choice(names, 200).tolist(), random.choice(names, 200).tolist()
    files = [f"{at}" for at in range(200)]
    expected = f1_score(gold, said, labels=["A", "B", "C"], average="macro")
    assert macro_f1(dict(zip(files, gold, strict=True)), dict(zip(files, said, strict=True))) == pytest.approx(expected)


def test_an_author_whom_nobody_asked_for_counts_as_nobody():
    truth = {"1": "A", "2": NOBODY}
    assert macro_f1(truth, {"1": "A", "2": "somebody else"}) == macro_f1(truth, {"1": "A", "2": NOBODY}) == 1


class Letters:
    """Scores by the share of common letters; the profile of a candidate is all of their texts."""

    name = "letters"

    def compare(self, a, b):
        return np.array([[sum(c in y for c in x) / len(x) for y in b] for x in a], np.float32)


def test_expected_triplet_accuracy_is_over_all_other_candidates():
    found = evaluate_attribution(Letters(), [problem()], PanRecipe(resamples=0))
    assert found["triplet accuracy"].value == 1
    assert (found.texts, found.authors) == (4, 3)
    assert found["macro-F1"].value == pytest.approx((2 * 2 / 5 + 1 + 1) / 3)  # <UNK> went to A, the first of a tie
    worse = evaluate_attribution(
        Letters(), [problem(unknown={**problem().unknown, "u4.txt": "bb"})], PanRecipe(resamples=0)
    )
    assert worse["triplet accuracy"].value == pytest.approx((1 + 1 + 0.25 + 1) / 4)  # lost to B, tied with A


def test_a_copy_of_a_known_text_is_not_asked_about():
    copied = problem(unknown={**problem().unknown, "u1.txt": "aa", "u5.txt": "b"})
    assert evaluate_attribution(Letters(), [copied], PanRecipe(resamples=0)).texts == 2


def test_the_published_protocol_takes_the_last_fifth_and_one_negative():
    many = {f"u{at:03d}.txt": "a" * (at + 1) for at in range(50)}
    truth = dict.fromkeys(many, "A")
    settings = make_recipe("paper").pan
    found = evaluate_attribution(Letters(), [problem(unknown=many, truth=truth)], settings)
    assert found.attributed[0].files == tuple(sorted(many))[40:]
    assert set(found.accuracy) <= {0.0, 0.5, 1.0}


def test_zero_shot_needs_no_recipe_of_ours():
    plain = SimpleNamespace(unknowns="all", negatives="all", known="joined", words=0, resamples=10, seed=1)
    assert "letters (en) | 4" in attribution_as_markdown([evaluate_attribution(Letters(), [problem()], plain)])


def test_problems_without_truth_are_refused():
    with pytest.raises(InputError, match="problem 'problem00001' has no truth"):
        evaluate_attribution(Letters(), [problem(truth={})])


def test_every_ranker_can_be_made_to_read_as_many_words():
    class Listening(Letters):
        def compare(self, a, b):
            assert max(len(text.split()) for text in (*a, *b)) == 1
            return super().compare(a, b)

    assert evaluate_attribution(Listening(), [problem()], PanRecipe(words=1, resamples=0)).texts == 4


def test_a_candidate_may_be_the_mean_over_each_of_their_texts():
    class Counted:
        name = "counted"

        def compare(self, a, b):
            return np.tile(np.array([1, 3, 2.5, 0], np.float32), (len(a), 1))  # two texts of A, one of B, one of C

    found = evaluate_attribution(Counted(), [problem()], PanRecipe(known="each", resamples=0))
    assert found.attributed[0].scores[0].tolist() == [2.0, 2.5, 0.0]
