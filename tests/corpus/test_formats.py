"""A text is the same text in whatever format a person has it; a file that is not what it says is refused in one line."""

import zipfile

import pytest
from pdfs import SENTENCES, article

from idiograph import Corpus
from idiograph.corpus.formats import read_file, read_file_text, texts_given
from idiograph.errors import InputError

ONE, TWO = "The tide comes in twice a day, & nobody asked it to wait.", "A bridge is not safer because it is new."
BOTH = f"{ONE}\n\n{TWO}"
SAFE = ONE.replace("&", "&amp;")
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns"
TEI = "http://www.tei-c.org/ns/1.0"


def zipped(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, body in members.items():
            archive.writestr(name.replace("__", "/").replace("_DOT_", "."), body)
    return path


def word_document(path):
    first, rest = SAFE.split(" ", 1)
    body = (
        f"<w:p><w:r><w:t>{first} </w:t></w:r><w:r><w:t>{rest}</w:t></w:r></w:p><w:p/>"
        f"<w:p><w:r><w:t>{TWO}</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
    )
    return zipped(path, word__document_DOT_xml=f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>')


def open_document(path):
    note = "<text:note><text:note-body><text:p>a note</text:p></text:note-body></text:note>"
    first = SAFE.replace("comes in", "comes<text:s/><text:span>in</text:span>")
    body = f"<text:h>{first}</text:h><text:p>{TWO}{note}</text:p>"
    return zipped(
        path,
        content_DOT_xml=f'<office:document-content xmlns:office="{OFFICE}:office:1.0" xmlns:text="{OFFICE}:text:1.0">'
        f"<office:body><office:text>{body}</office:text></office:body></office:document-content>",
    )


def book(path):
    container = '<container><rootfiles><rootfile full-path="OEBPS/a.opf"/></rootfiles></container>'
    package = (
        '<package xmlns:dc="d"><metadata><dc:creator>Ann Ong</dc:creator><dc:title>Tides</dc:title></metadata><manifest>'
        '<item id="n" href="nav.xhtml" properties="nav"/><item id="b" href="two.xhtml"/><item id="a" href="one%20.xhtml"/>'
        '</manifest><spine><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/></spine></package>'
    )
    members = {"META-INF/container.xml": container, "OEBPS/a.opf": package, "OEBPS/nav.xhtml": "<p>Contents</p>"}
    members |= {"OEBPS/one .xhtml": f"<html><body><p>{SAFE}</p></body></html>", "OEBPS/two.xhtml": f"<p>{TWO}</p>"}
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def page(path):
    head = "<html><head><title>No text</title><style>p { }</style></head>"
    path.write_text(f"{head}<body><nav>menu</nav><p>{SAFE}<p>{TWO}<script>no()</script></body></html>", "utf-8")
    return path


def tei(path):
    author = "<author><persName><forename>Ann</forename><surname>Ong</surname></persName></author>"
    header = f"<fileDesc><sourceDesc><biblStruct><analytic>{author}</analytic></biblStruct></sourceDesc></fileDesc>"
    body = f"<text><body><div><p>{SAFE}</p><p>{TWO}</p><note>no</note></div></body></text>"
    path.write_text(f'<TEI xmlns="{TEI}"><teiHeader>{header}</teiHeader>{body}</TEI>', "utf-8")
    return path


MAKERS = {".docx": word_document, ".odt": open_document, ".epub": book, ".html": page, ".tei": tei, ".tei.xml": tei}


@pytest.mark.parametrize("suffix", MAKERS)
def test_a_text_is_the_same_in_every_format(tmp_path, suffix):
    assert read_file(MAKERS[suffix](tmp_path / f"x{suffix}")) == BOTH


def test_a_pdf_is_read_as_its_prose(tmp_path):
    (tmp_path / "x.pdf").write_bytes(article())
    text = read_file(tmp_path / "x.pdf")
    assert SENTENCES[0] in text


def test_a_folder_of_all_formats_is_a_library_by_the_names_of_its_files(tmp_path):
    for suffix, make in MAKERS.items():
        make(tmp_path / f"Ong_{suffix.strip('.').replace('.', '-')}{suffix}")
    (tmp_path / "Li").mkdir()
    (tmp_path / "Li" / "tides.txt").write_text(BOTH)
    (tmp_path / ".hidden.txt").write_text("no")
    (tmp_path / "picture.png").write_text("no")
    library = Corpus.read(tmp_path)
    assert library.authors == {"Ong": 6, "Li": 1}
    assert {document.text for document in library} == {BOTH}
    assert library.languages == {"en": 7}


def test_a_text_that_is_there_in_two_formats_counts_once(tmp_path):
    (tmp_path / "Ong_x.txt").write_text(TWO)
    word_document(tmp_path / "Ong_x.docx")
    assert [document.text for document in Corpus.read(tmp_path)] == [TWO]


def test_a_book_or_tei_without_an_author_in_its_name_says_who_wrote_it(tmp_path):
    book(tmp_path / "tides.epub")
    tei(tmp_path / "waves.xml")
    assert Corpus.read(tmp_path).authors == {"Ann Ong": 2}


def test_a_library_can_be_json_lines_a_corpus_folder_or_built_in(tmp_path, anthology_corpus):
    (tmp_path / "a.jsonl").write_text('{"id": "1", "text": "Une vague est une vague.", "authors": ["Ann Ong"]}\n')
    assert [document.lang for document in Corpus.read(tmp_path / "a.jsonl")] == ["fr"]
    assert len(Corpus.read(anthology_corpus.folder)) == len(anthology_corpus)
    assert isinstance(Corpus.read(anthology_corpus.folder), Corpus)
    assert len(Corpus.read("anthology").authors) == 12


def test_a_library_with_a_file_that_cannot_be_read_names_it(tmp_path):
    (tmp_path / "Ong_a.txt").write_text(ONE)
    (tmp_path / "Ong_b.docx").write_bytes(b"PK no")
    with pytest.raises(InputError, match=r"Ong_b.docx.*not a document that can be opened.*mend or remove it"):
        Corpus.read(tmp_path)
    (tmp_path / "Ong_b.docx").unlink()
    (tmp_path / "nobody.txt").write_text(ONE)
    with pytest.raises(InputError, match=r"nobody.txt.*no author in its name: use Author_title.txt"):
        Corpus.read(tmp_path)


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("a.docx", b"text", "not a document that can be opened"),
        ("a.odt", b"", "not a document that can be opened"),
        ("a.xml", b"<html/>", "not TEI: the root element is <html>"),
        ("a.html", b"<p> </p>", "empty"),
        ("a.pdf", b"%PDF-1.4 no", "no text can be taken from this PDF"),
    ],
)
def test_what_is_not_what_it_says_is_refused_in_one_line(tmp_path, name, body, reason):
    (tmp_path / name).write_bytes(body)
    with pytest.raises(InputError, match=reason) as error:
        read_file(tmp_path / name)
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_a_document_without_its_body_is_refused(tmp_path):
    zipped(tmp_path / "a.docx", other="x")
    with pytest.raises(InputError, match="not a whole document"):
        read_file(tmp_path / "a.docx")


def test_a_zip_that_unpacks_to_a_giant_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("idiograph.corpus.formats.MAX_FILE_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "a.docx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", " " * 100_000)
    with pytest.raises(InputError, match="unpacks to more than"):
        read_file(tmp_path / "a.docx")


def test_a_string_that_names_a_file_is_that_file_and_any_other_is_a_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letter.txt").write_text(ONE)
    (tmp_path / "letters").mkdir()
    word_document(tmp_path / "letters" / "b.docx")
    assert texts_given("letter.txt") == [ONE]
    assert texts_given(tmp_path / "letter.txt") == [ONE]
    assert texts_given("letters") == [BOTH]
    assert texts_given(["letter.txt", TWO]) == [ONE, TWO]
    assert texts_given("He wrote letter.txt") == ["He wrote letter.txt"]
    assert texts_given(BOTH * 100) == [BOTH * 100]


@pytest.mark.parametrize("name", ["leter.txt", "letters/a.docx", "C:\\a.PDF"])
def test_a_name_of_a_file_that_is_not_there_is_never_compared_as_a_text(name):
    with pytest.raises(InputError, match="there is no file .*; give the path of a text that is there"):
        texts_given(name)


def test_what_a_file_says_of_itself_is_kept(tmp_path):
    found = read_file_text(book(tmp_path / "a.epub"))
    assert (found.title, [author.name for author in found.authors]) == ("Tides", ["Ann Ong"])
