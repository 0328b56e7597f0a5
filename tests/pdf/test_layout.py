"""From places on a page to prose: reading order, paragraphs, whole words, and what is left out."""

import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pdfs import BOLD, FONTS, HEIGHT, ITALIC, MONO, SENTENCES, WIDTH, Sheet, article, pdf, prose, wrap

from idiograph.errors import InputError
from idiograph.pdf.article import read_paper
from idiograph.pdf.glyphs import Page, Word, clean_character, compose, read_pages
from idiograph.pdf.layout import TextBlock, make_line, reading_order
from idiograph.pdf.paragraphs import JoinedWords, is_sentence_like, join_lines
from idiograph.pdf.tei_writer import TEI, ComposedPaper, PaperSection, to_tei


def read(*sheets: Sheet) -> ComposedPaper:
    paper = read_paper(read_pages(pdf(sheets), max_pages=100))
    assert paper is not None
    return paper


def body(*sheets: Sheet) -> list[str]:
    return list(read(*sheets).paragraphs)


def column(head: str = "1 Introduction") -> tuple[Sheet, float]:
    """A page that has begun with a heading, and where its text goes on."""
    sheet = Sheet()
    sheet.put(100, 120, head, 12, BOLD)
    return sheet, 140


def two_columns(left: str, right: str, top: float = 120) -> Sheet:
    sheet = Sheet()
    sheet.paragraph(50, top, left, 240)
    sheet.paragraph(310, top, right, 240)
    return sheet


def test_two_columns_are_read_one_after_the_other_under_a_wide_title() -> None:
    sheet = two_columns("", "")
    sheet.put(50, 60, "A title that spans both of the columns of this page", 18, BOLD)
    sheet.put(50, 100, "1 Introduction", 12, BOLD)
    sheet.paragraph(50, 120, prose(6), 240)
    sheet.paragraph(310, 120, prose(6, start=3), 240)
    paper = read(sheet)
    assert paper.title == "A title that spans both of the columns of this page"
    assert " ".join(paper.paragraphs) == f"{prose(6)} {prose(6, start=3)}"


def test_columns_drawn_row_by_row_are_read_column_by_column() -> None:
    left, right = Sheet(), Sheet()
    left.paragraph(50, 120, prose(5), 240)
    right.paragraph(310, 120, prose(5, start=3), 240)
    mixed = [mark for pair in zip(left.marks, right.marks, strict=False) for mark in pair]
    rest = left.marks[len(right.marks) :] + right.marks[len(left.marks) :]
    told = body(Sheet([*heading(50, 100), *mixed, *rest]))
    assert " ".join(told) == f"{prose(5)} {prose(5, start=3)}"


def heading(x: float, y: float, text: str = "1 Introduction") -> list[str]:
    sheet = Sheet()
    sheet.put(x, y, text, 12, BOLD)
    return sheet.marks


def test_a_wide_caption_parts_what_is_above_it_from_what_is_below() -> None:
    sheet = Sheet(heading(50, 80))
    for x, start in ((50, 0), (310, 2)):
        sheet.paragraph(x, 100, prose(3, start), 240)
    sheet.paragraph(
        50, 320, "Figure 1: What both columns see in the middle of the page, told at some length.", 500, size=8
    )
    for x, start in ((50, 4), (310, 1)):
        sheet.paragraph(x, 400, prose(3, start), 240)
    assert " ".join(body(sheet)) == " ".join(prose(3, start) for start in (0, 2, 4, 1))


def test_a_paragraph_goes_on_over_columns_and_pages() -> None:
    words = prose(8).split()
    parts = [" ".join(words[i : i + 45]) for i in range(0, len(words), 45)]
    one, two = two_columns(parts[0], parts[1]), two_columns(parts[2], " ".join(parts[3:]))
    one.marks[:0] = heading(50, 100)
    assert "".join(body(one, two)).split() == words


def test_a_first_line_indent_begins_a_paragraph() -> None:
    sheet, y = column()
    y = sheet.paragraph(100, y, prose(3), 400, indent=15)
    y = sheet.paragraph(100, y, prose(3, start=1), 400, indent=15)
    sheet.paragraph(100, y, prose(3, start=2), 400, indent=15)
    assert body(sheet) == [prose(3), prose(3, start=1), prose(3, start=2)]


def test_a_gap_begins_a_paragraph() -> None:
    sheet, y = column()
    for start in range(3):
        y = sheet.paragraph(100, y, prose(4, start), 400) + 6
    assert body(sheet) == [prose(4, start) for start in range(3)]


def test_double_spaced_pages_keep_their_paragraphs() -> None:
    sheet, y = column()
    for start in range(3):
        y = sheet.paragraph(100, y, prose(3, start), 400, indent=20, pitch=24)
    assert body(sheet) == [prose(3, start) for start in range(3)]


def test_list_items_are_paragraphs_without_their_signs() -> None:
    sheet, y = column()
    y = sheet.paragraph(100, y, prose(4), 400)
    for start in (1, 2):
        sheet.put(115, y, "•", 10)
        y = sheet.paragraph(125, y, SENTENCES[start], 375)
    assert body(sheet) == [prose(4), SENTENCES[1], SENTENCES[2]]


@pytest.mark.parametrize(
    ("lines", "whole"),
    [
        (["repro-", "ducible work"], "reproducible work"),
        (["the well-", "known ones, well-known"], "the well-known ones, well-known"),
        (["state-of-the-", "art tools"], "state-of-the-art tools"),
        (["from 1998-", "2004 on"], "from 1998-2004 on"),
        (["Lotka-", "Volterra models"], "Lotka-Volterra models"),
        (["stan\u2010", "dard text"], "standard text"),
        (["it ends -", "here"], "it ends - here"),
        (["soft\x02", "ware"], "software"),
    ],
)
def test_words_are_whole_again_after_a_line_break(lines: list[str], whole: str) -> None:
    assert join_lines(lines, JoinedWords([line_of(f"a {text} b") for text in lines])) == whole


def test_a_hyphen_stays_where_the_document_writes_the_compound_elsewhere() -> None:
    words = JoinedWords([line_of("we compare task-specific models in this work")])
    assert join_lines(["our task-", "specific layer"], words) == "our task-specific layer"
    assert join_lines(["our task-", "specific layer"], JoinedWords([])) == "our taskspecific layer"


def line_of(text: str):
    return make_line(0, [Word(text, 0, 100, 0, 10, "F", False)])


def test_running_heads_and_page_numbers_are_left_out_but_the_title_stays() -> None:
    sheets = []
    for number in range(4):
        sheet = Sheet()
        if number == 0:
            sheet.put(100, 90, "The harbour and its book", 18, BOLD)
            sheet.put(100, 120, "1 Introduction", 12, BOLD)
        else:
            sheet.put(100, 40, "The harbour and its book", 8)
        sheet.put(300, 770, f"{number + 17}")
        sheet.put(100, 755, f"Journal of Tides 3 ({number + 17})", 10, ITALIC)
        sheet.paragraph(100, 140, prose(6, number), 400)
        sheets.append(sheet)
    paper = read(*sheets)
    assert paper.title == "The harbour and its book"
    assert " ".join(paper.paragraphs) == " ".join(prose(6, number) for number in range(4))


def test_the_cover_page_of_the_archive_is_left_out() -> None:
    cover = Sheet()
    cover.put(100, 200, "The harbour and its book", 18, BOLD)
    cover.put(100, 300, "HAL Id: hal-01234567")
    cover.put(100, 320, "https://hal.science/hal-01234567v1")
    cover.paragraph(100, 500, "HAL is a multi-disciplinary open access archive for the deposit of papers.", 400)
    sheet, y = column()
    sheet.paragraph(100, y, prose(5), 400)
    paper = read(cover, sheet)
    assert paper.paragraphs == (prose(5),)
    assert "archive" not in paper.title


def test_a_later_page_that_speaks_of_the_archive_stays() -> None:
    sheets = [Sheet(heading(100, 120, f"{number + 1} Section")) for number in range(3)]
    for number, sheet in enumerate(sheets):
        sheet.paragraph(100, 140, f"{prose(5, number)} We deposited it under HAL Id: hal-01234567 in May.", 400)
    assert len(body(*sheets)) == 3


def test_references_are_cut_and_what_follows_them_is_annex() -> None:
    sheet, y = column()
    y = sheet.paragraph(100, y, prose(6), 400)
    sheet.put(100, y + 20, "References", 12, BOLD)
    for i in range(4):
        sheet.put(100, y + 40 + 12 * i, f"[{i + 1}] A. Author. {SENTENCES[i][:40]}. Journal {i}, pp. 1-9, 2004.")
    sheet.put(100, y + 110, "Appendix A", 12, BOLD)
    sheet.paragraph(100, y + 130, prose(4, start=2), 400)
    paper = read(sheet)
    assert paper.paragraphs == (prose(6),)
    assert [(part.kind, part.head) for part in paper.parts] == [("body", "1 Introduction"), ("annex", "Appendix A")]


def test_thanks_are_kept_apart() -> None:
    sheet, y = column()
    y = sheet.paragraph(100, y, prose(6), 400)
    sheet.put(100, y + 20, "Acknowledgements", 12, BOLD)
    sheet.paragraph(100, y + 40, prose(2), 400)
    paper = read(sheet)
    assert [part.kind for part in paper.parts] == ["body", "acknowledgement"]
    assert paper.paragraphs == (prose(6),)


def test_tables_and_captions_are_cut_but_a_sentence_about_a_figure_stays() -> None:
    sheet, y = column()
    y = sheet.paragraph(100, y, prose(4), 400) + 20
    sheet.put(100, y, "Table 1: Heights of the tide, by month.")
    for row, cells in enumerate((("Month", "Height", "Error"), ("May", "4.2", "0.1"), ("June", "4.4", "0.2"))):
        for place, cell in enumerate(cells):
            sheet.put(130 + 120 * place, y + 20 + 12 * row, cell)
    told = "Figure 2 shows that the water of the harbour rises before noon, and that nobody is there to see it rise."
    sheet.paragraph(100, y + 80, f"{told} {prose(2)}", 400)
    assert body(sheet) == [prose(4), f"{told} {prose(2)}"]


def test_notes_at_the_foot_and_in_the_margin_are_cut() -> None:
    sheet, y = column()
    for place in range(12):
        sheet.put(70, y + 12 * place, str(5 * place + 5), 6)
    sheet.paragraph(100, y, prose(9), 400)
    sheet.put(100, 720, "1 We thank the clerk for this remark about the harbour.", 8)
    sheet.paragraph(510, 200, "Received in May, accepted in June", 70, size=7)
    assert body(sheet) == [prose(9)]


def test_calls_of_notes_are_dropped_and_powers_stay() -> None:
    sheet, y = column()
    sheet.put(100, y, "The harbour measures 40 m")
    sheet.put(225, y - 4, "2", 6)
    sheet.put(233, y, "as the ledger")
    sheet.put(298, y - 4, "7", 6)
    sheet.put(306, y, "of the clerks says in May")
    sheet.paragraph(100, y + 12, prose(5), 400)
    assert body(sheet)[0].startswith("The harbour measures 40 m2 as the ledger of the clerks says in May")


def test_code_and_contents_are_cut() -> None:
    sheet, y = column()
    y = sheet.paragraph(100, y, prose(4), 400) + 10
    sheet.put(100, y, "for wave in tide: print(wave)", 10, MONO)
    sheet.put(100, y + 14, "2 The book of the harbour ........................ 17")
    sheet.paragraph(100, y + 30, prose(4, start=1), 400)
    assert body(sheet) == [prose(4), prose(4, start=1)]


def test_a_displayed_formula_is_kept_apart_from_the_text() -> None:
    sheet, y = column()
    y = sheet.paragraph(100, y, prose(3), 400) + 10
    sheet.put(230, y, "y = a x + b / (c - 2 d)", 10, ITALIC)
    sheet.put(485, y, "(1)")
    sheet.paragraph(100, y + 24, prose(3, start=1), 400)
    (part,) = read(sheet).parts
    assert part.items == (("p", prose(3)), ("formula", "y = a x + b / (c - 2 d) (1)"), ("p", prose(3, start=1)))


def test_the_abstract_and_the_names_before_it_are_not_body() -> None:
    sheet = Sheet()
    sheet.put(100, 60, "The harbour and its book", 18, BOLD)
    sheet.put(100, 90, "Ada Clerk and Ben Waters", 11)
    sheet.put(100, 104, "University of the Shore, Department of Tides, a.clerk@shore.example", 9)
    sheet.put(100, 130, "Abstract", 11, BOLD)
    sheet.paragraph(120, 150, prose(3), 360, size=9)
    sheet.put(120, 240, "Keywords: tides, ledgers, bridges", 9)
    sheet.put(100, 280, "1 Introduction", 12, BOLD)
    sheet.paragraph(100, 300, prose(6, start=2), 400)
    paper = read(sheet)
    assert (paper.abstract, paper.paragraphs) == ((prose(3),), (prose(6, start=2),))


@pytest.mark.parametrize(("head", "where"), [("1 Introduction", "abstract"), ("The tide", "body")])
def test_text_before_an_introduction_is_the_abstract(head: str, where: str) -> None:
    sheet = Sheet()
    sheet.put(100, 60, "The harbour and its book", 18, BOLD)
    sheet.paragraph(100, 120, prose(4), 400)
    sheet.put(100, 220, head, 12, BOLD)
    sheet.paragraph(100, 240, prose(6, start=2), 400)
    paper = read(sheet)
    assert {"abstract": paper.abstract, "body": paper.paragraphs[:1]}[where] == (prose(4),)


def test_a_stamp_along_the_margin_is_left_out() -> None:
    sheet, y = column()
    sheet.put(30, 600, "arXiv:2101.00001v1 [cs.CL] 1 Jan 2021", 16, turn=1)
    sheet.paragraph(100, y, prose(6), 400)
    assert body(sheet) == [prose(6)]


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_a_page_whose_text_runs_another_way_is_read_all_the_same(turn: int) -> None:
    upright, y = column()
    upright.paragraph(100, y, prose(6), 400)
    turned = Sheet([mark.replace("1 0 0 1", "1 0 -0 1") for mark in upright.marks])
    assert body(Sheet([rotate(mark, turn) for mark in turned.marks])) == [prose(6)]


def rotate(mark: str, turn: int) -> str:
    """The same mark on a sheet that was put into the printer another way round."""
    head, rest = mark.split(" Tw ")
    numbers, tail = rest.split(" Tm ")
    x, y = map(float, numbers.split()[4:])
    middle = (WIDTH / 2, HEIGHT / 2)
    a, b = [(1, 0), (0, 1), (-1, 0), (0, -1)][turn]
    dx, dy = x - middle[0], y - middle[1]
    return f"{head} Tw {a} {b} {-b} {a} {middle[0] + a * dx - b * dy:.2f} {middle[1] + b * dx + a * dy:.2f} Tm {tail}"


@pytest.mark.parametrize(
    ("letter", "rest", "whole"), [("T", "he tide", "The tide"), ("A", "tide", "A tide"), ("A", "LL tides", "ALL tides")]
)
def test_a_large_first_letter_belongs_to_its_word(letter: str, rest: str, whole: str) -> None:
    sheet, y = column()
    sheet.put(100, y + 12, letter, 30)
    lines = f"{rest} {prose(6)}".split()
    sheet.paragraph(116, y, " ".join(lines[:28]), 384)
    sheet.paragraph(100, y + 24, " ".join(lines[28:]), 400)
    assert " ".join(body(sheet)) == f"{whole} {prose(6)}"


def test_text_whose_size_was_guessed_by_a_scanner_is_kept() -> None:
    luck, sheets = Random(5), []
    for page in range(3):
        sheet = Sheet(heading(100, 100, "1 Introduction")) if page == 0 else Sheet()
        for place, line in enumerate(wrap(prose(12, page), 400, 10)):
            size = luck.uniform(8.6, 11.4)
            sheet.put(
                100, 130 + 14 * place, line, size, spread=(400 - 0.5 * size * len(line)) / max(1, line.count(" "))
            )
        sheets.append(sheet)
    told = " ".join(body(*sheets)).split()
    assert len(told) > 0.97 * 3 * len(prose(12).split())


def test_a_text_without_any_heading_is_body() -> None:
    sheet = Sheet()
    for place, line in enumerate(wrap(prose(9), 380, 10)):
        sheet.put(100, 130 + 14 * place, line, 10, FONTS[place % 2])
    assert " ".join(body(sheet)) == prose(9)


def test_a_script_without_spaces_has_paragraphs_too() -> None:
    assert is_sentence_like("\u6e2f" * 40 + "\u3002")
    assert not is_sentence_like("4.2 0.1 Error")
    assert not is_sentence_like("Height")


def test_accents_drawn_over_letters_become_one_letter_with_them() -> None:
    assert compose([("´", 1, 3), ("e", 0, 4), ("t", 4, 6)]) == [("é", 0, 4), ("t", 4, 6)]
    assert compose([("c", 0, 4), ("¸", 1, 3)]) == [("ç", 0, 4)]
    assert compose([("ˆ", 1, 3), ("ı", 1, 3)]) == [("î", 1, 3)]
    assert compose([("e", 0, 4), ("`", 9, 11), ("x", 12, 15)]) == [("e", 0, 4), ("`", 9, 11), ("x", 12, 15)]


@pytest.mark.parametrize(
    ("code", "text"), [(0xFB01, "fi"), (0xFB03, "ffi"), (0x41, "A"), (0, " "), (0xE000, " "), (0x1D465, "𝑥")]
)
def test_only_characters_with_a_meaning_of_their_own_are_kept(code: int, text: str) -> None:
    assert clean_character(code) == text


def block(left: float, right: float, top: float) -> TextBlock:
    return TextBlock((), left, right, top, top + 10)


def order(blocks: Sequence[TextBlock]) -> list[int]:
    return [blocks.index(b) for b in reading_order(blocks)]


def test_reading_order_does_not_depend_on_the_order_of_drawing() -> None:
    blocks = [
        block(0, 100, 0),
        block(0, 45, 20),
        block(0, 45, 60),
        block(55, 100, 20),
        block(55, 100, 60),
        block(0, 100, 80),
    ]
    assert order(blocks) == [0, 1, 2, 3, 4, 5]
    assert [blocks.index(b) for b in reading_order(blocks[::-1])] == [0, 1, 2, 3, 4, 5]


def test_a_page_without_text_is_no_paper_and_an_unreadable_file_says_so() -> None:
    assert read_paper(read_pages(pdf([Sheet()]), max_pages=9)) is None
    with pytest.raises(InputError, match="not a readable PDF: data format error"):
        list(read_pages(b"%PDF-1.4 nothing", max_pages=9))


SIGNS = st.characters(min_codepoint=0x21, max_codepoint=0x2FFF, exclude_categories=["Cs", "Cc", "Zs"])
WORDS = st.builds(
    Word,
    text=st.text(
        st.characters(min_codepoint=0x21, max_codepoint=0x2FFF, exclude_categories=["Cs", "Cc", "Zs"]),
        min_size=1,
        max_size=12,
    ),
    left=st.floats(-50, 650),
    right=st.floats(-50, 650),
    base=st.floats(-10, 810),
    size=st.floats(0.1, 80),
    font=st.sampled_from(["Roman", "Bold", "CMMI10"]),
    glued=st.booleans(),
)
PAGES = st.lists(st.lists(WORDS, max_size=40), max_size=3)


@settings(max_examples=150, deadline=None)
@given(PAGES)
def test_words_anywhere_on_a_page_make_well_formed_tei(pages: list[list[Word]]) -> None:
    paper = read_paper(Page(number, 600, 800, tuple(words)) for number, words in enumerate(pages))
    if paper:
        ElementTree.fromstring(to_tei(paper, "0"))


def test_tei_has_the_shape_that_grobid_gives() -> None:
    parts = (
        PaperSection("body", "1 A & B", (("p", "One < two."), ("formula", "x"))),
        PaperSection("annex", "", (("p", "Three."),)),
    )
    root = ElementTree.fromstring(to_tei(ComposedPaper("T", ("Short.",), parts), "0"))
    names = {"t": TEI}
    assert root.tag == f"{{{TEI}}}TEI"
    assert root.findtext("t:teiHeader/t:fileDesc/t:titleStmt/t:title", namespaces=names) == "T"
    assert root.findtext("t:teiHeader/t:profileDesc/t:abstract/t:div/t:p", namespaces=names) == "Short."
    assert [x.text for x in root.iterfind("t:text/t:body/t:div/*", names)] == ["1 A & B", "One < two.", "x"]
    assert root.findtext("t:text/t:back/t:div[@type='annex']/t:div/t:p", namespaces=names) == "Three."


def test_the_same_pdf_gives_the_same_bytes() -> None:
    one, two = (read_paper(read_pages(article(3), max_pages=9)) for _ in range(2))
    assert one is not None
    assert two is not None
    assert to_tei(one, "0") == to_tei(two, "0")


def test_real_papers_come_out_nearly_whole(shared: Path) -> None:
    paper = read_paper(read_pages((shared / "fixtures/jats_pdf/jose.00193.pdf").read_bytes(), 99))
    assert paper is not None
    assert paper.title == "The Argo Online School: An e-learning tool to get started with Argo"
    assert paper.paragraphs[0].startswith(
        "The Argo Online School (AoS) is a collection of videos, animations and hands-on"
    )
    assert paper.paragraphs[-1].endswith(
        "open access to the public and free of charge and therefore, no subscription is required"
    )
    assert [part.head for part in paper.parts] == [
        "Summary",
        "Statement of need",
        "Notes on instructional design",
        "Acknowledgements",
    ]
    assert not any("Submitted:" in text or "jose.00193" in text for text in paper.paragraphs)


def test_the_benchmark_finds_at_least_what_is_claimed(shared: Path) -> None:
    pytest.importorskip("pdfminer")
    spec = spec_from_file_location("extract_benchmark", Path(__file__).parents[2] / "benchmarks/extract.py")
    assert spec is not None
    assert spec.loader is not None
    benchmark = sys.modules["extract_benchmark"] = module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    pairs = benchmark.pairs(shared / "fixtures")
    scores = [benchmark.score(benchmark.ours(paper), benchmark.gold(truth), 0) for paper, truth in pairs]
    assert len(scores) == 8
    assert sum(score.f1 for score in scores) / 8 >= 0.95
    assert sum(score.paragraphs for score in scores) / 8 >= 0.9
    assert min(score.f1 for score in scores) >= 0.88
