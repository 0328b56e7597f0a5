"""Plain text is repaired and its citations masked; what only looks like a citation stays."""

import time
from pathlib import Path

import ftfy
import pytest

from idiograph.corpus.clean import clean_text, repair, tidy_space, without_cover
from idiograph.errors import SpecError

HAL_PAIRS = Path(__file__).parents[3] / "shared" / "fixtures" / "hal" / "halvest_contrastive_pairs_100.jsonl"


@pytest.mark.parametrize(
    ("printed", "masked"),
    [
        ("It is known (Smith et al., 2001; Doe, 2002).", "It is known [CITE]."),
        ("As in [3, 5-7] and [9].", "As in [CITE] and [CITE]."),
        ("Models [2], [18] and others.", "Models [CITE] and others."),
        ("Smith et al. (2001, 2003) show it.", "[CITE] show it."),
        ("However, Smith, Doe, and Roe (2001) did.", "However, [CITE] did."),
        ("Jiang & Li (2015) define it.", "[CITE] define it."),
        ("As He et al. found.", "As [CITE] found."),
        ("See (e.g., de Napoles et al., 2004).", "See (e.g., [CITE])."),
        ("So (Figures 5 and 6; Mahon et al., 2007).", "So (Figures 5 and 6; [CITE])."),
        ("So (as described in [Kirby et al., 2012a, 2012b]).", "So (as described in [CITE])."),
        ("So (De Lozanne and Spudich, 1987).", "So [CITE]."),
        ("So (O'Neill & D'Alessio, 2011: 23-25).", "So [CITE]."),
        ("So (Smith, unpublished data).", "So [CITE]."),
        ("Nordh and Zanuttini [24] did.", "[CITE] did."),
        ("By [START_REF] Smith | Genetic search[END_REF] it is.", "By [CITE] it is."),
        ("Un tel disease¹², on dit.", "Un tel disease [CITE], on dit."),
        ("Selon van der Berg (1999), oui.", "Selon [CITE], oui."),
    ],
)
def test_printed_citations_are_masked(printed: str, masked: str) -> None:
    assert clean_text(printed) == masked


@pytest.mark.parametrize(
    "text",
    [
        "With a weight α ∈ [0, 1] it works.",
        "The interval [1, 5] is closed.",
        "We set nd1:= [1] and nd2:= [2] here.",
        "The sets {[1], [3], [4, 5]} differ.",
        "Take a[1] and f(x)[2] first.",
        "In May (2012) it rained (in September 2014).",
        "The years (1957–1965) were dry.",
        "See Table (2010) and (Figure 2001).",
        "It has (N = 2000) rows.",
        "The workshop (OM-2012) was held in Belgium (30 June – 4 July 2008).",
        "It covers 5 m² and 3 km².",
        "People (which was founded in 1996) came.",
        "He let alone what others said.",
        "The year 2001 was warm (Section 3).",
        "(2054–2068) is the sequence.",
    ],
)
def test_what_is_no_citation_is_not_masked(text: str) -> None:
    assert clean_text(text) == text


def test_citations_may_be_kept() -> None:
    assert clean_text("It is so (Smith, 2001).", citations="keep") == "It is so (Smith, 2001)."


def test_dropped_citations_leave_no_empty_brackets() -> None:
    assert clean_text("It is so (see Smith, 2001; Doe, 2002), we say.", citations="drop") == "It is so, we say."


def test_french_spaces_before_punctuation_survive() -> None:
    assert clean_text("Est-ce vrai (Dupont, 2001) ? Oui !", citations="drop") == "Est-ce vrai ? Oui !"


def test_masking_twice_changes_nothing() -> None:
    once = clean_text("So (Smith et al., 2001; see Table 3), and Doe (2002) [4].")
    assert clean_text(once) == once


def test_an_unknown_treatment_is_refused() -> None:
    with pytest.raises(SpecError, match="choose from drop, keep, mask"):
        clean_text("Text.", citations="hide")  # pyright: ignore[reportArgumentType]


def test_mojibake_ligatures_entities_and_curled_quotes_are_mended() -> None:
    assert repair("lâ€™eﬀet &amp; “çà” sÃ³") == 'l\'effet & "çà" só'


def test_marks_of_direction_controls_and_soft_hyphens_go() -> None:
    assert repair("a\u202bb\u200fc\x07d\u00ade\ufeff") == "abcde"


def test_the_text_is_in_composed_form() -> None:
    assert repair("e\u0301te\u0301") == "été"


def test_no_more_than_one_blank_line_and_single_spaces() -> None:
    assert tidy_space("a  b \n \n\n\n c\t d ") == "a b\n\nc d"


def test_repair_agrees_with_ftfy_on_lines_that_it_skips() -> None:
    lines = [f"Plain line {i} – with “quotes” and é, ü or ñ…" for i in range(50)]
    assert repair("\n".join(lines)) == ftfy.fix_text("\n".join(lines))


@pytest.mark.parametrize(
    "unit", [" ", "\n", "(", "[1,", "Smith and ", "(1999 ", "éà", "( see, ", "HAL is a multidisciplinary ", "<a ", "A."]
)
def test_the_cost_of_cleaning_is_linear_whatever_is_repeated(unit: str) -> None:
    began = time.perf_counter()
    clean_text("HAL " + unit * (100_000 // len(unit)), citations="drop")
    assert time.perf_counter() - began < 5


COVER = """Title of a paper
To cite this version: Jean Dupont. Title of a paper. Journal, 2019,
3 (4), pp.5. 10.1000/xyz. hal-02498602v2
HAL Id: hal-02498602
https://hal.science/hal-02498602v2
Submitted on 4 Mar 2020

HAL is a multi-disciplinary open access archive for the deposit and dissemination of sci-entific research documents,
whether they are published or not. The documents may come from teaching and research institutions in France or
abroad, or from public or private research centers.

L’archive ouverte pluridisciplinaire HAL, est destinée au dépôt et à la diffusion de documents scientifiques de niveau
recherche, publiés ou non, émanant des établissements d’enseignement et de recherche français ou étrangers, des
laboratoires publics ou privés.

Distributed under a Creative Commons Attribution 4.0 International License

The body begins here."""


def test_the_cover_page_of_hal_is_removed_in_both_languages() -> None:
    assert clean_text(COVER) == "Title of a paper\n\nThe body begins here."


def test_a_paper_about_hal_keeps_its_sentences() -> None:
    text = "HAL is an archive that we studied. We sent documents to HAL in 2019, published or not."
    assert without_cover(text) == text


@pytest.mark.skipif(not HAL_PAIRS.is_file(), reason="the shared HALvest pairs are not here")
def test_no_reference_mark_of_halvest_survives() -> None:
    import json

    rows = [json.loads(line) for line in HAL_PAIRS.read_text(encoding="utf-8").splitlines()]
    cleaned = [clean_text(row[side]) for row in rows for side in ("query_text", "passage_text")]
    assert any("[CITE]" in text for text in cleaned)
    assert not any("[START_REF]" in text and "[END_REF]" in text for text in cleaned)
