"""TEI → filtered text, one core: our rules against the same rules as datatrove filters, on the same input, one process.

    python benchmarks/filters.py FOLDER_WITH_TEI [--documents 60]

datatrove has no reader of TEI, so it is handed our text, and both sides pay for reading it: the first ratio is that of
the whole line, the second that of the rules alone. Its rules use its own word tokenizer, as its own filters do, once as
one filter a rule (its idiom) and once as a single filter that tokenizes once (the best that it can do).
Needs `pip install "datatrove[processing]"` for the peer; without it only our numbers are printed.
"""

# ruff: noqa: ARG005  (every rule takes the text and its words)
import argparse
import math
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from idiograph.corpus import filters
from idiograph.corpus.filters import document_fault, span_fault
from idiograph.corpus.tei import read_tei
from idiograph.text.words import FUNCTION_WORDS

SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z])")
ROUNDS = 3


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path, nargs="?")
    arguments.add_argument("--documents", type=int, default=60)
    given = arguments.parse_args()
    files = [path.read_bytes() for path in sorted(given.folder.glob("*.xml"))] if given.folder else []
    if not files:
        print("name a folder with TEI files: python benchmarks/filters.py FOLDER")
        return
    files = [distinct(data, i) for i, data in enumerate(islice(cycle(files), given.documents))]
    texts = [read_tei(data).text() for data in files]
    spans = [span for text in texts for span in passages(text)]
    megabytes = sum(map(len, files)) / 1e6
    print(
        f"{len(files)} TEI files, {megabytes:.1f} MB of TEI, {sum(map(len, texts)) / 1e6:.1f} MB of text, {len(spans)} spans"
    )

    reading = best(lambda: [read_tei(data).text() for data in files])
    documents = best(lambda: [document_fault(text) for text in texts])
    passing = best(lambda: [span_fault(span) for span in spans])
    row("TEI → text", len(files), megabytes, reading)
    row("TEI → text → seven document rules", len(files), megabytes, reading + documents)
    row("TEI → text → span rules", len(files), megabytes, reading + passing)
    try:
        peers = peer_filters()
    except ImportError as error:
        print(f"datatrove is not here ({error}); pip install 'datatrove[processing]'")
        return
    for name, (steps, inputs, ours) in peers(texts, spans, documents, passing).items():
        theirs = best(steps, rounds=1)
        rules, line = theirs / ours, (reading + theirs) / (reading + ours)
        print(
            f"{name}: {theirs / len(inputs) * 1e6:.0f} µs a text, ours {ours / len(inputs) * 1e6:.0f} µs: "
            f"rules {rules:.1f}x, whole line {line:.1f}x"
        )


def distinct(data: bytes, number: int) -> bytes:
    """A copy that no cache of texts has seen: datatrove keeps the words of the last five."""
    return data.replace(b"<body>", f"<body><div><p>This is copy number {number} of the paper.</p></div>".encode(), 1)


def passages(text: str, size: int = 4) -> Iterator[str]:
    """Every run of four sentences of a paragraph, without overlap."""
    for paragraph in text.split("\n\n"):
        sentences = SENTENCE.split(paragraph)
        for start in range(0, len(sentences) - size + 1, size):
            yield " ".join(sentences[start : start + size])


def best(work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Seconds of the fastest round."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def row(name: str, documents: int, megabytes: float, seconds: float) -> None:
    print(
        f"{name}: {documents / seconds:,.0f} documents/s, {megabytes / seconds:.1f} MB of TEI/s; "
        f"778,000 documents take {778_000 * seconds / documents / 3600:.1f} h on one core"
    )


def peer_filters() -> Callable[..., dict[str, tuple[Callable[[], Any], list[str], float]]]:
    """The same rules in datatrove; the decisions are checked against ours."""
    from datatrove.data import Document
    from datatrove.pipeline.filters.base_filter import BaseFilter
    from datatrove.utils.text import split_into_sentences, split_into_words

    single = single_filter()

    def run(steps: list[BaseFilter], inputs: Iterable[str]) -> set[str]:
        stream: Any = (Document(text=text, id=str(i)) for i, text in enumerate(inputs))
        for step in steps:
            stream = step.run(stream)
        return {document.id for document in stream}

    def peers(
        texts: list[str], spans: list[str], documents: float, passing: float
    ) -> dict[str, tuple[Callable[[], Any], list[str], float]]:
        split_into_words("Warm up.", "eng")
        span_rules = [*SPAN_TWINS, lambda text, words: uneven(split_into_sentences(text, "eng"))]
        agree("document", texts, document_fault, run([single(DOCUMENT_TWINS)], texts))
        agree("span", spans, span_fault, run([single(span_rules)], spans))
        return {
            "document rules, datatrove, a filter a rule": (
                lambda: run([single([rule]) for rule in DOCUMENT_TWINS], texts),
                texts,
                documents,
            ),
            "document rules, datatrove, one filter": (lambda: run([single(DOCUMENT_TWINS)], texts), texts, documents),
            "span rules, datatrove, a filter a rule": (
                lambda: run([single([rule]) for rule in span_rules], spans),
                spans,
                passing,
            ),
            "span rules, datatrove, one filter": (lambda: run([single(span_rules)], spans), spans, passing),
        }

    return peers


def single_filter() -> type:
    """A datatrove filter that applies rules to words split once."""
    from datatrove.data import Document
    from datatrove.pipeline.filters.base_filter import BaseFilter
    from datatrove.utils.text import split_into_words

    class Single(BaseFilter):
        def __init__(self, rules: list[Callable[[str, list[str]], str | None]]) -> None:
            super().__init__()
            self.rules = rules

        def filter(self, doc: Document) -> bool | tuple[bool, str]:
            words = split_into_words(doc.text, "eng")
            for rule in self.rules:
                if reason := rule(doc.text, words):
                    return False, reason
            return True

    return Single


def agree(kind: str, inputs: list[str], ours: Callable[[str], str | None], theirs: set[str]) -> None:
    same = sum((ours(text) is None) == (str(i) in theirs) for i, text in enumerate(inputs))
    print(f"{kind} decisions that agree (the tokenizers differ): {same / len(inputs):.1%} of {len(inputs)}")


# The rules as one would write them for datatrove: over its words, one generator expression each.
DOCUMENT_TWINS: list[Callable[[str, list[str]], str | None]] = [
    lambda text, words: "words" if len(text.split()) < filters.MIN_DOCUMENT_WORDS else None,
    lambda text, words: (
        "caps" if sum(w.isupper() for w in words) > filters.MAX_DOCUMENT_ALL_CAPS * len(words) else None
    ),
    lambda text, words: "alpha" if sum(not any(c.isalpha() for c in w) for w in words) > 0.6 * len(words) else None,
    lambda text, words: "lorem" if 2 * text.lower().count("lorem ipsum") > 0.2 * len(words) else None,
    lambda text, words: "short" if sum(map(len, words)) < filters.MIN_MEAN_WORD_LENGTH * len(words) else None,
    lambda text, words: None if any(w.lower() in FUNCTION_WORDS["en"] for w in words) else "stop",
    lambda text, words: "long" if len(words) < 0.2 * sum((len(w) + 4) // 5 for w in words) else None,
]


def uneven(sentences: list[str]) -> str | None:
    lengths = [len(sentence.split()) for sentence in sentences]
    if len(lengths) < 2 or statistics.fmean(lengths) < filters.MIN_LENGTH_FOR_VARIATION:
        return None
    return "uneven" if statistics.stdev(lengths) > filters.MAX_LENGTH_VARIATION * statistics.fmean(lengths) else None


def entropy(words: list[str]) -> float:
    return -sum(n / len(words) * math.log(n / len(words)) for n in Counter(w.lower() for w in words).values())


SPAN_TWINS: list[Callable[[str, list[str]], str | None]] = [
    lambda text, words: "tab" if "\t" in text else None,
    lambda text, words: "address" if "@" in text else None,
    lambda text, words: None if text[:1].isupper() or text[:1].isdigit() else "start",
    lambda text, words: None if text.endswith((".", "?", "!", '"', "'")) else "end",
    lambda text, words: (
        "brackets" if text.count("(") != text.count(")") or text.count("[") != text.count("]") else None
    ),
    lambda text, words: "web" if re.search(r"https?:|ftp:|www\.|<[^<>]*>", text, re.I) else None,
    lambda text, words: "header" if re.search(r"\bkey\s?words?\b|a b s t r a c t", text, re.I) else None,
    lambda text, words: "math" if sum(c in "*∀≡→∧√ΣΠθωμλ_^<>|≥≤±≈≠" for c in text) > 0.05 * len(text) else None,
    lambda text, words: "digits" if sum(c.isdigit() for c in text) > 0.15 * sum(c.isalpha() for c in text) else None,
    lambda text, words: "symbols" if len(re.findall(r"[^A-Za-zÀ-ú\s\d.,'\"!?]", text)) > 0.3 * len(text) else None,
    lambda text, words: "words" if sum(w.isalpha() for w in words) < filters.MIN_ALPHABETIC_WORDS else None,
    lambda text, words: "stop" if sum(w.lower() in FUNCTION_WORDS["en"] for w in words) < 0.05 * len(words) else None,
    lambda text, words: "single" if sum(len(w) == 1 and w.isalpha() for w in words) > 0.2 * len(words) else None,
    lambda text, words: "caps" if sum(len(w) > 1 and w.isupper() for w in words) > 0.4 * len(words) else None,
    lambda text, words: "variety" if entropy(words) < filters.MIN_ENTROPY else None,
]


if __name__ == "__main__":
    main()
