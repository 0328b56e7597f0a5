"""How much of a paper's running text comes out of its PDF: the embedded extractor against pdfminer.six and pypdfium2.

    python benchmarks/extract.py FIXTURES

FIXTURES holds `jats_pdf/*.pdf` with `*.jats.xml`, and `grobid/*.pdf` with `*.tei.xml`: the same papers as structured text.
Gold is the paragraphs of the body: no headings, captions, tables, references, notes, formulas or acknowledgements. The JATS
is the publisher's; the TEI is GROBID's own reading, which has faults, so that 1.0 is out of reach there.
Words are compared as bags and in order; a paragraph boundary is right if both texts break before the same matched word.
Times are of this process's own CPU, best of three.
"""

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from unicodedata import normalize

import pypdfium2
from lxml import etree
from pdfminer.high_level import extract_text
from pdfminer.layout import LAParams

from idiograph.pdf.article import read_paper
from idiograph.pdf.glyphs import read_pages

Paragraphs = list[str]
PARSER = etree.XMLParser(resolve_entities=False, no_network=True)
TEI = "{http://www.tei-c.org/ns/1.0}"
NOT_PROSE = {
    "table-wrap",
    "fig",
    "disp-formula",
    "ref-list",
    "fn",
    "label",
    "title",
    "tex-math",
    "formula",
    "note",
    "figure",
}


def ours(pdf: Path) -> Paragraphs:
    article = read_paper(read_pages(pdf.read_bytes(), max_pages=2000))
    return list(article.paragraphs) if article else []


def pdfminer(pdf: Path) -> Paragraphs:
    return [
        " ".join(block.split())
        for block in re.split(r"\n\s*\n|\f", extract_text(pdf, laparams=LAParams(all_texts=True)))
        if block.strip()
    ]


def plain(pdf: Path) -> Paragraphs:
    """All text as pdfium gives it; it knows lines, not paragraphs."""
    with pypdfium2.PdfDocument(pdf) as document:
        text = "\n".join(page.get_textpage().get_text_bounded() for page in document)
    return [line for line in text.replace("\ufffe\r\n", "").replace("\x02\r\n", "").splitlines() if line.strip()]


TOOLS: dict[str, Callable[[Path], Paragraphs]] = {"idiograph": ours, "pdfminer.six": pdfminer, "pypdfium2": plain}


def gold(path: Path) -> Paragraphs:
    root = etree.parse(path, PARSER).getroot()
    body = root.find(f".//{TEI}body") if root.tag.startswith(TEI) else root.find(".//body")
    assert body is not None
    return [text for node in body.iter("p", f"{TEI}p") if is_prose(node) and (text := " ".join(words_of(node).split()))]


def is_prose(node: etree._Element) -> bool:
    above = list(node.iterancestors())
    names = {etree.QName(x).localname for x in above}
    titles = [x.findtext("title") or "" for x in above]
    return not names & NOT_PROSE and not any(title.casefold().startswith("acknowledg") for title in titles)


def words_of(node: etree._Element) -> str:
    """The text of a paragraph without what is set apart in it."""
    parts = [node.text or ""]
    for child in node:
        name = etree.QName(child).localname if isinstance(child.tag, str) else "label"
        if name not in NOT_PROSE and name not in ("list", "p"):
            parts.append(words_of(child))
        parts.append(child.tail or "")
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Score:
    precision: float
    recall: float
    order: float
    paragraphs: float
    seconds: float

    @property
    def f1(self) -> float:
        return harmonic(self.precision, self.recall)


def harmonic(one: float, two: float) -> float:
    return 2 * one * two / (one + two) if one + two else 0.0


def score(found: Paragraphs, truth: Paragraphs, seconds: float) -> Score:
    got, want = list(tokens(found)), list(tokens(truth))
    common = sum((Counter(w for w, _ in got) & Counter(w for w, _ in want)).values())
    matcher = SequenceMatcher(None, [w for w, _ in got], [w for w, _ in want], autojunk=False)
    blocks = matcher.get_matching_blocks()
    in_order = sum(block.size for block in blocks)
    matched = [(b.a + i, b.b + i) for b in blocks for i in range(b.size)]
    right = len(breaks(got, [one for one, _ in matched]) & breaks(want, [two for _, two in matched]))
    return Score(
        common / max(len(got), 1),
        common / max(len(want), 1),
        harmonic(in_order / max(len(got), 1), in_order / max(len(want), 1)),
        harmonic(right / max(len(found), 1), right / max(len(truth), 1)),
        seconds,
    )


def breaks(words: Sequence[tuple[str, bool]], matched: Sequence[int]) -> set[int]:
    """Which of the matched words are the first matched word of a paragraph."""
    last, out = -1, set()
    for rank, place in enumerate(matched):
        if any(start for _, start in words[last + 1 : place + 1]):
            out.add(rank)
        last = place
    return out


def tokens(paragraphs: Paragraphs) -> Iterator[tuple[str, bool]]:
    """Words in lower case, and whether each begins a paragraph."""
    for text in paragraphs:
        for place, word in enumerate(re.findall(r"\w+", normalize("NFKC", text).casefold())):
            yield word, place == 0


def pairs(folder: Path) -> list[tuple[Path, Path]]:
    jats = [(p, p.with_suffix(".jats.xml")) for p in sorted((folder / "jats_pdf").glob("*.pdf"))]
    return jats + [(p, p.with_suffix(".tei.xml")) for p in sorted((folder / "grobid").glob("*.pdf"))]


def run(tool: Callable[[Path], Paragraphs], pdf: Path, truth: Paragraphs) -> Score:
    best, found = float("inf"), []
    for _ in range(3):
        start = time.process_time()
        found = tool(pdf)
        best = min(best, time.process_time() - start)
    with pypdfium2.PdfDocument(pdf) as document:
        return score(found, truth, best / len(document))


def row(name: str, tool: str, scores: Sequence[Score]) -> str:
    mean = [
        sum(getattr(s, key) for s in scores) / len(scores)
        for key in ("precision", "recall", "f1", "order", "paragraphs")
    ]
    seconds = sum(s.seconds for s in scores) / len(scores)
    return f"| {name:20} | {tool:12} | " + " | ".join(f"{x:.3f}" for x in mean) + f" | {1000 * seconds:6.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fixtures", type=Path, nargs="?")
    arguments = parser.parse_args()
    if not arguments.fixtures:
        print("name a folder with papers: python benchmarks/extract.py FIXTURES")
        return
    print(
        "| paper | tool | precision | recall | F1 | F1 in order | paragraph F1 | CPU ms/page |\n|---|---|---|---|---|---|---|---|"
    )
    every: dict[str, list[Score]] = {tool: [] for tool in TOOLS}
    for pdf, truth in pairs(arguments.fixtures):
        for name, tool in TOOLS.items():
            every[name].append(run(tool, pdf, gold(truth)))
            print(row(pdf.stem, name, every[name][-1:]))
    for name, scores in every.items():
        print(row("mean of all", name, scores))


if __name__ == "__main__":
    main()
