"""Whatever happens to a finished folder is one line that names the file, or has no effect: flips, cuts, losses, swaps."""

import json
import os
import shutil
from collections import Counter
from random import Random

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from idiograph.corpus.build import paper_sources
from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.errors import IdiographError, ModelError
from idiograph.evaluate.compare import read_values, write_values
from idiograph.evaluate.report import MeasuredValue, Report
from idiograph.hal.records import KIND, Person, Record, read_records, to_line
from idiograph.index.index import Index
from idiograph.loading import default_folder, load
from idiograph.mining.mine import mine_triplets
from idiograph.mining.triplets import locate_triplets, read_rows
from idiograph.pdf.extract import find_pdfs, pdf_fingerprint
from idiograph.recipe import CorpusRecipe, MineRecipe
from idiograph.store import LEDGER, MANIFEST, Manifest, seal, verify_folder, write_ledger
from idiograph.synth.anthology import anthology

TRIALS = 200


def make_records(folder):
    folder.mkdir()
    people = (Person("Ada"),)
    records = [Record(f"hal-{n:08d}", "en", f"On {n}", ("info",), "", 2020, "", people) for n in range(6)]
    for page in range(2):
        lines = "".join(map(to_line, records[3 * page : 3 * page + 3]))
        (folder / f"001-{page:06d}.jsonl").write_text(lines, encoding="utf-8")
    write_ledger(folder / LEDGER, [{"page": 1}, {"page": 2}])
    seal(folder, Manifest(KIND))


def make_items(kind, suffix):
    def make(folder):
        (folder / "a").mkdir(parents=True)
        for name in ("a/one", "two"):
            (folder / f"{name}{suffix}").write_text(f"<TEI>{name}</TEI>" * 9, encoding="utf-8")
        write_ledger(folder / LEDGER, [{"name": "one"}, {"name": "two"}])
        seal(folder, Manifest(kind))

    return make


def make_corpus(folder):
    build_corpus(anthology(), folder, CorpusRecipe(signals=True))


def make_triplets(folder):
    corpus = folder.parent / "for-triplets"
    build_corpus(anthology(), corpus)
    mine_triplets(Corpus(corpus), MineRecipe(per_document=2, fractions=(0.5, 0.2, 0.3)), folder)


def make_report(folder):
    folder.mkdir()
    values = np.linspace(0, 1, 50)
    rows = (MeasuredValue("R@5", 0.5, 0.4, 0.6),)
    writers = tuple("ab" * 25)
    write_values([Report("model", "b", rows, 50, 50, 0.1, {"R@5": values}, clusters=writers)], folder / "values.npz")


def read_triplet_folder(folder):
    found, names = locate_triplets(folder)
    return [list(read_rows(found, name, "train")) for name in names]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory, encoder, style):
    """Folders of every kind, with how each is read; what is read can be compared."""
    root = tmp_path_factory.mktemp("kinds")

    def make_index(folder):
        essays = list(anthology())
        index = Index.build(essays[:6], folder, style)
        index.add(essays[6:9])
        index.delete([essays[0].id])
        index.write_note("learned", {"threshold": 0.5})

    def read_index(folder):
        index = Index.open(folder, style)
        note = index.read_note("learned")
        return [[hit.passage.id for hit in index.search(text, 3)] for text in ("The tide.", "Bees dance.")], note in (
            {"threshold": 0.5},
            None,
        )

    def make_model(folder):
        encoder.save(folder, "ngram:2", "all", "meansim")
        seal(folder, Manifest("model"))

    makers = {
        "records": (make_records, lambda folder: list(read_records(folder))),
        "pdf": (make_items("pdf", ".pdf"), lambda folder: (pdf_fingerprint(folder), list(find_pdfs(folder)))),
        "tei": (make_items("tei", ".grobid.tei.xml"), lambda folder: len(list(paper_sources([str(folder)])))),
        "corpus": (make_corpus, lambda folder: list(Corpus(folder))),
        "triplets": (make_triplets, read_triplet_folder),
        "index": (make_index, read_index),
        "model": (make_model, lambda folder: load(folder).fingerprint),
        "report": (
            make_report,
            lambda folder: [(v.clusters, v.per_anchor["R@5"].tolist()) for v in read_values(folder)],
        ),
    }
    for kind, (make, _) in makers.items():
        make(root / kind)
    return {kind: (root / kind, read, read(root / kind)) for kind, (_, read) in makers.items()}


def flip(path, others, random):
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)


def cut(path, others, random):
    os.truncate(path, random.randrange(path.stat().st_size))


def lose(path, others, random):
    path.unlink()


def swap(path, others, random):
    other = random.choice(others)
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)


HARMS = (flip, flip, cut, lose, swap)


def snapshot(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def harm_copy(folder, copy, random):
    """A copy of a folder to which something has happened that its times do not show; what, or nothing if nothing did."""
    shutil.copytree(folder, copy)
    paths = sorted(p for p in copy.rglob("*") if p.is_file() and p.stat().st_size)
    path = random.choice(paths)
    times, harm = (
        (path.stat().st_atime_ns, path.stat().st_mtime_ns),
        random.choice(HARMS if len(paths) > 1 else HARMS[:4]),
    )
    harm(path, paths, random)
    if path.exists():
        os.utime(path, ns=times)
    return "" if snapshot(copy) == snapshot(folder) else f"{harm.__name__} of {path.relative_to(copy)}"


def test_two_hundred_damages_to_folders_of_every_kind_are_noticed_or_change_nothing(kinds, tmp_path):
    random, noticed, without = Random(7), Counter(), []
    for trial in range(TRIALS):
        kind = sorted(kinds)[trial % len(kinds)]
        folder, read, expected = kinds[kind]
        copy = tmp_path / "copy" / kind
        what = harm_copy(folder, copy, random)
        try:
            assert read(copy) == expected, f"{kind}: {what} changed what is read, and nobody said so"
            without.append(f"{kind}: {what}")
        except IdiographError as error:
            assert "\n" not in str(error)
            assert str(copy) in str(error)
            assert what, f"{kind}: {error}"
            noticed[kind] += 1
        shutil.rmtree(copy)
    assert noticed.keys() == kinds.keys()
    assert sum(noticed.values()) + len(without) == TRIALS
    assert all(has_no_effect(each) for each in without), without


def has_no_effect(what):
    """Bytes that no answer depends on: locks, notes that are learned again, the time in a manifest, a manifest that is gone
    from a folder which is read without one, the fields of a zip file that its checksums do not cover."""
    kind, _, rest = what.partition(": ")
    return not rest or kind == "report" or rest.endswith(MANIFEST) or " of ." in rest


def test_a_file_that_comes_in_addition_is_noticed(kinds, tmp_path):
    for kind in ("records", "pdf", "tei", "corpus", "triplets", "index", "model"):
        folder, read, _ = kinds[kind]
        copy = tmp_path / kind
        shutil.copytree(folder, copy)
        (copy / "extra.jsonl").write_text("{}\n")
        with pytest.raises(IdiographError, match=r"extra.jsonl does not belong to it"):
            read(copy)


def test_an_index_that_was_changed_is_sealed_again(kinds):
    folder, _, _ = kinds["index"]
    listed = json.loads((folder / MANIFEST).read_text())["files"]
    assert {name for name in listed if name.startswith("spans/")} == {
        path.relative_to(folder).as_posix() for path in (folder / "spans").iterdir()
    }


def copy_backbone(backbones, tmp_path):
    return shutil.copytree(backbones["bert"], tmp_path / "model")


def rewrite(change):
    """Change the tensors of a model that no manifest guards."""

    def harm(folder):
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})

    return harm


def lose_layer(tensors):
    for name in [name for name in tensors if "layer.1." in name]:
        del tensors[name]


def spoil(tensors):
    name = next(name for name in tensors if name.endswith("query.weight"))
    tensors[name] = np.full_like(tensors[name], np.nan)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (rewrite(lose_layer), "have no layer 1 of 2; get the model again"),
        (rewrite(spoil), "query.weight holds values that are no numbers"),
        (lambda folder: os.truncate(folder / "model.safetensors", 20_000), "cannot be read: .*; get the model again"),
        (lambda folder: os.truncate(folder / "model.safetensors", 4), "cannot be read: .*; get the model again"),
        (lambda folder: os.truncate(folder / "tokenizer.json", 500), "cannot be opened: "),
        (lambda folder: os.truncate(folder / "config.json", 50), "cannot be opened: "),
        (lambda folder: (folder / "config.json").write_text('{"model_type": 5}'), "cannot be opened: "),
    ],
)
def test_a_model_of_anybody_that_is_damaged_is_one_line(backbones, tmp_path, harm, said):
    folder = copy_backbone(backbones, tmp_path)
    harm(folder)
    with pytest.raises(ModelError, match=said) as caught:
        load(folder)
    assert "\n" not in str(caught.value)


def test_the_shipped_model_is_as_it_was_sealed_though_python_has_compiled_its_code(tmp_path):
    assert verify_folder(default_folder())[1] == []
    (tmp_path / "__pycache__").mkdir()
    seal(tmp_path, Manifest("model"))
    (tmp_path / "__pycache__" / "layers.pyc").touch()
    assert verify_folder(tmp_path)[1] == []
