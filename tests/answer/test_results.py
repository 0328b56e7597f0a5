"""Answers as they are given to people: the lines of Python that a user types, tables, notebooks, a page."""

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import idiograph as ig
from idiograph.answer.explain import find_features, find_reasons
from idiograph.answer.methods import library_of
from idiograph.answer.report import ratio_explained, verdict_page, verdict_trail
from idiograph.answer.verify import open_calibration, verify_by_calibration
from idiograph.errors import InputError, ModelError
from idiograph.index.index import Index
from idiograph.loading import shipped_style
from idiograph.synth.anthology import anthology

ESSAYS = list(anthology())
ASKED = (ESSAYS[0].text, ESSAYS[1].text)
STORY = (
    "She had gone up to the old house upon the hill, and there she waited for him until the evening came. “You will not go,” "
    "said he, and he took his hat from the table; but she looked at him, and she did not answer. "
)


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    """A folder of letters with their authors' names, and one without."""
    folder = tmp_path_factory.mktemp("desk") / "letters"
    folder.mkdir()
    for number, essay in enumerate(ESSAYS[:12]):
        (folder / f"{essay.authors[0].name}_{number}.txt").write_text(essay.text, encoding="utf-8")
    (folder.parent / "letter.txt").write_text(ESSAYS[12].text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def library(letters):
    return ig.Corpus.read(letters)


@pytest.fixture(scope="module")
def index(library, tmp_path_factory):
    return ig.Index.build(library, tmp_path_factory.mktemp("indexes") / "letters")


@pytest.fixture(scope="module")
def reasons():
    return ig.explain(*ASKED, reference=ESSAYS[2:])


@pytest.fixture(scope="module")
def check(library):
    return ig.crossvalidate(library, method="letters")


def test_an_index_knows_its_model(index):
    again = ig.Index.open(index.folder)
    assert again.style.fingerprint == index.style.fingerprint
    assert again.search(ESSAYS[3].text[:300], 1)[0].score > 0.9


def test_an_index_opens_the_folder_that_it_was_made_with_and_says_when_it_is_gone(tmp_path, backbones):
    shutil.copytree(backbones["modernbert"], tmp_path / "model")
    style = ig.load(tmp_path / "model", patch="ngram:2")
    made = Index.build(ESSAYS[:3], tmp_path / "index", style)
    assert Index.open(made.folder).style.fingerprint == style.fingerprint
    shutil.rmtree(tmp_path / "model")
    with pytest.raises(ModelError, match="which is no longer there; open it from where it is"):
        Index.open(made.folder)


def test_a_text_is_also_the_name_of_a_file(letters, index, monkeypatch):
    monkeypatch.chdir(letters.parent)
    by_name = ig.attribute("letter.txt", index, method="letters")
    by_path = ig.attribute(Path("letter.txt"), index, method="letters")
    by_text = ig.attribute(ESSAYS[12].text, index, method="letters")
    assert by_name.to_json() == by_path.to_json() == by_text.to_json()
    assert by_name.candidates[0].shares


def test_a_file_that_is_not_there_is_no_text(index):
    with pytest.raises(InputError, match="there is no file 'leter.txt'"):
        ig.attribute("leter.txt", index)


def test_in_a_list_a_string_is_never_a_file(letters, index, monkeypatch):
    monkeypatch.chdir(letters.parent)
    with pytest.raises(InputError, match="a text of 1 words is too short"):
        ig.attribute(["letter.txt"], index)


def test_the_model_takes_part_in_a_check_unless_it_is_left_out(library, monkeypatch):
    with_model = ig.crossvalidate(ig.Corpus.read("anthology").documents[:6])
    assert "model" in with_model.methods
    assert "model" not in ig.crossvalidate(ESSAYS[:6], model=False).methods


def test_every_result_is_json_a_table_and_a_notebook(index, check, reasons):
    answer = ig.attribute([ESSAYS[12].text], index, method="letters")
    score = ig.explain(ESSAYS[0].text[:400], ESSAYS[1].text[:400])
    for result in (check, answer, reasons, reasons.verdict, score):
        assert json.loads(json.dumps(result.to_json()))["says"] == result.sentence
        assert isinstance(result.to_frame(), pa.Table)
        assert result.to_frame().num_rows > 0
        assert "<table>" in result._repr_html_()
        assert len(repr(result)) < 1000


def test_a_table_has_a_row_a_method_a_candidate_or_a_verdict(index, check, reasons):
    assert check.to_frame()["method"].to_pylist() == list(check.methods)
    answer = ig.attribute([ESSAYS[12].text], index, k=3, method="letters")
    assert answer.to_frame()["rank"].to_pylist() == [1, 2, 3]
    refused = ig.verify(*ASKED)
    both = pa.concat_tables([reasons.verdict.to_frame(), refused.to_frame()])
    assert both["llr"].to_pylist() == [reasons.verdict.llr, 0.0]
    assert both["checked_cllr"].to_pylist() == [reasons.verdict.checked_at.cllr, None]


def test_a_check_is_drawn(check):
    figure = check.plot()
    assert [axis.get_xlabel() for axis in figure.axes] == ["share right; dashed: majority guess", "probability given"]


def test_reasons_sum_to_the_ratio(reasons):
    assert sum(reasons.to_frame()["share"].to_pylist()) == pytest.approx(reasons.verdict.llr, abs=1e-9)


def test_passages_are_marked_where_their_features_stand(reasons):
    for text, passages in ((reasons.a, reasons.in_a), (reasons.b, reasons.in_b)):
        assert passages
        for passage in passages:
            for mark in passage.marks:
                assert passage.start <= mark.start < mark.end <= passage.end
                assert "".join(text[mark.start : mark.end].lower().split()) == "".join(mark.feature.split())


def test_of_words_in_a_row_and_the_first_of_them_the_longer_is_marked():
    found = list(find_features("In fact, in  fact upon it.", {"in fact": 1.0, "in": 2.0, "upon": -1.0}))
    assert [(mark.feature, mark.start, mark.end) for mark in found] == [
        ("in fact", 0, 7),
        ("in fact", 9, 17),
        ("upon", 18, 22),
    ]


def test_what_a_calibration_of_a_kind_adds_sums_to_the_ratio():
    texts = [STORY * 20, STORY.replace("him", "her").replace("old", "little") * 20]
    style = shipped_style()
    shipped = {path.stem: path for path in (style.folder / "calibrations").glob("*.json")}
    known = open_calibration(shipped["fiction"], style).for_any_kind()
    verdict = verify_by_calibration(texts[:1], texts[1:], style, known, None)
    assert sum(each.share for each in verdict.shares) == pytest.approx(verdict.llr, abs=1e-9)
    words = next(each for each in verdict.shares if each.method == "words")
    her = next((each for each in words.features if each.feature == "her"), words.features[0])
    assert her.a != her.b
    assert sum(each.share for each in words.features) + words.others == pytest.approx(words.share)


def test_the_page_of_a_verdict_has_everything_and_nothing_from_elsewhere(reasons):
    population = library_of(ESSAYS[2:])
    trail = verdict_trail(reasons, ("a <b>.txt", "b.txt"), ("essays", population), {"prior odds": 2})
    page = verdict_page(reasons, ("a <b>.txt", "b.txt"), trail)
    for heading in (
        "One hand or two?",
        "What this was checked on",
        "What each method adds",
        "What in the texts says so",
    ):
        assert f">{heading}</h" in page
    for heading in ("Where they stand", "What must not be concluded", "How this was made"):
        assert f">{heading}</h" in page
    assert page.count('<svg class="themed"') == 4
    assert f"this pair, {reasons.verdict.llr:+.2f}" in page
    assert "@media print" in page
    assert "prefers-color-scheme: dark" in page
    assert "a &lt;b&gt;.txt" in page
    assert "<b>.txt" not in page
    assert not re.findall(r"(?:src|href)=[\"'](?!#)[^\"']*", page)
    assert not re.findall(r"url\((?!#)", page)
    assert trail["SHA-256 of the first text"] in page
    assert len(trail["SHA-256 of the reference"]) == 64


def test_a_page_without_a_ratio_says_why_and_marks_no_pair(reasons):
    refused = ig.verify(*ASKED)
    found = find_reasons(*ASKED, refused)
    page = verdict_page(found, ("a", "b"), verdict_trail(found, ("a", "b"), None, {}))
    assert ">No ratio<" in page
    assert refused.refusals[0] in page
    assert "<svg class" not in page


def test_a_ratio_is_said_with_both_propositions():
    assert (
        ratio_explained(1.0)
        == "Such a resemblance is 10 times more likely if one person wrote both than if two people did."
    )
    assert "5.0 times more likely if two people wrote them than if one person did" in ratio_explained(-0.7)


def test_verify_and_explain_write_the_page(idiograph, tmp_path):
    for name, text in zip(("a.txt", "b.txt"), ASKED, strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    two = (tmp_path / "a.txt", tmp_path / "b.txt")
    status, out, err = idiograph("verify", *two, "--reference", "anthology", "--html", tmp_path / "case.html")
    assert status == 0, err
    assert "per 1,000 words" in out
    page = (tmp_path / "case.html").read_text(encoding="utf-8")
    assert "SHA-256 of the reference" in page
    status, out, err = idiograph(
        "explain", *two, "--reference", "anthology", "--html", tmp_path / "why.html", "-n", "3"
    )
    assert status == 0, err
    assert "in the second, from character" in out
    assert "What must not be concluded" in (tmp_path / "why.html").read_text(encoding="utf-8")
    status, _, err = idiograph("explain", *two, "--reference", "anthology", "--score", "maxsim")
    assert status == 1
    assert "--reference takes the place of --corpus and --score" in " ".join(err.split())
