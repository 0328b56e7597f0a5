"""A scholarly article as sections of plain paragraphs, and the rule for which sections are its prose. Knows no format."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from idiograph.corpus.citations import Citations, apply_citation_policy, check_citation_policy
from idiograph.errors import InputError, SpecError
from idiograph.spec import unknown_choice
from idiograph.types import Author, fold

MATH = "[MATH]"
Formulae = Literal["mask", "drop"]

# First words of folded headings under which nobody writes in their own manner.
_DROPPED = re.compile(
    r"(?:"
    r"acknowledg|remerciement|danksagung|agradecimient|agradeciment|ringraziament"
    r"|funding|financ|finanz|financement|sources? of (?:funding|support)"
    r"|(?:list of )?references?\b|references bibliograph|bibliogra|literatur\b|literaturverzeichnis|literature cited|referencia"
    r"|riferimenti|works cited|quellenverzeichnis"
    r"|competing|conflicts? |conflit|declaration|disclosure|interessenkonflikt"
    r"|authors?['’s]* contribution|contribution des auteur|contributions? of (?:the )?author|credit author"
    r"|(?:data|code|software|materials?)(?: and (?:data|code|software|materials?))? availability|availability|disponibilit"
    r"|supplement|supporting information|additional (?:file|information)|electronic supplementary|materiel supplementaire"
    r"|abbreviation|abreviation|nomenclature|notations?$|glossa|list of|liste? des? (?:figures|tableaux|symboles)"
    r"|ethic|consent|key\s?words?|mots[ -]cl|schlusselworter|palabras clave|parole chiave|palavras[ -]chave"
    r"|table of contents|contents$|table des matieres|sommaire|inhalt(?:sverzeichnis)?$|indice$|sommario$|index$"
    r"|about the authors?|author information|publisher['’]?s note|copyright|licen[cs]e"
    r")"
)
_ABOUT = re.compile(
    r"(?:references?|funding|ethics?|financ\w+|finanz\w+|supplement\w*|index) (?:in|of|to|as|on|for|models?|des?|du)\b"
)
_NUMBERING = re.compile(
    r"^(?:(?:section|chapter|chapitre|kapitel)\s+)?(?:[0-9]+|[ivxlc]+|[a-z])(?:[.)\s][0-9.]*)*(?:[.):]\s*|\s+)"
)
_SPACE_BEFORE = re.compile(r" (?=[.,)](?:\s|$))")
_DOI = re.compile(r"\b10\.\d{1,9}/\S{1,200}")
_LETTERS = re.compile(r"[^\W\d_]{2}")


@dataclass(frozen=True, slots=True)
class ArticleSection:
    """A heading, which may be empty, and the paragraphs under it."""

    head: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Article:
    """What an article file says: its prose, and who wrote it. `dropped` are the headings of sections left out."""

    title: str = ""
    abstract: tuple[str, ...] = ()
    sections: tuple[ArticleSection, ...] = ()
    lang: str = ""
    authors: tuple[Author, ...] = ()
    year: int | None = None
    doi: str = ""
    id: str = ""  # what identifies it everywhere: its DOI, or else its number in an archive
    licence: str = ""
    dropped: tuple[str, ...] = ()
    suggested: str = ""  # authors as the properties of a PDF name them, which is often not who wrote it

    def text(self, abstract: bool = True, heads: bool = False) -> str:
        """The paragraphs with a blank line between them; headings only when asked for."""
        parts = list(self.abstract) if abstract else []
        for section in self.sections:
            parts += ([section.head] if heads and section.head else []) + list(section.paragraphs)
        return "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class Treatment:
    """What to do with citations and formulae inside paragraphs."""

    citations: Citations = "mask"
    formulae: Formulae = "mask"

    def __post_init__(self) -> None:
        check_citation_policy(self.citations)
        if self.formulae not in get_args(Formulae):
            raise SpecError(unknown_choice("treatment of formulae", self.formulae, get_args(Formulae)))

    @property
    def formula(self) -> str:
        """What stands for a formula in the text."""
        return f" {MATH} " if self.formulae == "mask" else " "

    def finish_paragraph(self, paragraph: str) -> str:
        """A finished paragraph on one line, without the spaces that dropped elements leave before a stop."""
        return _SPACE_BEFORE.sub("", " ".join(apply_citation_policy(paragraph, self.citations).split()))


def is_dropped(head: str) -> bool:
    """Whether a section with this heading is left out.

    >>> is_dropped("7. Acknowledgements"), is_dropped("2.1 References in discourse")
    (True, False)
    """
    bare = _NUMBERING.sub("", fold(head), count=1) or fold(head)
    return len(bare) < 60 and _DROPPED.match(bare) is not None and not _is_about(bare)


def _is_about(bare: str) -> bool:
    """A heading such as "References in discourse" speaks of the thing instead of naming the section."""
    return _ABOUT.match(bare) is not None


def prose(paragraphs: Iterable[str]) -> tuple[str, ...]:
    """The paragraphs that hold at least one word."""
    return tuple(each for each in paragraphs if _LETTERS.search(each))


def year_in(text: str | None) -> int | None:
    """The year at the start of a date such as `2019-03-01`."""
    match = re.match(r"\s*((?:1[5-9]|20)\d\d)(?!\d)", text or "")
    return int(match[1]) if match else None


def bare_doi(printed: str) -> str:
    """A DOI without the address or label before it; empty if it is none.

    >>> bare_doi("https://doi.org/10.21105/jose.00090"), bare_doi("doi: 10.1/x"), bare_doi("unknown")
    ('10.21105/jose.00090', '10.1/x', '')
    """
    found = _DOI.search(printed)
    return found[0].rstrip(".,;") if found else ""


def require_tei(article: Article, kind: str) -> Article:
    """Refuse an article in which nothing was written."""
    if not article.abstract and not any(section.paragraphs for section in article.sections):
        raise InputError(f"the {kind} holds no paragraph of text")
    return article
