"""The group ``place``: country, city, postal code, time zone, point and telephone number of one place a row.

Every part follows from one draw, the city: it alone decides the rest, or the range that the rest is drawn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from webapp.engine import cells as cellular
from webapp.engine.fields import joining, nations
from webapp.engine.fields.airport_tables import airports_of
from webapp.engine.fields.base import GroupKind
from webapp.engine.fields.geography import Anchor, Geography, Pool, geography_of
from webapp.engine.fields.joining import Lazy, Salted
from webapp.engine.fields.person_group import check_locales, locale_of_group
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Draws, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

UNIQUE_PHONES = 1_000_000
"""Telephone numbers that a place must have to be chosen where numbers are to be unique all over the world."""

NUMBERS = ("phone_number", "mobile")
"""Types that write a telephone number."""

ANCHORS = {"city": "city", "country": "country", "country_code": "country", "state": "state"}
"""Types of which one in a group may be unique: the place is then drawn from its values."""

_POSTAL_SALT, _PHONE_SALT, _POINT_SALT, _STREET_SALT, _ANCHOR_SALT = 1, 2, 3, 4, 5
_SALTS = 6
_MOBILE_SALT = 6
AIRPORT_SALT, DISTRICT_SALT = 7, 8
_U32 = np.uint64(32)
_LOW_32 = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Chosen:
    """What overrides leave to choose from: cities, and the head and tail of a postal code that is fixed."""

    pool: Pool
    code: tuple[int, int] | None = None


class Places(Salted):
    """The places of a block's rows, each part made when it is first asked for. Vectors hold rows of the tables."""

    def __init__(
        self,
        draws: Draws,
        salts: int,
        geography: Geography,
        chosen: Chosen,
        anchor: Anchor | None,
        spoken: int | None = None,
    ) -> None:
        super().__init__(draws, salts)
        self.geography, self._pool, self._code, self._anchor = geography, chosen.pool, chosen.code, anchor
        self._spoken = spoken

    @property
    def complete(self) -> bool:
        """Whether every place has a subdivision, a postal code and telephone numbers."""
        return self._pool.complete

    @Lazy
    def city(self) -> np.ndarray:
        """``int64[n]``."""
        if self._anchor is None:
            return self._pool.cities[cellular.below(self.bits(0), self._pool.cities.size)]
        parts = self._anchor.parts
        value = self._draws.permuted(parts.count.size)
        return self._pool.cities[parts.pick(value, self.bits(_ANCHOR_SALT) >> _U32)]

    @Lazy
    def country(self) -> np.ndarray:
        """``int64[n]``."""
        return self.geography.country[self.city]

    @Lazy
    def state(self) -> np.ndarray:
        """``int64[n]``: -1 where none is known."""
        return self.geography.state[self.city]

    @Lazy
    def postal(self) -> tuple[np.ndarray, np.ndarray]:
        """Head and tail of the postal code, ``uint64[n]`` each."""
        if self._code is not None:
            return np.full(self._draws.n, self._code[0], np.uint64), np.full(
                self._draws.n, self._code[1], np.uint64
            )
        bits = self.bits(_POSTAL_SALT)
        head = self.geography.postal.pick(self.city, bits >> _U32)
        if not self.complete:
            head = np.where(self.has_postal, head, np.uint64(len(self.geography.postal_heads) - 1))
        return head, self.geography.postal_tail.pick(head, bits & _LOW_32)

    @property
    def has_postal(self) -> np.ndarray:
        """``bool[n]``."""
        return self.geography.postal.count[self.city] > 0

    @property
    def has_phone(self) -> np.ndarray:
        """``bool[n]``."""
        return self.geography.phone.count[self.city] > 0

    @Lazy
    def phone(self) -> tuple[np.ndarray, np.ndarray]:
        """Head and digits of the telephone number, ``uint64[n]`` each."""
        return self._number(self.bits(_PHONE_SALT))

    @Lazy
    def mobile(self) -> tuple[np.ndarray, np.ndarray]:
        """Head and digits of a second number."""
        return self._number(self.bits(_MOBILE_SALT))

    def _number(self, bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        head = self.geography.phone.pick(self.city, bits >> _U32)
        return head, (bits & _LOW_32) * self.geography.phone_tail_count[head] >> _U32

    def phone_number(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Head and digits of number ``number`` of each place."""
        start = self.geography.phone.start[self.city]
        head, digits = np.divmod(number, self.geography.phone_tail_count[start])
        return start + head, digits

    @Lazy
    def point(self) -> np.ndarray:
        """``uint64[n]``: random bits of where in the city the place lies."""
        return self.bits(_POINT_SALT)

    @Lazy
    def street_locale(self) -> np.ndarray:
        """``int64[n]``: whose streets a place has."""
        return self.geography.streets.spoken_in(self.country, self._spoken)

    @Lazy
    def street(self) -> np.ndarray:
        """``uint64[n]``."""
        return self.geography.streets.streets.pick(self.street_locale, self._street_bits >> _U32)

    @Lazy
    def house(self) -> np.ndarray:
        """``uint64[n]``: rows of the house numbers."""
        return self.geography.streets.numbers.pick(self.street_locale, self._street_bits & _LOW_32)

    @Lazy
    def _street_bits(self) -> np.ndarray:
        return self.bits(_STREET_SALT)


class Place(GroupKind):
    """One place a row: anywhere, or in the country of the locale that is asked for."""

    kind = "place"

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        check_locales(fields, compiler)
        asked = [(field, country) for field in fields if (country := getattr(field.options, "country", None))]
        if len({country for _, country in asked}) > 1:
            text = "Fields that share one place have one country."
            compiler.fault(
                asked[-1][0], "options.country", "conflict", text, "Give one of them a group of its own."
            )
        self._geography = geography_of(compiler.vocabulary)
        self._whole = Chosen(pool_of_group(fields, compiler))
        self._closed = unique_phones(fields)
        self._salts = _SALTS if len(fields) >= joining.SALTS_PAY else 0
        self._anchored = anchored(fields)
        self._anchor = None if self._anchored is None else anchor_of_group(fields, self._anchored, compiler)
        self._spoken = spoken_of_group(fields, compiler)

    def prepare(self, env: Env, fixed: dict[str, Any]) -> tuple[Chosen, list[Fault]]:
        if not fixed:
            return self._whole, []
        if self._anchored is not None:
            text = f'Places are drawn by the values of "{self._anchored.name}", which is unique; they do not follow.'
            return self._whole, [Fault(f"overrides.{name}", "no_match", text, "") for name in fixed]
        types = {field.name: field.type.name for field in (*self.fields, *self.readers)}
        found: dict[str, np.ndarray] = {}
        code = None
        for name, value in fixed.items():
            text = str(value).strip()
            cities: np.ndarray | None
            if types[name] == "zip_code":
                cities, code = self._cities_with_code(text)
            else:
                cities = self._cities_with(types[name], text)
            if cities is not None and cities.size:
                found[name] = cities
        narrowed = self._narrowed(list(found.values())) if found else self._whole.pool
        unmet = [name for name in fixed if narrowed is None or name not in found]
        chosen = self._whole if narrowed is None else Chosen(narrowed, code)
        return chosen, [_unmet(name, fixed[name]) for name in unmet]

    def draw(self, draws: Draws, state: Chosen) -> Places:
        return Places(draws, self._salts, self._geography, state, self._anchor, self._spoken)

    def _narrowed(self, found: list[np.ndarray]) -> Pool | None:
        """Cities that are in all of ``found``: of the group's own pool if there are such, else of all the world."""
        common = found[0]
        for cities in found[1:]:
            common = np.intersect1d(common, cities, assume_unique=True)
        inside = np.intersect1d(common, self._whole.pool.cities, assume_unique=True)
        if inside.size:
            return Pool(inside, self._whole.pool.complete)
        if self._closed:
            return None  # other places may not have numbers enough
        return self._geography.pool_of(common) if common.size else None

    def _cities_with(self, kind: str, text: str) -> np.ndarray | None:
        """Cities that fit the value of a fixed field; None where values of its type tell no place."""
        tables = self._geography
        match kind:
            case "country" | "country_code":
                row = tables.country_row(text)
                return None if row is None else np.flatnonzero(tables.country == row)
            case "city":
                return joining.where(tables.city_names, text)
            case "state":
                return np.flatnonzero(np.isin(tables.state, joining.where(tables.state_names, text)))
            case "state_abbr":
                return np.flatnonzero(np.isin(tables.state, joining.where(tables.state_codes, text)))
            case "time_zone":
                return np.flatnonzero(np.isin(tables.time_zone, joining.where(tables.zone_names, text)))
            case "phone_number" | "mobile":
                return self._cities_with_number(text)
            case "airport_code" | "airport_name":
                return airports_of(tables.vocabulary).cities_with(text)
            case (
                "continent"
                | "language"
                | "nationality"
                | "currency_code"
                | "currency_symbol"
                | "currency_name"
            ):
                countries = nations.countries_with(tables.vocabulary, tables, kind, text)
                return np.flatnonzero(np.isin(tables.country, countries))
        return None

    def _cities_with_code(self, text: str) -> tuple[np.ndarray, tuple[int, int] | None]:
        """Cities that have a postal code, and its head and tail; if it is a real code of some cities, those alone, else
        all cities whose pattern it fits."""
        tables = self._geography
        found: list[tuple[int, int]] = []
        for cut in range(len(text), 0, -1):
            for head in joining.exactly(tables.postal_heads, text[:cut]):
                start, count = int(tables.postal_tail.start[head]), int(tables.postal_tail.count[head])
                tails = tables.postal_tails.slice(start, count)
                found += [(head, start + at) for at in joining.exactly(tails, text[cut:])]
            if found and cut == len(text):
                break
        fits = np.zeros(len(tables.city_names), bool)
        first = tables.postal.start
        for head, _ in found:
            fits |= (first <= np.uint64(head)) & (np.uint64(head) < first + tables.postal.count)
        return np.flatnonzero(fits), found[0] if found else None

    def _cities_with_number(self, text: str) -> np.ndarray | None:
        """Cities of the countries whose calling code an international number begins with."""
        digits = "".join(ch for ch in text if ch.isdigit())
        if not text.startswith("+"):
            return None
        codes = self._geography.countries["calling_code"].to_pylist()
        rows = [row for row, code in enumerate(codes) if code and digits.startswith(code)]
        return np.flatnonzero(np.isin(self._geography.country, rows))


def country_of_group(fields: Sequence[FieldSpec], compiler: Compiler) -> str | None:
    """The country that a group's places lie in (alpha-2): what a field's option says, else its locale's, else None for
    all the world."""
    geography = geography_of(compiler.vocabulary)
    for field in fields:
        asked = getattr(field.options, "country", None)
        if asked and (row := geography.country_row(asked)) is not None:
            return geography.countries["alpha2"][row].as_py()
    locale = locale_of_group(fields, compiler, None)
    return locale.partition("_")[2] if locale else None


def spoken_of_group(fields: Sequence[FieldSpec], compiler: Compiler) -> int | None:
    """The row of the group's locale in `Streets.locales`, if its country has the streets of another one."""
    geography = geography_of(compiler.vocabulary)
    locale = locale_of_group(fields, compiler, None)
    return geography.streets.locales.index(locale) if locale in geography.spoken_beside else None


def anchored(fields: Sequence[FieldSpec]) -> FieldSpec | None:
    """The unique field that a group's places are drawn by, if there is one."""
    return next((field for field in fields if field.common.unique and field.type.name in ANCHORS), None)


def unique_phones(fields: Sequence[FieldSpec]) -> bool:
    """Whether a group's places must have telephone numbers enough for all rows."""
    return any(field.common.unique and field.type.name in NUMBERS for field in fields)


def anchor_of_group(fields: Sequence[FieldSpec], unique: FieldSpec, compiler: Compiler) -> Anchor:
    """The values of the unique field that a group's places are drawn by."""
    column = ANCHORS[unique.type.name]
    return geography_of(compiler.vocabulary).anchor(country_of_group(fields, compiler), column)


def pool_of_group(fields: Sequence[FieldSpec], compiler: Compiler) -> Pool:
    """The cities that a group's places are chosen from, before anything is overridden. For unique telephone numbers
    all over the world, cities with numbers enough."""
    geography = geography_of(compiler.vocabulary)
    country = country_of_group(fields, compiler)
    pool = geography.pool(country)

    if country is not None or not unique_phones(fields) or anchored(fields) is not None:
        return pool
    return Pool(pool.cities[geography.phone_space[pool.cities] >= UNIQUE_PHONES], pool.complete)


def _unmet(name: str, value: Any) -> Fault:
    text = f'No place fits "{value}" here; the other fields of the group do not follow it.'
    return Fault(f"overrides.{name}", "no_match", text, "")
