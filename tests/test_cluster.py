"""A Ray cluster of two nodes on this machine, one of which may die: every stage ends in the bytes of one process."""

import os
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hashed import hashed_style
from pdfs import article

from idiograph.corpus.corpus import build_corpus
from idiograph.corpus.readers import read_documents
from idiograph.hal.download import download
from idiograph.hal.harvest import harvest
from idiograph.index.build import EmbeddingWorkers
from idiograph.index.index import Index
from idiograph.index.search import open_parts
from idiograph.pdf.extract import extract
from idiograph.recipe import DownloadRecipe, ExtractRecipe, HarvestRecipe
from idiograph.runner import Workers
from tests.standin.archive import make_archive
from tests.standin.hal import HalStandIn

pytestmark = pytest.mark.slow
WORLD = "synth:documents=1500,seed=5"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """The head; tests add the second node, and may kill it."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'idiograph[ray]'")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)  # the same code is on every node
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        yield made
        made.shutdown()


@pytest.fixture
def second(cluster: Any) -> Iterator[Any]:
    node = cluster.add_node(num_cpus=1)
    yield node
    if node in cluster.list_all_nodes():
        cluster.remove_node(node)


@pytest.fixture
def pdfs(tmp_path: Path) -> Path:
    folder = tmp_path / "pdf"
    folder.mkdir()
    for number in range(40):
        (folder / f"hal-{number:02}.pdf").write_bytes(article(number, pages=1 + number % 3))
    (folder / "cut.pdf").write_bytes(article()[:900])
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every byte that a reader sees, but for the manifest, which has the time and the runner in it."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {n: p.read_bytes() for n, p in files.items() if n != "manifest.json" and "/." not in f"/{n}"}


class Killer:
    """Kills a node, once, when so much has been done."""

    def __init__(self, cluster: Any, node: Any, after: int) -> None:
        self.cluster, self.node, self.after = cluster, node, after

    def __call__(self, done: int, *_: object) -> None:
        if done >= self.after and self.node:
            self.cluster.remove_node(self.node, allow_graceful=False)
            self.node = None

    def watch(self, items: Iterable[Any]) -> Iterator[Any]:
        for number, item in enumerate(items):
            self(number)
            yield item


def test_extraction_on_two_nodes_is_that_of_one_process(cluster: Any, second: Any, pdfs: Path, tmp_path: Path) -> None:
    extract(pdfs, tmp_path / "here", ExtractRecipe(runner="inline"))
    extract(pdfs, tmp_path / "there", ExtractRecipe(runner="ray", address=str(cluster.address)))
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_extraction_survives_the_death_of_a_node(cluster: Any, second: Any, pdfs: Path, tmp_path: Path) -> None:
    extract(pdfs, tmp_path / "here", ExtractRecipe(runner="inline"))
    killer = Killer(cluster, second, after=5)
    extract(pdfs, tmp_path / "there", ExtractRecipe(runner="ray", address=str(cluster.address)), progress=killer)
    assert killer.node is None
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_a_corpus_from_two_nodes_is_that_of_one_process(cluster: Any, second: Any, tmp_path: Path) -> None:
    build_corpus(read_documents(WORLD), tmp_path / "here")
    build_corpus(read_documents(WORLD), tmp_path / "there", workers=Workers("ray", None, str(cluster.address)))
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert not list((tmp_path / "there").glob(".parts-*"))


def test_a_corpus_survives_the_death_of_a_node(cluster: Any, second: Any, tmp_path: Path) -> None:
    build_corpus(read_documents(WORLD), tmp_path / "here")
    killer = Killer(cluster, second, after=700)
    build_corpus(
        killer.watch(read_documents(WORLD)), tmp_path / "there", workers=Workers("ray", None, str(cluster.address))
    )
    assert killer.node is None
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


@pytest.mark.parametrize("dies", [False, True])
def test_an_index_from_two_nodes_is_that_of_one_process(cluster: Any, second: Any, tmp_path: Path, dies: bool) -> None:
    killer = Killer(cluster, second, after=1 if dies else 10**9)
    documents, style = list(read_documents("synth:documents=400,seed=5")), hashed_style()
    workers = EmbeddingWorkers(Workers("ray", None, str(cluster.address)), hashed_style)
    here = Index.build(documents, tmp_path / "here", style)
    there = Index.build(documents, tmp_path / "there", style, workers=workers, progress=killer)
    every = np.arange(len(here))
    assert (killer.node is None) == dies
    assert there.passages == here.passages
    assert (there._read(every).codes == here._read(every).codes).all()
    assert not list((tmp_path / "there").glob(".spool-*"))


def test_a_search_in_parts_outlives_a_node(cluster: Any, second: Any, tmp_path: Path) -> None:
    documents, style = list(read_documents("synth:documents=400,seed=5")), hashed_style()
    whole = Index.build(documents, tmp_path / "index", style)
    asked = [document.text[:500] for document in documents[:3]]
    expected = [[hit.passage for hit in hits] for hits in whole.search_many(asked, 5, depth=50)]
    team = Workers("ray", None, str(cluster.address))
    with open_parts(whole.where, style, 4, team) as parts:
        for kill in (False, True):
            if kill:
                cluster.remove_node(second, allow_graceful=False)
            found = parts.search_many(asked, 5, depth=50)
            assert [[hit.passage for hit in hits] for hits in found] == expected


@pytest.mark.parametrize("dies", [False, True])
def test_downloads_by_two_nodes_are_those_of_one_process(cluster: Any, second: Any, tmp_path: Path, dies: bool) -> None:
    killer = Killer(cluster, second, after=10 if dies else 10**9)
    recipe = DownloadRecipe(interval=0.02, backoff=0.1, licence="any", allow_private=True)
    with HalStandIn(make_archive(60)) as hal:
        harvest(tmp_path / "records", HarvestRecipe(server=hal.url, interval=0, licence="any"))
        download(tmp_path / "records", tmp_path / "here", recipe)
        hal.seen.clear()
        there = recipe.model_copy(update={"runner": "ray", "address": str(cluster.address), "workers": 2})
        download(tmp_path / "records", tmp_path / "there", there, progress=killer)
        times = sorted(seen.time for seen in hal.seen)
    assert (killer.node is None) == dies
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert min(later - earlier for earlier, later in pairwise(times)) > 0.01 or dies
