"""Which columns of a sample are about persons: by their names beside the table's, and by what their values show.

Names are read as when a table becomes a template (`inferred_names`), values by shapes with checksums and by the lists
of names. Both together are sure, a checksum nearly so, a name without values is a guess. The proposal is a field type
and a masking that a template takes as they are. No value of the sample is in the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from webapp import limits
from webapp.connectors.shape import Column, Entity
from webapp.engine.data.vocabulary import Vocabulary
from webapp.services import inferred_names, personal_values
from webapp.services.column_asked import Asked
from webapp.services.conditions import Rule
from webapp.services.personal_values import Test

_BOTH, _CHECKED, _SHAPED, _LISTED, _NAMED, _DOUBTED, _NOBODY = 0.99, 0.95, 0.9, 0.75, 0.7, 0.55, 0.4
_MOST: Final = 0.8  # chosen: the share of values that show a kind
_SOME: Final = 0.5  # chosen: enough where the name says so too
_LISTS: Final = 0.6  # chosen: no list has all names
_CHANCE: Final = 0.1  # chosen: values that are wrong in any table
_FEW: Final = 3  # chosen: fewer different values of a list are chance
_INSIDE: Final = 0.02  # chosen: the share of texts with something personal in them that makes the column so
_PROSE: Final = 20  # chosen: characters of a text in which something may stand


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of personal value, by the field type that stands for it."""

    type: str
    told: str
    strategy: str
    confidence: float
    """Of values alone."""


_REPLACE, _PRESERVE = "replace", "format_preserve"
KINDS: Final[Mapping[str, Kind]] = {
    "email": Kind("email", "e-mail addresses", _REPLACE, _SHAPED),
    "iban": Kind("iban", "IBANs", _PRESERVE, _CHECKED),
    "credit_card_number": Kind("credit_card_number", "card numbers", _PRESERVE, _CHECKED),
    "ssn": Kind("ssn", "social security numbers", _PRESERVE, _SHAPED),
    "ip_address": Kind("ipv4", "IP addresses", _REPLACE, _SHAPED),
    "mac_address": Kind("mac_address", "MAC addresses", _REPLACE, _SHAPED),
    "phone_number": Kind("phone_number", "telephone numbers", _PRESERVE, _SHAPED),
    "street_address": Kind("street_address", "addresses", _REPLACE, _LISTED),
    "name": Kind("name", "names of persons", _REPLACE, _LISTED),
    "first_name": Kind("first_name", "first names", _REPLACE, _LISTED),
    "last_name": Kind("last_name", "last names", _REPLACE, _LISTED),
    "date_of_birth": Kind("date_of_birth", "dates of birth", "shift", 0.0),
    "username": Kind("username", "user names", _REPLACE, 0.0),
    "password": Kind("password", "passwords", "redact", 0.0),
    "city": Kind("city", "places of residence", _REPLACE, 0.0),
    "zip_code": Kind("zip_code", "postal codes", _PRESERVE, 0.0),
    "account_number": Kind("account_number", "account numbers", _PRESERVE, 0.0),
    "tax_id": Kind("tax_id", "tax numbers", _PRESERVE, 0.0),
    "cvv": Kind("cvv", "security codes of cards", "redact", 0.0),
    "age": Kind("age", "ages", _REPLACE, 0.0),
    "gender": Kind("gender", "genders", _REPLACE, 0.0),
    "location": Kind("coordinates", "places on the map", _REPLACE, 0.0),
    "free_text": Kind("sentences", "free text", "redact", 0.0),
}
_BY_TYPE: Final = {
    **{kind: kind for kind in KINDS},
    **dict.fromkeys(("safe_email", "company_email"), "email"),
    **dict.fromkeys(("ipv4", "ipv6"), "ip_address"),
    **dict.fromkeys(("mobile",), "phone_number"),
    **dict.fromkeys(("address", "street_name"), "street_address"),
    **dict.fromkeys(("middle_name",), "first_name"),
    **dict.fromkeys(("nhs_number", "passport_number"), "ssn"),
    **dict.fromkeys(("sex",), "gender"),
    **dict.fromkeys(("latitude", "longitude", "coordinates"), "location"),
}
_NOT_BY_NAME: Final = frozenset({"free_text"})
_OF_WHOM: Final = frozenset({"city", "zip_code", "age", "gender", "location"})
"""Personal only in a table that tells of persons."""


@dataclass(frozen=True, slots=True)
class Found:
    """One column: `kind` None where nothing shows a person. `type` and `masking` go into a field as they are."""

    name: str
    kind: str | None
    sensitive: bool
    confidence: float
    reason: str
    type: str | None = None
    masking: dict[str, Any] | None = None


def classify(table: str, columns: Mapping[str, Sequence[Any]], vocabulary: Vocabulary) -> list[Found]:
    """The columns of a sample: names to values, blanks as None. ``table`` may be empty."""
    entity = Entity(
        table or "rows", (table or "rows",), tuple(Column(one, "text", "text") for one in columns)
    )
    made = [_column(entity, field, columns[field.name], vocabulary) for field in entity.fields]
    of_persons = any(one.sensitive and one.kind not in _OF_WHOM for one in made)
    made = [one if of_persons or one.kind not in _OF_WHOM else _of_nobody(one) for one in made]
    return [_with_person(one, _person_of(columns)) for one in _of_one_place(made)]


def _of_one_place(made: list[Found]) -> list[Found]:
    """Postal codes beside places of residence are replaced with them, so that the two agree."""
    if not any(one.kind == "city" and one.sensitive for one in made):
        return made
    return [
        replace(one, masking={"strategy": _REPLACE}) if one.kind == "zip_code" and one.sensitive else one
        for one in made
    ]


def _column(entity: Entity, column: Column, values: Sequence[Any], vocabulary: Vocabulary) -> Found:
    texts = _texts(values)
    asked = Asked(entity, column, Rule(), texts, len(values) - len(texts), False, False, vocabulary)
    named = _BY_TYPE.get(inferred_names.meant(asked).type) if column.name.strip() else None
    if named in _NOT_BY_NAME:
        named = None
    shown, share = _shown(list(dict.fromkeys(texts)), named, vocabulary)
    if shown is not None and (named in (None, shown) or KINDS[shown].confidence >= _SHAPED):
        kind = KINDS[shown]
        told = f"{share:.0%} of the values are {kind.told}."
        if named == shown:
            return _found(column.name, shown, _BOTH, f"The name says so, and {told}")
        return _found(column.name, shown, kind.confidence * min(1.0, share + _CHANCE), told)
    return _of_text(column.name, texts) if named is None else _by_name(column.name, named, texts)


def _by_name(name: str, kind: str, texts: Sequence[str]) -> Found:
    told = f"The name suggests {KINDS[kind].told}"
    if not texts:
        return _found(name, kind, _NAMED, f"{told}; the sample has no values of it.")
    if kind in _TESTS or kind in _LISTED_KINDS:
        return _found(name, kind, _DOUBTED, f"{told}; few values look like it.")
    return _found(name, kind, _NAMED, f"{told}.")


def _of_text(name: str, texts: Sequence[str]) -> Found:
    inside = [
        what for text in texts if len(text) >= _PROSE and (what := personal_values.inside(text)) is not None
    ]
    if inside and len(inside) >= _INSIDE * len(texts):
        told = f"{len(inside):,} of {len(texts):,} texts have {inside[0]} or the like in them."
        return _found(name, "free_text", _LISTED, told)
    if not texts:
        return Found(name, None, False, _SOME, "It has no values, and its name tells nothing.")
    return Found(name, None, False, _SHAPED, "Neither its name nor its values tell of a person.")


def _found(name: str, kind: str, confidence: float, reason: str) -> Found:
    known = KINDS[kind]
    return Found(name, kind, True, round(confidence, 2), reason, known.type, {"strategy": known.strategy})


def _of_nobody(found: Found) -> Found:
    told = f"{found.reason} Nothing else in the sample tells of a person."
    return Found(found.name, found.kind, False, _NOBODY, told, found.type)


# --- Values -------------------------------------------------------------------------------------------------


_TESTS: Final[dict[str, Test]] = {
    "email": personal_values.email, "iban": personal_values.iban, "credit_card_number": personal_values.card,
    "ssn": personal_values.ssn, "ip_address": personal_values.address_of_network,
    "mac_address": personal_values.mac, "phone_number": personal_values.phone,
    "street_address": personal_values.street, "date_of_birth": personal_values.day,
}  # fmt: skip
_LISTED_KINDS: Final = ("name", "first_name", "last_name")
_NAME_ALONE: Final = frozenset({"date_of_birth"})
"""Any date may be one of birth: values alone say nothing."""


def _texts(values: Sequence[Any]) -> list[str]:
    cut = limits.CLASSIFY_CHARS
    spelled = (str(one).strip()[:cut] for one in values[: limits.CLASSIFY_ROWS] if one is not None)
    return [one for one in spelled if one]


def _shown(values: Sequence[str], named: str | None, vocabulary: Vocabulary) -> tuple[str | None, float]:
    """The kind that most of some different values show, and their share."""
    if not values:
        return None, 0.0
    for kind, test in _TESTS.items():
        if kind in _NAME_ALONE and kind != named:
            continue
        share = sum(map(test, values)) / len(values)
        if share >= (_SOME if kind == named else _MOST):
            return kind, share
    names = personal_values.names_of(vocabulary)
    best, most = None, 0.0
    for kind, test in (("name", names.whole), ("first_name", names.first), ("last_name", names.last)):
        share = sum(map(test, values)) / len(values)
        enough = share >= (_LISTS / 2 if kind == named else _LISTS)
        if enough and share > most and (kind == named or len(values) >= _FEW):
            best, most = kind, share
    return best, most


# --- Whose dates --------------------------------------------------------------------------------------------


def _person_of(columns: Mapping[str, Sequence[Any]]) -> str | None:
    """The column that tells persons apart: an id, else what is different in every row."""

    def rank(name: str) -> int:
        plain = name.casefold()
        return (
            0 if plain in ("id", "person_id", "customer_id", "user_id") else 1 if plain.endswith("id") else 2
        )

    for name in sorted(columns, key=rank):
        values = [str(one) for one in columns[name]]
        if len(values) > 1 and None not in columns[name] and len(set(values)) == len(values):
            return name
    return None


def _with_person(found: Found, person: str | None) -> Found:
    if found.masking is None or found.masking["strategy"] != "shift":
        return found
    masking = (
        {"strategy": "shift", "person": person} if person and person != found.name else {"strategy": _REPLACE}
    )
    return Found(found.name, found.kind, True, found.confidence, found.reason, found.type, masking)
