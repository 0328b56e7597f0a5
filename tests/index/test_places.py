"""An index away from home: under s3://, embedded and searched by other processes and other machines."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hashed import hashed_style

from idiograph.errors import ArtifactError, InputError, ModelError, ServiceError
from idiograph.index.build import EmbeddingWorkers
from idiograph.index.filter import Filter
from idiograph.index.index import Index
from idiograph.index.search import open_part, open_parts, search_parts
from idiograph.runner import Workers
from idiograph.synth.anthology import anthology

ESSAYS = list(anthology())
ASKED = [d.text[:500] for d in ESSAYS[50:54]]


@pytest.fixture(scope="module")
def store():
    """Options of a local S3 server with a bucket `tables`."""
    server = pytest.importorskip("moto.server", reason="moto is not installed: pip install 'moto[server]'")
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed: pip install boto3")
    running = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    options = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region": "us-east-1"}
    url = f"http://{host}:{port}"
    named = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=url, **named).create_bucket(Bucket="tables")
    yield {**options, "endpoint": url, "allow_http": "true"}
    running.stop()


@pytest.fixture(scope="module")
def style():
    return hashed_style()


@pytest.fixture(scope="module")
def local(tmp_path_factory, style):
    return Index.build(ESSAYS[:30], tmp_path_factory.mktemp("local") / "index", style)


def test_an_index_on_s3_is_an_index(store, style, local):
    index = Index.build(ESSAYS[:30], "s3://tables/one", style, storage=store)
    assert index.passages == local.passages
    assert index.search_many(ASKED, 5) == local.search_many(ASKED, 5)
    index.add(ESSAYS[30:32])
    index.delete([ESSAYS[0].id])
    again = Index.open("s3://tables/one", style, storage=store)
    assert {d.id for d in again.documents} == {d.id for d in ESSAYS[1:32]}
    again.compact()
    assert {d.id for d in again.documents} == {d.id for d in ESSAYS[1:32]}


def test_two_machines_may_add_to_an_index_on_s3_at_once(store, style):
    one = Index.build(ESSAYS[:4], "s3://tables/two", style, storage=store)
    other = Index.open("s3://tables/two", style, storage=store)
    with ThreadPoolExecutor(2) as threads:
        done = [threads.submit(one.add, ESSAYS[4:6]), threads.submit(other.add, ESSAYS[6:8])]
        assert all(d.result() for d in done)
    one.refresh()
    assert {d.id for d in one.documents} == {d.id for d in ESSAYS[:8]}


def test_notes_lie_beside_an_index_on_s3(store, style):
    index = Index.build(ESSAYS[:2], "s3://tables/notes", style, storage=store)
    assert index.read_note("lesson") is None
    index.write_note("lesson", {"a": 1})
    index.write_note("lesson", {"a": 2})
    assert Index.open("s3://tables/notes", style, storage=store).read_note("lesson") == {"a": 2}


def test_an_index_on_s3_is_not_overwritten_unasked(store, style):
    Index.build(ESSAYS[:2], "s3://tables/three", style, storage=store)
    with pytest.raises(ArtifactError, match="'s3://tables/three' is there already"):
        Index.build(ESSAYS[:3], "s3://tables/three", style, storage=store)
    again = Index.build(ESSAYS[:3], "s3://tables/three", style, storage=store, overwrite=True)
    assert {d.id for d in again.documents} == {d.id for d in ESSAYS[:3]}


def test_a_place_on_s3_without_an_index_says_so(store, style):
    with pytest.raises(ArtifactError, match="there is no index at 's3://tables/nowhere'"):
        Index.open("s3://tables/nowhere", style, storage=store)


@pytest.mark.slow
def test_a_store_that_does_not_answer_is_told_in_one_line(style):
    nobody = {"endpoint": "http://127.0.0.1:9", "allow_http": "true", "region": "us-east-1"}
    nobody |= {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    with pytest.raises(ServiceError, match=r"'s3://tables/one' cannot be reached") as caught:
        Index.open("s3://tables/one", style, storage=nobody)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("parts", [2, 5])
def test_a_search_in_parts_is_the_search(local, exact, parts):
    only = Filter(exclude_documents=(ESSAYS[3].id,))
    settings = {"only": only, "exact": exact, "depth": 40}
    found = search_parts(local.where, local.style, ASKED, 8, parts=parts, **settings)
    whole = local.search_many(ASKED, 8, **settings)
    assert [[h.passage for h in hits] for hits in found] == [[h.passage for h in hits] for hits in whole]
    assert np.allclose([h.score for hits in found for h in hits], [h.score for hits in whole for h in hits], atol=1e-6)


def test_parts_agree_on_who_is_scored_with_all_patches(local, monkeypatch):
    monkeypatch.setattr("idiograph.index.candidates.MIN_FINALISTS", 0)
    monkeypatch.setattr(
        "idiograph.index.candidates.FINALISTS_PER_ANSWER", 1
    )  # as many as are wanted: one more would show
    found = search_parts(local.where, local.style, ASKED, 8, parts=3, depth=40)
    whole = local.search_many(ASKED, 8, depth=40)
    assert [[h.passage for h in hits] for hits in found] == [[h.passage for h in hits] for hits in whole]


def test_parts_of_an_index_are_disjoint_and_together_everything(local):
    parts = [Index.open(local.where, local.style, part=f"{at}/4") for at in range(1, 5)]
    assert sorted(p.id for part in parts for p in part.passages) == [p.id for p in local.passages]
    assert all(0 < len(part) < len(local) / 2 for part in parts)
    for part in parts:
        part.load()
        assert len(part._in_memory[0]) == len(part)
        mine = [local.passages.index(p) for p in part.passages]
        assert np.allclose(part.scores(ASKED), local.scores(ASKED)[:, mine], atol=1e-6)


def test_a_part_sees_what_was_replaced_and_removed(tmp_path, style):
    index = Index.build(ESSAYS[:8], tmp_path / "index", style)
    index.add(ESSAYS[2:4])
    index.delete([ESSAYS[0].id])
    parts = [Index.open(index.where, style, part=f"{at}/3") for at in range(1, 4)]
    assert sorted(p.id for part in parts for p in part.passages) == [p.id for p in index.passages]
    found = search_parts(index.where, style, ASKED, 5, parts=3, depth=10)
    assert [[h.passage for h in hits] for hits in found] == [
        [h.passage for h in hits] for hits in index.search_many(ASKED, 5, depth=10)
    ]


def test_passages_that_are_as_near_as_each_other_are_chosen_as_in_one_process(tmp_path, style):
    twins = [replace(ESSAYS[0], id=f"twin-{at:02}") for at in range(12)]
    index = Index.build([*twins, *ESSAYS[1:6]], tmp_path / "index", style)
    found = search_parts(index.where, style, [ESSAYS[0].text[:500]], 3, parts=4, depth=5)
    whole = index.search_many([ESSAYS[0].text[:500]], 3, depth=5)
    assert [h.passage.id for h in found[0]] == [h.passage.id for h in whole[0]]


def test_a_search_in_parts_refuses_another_model_and_an_empty_index(tmp_path, style):
    index = Index.build(ESSAYS[:2], tmp_path / "index", style)
    with pytest.raises(ModelError, match="was made with model"):
        search_parts(index.where, style.at("whole"), ASKED, parts=2)
    index.delete([d.id for d in ESSAYS[:2]])
    with pytest.raises(InputError, match="is empty; add documents"):
        search_parts(index.where, style, ASKED, parts=2)


def test_an_index_that_changes_during_a_search_in_parts_is_noticed(tmp_path, style):
    index = Index.build(ESSAYS[:4], tmp_path / "index", style)
    with open_parts(index.where, style, 2) as parts:
        index.add(ESSAYS[4:5])
        open_part.cache_clear()  # as if the workers had died
        with pytest.raises(InputError, match="changed while it was searched; search again"):
            parts.search_many(ASKED)


def test_workers_must_know_how_to_open_the_model(local, tmp_path, style):
    with pytest.raises(InputError, match="needs to know how a worker opens the model"):
        Index.build(ESSAYS[:2], tmp_path / "index", style, workers=EmbeddingWorkers(Workers("processes")))


def same_everywhere(local: Index, folder, workers: EmbeddingWorkers) -> None:
    """Embedded and searched by several workers, an index is the one that this process makes."""
    built = Index.build(ESSAYS[:30], folder, local.style, workers=workers)
    every = np.arange(len(local))
    assert built.passages == local.passages
    assert (built._read(every).codes == local._read(every).codes).all()
    found = search_parts(built.where, local.style, ASKED, 8, depth=40, parts=3, workers=workers.pool)
    whole = local.search_many(ASKED, 8, depth=40)
    assert [[h.passage for h in hits] for hits in found] == [[h.passage for h in hits] for hits in whole]


@pytest.mark.slow
def test_processes_embed_and_search_as_one(local, tmp_path):
    same_everywhere(local, tmp_path / "index", EmbeddingWorkers(Workers("processes", 2), partial(hashed_style)))


@pytest.mark.slow
def test_two_ray_nodes_embed_and_search_as_one(local, tmp_path, monkeypatch):
    monkeypatch.setenv(
        "PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep
    )  # the same code is on every node
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'idiograph[ray]'")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        same_everywhere(
            local, tmp_path / "index", EmbeddingWorkers(Workers("ray", 2, cluster.address), partial(hashed_style))
        )
    finally:
        cluster.shutdown()
