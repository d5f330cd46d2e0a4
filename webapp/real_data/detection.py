"""Detect which columns of a sample contain personal data, by their names, the table's name, and their values.

Names are interpreted as in schema inference (`imports.inference.names`). Values are compared with patterns, checksums
and lists of names. A match of both has the highest confidence, a checksum a slightly lower one, and a name without
matching values is a guess. The result is a field type and a masking strategy that can be used in a template unchanged.
It contains no values of the sample.

A child process imports this module to read a file, so it imports little.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

import orjson
import phonenumbers
import pyarrow as pa
from stdnum import iban as iban_number
from stdnum import luhn
from stdnum.at import vnr as at_vnr
from stdnum.br import cpf as br_cpf
from stdnum.ch import ssn as ch_ssn
from stdnum.de import idnr as de_idnr
from stdnum.es import dni as es_dni
from stdnum.es import nie as es_nie
from stdnum.exceptions import ValidationError
from stdnum.fr import nir as fr_nir
from stdnum.it import codicefiscale as it_codicefiscale
from stdnum.nl import bsn as nl_bsn
from stdnum.pl import pesel as pl_pesel
from stdnum.us import ssn as us_ssn

from webapp import document_process, limits, storage
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.connections.models import Connection
from webapp.connections.services import inspection
from webapp.connectors.schema import Column, Entity
from webapp.engine.data import vocabulary
from webapp.engine.data.vocabulary import Vocabulary
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.files import services as files_services
from webapp.imports.inference import lexicon
from webapp.imports.inference import names as imports_names
from webapp.imports.inference.checks import Rule
from webapp.imports.inference.evidence import ColumnEvidence
from webapp.row_templates.services import compilation, vocabularies
from webapp.sources.services import files

Predicate = Callable[[str], bool]

_EMAIL: Final = re.compile(r"[^@\s,;<>]{1,64}@(?:[\w-]+\.)+[\w-]{2,}")
_DASHED_SSN: Final = re.compile(r"\d{3}-\d{2}-\d{4}")
_MAC: Final = re.compile(r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}")
_CARD: Final = re.compile(r"[2-6]\d{3}([ -]?)(?:\d{4}\1){2}\d{1,7}|3[47]\d{2}[ -]?\d{6}[ -]?\d{5}")
_DAY: Final = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)|(\d\d?)[./-](\d\d?)[./-](\d{4})|(\d{4})(\d\d)(\d\d)")
_DAY_FORMATS: Final = (
    ("YYYY-MM-DD", "%Y-%m-%d"), ("DD.MM.YYYY", "%d.%m.%Y"), ("MM/DD/YYYY", "%m/%d/%Y"), ("DD/MM/YYYY", "%d/%m/%Y"),
    ("DD-MM-YYYY", "%d-%m-%Y"), ("YYYY/MM/DD", "%Y/%m/%d"), ("YYYYMMDD", "%Y%m%d"),
)  # fmt: skip
"""Formats of dates, for fields and for `strptime`. The first one that all values match is used."""
_ISO_FORMAT: Final = _DAY_FORMATS[0][0]
_STREET: Final = re.compile(
    r"\b\d{1,5}[a-z]?\s+(?:\w+\.?\s+){0,4}(?:st|street|ave|avenue|rd|road|dr|drive|ln|lane|blvd|boulevard|way|court|ct|"
    r"place|pl|terrace|square|circle)\b|(?:stra(?:ß|ss)e|str\.|weg|platz|allee|gasse|laan|straat|gatan|vej)\s*\d{1,4}|"
    r"\b(?:rue|avenue|boulevard|calle|via|viale|piazza|rua|ulica|ul\.)\s+\D{2,40}\d{0,4}",
    re.IGNORECASE,
)
_PHONE_CHARS: Final = re.compile(r"\+?[\d\s().\-/x]{7,25}")
_PHONE_REGIONS: Final = ("US", "GB", "DE", "FR")  # chosen: tried for phone numbers without a country
_PHONE_DIGITS: Final = (7, 15)  # ITU-T E.164
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_EARLIEST_YEAR: Final = 1900
_MIN_DIGITS: Final = 7  # of a national number: those of Spain have eight digits and a letter


def is_email(value: str) -> bool:
    """Return whether this is an e-mail address."""
    return _EMAIL.fullmatch(value) is not None


def is_iban(value: str) -> bool:
    """Return whether this is an IBAN with correct check digits (ISO 13616)."""
    return iban_number.is_valid(value, check_country=False)


def is_card_number(value: str) -> bool:
    """Return whether this is a card number: 13 to 19 digits with an issuer's prefix and a correct Luhn checksum."""
    return _CARD.fullmatch(value) is not None and luhn.is_valid(re.sub(r"[ -]", "", value))


def is_ssn(value: str) -> bool:
    """Return whether this is a US social security number with hyphens."""
    if _DASHED_SSN.fullmatch(value) is None:
        return False
    try:
        return bool(us_ssn.validate(value))
    except ValidationError:
        return False


def is_phone_number(value: str) -> bool:
    """Return whether this is a telephone number: with a country code, or with separators and valid in some country."""
    if not _PHONE_CHARS.fullmatch(value) or _DAY.fullmatch(value) or is_ip_address(value):
        return False
    digits = sum(item.isdigit() for item in value)
    if not _PHONE_DIGITS[0] <= digits <= _PHONE_DIGITS[1]:
        return False
    if not value.startswith("+") and (value.isdigit() or _DASHED_SSN.fullmatch(value)):
        return False
    for region in (None,) if value.startswith("+") else _PHONE_REGIONS:
        with suppress(phonenumbers.NumberParseException):
            if phonenumbers.is_possible_number(phonenumbers.parse(value, region)):
                return True
    return False


def is_ip_address(value: str) -> bool:
    """Return whether this is an IPv4 or IPv6 address."""
    try:
        return bool(ipaddress.ip_address(value)) and ("." in value or ":" in value)
    except ValueError:
        return False


def is_mac_address(value: str) -> bool:
    """Return whether this is a MAC address."""
    return _MAC.fullmatch(value) is not None


def is_street_address(value: str) -> bool:
    """Return whether this is a street with a number, in the notation of some countries."""
    return _STREET.search(value) is not None


def is_birth_date(value: str) -> bool:
    """Return whether this is a possible date of birth of a living person."""
    found = _DAY.match(value)
    if found is None:
        return False
    year = int(found[1] or found[6] or found[7])
    month, day_or_month = int(found[2] or found[5] or found[8]), int(found[3] or found[4] or found[9])
    if not _EARLIEST_YEAR <= year <= date.max.year:
        return False
    return _is_day(year, month, day_or_month) or _is_day(year, day_or_month, month)


def _is_day(year: int, month: int, number: int) -> bool:
    try:
        return bool(date(year, month, number))
    except ValueError:
        return False


_NATIONAL_NUMBERS: Final = (
    at_vnr, de_idnr, fr_nir, es_dni, es_nie, it_codicefiscale, nl_bsn, pl_pesel, br_cpf, ch_ssn
)  # fmt: skip
_GERMAN_INSURANCE: Final = re.compile(r"\d{2}\s?\d{6}\s?[A-Z]\s?\d{3}")  # Rentenversicherungsnummer
_NUMBER_CHARS: Final = re.compile(r"[A-Z0-9][A-Z0-9 ./-]{7,20}")


def is_national_id(value: str) -> bool:
    """Return whether this is a national identity or insurance number with correct check digits: of Austria, Brazil,
    France, Germany, Italy, the Netherlands, Poland, Spain or Switzerland."""
    if not _NUMBER_CHARS.fullmatch(value) or sum(item.isdigit() for item in value) < _MIN_DIGITS:
        return False
    if _DAY.fullmatch(value):
        return False
    return _GERMAN_INSURANCE.fullmatch(value) is not None or any(
        module.is_valid(value) for module in _NATIONAL_NUMBERS
    )


def date_format(values: Sequence[str]) -> str | None:
    """Return the format that all values match, in the notation of fields; None if there is none."""
    for format_name, pattern in _DAY_FORMATS:
        try:
            if values and all(datetime.strptime(value[:10], pattern).replace(tzinfo=UTC) for value in values):
                return format_name
        except ValueError:
            continue
    return None


class PersonNames:
    """First and last names of every locale of a vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        locales_by_list = vocabulary.locales_by_name()
        self._first = self._all(vocabulary, locales_by_list, "first_name_female", "first_name_male")
        self._last = self._all(vocabulary, locales_by_list, "last_name_female", "last_name_male")

    @staticmethod
    def _all(
        vocabulary: Vocabulary, locales_by_list: dict[str, tuple[str, ...]], *lists: str
    ) -> frozenset[str]:
        return frozenset(
            name.casefold()
            for item in lists
            for locale in locales_by_list.get(item, ())
            for name in vocabulary.words(item, locale or None).to_pylist()
        )

    def is_first_name(self, value: str) -> bool:
        """Return whether the whole value is a first name."""
        return value.strip().casefold() in self._first

    def is_last_name(self, value: str) -> bool:
        """Return whether the whole value is a last name."""
        return value.strip().casefold() in self._last

    def is_full_name(self, value: str) -> bool:
        """Return whether this is a first and a last name, in either order."""
        words = [item.casefold() for item in _WORD.findall(value)]
        if not 2 <= len(words) <= 4 or any(item.isdigit() for item in value):
            return False
        ends = ((words[0], words[-1]), (words[-1], words[0]))
        return any(first in self._first and last in self._last for first, last in ends)


@lru_cache(maxsize=2)
def person_names(vocabulary: Vocabulary) -> PersonNames:
    """Return the names of a vocabulary, cached."""
    return PersonNames(vocabulary)


_TEXT_PATTERNS: Final = (
    ("an e-mail address", re.compile(_EMAIL.pattern)),
    ("a telephone number", re.compile(r"\+\d[\d\s().-]{7,18}\d")),
    ("a social security number", re.compile(rf"\b{_DASHED_SSN.pattern}\b")),
)


def personal_data_in_text(value: str) -> str | None:
    """Return the kind of personal data that a longer text contains, or None."""
    return next((kind for kind, pattern in _TEXT_PATTERNS if pattern.search(value)), None)


(
    _NAME_AND_VALUES_MATCH,
    _CHECKSUM_MATCHES,
    _PATTERN_MATCHES,
    _LIST_MATCHES,
    _NAME_MATCHES,
    _VALUES_CONTRADICT_NAME,
    _NO_PERSON,
) = 0.99, 0.95, 0.9, 0.75, 0.7, 0.55, 0.4
_MOST_SHARE: Final = 0.8  # chosen: the share of values that show a kind
_SOME_SHARE: Final = 0.5  # chosen: enough if the name matches too
_LIST_SHARE: Final = 0.6  # chosen: no list has all names
_NOISE_SHARE: Final = 0.1  # chosen: values that are wrong in any table
_MIN_LIST_VALUES: Final = 3  # chosen: fewer different values of a list are chance
_TEXT_SHARE: Final = 0.02  # chosen: the share of texts with personal data that makes the column personal
_MIN_TEXT_CHARS: Final = 20  # chosen: minimum characters of a text that is searched for personal data


@dataclass(frozen=True, slots=True)
class PersonalDataKind:
    """A kind of personal value, by the field type that generates it."""

    type: str
    label: str
    strategy: str
    confidence: float
    """Confidence if only the values match."""


_REPLACE, _PRESERVE = "replace", "format_preserve"
KINDS: Final[Mapping[str, PersonalDataKind]] = {
    "email": PersonalDataKind("email", "e-mail addresses", _REPLACE, _PATTERN_MATCHES),
    "iban": PersonalDataKind("iban", "IBANs", _PRESERVE, _CHECKSUM_MATCHES),
    "credit_card_number": PersonalDataKind(
        "credit_card_number", "card numbers", _PRESERVE, _CHECKSUM_MATCHES
    ),
    "ssn": PersonalDataKind("ssn", "social security numbers", _PRESERVE, _PATTERN_MATCHES),
    "national_id": PersonalDataKind("national_id", "national identity numbers", _PRESERVE, _CHECKSUM_MATCHES),
    "ip_address": PersonalDataKind("ipv4", "IP addresses", _REPLACE, _PATTERN_MATCHES),
    "mac_address": PersonalDataKind("mac_address", "MAC addresses", _REPLACE, _PATTERN_MATCHES),
    "phone_number": PersonalDataKind("phone_number", "telephone numbers", _PRESERVE, _PATTERN_MATCHES),
    "street_address": PersonalDataKind("street_address", "addresses", _REPLACE, _LIST_MATCHES),
    "name": PersonalDataKind("name", "names of people", _REPLACE, _LIST_MATCHES),
    "first_name": PersonalDataKind("first_name", "first names", _REPLACE, _LIST_MATCHES),
    "last_name": PersonalDataKind("last_name", "last names", _REPLACE, _LIST_MATCHES),
    "date_of_birth": PersonalDataKind("date_of_birth", "dates of birth", "shift", 0.0),
    "username": PersonalDataKind("username", "user names", _REPLACE, 0.0),
    "password": PersonalDataKind("password", "passwords", "redact", 0.0),
    "city": PersonalDataKind("city", "places of residence", _REPLACE, 0.0),
    "zip_code": PersonalDataKind("zip_code", "postal codes", _PRESERVE, 0.0),
    "account_number": PersonalDataKind("account_number", "account numbers", _PRESERVE, 0.0),
    "tax_id": PersonalDataKind("tax_id", "tax numbers", _PRESERVE, 0.0),
    "cvv": PersonalDataKind("cvv", "security codes of cards", "redact", 0.0),
    "age": PersonalDataKind("age", "ages", _REPLACE, 0.0),
    "gender": PersonalDataKind("gender", "genders", _REPLACE, 0.0),
    "salary": PersonalDataKind("source_column", "salaries", _PRESERVE, 0.0),
    "special_category": PersonalDataKind("source_column", "health, religion or origin", "redact", 0.0),
    "location": PersonalDataKind("coordinates", "places on the map", _REPLACE, 0.0),
    "free_text": PersonalDataKind("sentences", "free text", "redact", 0.0),
}
_KIND_BY_FIELD_TYPE: Final = {
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
# Names of columns, as they are written and in English, that no field type stands for.
_KIND_BY_COLUMN_NAME: Final = (
    ("national_id", re.compile(
        r"(^|_)(svnr|sv_?(nr|nummer)|sozialversicherungs_?(nr|nummer)|rentenversicherungs_?(nr|nummer)|ahv(_?(nr|nummer))?"
        r"|steuer_?(id|identifikationsnummer)|personalausweis_?(nr|nummer)?|(reise)?pass_?(nr|nummer)|insee|nir"
        r"|(numero_)?secu(rite)?_?sociale|dni|nie|nif|cpf|rg|codice_?fiscale|bsn|burgerservicenummer|pesel|personnummer"
        r"|national_?(id|insurance)(_?(number|no))?|identity_?card(_?(number|no))?|id_?card_?(number|no)|nino)$"
    )),
    ("salary", re.compile(
        r"(^|_)(salary|wages?|income|bonus|remuneration|compensation|gehalt|lohn|verguetung|vergütung)"
        r"(_?(amount|gross|net|brutto|netto|month|year|monthly|yearly|annual))*$|(brutto|netto)?gehalt$|lohn$"
    )),
    ("special_category", re.compile(
        r"(^|_)(diagnos(is|e)|blood_?(type|group)|blutgruppe|disability|behinderung|religion|konfession|denomination|faith"
        r"|ethnicity|ethnie|race|sexual_orientation|union_member(ship)?|gewerkschaft|krankheit|allergies)$"
    )),
)  # fmt: skip
_VALUE_ONLY_KINDS: Final = frozenset({"free_text"})
_PERSONAL_IN_CONTEXT: Final = frozenset({"city", "zip_code", "age", "gender", "location"})
"""Personal only in a table with personal data."""


@dataclass(frozen=True, slots=True)
class DetectedColumn:
    """The proposal for one column: `kind` is None without personal data. `type` and `masking` can be used in a field
    unchanged."""

    name: str
    kind: str | None
    sensitive: bool
    confidence: float
    reason: str
    type: str | None = None
    masking: dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    """Options of the type, such as the format of dates."""


def classify(
    table: str, columns: Mapping[str, Sequence[Any]], vocabulary: Vocabulary
) -> list[DetectedColumn]:
    """Classify the columns of a sample: names to values, blanks as None. ``table`` may be empty."""
    entity = Entity(
        table or "rows", (table or "rows",), tuple(Column(column, "text", "text") for column in columns)
    )
    detected = [_classify_column(entity, field, columns[field.name], vocabulary) for field in entity.fields]
    if not any(item.sensitive and item.kind not in _PERSONAL_IN_CONTEXT for item in detected):
        note = "The sample contains no other personal data."
        detected = [
            DetectedColumn(item.name, item.kind, False, _NO_PERSON, f"{item.reason} {note}", item.type)
            if item.kind in _PERSONAL_IN_CONTEXT
            else item
            for item in detected
        ]
    # Postal codes together with cities are replaced, so that the two match.
    with_city = any(item.kind == "city" and item.sensitive for item in detected)
    for index, item in enumerate(detected):
        if item.kind == "zip_code" and item.sensitive and with_city:
            detected[index] = replace(item, masking={"strategy": _REPLACE})
        elif item.masking is not None and item.masking["strategy"] == "shift":
            person = _identifying_column(columns, item.name)
            masking = {"strategy": "shift", "person": person} if person else {"strategy": _REPLACE}
            detected[index] = replace(item, masking=masking)
    return detected


def _classify_column(
    entity: Entity, column: Column, values: Sequence[Any], vocabulary: Vocabulary
) -> DetectedColumn:
    max_chars = limits.CLASSIFY_CHARS
    stripped = (
        str(value).strip()[:max_chars] for value in values[: limits.CLASSIFY_ROWS] if value is not None
    )
    texts = [item for item in stripped if item]
    evidence = ColumnEvidence(
        entity, column, Rule(), texts, len(values) - len(texts), False, False, vocabulary
    )
    meaning = imports_names.name_meaning(evidence).type if column.name.strip() else _UNKNOWN_MEANING
    words = imports_names.split_words(column.name)
    names = ("_".join(words).casefold(), "_".join(lexicon.translate_to_english(words)))
    by_words = (kind for kind, known in _KIND_BY_COLUMN_NAME if any(known.search(name) for name in names))
    kind_of_name = next(by_words, None) or _KIND_BY_FIELD_TYPE.get(meaning)
    if kind_of_name in _VALUE_ONLY_KINDS:
        kind_of_name = None
    kind_of_values, share = _most_frequent_kind(list(dict.fromkeys(texts)), kind_of_name, vocabulary)
    if kind_of_values is not None and (
        kind_of_name in (None, kind_of_values) or KINDS[kind_of_values].confidence >= _PATTERN_MATCHES
    ):
        kind = KINDS[kind_of_values]
        message = f"{share:.0%} of the values are {kind.label}."
        if kind_of_name != kind_of_values:
            return _detected_column(
                column.name, kind_of_values, kind.confidence * min(1.0, share + _NOISE_SHARE), message
            )
        found = _detected_column(
            column.name, kind_of_values, _NAME_AND_VALUES_MATCH, f"The name matches, and {message}"
        )
        # Dates are shifted by their format.
        known = date_format(texts) if kind_of_values == "date_of_birth" else _ISO_FORMAT
        if known is None:
            reason = f"{found.reason} Their formats differ."
            return replace(found, masking={"strategy": _REPLACE}, reason=reason)
        return found if known == _ISO_FORMAT else replace(found, options={"format": known})
    if kind_of_name is None:
        findings = [
            finding
            for text in texts
            if len(text) >= _MIN_TEXT_CHARS and (finding := personal_data_in_text(text)) is not None
        ]
        if findings and len(findings) >= _TEXT_SHARE * len(texts):
            message = f"{len(findings):,} of {len(texts):,} texts have {findings[0]} or the like in them."
            return _detected_column(column.name, "free_text", _LIST_MATCHES, message)
        message = "No personal data detected"
        if not texts:
            return DetectedColumn(
                column.name, None, False, _SOME_SHARE, f"{message}, please check: it has no values."
            )
        if meaning == _UNKNOWN_MEANING:
            return DetectedColumn(column.name, None, False, _SOME_SHARE, f"{message}, please check.")
        return DetectedColumn(column.name, None, False, _PATTERN_MATCHES, f"{message}.")
    message = f"The name suggests {KINDS[kind_of_name].label}"
    if not texts:
        return _detected_column(
            column.name, kind_of_name, _NAME_MATCHES, f"{message}; the sample has no values."
        )
    if kind_of_name in _PREDICATES or kind_of_name in _KINDS_WITH_NAME_LISTS:
        return _detected_column(
            column.name, kind_of_name, _VALUES_CONTRADICT_NAME, f"{message}; few values match."
        )
    return _detected_column(column.name, kind_of_name, _NAME_MATCHES, f"{message}.")


_UNKNOWN_MEANING: Final = "words"
"""The field type that `imports_names.name_meaning` returns for names without a known meaning."""


def _detected_column(name: str, kind: str, confidence: float, reason: str) -> DetectedColumn:
    known = KINDS[kind]
    return DetectedColumn(
        name, kind, True, round(confidence, 2), reason, known.type, {"strategy": known.strategy}
    )


# --- Values -------------------------------------------------------------------------------------------------


_PREDICATES: Final[dict[str, Predicate]] = {
    "email": is_email, "iban": is_iban, "credit_card_number": is_card_number,
    "ssn": is_ssn, "national_id": is_national_id, "ip_address": is_ip_address,
    "mac_address": is_mac_address, "phone_number": is_phone_number,
    "street_address": is_street_address, "date_of_birth": is_birth_date,
}  # fmt: skip
_KINDS_WITH_NAME_LISTS: Final = ("name", "first_name", "last_name")
_NAME_REQUIRED: Final = frozenset({"date_of_birth"})
"""Kinds that need a matching name: values alone are not enough, because any date can be a date of birth."""


def _most_frequent_kind(
    values: Sequence[str], kind_of_name: str | None, vocabulary: Vocabulary
) -> tuple[str | None, float]:
    """Return the kind that most of the distinct values have, and their share; (None, 0.0) if there is none."""
    if not values:
        return None, 0.0
    for kind, test in _PREDICATES.items():
        if kind in _NAME_REQUIRED and kind != kind_of_name:
            continue
        if kind == "national_id" != kind_of_name and len(values) < _MIN_LIST_VALUES:
            continue
        share = sum(map(test, values)) / len(values)
        if share >= (_SOME_SHARE if kind == kind_of_name else _MOST_SHARE):
            return kind, share
    names = person_names(vocabulary)
    best, best_share = None, 0.0
    for kind, test in (
        ("name", names.is_full_name),
        ("first_name", names.is_first_name),
        ("last_name", names.is_last_name),
    ):
        share = sum(map(test, values)) / len(values)
        is_enough = share >= (_LIST_SHARE / 2 if kind == kind_of_name else _LIST_SHARE)
        if is_enough and share > best_share and (kind == kind_of_name or len(values) >= _MIN_LIST_VALUES):
            best, best_share = kind, share
    return best, best_share


# --- Whose dates --------------------------------------------------------------------------------------------


def _identifying_column(columns: Mapping[str, Sequence[Any]], excluded: str) -> str | None:
    """Return the column that identifies people: an id, a number, else a column with unique values; never
    `excluded`."""

    def rank(name: str) -> int:
        lower = name.casefold()
        if lower in ("id", "person_id", "customer_id", "user_id"):
            return 0
        if lower.endswith("id"):
            return 1
        return (
            2
            if lexicon.translate_to_english(imports_names.split_words(name))[-1:]
            in (["number"], ["no"], ["key"])
            else 3
        )

    for name in sorted((name for name in columns if name != excluded), key=rank):
        values = [str(item) for item in columns[name]]
        if len(values) > 1 and None not in columns[name] and len(set(values)) == len(values):
            return name
    return None


# Samples for `personal`: rows that a caller sends, the head of a workspace file, the first rows of a table.

Sample = dict[str, list[Any]]


def classify_rows(rows: Sequence[Mapping[str, Any]], table: str = "") -> list[DetectedColumn]:
    """Classify JSON rows. Error: validation_error, for more columns than a template may have."""
    columns: Sample = {name: [] for row in rows for name in row}
    if len(columns) > limits.MAX_FIELDS:
        message = f"These rows have {len(columns):,} columns; at most {limits.MAX_FIELDS:,} are supported."
        raise validation_error([Fault("rows", "too_many", message)])
    for row in rows:
        for name, values in columns.items():
            values.append(_json_scalar(row.get(name)))
    return _classify_in_request(table, columns)


def classify_sample(table: str, rows: pa.Table) -> list[DetectedColumn]:
    """Classify rows that have been read; ``table`` may be empty."""
    head = rows.slice(0, limits.CLASSIFY_ROWS)
    return _classify_in_request(table, {name: _values(head.column(name)) for name in head.column_names})


def classify_file(actor: Actor, name: str, sheet: str | None = None) -> list[DetectedColumn]:
    """Classify the first rows of a workspace file. Errors: not_found, validation_error for a file without rows."""
    file = files_services.find(actor, name)
    file_name, key = file.name, file.storage_key
    compilation.vocabulary()  # the process opens it from disk
    db.session.rollback()  # release the database connection while the file is read
    arguments = {"name": file_name, "sheet": sheet, "vocabulary_folder": str(vocabularies.local_folder())}
    try:
        with files.temporary_file() as copy:
            for piece in files_services.read_chunks(key):
                copy.write(piece)
            found = document_process.run("webapp.real_data.detection:in_process", copy, arguments)
    except storage.MissingError:
        raise ApiError(
            "conflict", f'The file "{file_name}" was replaced in the meantime. Try again.'
        ) from None
    except document_process.DocumentError as error:
        raise validation_error([Fault("file", "not_readable", error.message, error.hint)]) from None
    return [DetectedColumn(**item) for item in found]


def in_process(file: IO[bytes], name: str, sheet: str | None, vocabulary_folder: str) -> list[dict[str, Any]]:
    """Classify the first rows of a file. Runs in a document process. Error: validation_error."""
    found: Sample = {}
    remaining = limits.CLASSIFY_ROWS
    for batch in islice(files.read_batches(file, name, sheet), limits.CLASSIFY_ROWS):
        head = batch.slice(0, remaining)
        for field, column in zip(head.schema.names, head.columns, strict=True):
            found.setdefault(field, []).extend(_values(column))
        remaining -= head.num_rows
        if remaining <= 0:
            break
    table = name.rpartition("/")[2].partition(".")[0]
    words = vocabulary.open_default(Path(vocabulary_folder))
    return [asdict(item) for item in classify(table, found, words)]


def classify_table(actor: Actor, connection_id: str, table: str) -> list[DetectedColumn]:
    """Classify the first rows of a connection's table. Errors: not_found, validation_error, those of connections."""
    connection = tenancy.get(actor, Connection, connection_id, "write")
    known = inspection.metadata(actor, connection)
    entity = next((item for item in known.entities if item.name == table), None)
    if entity is None:
        message = f'There is no table "{table}" in this connection.'
        hint = (
            did_you_mean(table, [item.name for item in known.entities])
            or "GET /connections/{id}/metadata lists them."
        )
        raise validation_error([Fault("table", "unknown_table", message, hint)])
    db.session.commit()
    rows = min(limits.CLASSIFY_ROWS, limits.INFER_SAMPLE_ROWS)
    batch = inspection.read_samples(connection, [entity.name], rows, limits.FETCH_SECONDS).get(entity.name)
    names = [field.name for field in entity.fields]
    found: Sample = {name: [] for name in names}
    if batch is not None:
        found |= {name: _values(batch.column(name)) for name in names if name in batch.schema.names}
    return _classify_in_request(entity.name, found)


def as_json(found: DetectedColumn) -> dict[str, Any]:
    """Return a column in the format of the API."""
    return {
        "name": found.name,
        "kind": found.kind,
        "sensitive": found.sensitive,
        "confidence": found.confidence,
        "reason": found.reason,
        "type": found.type,
        "masking": found.masking,
        "options": found.options,
    }


def _values(column: pa.Array) -> list[Any]:
    return [_json_scalar(value) for value in column.to_pylist()]


def _json_scalar(value: Any) -> Any:
    if isinstance(value, dict | list):
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    return value.hex() if isinstance(value, bytes) else value


def _classify_in_request(table: str, columns: Sample) -> list[DetectedColumn]:
    return classify(table, columns, compilation.vocabulary())
