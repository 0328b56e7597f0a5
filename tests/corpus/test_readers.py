"""What people have on disk becomes documents; what cannot be read is named, with the reason."""

import gzip
import json
import os
import random
import re
import resource

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idiograph.corpus.corpus import SCHEMA, build_corpus, document_row
from idiograph.corpus.formats import MAX_BYTES, decode
from idiograph.corpus.readers import UnreadableSource, parse_row, read_documents
from idiograph.errors import InputError
from idiograph.recipe import CorpusRecipe
from idiograph.types import Author, Document

ROW = {
    "id": "d1",
    "text": "A text.",
    "authors": [{"name": "Ann Ong", "id": "a1"}, {"name": "Bo Li"}],
    "domain": ["info", "math"],
    "year": 2020,
    "lang": "en",
    "license": "CC-BY",
}


def write_text(folder, name, text="Some words, by hand."):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_author_is_the_part_before_the_underscore(tmp_path):
    write_text(tmp_path, "Eliot_Middle_march.txt")
    (found,) = read_documents(str(tmp_path))
    assert (found.authors, found.title) == ((Author("Eliot"),), "Middle march")


def test_the_author_is_the_folder(tmp_path):
    write_text(tmp_path, "eliot/middlemarch.txt")
    (found,) = read_documents(str(tmp_path))
    assert (found.authors, found.title, found.id) == ((Author("eliot"),), "middlemarch", "eliot/middlemarch")


def test_text_is_nfc_with_plain_newlines_and_no_mark_at_its_head():
    assert decode("\ufeffe\u0301te\u0301\r\nb\rc ".encode()) == "été\nb\nc"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "empty"),
        (b" \n ", "empty"),
        (b"\xff\xfe\x00", "binary"),
        (b"caf\xe9", "not UTF-8 .*iconv"),
        (b"x" * (MAX_BYTES + 1), "MB in one text"),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_the_reason(raw, reason):
    with pytest.raises(InputError, match=reason):
        decode(raw)


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path):
    write_text(tmp_path, "A_good.txt")
    write_text(tmp_path, "noauthor.txt")
    (tmp_path / "B_bad.txt").write_bytes(b"caf\xe9")
    (tmp_path / "C_empty.txt").touch()
    found = list(read_documents(str(tmp_path)))
    reasons = {f.where.rsplit("/", 1)[-1]: f.reason for f in found if isinstance(f, UnreadableSource)}
    assert [d.id for d in found if isinstance(d, Document)] == ["A_good"]
    assert set(reasons) == {"noauthor.txt", "B_bad.txt", "C_empty.txt"}
    assert "no author" in reasons["noauthor.txt"]
    assert reasons["C_empty.txt"] == "empty"


def check(found):
    assert found.id == "d1"
    assert found.authors == (Author("Ann Ong", "a1"), Author("Bo Li"))
    assert (found.domains, found.year, found.licence) == (("info", "math"), 2020, "CC-BY")


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst"])
def test_json_lines_are_read_packed_or_not(tmp_path, suffix):
    raw = (json.dumps(ROW) + "\n").encode()
    path = tmp_path / f"x.{suffix}"
    if suffix.endswith("zst"):
        with pa.output_stream(str(path), compression="zstd") as stream:
            stream.write(raw)
    else:
        path.write_bytes(gzip.compress(raw) if suffix.endswith("gz") else raw)
    (found,) = read_documents(str(path))
    check(found)


def test_a_broken_line_is_named_by_its_number(tmp_path):
    (tmp_path / "x.jsonl").write_text(f'{{"no\n{json.dumps(ROW)}\n[1]\n{{"id": "x"}}\n')
    found = list(read_documents(str(tmp_path / "x.jsonl")))
    failures = {f.where.rsplit(":", 1)[-1]: f.reason for f in found if isinstance(f, UnreadableSource)}
    assert set(failures) == {"1", "3", "4"}
    assert "no field 'text'" in failures["4"]
    assert sum(isinstance(d, Document) for d in found) == 1


def test_parquet_is_read(tmp_path):
    pq.write_table(pa.Table.from_pylist([ROW]), tmp_path / "x.parquet")
    (found,) = read_documents(str(tmp_path / "x.parquet"))
    check(found)


def test_a_broken_parquet_file_is_named(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1 not really")
    (found,) = read_documents(str(tmp_path / "x.parquet"))
    assert isinstance(found, UnreadableSource)
    assert "not Parquet" in found.reason


def test_a_hugging_face_dataset_saved_to_disk_is_read(tmp_path):
    from datasets import Dataset

    Dataset.from_list([ROW]).save_to_disk(str(tmp_path / "set"))
    (found,) = read_documents(str(tmp_path / "set"))
    check(found)


def test_a_hub_folder_of_parquet_shards_is_read(tmp_path):
    (tmp_path / "en").mkdir()
    pq.write_table(pa.Table.from_pylist([ROW]), tmp_path / "en" / "train-00000-of-00001.parquet")
    (tmp_path / "README.md").write_text("---\nconfigs: []\n---\n")
    (found,) = read_documents(str(tmp_path))
    check(found)


def test_halvest_records_are_read_with_unidentified_authors_as_such(shared):
    path = shared / "fixtures/hal/hal_metadata_records.json"
    records = json.loads(path.read_text())
    records = list(records.values()) if isinstance(records, dict) else records
    from idiograph.corpus.readers import document_from_row

    found = [document_from_row({**record, "text": "x y"}, "here") for record in records]
    assert all(author.id != "0" for d in found for author in d.authors)
    assert any(author.id for d in found for author in d.authors)


def test_a_missing_path_and_an_unknown_kind_are_named(tmp_path):
    with pytest.raises(InputError, match="no file or folder"):
        list(read_documents(str(tmp_path / "none")))
    (tmp_path / "x.docx").touch()
    with pytest.raises(InputError, match="cannot tell what this is"):
        list(read_documents(str(tmp_path / "x.docx")))


def test_a_giant_line_is_never_held_whole(tmp_path):
    with (tmp_path / "giant.jsonl").open("wb") as file:
        file.write(b'{"text": "')
        file.truncate(1 << 28)
        file.seek(1 << 28)
        file.write(b'\n{"id": "a", "text": "Still here.", "authors": ["A"]}\n')
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    giant, good = read_documents(str(tmp_path / "giant.jsonl"))
    assert "at most 20 MB are read" in giant.reason
    assert good.text == "Still here."
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000  # kilobytes


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst", ".parquet", ".arrow"])
def test_a_file_that_breaks_off_is_read_as_far_as_it_goes(tmp_path, suffix):
    found = [{"id": f"d{n}", "text": f"{n} {random.Random(n).random()} words", "authors": ["A"]} for n in range(5000)]
    path = tmp_path / f"texts{suffix}"
    whole = "".join(json.dumps(row) + "\n" for row in found).encode()
    table = pa.Table.from_pylist(found)
    if suffix == ".parquet":
        pq.write_table(table, path, row_group_size=500)
        data = bytearray(path.read_bytes())
        data[len(data) // 2 : len(data) // 2 + 2000] = b"\xff" * 2000
        path.write_bytes(data)
    else:
        if suffix == ".arrow":
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table, max_chunksize=500)
        elif suffix == ".jsonl.gz":
            path.write_bytes(gzip.compress(whole))
        else:
            with pa.output_stream(str(path), compression="zstd") as sink:
                sink.write(whole)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    *_, last = read_documents(str(path))
    assert isinstance(last, UnreadableSource)
    assert last.reason.startswith("damaged after ")


def only(line):
    """What one line of JSON becomes."""
    (found,) = parse_row(line if isinstance(line, bytes) else json.dumps(line).encode(), "x.jsonl:1")
    return found


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"authors": 5}, "'authors' is 5; give a name, or a list of names"),
        ({"authors": [5]}, "an author is 5; give a name, or an object"),
        ({"authors": [{"name": ["Ann"]}]}, "'name' is \\['Ann'\\]; give a text"),
        ({"authors": ["Ann \ud800"]}, "a name is not UTF-8, or has half a character"),
        ({"year": 3 * 10**9}, "'year' is 3000000000; give one up to 9999"),
        ({"domain": 7}, "'domains' is 7; give a text or a list of texts"),
        ({"title": "half \udc80"}, "'title' is not UTF-8"),
        ({"text": "half \udc80"}, "not UTF-8"),
        ({"id": {"$oid": "1"}}, "'id' is {'\\$oid': '1'}; give a text"),
    ],
)
def test_a_row_with_a_field_of_another_kind_is_left_out_with_the_reason(changes, reason):
    found = only({**ROW, **changes})
    assert isinstance(found, UnreadableSource)
    assert re.search(reason, found.reason)


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"a":' * 100_000, b'{"text": "x", "id": ' + b"1" * 5000 + b"}"])
def test_a_line_that_breaks_the_parser_is_left_out_with_the_reason(line):
    found = only(line)
    assert isinstance(found, UnreadableSource)
    assert found.reason


@pytest.mark.parametrize(
    ("given", "year"), [(1999, 1999), ("1999", 1999), (1999.0, 1999), (1, None), ("c. 1800", None)]
)
def test_a_year_is_a_number_where_it_is_one(given, year):
    assert only({**ROW, "year": given}).year == year


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys([*ROW, "title", "url", "container", "source"], VALUES)))
def test_any_row_is_a_document_that_a_corpus_can_hold_or_a_reason(changes):
    found = only(json.dumps({**ROW, **changes}).encode())
    if isinstance(found, Document):
        pa.Table.from_pylist([document_row(found)], SCHEMA)
    else:
        assert found.reason


def test_a_file_whose_name_is_not_utf8_is_named(tmp_path):
    write_text(tmp_path, "Ann_good.txt")
    (tmp_path / os.fsdecode(b"Ann_caf\xe9.txt")).write_text("Some words, by hand.")
    good, bad = sorted(read_documents(str(tmp_path)), key=lambda each: isinstance(each, UnreadableSource))
    assert good.title == "good"
    assert "its name is not UTF-8" in bad.reason


@pytest.mark.parametrize("name", ["Ann_pipe.txt", "rows.jsonl", "rows.parquet", "rows.arrow"])
@pytest.mark.parametrize("what", ["pipe", "device", "nothing"])
def test_what_may_never_end_is_not_read(tmp_path, name, what):
    path = tmp_path / name
    if what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if what == "device" else tmp_path / "gone")
    (found,) = read_documents(str(tmp_path))
    assert "not a regular file" in found.reason or "leads nowhere" in found.reason


def test_a_corpus_of_hostile_rows_is_built_and_says_what_it_left_out(tmp_path):
    rows = [{**ROW, "id": "good", "text": "The tide was late, and we measured it twice by hand. " * 30}]
    rows += [{**ROW, "authors": 5}, {**ROW, "year": 3 * 10**9}, {**ROW, "id": "=HYPERLINK(1)", "authors": []}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n" + "[" * 100_000)
    built = build_corpus(read_documents(str(tmp_path / "rows.jsonl")), tmp_path / "c", CorpusRecipe(filters=False))
    assert built.documents == 1
    left_out = (tmp_path / "c" / "left_out.csv").read_text().splitlines()
    assert len(left_out) == 5
    assert "'=HYPERLINK(1),no author," in left_out
