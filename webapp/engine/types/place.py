"""Places: country, city, street, postal code, point, time zone, telephone and airports.

The fields of a group ``place`` agree: every part follows from one draw, the city, which determines the rest, or the
range that the rest is drawn from. Streets and addresses use the words and the order of the row's country.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices, Field

from webapp import limits
from webapp.engine import random as engine_random
from webapp.engine import text_parts
from webapp.engine.random import lookup
from webapp.engine.text import decimal_array
from webapp.engine.types import countries, joining
from webapp.engine.types.base import (
    FieldType,
    GroupKind,
    IndexedType,
    OptionsModel,
    dictionary_array,
    max_text_length,
)
from webapp.engine.types.codes import strings_from_matrix
from webapp.engine.types.geography import OWN, ROMAN, Anchor, CityPool, Geography, Range, geography_of
from webapp.engine.types.joining import LazyProperty, SaltedBits
from webapp.engine.types.person import check_locales, locale_of_group
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.random import RandomStream
    from webapp.engine.spec import FieldSpec


class Airports:
    """``columns`` are ``iata``, ``icao`` and ``name``, a row for each airport."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        table = vocabulary.table("airports")
        self.columns: dict[str, pa.StringArray] = {
            name: table[name].chunk(0) for name in ("iata", "icao", "name")
        }
        ranges = vocabulary.table("city_airports")
        self._rows_by_city = Range(
            *(ranges[part].to_numpy().astype(np.uint64) for part in ("start", "count"))
        )
        # One more at the end, for cities that begin there and have none.
        self._airport_rows = np.append(
            vocabulary.table("near_airports")["airport"].to_numpy().astype(np.int64), -1
        )
        self.known = self._rows_by_city.count > 0
        """``bool[cities]``: those that an airport serves."""
        self._all_known = bool(self.known.all())

    def pick(self, city: np.ndarray, random32: np.ndarray) -> np.ndarray:
        """``int64[n]``: rows of airports that serve cities; -1 where a country has none."""
        rows = self._airport_rows[self._rows_by_city.pick(city, random32).view(np.int64)]
        return rows if self._all_known else np.where(self.known[city], rows, -1)

    def cities_with(self, text: str) -> np.ndarray:
        """``int64[k]``: the cities that the airport of this code or name serves, in rising order."""
        rows = np.concatenate([joining.find_ignoring_case(column, text) for column in self.columns.values()])
        owner = np.repeat(np.arange(self._rows_by_city.count.size), self._rows_by_city.count.astype(np.int64))
        return np.unique(owner[np.isin(self._airport_rows[:-1], rows)])


def airports_of(vocabulary: Vocabulary) -> Airports:
    """The airports of a vocabulary, created once per process."""
    return vocabulary.cached(("airports",), lambda: Airports(vocabulary))


MIN_UNIQUE_PHONES = 1_000_000
"""Telephone numbers that a place must have to be chosen where numbers are to be unique all over the world."""

PHONE_TYPES = ("phone_number", "mobile")
"""Types that write a telephone number."""

ANCHORS = {"city": "city", "country": "country", "country_code": "country", "state": "state"}
"""Types of which one in a group may be unique: the place is then drawn from its values."""

_POSTAL_SALT, _PHONE_SALT, _POINT_SALT, _STREET_SALT, _ANCHOR_SALT = 1, 2, 3, 4, 5
_SALTS = 6
_MOBILE_SALT = 6
AIRPORT_SALT, DISTRICT_SALT, KIND_SALT = 7, 8, 9
_U32 = np.uint64(32)
_LOW_32 = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class PlaceChoices:
    """What overrides leave to choose from: cities, and the head and tail of a postal code that is fixed."""

    pool: CityPool
    code: tuple[int, int] | None = None


class Places(SaltedBits):
    """The places of a block's rows, each part computed on first use. Vectors hold rows of the tables."""

    def __init__(
        self,
        draws: RandomStream,
        salts: int,
        geography: Geography,
        candidates: PlaceChoices,
        anchor: Anchor | None,
        street_locale_index: int | None = None,
    ) -> None:
        super().__init__(draws, salts)
        self.geography, self._pool, self._code, self._anchor = (
            geography,
            candidates.pool,
            candidates.code,
            anchor,
        )
        self._street_locale = street_locale_index

    @property
    def is_complete(self) -> bool:
        """Whether every place has a subdivision, a postal code and telephone numbers."""
        return self._pool.is_complete

    @LazyProperty
    def city(self) -> np.ndarray:
        """``int64[n]``."""
        if self._anchor is None:
            return lookup(self._pool.cities, engine_random.below(self.bits(0), self._pool.cities.size))
        parts = self._anchor.parts
        value = self._draws.permuted(parts.count.size)
        return self._pool.cities[parts.pick(value, self.bits(_ANCHOR_SALT) >> _U32)]

    @LazyProperty
    def country(self) -> np.ndarray:
        """``int64[n]``."""
        return lookup(self.geography.country, self.city)

    @LazyProperty
    def state(self) -> np.ndarray:
        """``int64[n]``: -1 if none is known."""
        return lookup(self.geography.state, self.city)

    @LazyProperty
    def postal(self) -> tuple[np.ndarray, np.ndarray]:
        """Head and tail of the postal code, ``uint64[n]`` each."""
        if self._code is not None:
            return np.full(self._draws.n, self._code[0], np.uint64), np.full(
                self._draws.n, self._code[1], np.uint64
            )
        bits = self.bits(_POSTAL_SALT)
        head = self.geography.postal.pick(self.city, bits >> _U32)
        if not self.is_complete:
            head = np.where(self.has_postal, head, np.uint64(len(self.geography.postal_heads) - 1))
        return head, self.geography.postal_tail.pick(head, bits & _LOW_32)

    @property
    def has_postal(self) -> np.ndarray:
        """``bool[n]``."""
        return lookup(self.geography.postal.count, self.city) > 0

    @property
    def has_phone(self) -> np.ndarray:
        """``bool[n]``."""
        return lookup(self.geography.phone.count, self.city) > 0

    @LazyProperty
    def phone(self) -> tuple[np.ndarray, np.ndarray]:
        """Head and digits of the telephone number, ``uint64[n]`` each: a landline or a mobile number."""
        if self.geography.line is None:
            return self._number(self.bits(_PHONE_SALT))
        is_landline = (self.bits(KIND_SALT) & np.uint64(1)).astype(bool)
        head, digits = self._number(self.bits(_PHONE_SALT))
        line, line_digits = self.landline
        return np.where(is_landline, line, head), np.where(is_landline, line_digits, digits)

    @LazyProperty
    def landline(self) -> tuple[np.ndarray, np.ndarray]:
        """Head and digits of a landline of the row's region; of a mobile number where none is known."""
        bits, lines = self.bits(_PHONE_SALT), self.geography.line
        head, digits = self._number(bits)
        if lines is None:
            return head, digits
        known = lookup(lines.count, self.city) > 0
        line = lines.pick(self.city, bits >> _U32)
        head = np.where(known, line, head)
        return head, (bits & _LOW_32) * lookup(self.geography.phone_tail_count, head) >> _U32

    @LazyProperty
    def mobile(self) -> tuple[np.ndarray, np.ndarray]:
        """Head and digits of a second number."""
        return self._number(self.bits(_MOBILE_SALT))

    def _number(self, bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        head = self.geography.phone.pick(self.city, bits >> _U32)
        return head, (bits & _LOW_32) * lookup(self.geography.phone_tail_count, head) >> _U32

    def phone_number(self, number: np.ndarray, fixed: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Head and digits of number ``number`` of each place; of its landlines if ``fixed``."""
        source = self.geography.line if fixed and self.geography.line is not None else self.geography.phone
        start = source.start[self.city]
        head, digits = np.divmod(number, self.geography.phone_tail_count[start])
        return start + head, digits

    @LazyProperty
    def point_bits(self) -> np.ndarray:
        """``uint64[n]``: random bits of the place's position in the city."""
        return self.bits(_POINT_SALT)

    @LazyProperty
    def street_locale(self) -> np.ndarray:
        """``int64[n]``: the locale whose streets a place has."""
        return self.geography.streets.locale_rows(self.country, self._street_locale)

    @LazyProperty
    def street(self) -> np.ndarray:
        """``uint64[n]``."""
        return self.geography.streets.streets.pick(self.street_locale, self._street_bits >> _U32)

    @LazyProperty
    def house_number(self) -> np.ndarray:
        """``uint64[n]``: rows of the house numbers."""
        return self.geography.streets.numbers.pick(self.street_locale, self._street_bits & _LOW_32)

    @LazyProperty
    def _street_bits(self) -> np.ndarray:
        return self.bits(_STREET_SALT)


class PlaceKind(GroupKind):
    """One place a row: anywhere, or in the country of the requested locale."""

    kind = "place"

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        check_locales(fields, compiler)
        requested = [
            (field, country) for field in fields if (country := getattr(field.options, "country", None))
        ]
        if len({country for _, country in requested}) > 1:
            text = "All fields of a place must have the same country."
            compiler.fault(
                requested[-1][0], "options.country", "conflict", text, "Set a separate group for one of them."
            )
        self._geography = geography_of(compiler.vocabulary)
        self._local = self._geography.local_names(display_locale_of_group(fields, compiler))
        self._all_candidates = PlaceChoices(pool_of_group(fields, compiler))
        self._has_unique_phones = has_unique_phones(fields)
        self._salts = _SALTS if len(fields) >= joining.MIN_SALTED_FIELDS else 0
        self._anchor_field = unique_place_field(fields)
        self._anchor = (
            None if self._anchor_field is None else anchor_of_group(fields, self._anchor_field, compiler)
        )
        self._street_locale = street_locale_row(fields, compiler)

    def prepare(self, env: GenerationContext, fixed: dict[str, Any]) -> tuple[PlaceChoices, list[Fault]]:
        if not fixed:
            return self._all_candidates, []
        if self._anchor_field is not None:
            name = self._anchor_field.name
            text = f'The field "{name}" is unique and determines the places, so the places ignore this value.'
            return self._all_candidates, [Fault(f"overrides.{name}", "no_match", text, "") for name in fixed]
        types = {field.name: field.type.name for field in (*self.fields, *self.readers)}
        cities_by_field: dict[str, np.ndarray] = {}
        code = None
        for name, value in fixed.items():
            text = str(value).strip()
            cities: np.ndarray | None
            if types[name] == "zip_code":
                cities, code = self._cities_with_code(text)
            else:
                cities = self._cities_with(types[name], text)
            if cities is not None and cities.size:
                cities_by_field[name] = cities
        pool = (
            self._intersection(list(cities_by_field.values()))
            if cities_by_field
            else self._all_candidates.pool
        )
        unmet = [name for name in fixed if pool is None or name not in cities_by_field]
        candidates = self._all_candidates if pool is None else PlaceChoices(pool, code)
        return candidates, [
            Fault(
                f"overrides.{name}",
                "no_match",
                f'No place matches "{fixed[name]}" here; the other fields of the group ignore it.',
                "",
            )
            for name in unmet
        ]

    def draw(self, draws: RandomStream, state: PlaceChoices) -> Places:
        return Places(draws, self._salts, self._geography, state, self._anchor, self._street_locale)

    def _intersection(self, city_sets: list[np.ndarray]) -> CityPool | None:
        """Cities that are in all of ``city_sets``: of the group's own pool if there are such, else of all the world."""
        common = city_sets[0]
        for cities in city_sets[1:]:
            common = np.intersect1d(common, cities, assume_unique=True)
        inside = np.intersect1d(common, self._all_candidates.pool.cities, assume_unique=True)
        if inside.size:
            return CityPool(inside, self._all_candidates.pool.is_complete)
        if self._has_unique_phones:
            return None  # other places may not have numbers enough
        return self._geography.city_pool_of(common) if common.size else None

    def _cities_with(self, kind: str, text: str) -> np.ndarray | None:
        """Return the cities that match the value of a fixed field; None if values of its type identify no place."""
        tables, local = self._geography, self._local
        match kind:
            case "country" | "country_code":
                row = tables.country_row(text)
                if (
                    row is None
                    and local is not None
                    and (named := joining.find_ignoring_case(local.country_names, text)).size
                ):
                    row = int(named[0])
                return None if row is None else np.flatnonzero(tables.country == row)
            case "city":
                found = joining.find_ignoring_case(tables.city_names, text)
                return (
                    found
                    if found.size or local is None
                    else joining.find_ignoring_case(local.city_names, text)
                )
            case "state" if (
                local is not None and (named := joining.find_ignoring_case(local.state_names, text)).size
            ):
                return np.flatnonzero(np.isin(tables.state, named))
            case "state":
                return np.flatnonzero(
                    np.isin(tables.state, joining.find_ignoring_case(tables.state_names, text))
                )
            case "state_abbr":
                return np.flatnonzero(
                    np.isin(tables.state, joining.find_ignoring_case(tables.state_codes, text))
                )
            case "time_zone":
                return np.flatnonzero(
                    np.isin(tables.time_zone, joining.find_ignoring_case(tables.zone_names, text))
                )
            case "phone_number" | "mobile":
                # The calling code that an international number begins with identifies its country.
                if not text.startswith("+"):
                    return None
                digits = "".join(ch for ch in text if ch.isdigit())
                codes = tables.countries["calling_code"].to_pylist()
                rows = [row for row, code in enumerate(codes) if code and digits.startswith(code)]
                return np.flatnonzero(np.isin(tables.country, rows))
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
                fitting = countries.countries_with_value(tables.vocabulary, tables, kind, text)
                return np.flatnonzero(np.isin(tables.country, fitting))
        return None

    def _cities_with_code(self, text: str) -> tuple[np.ndarray, tuple[int, int] | None]:
        """Cities that have a postal code, and its head and tail; if it is a real code of some cities, only those, else
        all cities whose pattern it fits."""
        tables = self._geography
        codes: list[tuple[int, int]] = []
        for length in range(len(text), 0, -1):
            for head in joining.find_exact(tables.postal_heads, text[:length]):
                start, count = int(tables.postal_tail.start[head]), int(tables.postal_tail.count[head])
                tails = tables.postal_tails.slice(start, count)
                codes += [(head, start + at) for at in joining.find_exact(tails, text[length:])]
            if codes and length == len(text):
                break
        matches = np.zeros(len(tables.city_names), bool)
        first = tables.postal.start
        for head, _ in codes:
            matches |= (first <= np.uint64(head)) & (np.uint64(head) < first + tables.postal.count)
        return np.flatnonzero(matches), codes[0] if codes else None


def country_of_group(fields: Sequence[FieldSpec], compiler: Compiler) -> str | None:
    """Return the country of a group's places (alpha-2): from a field's option, else its locale's, else None for
    all the world."""
    geography = geography_of(compiler.vocabulary)
    for field in fields:
        requested = getattr(field.options, "country", None)
        if requested and (row := geography.country_row(requested)) is not None:
            return geography.countries["alpha2"][row].as_py()
    locale = locale_of_group(fields, compiler, None)
    return locale.partition("_")[2] if locale else None


def display_locale_of_group(fields: Sequence[FieldSpec], compiler: Compiler) -> str | None:
    """Return the locale in whose language a group's places are written; None for English ones, and for those in another
    script if a field requests Latin letters."""
    locale = locale_of_group(fields, compiler, None)
    local = geography_of(compiler.vocabulary).local_names(locale)
    if local is None or (
        local.is_non_latin and any(getattr(field.options, "romanized", False) for field in fields)
    ):
        return None
    return locale


def street_locale_row(fields: Sequence[FieldSpec], compiler: Compiler) -> int | None:
    """The row of the group's locale in `Streets.locales`, if its country has the streets of another one, or it has
    streets in its own script."""
    geography = geography_of(compiler.vocabulary)
    local = display_locale_of_group(fields, compiler)
    if local is not None and f"{local}{OWN}" in geography.secondary_street_locales:
        return geography.streets.locales.index(f"{local}{OWN}")
    locale = locale_of_group(fields, compiler, None)
    return geography.streets.locales.index(locale) if locale in geography.secondary_street_locales else None


def unique_place_field(fields: Sequence[FieldSpec]) -> FieldSpec | None:
    """The unique field that a group's places are drawn by, if there is one."""
    return next((field for field in fields if field.common.unique and field.type.name in ANCHORS), None)


def has_unique_phones(fields: Sequence[FieldSpec]) -> bool:
    """Whether a group's places must have telephone numbers enough for all rows."""
    return any(field.common.unique and field.type.name in PHONE_TYPES for field in fields)


def anchor_of_group(fields: Sequence[FieldSpec], unique: FieldSpec, compiler: Compiler) -> Anchor:
    """The values of the unique field that a group's places are drawn by."""
    column = ANCHORS[unique.type.name]
    local = display_locale_of_group(fields, compiler)
    return geography_of(compiler.vocabulary).anchor(country_of_group(fields, compiler), column, local)


def pool_of_group(fields: Sequence[FieldSpec], compiler: Compiler) -> CityPool:
    """The cities that a group's places are chosen from, before anything is overridden. For unique telephone numbers
    all over the world, cities with numbers enough."""
    geography = geography_of(compiler.vocabulary)
    country = country_of_group(fields, compiler)
    pool = geography.city_pool(country, locale_of_group(fields, compiler, None))

    if country is not None or not has_unique_phones(fields) or unique_place_field(fields) is not None:
        return pool
    return CityPool(pool.cities[geography.phone_counts[pool.cities] >= MIN_UNIQUE_PHONES], pool.is_complete)


COORDINATE_PLACES = 5
"""Five decimals of a degree are about a metre."""
_SPREAD = 500
"""Places of a city are within this many units (about 550 m) of its centre."""


class Romanized(OptionsModel):
    """The option of names that a locale may write in another script."""

    romanized: bool = Field(
        False, description="Latin letters instead of the locale's own script, for all fields of the group."
    )


class PlaceField(FieldType):
    """What the types of the group have in common."""

    category = "place"
    group_kind = "place"
    localised = True
    dtype = pa.string()

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.geography = geography_of(compiler.vocabulary)
        self._vocabulary = compiler.vocabulary
        self.members = compiler.fields_of_same_group(field)
        self.country = country_of_group(self.members, compiler)
        self.locale = display_locale_of_group(self.members, compiler)
        self.local = self.geography.local_names(self.locale)
        self._anchor_size = None
        if field.common.unique and unique_place_field(self.members) is field:
            self._anchor_size = anchor_of_group(self.members, field, compiler).parts.count.size

    def distinct_count(self) -> int | None:
        return self._anchor_size

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        # The group draws its places by the values of this column; each occurs once.
        return self.fill(context)

    def unique_hint(self) -> str:
        other = unique_place_field(self.members)
        if self.name in ANCHORS and other is not None:
            return f'Only one field of a group can be unique, and "{other.name}" is unique.'
        return "Only one of city, state and country can be unique in a place: use a separate group."

    def warn_if_blank(self, known: np.ndarray, compiler: Compiler) -> None:
        """Record that the column is blank, if it is: ``known`` says of each city whether it has a value."""
        if compiler.vocabulary.engine >= 2 and self.country is not None:
            cities = pool_of_group(self.members, compiler).cities
            if not known[cities].any():
                text = f"{self.label}: no values are available for {self.country}, so the column is blank."
                compiler.warn(self.field, "no_values", text)

    def max_text_length(self, pool_name: str, pool: pa.Array) -> int:
        """Longest text of a pool that belongs to the vocabulary, measured once."""
        return self._vocabulary.cached(("longest", pool_name), lambda: max_text_length(pool))


class _PlaceColumn(PlaceField):
    """A type whose values are a column of one of the tables."""

    vector: ClassVar[Literal["city", "country", "state", "time_zone"]]

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = self.pool()
        if self.vector == "state":
            self.warn_if_blank(self.geography.state >= 0, compiler)
        key = self.key() if self.local is None else f"{self.key()} of {self.locale}"
        self.max_length = self.max_text_length(key, self._pool)

    @abstractmethod
    def pool(self) -> pa.Array:
        """The column."""

    def key(self) -> str:
        """Names the column among those of the vocabulary."""
        return self.name

    def fill(self, context: ColumnContext) -> pa.Array:
        places = context.group(Places)
        rows = getattr(places, self.vector)
        if places.is_complete or self.vector != "state":
            return joining.take_values(self._pool, rows)
        return self._pool.take(pa.array(rows, mask=rows < 0))


class City(_PlaceColumn):
    """A city of 15,000 people or more."""

    name = "city"
    label = "City"
    description = "A city, such as Lyon, consistent with country, state, postal code and time zone."
    aliases = ("town", "city name", "locality", "municipality")
    example = "Lyon"
    vector = "city"

    class Options(Romanized):
        pass

    options: Options

    def pool(self) -> pa.Array:
        return self.geography.city_names if self.local is None else self.local.city_names


class Country(_PlaceColumn):
    """A country by its name in the language of the locale; in English without one."""

    name = "country"
    label = "Country"
    description = "The name of a country, such as France, in the language of the locale."
    aliases = ("country name", "nation", "land", "current country")
    example = "France"
    vector = "country"

    class Options(Romanized):
        pass

    options: Options

    def pool(self) -> pa.Array:
        return self.geography.countries["name"] if self.local is None else self.local.country_names


class CountryCode(_PlaceColumn):
    """A country by its ISO 3166-1 code."""

    name = "country_code"
    label = "Country code"
    description = "The ISO 3166-1 code of a country, such as FR."
    aliases = (
        "country iso",
        "iso country",
        "alpha 2 code",
        "country abbreviation",
        "country alpha2",
        "bank country",
        "current country code",
    )
    example = "FR"
    vector = "country"

    class Options(OptionsModel):
        format: Literal["alpha2", "alpha3", "numeric"] = Field("alpha2", description="FR, FRA or 250.")

    options: Options

    def pool(self) -> pa.Array:
        return self.geography.countries[self.options.format]

    def key(self) -> str:
        return self.options.format


class State(_PlaceColumn):
    """A first-level subdivision: state, province, region."""

    name = "state"
    label = "State or province"
    description = "A state, province or region, such as Auvergne-Rhône-Alpes."
    aliases = (
        "province",
        "region",
        "county",
        "administrative unit",
        "state full",
        "prefecture",
        "bundesland",
    )
    example = "Auvergne-Rhône-Alpes"
    vector = "state"

    class Options(Romanized):
        pass

    options: Options

    def pool(self) -> pa.Array:
        return self.geography.state_names if self.local is None else self.local.state_names


class StateAbbr(_PlaceColumn):
    """The part of a subdivision's ISO 3166-2 code that follows the country's."""

    name = "state_abbr"
    label = "State code"
    description = "The ISO 3166-2 code of a state, province or region, such as CA."
    aliases = (
        "state abbreviation",
        "state code",
        "province code",
        "us state",
        "province abbr",
        "region code",
        "state abbrev",
    )
    example = "CA"
    vector = "state"

    def pool(self) -> pa.Array:
        return self.geography.state_codes


class TimeZone(PlaceField):
    """A time zone of the tz database."""

    name = "time_zone"
    label = "Time zone"
    description = "The time zone of the place, such as Europe/Paris."
    aliases = ("pytimezone", "tz", "timezone name", "iana time zone")
    example = "Europe/Paris"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = self.max_text_length("zones", self.geography.zone_names)

    def fill(self, context: ColumnContext) -> pa.Array:
        return joining.take_values(
            self.geography.zone_names, self.geography.time_zone[context.group(Places).city]
        )


class _Coordinate(PlaceField):
    """Degrees with five decimals, within some hundred metres of the city's centre."""

    dtype = pa.decimal128(38, COORDINATE_PLACES)

    @abstractmethod
    def units(self, city: np.ndarray, bits: np.ndarray) -> np.ndarray:
        """``int64[n]`` of 1e-5 degrees."""

    def bounds(self, rows: int) -> tuple[int, int]:
        half = 180 * 10**COORDINATE_PLACES
        return -half, half

    def fill(self, context: ColumnContext) -> pa.Array:
        places = context.group(Places)
        return decimal_array(self.units(places.city, places.point_bits), COORDINATE_PLACES)

    def unique_hint(self) -> str:
        return "Two places may have the same degree: make the city unique, or use a number."


def _offsets(geography: Geography, city: np.ndarray, random32: np.ndarray) -> np.ndarray:
    """``int64[n]``: how far a place is from the centre of its city."""
    if geography.spread is None:
        return (random32 * np.uint64(2 * _SPREAD + 1) >> _U32).view(np.int64) - _SPREAD
    spread = geography.spread[city]
    return (random32 * (2 * spread + 1).view(np.uint64) >> _U32).view(np.int64) - spread


def latitude_units(geography: Geography, city: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """``int64[n]`` of 1e-5 degrees north: somewhere in each city, by random bits."""
    return geography.latitude[city] + _offsets(geography, city, bits >> _U32)


def longitude_units(geography: Geography, city: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """``int64[n]`` of 1e-5 degrees east."""
    return geography.longitude[city] + _offsets(geography, city, bits & _LOW_32)


class Latitude(_Coordinate):
    """Degrees north of the equator."""

    name = "latitude"
    label = "Latitude"
    description = "Latitude in degrees, in the row's city."
    aliases = ("coordinate", "lat", "geo latitude")
    example = 45.74846

    def units(self, city: np.ndarray, bits: np.ndarray) -> np.ndarray:
        return latitude_units(self.geography, city, bits)


class Longitude(_Coordinate):
    """Degrees east of Greenwich."""

    name = "longitude"
    label = "Longitude"
    description = "Longitude in degrees, in the row's city."
    aliases = ("lon", "lng", "long", "geo longitude")
    example = 4.84671

    def units(self, city: np.ndarray, bits: np.ndarray) -> np.ndarray:
        return longitude_units(self.geography, city, bits)


class ZipCode(PlaceField):
    """A postal code: in the United States one of the row's city, elsewhere as the country and mostly the region has
    them."""

    name = "zip_code"
    label = "Postal code"
    description = "A postal code of the row's city."
    aliases = (
        "postalcode plus4",
        "zipcode plus4",
        "postalcode in state",
        "postcode in state",
        "zipcode in state",
        "zip",
        "zipcode",
        "postcode",
        "post code",
        "postal",
        "plz",
        "pin code",
        "postal zip",
    )
    example = "69003"

    class Options(OptionsModel):
        format: str | None = Field(
            None,
            min_length=1,
            max_length=limits.MAX_AFFIX_CHARS,
            pattern="#",
            examples=["#####", "#####-####", "##-###"],
            description=(
                "A pattern in which each # is a random digit, used instead of the city's postal code. "
                "#####-#### adds four digits to a US ZIP code."
            ),
        )

    options: Options

    PLUS_FOUR: ClassVar[str] = "#####-####"

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        longest_code = self.max_text_length("postal heads", self.geography.postal_heads)
        longest_code += self.max_text_length("postal tails", self.geography.postal_tails)
        self.max_length = max(longest_code + len("-0000"), len(options.format or ""))
        has_plus_four = options.format == self.PLUS_FOUR and self.country == "US"
        self._pattern = None if has_plus_four else options.format
        if self._pattern is None:
            self.warn_if_blank(self.geography.postal.count > 0, compiler)

    def fill(self, context: ColumnContext) -> pa.Array:
        if self._pattern is not None:
            return joining.fill_pattern(self._pattern, context)
        places = context.group(Places)
        tables = self.geography
        head, tail = places.postal
        if self.options.format:
            return text_parts.join_parts(
                (tables.postal_heads, head), (joining.digit_table(4, "-"), context.below(10_000))
            )
        if self.country == "US" and places.is_complete:
            return text_parts.take(tables.postal_heads, head)
        code = text_parts.join_parts((tables.postal_heads, head), (tables.postal_tails, tail))
        return (
            code
            if places.is_complete
            else pc.if_else(pa.array(places.has_postal), code, pa.scalar(None, pa.string()))
        )

    def distinct_count(self) -> int | None:
        return None if self._pattern is None else joining.pattern_space(self._pattern)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        space = self.distinct_count()
        assert self._pattern is not None  # else the field could not be unique
        assert space is not None
        return joining.pattern_texts_at(self._pattern, context.permuted(space))

    def unique_hint(self) -> str:
        return "Each city has only a few codes: make the city unique, or use a regular expression."


_DEGREE = 10**COORDINATE_PLACES
_BETWEEN = ", "


class Coordinates(PlaceField):
    """Latitude and longitude in one text, the same as in the fields of those types."""

    name = "coordinates"
    label = "Coordinates"
    description = "Latitude and longitude in degrees, in the row's city."
    aliases = (
        "lat long",
        "lat lng",
        "latlng",
        "geo point",
        "gps",
        "gps coordinates",
        "geo coordinates",
        "local latlng",
        "location on land",
    )
    example = "45.74846, 4.84671"
    max_length = len("-89.12345, -179.12345")

    def fill(self, context: ColumnContext) -> pa.Array:
        places = context.group(Places)
        latitude = latitude_units(self.geography, places.city, places.point_bits)
        longitude = longitude_units(self.geography, places.city, places.point_bits)
        return text_parts.join_parts(*_degrees(latitude, _BETWEEN), *_degrees(longitude, ""))

    def unique_hint(self) -> str:
        return "Two places may have the same coordinates: make the city unique."


def _degrees(units: np.ndarray, end: str) -> tuple[text_parts.PoolPart, text_parts.PoolPart]:
    is_negative = units < 0
    whole, rest = np.divmod(np.abs(units), _DEGREE)
    return (_degree_texts(), whole + is_negative * 181), (_fraction_texts(end), rest)


@cache
def _degree_texts() -> pa.StringArray:
    """Degrees north and east, then those south and west, which include a zero too."""
    return pa.array([f"{sign}{degree}." for sign in ("", "-") for degree in range(181)])


@cache
def _fraction_texts(end: str) -> pa.StringArray:
    return pa.array([f"{rest:0{COORDINATE_PLACES}d}{end}" for rest in range(_DEGREE)])


class _CountryValueType(PlaceField):
    """A type whose values depend only on the country."""

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._texts = self.country_texts(compiler)
        self.max_length = self._texts.max_length

    def country_texts(self, compiler: Compiler) -> countries.CountryTexts:
        """The texts of the countries, in English where there are no others."""
        locale = self.locale
        if locale is not None:
            texts = countries.localized_texts(compiler.vocabulary, self.geography, self.source(), locale)
            if texts is not None:
                return texts
            compiler.warn_english(self.field, locale)
        return countries.of_country(compiler.vocabulary, self.geography, self.source())

    @abstractmethod
    def source(self) -> Callable[[Geography], Sequence[str]]:
        """Return the function that gives each country's text."""

    def fill(self, context: ColumnContext) -> pa.Array:
        places = context.group(Places)
        rows = self._texts.indices[places.country]
        if places.is_complete or rows.min(initial=0) >= 0:
            return dictionary_array(self._texts.texts, rows)
        return self._texts.texts.take(pa.array(rows, mask=rows < 0))

    def unique_hint(self) -> str:
        return "Several countries have the same value: make the country unique."


class Continent(_CountryValueType):
    """One of the seven, as GeoNames counts them."""

    name = "continent"
    label = "Continent"
    description = "The continent of the row's country, such as Europe."
    aliases = ("continent name", "world region")
    example = "Europe"

    def source(self) -> Callable[[Geography], Sequence[str]]:
        return countries.continents


class Language(_CountryValueType):
    """The first official language of the place's country, in English."""

    name = "language"
    label = "Language"
    description = "A language of the row's country, such as French."
    aliases = ("spoken language", "native language", "language name", "mother tongue", "language code")
    example = "French"

    class Options(OptionsModel):
        format: Literal["name", "code"] = Field("name", description="French, or its ISO 639 code: fr.")

    options: Options

    def source(self) -> Callable[[Geography], Sequence[str]]:
        return countries.languages if self.options.format == "name" else countries.language_codes


class Nationality(_CountryValueType):
    """What the people of the place's country are called: in the language of the locale if it is the locale's country,
    in English otherwise."""

    name = "nationality"
    label = "Nationality"
    description = "The nationality of people from the row's country, such as French."
    aliases = ("citizenship", "demonym", "nationality name")
    example = "French"

    def country_texts(self, compiler: Compiler) -> countries.CountryTexts:
        if self.locale is not None and self.country != self.locale.partition("_")[2]:
            compiler.warn_english(self.field, self.locale)
            return countries.of_country(compiler.vocabulary, self.geography, self.source())
        return super().country_texts(compiler)

    def source(self) -> Callable[[Geography], Sequence[str]]:
        return countries.nationalities


class StreetNumber(PlaceField):
    """The number of the row's street address, as the country writes it."""

    name = "street_number"
    label = "Street number"
    description = "The house number, the same as in the row's street address."
    aliases = ("house number", "building number", "house no", "street no", "civic number")
    example = "12"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        streets = self.geography.streets
        self._pool = compiler.vocabulary.cached(
            "house numbers", lambda: streets.after.slice(len(streets.names))
        )
        self.max_length = self.max_text_length("house numbers", self._pool)

    def fill(self, context: ColumnContext) -> pa.Array:
        places = context.group(Places)
        return joining.take_values(self._pool, places.house_number)

    def unique_hint(self) -> str:
        return "House numbers repeat from street to street: make the street address unique instead."


_DIGITS = np.frombuffer(b"0123456789bcdefghjkmnpqrstuvwxyz", np.uint8)
_HALF = 30
"""Bits of each coordinate in the longest hash."""
_INTERLEAVE = tuple(
    (np.uint64(shift), np.uint64(mask))
    for shift, mask in (
        (16, 0x0000FFFF0000FFFF),
        (8, 0x00FF00FF00FF00FF),
        (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333),
        (1, 0x5555555555555555),
    )
)


class Geohash(PlaceField):
    """The cell of the row's latitude and longitude: bits of both in turn, longitude first, in base 32 (Niemeyer)."""

    name = "geohash"
    label = "Geohash"
    description = "The geohash of the row's latitude and longitude."
    aliases = ("geo hash", "location hash", "grid cell")
    example = "u05kq2320"

    class Options(OptionsModel):
        precision: int = Field(
            9, ge=1, le=12, description=("Number of characters: 5 is about 5 km, 9 about 5 m.")
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = options.precision

    def fill(self, context: ColumnContext) -> pa.Array:
        places = context.group(Places)
        latitude = _cell(latitude_units(self.geography, places.city, places.point_bits), 90)
        longitude = _cell(longitude_units(self.geography, places.city, places.point_bits), 180)
        bits = _interleaved(longitude) << np.uint64(1) | _interleaved(latitude)
        out = np.empty((bits.size, self.options.precision), np.uint8)
        for place in range(self.options.precision):
            out[:, place] = _DIGITS.take(bits >> np.uint64(2 * _HALF - 5 * (place + 1)) & np.uint64(31))
        return strings_from_matrix(out)

    def unique_hint(self) -> str:
        return "Two places may have the same geohash: make the city unique."


def _cell(units: np.ndarray, maximum: int) -> np.ndarray:
    """``uint64[n]``: which of 2**30 equal parts from -``maximum`` to ``maximum`` degrees contains each of ``units``."""
    cells = ((units + maximum * _DEGREE) << _HALF) // (2 * maximum * _DEGREE)
    return np.clip(cells, 0, (1 << _HALF) - 1).view(np.uint64)


def _interleaved(bits: np.ndarray) -> np.ndarray:
    """``uint64[n]``: the lower 32 bits with a zero before each."""
    for shift, mask in _INTERLEAVE:
        bits = (bits | bits << shift) & mask
    return bits


_UNIT_WORDS: dict[str, tuple[str, ...]] = {
    "en": ("Apt. {}", "Suite {}", "Unit {}", "Floor {}"),
    "cs": ("byt {}", "{}. patro"),
    "da": ("lejl. {}", "{}. sal"),
    "de": ("Wohnung {}", "Etage {}", "App. {}"),
    "es": ("Piso {}", "Puerta {}", "Local {}"),
    "fi": ("as. {}", "kerros {}"),
    "fr": ("Appartement {}", "Étage {}", "Bâtiment {}"),
    "hu": ("{}. emelet", "{}. ajtó"),
    "it": ("Interno {}", "Piano {}", "Scala {}"),
    "nb": ("leilighet {}", "{}. etasje"),
    "nl": ("Appartement {}", "Verdieping {}"),
    "no": ("leilighet {}", "{}. etasje"),
    "pl": ("lok. {}", "m. {}", "piętro {}"),
    "pt": ("Apto {}", "Bloco {}", "Sala {}"),
    "ro": ("Ap. {}", "Etaj {}", "Bl. {}"),
    "sv": ("lgh {}", "vån {}"),
    "tr": ("Daire {}", "Kat {}"),
}
_UNIT_WORDS_ENGINE_2: dict[str, tuple[str, ...]] = {
    "ar": ("شقة {}", "الطابق {}"), "az": ("mənzil {}",), "bg": ("ап. {}", "ет. {}"), "bs": ("stan {}", "{}. kat"),
    "ca": ("Pis {}", "Porta {}"), "el": ("Διαμ. {}", "{}ος όροφος"), "et": ("korter {}", "{}. korrus"),
    "fa": ("واحد {}", "طبقه {}"),
    "fil": ("Unit {}", "Palapag {}"), "he": ("דירה {}", "קומה {}"), "hi": ("फ़्लैट {}", "मंज़िल {}"),
    "hr": ("stan {}", "{}. kat"),
    "hy": ("բն. {}",), "id": ("Unit {}", "Lantai {}"), "is": ("íbúð {}", "{}. hæð"), "ja": ("{}号室", "{}階"),
    "ka": ("ბინა {}",),
    "kk": ("пәтер {}",), "ko": ("{}호", "{}층"), "lt": ("but. {}", "{} aukštas"), "lv": ("dz. {}", "{}. stāvs"),
    "mk": ("стан {}",),
    "ru": ("кв. {}", "этаж {}"), "sk": ("byt {}", "{}. poschodie"), "sl": ("stanovanje {}", "{}. nadstropje"),
    "sq": ("Ap. {}", "Kati {}"),
    "sr": ("стан {}", "{}. спрат"), "th": ("ห้อง {}", "ชั้น {}"), "uk": ("кв. {}", "поверх {}"),
    "ur": ("فلیٹ {}", "منزل {}"),
    "uz": ("{}-xonadon",), "vi": ("Căn hộ {}", "Tầng {}"), "zh": ("{}室", "{}楼"),
}  # fmt: skip
"""Languages whose words are available from engine 2 on."""
_UNIT_WORDS |= _UNIT_WORDS_ENGINE_2
_UNIT_NUMBERS = 999


class AddressLine2(IndexedType):
    """Flat, floor or suite, in the words of the locale."""

    name = "address_line_2"
    label = "Address line 2"
    category = "place"
    description = "The second line of an address, such as Apt. 12 or Suite 340."
    aliases = ("address 2", "address2", "secondary address", "apartment", "apartment number", "suite", "unit number",
               "apt", "street address 2", "flat number")  # fmt: skip
    example = "Apt. 12"
    localised = True
    dtype = pa.string()

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        locale = compiler.locale_of(field)
        language = (locale or "en").partition("_")[0]
        if language not in _UNIT_WORDS or (
            language in _UNIT_WORDS_ENGINE_2 and compiler.vocabulary.engine < 2
        ):
            text = f"No words for apartments and floors are available for {locale}"
            if field.common.locale:
                hint = f"Known languages: {', '.join(sorted(_UNIT_WORDS))}."
                compiler.fault(field, "locale", "not_for_this_type", f"{text}.", hint)
            else:
                message = f"{self.label}: {text}; English words are used."
                compiler.warn(field, "other_language", message, "Set locale.")
            language = "en"
        self._pool = _unit_lines(language)
        self.size = len(self._pool)
        self.max_length = max(map(len, _UNIT_WORDS[language])) - len("{}") + len(str(_UNIT_NUMBERS))

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        return joining.take_values(self._pool, index)

    @classmethod
    def capacity(cls) -> int:
        return len(_UNIT_WORDS["en"]) * _UNIT_NUMBERS


@cache
def _unit_lines(language: str) -> pa.StringArray:
    return pa.array(
        [word.format(number) for number in range(1, _UNIT_NUMBERS + 1) for word in _UNIT_WORDS[language]]
    )


class StreetName(PlaceField):
    """A street in the words of the country."""

    name = "street_name"
    label = "Street name"
    description = "A street name in the language of the row's country, such as rue Lesage."
    aliases = ("street", "street suffix")
    example = "rue Lesage"

    class Options(Romanized):
        pass

    options: Options

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = self.max_text_length("streets", self.geography.streets.names)

    def fill(self, context: ColumnContext) -> pa.Array:
        return joining.take_values(self.geography.streets.names, context.group(Places).street)

    def unique_hint(self) -> str:
        return "Street names repeat from city to city: make the street address unique instead."


class _StreetLine(PlaceField):
    """Street and number, in the order and the words of the country."""

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        streets = self.geography.streets
        self.max_length = self.max_text_length("street lines", streets.names) + len(" 10000")
        self._unique_ranges = None
        if field.common.unique and self.country is not None:
            country = self.geography.country_row(self.country)
            locale = int(
                streets.locale_rows(np.array([country]), street_locale_row(self.members, compiler))[0]
            )
            self._unique_ranges = tuple(
                int(n)
                for range_ in (streets.streets, streets.numbers)
                for n in (range_.start[locale], range_.count[locale])
            )

    def distinct_count(self) -> int | None:
        return None if self._unique_ranges is None else self._unique_ranges[1] * self._unique_ranges[3]

    def unique_hint(self) -> str:
        return "Set a locale: streets of one country can be distinguished, those of the whole world cannot."

    def street_parts(self, context: ColumnContext, unique: bool) -> list[tuple[pa.Array, np.ndarray]]:
        """The two parts of street and number."""
        places = context.group(Places)
        streets = self.geography.streets
        if unique:
            space = self.distinct_count()
            assert self._unique_ranges is not None  # else the field could not be unique
            assert space is not None
            first_street, _, first_number, numbers = self._unique_ranges
            street, house = np.divmod(context.permuted(space), np.uint64(numbers))
            street, house = street + np.uint64(first_street), house + np.uint64(first_number)
        else:
            street, house = places.street, places.house_number
        before, after = streets.line_rows(places.street_locale, street, house)
        return [(streets.before, before), (streets.after, after)]

    def all_parts(self, context: ColumnContext, unique: bool) -> tuple[text_parts.PoolPart, ...]:
        """The parts of the column's texts."""
        return tuple(self.street_parts(context, unique))

    def fill_parts(self, context: ColumnContext) -> tuple[text_parts.PoolPart, ...]:
        return self.all_parts(context, unique=False)

    def fill(self, context: ColumnContext) -> pa.Array:
        return text_parts.join_parts(*self.fill_parts(context))

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return text_parts.join_parts(*self.all_parts(context, unique=True))


class StreetAddress(_StreetLine):
    """Street and number."""

    name = "street_address"
    label = "Street address"
    description = "Street name and number, such as 12 rue Lesage."
    aliases = ("address line", "address line 1", "address1", "street and number", "streetaddress1")
    example = "12 rue Lesage"

    class Options(Romanized):
        pass

    options: Options


class Address(_StreetLine):
    """A whole address in one line, or only street and number."""

    name = "address"
    label = "Address"
    description = "A full postal address on one line, in the format of the row's country."
    aliases = ("full address", "postal address", "mailing address", "location")
    example = "12 rue Lesage, 69003 Lyon, France"

    class Options(Romanized):
        use_full_address: bool = Field(
            True,
            alias="useFullAddress",
            validation_alias=AliasChoices("useFullAddress", "use_full_address", "full"),
            description="Includes postal code, city and country. Otherwise only street and number.",
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if options.use_full_address:
            tables = self.geography
            before, after = tables.lines if self.local is None else self.local.lines
            assert self.max_length is not None  # a street's is known
            suffix = "" if self.local is None else f" of {self.locale}"
            self.max_length += self.max_text_length(f"lines before{suffix}", before)
            if self.local is not None and self.local.is_largest_first:
                self.max_length += len(" ")
            self.max_length += self.max_text_length(f"lines after{suffix}", after)
            self.max_length += self.max_text_length("postal heads", tables.postal_heads)
            self.max_length += self.max_text_length("postal tails", tables.postal_tails)

    def all_parts(self, context: ColumnContext, unique: bool) -> tuple[text_parts.PoolPart, ...]:
        line = self.street_parts(context, unique)
        if not self.options.use_full_address:
            return tuple(line)
        places = context.group(Places)
        tables = self.geography
        head, tail = places.postal
        before, after = tables.lines if self.local is None else self.local.lines
        code = ((tables.postal_heads, head), (tables.postal_tails, tail))
        city_parts = (before, places.city), *code, (after, places.city)
        if self.local is not None and self.local.is_largest_first:
            # A blank separates the city from the street, so that unique addresses never read the same.
            gap = [(_GAP, np.zeros(head.size, np.int64))] if unique else []
            return *city_parts, *gap, *line
        return *line, *city_parts


_GAP = pa.array([" "])


class _AirportField(PlaceField):
    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._airports = airports_of(compiler.vocabulary)
        self.warn_if_blank(self._airports.known, compiler)
        self._pool = self.pool()
        self.max_length = self.max_text_length(f"airport {self.key()}", self._pool)

    @abstractmethod
    def pool(self) -> pa.Array:
        """The column of the table of airports."""

    @abstractmethod
    def key(self) -> str:
        """Its name."""

    def fill(self, context: ColumnContext) -> pa.Array:
        places = context.group(Places)
        rows = self._airports.pick(places.city, places.bits(AIRPORT_SALT) >> _U32)
        if rows.min(initial=0) >= 0:
            return joining.take_values(self._pool, rows)
        return self._pool.take(pa.array(rows, mask=rows < 0))

    def unique_hint(self) -> str:
        return "Several cities have the same airport: make the city unique, or use a regular expression."


class AirportCode(_AirportField):
    """The code of an airport that serves the row's city; blank in countries that have none."""

    name = "airport_code"
    label = "Airport Code"
    category = "place"
    description = "The code of an airport near the row's city, such as LYS."
    aliases = (
        "airport",
        "iata code",
        "iata",
        "airport iata",
        "icao code",
        "airport iata code",
        "airport icao code",
    )
    example = "LYS"

    class Options(OptionsModel):
        format: Literal["iata", "icao"] = Field("iata", description="LYS or LFLL.")

    options: Options

    @classmethod
    def group_attribute(cls, options: Options) -> str:
        return f"{cls.name}:{options.format}"

    def pool(self) -> pa.Array:
        return self._airports.columns[self.options.format]

    def key(self) -> str:
        return self.options.format


class AirportName(_AirportField):
    """The name of the same airport."""

    name = "airport_name"
    label = "Airport Name"
    category = "place"
    description = "The name of an airport near the row's city, such as Lyon Saint-Exupery Airport."
    aliases = ("airport title", "name of airport", "airport full name")
    example = "Lyon Saint-Exupery Airport"

    def pool(self) -> pa.Array:
        return self._airports.columns["name"]

    def key(self) -> str:
        return "name"


@dataclass(frozen=True)
class _Districts:
    """Parts of towns of every language; ``ranges`` are ranges by the locale of `Streets.locale_of`."""

    names: pa.StringArray
    ranges: Range


def _districts(vocabulary: Vocabulary, geography: Geography) -> _Districts:
    locales = [
        f"{locale}{ROMAN}" if vocabulary.has_words("district", f"{locale}{ROMAN}") else locale
        for locale in geography.streets.locales
    ]
    lists = [vocabulary.words("district", locale) for locale in locales]
    counts = np.array([len(words) for words in lists], np.uint64)
    return _Districts(pa.concat_arrays(lists), Range(np.cumsum(counts) - counts, counts))


class District(PlaceField):
    """A part of the row's city, with a typical name of districts in its country's language."""

    name = "district"
    label = "District"
    category = "place"
    description = "A district of a city in the language of its country, such as Vieille Ville."
    aliases = (
        "neighborhood",
        "neighbourhood",
        "city district",
        "quarter of town",
        "borough",
        "suburb",
        "city part",
    )
    example = "Vieille Ville"

    class Options(Romanized):
        pass

    options: Options

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        geography = geography_of(compiler.vocabulary)
        self._parts = compiler.vocabulary.cached(
            "districts", lambda: _districts(compiler.vocabulary, geography)
        )
        self.max_length = self.max_text_length("districts", self._parts.names)

    def fill(self, context: ColumnContext) -> pa.Array:
        places = context.group(Places)
        rows = self._parts.ranges.pick(places.street_locale, places.bits(DISTRICT_SALT) >> _U32)
        return joining.take_values(self._parts.names, rows.view(np.int64))

    def unique_hint(self) -> str:
        return "Districts of different cities may have the same name: make the city unique."
