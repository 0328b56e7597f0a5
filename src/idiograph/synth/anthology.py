"""The built-in corpus: sixty short essays by twelve invented writers on six topics, written for idiograph.

Every writer has five of the six topics, every topic ten of the twelve writers, so that topic says nothing about the
writer. The habits are real, the facts in the essays are not to be relied on.
"""

from collections.abc import Iterator
from importlib.resources import files

from idiograph.types import Author, Document


def anthology() -> Iterator[Document]:
    """The essays, by writer and topic."""
    root = files("idiograph.corpus") / "essays"
    for writer in sorted((w for w in root.iterdir() if w.is_dir()), key=lambda w: w.name):
        name = writer.name.replace("-", " ").title()
        for essay in sorted(writer.iterdir(), key=lambda e: e.name):
            title, _, text = essay.read_text(encoding="utf-8").partition("\n")
            topic = essay.name.removesuffix(".txt")
            yield Document(
                id=f"{writer.name}/{topic}",
                text=text.strip(),
                authors=(Author(name, writer.name),),
                domains=(topic,),
                lang="en",
                title=title.strip(),
                year=2026,
                licence="Apache-2.0",
                source="anthology",
            )
