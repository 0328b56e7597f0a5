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
    """The kinds that `open`, `any` or a list such as `cc-by,cc0` lets through; None lets everything through."""
    if choice == "any":
        return None
    if choice == "open":
        return OPEN
    kinds = frozenset(part.strip().lower() for part in choice.split(","))
    for kind in sorted(kinds - KINDS.keys()):
        raise SpecError(unknown_choice("licence", kind, ["any", "open", *KINDS]))
    return kinds


def permits(choice: str, address: str) -> bool:
    """Whether a licence's address is among the chosen kinds."""
    kinds = chosen_licences(choice)
    return kinds is None or licence_kind(address) in kinds
