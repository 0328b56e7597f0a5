"""How the documentation reads: short lines, few numbers a paragraph, models by their version, links that lead somewhere."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
READ_FIRST = [README, *sorted((ROOT / "docs").glob("tutorial*.md")), *sorted((ROOT / "docs" / "results").glob("*.md"))]
TIGHT_TABLES = [*READ_FIRST, *sorted((ROOT / "docs" / "log").glob("*.md"))]  # elsewhere a table's row may be long
LONGEST_LINE = 120
MOST_NUMBERS = 3  # of a paragraph
BLOCK = re.compile(r"^```.*?^```", re.M | re.S)
NO_NUMBERS = re.compile(r"`[^`]*`|\]\([^)]*\)|\d{4}-\d\d-\d\d|!\[[^\]]*\]")  # code, links, dates, pictures
NUMBER = re.compile(r"(?<![\w@.+-])[+−-]?\d[\d,.]*(?![\w-])")  # not those of names: R@20, PAN19, MiniLM-L6, 30m
ORDINALS = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
WRONG_ARTICLE = re.compile(r"\b[Aa] (?!one\b|once|eu|uni|use|usu)[aeiou][a-z]{2,}")
NTH_MODEL = re.compile(rf"\b(?:{ORDINALS})\s+(?:attempt|model|version)\b|\bthe (?:fourth|fifth|sixth|seventh|eighth)\b")


def page_name(page):
    return page.relative_to(ROOT).as_posix()


def every(pages):
    return pytest.mark.parametrize("page", pages, ids=page_name)


def paragraphs(page):
    """The prose of a page: no code, no tables, no headings; each item of a list by itself."""
    prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", prose):
        lines = [line for line in part.splitlines() if not line.lstrip().startswith(("|", "#"))]
        if lines:
            yield re.sub(r"^\s*\d+\. ", "", " ".join(lines))


def numbers(paragraph):
    return NUMBER.findall(NO_NUMBERS.sub(" ", paragraph))


def anchors(page):
    """The names of a page's headings, as a link has them."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every(PAGES)
def test_lines_are_short(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    if page not in TIGHT_TABLES:
        lines = [line for line in lines if not line.startswith("|")]
    assert not [line for line in lines if len(line) > LONGEST_LINE]


@every(READ_FIRST)
def test_a_paragraph_has_few_numbers(page):
    assert not [each for each in paragraphs(page) if len(numbers(each)) > MOST_NUMBERS]


@every(READ_FIRST)
def test_models_are_named_by_their_version(page):
    assert not NTH_MODEL.findall(page.read_text(encoding="utf-8"))


@every(PAGES)
def test_links_lead_to_a_page_and_a_heading(page):
    for target in re.findall(r"\]\((?!http)([^)]+)\)", BLOCK.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = target.partition("#")
        goal = (page.parent / path) if path else page
        assert goal.exists(), target
        assert not anchor or goal.suffix != ".md" or anchor in anchors(goal), target


def test_numbers_are_counted_as_a_reader_counts_them():
    assert numbers("R@20 of v7 is 0.351 (0.30 to 0.40) on PAN19, see [bits](log/2026-11-19-8-bit.md).") == [
        "0.351", "0.30", "0.40",
    ]  # fmt: skip


def test_a_model_that_is_only_counted_is_found():
    assert NTH_MODEL.search("the sixth, shipped before")
    assert not NTH_MODEL.search("the first row of the third table")


def test_every_page_of_the_log_is_linked():
    linked = {path for page in PAGES for path in re.findall(r"(\d{4}-\d\d-\d\d-[\w-]+\.md)", page.read_text("utf-8"))}
    assert not {page.name for page in (ROOT / "docs" / "log").glob("*.md")} - linked


def test_what_the_program_says_has_an_before_a_vowel():
    sources = [path for path in (ROOT / "src").rglob("*.py") if path.name != "words.py"]  # lists of other languages
    found = [
        (path.name, node.lineno, *WRONG_ARTICLE.findall(node.value))
        for path in sources
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and WRONG_ARTICLE.search(node.value)
    ]
    assert not found


def test_a_wrong_article_is_found():
    assert WRONG_ARTICLE.search("'x' is a index, not a corpus")
    assert not WRONG_ARTICLE.search("a unique one, a user, a corpus")


def test_links_of_the_front_page_are_whole_and_lead_somewhere():
    text = README.read_text(encoding="utf-8")
    assert not re.findall(r"\]\((?!http)", text)  # it is read on package indexes, too
    targets = re.findall(r"^\[[\w-]+\]: https://\S+?/idiograph/idiograph/(?:(?:blob|tree)/)?main/(\S+)$", text, re.M)
    assert len(targets) > 5
    assert not [target for target in targets if not (ROOT / target).exists()]
