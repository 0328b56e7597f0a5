"""What a word is, which words are function words, and how many content words two texts share."""

import re
from collections.abc import Sequence

_MARK = r"[^\w\s]"  # one punctuation mark or symbol
WORD = re.compile(r"\w+(?:['’-]\w+)*")  # "well-known" and "don't" are one word each
TOKEN = re.compile(rf"{WORD.pattern}|{_MARK}")
# Rankers count the halves of "well-known" as two words; the published figures were made so.
SIMPLE_WORD = re.compile(r"\w+(?:['’]\w+)?")
SIMPLE_TOKEN = re.compile(rf"{SIMPLE_WORD.pattern}|{_MARK}")
BARE_WORD = re.compile(r"\w+")  # cut at every mark: what is left of a sentence that was typeset in another way
LETTER_RUN = re.compile(r"[^\W\d_]+")  # no digits
LETTER_WORD = re.compile(rf"{LETTER_RUN.pattern}(?:['’]{LETTER_RUN.pattern})*")
LETTER_TOKEN = re.compile(rf"{LETTER_RUN.pattern}(?:['’]{LETTER_RUN.pattern})?|{_MARK}")
TOPIC_WORD = re.compile(r"[^\W\d_]{3,}")  # long enough to name a thing

# The words of six languages, lower case, that a writer does not choose for the topic. They tell prose from tables and one
# language from another; short lists are enough for both. Clitics of other languages stand without their apostrophe ("l").
FUNCTION_WORDS: dict[str, frozenset[str]] = {
    "en": frozenset(
        """
        a about above across after again against all almost along already also although always am among an and another
        any are around as at away be because been before behind being below between both but by can cannot could did do
        does doing done down during each either else enough etc even ever every few first for from further get had has
        have having he hence her here hers herself him himself his how however i if in indeed instead into is it its
        itself just last least less let like many may me might mine more moreover most much must my myself near neither
        never next no nor not nothing now of off often on once one only onto or other others our ours ourselves out over
        own per perhaps quite rather same seem seems shall she should since so some such than that the their theirs them
        themselves then there therefore these they thing this those though three through throughout thus to together too
        toward towards two under unless until up upon us very via was we well were what whatever when where whereas
        whether which while who whole whom whose why will with within without would yet you your yours yourself
        """.split()
    ),
    "fr": frozenset(
        """
        a ai ainsi après au aucun aucune aussi autre autres aux avait avec avoir car ce cela celle celles celui cependant
        ces cet cette ceux chaque comme comment d dans de depuis des deux donc dont du elle elles en encore entre est et
        étaient était été être eux fait il ils j je jusqu jusque l la là laquelle le lequel les lesquels leur leurs lors
        lorsque lui m ma mais même mes moins mon n ne ni nos notre nous on ont or ou où par parce pas pendant peu peut
        peuvent plus plusieurs pour pourquoi quand que quel quelle quelques qui quoi s sa sans se selon sera ses si sien
        soit son sont sous souvent sur ta tandis tant te tel telle tels tes toi ton tous tout toute toutes très trop tu un
        une vers voici voilà vos votre vous y
        """.split()
    ),
    "de": frozenset(
        """
        aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bereits bin bis bist da
        dabei dadurch dagegen damit danach dann daran daraus darin darüber das dass dem den denen denn der deren des
        dessen die dies diese diesem diesen dieser dieses doch dort du durch ein eine einem einen einer eines einige er es
        etwa für gegen gibt haben hat hatte hier ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja je jede
        jedem jeden jeder jedoch kann kein keine können man mehr mit muss nach nicht noch nun nur ob oder ohne sehr sein
        seine seinem seinen seiner seit sich sie sind so sogar solche sollte sondern sowie über um und uns unser unter vom
        von vor war waren wäre wegen weil welche wenn werden wie wieder wir wird wo wurde wurden zu zum zur zwar zwischen
        """.split()
    ),
    "es": frozenset(
        """
        a además al algo algunos ante antes aquel así aún aunque bien cada como con contra cual cuando cuya cuyo de del
        desde después donde dos durante e el él ella ellas ellos en entonces entre era eran es esa ese eso esta está
        están estas este esto estos fue fueron ha había han hasta hay la las le les lo los más me menos mi mientras mis
        mismo mucho muy nada ni no nos nosotros nuestra nuestro o otra otras otro otros para pero poco por porque pues que
        qué quien se sea según ser si sí sido sin sino sobre solo son su sus tal también tan tanto te tiene tienen toda
        todas todo todos tras tu tus un una unas uno unos y ya yo
        """.split()
    ),
    "it": frozenset(
        """
        a ad agli ai al alla alle allo anche ancora avere aveva c che chi ci come con contro cosa cui d da dagli dai dal
        dalla dalle dei del dell della delle dello di dopo dove due e è ed era erano essere fa fra già gli ha hanno ho i
        il in infatti io l la le lei li lo loro lui ma me mentre mi mia mio molto ne né negli nei nel nell nella nelle noi
        non nostro o ogni oltre per perché però più poi prima proprio può qualche quale quali quando quanto quella quelle
        quelli quello questa queste questi questo qui quindi se sei sempre senza si sia sono sopra sua sue sugli sui sul
        sull sulla sulle suo suoi tra tu tua tutta tutte tutti tutto un una uno v vi
        """.split()
    ),
    "pt": frozenset(
        """
        a ainda além algum alguns ante antes ao aos apenas após aquela aquele aqui as às assim até bem cada com como contra
        cuja cujo da das de dela dele deles depois desde dessa desse desta deste do dois dos durante e é ela elas ele eles
        em embora enquanto entanto então entre era eram essa essas esse esses esta está estão estas este estes eu foi foram
        há isso isto já lhe mais mas me meio menos mesmo meu minha muito na não nas nem nessa nesse nesta neste no nos nós
        nossa nosso num numa o onde os ou outra outras outro outros para pela pelas pelo pelos pode podem pois por porém
        porque portanto qual quando quanto que quem se seja sem sempre ser seu seus si sido sob sobre sua suas também tão
        tem têm tinha toda todas todo todos tudo um uma umas uns você
        """.split()
    ),
}


def content_words(text: str, lang: str = "en") -> frozenset[str]:
    """The words of a text that carry its topic, lower-cased and without a plural s.

    >>> sorted(content_words("The tides and the tide of the harbours"))
    ['harbour', 'tide']
    """
    function = FUNCTION_WORDS.get(lang, frozenset())
    return frozenset(word.removesuffix("s") for word in TOPIC_WORD.findall(text.lower()) if word not in function)


def word_overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """Jaccard index of two sets of words: how many are in both, of those in either."""
    return len(a & b) / len(a | b) if a or b else 0.0


def usual_overlap(left: Sequence[str], right: Sequence[str]) -> float:
    """The overlap in content words that 19 of 20 of these pairs stay under."""
    overlaps = sorted(word_overlap(content_words(a), content_words(b)) for a, b in zip(left, right, strict=True))
    return overlaps[int(0.95 * (len(overlaps) - 1))] if overlaps else 1.0
