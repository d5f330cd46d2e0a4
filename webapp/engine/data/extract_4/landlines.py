"""Landlines of the cities for which the third extractor has none.

It knows the numbers of a subdivision where libphonenumber's table of areas names just that subdivision, and numbers of
the country's usual length. Here an area may be named after the city or after several places ("Taoyuan/Hsinchu"), and
numbers may be shorter or longer, as those of Beijing. `landlines.txt` has names of areas that the table spells
otherwise, and area codes of countries that it does not have. A city whose area is not known has no landlines.
"""

from __future__ import annotations

import re
import re._parser as parser  # type: ignore[import-not-found]  # typeshed has no stub of it
from collections import Counter
from copy import deepcopy
from functools import cache
from math import prod

import phonenumbers
import pyarrow as pa
from phonenumbers import PhoneMetadata
from phonenumbers.geodata import GEOCODE_DATA, GEOCODE_LONGEST_PREFIX

from webapp.engine.data import extract_3
from webapp.engine.data.extract.phones import _expanded, _split, _spread, _unranked
from webapp.engine.data.extract.tools import fold
from webapp.engine.data.extract_3 import places
from webapp.engine.data.extract_3.locales import LOCALES
from webapp.engine.data.extract_3.phones import Phones, _narrowed, _prefixes_of
from webapp.engine.data.extract_4.tools import listed_by

HEADS = 24
"""Heads of the landlines of one area."""
LEAST_HEADS = 8
LONGEST = 5
"""Digits of the area codes that are taken from the table; longer ones are of exchanges and of mobile numbers."""
MOST_PREFIXES = 24
_GENERIC = re.compile(
    r"\b(province|region|county|district|republic of|republic|oblast|kray|krai|canton|autonomous|state|city)\b"
)
Sequence = tuple[tuple[str, ...], int]


def _names(text: str) -> set[str]:
    """The places that a description of an area names, folded."""
    parts = re.split(r"[/,()]| - | and ", text)
    found = {fold(part.strip()) for part in parts}
    return {name for one in found for name in (one, fold(_GENERIC.sub(" ", one).strip())) if name}


class Areas:
    """The areas of a country by the places that they are named after."""

    def __init__(self, country: str) -> None:
        self._calling = str(phonenumbers.country_code_for_region(country))
        self._country = country
        own = listed_by("landlines")
        self._named: dict[str, set[str]] = {}
        """Prefixes, with the calling code, by the folded name of a place."""
        self._listed: set[str] = set()
        for prefix in _prefixes_of(self._calling):
            if len(prefix) <= len(self._calling) + LONGEST and self._is_here(prefix):
                for name in _names(GEOCODE_DATA[prefix].get("en", "")):
                    self._named.setdefault(name, set()).add(prefix)
        for entry in own.get("codes", {}).get(country, ()):
            name, _, codes = entry.partition("=")
            self._named[fold(name)] = {f"{self._calling}{code}" for code in codes.split(",")}
            self._listed |= self._named[fold(name)]
        for entry in own.get("names", {}).get(country, ()):
            name, _, others = entry.partition("=")
            for other in others.split(","):
                self._named.setdefault(fold(name), set()).update(self._named.get(fold(other), ()))
        self._divisions = _divisions(country)
        self.everywhere = country in own.get("nationwide", {})

    def _is_here(self, prefix: str) -> bool:
        digits = prefix[len(self._calling) :]
        return self._calling != "7" or (digits[0] == "7") == (self._country == "KZ")

    def of(self, names: set[str]) -> frozenset[str]:
        """The prefixes of the areas that are named after one of some places."""
        return frozenset(prefix for name in names for prefix in self._named.get(name, ()))

    def tells(self, prefixes: frozenset[str], digits: str) -> bool:
        """Whether national digits are of the areas of some prefixes, and of no smaller one."""
        number = self._calling + digits
        if any(number.startswith(prefix) for prefix in prefixes & self._listed):
            return True
        for length in range(min(GEOCODE_LONGEST_PREFIX, len(number)), len(self._calling), -1):
            if number[:length] in GEOCODE_DATA or number[:length] in prefixes:
                return number[:length] in prefixes
        return False

    def told(self, digits: str) -> set[str]:
        """The subdivisions (ISO 3166-2) that the table says a number may be of; none if it does not say."""
        number = self._calling + digits
        lengths = range(min(GEOCODE_LONGEST_PREFIX, len(number)), len(self._calling), -1)
        said = next(
            (GEOCODE_DATA[number[:n]].get("en", "") for n in lengths if number[:n] in GEOCODE_DATA), ""
        )
        found: set[str] = set()
        for alternative in said.split("/"):
            parts = [_letters(part) for part in re.split(r",| - ", alternative)]
            own = next((self._divisions[part] for part in reversed(parts) if part in self._divisions), None)
            if own is None:
                return set()  # a place that is no subdivision may be in any
            found |= own
        return found

    def heads(self, prefixes: frozenset[str], state: str) -> list[tuple[str, int]]:
        """(national digits without the tail, digits of the tail) of landlines with one of some prefixes that the table
        does not say to be of another subdivision than ``state`` ("" if that is not known), all with a tail of the same
        length; evenly chosen."""
        listed = sorted(prefix[len(self._calling) :] for prefix in prefixes) or [""]
        by_shape: dict[tuple[int, int], list[Sequence]] = {}
        for prefix in listed[:: max(1, len(listed) // MOST_PREFIXES)]:
            for sequence in (
                _by_beginning(self._country).get(prefix[:2], ()) if prefix[1:] else _sequences(self._country)
            ):
                for head, tail in _narrowed(sequence, prefix):
                    by_shape.setdefault((len(head) + tail, tail), []).append((head, tail))
        if not by_shape:
            return []
        found = max(
            by_shape.values(), key=lambda one: sum(prod(map(len, head)) * 10**tail for head, tail in one)
        )
        sizes = [prod(map(len, head)) for head, _ in found]
        total, made = sum(sizes), {}
        slots = min(total, 4 * HEADS)
        for slot in range(slots):
            index = _spread(slot, slots, total)
            for (head, tail), size in zip(found, sizes, strict=True):
                if index < size:
                    digits = _unranked(head, index)
                    ends = [digits + end * tail for end in "059"]
                    own = not prefixes or all(self.tells(prefixes, one) for one in ends)
                    if own and not any(
                        state and (told := self.told(one)) and state not in told for one in ends
                    ):
                        made[digits] = tail
                    break
                index -= size
        # Subscribers' numbers do not begin with 0 or 1, though the library's patterns have some.
        unusual = tuple(prefix + digit for prefix in listed if prefix for digit in "01")
        usual = {digits: tail for digits, tail in made.items() if not digits.startswith(unusual)}
        every = list((usual if len(usual) >= LEAST_HEADS else made).items())
        return every[:: max(1, len(every) // HEADS)][:HEADS]


def _divisions(country: str) -> dict[str, set[str]]:
    """Codes of the subdivisions of a country, and of those around them, by their names, first words and codes."""
    import pycountry

    listed = pycountry.subdivisions.get(country_code=country)  # type: ignore[no-untyped-call]  # it has no types
    every = {one.code: one for one in listed or ()}
    found: dict[str, set[str]] = {}
    for one in every.values():
        codes = {one.code.partition("-")[2]}
        above = one
        while above.parent_code in every:
            above = every[above.parent_code]
            codes.add(above.code.partition("-")[2])
        for name in (one.name, one.name.split(" ")[0], one.code.partition("-")[2]):
            found.setdefault(_letters(name), set()).update(codes)
    return found


def _letters(text: str) -> str:
    """A name without case, accents and signs."""
    return "".join(sign for sign in fold(text) if sign.isalnum())


@cache
def _sequences(country: str) -> list[Sequence]:
    metadata = PhoneMetadata.metadata_for_region(country)
    described = metadata.fixed_line if metadata is not None else None
    if described is None or not described.national_number_pattern:
        return []
    return [_split(sets) for sets in _expanded(parser.parse(described.national_number_pattern))]


@cache
def _by_beginning(country: str) -> dict[str, list[Sequence]]:
    """The sequences that can begin with each pair of digits."""
    found: dict[str, list[Sequence]] = {}
    for head, tail in _sequences(country):
        if len(head) >= 2:
            for first in head[0]:
                for second in head[1]:
                    found.setdefault(first + second, []).append((head, tail))
    return found


@cache
def _made() -> tuple[list[tuple[int, int]], pa.Table, pa.Table]:
    """Of each city the range of its landlines (0 for those of the third extractor); the heads of all numbers, and
    their tails."""
    table = extract_3.TABLES["cities"]()
    codes = extract_3.TABLES["countries"]()["alpha2"].to_pylist()
    states = extract_3.TABLES["states"]().to_pylist()
    # A copy, as the third extractor's own tables are made of them.
    numbers: Phones = deepcopy(places._geography().numbers)
    wanted = {locale.partition("_")[2] for locale in LOCALES}
    ranges = [(0, 0)] * table.num_rows
    known: dict[tuple[str, frozenset[str], str], tuple[int, int]] = {}
    areas: dict[str, Areas] = {}
    columns = [table[name].to_pylist() for name in ("folded", "country", "state", "line_count")]
    state_of = {(state["country"], state["folded"]): state for state in states}
    homonyms = Counter(zip(columns[0], columns[1], strict=True))
    for row, (name, country_at, state_at, count) in enumerate(zip(*columns, strict=True)):
        country = codes[country_at]
        if country not in wanted or count:
            continue
        if country not in areas:
            areas[country] = Areas(country)
        here = areas[country]
        state = states[state_at] if state_at >= 0 else None
        prefixes = here.of({f"@{fold(state['code'])}"}) if state is not None else frozenset()
        # A city may have the name of a subdivision that it is not in, such as Buenos Aires.
        alone = homonyms[name, country_at] == 1 and state_of.get((country, name), state) == state
        if not prefixes and alone:
            prefixes = here.of({name})
        if not prefixes and state is not None:
            prefixes = here.of(_names_of_state(country, state["code"], state["name"]))
        if not prefixes and not here.everywhere:
            continue
        key = country, prefixes, state["code"] if state is not None else ""
        if key not in known:
            start = len(numbers.tail_count)
            for digits, tail in here.heads(prefixes, key[2]):
                numbers._add_head(phonenumbers.country_code_for_region(country), digits, tail)
            known[key] = start, len(numbers.tail_count) - start
        ranges[row] = known[key]
    return ranges, numbers.head_table(), numbers.tail_table()


def _names_of_state(country: str, code: str, name: str) -> set[str]:
    import pycountry

    code = f"{country}-{code}"
    official = pycountry.subdivisions.get(code=code)  # type: ignore[no-untyped-call]  # it has no types
    return _names(name) | (_names(official.name) if official else set())


def ranges() -> list[tuple[int, int]]:
    """(start, count) of the landlines of each city in `heads`; a count of 0 for those that the third extractor has, and
    for those whose area is not known."""
    return _made()[0]


def heads() -> pa.Table:
    """See `phones.Phones.head_table`."""
    return _made()[1]


def tails() -> pa.Table:
    """See `phones.Phones.tail_table`."""
    return _made()[2]
