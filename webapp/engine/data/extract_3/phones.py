"""Telephone numbers by subdivision, from libphonenumber's patterns and its table of areas.

Each subdivision has two ranges of heads: landlines, and mobile numbers where the country's plan tells the subdivision
of those too. Elsewhere mobile numbers are those of the country. No head is of an area that the library names as part of
another subdivision.
"""

from __future__ import annotations

import re
import re._parser as parser
from collections.abc import Callable, Iterator
from functools import cache
from math import prod

import phonenumbers
from phonenumbers import PhoneMetadata
from phonenumbers.geodata import GEOCODE_DATA, GEOCODE_LONGEST_PREFIX

from webapp.engine.data.extract.phones import (
    _GOLDEN,
    _expanded,
    _split,
    _spread,
    _tail_at,
    _unranked,
    _usual_length,
)
from webapp.engine.data.extract.phones import Phones as FirstPhones
from webapp.engine.data.extract.tools import fold

HEADS_OF_COUNTRY = 100
HEADS_OF_LOCALE = 400
"""Heads of the mobile numbers of a country that a locale stands for."""
HEADS_OF_STATE = 100
"""Heads of the mobile numbers of one subdivision."""
LINES_OF_STATE = 24
_MOST_PREFIXES = 48
"""Prefixes of one subdivision that numbers are made of, evenly chosen."""

_TOLD = 5
"""One mobile number in so many, or more, tells the subdivision in countries where mobile numbers have areas."""


def mobile_token(country: str) -> str:
    """The digits before the area code of a mobile number, such as Argentina's 9."""
    token: str = phonenumbers.country_mobile_token(phonenumbers.country_code_for_region(country))
    return token if country == "AR" else ""


class Areas:
    """Which subdivision of a country the library's table says that a number is of.

    ``find`` answers the code of a subdivision (ISO 3166-2) for a folded name of it, or of a city that only one
    subdivision has; None for others.
    """

    def __init__(self, country: str, find: Callable[[str], str | None]) -> None:
        self._calling = str(phonenumbers.country_code_for_region(country))
        self._find = find
        self._known: dict[str, str | None] = {}

    def of(self, digits: str) -> str | None:
        """The subdivision of a number that begins with these national digits; ``""`` if its area is not known."""
        number = self._calling + digits
        for length in range(min(GEOCODE_LONGEST_PREFIX, len(number)), len(self._calling), -1):
            said = GEOCODE_DATA.get(number[:length])
            if said is not None:
                return self.named(said.get("en", ""))
        return ""

    def named(self, text: str) -> str | None:
        """The subdivision that a description such as ``Campinas - SP`` names; None if it names none that is known."""
        if text not in self._known:
            parts = [part.strip() for part in re.split(r",| - ", text)]
            found = (self._find(fold(part)) for part in reversed(parts))
            self._known[text] = next((state for state in found if state), None)
        return self._known[text]

    def tells_mobile(self, country: str) -> bool:
        """Whether the library's table says of which subdivision the country's mobile numbers are."""
        token = mobile_token(country)
        heads = [
            digits + "0" * tail for digits, tail in _heads(country, "mobile", 200, None, lambda digits: True)
        ]
        told = sum(bool(self.of(digits.removeprefix(token))) for digits in heads)
        return told * _TOLD >= len(heads) > 0

    def prefixes(self) -> dict[str, list[str]]:
        """National prefixes by subdivision, in rising order, without those that begin with another one of the same
        subdivision."""
        found: dict[str, list[str]] = {}
        for prefix in _prefixes_of(self._calling):
            state = self.named(GEOCODE_DATA[prefix].get("en", ""))
            digits = prefix[len(self._calling) :]
            listed = found.setdefault(state, []) if state else []
            if state and not (listed and digits.startswith(listed[-1])):
                listed.append(digits)
        return found


@cache
def _by_first_digits() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for prefix in sorted(GEOCODE_DATA):
        for length in (1, 2, 3):
            found.setdefault(prefix[:length], []).append(prefix)
    return found


def _prefixes_of(calling: str) -> list[str]:
    return [prefix for prefix in _by_first_digits().get(calling, ()) if len(prefix) > len(calling)]


@cache
def _formats(calling: int, national: bool) -> list[tuple[re.Pattern[str] | None, re.Pattern[str], str]]:
    """(leading digits, whole number, text with its groups in braces) of each way of writing numbers, in the library's
    order.

    Read from the library's metadata once: `phonenumbers.format_number` looks the expressions up again for each number.
    """
    region = phonenumbers.region_code_for_country_code(calling)
    metadata = PhoneMetadata.metadata_for_region_or_calling_code(calling, region)
    made = []
    for form in metadata.number_format if national else metadata.intl_number_format or metadata.number_format:
        leading = re.compile(form.leading_digits_pattern[-1]) if form.leading_digits_pattern else None
        rule = form.national_prefix_formatting_rule if national else None
        text = re.sub(r"(\\\d)", rule, form.format, count=1) if rule else form.format
        made.append((leading, re.compile(form.pattern), re.sub(r"\\(\d)", r"{\1}", text)))
    return made


def _written(calling: int, digits: str, national: bool) -> str:
    """A number as `phonenumbers.format_number` writes it, internationally or nationally."""
    text = digits
    for leading, whole, form in _formats(calling, national):
        if (leading is None or leading.match(digits)) and (found := whole.fullmatch(digits)):
            text = form.format("", *found.groups(""))
            break
    return text if national else f"+{calling} {text}"


class Phones(FirstPhones):
    """Heads of landlines and of mobile numbers, by subdivision."""

    def _add_head(self, calling: int, digits: str, tail: int) -> None:
        written = [("e164", f"+{calling}{digits}", "#" * tail)]
        for way in ("international", "national"):
            low = _written(calling, digits + "0" * tail, way == "national")
            high = _written(calling, digits + "9" * tail, way == "national")
            cut = _tail_at(low, tail)
            shape = low[cut:].replace("0", "#")
            if low[:cut] != high[:cut] or shape != high[cut:].replace("9", "#"):
                return  # the way of writing depends on digits of the tail
            written.append((way, low[:cut], shape))
        for way, head, shape in written:
            self.heads[way].append(head)
            self.tail_start[way].append(self._shape(shape))
        self.tail_count.append(10**tail)

    def add_kind(
        self,
        country: str,
        kind: str,
        most: int,
        prefixes: list[str] | None = None,
        fits: Callable[[str], bool] = lambda digits: True,
    ) -> tuple[int, int]:
        """Add at most ``most`` heads of a country's numbers of a kind (``mobile`` or ``fixed_line``) that begin with
        one of the prefixes, if any are named, and that ``fits`` accepts. Returns (start, count)."""
        start = len(self.tail_count)
        calling = phonenumbers.country_code_for_region(country)
        if calling:
            for digits, tail in _heads(country, kind, most, prefixes, fits):
                self._add_head(calling, digits, tail)
        return start, len(self.tail_count) - start


@cache
def _sequences(country: str, kind: str) -> list[tuple[tuple[str, ...], int]]:
    metadata = PhoneMetadata.metadata_for_region(country)
    described = getattr(metadata, kind) if metadata is not None else None
    if described is None or not described.national_number_pattern:
        return []
    found = _expanded(parser.parse(described.national_number_pattern))
    usual = (
        _usual_length(found, len(described.example_number or ""))
        if described.example_number
        else len(found[0])
    )
    sequences = [_split(sets) for sets in found if len(sets) == usual]
    tails = [0] * 5
    for head, tail in sequences:
        tails[tail] += prod(map(len, head)) * 10**tail
    usual_tail = tails.index(max(tails))
    return [(head, tail) for head, tail in sequences if tail == usual_tail]


@cache
def _by_beginning(country: str, kind: str) -> dict[str, list[tuple[tuple[str, ...], int]]]:
    """The sequences that can begin with each pair of digits."""
    found: dict[str, list[tuple[tuple[str, ...], int]]] = {}
    for head, tail in _sequences(country, kind):
        if len(head) >= 2:
            for first in head[0]:
                for second in head[1]:
                    found.setdefault(first + second, []).append((head, tail))
    return found


def _narrowed(sequence: tuple[tuple[str, ...], int], prefix: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """The sequence with a prefix in its head, if it can have it."""
    head, tail = sequence
    if len(prefix) <= len(head) and all(
        digit in allowed for digit, allowed in zip(prefix, head, strict=False)
    ):
        yield (*prefix, *head[len(prefix) :]), tail


def _heads(
    country: str, kind: str, most: int, prefixes: list[str] | None, fits: Callable[[str], bool]
) -> Iterator[tuple[str, int]]:
    """(national digits without the tail, digits of the tail): evenly chosen among all there are."""
    sequences = _sequences(country, kind)
    if prefixes is not None:
        begin, found = _by_beginning(country, kind), 0
        narrowed: list[tuple[tuple[str, ...], int]] = []
        # In an order that spreads over all of them, so that any number of them is evenly chosen.
        for place in sorted(range(len(prefixes)), key=lambda place: place * _GOLDEN & 0xFFFFFFFF):
            prefix = prefixes[place]
            own = [
                one
                for sets in (begin.get(prefix[:2], ()) if prefix[1:] else sequences)
                for one in _narrowed(sets, prefix)
            ]
            narrowed += own
            found += bool(own)
            if found == _MOST_PREFIXES:
                break
        sequences = narrowed
    sizes = [prod(map(len, head)) for head, _ in sequences]
    total, made, seen = sum(sizes), 0, set()
    # More slots than heads are wanted, as some of them are of another area.
    slots = min(total, 3 * most)
    for i in (slot for first in range(3) for slot in range(first, slots, 3)):
        index = _spread(i, slots, total)
        for (head, tail), size in zip(sequences, sizes, strict=True):
            if index < size:
                digits = _unranked(head, index)
                if digits not in seen and all(fits(digits + end * tail) for end in "059"):
                    seen.add(digits)
                    made += 1
                    yield digits, tail
                break
            index -= size
        if made == most:
            return
