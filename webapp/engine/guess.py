"""Which type a field's name suggests: first the catalogue's names and aliases, then a few habits of naming."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from webapp import limits
from webapp.engine.types.registry import find

FALLBACK_TYPES: Final = ("words", "row_number")
# The first pattern that fits and whose type exists decides; checked against the name in lower case with `_`.
NAME_PATTERNS: Final = (
    (r"(^|_)(uu|gu)?id$", "uuid"),
    (r"^(is|has|can|was)_|(^|_)(active|enabled|deleted|verified|paid)$", "boolean"),
    (r"_at$|(^|_)(timestamp|created|updated|modified|datetime)$", "datetime"),
    (r"_on$|(^|_)(date|day|birthday|dob)$", "date"),
    (r"(^|_)(qty|quantity|count|age|number|num|amount|total|score|rank|stock|size)$", "number"),
    (r"(^|_)(price|cost|fee|salary|balance)$", "currency"),
    (r"(^|_)(notes?|comments?|description|summary|remarks?|message)$", "sentences"),
    (r"(^|_)(body|text|content|bio|about)$", "paragraphs"),
    (r"(^|_)(url|link|website|homepage)$", "url"),
    (r"(^|_)(ip|ip_address)$", "ipv4"),
    (r"(^|_)(status|state|kind|category|level)$", "enum"),
    (r"(^|_)(code|sku|reference|ref)$", "regexp"),
    (r"(^|_)(company|employer|vendor|supplier)$", "company_name"),
    (r"(^|_)name$", "name"),
)
# Types that can do nothing without options, and options to begin with.
STARTER_OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "enum": {"values": ["new", "active", "closed"]},
    "regexp": {"string": "[A-Z]{3}-[0-9]{4}"},
}


def suggest_type(name: str) -> str:
    """Return the type for a field with this name; words if the name suggests none. Takes quadratic time, so only as
    much of the name is read as a valid one has."""
    name = name[: limits.MAX_NAME_CHARS]
    plain = re.sub(r"[^a-z0-9]+", "_", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()).strip("_")
    words = [word for word in plain.split("_") if word]
    for start in range(len(words)):
        kind = find("".join(words[start:]))
        if kind is not None and kind.category != "external":  # they generate nothing without a connection
            return kind.name
    for pattern, type_name in NAME_PATTERNS:
        if re.search(pattern, plain) and find(type_name) is not None:
            return type_name
    return next(item for item in FALLBACK_TYPES if find(item) is not None)
