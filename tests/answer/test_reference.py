"""Two texts among texts of known writers: what a ratio rests on, what it was checked on, and when there is none."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hashed import hashed_style

from idiograph.answer.methods import encode_with_index, library_of
from idiograph.answer.reference import (
    LengthCheck,
    PairEvidence,
    PairRatios,
    alike_pairs,
    closeness_of_writers,
    cut_evenly,
    learn_population,
    pair_methods,
    read_reference,
    sure_auc,
    without_copies,
)
from idiograph.answer.verify import choose_model, verify, verify_in_population
from idiograph.errors import InputError
from idiograph.index.index import Index
from idiograph.rankers.counts import WORD_OR_SIGN
from idiograph.rankers.library import Library
from idiograph.rankers.model import read_once
from idiograph.synth.anthology import anthology
from idiograph.text.passages import count_words

ESSAYS = list(anthology())
LIBRARY = library_of(ESSAYS)
ASKED = (ESSAYS[0].text, ESSAYS[1].text)


@pytest.fixture(scope="module")
def population():
    return learn_population(LIBRARY, ASKED)


@pytest.fixture(scope="module")
def answer(population):
    return population.compare(*ASKED)


def test_the_texts_in_question_are_no_part_of_the_reference(population):
    assert len(population.library) == len(ESSAYS) - 2
    assert not set(ASKED) & set(population.library.texts)


def test_a_text_that_holds_another_is_a_copy_of_it():
    part = " ".join(ASKED[0].split()[20:120])
    kept = without_copies(LIBRARY, [part])
    assert ASKED[0] not in kept.texts
    assert len(kept) == len(LIBRARY) - 1
    again = without_copies(Library((part, ESSAYS[5].text), ("a", "b"), "en"), [ASKED[0]])
    assert again.texts == (ESSAYS[5].text,)


def test_what_methods_add_sums_to_the_ratio(answer):
    assert sum(each.share for each in answer.shares) == pytest.approx(answer.llr)


def test_features_say_what_makes_texts_alike_and_unlike(answer):
    named = [each for each in answer.shares if each.features]
    assert named
    assert all(abs(feature.share) > 0 for each in named for feature in each.features)


def test_features_with_all_the_others_sum_to_what_a_method_adds(answer):
    for each in answer.shares:
        if each.features:
            parts = [feature.share for feature in each.features]
            assert sum(parts) + each.others + each.usual == pytest.approx(each.share, abs=1e-9)


def test_features_have_their_rates_in_both_texts_and_in_the_reference(population, answer):
    words = {f.feature: f for each in answer.shares for f in each.features if f.kind == "word"}
    assert words
    for word, found in words.items():
        for text, rate in zip(ASKED, (found.a, found.b), strict=True):
            assert rate == pytest.approx(1000 * WORD_OR_SIGN.findall(text.lower()).count(word) / count_words(text))
        texts = population.library.texts
        stands = sum(WORD_OR_SIGN.findall(text.lower()).count(word) for text in texts)
        assert found.usual == pytest.approx(1000 * stands / sum(map(count_words, texts)))


def test_neighbours_are_authors_of_the_reference(population, answer):
    near = next(each for each in answer.shares if each.method == "neighbours")
    assert {feature.feature for feature in near.features} <= set(population.library.authors)
    assert {feature.kind for feature in near.features} == {"author"}


def test_of_letters_that_hold_one_another_the_strongest_is_shown(answer):
    letters = next(each for each in answer.shares if each.method == "letters")
    for sign in (1, -1):
        shown = [f.feature.strip() for f in letters.features if f.share * sign > 0]
        assert not [(a, b) for a in shown for b in shown if a != b and a in b]


def test_a_check_keeps_the_ratios_that_it_was_made_of(population):
    for row in population.check.lengths:
        same, different = row.ratios
        assert len(same) == min(row.same, 200)
        assert list(different) == sorted(different)
        assert sum(count for *_, count in row.reliability) == row.same + row.different
    assert population.check.at_size(3.5).words == 0


def test_the_order_of_the_two_texts_does_not_matter(population, answer):
    assert population.compare(*ASKED[::-1]).llr == pytest.approx(answer.llr, abs=1e-6)


def test_a_ratio_is_bounded_by_the_number_of_pairs_without_a_text_twice(population):
    reach = np.log10(len(population.library) / 2)
    assert -reach <= population.weights.calibration.low
    assert population.weights.calibration.high <= reach


def test_a_verdict_says_what_it_was_checked_on_and_has_a_probability_only_with_a_prior(population):
    verdict = verify_in_population(*ASKED, population)
    assert verdict.checked == population.check
    assert population.check.lengths[0].words == 0
    assert (verdict.probability, verdict.prior_odds) == (None, None)
    saved = json.loads(json.dumps(verdict.to_json()))
    assert saved["checked"]["cllr"] == pytest.approx(population.check.cllr)
    given = verify_in_population(*ASKED, population, 1.0)
    assert given.probability == pytest.approx(1 / (1 + 10**-verdict.llr))


def test_text_in_another_language_than_the_reference_gets_no_ratio(population):
    french = "Les marées sont mesurées depuis longtemps dans les ports, mais on les prédit encore assez mal. " * 8
    verdict = verify_in_population(french, ASKED[0], population)
    assert verdict.llr == 0
    assert "text in fr, the reference is in en" in verdict.refusals


def test_a_reference_whose_labels_mean_nothing_gives_no_ratio():
    mixed = np.random.default_rng(3).permutation(LIBRARY.authors)
    verdict = verify(*ASKED, reference=Library(LIBRARY.texts, tuple(map(str, mixed)), "en"))
    assert verdict.llr == 0
    assert verdict.same is None
    assert verdict.refusals
    assert verdict.shares == ()


def test_a_length_at_which_ratios_are_worth_nothing_gets_none(population):
    worthless = replace(population.check.lengths[-1], words=150, cllr=1.01)
    check = replace(population.check, lengths=(population.check.lengths[0], worthless))
    assert check.why_silent() is None
    assert (
        check.why_silent(150)
        == "ratios of the reference's texts, cut to 150 words, are no better than none (Cllr 1.01)"
    )


@pytest.fixture(scope="module")
def strangers():
    """One text of each writer of whom the evidence knows nothing, and the evidence."""
    names = sorted(set(LIBRARY.authors))
    known = LIBRARY.take([at for at, who in enumerate(LIBRARY.authors) if who in names[::2]])
    first = [LIBRARY.texts[LIBRARY.authors.index(name)] for name in names[1::2]]
    return first, PairEvidence.learn(known, pair_methods())


def test_a_joined_text_is_not_nearer_than_its_parts(strangers):
    (one, *parts), evidence = strangers
    asked = [one, "\n\n".join(parts), *parts]
    stands = evidence.standings(asked)[0].mean(axis=1)
    as_one = replace(evidence, usual_words=1e9).standings(asked)[0].mean(axis=1)
    assert stands[1] == pytest.approx(stands[2:].mean(), abs=0.05)
    assert as_one[1] > as_one[2:].mean() + 0.1  # were it compared whole


def test_a_long_text_is_cut_into_equal_pieces_and_a_longer_one_by_some_of_them():
    words = [f"word{number}" for number in range(1000)]
    assert cut_evenly(" ".join(words[:14]), 10) == [" ".join(words[:14])]
    pieces = cut_evenly(" ".join(words[:40]), 10)
    assert [piece.split() for piece in pieces] == [words[at : at + 10] for at in range(0, 40, 10)]
    assert [piece.split()[0] for piece in cut_evenly(" ".join(words), 10)] == [
        words[at] for at in (0, 250, 500, 740, 990)
    ]


def test_what_carries_the_ratio_of_a_long_text_sums_to_it(population):
    answer = population.compare("\n\n".join(ESSAYS[at].text for at in (0, 10, 20)), ASKED[1])
    assert sum(each.share for each in answer.shares) == pytest.approx(answer.llr)
    for each in answer.shares:
        if each.features:
            parts = [feature.share for feature in each.features]
            assert sum(parts) + each.others + each.usual == pytest.approx(each.share, abs=1e-9)


def test_how_near_two_writers_are_is_known_from_their_other_texts():
    one, two = np.array([0, 0, 1, 0]), np.array([1, 1, 0, 2])
    found = closeness_of_writers(one, two, np.array([1.0, 2.0, 6.0, 9.0]))
    assert found[:3].tolist() == [4.0, 3.5, 1.5]
    assert np.isnan(found[3])


def test_of_two_hands_that_write_alike_few_get_a_ratio_over_3(population):
    among_all = PairRatios(population.ratios.learned[:1])
    for pairs in population.pairs:
        alike = pairs.take(alike_pairs(pairs) & ~pairs.same)
        said, before = (
            float((ratios.ratios(alike.standings, alike.sizes) > 0.5).mean())
            for ratios in (population.ratios, among_all)
        )
        assert said < 0.1 < 0.15 < before


def test_few_texts_do_not_show_surely_that_writers_are_told_apart():
    row = LengthCheck(0, 20, 60, 0.9, 0.7)
    assert sure_auc(row, 8) < 0.5 < sure_auc(row, 80)


def test_a_reference_of_one_author_is_refused_with_what_is_wanted():
    one = Library(tuple(d.text for d in ESSAYS[2:5]), ("a",) * 3, "en")
    with pytest.raises(InputError, match="3 texts by 1 authors, .* give at least two texts each of several authors"):
        verify(*ASKED, reference=one)


def test_hamilton_and_madison_differ_in_upon(shared):
    import io

    import pyarrow as pa

    with pa.input_stream(str(shared / "corpora" / "federalist.jsonl.zst"), compression="zstd") as stream:
        rows = [json.loads(line) for line in io.TextIOWrapper(stream, encoding="utf8")]
    signed = [row for row in rows if [a["name"] for a in row["authors"]] in (["Hamilton"], ["Madison"], ["Jay"])]
    library = Library(tuple(row["text"] for row in signed), tuple(row["authors"][0]["name"] for row in signed), "en")
    text = {row["id"].split("-")[-1].split(":")[-1].split("/")[-1].lstrip("0"): row["text"] for row in signed}
    verdict = verify(text["65"], text["39"], reference=library)
    assert verdict.llr < 0
    assert verdict.checked is not None
    assert verdict.checked.cllr < 1
    unlike = {f.feature for each in verdict.shares for f in each.features if f.share < 0}
    assert "upon" in unlike


def test_pairs_in_the_form_of_pan_are_answered_in_its_form(idiograph, tmp_path):
    pairs = [{"id": "one", "pair": list(ASKED)}]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in pairs))
    target = tmp_path / "answers.jsonl"
    args = ("verify", "--pairs", tmp_path / "pairs.jsonl", "--reference", "anthology", "-o", target)
    status, _, err = idiograph(*args)
    assert status == 0, err
    (answer,) = map(json.loads, target.read_text().splitlines())
    assert answer["id"] == "one"
    assert answer["value"] == pytest.approx(1 / (1 + 10 ** -answer["llr"]))
    status, _, err = idiograph("verify", "--pairs", tmp_path / "pairs.jsonl")
    assert status == 1
    assert "--pairs stands alone with --reference CORPUS and -o FILE" in " ".join(err.split())


def test_what_tells_two_authors_apart_need_not_tell_others_apart():
    names = sorted(set(LIBRARY.authors))[:2]
    two = LIBRARY.take([at for at, who in enumerate(LIBRARY.authors) if who in names])
    verdict = verify(*ASKED, reference=two)
    assert verdict.llr == 0
    assert "the reference has texts by 2 authors, too few to leave one out" in verdict.refusals[0]


def test_the_model_takes_part_where_it_is_asked_for_or_lies_in_the_index(tmp_path):
    style, some = hashed_style(), ESSAYS[2:17]
    index = Index.build(some, tmp_path / "index", style)
    library = read_reference(index)
    assert choose_model(library, index, None, None)
    assert choose_model(library, some, style, None)
    assert choose_model(library, index, style, False) is None
    assert choose_model(library, some, None, None) is None  # essays are not papers
    verdict = verify(*ASKED, style, reference=some)
    assert verdict.checked is not None
    assert "model" in dict(verdict.checked.weights)


def test_passages_of_an_index_are_not_read_again(tmp_path):
    index = Index.build(ESSAYS[:3], tmp_path / "index", hashed_style())
    held = [passage.text for passage in index.passages]
    asked = [held[-1], "A sentence that no essay has.", held[0]]
    found, read = encode_with_index(index)(asked), index.embed(asked)
    assert found.lengths.tolist() == read.lengths.tolist()
    assert np.abs(found.vectors - read.vectors).max() < 0.02  # as they are stored
    index.embed = lambda texts: pytest.fail(f"{texts} are read")  # pyright: ignore[reportAttributeAccessIssue]
    assert len(encode_with_index(index)(held)) == len(held)


def test_a_text_is_read_once():
    asked = []
    style = hashed_style()
    read = read_once(lambda passages: asked.extend(passages) or style.encode(passages))
    first, again = read([ASKED[0], ASKED[1], ASKED[0]]), read([ASKED[1]])
    assert len(asked) == len(set(asked))
    assert np.array_equal(first.of(1), again.of(0))
    assert np.array_equal(first.of(0), first.of(2))
