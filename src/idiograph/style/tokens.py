"""The tokens of a text, as a patch policy sees them. No vectors here, and no tokenizer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """One text's S tokens. A token that is not kept belongs to no patch; special tokens are never kept."""

    ids: Ints  # (S,)
    chars: Ints  # (S, 2) where each token starts and ends in the text
    words: Ints  # (S,) the number of the word that each token belongs to
    keep: Bools  # (S,)
    cut: bool = False  # the text went on, but the model's window did not

    def __len__(self) -> int:
        return len(self.ids)
