"""How many tokens a text has for a tokenizer of somebody's choice: any `tokenizer.json`, without the model that it is of."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from idiograph.errors import InputError

if TYPE_CHECKING:  # most work needs no tokenizer
    from tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class SubwordCounter:
    """Counts tokens without special ones. It can be sent to other processes, each of which opens the file once."""

    path: str

    def __call__(self, text: str, lang: str = "") -> int:  # noqa: ARG002  (a measure of a text is given its language)
        return len(open_subwords(self.path).encode(text, add_special_tokens=False).ids)


@lru_cache(maxsize=4)
def open_subwords(path: str) -> "Tokenizer":
    """The tokenizer in a file, or in a model folder; texts are not cut."""
    from tokenizers import Tokenizer

    file = Path(path) / "tokenizer.json" if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise InputError(f"there is no tokenizer '{file}'; give a tokenizer.json, or a model folder with one")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing more special
        raise InputError(f"'{file}' is no tokenizer: {str(error)[:200]}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
