"""evaluate, compare, pan and pan19 on the command line."""

import json

import numpy as np
import pytest


@pytest.fixture(scope="module")
def triplets(anthology_corpus, tmp_path_factory):
    from idiograph.mining.mine import mine_triplets
    from idiograph.recipe import make_recipe

    folder = tmp_path_factory.mktemp("mined") / "triplets"
    changes = {"fractions": (0, 0, 1), "sentences": (2, 4), "per_document": 2}
    mine_triplets(anthology_corpus, make_recipe("sound", {"mine": changes}).mine, folder)
    return folder


def test_evaluate_takes_all_configurations_with_natural_and_equal_pools(idiograph, triplets):
    _, out, _ = idiograph("evaluate", "delta", triplets, "--json")
    natural = {r["benchmark"].split("/")[1]: r["pool"] for r in json.loads(out)}
    _, out, _ = idiograph("evaluate", "delta", triplets, "--pool", "equal", "--json")
    equal = {r["benchmark"].split("/")[1]: r["pool"] for r in json.loads(out)}
    assert set(natural) == {"base-2", "base-4"}
    assert len(set(natural.values())) == 2
    assert set(equal.values()) == {min(natural.values())}
    _, out, _ = idiograph("evaluate", "delta", triplets, "--pool", "40", "--config", "base-2", "--json")
    assert [r["pool"] for r in json.loads(out)] == [40]


def test_a_ranker_is_a_model_at_a_grain_a_native_model_or_a_baseline(idiograph, triplets, backbones):
    tiny = backbones["bert"]
    rankers = (f"{tiny}@whole", f"{tiny}@ngram:3", f"native:{tiny}", "ngrams", "words", "function-words")
    status, out, err = idiograph("evaluate", *rankers, triplets, "--config", "base-4", "--pool", "60", "--json")
    assert status == 0, err
    names = [r["ranker"] for r in json.loads(out)]
    assert names == [
        "tiny-bert @ whole",
        "tiny-bert @ ngram:3",
        "native:tiny-bert",
        "ngrams",
        "words",
        "function-words",
    ]


def test_compare_reads_what_evaluate_wrote(idiograph, triplets, tmp_path):
    for ranker in ("bm25", "delta"):
        idiograph("evaluate", ranker, triplets, "--config", "base-4", "-o", tmp_path / ranker)
    status, out, _ = idiograph("compare", tmp_path / "bm25", tmp_path / "delta", "--measure", "RR")
    assert status == 0
    assert "delta beats bm25" in out
    _, out, _ = idiograph("compare", tmp_path / "bm25", tmp_path / "delta", "--json")
    (found,) = json.loads(out)
    assert found["low"] <= found["value"] <= found["high"]
    status, _, err = idiograph("compare", tmp_path)
    assert status == 1
    assert "holds no values.npz; write it: idiograph evaluate" in err


def test_evaluate_writes_trec_and_beir(idiograph, triplets, tmp_path):
    args = ("--config", "base-4", "-o", tmp_path, "--trec", "--beir")
    status, _, err = idiograph("evaluate", "delta", triplets, *args)
    assert status == 0, err
    assert (tmp_path / "triplets-base-4-test.delta.run").read_text().startswith("q0 Q0 p")
    assert (tmp_path / "triplets-base-4-test.qrels").read_text().startswith("q0 0 p")
    _, out, _ = idiograph("evaluate", "delta", tmp_path / "beir-triplets-base-4-test", "--json")
    first = json.loads((tmp_path / "report.json").read_text())[0]["measures"]["R@20"]["value"]
    assert json.loads(out)[0]["measures"]["R@20"]["value"] == first
    assert "### delta, triplets/base-4/test, by field" in (tmp_path / "report.md").read_text()


def test_trec_files_need_a_folder(idiograph, triplets):
    status, _, err = idiograph("evaluate", "delta", triplets, "--trec")
    assert (status, err.strip()) == (1, "idiograph: say with -o where the files should go")


def test_pan_prints_the_official_scores(idiograph, tmp_path):
    truth = [{"id": str(at), "same": at % 2 == 0, "authors": ["a", "b"]} for at in range(8)]
    (tmp_path / "truth.jsonl").write_text("\n".join(map(json.dumps, truth)))
    said = [{"id": str(at), "value": 0.9 if at % 2 == 0 else 0.1} for at in range(7)]
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, said)))
    status, out, _ = idiograph("pan", tmp_path / "truth.jsonl", tmp_path / "answers.jsonl", "--json")
    assert status == 0
    assert json.loads(out)["c@1"] == round((7 + 7 / 8) / 8, 3)
    _, out, _ = idiograph("pan", tmp_path / "truth.jsonl", tmp_path / "answers.jsonl")
    assert "f05u" in out


def test_pan19_asks_every_ranker_and_writes_answers_that_pan_scores(idiograph, tmp_path, backbones):
    from pan19 import write_problems

    from idiograph.evaluate.problems import NOBODY, Problem
    from idiograph.synth.anthology import anthology

    texts = {}
    for document in anthology():
        texts.setdefault(document.authors[0].name, []).append(document.text)
    names = sorted(texts)[:3]
    unknown = {f"unknown{at}.txt": texts[name][-1] for at, name in enumerate([*names, sorted(texts)[5]])}
    truth = dict(zip(unknown, [*names, NOBODY], strict=True))
    write_problems(
        [Problem("problem00001", "en", {n: tuple(texts[n][:-1]) for n in names}, unknown, truth)], tmp_path / "p"
    )
    rankers = ("delta", f"{backbones['bert']}@ngram:3")
    status, out, err = idiograph("pan19", *rankers, tmp_path / "p", "-o", tmp_path / "out", "--json")
    assert status == 0, err
    delta, model = json.loads(out)
    assert delta["measures"]["triplet accuracy"]["value"] > 0.8
    assert (model["ranker"], model["texts"], model["authors"]) == ("tiny-bert @ ngram:3", 3, 3)
    _, out, _ = idiograph("pan", tmp_path / "p", tmp_path / "out" / "answers" / "delta", "--json")
    assert json.loads(out)["overall"] == round(delta["measures"]["macro-F1"]["value"], 3)
    status, out, _ = idiograph("pan19", "delta", tmp_path / "p", "--preset", "paper")
    assert "PAN19 en, paper" in out


def test_evaluate_takes_the_folder_of_one_configuration(idiograph, triplets):
    for more in ((), ("--verify", "--split", "test")):
        status, out, err = idiograph("evaluate", "delta", triplets / "base-4", *more, "--json")
        assert status == 0, err
        _, whole, _ = idiograph("evaluate", "delta", triplets, "--config", "base-4", "--json")
        if not more:
            assert json.loads(out) == json.loads(whole)


def test_verify_takes_the_pairs_of_the_configuration_that_is_named(triplets):
    from idiograph.answer.pairs import open_pairs
    from idiograph.recipe import make_recipe

    recipe = make_recipe("sound", {"calibrate": {"split": ("test",)}}).calibrate
    (first, of_first), (longer, of_longer) = (open_pairs(triplets / name, recipe) for name in ("base-2", "base-4"))
    assert open_pairs(triplets, recipe) == (first, of_first)
    assert of_first == of_longer
    assert np.mean([len(p.a) for p in longer]) > np.mean([len(p.a) for p in first])
