"""TEI as GROBID writes it becomes an article of plain paragraphs; what is not such a file is refused with a reason."""

from pathlib import Path

import pytest

from idiograph.corpus.article import is_dropped
from idiograph.corpus.tei import read_tei
from idiograph.errors import InputError, SpecError
from idiograph.xml import MAX_BYTES, MAX_DEPTH

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures" / "grobid"

HEADER = """
<teiHeader xml:lang="en"><fileDesc>
 <titleStmt><title level="a" type="main">On Bees</title></titleStmt>
 <publicationStmt><availability><licence target="https://creativecommons.org/licenses/by/4.0/"/></availability>
  <date type="published" when="2019-03-01"/></publicationStmt>
 <sourceDesc><biblStruct><analytic>
  <author><persName><forename>Ada</forename><surname>Roe</surname></persName><idno type="ORCID">0000-0001</idno></author>
  <author><affiliation>A leftover university</affiliation></author>
  <author><persName><surname>Doe</surname></persName></author>
 </analytic><idno type="DOI">10.1000/bees</idno></biblStruct></sourceDesc>
</fileDesc><profileDesc><abstract><div><p>We study bees.</p></div></abstract></profileDesc></teiHeader>
"""


def tei(body: str, header: str = HEADER, before: str = "") -> bytes:
    start = f'{before}<TEI xmlns="http://www.tei-c.org/ns/1.0">{header}<text xml:lang="en">'
    return f"{start}<body>{body}</body><back><div><p>Never read.</p></div></back></text></TEI>".encode()


def paragraphs(body: str, **options: str) -> list[str]:
    article = read_tei(tei(f"<div>{body}</div>"), **options)  # pyright: ignore[reportArgumentType]
    return [paragraph for section in article.sections for paragraph in section.paragraphs]


def test_an_article_has_its_header_and_its_prose() -> None:
    article = read_tei(tei("<div><head n='1'>Methods</head><p>We count.</p><p>We wait.</p></div>"))
    assert (article.title, article.lang, article.year, article.doi) == ("On Bees", "en", 2019, "10.1000/bees")
    assert article.licence == "https://creativecommons.org/licenses/by/4.0/"
    assert [(author.name, author.id) for author in article.authors] == [("Ada Roe", "0000-0001"), ("Doe", None)]
    assert article.text() == "We study bees.\n\nWe count.\n\nWe wait."


def test_headings_and_abstract_are_optional_in_the_text() -> None:
    article = read_tei(tei("<div><head>Methods</head><p>We count.</p></div>"))
    assert article.text(abstract=False, heads=True) == "Methods\n\nWe count."


def test_figures_tables_notes_and_the_back_are_left_out() -> None:
    body = "<p>We count<note>a footnote</note> bees<figure><figDesc>A bee</figDesc></figure>.</p><figure><p>No</p></figure>"
    assert paragraphs(body + "<note>Another note.</note>") == ["We count bees."]


def test_citations_are_masked_by_default() -> None:
    body = "<p>It is so <ref type='bibr'>(Roe et al., 2001;</ref><ref type='bibr'>Doe, 2002)</ref>, they say.</p>"
    assert paragraphs(body) == ["It is so [CITE], they say."]


def test_citations_may_be_kept_or_dropped() -> None:
    body = "<p>It is so <ref type='bibr'>[3]</ref>, they say.</p>"
    assert paragraphs(body, citations="keep") == ["It is so [3], they say."]
    assert paragraphs(body, citations="drop") == ["It is so, they say."]


def test_citations_may_stand_between_the_published_markers() -> None:
    assert paragraphs('<p>As <ref type="bibr">(Roe, 2001)</ref> says.</p>', citations="published") == [
        "As [START_REF] (Roe, 2001) [END_REF] says."
    ]


def test_a_bracket_that_belongs_to_the_sentence_survives_the_mask() -> None:
    assert paragraphs("<p>See others (e.g., <ref type='bibr'>Roe, 2001)</ref>.</p>") == ["See others (e.g., [CITE])."]


def test_pointers_to_figures_stay_and_calls_of_footnotes_go() -> None:
    body = "<p>See <ref type='figure'>Fig. 1</ref>, not this<ref type='foot'>2</ref>.</p>"
    assert paragraphs(body) == ["See Fig. 1, not this."]


def test_a_displayed_formula_joins_the_halves_of_its_sentence() -> None:
    body = "<p>The sum is</p><formula>x = 1<label>(1)</label></formula><p>where x is one.</p>"
    assert paragraphs(body) == ["The sum is [MATH] where x is one."]
    assert paragraphs(body, formulae="drop") == ["The sum is where x is one."]


def test_a_formula_that_ends_its_sentence_does_not_join_the_next() -> None:
    body = "<p>The sum is</p><formula>x = 1.</formula><p>Bees dance.</p>"
    assert paragraphs(body) == ["The sum is [MATH].", "Bees dance."]


def test_sentences_that_grobid_marked_are_spaced() -> None:
    assert paragraphs("<p><s>Bees dance.</s><s>Ants walk.</s></p>") == ["Bees dance. Ants walk."]


def test_acknowledgements_in_the_body_are_dropped_and_named() -> None:
    article = read_tei(tei("<div><head>5 Acknowledgments</head><p>We thank X.</p></div><div><p>Kept text.</p></div>"))
    assert article.dropped == ("5 Acknowledgments",)
    assert article.text(abstract=False) == "Kept text."


@pytest.mark.parametrize(
    "head",
    ["Acknowledgements", "7. References", "Remerciements", "VI. Funding", "Conflict of interest", "Data availability",
     "Authors' contributions", "Supplementary Material", "Bibliographie", "Literaturverzeichnis", "Mots-clés"],
)  # fmt: skip
def test_headings_without_prose_are_dropped(head: str) -> None:
    assert is_dropped(head)


@pytest.mark.parametrize(
    "head",
    ["Introduction", "2.1 References in discourse", "Results", "Financing of terrorism in the age of the euro and the state",
     "Contents of the stomach", "Data", "Material and methods", ""],
)  # fmt: skip
def test_headings_of_prose_are_kept(head: str) -> None:
    assert not is_dropped(head)


def test_an_unknown_treatment_names_the_known_ones() -> None:
    with pytest.raises(SpecError, match=r"unknown treatment of citations 'msk'; choose from drop, keep, mask"):
        paragraphs("<p>Text.</p>", citations="msk")


NOTES = '<note place="foot" n="1">See there.</note><note place="foot" n="3">And here.</note>'


def test_the_number_of_a_footnote_does_not_stay_at_the_word_before_it() -> None:
    found = paragraphs(f"<p>The corpus2 is large.3 It holds words1, and more.</p>{NOTES}")
    assert found == ["The corpus is large. It holds words, and more."]


def test_numbers_that_count_up_are_footnotes_even_where_the_notes_are_lost() -> None:
    found = paragraphs("<p>The corpus1 is large.2 It holds words.3 We count.</p>")
    assert found == ["The corpus is large. It holds words. We count."]


@pytest.mark.parametrize(
    "text",
    [
        "We ran layer2 after layer2 here.",
        "H2O and mp3 and Word2Vec stay.",
        "It rose by sigma2 again.",
        "In 1992 we left.",
    ],
)
def test_a_number_that_belongs_to_its_word_stays(text: str) -> None:
    assert paragraphs(f"<p>{text}</p>") == [text]


def test_entities_of_html_become_their_characters() -> None:
    data = tei("<div><p>Caf&eacute;&nbsp;noir</p></div>", before='<!DOCTYPE TEI SYSTEM "tei.dtd">')
    assert read_tei(data).text(abstract=False) == "Café noir"


BOMB = "".join(f'<!ENTITY b{i} "{f"&b{i - 1};" * 10}">' for i in range(1, 10))
HOSTILE = {
    "billion laughs": (
        tei("<div><p>&b9;</p></div>", before=f'<!DOCTYPE TEI [<!ENTITY b0 "ha">{BOMB}]>'),
        "declares entities",
    ),
    "external entity": (
        tei("<div><p>&x;</p></div>", before='<!DOCTYPE TEI [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
        "declares entities",
    ),
    "truncated": (tei("<div><p>Half a")[:-60], "not well-formed XML"),
    "no XML": (b"%PDF-1.5", "not well-formed XML"),
    "empty": (b"  \n", "empty"),
    "invalid UTF-8": (tei("<div><p>caf") + b"\xe9", "not valid UTF-8: byte"),
    "UTF-16": ("<TEI/>".encode("utf-16"), "UTF-16"),
    "UTF-7": (b'<?xml version="1.0" encoding="utf-7"?><TEI/>', "encoding 'utf-7'"),
    "another vocabulary": (b"<html><body/></html>", "root element is <html>"),
    "nothing written": (tei("", header=""), "no paragraph of text"),
    "deep nesting": (tei(f"<div><p>{'<hi>' * 200}x{'</hi>' * 200}</p></div>"), f"deeper than {MAX_DEPTH}"),
    "deep sentences": (tei(f"<div><p>{'<s>' * 200}x{'</s>' * 200}</p></div>"), f"deeper than {MAX_DEPTH}"),
    "a very large text": (tei(f"<div><p>{'x' * 10_500_000}</p></div>"), "Text node too long"),
    "an undeclared name": (tei("<div><p>&nothing;</p></div>"), "not defined"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused_with_the_reason(case: str) -> None:
    data, reason = HOSTILE[case]
    with pytest.raises(InputError, match=reason):
        read_tei(data)


def test_a_file_over_the_limit_is_refused_unread() -> None:
    with pytest.raises(InputError, match=f"at most {MAX_BYTES:,} are read"):
        read_tei(b"<" + b"x" * MAX_BYTES)


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="the shared GROBID fixtures are not here")
def test_real_grobid_files_give_their_text_without_names_in_citations() -> None:
    article = read_tei((FIXTURES / "2020.acl-main.207.tei.xml").read_bytes())
    text = article.text()
    assert article.title.startswith("SPECTER: Document-level Representation Learning")
    assert [author.name for author in article.authors][:2] == ["Arman Cohan", "Sergey Feldman"]
    assert 35_000 < len(text) < 45_000
    assert "(Devlin et al., 2019)" not in text
    assert "We thank Kyle Lo" not in text
    assert "[CITE]" in text
