"""Single files that hold one text: plain text, Word, OpenDocument, EPUB, HTML, PDF and TEI. UTF-8, NFC at the door.

A format is a function from a path to a `FileText`, and one line in `FORMATS`. Anything else is read as plain text. Files
may be hostile: nothing is unpacked beyond a limit, nothing is fetched, and a PDF is parsed in a process of its own.
"""

import posixpath
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from idiograph.corpus.tei import read_tei
from idiograph.errors import InputError
from idiograph.types import Author
from idiograph.xml import Element, child_element, element_text, inner_parts, one_line, parse_xml, tag_name

MAX_BYTES = 20_000_000  # a text of 20 MB is a library, not a text; a JSON line of that size is one, too
MAX_FILE_BYTES = 200_000_000  # of a file with pictures in it
LONGEST_PATH = 250  # characters of a string that may name a file; a text of so few is too short to compare
PARAGRAPHS = frozenset("p div h1 h2 h3 h4 h5 h6 li blockquote pre tr dd dt figcaption section article".split())
UNREAD = frozenset("script style head title nav template noscript svg math".split())


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file, and what the file says of itself."""

    text: str
    authors: tuple[Author, ...] = ()
    title: str = ""


def decode(raw: bytes) -> str:
    """Bytes as text in NFC with plain newlines; says why where that cannot be."""
    if len(raw) > MAX_BYTES:
        raise InputError(f"{len(raw) / 1e6:.0f} MB in one text; at most {MAX_BYTES / 1e6:.0f} MB are read")
    if b"\0" in raw[:8192]:
        raise InputError("a binary file, not text")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 (byte {error.start}); convert it: iconv -f latin1 -t utf-8") from error
    return tidy_text(text)


def tidy_text(text: str) -> str:
    """Text in NFC with plain newlines; refused where there is none."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if not text:
        raise InputError("empty")
    return text


def read_file(path: Path) -> str:
    """The text of one file, in whatever format; the error names the file."""
    return read_file_text(path).text


def given_text(given: str | Path) -> str:
    """A text as it is given, or that of a file: a Path is always a file, and so is a string of one line that names a file
    with an ending of `FORMATS`, such as letter.txt. No text is so short that something can be said about it."""
    if isinstance(given, Path):
        return read_file(given)
    named = len(given) < LONGEST_PATH and "\n" not in given and Path(given).suffix.lower() in FORMATS
    if not named:
        return given
    if not Path(given).is_file():
        raise InputError(f"there is no file '{given}'")
    return read_file(Path(given))


def given_texts(given: str | Path | Sequence[str | Path]) -> list[str]:
    """One text or several. In a list a string is always a text, never a file: what strangers send is safe there."""
    if isinstance(given, str | Path):
        return [given_text(given)]
    return [read_file(each) if isinstance(each, Path) else each for each in given]


def read_file_text(path: Path) -> FileText:
    """The text of one file and what the file says of itself; the error names the file."""
    read = FORMATS.get(path.suffix.lower(), read_plain)
    try:
        check_regular(path)
        if path.stat().st_size > (limit := MAX_BYTES if read is read_plain else MAX_FILE_BYTES):
            raise InputError(f"{path.stat().st_size / 1e6:.0f} MB; a text may have {limit / 1e6:.0f} MB at most")
        found = read(path)
        return replace(found, text=tidy_text(found.text))
    except InputError as error:
        raise InputError(f"'{path}': {error}") from error
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}") from error


def check_regular(path: Path) -> None:
    """Refuse what may never end, or never begin: pipes and devices, also behind a link."""
    if not path.is_file():
        raise InputError("not a regular file" if path.exists() else "a link that leads nowhere, or nothing at all")


def read_plain(path: Path) -> FileText:
    """A file of plain text."""
    return FileText(decode(path.read_bytes()))


def read_tei_file(path: Path) -> FileText:
    """A TEI file: its prose, without notes, tables and lists of references."""
    article = read_tei(path.read_bytes())
    return FileText(article.text(), article.authors, article.title)


def read_pdf(path: Path) -> FileText:
    """A PDF, in a process of its own; footers, tables and lists of references are left out."""
    from idiograph.pdf.sandbox import EmbeddedExtractor  # loads pdfium
    from idiograph.recipe import ExtractRecipe

    extractor = EmbeddedExtractor(ExtractRecipe(runner="inline"))
    try:
        found = extractor(path)
    finally:
        extractor.close()
    if found.status != 200:
        reason = ": ".join(filter(None, (found.reason, found.detail)))
        raise InputError(f"no text can be taken from this PDF ({reason})")
    article = read_tei(found.tei)
    return FileText(article.text(), (), article.title)


def read_html(path: Path) -> FileText:
    """A page of HTML."""
    return FileText("\n\n".join(html_paragraphs(decode(path.read_bytes()))))


def read_word(path: Path) -> FileText:
    """A Word document (.docx): its paragraphs, without notes, comments and what was deleted."""
    (root,) = unzip_xml(path, ["word/document.xml"])
    return FileText("\n\n".join(filter(None, (word_paragraph(each) for each in inner_parts(root, "p")))))


def word_paragraph(paragraph: Element) -> str:
    def swap(inner: Element) -> str | None:
        tag = tag_name(inner)
        if tag in ("tab", "br", "cr"):
            return " "
        return "" if tag in ("instrText", "delText", "Fallback", "p") else None

    return element_text(paragraph, swap)


def read_open_document(path: Path) -> FileText:
    """An OpenDocument text (.odt): its paragraphs and headings, without notes, comments and what was deleted."""
    (root,) = unzip_xml(path, ["content.xml"])
    return FileText(
        "\n\n".join(filter(None, (element_text(part, open_document_swap) for part in open_paragraphs(root))))
    )


def open_paragraphs(element: Element) -> Iterator[Element]:
    """The paragraphs and headings of an OpenDocument text in order, without those of notes."""
    for inner in element:
        if tag_name(inner) in ("p", "h"):
            yield inner
        elif tag_name(inner) not in OPEN_UNREAD:
            yield from open_paragraphs(inner)


OPEN_UNREAD = ("note", "annotation", "tracked-changes")


def open_document_swap(inner: Element) -> str | None:
    """Spaces, tabs and line breaks are elements there."""
    tag = tag_name(inner)
    if tag in ("s", "tab", "line-break"):
        return " "
    return "" if tag in OPEN_UNREAD else None


def read_epub(path: Path) -> FileText:
    """An EPUB: its chapters in reading order."""
    (container,) = unzip_xml(path, ["META-INF/container.xml"])
    where = next((each.get("full-path") for each in inner_parts(container, "rootfile")), "")
    (package,) = unzip_xml(path, [where])
    files = {item.get("id"): item for item in inner_parts(package, "item") if item.get("properties") != "nav"}
    spine = [files[ref.get("idref")] for ref in inner_parts(package, "itemref") if ref.get("idref") in files]
    names = [posixpath.normpath(posixpath.join(posixpath.dirname(where), unquote(item.get("href")))) for item in spine]
    chapters = [decode_quietly(raw) for raw in unzip_members(path, names)]
    metadata = child_element(package, "metadata")
    creators = filter(None, (element_text(each) for each in inner_parts(metadata, "creator")))
    title = next((element_text(each) for each in inner_parts(metadata, "title")), "")
    paragraphs = [paragraph for chapter in chapters for paragraph in html_paragraphs(chapter)]
    return FileText("\n\n".join(paragraphs), tuple(map(Author, creators)), title)


def decode_quietly(raw: bytes) -> str:
    return raw.decode("utf-8-sig", "replace")


def unzip_xml(path: Path, names: Sequence[str]) -> list[Element]:
    """Some XML files out of a zipped document."""
    return [parse_xml(raw) for raw in unzip_members(path, names)]


def unzip_members(path: Path, names: Sequence[str]) -> list[bytes]:
    """Some files out of a zipped document, none of them beyond the limit for all together."""
    left, found = MAX_FILE_BYTES, []
    try:
        with zipfile.ZipFile(path) as archive:
            for name in names:
                with archive.open(name) as member:
                    found.append(member.read(left + 1))
                left -= len(found[-1])
                if left < 0:
                    raise InputError(f"unpacks to more than {MAX_FILE_BYTES / 1e6:.0f} MB")
    except KeyError as error:
        raise InputError(f"not a whole document: {error.args[0]}") from error
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, zlib.error) as error:
        raise InputError(f"not a document that can be opened: {error}") from error
    return found


class ParagraphReader(HTMLParser):
    """Collects the paragraphs of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.paragraphs: list[str] = []
        self.waiting: list[str] = []
        self.unread: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag in UNREAD:
            self.unread.append(tag)
        elif tag in PARAGRAPHS:
            self.end_paragraph()
        elif tag in ("br", "td"):
            self.waiting.append(" ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in UNREAD:  # <script/> has nothing in it
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.unread:
            del self.unread[self.unread.index(tag) :]
        elif tag in PARAGRAPHS or tag == "body":
            self.end_paragraph()

    def handle_data(self, data: str) -> None:
        if not self.unread:
            self.waiting.append(data)

    def end_paragraph(self) -> None:
        if paragraph := one_line("".join(self.waiting)):
            self.paragraphs.append(paragraph)
        self.waiting = []


def html_paragraphs(page: str) -> list[str]:
    """The paragraphs of a page of HTML.

    >>> html_paragraphs("<title>T</title><p>One &amp;<br>two.<p>Three <b>four</b>.")
    ['One & two.', 'Three four.']
    """
    reader = ParagraphReader()
    reader.feed(page)
    reader.close()
    reader.end_paragraph()
    return reader.paragraphs


FORMATS: dict[str, Callable[[Path], FileText]] = {
    ".txt": read_plain,
    ".docx": read_word,
    ".odt": read_open_document,
    ".epub": read_epub,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".pdf": read_pdf,
    ".tei": read_tei_file,
    ".xml": read_tei_file,
}


def written_files(folder: Path) -> Iterator[Path]:
    """The files of a folder, at any depth, that hold one text each; one format of a text that is there in several.

    Hidden files and those of an open editor do not count.
    """
    chosen: dict[Path, Path] = {}
    order = list(FORMATS)
    for path in sorted(filter(suffix_of, folder.rglob("*")), key=lambda path: order.index(suffix_of(path))):
        hidden = any(part.startswith((".", "~$")) for part in path.relative_to(folder).parts)
        if not hidden and not path.is_dir():
            chosen.setdefault(path.with_name(stem_of(path)), path)
    yield from sorted(chosen.values())


def suffix_of(path: Path) -> str:
    """The end of a file's name if it is that of a format, in lower case; else nothing."""
    suffix = path.suffix.lower()
    return suffix if suffix in FORMATS else ""


def stem_of(path: Path) -> str:
    """The name of a file without the end that says its format.

    >>> stem_of(Path("Eliot_Middlemarch.tei.xml")), stem_of(Path("Eliot_vol.2.txt"))
    ('Eliot_Middlemarch', 'Eliot_vol.2')
    """
    return path.stem.removesuffix(".tei") if path.suffix == ".xml" else path.stem


def texts_given(given: str | Path | Sequence[str | Path]) -> list[str]:
    """What somebody gave as a text: the text itself, a file, a folder of texts by one hand, or several of these."""
    if not isinstance(given, str | Path):
        return [text for each in given for text in texts_given(each)]
    path = path_given(given)
    if path is None:
        return [str(given)]
    if not path.is_dir():
        return [read_file(path)]
    files = list(written_files(path))
    if not files:
        raise InputError(f"there is no text in the folder '{path}'; give files such as {', '.join(FORMATS)}")
    return [read_file(file) for file in files]


def path_given(given: str | Path) -> Path | None:
    """The path that is meant; None for a text. A name of a file that does not exist is an error, and not a text."""
    if isinstance(given, str) and not may_be_path(given):
        return None
    path = Path(given)
    if path.exists():
        return path
    if isinstance(given, Path) or (suffix_of(path) and not any(map(str.isspace, given))):
        raise InputError(f"there is no file '{given}'; give the path of a text that is there, or the text itself")
    return None


def may_be_path(given: str) -> bool:
    """Short, in one line, and nothing that a file system refuses."""
    return 0 < len(given) < 1024 and "\n" not in given and "\0" not in given and len(Path(given).name.encode()) < 256
