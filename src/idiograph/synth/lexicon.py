"""The words and sentence patterns of simulated authors: what `synth` chooses from. Data only, and the forms of a word.

A pattern is a row of slots. The words of `HABITS` carry the author (each author has their own preferences), those of
`NOUNS`, `VERBS` and `ADJECTIVES` the topic. Alternatives stand in the order of how common they are.
"""

# A slot's alternatives. One that begins with punctuation is written without a space before it; "-" is nothing at all.
HABITS: dict[str, str] = {
    "the": "the|a|this|our|that|each|its|every|any|one|such a",
    "these": "the|these|our|those|some|many|most|all|such|several|certain|both|their",
    "of": "of|in|for|with|on|from|within|across|between|under|over|behind|among|amongst|upon|throughout",
    "at": "in|with|by|after|during|without|through|before|under|despite|alongside|beyond|via|given",
    "towards": "to|towards|toward|for|about|regarding|concerning|against|as to|with respect to|in favour of|in favor of",
    "and": "and|or|as well as|but not|along with|rather than|and even",
    "comma": ",|-",
    "oxford": "-|,",
    "that": "that|which|-",
    "which": ", which|, and this|, and it|; this| – it|, something that|; in turn, it",
    "join": ", and|;|, but|, so|, yet| –|:|, though|; however,|; indeed,|, whereas|, while|, whilst",
    "because": "because|although|when|since|if|as|while|though|whereas|unless|once|even if|whilst|given that|until",
    "however": "however|therefore|moreover|in addition|thus|for example|in fact|indeed|furthermore|by contrast|hence|instead"
    "|nevertheless|as a result|of course|in general|here|then|similarly|consequently|in short|still|first|overall|again",
    "perhaps": "perhaps|it seems that|probably|possibly|it appears that|we believe that|apparently|arguably|presumably"
    "|I think that|no doubt|it is clear that|it's clear that|maybe|in our view,|there is little doubt that",
    "we": "we|they|one|I|you|the authors|others|everyone|nobody",
    "modal": "can|may|will|could|should|would|might|must|cannot|can't|did not|didn't|will not|won't|need not|used to",
    "often": "often|also|usually|only|already|rarely|always|largely|clearly|just|never|mainly|still|simply|sometimes|ever",
    "very": "very|more|rather|quite|highly|fairly|too|less|somewhat|so|truly|particularly|equally|a little|not very",
    "is": "is|was|is not|isn't|remains|seems|was not|wasn't|became|appears|can be|may be|has been|looks",
    "are": "are|were|are not|aren't|were not|weren't|have been|can be|may be|must be|haven't been|will be",
    "it is": "it is|it's|it was|it remains|it seems|it became|it is not|it isn't|it may be|it would be",
    "to": "to|in order to|so as to|not to|only to",
    "there are": "there are|there were|there remain|there may be|we have|there's no lack of|one sees|here are",
    "found": "found that|showed that|suggest that|observed that|argue that|note that|know that|assumed that|think that"
    "|recognised that|recognized that|emphasised that|emphasized that|learnt that|learned that|conclude that",
    "studied": "studied|analysed|analyzed|considered|examined|characterised|characterized|modelled|modeled|looked at"
    "|summarised|summarized|dealt with|focussed on|focused on|generalised|generalized|labelled|labeled",
    "two": "two|many|several|three|various|a few|numerous|a number of|both|a range of|five|a variety of|lots of|ten",
    "aside": "-|, however,|, in turn,|, of course,| (in part)|, for instance,| – at least here –|, too,| (again)"
    "|, then,|, in fact,",
}

# Habits that go together: one who writes "analyse" also writes "whilst", and one contraction seldom comes alone.
BRITISH = "analysed characterised modelled summarised generalised labelled emphasised recognised learnt focussed whilst amongst"
AMERICAN = "analyzed characterized modeled summarized generalized labeled emphasized recognized learned focused among"
TOGETHER: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("region", (*BRITISH.split(), "towards", "favour"), 1),
    ("region", (*AMERICAN.split(), "toward", "favor"), -1),
    ("ease", ("can't", "didn't", "won't", "isn't", "wasn't", "aren't", "weren't", "haven't", "it's", "there's"), 1),
    ("ease", ("cannot", "did not", "will not", "is not", "was not", "are not", "were not"), -1),
)

# What a sentence is made of: an opening, a clause and up to three tails, each a row of slots. "-" is an empty one.
OPENINGS = (
    "-",
    "{however}{comma}",
    "{perhaps}",
    "{at} {these} {adjective} {nouns}{comma}",
    "{because} {the} {noun} {verbed} {these} {nouns},",
    "{to} {verb} {the} {noun}{comma}",
)
CLAUSES = (
    "{the} {adjective} {noun} {verbed} {the} {noun}",
    "{we} {studied} {the} {noun} {of} {the} {adjective} {noun}",
    "{the} {noun} {of} {these} {nouns} {is} {very} {adjective}",
    "{these} {adjective} {nouns} {are} {often} {verbed} by {the} {noun}",
    "{we} {modal} {verb} {the} {noun} {of} {these} {nouns}",
    "{the} {noun}{aside} {verbs} {the} {adjective} {noun}",
    "{it is} {adjective} {to} {verb} {these} {nouns}",
    "{we} {found} {the} {noun} {modal} {verb} {these} {adjective} {nouns}",
    "{there are} {two} {adjective} {nouns} {of} {the} {noun}",
    "{the} {noun} {that} {we} {verbed} {is} {adjective}",
    "{these} {nouns}{aside} {often} {verbed} {the} {adjective} {noun}",
    "{two} {nouns}, {nouns}{oxford} {and} {nouns} {modal} {verb} {the} {noun}",
)
TAILS = (
    "{at} {the} {adjective} {noun}",
    "{because} {the} {noun} {verbed} {these} {nouns}",
    "{which} {modal} {verb} {the} {noun}",
    "{towards} {these} {adjective} {nouns}",
    "{to} {verb} {the} {noun}",
    "{join} {we} {often} {verbed} {the} {noun} {towards} {these} {nouns}",
    "{join} {it is} {very} {adjective}",
    "{and} {these} {nouns}",
)
LENGTHS = ("1", "0", "2", "3")  # tails of a sentence
TITLE = "{adjective} {nouns} {of} {the} {noun}"

# Regular ones only, so that the forms below are right; none that takes "a" before a written vowel or "an" before none.
NOUNS = """
model system method field process structure network sample measure surface region rate state pattern signal
layer source factor element function group theory event member market policy protein cell river forest soil ocean
storm cloud crystal atom particle photon electron magnet current circuit sensor engine turbine bridge road city
village school teacher student parent doctor patient nurse hospital vaccine virus gene genome tissue muscle nerve
neuron brain memory emotion belief argument concept language dialect vowel verb sentence text novel poem reader
letter archive museum painting portrait sculpture temple church empire kingdom treaty battle soldier sailor ship cargo
merchant tariff price wage tax loan bank investor company factory worker manager contract court judge lawyer statute
crime witness voter party parliament minister reform border migrant refugee camp farm farmer crop seed harvest orchard
garden flower insect beetle spider bird nest egg reef island glacier valley mountain desert lake canal dam reservoir
pump filter membrane solvent polymer catalyst reagent compound metal alloy steel wire lens mirror laser beam camera
image pixel screen robot drone satellite planet comet galaxy star orbit rocket telescope frequency wave tide sediment
fossil mineral quarry mine shaft tunnel train station passenger ticket timetable server database query index token
grammar parser compiler program algorithm graph tree vector tensor proof theorem lemma axiom equation integral limit
boundary domain cluster estimate variance error threshold parameter experiment laboratory survey interview
questionnaire respondent household income budget debt audit report journal article citation chapter footnote
translation song melody rhythm choir violin drum actor stage costume film dancer athlete coach match stadium referee
recipe kitchen baker bread cheese vineyard bottle label engineer architect tower roof window brick corridor elevator
lamp battery motor gear valve boiler furnace chimney pipeline tanker
"""
VERBS = """
affect produce measure follow change reduce improve limit support increase shape define predict explain extend replace
test compare connect describe detect generate reveal remove combine collect maintain reach require influence resemble
protect absorb convert deliver design develop discover divide enter exceed expand expose filter form govern handle
impose inspect inform install join launch load mark match monitor move narrow obtain operate perform preserve prevent
process promote question record reflect regulate reject relate repair report resist restore retain reverse reward
sample secure select separate serve simulate solve sort store stretch supply surround sustain track trade train
transform trace trust validate visit weaken widen yield balance borrow capture carry challenge deform delay
dissolve distort elect enclose enrich erode evaluate fasten flood heat illustrate imitate inherit invade isolate
kindle lower magnify nourish obey
"""
ADJECTIVES = """
new large small important local simple strong common different complex stable recent early late high low long
deep natural human social public private legal formal moral rural coastal marine tropical polar solar lunar
thermal chemical organic mineral metallic magnetic electric optical acoustic digital random linear convex finite
discrete dense sparse robust fragile flexible rigid elastic porous smooth rough sharp bright dark pale warm cold wet
dry fertile barren ancient medieval modern colonial imperial royal sacred secular popular foreign domestic global
regional federal fiscal monetary annual seasonal daily rapid slow gradual sudden violent peaceful hostile friendly
lonely clever curious cautious generous severe mild chronic acute benign viral bacterial genetic cellular neural
cognitive verbal written spoken poetic comic tragic narrative visual musical theatrical athletic industrial commercial
agricultural technical practical theoretical empirical statistical causal neutral positive negative partial complete
hidden visible remote adjacent internal external upper lower central marginal typical rare unexpected expensive cheap
efficient wasteful
"""


def plural(noun: str) -> str:
    """
    >>> plural("theory"), plural("loss"), plural("day")
    ('theories', 'losses', 'days')
    """
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")


def past(verb: str) -> str:
    """
    >>> past("use"), past("carry"), past("follow")
    ('used', 'carried', 'followed')
    """
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + ("d" if verb.endswith("e") else "ed")
