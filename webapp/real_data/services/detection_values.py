"""What single values show of themselves: shapes with checksums, and words of the lists of names."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Final

import phonenumbers
from stdnum import iban as iban_number
from stdnum import luhn
from stdnum.exceptions import ValidationError
from stdnum.us import ssn as us_ssn

from webapp.engine.data.vocabulary import Vocabulary

Test = Callable[[str], bool]

_EMAIL: Final = re.compile(r"[^@\s,;<>]{1,64}@(?:[\w-]+\.)+[\w-]{2,}")
_DASHED_SSN: Final = re.compile(r"\d{3}-\d{2}-\d{4}")
_MAC: Final = re.compile(r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}")
_CARD: Final = re.compile(r"[2-6]\d{3}([ -]?)(?:\d{4}\1){2}\d{1,7}|3[47]\d{2}[ -]?\d{6}[ -]?\d{5}")
_DAY: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)|(\d\d?)[./](\d\d?)[./](\d{4})|(\d{4})(\d\d)(\d\d)")
_STREET: Final = re.compile(
    r"\b\d{1,5}[a-z]?\s+(?:\w+\.?\s+){0,4}(?:st|street|ave|avenue|rd|road|dr|drive|ln|lane|blvd|boulevard|way|court|ct|"
    r"place|pl|terrace|square|circle)\b|(?:stra(?:ß|ss)e|str\.|weg|platz|allee|gasse|laan|straat|gatan|vej)\s*\d{1,4}|"
    r"\b(?:rue|avenue|boulevard|calle|via|viale|piazza|rua|ulica|ul\.)\s+\D{2,40}\d{0,4}",
    re.IGNORECASE,
)
_PHONE_SIGNS: Final = re.compile(r"\+?[\d\s().\-/x]{7,25}")
_PHONE_REGIONS: Final = ("US", "GB", "DE", "FR")  # chosen: tried where a number names no country
_PHONE_DIGITS: Final = (7, 15)  # ITU-T E.164
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_OLDEST: Final = 1900


def email(value: str) -> bool:
    """An address of e-mail."""
    return _EMAIL.fullmatch(value) is not None


def iban(value: str) -> bool:
    """An IBAN whose check digits are right (ISO 13616)."""
    return iban_number.is_valid(value, check_country=False)


def card(value: str) -> bool:
    """A card number: 13 to 19 digits as issuers begin them, checked (Luhn)."""
    return _CARD.fullmatch(value) is not None and luhn.is_valid(re.sub(r"[ -]", "", value))


def ssn(value: str) -> bool:
    """A social security number of the United States, with its hyphens."""
    return _DASHED_SSN.fullmatch(value) is not None and _valid_ssn(value)


def _valid_ssn(value: str) -> bool:
    try:
        return bool(us_ssn.validate(value))
    except ValidationError:
        return False


def phone(value: str) -> bool:
    """A telephone number: with its country, or with signs between digits and valid in some country."""
    if not _PHONE_SIGNS.fullmatch(value) or _DAY.fullmatch(value) or address_of_network(value):
        return False
    digits = sum(one.isdigit() for one in value)
    if not _PHONE_DIGITS[0] <= digits <= _PHONE_DIGITS[1]:
        return False
    if not value.startswith("+") and (value.isdigit() or _DASHED_SSN.fullmatch(value)):
        return False
    return any(_callable(value, region) for region in ((None,) if value.startswith("+") else _PHONE_REGIONS))


def _callable(value: str, region: str | None) -> bool:
    try:
        return phonenumbers.is_possible_number(phonenumbers.parse(value, region))
    except phonenumbers.NumberParseException:
        return False


def address_of_network(value: str) -> bool:
    """An IP address of either version."""
    try:
        return bool(ipaddress.ip_address(value)) and ("." in value or ":" in value)
    except ValueError:
        return False


def mac(value: str) -> bool:
    """An address of a network card."""
    return _MAC.fullmatch(value) is not None


def street(value: str) -> bool:
    """A street with a number, in the spelling of some countries."""
    return _STREET.search(value) is not None


def day(value: str) -> bool:
    """A day on which somebody alive may be born."""
    found = _DAY.match(value)
    if found is None:
        return False
    year = int(found[1] or found[6] or found[7])
    month, first = int(found[2] or found[5] or found[8]), int(found[3] or found[4] or found[9])
    if not _OLDEST <= year <= date.max.year:
        return False
    return _is_day(year, month, first) or _is_day(year, first, month)


def _is_day(year: int, month: int, number: int) -> bool:
    try:
        return bool(date(year, month, number))
    except ValueError:
        return False


class Names:
    """First and last names of every locale of a vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        known = vocabulary.names()
        self._first = self._all(vocabulary, known, "first_name_female", "first_name_male")
        self._last = self._all(vocabulary, known, "last_name_female", "last_name_male")

    @staticmethod
    def _all(vocabulary: Vocabulary, known: dict[str, tuple[str, ...]], *lists: str) -> frozenset[str]:
        return frozenset(
            word.casefold()
            for one in lists
            for locale in known.get(one, ())
            for word in vocabulary.words(one, locale or None).to_pylist()
        )

    def first(self, value: str) -> bool:
        """A first name, alone."""
        return value.strip().casefold() in self._first

    def last(self, value: str) -> bool:
        """A last name, alone."""
        return value.strip().casefold() in self._last

    def whole(self, value: str) -> bool:
        """First and last names, in either order."""
        words = [one.casefold() for one in _WORD.findall(value)]
        if not 2 <= len(words) <= 4 or any(one.isdigit() for one in value):
            return False
        ends = ((words[0], words[-1]), (words[-1], words[0]))
        return any(first in self._first and last in self._last for first, last in ends)


@lru_cache(maxsize=2)
def names_of(vocabulary: Vocabulary) -> Names:
    """The names of a vocabulary, read once."""
    return Names(vocabulary)


_INSIDE: Final = (
    ("an e-mail address", re.compile(_EMAIL.pattern)),
    ("a telephone number", re.compile(r"\+\d[\d\s().-]{7,18}\d")),
    ("a social security number", re.compile(rf"\b{_DASHED_SSN.pattern}\b")),
)


def inside(value: str) -> str | None:
    """What of a person stands somewhere in a longer text."""
    return next((what for what, pattern in _INSIDE if pattern.search(value)), None)
