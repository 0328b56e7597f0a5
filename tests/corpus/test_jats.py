"""JATS articles become plain paragraphs; house style of citations does not show through."""

from pathlib import Path

import pytest

from idiograph.corpus.jats import read_jats
from idiograph.errors import InputError

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures" / "jats_pdf"

META = """
<front><article-meta><article-id pub-id-type="doi">10.1000/ants</article-id>
<title-group><article-title>On <italic>Ants</italic><xref ref-type="fn">*</xref></article-title></title-group>
<contrib-group>
 <contrib contrib-type="author"><contrib-id contrib-id-type="orcid">https://orcid.org/0000-0002</contrib-id>
  <name><surname>Roe</surname><given-names>Ada B.</given-names></name></contrib>
 <contrib contrib-type="editor"><name><surname>Editor</surname><given-names>E.</given-names></name></contrib>
 <contrib contrib-type="author"><collab>The Ant Group</collab></contrib>
</contrib-group>
<pub-date><year>2020</year></pub-date><pub-date><year>2019</year></pub-date>
<permissions><license xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="https://creativecommons.org/licenses/by/4.0/">
<license-p>Free.</license-p></license></permissions>
<abstract abstract-type="teaser"><p>Ants!</p></abstract><abstract><sec><title>Aim</title><p>We study ants.</p></sec></abstract>
</article-meta></front>
"""


def jats(body: str, meta: str = META) -> bytes:
    return f'<article xml:lang="en">{meta}<body>{body}</body><back><ack><p>Thanks.</p></ack></back></article>'.encode()


def body_text(body: str, **options: str) -> str:
    return read_jats(jats(body), **options).text(abstract=False)  # pyright: ignore[reportArgumentType]


def test_an_article_has_its_front_and_its_prose() -> None:
    article = read_jats(
        jats("<sec><title>Methods</title><p>We count.</p><sec><title>More</title><p>We wait.</p></sec></sec>")
    )
    assert (article.title, article.lang, article.year, article.doi) == ("On Ants", "en", 2019, "10.1000/ants")
    assert [(author.name, author.id) for author in article.authors] == [("Ada B. Roe", "0000-0002")]
    assert article.licence == "https://creativecommons.org/licenses/by/4.0/"
    assert article.abstract == ("We study ants.",)
    assert [(section.head, section.paragraphs) for section in article.sections] == [
        ("Methods", ("We count.",)),
        ("More", ("We wait.",)),
    ]


def test_numbered_and_named_citations_are_masked_alike() -> None:
    numbered = (
        "<p>So [<xref ref-type='bibr'>1</xref>, <xref ref-type='bibr'>2</xref>–<xref ref-type='bibr'>4</xref>].</p>"
    )
    named = "<p>So (<xref ref-type='bibr'>Roe, 2001</xref>; <xref ref-type='bibr'>Doe, 2002</xref>).</p>"
    raised = "<p>So.<sup><xref ref-type='bibr'>1</xref>,<xref ref-type='bibr'>2</xref></sup></p>"
    assert body_text(numbered) == body_text(named) == body_text(raised) == "So [CITE]."


def test_citations_may_be_kept_or_dropped() -> None:
    body = "<p>So [<xref ref-type='bibr'>1</xref>].</p>"
    assert body_text(body, citations="keep") == "So [1]."
    assert body_text(body, citations="drop") == "So."


def test_formulae_leave_a_marker_or_nothing() -> None:
    body = "<p>Let <inline-formula><math>x</math></inline-formula> be<disp-formula>y</disp-formula>.</p>"
    assert body_text(body) == "Let [MATH] be [MATH]."
    assert body_text(body, formulae="drop") == "Let be."


def test_quotations_tables_figures_and_footnotes_are_left_out() -> None:
    body = (
        "<p>Ants walk<xref ref-type='fn'>1</xref>.<fn><p>note</p></fn><disp-quote><p>Someone else.</p></disp-quote></p>"
        "<table-wrap><p>cell</p></table-wrap><fig><caption><p>An ant.</p></caption></fig>"
    )
    assert body_text(body) == "Ants walk."


def test_items_of_a_list_are_paragraphs() -> None:
    item = "<list-item><p>{}</p></list-item>"
    body = f"<p>Ants:<list>{item.format('Red ones.')}{item.format('Black ones.')}</list></p>"
    assert body_text(body) == "Ants:\n\nRed ones.\n\nBlack ones."


def test_raised_digits_stay_raised() -> None:
    assert body_text("<p>Some 10<sup>5</sup> ants, CO<sub>2</sub>.</p>") == "Some 10⁵ ants, CO2."


def test_a_dropped_section_takes_its_subsections_with_it() -> None:
    article = read_jats(
        jats("<sec><title>Funding</title><sec><title>Grants</title><p>Much.</p></sec></sec><p>Ants walk.</p>")
    )
    assert article.text(abstract=False) == "Ants walk."
    assert article.dropped == ("Funding",)


def test_the_first_article_of_a_set_is_read() -> None:
    assert read_jats(b"<set>" + jats("<p>Ants walk.</p>") + b"</set>").text(abstract=False) == "Ants walk."


def test_what_holds_no_article_is_refused() -> None:
    with pytest.raises(InputError, match="not JATS: the root element is <html>"):
        read_jats(b"<html/>")


def test_an_article_without_text_is_refused() -> None:
    with pytest.raises(InputError, match="the JATS holds no paragraph of text"):
        read_jats(jats("", meta=""))


def test_sections_nested_too_deep_are_refused() -> None:
    with pytest.raises(InputError, match="nested deeper than"):
        read_jats(jats("<sec>" * 150 + "<p>Text.</p>" + "</sec>" * 150))


def test_marks_inside_marks_cost_no_more_than_their_number() -> None:
    assert body_text(f"<p>Ants walk{'<sup>' * 100}x{'</sup>' * 100}.</p>") == "Ants walkx."


def test_lists_nested_too_deep_are_refused() -> None:
    with pytest.raises(InputError, match="nested deeper than"):
        body_text(f"<p>Ants{'<list><list-item>' * 100}x{'</list-item></list>' * 100}.</p>")


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="the shared JATS fixtures are not here")
@pytest.mark.parametrize("name", ["PMC5828200.nxml", "PMC6398430.nxml", "PMC7417471.nxml", "jose.00184.jats.xml"])
def test_real_files_are_read_with_authors_year_and_licence(name: str) -> None:
    article = read_jats((FIXTURES / name).read_bytes())
    assert article.authors
    assert article.year
    assert article.doi.startswith("10.")
    assert "creativecommons.org" in article.licence
    assert len(article.text()) > 5000
    assert not any(head in article.text(heads=True) for head in article.dropped)


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="the shared JATS fixtures are not here")
def test_no_printed_citation_is_left_in_a_real_file() -> None:
    text = read_jats((FIXTURES / "PMC6398430.nxml").read_bytes()).text()
    assert "Krause and Ruxton 2002" not in text
    assert "may also increase food competition and social complexity [CITE]." in text
