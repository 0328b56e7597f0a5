"""Who wrote it, who wrote which part, and whether it is anybody here: on texts whose writers are known."""

import csv
import json
import re
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from idiograph.answer.attribute import attribute, shares_of_ratios
from idiograph.answer.explain import explain, without_patches
from idiograph.answer.habits import compare_habits, habit_rates, norms, norms_of_anthology
from idiograph.answer.likelihood import Calibration
from idiograph.answer.openset import IndexCalibration, calibration_of_index, open_answer, straight
from idiograph.answer.report import text_strips
from idiograph.answer.rolling import likeliest_owners, rolling
from idiograph.errors import InputError, TooShort
from idiograph.index.index import Index
from idiograph.synth.anthology import anthology

ESSAYS = {d.id: d for d in anthology()}
SPANISH = """El pescador salía con su barca antes de que amaneciera, y volvía con lo que el mar le había querido dar. Un día
encontró en la red una botella con una carta dentro. Se la llevó al maestro del pueblo, que la leyó en voz alta mientras
los niños escuchaban desde la puerta. Era de una mujer que pedía noticias de su hijo, embarcado hacía muchos años. """


@pytest.fixture(scope="module")
def index(tmp_path_factory, style):
    return Index.build(list(ESSAYS.values())[:30], tmp_path_factory.mktemp("index") / "index", style, source="essays")


@pytest.fixture(scope="module")
def asked():
    return list(ESSAYS.values())[3]


def sharp(bound=4.0):
    """A background in which a standing of 2 speaks for the candidate, 1 for nobody and 0 against."""
    line = Calibration((-2.0, 2.0, 0.0, 0.0), -bound, bound, (0.0, 9.0), 99, 99, "s", "c")
    return IndexCalibration(line, line, 0.2, (0.5, 0.5), "1")


def test_none_of_these_is_an_answer_with_its_own_ratio():
    known = sharp().open_set
    assert open_answer(known, 3.0, 2.0, prior=0.5).probability < 0.001
    assert open_answer(known, 0.0, 2.0, prior=0.5).probability > 0.98
    assert "a writer who is not in the index" in open_answer(known, 0.0, 2.0, prior=0.5).words
    assert open_answer(known, 1.0, 2.0, prior=0.2).probability == pytest.approx(0.2)  # a ratio of 1 leaves the prior


def test_chances_of_the_candidates_and_of_nobody_sum_to_one(index, asked):
    found = attribute(asked.text, index, k=100)
    assert sum(c.probability for c in found.candidates) + found.none.probability == pytest.approx(1)
    assert np.allclose(shares_of_ratios(np.array([1.0, 0.0]), np.ones(2)), [10 / 11, 1 / 11])
    assert np.allclose(
        shares_of_ratios(np.array([1.0, 0.0]), np.array([1.0, 5.0])), [10 / 15, 1 / 15]
    )  # one stands for five


def test_a_closed_set_has_no_nobody(index, asked):
    found = attribute(asked.text, index, candidates=["Ansel Brook", asked.authors[0].name])
    assert found.none.probability == 0
    assert sum(c.probability for c in found.candidates) == pytest.approx(1)


def test_several_texts_of_one_hand_are_asked_about_together(index):
    texts = [d.text for d in list(ESSAYS.values())[:2]]
    pooled = attribute(texts, index, k=100, method="model")
    assert pooled.lengths == sum(len(t.split()) for t in texts)
    assert pooled.asked == sum(attribute(t, index).asked for t in texts)
    joint = {c.authors: c.score for c in pooled.candidates}
    alone = [{c.authors: c.score for c in attribute(t, index, k=100, method="model").candidates} for t in texts]
    one = next(iter(joint))
    assert joint[one] <= max(a[one] for a in alone) + 1e-6


@pytest.mark.parametrize("method", ["best", "model"])
def test_a_text_unlike_the_library_gets_no_ratio(index, method):
    found = attribute(SPANISH, index, method=method, unknown=0.4)
    assert found.sentence.startswith("no answer: the text is unlike those of this library")
    assert {(c.llr, c.words, c.shares) for c in found.candidates} == {(0.0, "no ratio", ())}
    assert (found.none.llr, found.none.probability, found.none_stands_out) == (0.0, 0.4, True)
    everybody = attribute(SPANISH, index, method=method, unknown=0.4, k=100).candidates
    assert sum(c.probability for c in everybody) == pytest.approx(0.6)
    assert found.to_json()["refusals"] == list(found.refusals)


def test_a_text_like_the_library_is_not_refused(index, asked):
    assert attribute(asked.text, index).refusals == ()


def test_no_part_of_a_text_unlike_the_library_is_given_to_anybody(index):
    found = rolling(SPANISH * 6, index, window=120)
    assert set(found.owners) == {-1}
    assert found.refusals
    assert not found.llr.any()


def test_evidence_says_how_near_others_come_with_as_many_shared_words(index, asked):
    best = attribute(asked.text, index).candidates[0].evidence[0]
    assert best.overlap == 1
    assert best.topical
    assert best.expected == pytest.approx(sum(calibration_of_index(index).expected))
    assert straight([(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]) == pytest.approx((1.0, 1.0))
    assert straight([(0.0, 3.0), (1.0, 2.0), (2.0, 1.0)])[1] == 0


def test_windows_of_a_text_by_two_hands_lean_to_their_writers(index):
    first, second = (ESSAYS[name] for name in ("ansel-brook/bees", list(ESSAYS)[10]))
    text = first.text + "\n\n" + second.text
    both = [first.authors[0].name, second.authors[0].name]
    found = rolling(text, index, window=120, step=30, candidates=both)
    order = [", ".join(n) for n in found.candidates]
    lead = found.llr[:, order.index(both[0])] - found.llr[:, order.index(both[1])]
    inside = np.array([end <= len(first.text) for _, end in found.windows])
    beyond = np.array([start > len(first.text) for start, _ in found.windows])
    assert lead[inside].mean() > lead[beyond].mean()
    assert found.parts[0].start == 0
    assert found.parts[-1].end == len(text)
    assert all(a.end == b.start for a, b in pairwise(found.parts))
    assert found.llr.shape == (len(found.windows), 2)


def test_a_change_of_hand_is_found_within_a_window(index):
    first, second = ESSAYS["ansel-brook/maps"], list(ESSAYS.values())[17]
    text, both = first.text + "\n\n" + second.text, [first.authors[0].name, second.authors[0].name]
    found = rolling(text, index, window=200, candidates=both, exclude=[first.id, second.id])
    assert found.method == "best"
    assert [found.candidates[part.owner][0] for part in found.parts] == both
    assert abs(found.parts[0].end - len(first.text)) < len(text) * 200 / len(text.split())


def test_one_method_reads_the_windows_if_it_is_asked_to(index):
    text = ESSAYS["ansel-brook/maps"].text + "\n\n" + list(ESSAYS.values())[17].text
    found = {name: rolling(text, index, window=200, method=name) for name in ("delta", "model")}
    assert {name: one.to_json()["method"] for name, one in found.items()} == {"delta": "delta", "model": "model"}
    assert not np.array_equal(found["delta"].llr, found["model"].llr)


def test_the_likeliest_path_changes_hands_once_where_the_evidence_does():
    llr = np.array([[2.0, -2.0]] * 6 + [[-2.0, 2.0]] * 6)
    assert likeliest_owners(llr, share=1.0) == (0,) * 6 + (1,) * 6
    llr[2] = [-0.5, 0.5]  # a doubtful window inside a part is no change of hand
    assert likeliest_owners(llr, share=1.0) == (0,) * 6 + (1,) * 6
    assert likeliest_owners(np.full((5, 2), -1.0), share=1.0) == (-1,) * 5


def test_the_path_is_the_best_of_all_paths():
    random = np.random.default_rng(5)
    for _ in range(20):
        llr = random.normal(0, 2, (5, 2))
        gain = np.concatenate([llr, np.zeros((5, 1))], axis=1)

        def worth(owners, gain=gain):
            changes = sum(a != b for a, b in pairwise(owners))
            return sum(gain[at, owner] for at, owner in enumerate(owners)) - 2.0 * changes

        best = max(product(range(3), repeat=5), key=worth)
        assert worth([2 if o < 0 else o for o in likeliest_owners(llr, 1.0)]) == pytest.approx(worth(best))


def test_too_short_a_text_has_no_parts(index):
    with pytest.raises(TooShort, match="too short to say who wrote which part"):
        rolling(next(iter(ESSAYS.values())).text[:600], index, window=240)
    with pytest.raises(InputError, match="a window of 60 words cannot move by 90"):
        rolling(next(iter(ESSAYS.values())).text, index, window=60, step=90)


def test_agreements_of_habits_sum_to_their_total():
    found = compare_habits(ESSAYS["ansel-brook/bees"].text, ESSAYS["ansel-brook/maps"].text)
    assert sum(h.agreement for h in found.rows) == pytest.approx(found.total)
    assert all(h.agreement == pytest.approx(h.z_a * h.z_b) for h in found.rows)
    assert {h.kind for h in found.rows} >= {"function word", "mark", "rhythm"}


def test_habits_agree_more_within_a_writer_than_between_writers():
    essays = list(ESSAYS.values())[:15]
    total = {}
    for at, a in enumerate(essays):
        for b in essays[:at]:
            total.setdefault(a.author_set == b.author_set, []).append(compare_habits(a.text, b.text).total)
    assert np.mean(total[True]) > np.mean(total[False]) + 3


def test_a_habit_is_a_rate():
    found = habit_rates("We walk; we talk; however, we colour. It's grey, isn't it? " * 3)
    assert found["mark|semicolon"] == pytest.approx(1000 * 2 / 11)
    assert found["connective|however"] == pytest.approx(1000 / 11)
    assert found["variant|-our, not -or"] == 1
    assert found["rhythm|words a sentence"] == pytest.approx(5.5)


def test_a_habit_that_hardly_anybody_has_is_not_counted():
    texts = ["we walk and walk, then walk."] * 20 + ["we walk upon it; then and there."]
    assert "mark|semicolon" not in norms(texts, "t").mean
    assert "function word|and" not in norms(["we and they"] * 5, "t").mean  # no spread: everybody does
    assert norms_of_anthology().source == "the built-in anthology"


def test_removing_what_matched_best_lowers_the_score_more_than_removing_at_random(style):
    random = np.random.default_rng(0)
    fell = []
    for one, two in zip(list(ESSAYS.values())[:6], list(ESSAYS.values())[6:12], strict=True):
        a, b = one.text[:500], two.text[:500]
        found = explain(a, b, style)
        count = max(len(found.matches) // 5, 1)
        top = [(m.start, m.end) for m in sorted(found.matches, key=lambda m: -m.part)[:count]]
        some = [
            (found.matches[at].start, found.matches[at].end) for at in random.permutation(len(found.matches))[:count]
        ]
        after = style.compare([without_patches(a, top), without_patches(a, some)], [b])[:, 0]
        fell.append(after[1] - after[0])
    assert np.mean(fell) > 0


def test_strips_show_every_patch_where_it_stands(style):
    a, b = ESSAYS["ansel-brook/bees"].text[:300], ESSAYS["ansel-brook/maps"].text[:400]
    found = explain(a, b, style)
    shown = text_strips(found)
    assert len(shown["first"]) == len(found.matches)
    assert all(0 <= x <= 1000 and 0 < w <= 1000 for x, w, _ in (*shown["first"], *shown["second"]))
    assert all(0 <= line["x"] <= 1000 and 0 <= line["y"] <= 1000 for line in shown["lines"])


def test_an_explanation_covers_a_long_text_to_its_end_or_says_that_it_was_cut(style, monkeypatch):
    long = " ".join(d.text for d in list(ESSAYS.values())[:4])
    whole = explain(long, long[:200], style)
    assert not whole.cut
    assert max(m.end for m in whole.matches) == len(long)
    monkeypatch.setattr(style.encoder, "beyond", "cut")
    assert explain(long, long[:200], style).cut
    assert not explain(long[:60], long[100:160], style).cut


@pytest.fixture
def room(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("ansel-brook/bees", "ansel-brook/maps"):
        (folder / f"{name.replace('/', '-')}.txt").write_text(ESSAYS[name].text)
    return tmp_path


@pytest.fixture
def tiny(backbones):
    return ("--model", backbones["modernbert"], "--patch", "ngram:2")


def test_a_folder_of_texts_becomes_a_report_with_an_audit_trail(idiograph, room, index, tiny):
    args = ("--html", room / "r.html", "--csv", room / "r.csv", "--rolling", "--window", 120, "--json")
    status, out, err = idiograph("attribute", index.folder, room / "texts", *tiny, *args)
    assert status == 0, err
    found = json.loads(out)
    assert len(found) == 2
    audit = next(iter(found.values()))["audit"]
    assert {one["rolling"]["method"] for one in found.values()} == {"best"}
    assert audit["search"] == "every text was compared"
    assert {"version", "date", "model", "model fingerprint", "corpus", "preset", "index version"} <= set(audit)
    page = (room / "r.html").read_text()
    assert page.count("<h2>") == 3
    assert audit["model fingerprint"] in page
    assert "<svg" in page
    assert "LR of each candidate by best" in page
    assert not re.search(r'(?:src|href)="?(?:https?:)?//', page)  # nothing is fetched from elsewhere
    rows = list(csv.DictReader((room / "r.csv").open()))
    assert len(rows) == sum(len(f["candidates"]) for f in found.values())
    assert rows[0]["rank"] == "1"


def test_the_command_names_the_document_that_holds_the_text(idiograph, room, index, tiny):
    status, out, err = idiograph("attribute", index.folder, room / "texts" / "ansel-brook-bees.txt", *tiny)
    assert status == 0, err
    held = re.search(r"(\d+)% of the text stands in 'ansel-brook/bees', which is in the index", out)
    assert held
    assert int(held[1]) >= 90
    own = room / "own.txt"
    own.write_text(ESSAYS["ansel-brook/bees"].text[:300] + "\n\n" + list(ESSAYS.values())[45].text)
    status, out, err = idiograph("attribute", index.folder, own, *tiny)
    assert status == 0, err
    assert "which is in the index" not in out  # a quotation is no copy


def test_the_command_and_its_report_say_that_a_text_is_unlike_the_library(idiograph, tmp_path, index, tiny):
    (tmp_path / "carta.txt").write_text(SPANISH)
    status, out, err = idiograph(
        "attribute", index.folder, tmp_path / "carta.txt", *tiny, "--html", tmp_path / "a.html"
    )
    printed = " ".join(out.split())
    assert status == 0, err
    assert printed.startswith("No answer: the text is unlike those of this library")
    assert "the order is that of likeness alone" in printed
    assert "Is the writer here at all?" not in printed
    assert "<b>No answer:</b> the text is unlike" in (tmp_path / "a.html").read_text()


def test_texts_by_one_hand_can_be_pooled_and_single_authors_ranked(idiograph, room, index, tiny):
    status, out, _ = idiograph("attribute", index.folder, room / "texts", *tiny, "--pool", "--by", "author", "--json")
    assert (status, list(json.loads(out))) == (0, ["pooled"])


def test_calibrate_writes_beside_the_model_and_verify_uses_it(idiograph, room, backbones, anthology_corpus):
    import shutil

    model = room / "model"
    shutil.copytree(backbones["bert"], model)
    args = ("calibrate", model, anthology_corpus.folder, "--pairs", 40, "--report", room / "report")
    args = (*args, "--against", "ngrams")
    status, out, err = idiograph(*args)
    assert status == 0, err
    assert "log10 LR from" in " ".join(out.split())
    assert (model / "calibration.json").is_file()
    assert "Tippett" in (room / "report" / "verification.html").read_text()
    table = (room / "report" / "verification.md").read_text()
    assert "| Cllr_cal |" in table
    assert "| ngrams |" in table
    files = sorted((room / "texts").iterdir())
    status, out, _ = idiograph("verify", *files, "--model", model, "--json")
    assert json.loads(out)["calibration"]["source"].startswith(f"{anthology_corpus.folder.name} (")
    status, _, err = idiograph("verify", *files, "--model", model, "--patch", "whole")
    assert (status, err.count("\n")) == (1, 1)
    assert "calibrate: idiograph calibrate" in err
    status, _, err = idiograph(*args)
    assert status == 1
    assert "is there already" in err


def test_a_model_without_a_folder_needs_a_file_for_its_calibration(idiograph, anthology_corpus):
    status, out, err = idiograph("calibrate", "some/model", anthology_corpus.folder)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "name a file with -o" in err


def test_two_folders_are_verified(idiograph, room, tiny):
    other = room / "others"
    other.mkdir()
    (other / "x.txt").write_text(list(ESSAYS.values())[20].text)
    status, out, err = idiograph("verify", room / "texts", other, *tiny)
    assert status == 0, err
    assert "log10 LR" in out


def test_too_short_a_text_in_a_folder_is_named(idiograph, room, index, tiny):
    (room / "texts" / "note.txt").write_text("Only a few words.")
    for args in (("attribute", index.folder, room / "texts"), ("verify", room / "texts", room / "texts")):
        status, out, err = idiograph(*args, *tiny)
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert "note.txt': a text of 4 words is too short to say who wrote it; 50 are the least" in err


def test_an_empty_folder_gets_one_line(idiograph, room, index, tiny):
    (room / "none").mkdir()
    status, out, err = idiograph("attribute", index.folder, room / "none", *tiny)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "there is no text in the folder" in err


def test_explain_shows_habits_against_a_corpus(idiograph, room, tiny, anthology_corpus):
    files = sorted((room / "texts").iterdir())
    args = ("--corpus", anthology_corpus.folder, "--html", room / "x.html", "--score", "symmetric", "--json")
    status, out, err = idiograph("explain", *files, *tiny, *args)
    assert status == 0, err
    found = json.loads(out)
    assert found["habits"]["background"] == str(anthology_corpus.folder)
    assert sum(m["part"] for m in found["matches"]) == pytest.approx(found["score"])
    page = (room / "x.html").read_text()
    assert "Where they meet" in page
    assert "<h2>Habits</h2>" in page


def test_the_open_set_is_calibrated_on_the_index(index):
    from idiograph.answer.openset import calibration_of_index

    known = calibration_of_index(index)
    assert known.open_set.same == known.open_set.different
    assert replace(known, usual_overlap=0.0) != known


def test_evaluate_measures_likelihood_ratios_too(idiograph, room, anthology_corpus):
    args = ("evaluate", "ngrams", anthology_corpus.folder, "--verify", "-o", room / "verified", "--json")
    status, out, _ = idiograph(*args)
    assert status == 0
    found = json.loads(out)[0]
    assert 0 <= found["measures"]["Cllr_min"]["value"] <= found["measures"]["Cllr"]["value"]
    assert (room / "verified" / "verification.json").is_file()
