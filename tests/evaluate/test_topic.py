"""The topic check: its measures are what they say, and it sees topic where there is some."""

import json
import math
import re
from collections import Counter

import numpy as np
import pytest

from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.errors import ArtifactError, InputError
from idiograph.evaluate.published import DECOUPLING
from idiograph.evaluate.topic import (
    SCORERS,
    TripletTexts,
    bm25,
    check_topic,
    function_words,
    okapi,
    sample_triplets,
    triplet_jaccard,
    triplet_texts,
    write_topic_report,
)
from idiograph.mining.mine import mine_triplets
from idiograph.mining.triplets import read_triplets
from idiograph.recipe import make_recipe
from idiograph.synth.synth import synth

PAIRS = (
    "the tide may be measured and it has been",
    "the tide rises and the harbour fills",
    "maps lie and still we fold them",
    "why do the bees dance",
    "the maps of the harbour lie",
)


@pytest.fixture(scope="module")
def mined(tmp_path_factory):
    """Writers who keep to their topics: whoever knows the topic knows a lot."""
    root = tmp_path_factory.mktemp("topic")
    build_corpus(synth("synth:documents=250,authors=40,topics=20,coauthors=0,loyalty=0.9,topic=2"), root / "corpus")
    changes = {"rule": ["base", "unrestricted"], "sentences": [2, 4], "fractions": (0.2, 0.2, 0.6), "negatives": "any"}
    mine_triplets(Corpus(root / "corpus"), make_recipe("sound", {"mine": changes}).mine, root / "out")
    return root / "out"


@pytest.fixture(scope="module")
def found(mined):
    return check_topic([mined])


@pytest.fixture
def pairs():
    return TripletTexts(PAIRS, np.array([0, 4]), np.array([1, 2]), np.array([2, 3]))


def test_jaccard_is_the_share_of_words_in_common(pairs):
    positive, negative, noise = triplet_jaccard(pairs)

    def by_hand(a: int, b: int) -> float:
        one, other = set(PAIRS[a].split()), set(PAIRS[b].split())
        return len(one & other) / len(one | other)

    assert positive.tolist() == pytest.approx([by_hand(0, 1), by_hand(4, 2)])
    assert negative.tolist() == pytest.approx([by_hand(0, 2), by_hand(4, 3)])
    assert noise.tolist() == pytest.approx([by_hand(1, 2), by_hand(2, 3)])


def test_okapi_is_that_of_rank_bm25(pairs):
    """The formula written out: IDF of the candidates, a floor for common words, every query word counted."""
    pool = [PAIRS[at].split() for at in (1, 2, 3)]
    df = Counter(word for text in pool for word in set(text))
    idf = {word: math.log(len(pool) - n + 0.5) - math.log(n + 0.5) for word, n in df.items()}
    floor = 0.25 * sum(idf.values()) / len(idf)
    idf = {word: value if value >= 0 else floor for word, value in idf.items()}
    mean = sum(map(len, pool)) / len(pool)

    def score(query: str, document: str) -> float:
        counts = Counter(document.split())
        norm = 1.5 * (1 - 0.75 + 0.75 * len(document.split()) / mean)
        return sum(idf.get(w, 0) * counts[w] * 2.5 / (counts[w] + norm) for w in query.split())

    positive, negative = okapi(pairs)
    assert positive.tolist() == pytest.approx([score(PAIRS[0], PAIRS[1]), score(PAIRS[4], PAIRS[2])])
    assert negative.tolist() == pytest.approx([score(PAIRS[0], PAIRS[2]), score(PAIRS[4], PAIRS[3])])


def test_bm25_is_what_bm25s_says(pairs):
    import bm25s

    vocabulary = {word: at for at, word in enumerate(dict.fromkeys(w for t in PAIRS for w in t.split()))}
    pool = [[vocabulary[w] for w in PAIRS[at].split()] for at in (1, 2, 3)]
    index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    index.index((pool, vocabulary), show_progress=False)
    known = {token for text in pool for token in text}
    scores = [
        index.get_scores_from_ids([vocabulary[w] for w in PAIRS[at].split() if vocabulary[w] in known]) for at in (0, 4)
    ]
    positive, negative = bm25(pairs)
    assert positive.tolist() == pytest.approx([scores[0][0], scores[1][1]])
    assert negative.tolist() == pytest.approx([scores[0][1], scores[1][2]])


@pytest.mark.parametrize("scorer", SCORERS)
def test_every_measure_prefers_the_text_itself(scorer):
    texts = (
        "However, the tide may be measured; it has been, and often, by those who have the time for it.",
        "But maps lie. They don't mean to. And still we fold them and go on with our pockets full of paper.",
        "Why do bees dance? Because they cannot point at what they have found, or so we were all told.",
    )
    same = TripletTexts(texts, np.array([0, 1, 2]), np.array([0, 1, 2]), np.array([1, 2, 0]))
    positive, negative = SCORERS[scorer](same)
    assert (positive > negative).all()


def test_function_words_do_not_see_the_topic():
    one, other = "the tide of the sea was, as it is, on a map", "the dance of the bees was, as it is, on a wall"
    found = TripletTexts((one, other, "why not? bees dance!"), np.array([0]), np.array([1]), np.array([2]))
    positive, negative = function_words(found)
    assert positive[0] == pytest.approx(1.0)
    assert negative[0] < positive[0]


def test_topic_shows_more_where_the_positive_may_be_from_the_same_document(found):
    by_name = {each.name: each for each in found.checked}
    assert by_name["unrestricted-4"].words.signal.mean >= by_name["base-4"].words.signal.mean
    assert by_name["base-4"]["BM25 (bm25s)"].value > 0.6
    assert by_name["base-4"].own_document == 0.0


def test_every_accuracy_has_an_interval_around_it(found):
    rows = [row for each in found.checked for row in each.accuracy]
    assert len(rows) == len(SCORERS) * 4
    assert all(row.low <= row.value <= row.high for row in rows)


def test_base_and_unrestricted_stand_side_by_side_with_the_published_numbers(found):
    sizes = [(size, base.paper, unrestricted.paper) for size, base, unrestricted in found.pairs()]
    assert sizes == [(2, 60.24, 68.15), (4, 68.36, 79.26)]
    assert DECOUPLING["BM25", "base", 8] == 78.21


def test_histograms_hold_every_triplet(found):
    for each in found.checked:
        for spread in (each.words.anchor_positive, each.words.anchor_negative, each.words.signal, each.words.noise):
            assert sum(spread.counts) == each.triplets


def test_the_page_stands_alone_and_the_json_holds_everything(found, tmp_path):
    page = write_topic_report(found, tmp_path / "report").read_text()
    assert not re.search(r'(?:src|href)="(?!#)', page.replace("xlink:href", "href"))
    assert page.count("<svg") == len(found.checked)
    assert "78.21" not in page
    assert "68.36" in page
    back = json.loads((tmp_path / "report" / "topic.json").read_text())
    assert back["checked"][0]["accuracy"][0]["value"] == found.checked[0].accuracy[0].value


def test_a_sample_does_not_depend_on_the_order(mined):
    triplets = list(read_triplets(mined, "base-2", "test"))
    one, total = sample_triplets(iter(triplets), 50, seed=7)
    other, _ = sample_triplets(iter(reversed(triplets)), 50, seed=7)
    assert total == len(triplets)
    assert len(one) == 50
    assert {t.anchor.text for t in one} == {t.anchor.text for t in other}


def test_a_text_that_comes_twice_is_looked_at_once(mined):
    triplets = list(read_triplets(mined, "base-2", "test"))
    found = triplet_texts(triplets)
    assert len(set(found.texts)) == len(found.texts)
    assert [found.texts[at] for at in found.anchor] == [t.anchor.text for t in triplets]


def test_all_splits_can_be_looked_at_together(mined):
    alone, together = (check_topic([mined], split, limit=20).checked[0].of for split in ("test", "all"))
    assert together > alone


def test_an_unknown_split_is_refused(mined):
    with pytest.raises(InputError, match="there is no split 'dev'; choose from train, valid, test, all"):
        check_topic([mined], "dev")


def test_a_folder_without_triplets_is_refused(tmp_path):
    with pytest.raises(ArtifactError, match="there are no triplets"):
        check_topic([tmp_path])
