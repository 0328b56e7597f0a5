"""Licences as HAL writes them, by the kinds that people choose from. Says what a licence is, not what the law says."""

import re

from idiograph.errors import SpecError
from idiograph.spec import unknown_choice

# Addresses without their scheme: HAL has both http and https, and Creative Commons with and without a version.
KINDS: dict[str, tuple[str, ...]] = {
    "cc-by": ("creativecommons.org/licenses/by/",),
    "cc-by-sa": ("creativecommons.org/licenses/by-sa/",),
    "cc-by-nc": ("creativecommons.org/licenses/by-nc/",),
    "cc-by-nd": ("creativecommons.org/licenses/by-nd/",),
    "cc-by-nc-sa": ("creativecommons.org/licenses/by-nc-sa/",),
    "cc-by-nc-nd": ("creativecommons.org/licenses/by-nc-nd/",),
    "cc0": ("creativecommons.org/publicdomain/zero/",),
    "public-domain": (
        "creativecommons.org/publicdomain/mark/",
        "hal.archives-ouvertes.fr/licences/publicDomain/",
        "hal.science/licences/publicDomain/",
    ),
    "etalab": ("hal.archives-ouvertes.fr/licences/etalab/", "hal.science/licences/etalab/"),
    "copyright": ("hal.archives-ouvertes.fr/licences/copyright/", "hal.science/licences/copyright/"),
}
SPOKEN = {  # other names that people give to a kind
    **{kind.removeprefix("cc-"): kind for kind in KINDS if kind.startswith("cc-")},
    **{kind.replace("nc-nd", "nd-nc"): kind for kind in KINDS if "nc-nd" in kind},
    "zero": "cc0",
    "cc-0": "cc0",
    "cc-zero": "cc0",
    "pd": "public-domain",
    "publicdomain": "public-domain",
    "pdm": "public-domain",
    "licence-ouverte": "etalab",
    "all-rights-reserved": "copyright",
}
OPEN = frozenset({"cc-by", "cc-by-sa", "cc0", "public-domain", "etalab"})


def licence_kind(address: str) -> str:
    """The kind of a licence's address: `other` for one that we do not know, empty for none.

    >>> licence_kind("http://creativecommons.org/licenses/by/"), licence_kind("https://creativecommons.org/licenses/by/4.0")
    ('cc-by', 'cc-by')
    """
    bare = re.sub(r"^https?://(www\.)?", "", address.strip().lower()).rstrip("/") + "/"
    if bare == "/":
        return ""
    return next((kind for kind, heads in KINDS.items() if bare.startswith(tuple(map(str.lower, heads)))), "other")


def chosen_licences(choice: str) -> frozenset[str] | None:
    """The kinds that `open`, `any` or a list such as `by,cc0` lets through; None lets everything through.

    >>> sorted(chosen_licences("by, CC BY-SA 4.0, https://creativecommons.org/publicdomain/zero/1.0/"))
    ['cc-by', 'cc-by-sa', 'cc0']
    """
    if choice.strip().lower() == "any":
        return None
    kinds: set[str] = set()
    for part in choice.split(","):
        kinds |= OPEN if part.strip().lower() == "open" else {named_licence(part)}
    return frozenset(kinds)


def named_licence(name: str) -> str:
    """The kind that a person means by a short name, a full one with its version, or an address."""
    bare = re.sub(r"[\s_]+", "-", name.strip().lower())
    kind = licence_kind(bare) if "/" in bare else re.sub(r"-v?\d(?:\.\d)?$", "", bare) if bare != "cc-0" else "cc0"
    kind = SPOKEN.get(kind, kind)
    if kind not in KINDS:
        raise SpecError(unknown_choice("licence", name.strip(), ["any", "open", *KINDS]))
    return kind


def permits(choice: str, address: str) -> bool:
    """Whether a licence's address is among the chosen kinds."""
    kinds = chosen_licences(choice)
    return kinds is None or licence_kind(address) in kinds
