"""A language model of characters: its chances are chances, and what it has read surprises it less."""

import numpy as np
import pytest

from idiograph.errors import ArtifactError, InputError, MissingLibrary
from idiograph.extras import is_installed
from idiograph.synth.anthology import anthology
from idiograph.text.ngrams import CharacterModel, Perplexity, check_language_models, encode, take_characters


@pytest.fixture(scope="module")
def model() -> CharacterModel:
    return CharacterModel.learn(document.text for document in list(anthology())[:20])


@pytest.mark.parametrize("context", ["", "t", "the ", "of course", "ŸŸŸ"])
def test_the_chances_of_all_characters_after_a_context_sum_to_one(model, context):
    before = encode(context, model.alphabet)
    codes = [0, *range(2, len(model.alphabet) + 2)]  # the unknown one, and every one that is known
    after = [model.chances(np.append(before, np.uint64(code)))[-1] for code in codes]
    assert sum(after) == pytest.approx(1.0)


def test_a_chance_is_what_one_counts_by_hand():
    """After nothing, of "aab": (1 + 2 / 3) / (2 + 1) for "a" at a start, where 2 / 3 is its share mixed with a third."""
    model = CharacterModel.learn(["aab"])
    first = (2 + 2 * (1 / 3)) / (3 + 2)  # two of three, two kinds, over three equal chances
    assert model.chances(encode("a", "ab"))[0] == pytest.approx((1 + 1 * (1 + 1 * first) / 2) / 2)


def test_prose_is_less_surprising_than_its_letters_shuffled(model):
    text = list(anthology())[-1].text
    shuffled = "".join(np.random.default_rng(7).permutation(list(text)))
    assert 2 < model.perplexity(text) < 10 < model.perplexity(shuffled)


def test_a_model_is_the_same_from_disk(model, tmp_path):
    model.save(tmp_path / "en.npz")
    assert CharacterModel.open(tmp_path / "en.npz").perplexity("The tide.") == model.perplexity("The tide.")


def test_a_language_without_a_model_has_no_perplexity(model, tmp_path):
    model.save(tmp_path / "en.npz")
    score = Perplexity(str(tmp_path))
    assert score("The tide.", "en") == model.perplexity("The tide.")
    assert np.isnan(score("La marée.", "fr"))


def test_no_more_is_read_than_asked():
    assert take_characters(["one  two", "three"], 9) == ["one two", "th"]


def test_a_damaged_model_says_how_to_make_another(tmp_path):
    (tmp_path / "en.npz").write_bytes(b"PK\x03\x04 no")
    with pytest.raises(ArtifactError, match="idiograph corpus language-model"):
        CharacterModel.open(tmp_path / "en.npz")


def test_a_folder_without_models_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no language model"):
        check_language_models(str(tmp_path))


@pytest.mark.skipif(is_installed("kenlm"), reason="kenlm is installed here")
def test_a_model_of_kenlm_needs_its_library(tmp_path):
    (tmp_path / "en.arpa").touch()
    with pytest.raises(MissingLibrary, match=r"needs kenlm: pip install 'idiograph\[kenlm\]'"):
        check_language_models(str(tmp_path))
