"""Under which id a paper is in a corpus: what its file says of itself, or else the name of the file."""

import csv
from pathlib import Path

import pytest

from idiograph.corpus.build import bare_name, paper_sources, read_paper_list
from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.errors import InputError
from idiograph.recipe import CorpusRecipe

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures"
PROSE = (
    "The tide came in over the flats at {} while nobody was looking, and the boats stood on their own shadows again."
)


def tei(text: str, idno: str = "") -> str:
    author = "<author><persName><forename>Ann</forename><surname>Ong</surname></persName></author>"
    source = f"<sourceDesc><biblStruct><analytic>{author}</analytic>{idno}</biblStruct></sourceDesc>"
    title = f"<titleStmt><title>{text[:40]}</title></titleStmt>"
    header = f"<teiHeader><fileDesc>{title}{source}</fileDesc></teiHeader>"
    return f'<TEI xmlns="http://www.tei-c.org/ns/1.0">{header}<text><body><div><p>{text}</p></div></body></text></TEI>'


def ids_of(folder: Path, files: dict[str, str]) -> list[str]:
    for name, data in files.items():
        (folder / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "in" / name).write_text(data, encoding="utf-8")
    build_corpus(paper_sources([str(folder / "in")]), folder / "corpus", CorpusRecipe(duplicates="keep"))
    return sorted(document.id for document in Corpus(folder / "corpus"))


NAMES = {
    "1706.03762v5.tei.xml": "1706.03762v5",
    "2020.acl-main.207.tei.xml": "2020.acl-main.207",
    "2020.acl-main.208.grobid.tei.xml": "2020.acl-main.208",
    "10.1371_journal.pone.0103368.tei.xml": "10.1371_journal.pone.0103368",
    "10.1371_journal.pone.0103369.tei.xml": "10.1371_journal.pone.0103369",
    "hal-01956501.grobid.tei.xml": "hal-01956501",
}


@pytest.mark.parametrize("name", NAMES)
def test_full_stops_in_a_file_name_belong_to_it(name):
    assert bare_name(name) == NAMES[name]


def test_files_whose_names_agree_up_to_the_first_full_stop_are_all_kept(tmp_path):
    texts = {name: tei(PROSE.format(name[:-8].replace(".", " "))) for name in NAMES}
    assert ids_of(tmp_path, texts) == sorted(NAMES.values())


def test_a_paper_goes_by_the_doi_in_its_file(tmp_path):
    doi = '<idno type="DOI">https://doi.org/10.1000/bees</idno>'
    assert ids_of(tmp_path, {"a.tei.xml": tei(PROSE.format("noon"), doi)}) == ["10.1000/bees"]


def test_a_paper_goes_by_its_number_in_arxiv_without_its_class(tmp_path):
    number = '<idno type="arXiv">arXiv:1706.03762v5[cs.CL]</idno><idno type="MD5">0AF3</idno>'
    assert ids_of(tmp_path, {"a.tei.xml": tei(PROSE.format("noon"), number)}) == ["arXiv:1706.03762v5"]


def test_papers_that_print_one_doi_of_their_proceedings_are_all_kept(tmp_path):
    doi = '<idno type="DOI">10.1000/proceedings</idno>'
    texts = ("The council met in the autumn to speak of bridges and of the money that nobody had left for them.",
             "She never wrote letters in winter, because ink froze and the postman had a fear of her geese.")  # fmt: skip
    files = {f"{number}.tei.xml": tei(text, doi) for number, text in zip(("P1.1", "P1.2"), texts, strict=True)}
    assert ids_of(tmp_path, files) == ["10.1000/proceedings", "P1.2"]


def test_two_files_of_one_name_in_two_folders_are_two_papers(tmp_path):
    files = {"2019/paper.tei.xml": tei(PROSE.format("noon")), "2020/paper.tei.xml": tei("We never saw a whale. " * 9)}
    assert ids_of(tmp_path, files) == ["2019/paper", "2020/paper"]


def test_a_file_that_ends_in_xml_alone_is_read_by_what_it_holds(tmp_path):
    assert ids_of(tmp_path, {"a.1.xml": tei(PROSE.format("noon"))}) == ["a.1"]


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="the real files are in ../shared/fixtures")
def test_every_real_file_becomes_a_document(tmp_path):
    folders = [FIXTURES / "jats_pdf", FIXTURES / "grobid"]
    build_corpus(paper_sources(map(str, folders)), tmp_path / "corpus")
    found = {document.id for document in Corpus(tmp_path / "corpus")}
    assert len(found) == 11
    assert {"10.21105/jose.00090", "10.18632/oncotarget.24369", "2020.acl-main.207"} <= found


# Papers that do not name their authors


def nameless(text: str, suggestion: str = "") -> str:
    note = f'<notesStmt><note type="pdf-author">{suggestion}</note></notesStmt>' if suggestion else ""
    header = f"<teiHeader><fileDesc><titleStmt><title>{text[:20]}</title></titleStmt>{note}</fileDesc></teiHeader>"
    return f'<TEI xmlns="http://www.tei-c.org/ns/1.0">{header}<text><body><div><p>{text}</p></div></body></text></TEI>'


def papers_in(folder: Path) -> Path:
    (folder / "tei").mkdir()
    (folder / "tei" / "a.b.grobid.tei.xml").write_text(
        nameless(PROSE.format("noon"), "Administrator"), encoding="utf-8"
    )
    (folder / "tei" / "c.grobid.tei.xml").write_text(
        tei("=sum of all tides. " + PROSE.format("dawn")), encoding="utf-8"
    )
    return folder / "tei"


def test_papers_without_authors_are_refused_with_a_hint_that_fits(idiograph, tmp_path):
    (tmp_path / "tei").mkdir()
    (tmp_path / "tei" / "a.tei.xml").write_text(nameless(PROSE.format("noon")), encoding="utf-8")
    status, _, err = idiograph("corpus", tmp_path / "tei", "-o", tmp_path / "out")
    assert status == 1
    assert "1 documents do not say who wrote them" in err
    assert "--authors authors.csv makes a list to fill in" in err


def test_a_list_that_is_not_there_is_written_with_what_the_files_suggest(idiograph, tmp_path):
    folder, path = papers_in(tmp_path), tmp_path / "authors.csv"
    assert idiograph("corpus", folder, "-o", tmp_path / "out", "--authors", path)[0] == 0
    rows = list(csv.DictReader(path.open(encoding="utf-8-sig", newline="")))
    assert [(row["id"], row["authors"], row["suggested"]) for row in rows] == [
        ("a.b", "", "Administrator"), ("c", "Ann Ong", ""),
    ]  # fmt: skip
    assert rows[1]["title"].startswith("'=sum")
    assert not (tmp_path / "out").exists()


def test_a_list_that_is_filled_in_says_who_wrote_the_papers(idiograph, tmp_path):
    folder, path = papers_in(tmp_path), tmp_path / "authors.csv"
    path.write_text("id,title,authors,year\na.b,On tides,Ada Roe; Ben Doe,2019\nc,'=sum,,\n", encoding="utf-8")
    status, _, err = idiograph("corpus", folder, "-o", tmp_path / "out", "--authors", path, "--keep-duplicates")
    assert status == 0, err
    found = {d.id: ([a.name for a in d.authors], d.title, d.year) for d in Corpus(tmp_path / "out")}
    assert found == {"a.b": (["Ada Roe", "Ben Doe"], "On tides", 2019), "c": (["Ann Ong"], "=sum", None)}


def test_a_list_without_its_columns_is_refused(tmp_path):
    (tmp_path / "authors.csv").write_text("name,who\nx,y\n", encoding="utf-8")
    with pytest.raises(InputError, match="has the columns name, who; it needs id and authors"):
        read_paper_list(tmp_path / "authors.csv")
