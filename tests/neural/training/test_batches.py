"""Which triplets go where is a matter of the seed and the step alone; and nothing is padded more than it must be."""

import json
import re
import time
from collections import Counter
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trainees import one_thread, passages, trainee, triplets, write_jsonl  # noqa: F401

from idiograph.errors import InputError, SpecError
from idiograph.neural.reader import encode_texts
from idiograph.neural.training.batches import Batches, Order, prefetch
from idiograph.neural.training.train import collection_weights
from idiograph.neural.triplets import open_triplets, triplets_from_rows
from idiograph.recipe import TrainRecipe


def taken(order: Order, steps: range) -> list[tuple[int, int]]:
    return [(int(s), int(r)) for step in steps for s, r in order[step]]


@pytest.mark.parametrize("kind", ["modernbert", "bert", "xlmr"])
def test_texts_become_the_tokens_that_transformers_makes_of_them(encoders, kind):
    tokenizer = encoders[kind].model.tokenizer
    texts = ["a map of the harbour, after all", "", "bees sleep " * 30, "tide <s> [SEP] book"]
    for longest in (8, 64):
        expected = tokenizer(["query: " + text for text in texts], truncation=True, max_length=longest)["input_ids"]
        ids, mask = encode_texts(tokenizer, texts, "query: ", longest)
        assert [row[kept.bool()].tolist() for row, kept in zip(ids, mask, strict=True)] == expected
        assert ids.shape[1] % 8 == 0
        assert (ids[mask == 0] == (tokenizer.pad_token_id or 0)).all()


def test_an_epoch_takes_every_triplet_once():
    order = Order([triplets(12), triplets(20, 1)], 4)
    assert Counter(taken(order, range(len(order)))) == Counter(
        {(s, r): 1 for s, n in ((0, 12), (1, 20)) for r in range(n)}
    )


def test_epochs_have_different_orders():
    order = Order([triplets(16)], 4)
    assert taken(order, range(4)) != taken(order, range(4, 8))


def test_the_seed_decides_the_order_and_a_step_can_be_asked_for_alone():
    part = triplets(30)
    first, again, other = Order([part], 5), Order([part], 5), Order([part], 5, seed=8)
    assert np.array_equal(first[17], again[17])
    assert taken(first, range(6)) != taken(other, range(6))


def test_weights_decide_how_much_of_each_collection_is_seen():
    order = Order([triplets(10), triplets(90, 1)], 10, weights=(1, 1))
    seen = Counter(source for source, _ in taken(order, range(len(order))))
    assert seen == {0: 50, 1: 50}


def test_a_small_collection_is_gone_through_before_it_is_repeated():
    order = Order([triplets(10), triplets(90, 1)], 10, weights=(1, 1))
    rows = Counter(row for source, row in taken(order, range(2 * len(order))) if source == 0)
    assert set(rows.values()) == {10}


def test_a_batch_can_be_kept_to_one_field_as_far_as_its_rows_go():
    rows = [[(*passage, f"field {at % 3}") for passage in row] for at, row in enumerate(passages(31))]
    part = triplets_from_rows(rows)
    order = Order([part], 5, mixing="fields")
    assert part.fields is not None
    kinds = [len(set(part.fields[part.rows[order[step][:, 1], 0]])) for step in range(len(order))]
    assert len(kinds) == 6
    assert kinds.count(1) >= 5
    assert len(set(taken(order, range(len(order))))) == 30


def test_a_batch_can_be_kept_to_one_collection():
    order = Order([triplets(20), triplets(20, 1)], 5, mixing="batches")
    assert all(len({int(source) for source in order[step][:, 0]}) == 1 for step in range(len(order)))
    assert {int(order[step][0, 0]) for step in range(len(order))} == {0, 1}


def test_texts_of_like_length_share_a_batch(backbones):
    tokenizer = trainee(backbones["modernbert"]).model.tokenizer
    part = triplets_from_rows(
        [[("tide " * (1 + at % 40), f"{at}", f"{at}{role}") for role in "apn"] for at in range(200)]
    )
    batches = Batches(Order([part], 8), tokenizer)
    found = [batches[step] for step in range(len(batches))]
    assert sum(batch.tokens for batch in found) > 0.8 * sum(batch.input_ids.numel() for batch in found)
    assert all(batch.input_ids.shape[1] < int(batch.attention_mask.sum(dim=1).max()) + 8 for batch in found)


def test_a_batch_holds_anchors_then_positives_then_negatives(backbones):
    tokenizer = trainee(backbones["modernbert"]).model.tokenizer
    part = triplets(4)
    order = Order([part], 4)
    batch = Batches(order, tokenizer)[0]
    texts = [part.texts[part.rows[row, column]] for column in range(3) for _, row in order[0]]
    assert tokenizer.batch_decode(batch.input_ids, skip_special_tokens=True) == [f" {text}" for text in texts]
    assert np.array_equal(batch.labels, part.labels[part.rows[order[0][:, 1]]])
    assert batch.tokens == int(batch.attention_mask.sum())
    assert [column["input_ids"].shape[0] for column in batch.columns] == [4, 4, 4]


def test_the_parts_of_two_devices_make_the_batch_of_one(backbones):
    tokenizer = trainee(backbones["modernbert"]).model.tokenizer
    order = Order([triplets(12)], 4)
    whole, halves = Batches(order, tokenizer)[1], [Batches(order, tokenizer, rank=r, world=2)[1] for r in range(2)]
    assert np.array_equal(whole.labels, np.concatenate([half.labels for half in halves]))


def test_a_batch_that_cannot_be_cut_for_the_devices_is_refused(backbones):
    tokenizer = trainee(backbones["modernbert"]).model.tokenizer
    with pytest.raises(InputError, match="a batch of 5 cannot be cut for 2 devices; choose a multiple"):
        Batches(Order([triplets(8)], 5), tokenizer, world=2)


def test_too_few_triplets_for_a_batch_are_refused():
    with pytest.raises(InputError, match="3 triplets do not fill one batch of 8; choose a smaller batch"):
        Order([triplets(3)], 8)


def test_weights_must_be_one_for_each_collection():
    with pytest.raises(InputError, match="1 weights for 2 collections of triplets; give one each"):
        Order([triplets(8), triplets(8, 1)], 4, weights=(1,))


def test_an_unknown_mixing_is_named():
    with pytest.raises(
        SpecError, match=r"unknown mixing 'row'; choose from batches, fields, rows \(did you mean 'rows'\?\)"
    ):
        Order([triplets(8)], 4, mixing="row")  # pyright: ignore[reportArgumentType]


def test_a_text_is_kept_once_however_many_triplets_share_it():
    rows = passages(2)
    rows[1][2] = rows[0][2]
    part = triplets_from_rows(rows)
    assert len(part.texts) == 5
    assert part.rows[0, 2] == part.rows[1, 2]


def test_the_same_authors_have_the_same_label_in_every_collection():
    one, other = (
        triplets_from_rows(passages(1)),
        triplets_from_rows([[("x", "0-0", "d"), ("y", "0-0", "e"), ("z", "somebody", "f")]]),
    )
    assert one.labels[0] == other.labels[0] != other.labels[2]


def test_triplets_read_from_json_lines_know_who_wrote_them(tmp_path):
    path = tmp_path / "some.jsonl"
    lines = [
        {"anchor": "a", "positive": "b", "negative": "c", "author": "x", "negative_author": "y"},
        {"anchor": "d", "positive": "e", "negative": "f", "author": "y", "negative_author": "x"},
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    part = open_triplets(path)
    labels = part.labels[part.rows]
    assert labels[0, 0] == labels[0, 1] == labels[1, 2] != labels[0, 2]


def test_where_nobody_is_named_no_two_rows_share_an_author(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_text('{"anchor": "a", "positive": "b"}\n{"anchor": "c", "positive": "d"}\n', encoding="utf-8")
    labels = (part := open_triplets(path)).labels[part.rows]
    assert labels[0, 0] == labels[0, 1] != labels[1, 0]


def test_a_line_that_is_no_triplet_is_named(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_text('{"anchor": "a", "positive": "b"}\n{"anchor": "c"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(f"{path}:2: not a triplet")):
        open_triplets(path)


def test_rows_with_different_numbers_of_negatives_are_refused(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_text('{"anchor": "a", "positive": "b"}\n{"anchor": "c", "positive": "d", "negative": "e"}\n')
    with pytest.raises(InputError, match="different numbers of negatives"):
        open_triplets(path)


@pytest.mark.parametrize("plural", ["", "s"])  # the published files spell one column so
def test_mined_folders_are_read_with_every_k_or_one(tmp_path, plural):
    roles = {"query": "query", "pos": "positive", "neg": "negative"}
    for name in ("base-2", "base-4"):
        columns: dict[str, list] = {}
        for short, text in roles.items():
            ids = f"{short}_halid{plural}" if short == "neg" else f"{short}_halid"
            columns |= {text: [f"{text} {name} {at}" for at in range(3)], ids: [f"{short}{at}" for at in range(3)]}
            columns[f"{short}_authorids"] = [["b", "a"], ["a", "b"], ["c"]]
        (tmp_path / name).mkdir()
        pq.write_table(pa.table(columns), tmp_path / name / "train-00000-of-00001.parquet")
    both, one = open_triplets(tmp_path), open_triplets(tmp_path / "base-4")
    assert (len(both), len(one)) == (6, 3)
    assert one.texts[0] == "query base-4 0"
    assert len(set(both.labels)) == 2


def test_a_path_without_triplets_is_named(tmp_path):
    with pytest.raises(InputError, match=r"there are no triplets at '.*nowhere'; make them: idiograph mine CORPUS"):
        open_triplets(tmp_path / "nowhere")


@pytest.mark.parametrize("threads", [1, 4])
def test_work_done_ahead_keeps_its_order_and_its_errors(threads):
    def job(at):
        time.sleep(0.02 if at % 2 else 0)  # later ones are ready first
        if at == 6:
            raise ValueError("the seventh is missing")
        return at

    found = []
    with pytest.raises(ValueError, match="the seventh is missing"):
        found.extend(prefetch((partial(job, at) for at in range(9)), threads))
    assert found == [0, 1, 2, 3, 4, 5]


def test_threads_do_not_cut_at_the_lengths_of_others(backbones):
    tokenizer = trainee(backbones["bert"], patch="ngram:2").model.tokenizer
    texts = ["tide harbour book map pocket bee dance bridge " * 20] * 100
    jobs = (partial(encode_texts, tokenizer, texts, "", longest) for longest in (16, 48) * 20)
    assert [ids.shape[1] for ids, _ in prefetch(jobs, 4)] == [16, 48] * 20


def test_who_stops_in_the_middle_waits_for_nothing_that_was_not_begun():
    begun = []
    line = prefetch((partial(begun.append, at) for at in range(1000)), 2)
    next(line)
    line.close()
    assert len(begun) < 10


@pytest.mark.parametrize(("power", "expected"), [(1.0, ()), (0.5, (4.0, 2.0)), (0.0, (1.0, 1.0))])
def test_large_collections_can_count_for_less_than_their_size(power, expected):
    assert collection_weights(TrainRecipe(size_power=power), [triplets(16), triplets(4)]) == expected
    assert collection_weights(TrainRecipe(size_power=power, weights=(1.0, 5.0)), [triplets(16), triplets(4)]) == (
        1.0,
        5.0,
    )
