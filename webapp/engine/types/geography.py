"""The tables of places as arrays that the field types of the group index; one `Geography` for a vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.random import lookup
from webapp.engine.types import values
from webapp.engine.types.joining import LazyProperty

_U32 = np.uint64(32)

_NUMBER_FIRST = ("en", "fr", "ja", "ko", "zh", "fil", "ga", "ig", "mt", "tw", "vi", "yo", "zu")
"""Languages in which the house number precedes the street; also those of `SCRIPTED` in Latin letters, see there."""
OWN, ROMAN = "@own", "@roman"
"""Follow a locale in the names of its lists in a script other than Latin, and of the same lists in Latin letters."""
SCRIPTED = (
    "am", "ar", "bn", "fa", "gu", "he", "hi", "hy", "ka", "kk", "mk", "mr", "ne", "or", "si", "sr", "ta", "th", "ur",
)  # fmt: skip
"""Languages whose streets in Latin letters are in the English way."""
_UNSPACED = ("ja_JP@own", "zh_CN@own", "zh_TW@own")
"""Locales that put nothing between the street and the number."""
_LARGEST_FIRST = ("ja", "ko", "zh")
"""Languages whose addresses begin with the postal code and the province."""
_CHINESE_NUMBERS = {"zh_CN": "{}号", "zh_TW": "{}號"}
"""House numbers in Chinese."""
_LONG_NUMBERS = ("en_US", "en_CA", "en_AU")
_BLOCKS = (5, 20, 20)
"""District, block and house, where houses have numbers such as 3-14-2."""
_LONGEST_ROW, _SHORT_ROW = 9_999, 199
"""Highest house numbers, in towns laid out in blocks and elsewhere."""

# How what follows the street is written, before and after the postal code.
_STATE_LINE = (", {city}, {code} ", ", {country}")
_REGION_LINE = (", {city}, {state} ", ", {country}")
_CITY_LINE = (", {city} ", ", {country}")
_CODE_FIRST = (", ", " {city}, {country}")
_NO_CODE = (", {city}", ", {country}")
_LARGEST_FIRST_LINES = {
    "ja": ("〒", " {state}{city}"),
    "zh": ("", " {state}{city}"),
    "ko": ("", " {state} {city} "),
}
_LINES = {
    "US": _STATE_LINE, "CA": _STATE_LINE, "AU": _STATE_LINE, "BR": (", {city} - {code}, ", ", {country}"),
    "GB": _CITY_LINE, "IE": _CITY_LINE, "NZ": _CITY_LINE, "ZA": _CITY_LINE, "IN": _REGION_LINE, "JP": _REGION_LINE,
    "CN": _REGION_LINE, "KR": _REGION_LINE,
}  # fmt: skip

# Where GeoNames has a city in a zone that the tz database does not know in its country.
_ZONES = {
    ("CN", "Asia/Macau"): "Asia/Shanghai", ("GE", "Europe/Moscow"): "Asia/Tbilisi",
    ("ID", "Asia/Ho_Chi_Minh"): "Asia/Pontianak", ("PS", "Asia/Jerusalem"): "Asia/Hebron",
    ("SO", "Africa/Addis_Ababa"): "Africa/Mogadishu",
}  # fmt: skip


@dataclass(frozen=True)
class Range:
    """Ranges of a pool: ``start`` and ``count``, ``uint64[owners]``."""

    start: np.ndarray
    count: np.ndarray

    def pick(self, owner: np.ndarray, random32: np.ndarray) -> np.ndarray:
        """``uint64[n]``: one place of each owner's range, for 32 random bits; the start where the range is empty."""
        return (random32 * lookup(self.count, owner) >> _U32) + lookup(self.start, owner)


@dataclass(frozen=True)
class Streets:
    """Streets of every locale and house numbers of every style. A line is a text of ``before`` and one of ``after``:
    number and street or street and number, the first with a blank behind it."""

    before: pa.StringArray
    after: pa.StringArray
    names: pa.StringArray
    streets: Range
    numbers: Range
    is_number_first: np.ndarray
    """``bool[locales]``."""
    has_no_space: np.ndarray
    """``bool[locales]``: nothing is put between street and number."""
    locale_of: np.ndarray
    """``int64[countries]``: which locale's streets a country has."""
    locales: tuple[str, ...]
    countries: np.ndarray
    """``int64[locales]``: the country that each locale names."""

    def locale_rows(self, country: np.ndarray, requested_locale: int | None) -> np.ndarray:
        """Rows of the locales whose streets countries have, ``int64[n]``; ``requested_locale`` is the requested locale,
        where its country has the streets of another one."""
        locales = lookup(self.locale_of, country)
        if requested_locale is None:
            return locales
        return np.where(self.countries[requested_locale] == country, requested_locale, locales)

    def line_rows(
        self, locale: np.ndarray, street: np.ndarray, number: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows of ``before`` and ``after`` for the lines of some streets and numbers."""
        first, names = lookup(self.is_number_first, locale), np.uint64(len(self.names))
        numbers = np.uint64(len(self.after)) - names
        before = np.where(first, number, numbers + street)
        after = np.where(first, street, names + number)
        if self.has_no_space.any():
            before = np.where(self.has_no_space[locale], before + names, before)
        return before, after


@dataclass(frozen=True)
class CityPool:
    """Cities to choose from, ``int64[k]`` rows of the table in rising order; ``is_complete`` if everything is known of
    each of them."""

    cities: np.ndarray
    is_complete: bool


@dataclass(frozen=True)
class Anchor:
    """Parts of a pool of cities that read differently: every value of a unique column with its cities."""

    parts: Range


@dataclass(frozen=True)
class LocalNames:
    """The places of a country in the language of a locale. Those of other countries keep their names."""

    city_names: pa.StringArray
    state_names: pa.StringArray
    country_names: pa.StringArray
    has_local_name: np.ndarray
    """``bool[cities]``: the cities of the country that have a name in the locale's script."""
    is_non_latin: bool
    """Whether the locale is not written in Latin letters."""
    is_largest_first: bool
    """Whether the street and the number come last in an address."""
    create_lines: Callable[[], tuple[pa.StringArray, pa.StringArray]]

    @LazyProperty
    def lines(self) -> tuple[pa.StringArray, pa.StringArray]:
        """The texts before and after the postal code in an address, for each city."""
        return self.create_lines()


class Geography:
    """Cities, countries, subdivisions, codes and numbers."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = self._vocabulary = vocabulary
        cities, countries, states = (vocabulary.table(name) for name in ("cities", "countries", "states"))
        self.city_names = _texts(cities, "name")
        self.city_folded = _texts(cities, "folded")
        self.country, self.state, self.time_zone = (
            _signed(cities, n) for n in ("country", "state", "time_zone")
        )
        self.latitude, self.longitude = _signed(cities, "latitude"), _signed(cities, "longitude")
        self.spread = _signed(cities, "spread") if "spread" in cities.column_names else None
        """How far places of each city are from its centre, in the unit of the coordinates, from engine 3 on."""
        self.included = np.ones(len(self.country), bool)
        """The cities that rows are in, where a vocabulary leaves some out."""
        if "left_out" in cities.column_names:
            self.included = _signed(cities, "left_out") == 0
        self.population = _signed(cities, "population")
        self.postal = Range(_unsigned(cities, "postal_start"), _unsigned(cities, "postal_count"))
        self.phone = Range(_unsigned(cities, "phone_start"), _unsigned(cities, "phone_count"))
        has_lines = "line_start" in cities.column_names
        self.line = (
            Range(_unsigned(cities, "line_start"), _unsigned(cities, "line_count")) if has_lines else None
        )
        """Landlines of each city's subdivision; none in vocabularies of engine 1, whose numbers are of one kind."""
        columns = [name for name in countries.column_names if not name.startswith("phone")]
        self.countries = {name: _texts(countries, name) for name in columns}
        self.state_names, self.state_codes = _texts(states, "name"), _texts(states, "code")
        self.state_folded = _texts(states, "folded")
        self.zone_names = _texts(vocabulary.table("time_zones"), "name")
        self._correct_zones()
        heads = vocabulary.table("postal_heads")
        # The last head is empty, for cities without codes.
        self.postal_heads = pa.concat_arrays([_texts(heads, "text"), pa.array([""])])
        self.postal_tail = Range(
            *(np.append(_unsigned(heads, f"tail_{part}"), end) for part, end in _EMPTY_TAIL)
        )
        self.postal_tails = _texts(vocabulary.table("postal_tails"), "text")
        heads = vocabulary.table("phone_heads")
        self.phone_heads = {
            format_: (_texts(heads, format_), _unsigned(heads, f"{format_}_tail"))
            for format_ in PHONE_FORMATS
        }
        self.phone_tail_count = np.append(_unsigned(heads, "tail_count"), np.uint64(1))
        self.phone_tails = _texts(vocabulary.table("phone_tails"), "text")

    def _correct_zones(self) -> None:
        """Replace time zones of cities that belong to another country by one of the city's country."""
        zones = self.zone_names.to_pylist()
        for (country, wrong), right in _ZONES.items():
            if wrong in zones and right in zones:
                affected = (self.country == self.country_row(country)) & (
                    self.time_zone == zones.index(wrong)
                )
                self.time_zone[affected] = zones.index(right)

    def city_pool(self, country: str | None, local: str | None = None) -> CityPool:
        """The cities of a country (alpha-2), or of all the world; those of which everything is known, if there are
        any. For the locale ``local`` those with a name in its script."""

        def make() -> CityPool:
            complete = (self.state >= 0) & (self.postal.count > 0) & (self.phone.count > 0)
            inside = (
                self.included
                if country is None
                else self.included & (self.country == self.country_row(country))
            )
            names = self.local_names(local) if local else None
            if names is not None and (inside & names.has_local_name).any():
                inside = inside & names.has_local_name
            complete_cities = np.flatnonzero(complete & inside)
            return (
                CityPool(complete_cities, True)
                if complete_cities.size
                else CityPool(np.flatnonzero(inside), False)
            )

        key = ("cities", country, local) if self.local_names(local) else ("cities", country)
        return self._vocabulary.cached(key, make)

    def local_names(self, locale: str | None) -> LocalNames | None:
        """Return the names of places in the language of a locale; None if it has only English names."""
        if locale is None or not self._vocabulary.has_table(f"country@{locale}"):
            return None
        return self._vocabulary.cached(("local places", locale), lambda: self._local(locale))

    def _local(self, locale: str) -> LocalNames:
        vocabulary = self._vocabulary
        row = self.country_row(locale.partition("_")[2])
        is_non_latin = vocabulary.has_words("street", f"{locale}{OWN}")
        cities, named = self.city_names, np.zeros(len(self.city_names), bool)
        if vocabulary.has_table(f"city@{locale}"):
            rows = np.flatnonzero(self.country == row)
            cities, named_rows = _with_names(cities, rows, _texts(vocabulary.table(f"city@{locale}"), "name"))
            named[rows] = named_rows
        states = self.state_names
        if vocabulary.has_table(f"state@{locale}"):
            countries = np.array(vocabulary.table("states")["country"].to_pylist())
            rows = np.flatnonzero(countries == locale.partition("_")[2])
            states, _ = _with_names(states, rows, _texts(vocabulary.table(f"state@{locale}"), "name"))
        names = _texts(vocabulary.table(f"country@{locale}"), "name")
        largest_first = is_non_latin and locale.partition("_")[0] in _LARGEST_FIRST
        lines = partial(self._address_lines, cities, states, names, locale if largest_first else "")
        return LocalNames(cities, states, names, named, is_non_latin, largest_first, lines)

    def city_pool_of(self, cities: np.ndarray) -> CityPool:
        """Return a pool of some cities; only those with complete data, if there are any."""
        complete_cities = np.intersect1d(cities, self.city_pool(None).cities, assume_unique=True)
        return CityPool(complete_cities, True) if complete_cities.size else CityPool(cities, False)

    def country_row(self, name: str) -> int | None:
        """Row of the country called ``name`` (a code of two, three or three digits, or the name), or None."""
        key = name.strip().lower()
        return self._country_rows.get(key)

    @LazyProperty
    def _country_rows(self) -> dict[str, int]:
        columns = [self.countries[column].to_pylist() for column in ("name", "numeric", "alpha3", "alpha2")]
        return {text.lower(): row for column in columns for row, text in enumerate(column)}

    @LazyProperty
    def phone_counts(self) -> np.ndarray:
        """``uint64[cities]``: how many telephone numbers each city can have."""
        return self.phone.count * self.phone_tail_count[self.phone.start]

    @LazyProperty
    def landline_counts(self) -> np.ndarray:
        """``uint64[cities]``: how many landlines each city can have."""
        assert self.line is not None  # only used if there are landlines
        return np.where(self.line.count > 0, self.line.count * self.phone_tail_count[self.line.start], 0)

    def anchor(self, country: str | None, column: str, local: str | None = None) -> Anchor:
        """The values of ``column`` (city, country or state) that read differently, with their cities in the pool of
        ``country``; of cities with one name the largest counts."""
        cities, local_names = self.city_pool(country, local).cities, self.local_names(local)
        key = ("anchor", country, column, local) if local_names else ("anchor", country, column)
        return self._vocabulary.cached(key, lambda: self._anchor(cities, column, local_names))

    def _anchor(self, cities: np.ndarray, column: str, local: LocalNames | None) -> Anchor:
        if column == "city":
            folded = self.city_folded if local is None else _folded(local.city_names)
            names = folded.take(pa.array(cities)).dictionary_encode().indices.to_numpy()
            order = np.lexsort((cities, -self.population[cities], names))
            firsts = order[np.unique(names[order], return_index=True)[1]]
            return Anchor(Range(np.sort(firsts).astype(np.uint64), np.ones(firsts.size, np.uint64)))
        # Cities are ordered by country and subdivision, so that each of these is one range of the pool.
        rows = (self.country if column == "country" else self.state)[cities]
        starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
        counts = np.diff(np.r_[starts, rows.size])
        if column == "state":
            folded = self.state_folded if local is None else _folded(local.state_names)
            names = folded.take(pa.array(rows[starts])).dictionary_encode().indices.to_numpy()
            firsts_by_name = np.sort(np.unique(names, return_index=True)[1])
            starts, counts = starts[firsts_by_name], counts[firsts_by_name]
        return Anchor(Range(starts.astype(np.uint64), counts.astype(np.uint64)))

    @LazyProperty
    def secondary_street_locales(self) -> tuple[str, ...]:
        """Locales whose country has the streets of another one, unless its places are requested in exactly this locale;
        none in the first vocabulary."""
        vocabulary = self._vocabulary
        locales = (
            vocabulary.table("street_locales")["locale"] if vocabulary.has_table("street_locales") else []
        )
        return tuple(str(locale) for locale in locales)

    @LazyProperty
    def streets(self) -> Streets:
        """The streets, created on first use."""
        locales = sorted({*self.countries["street_locale"].to_pylist(), *self.secondary_street_locales})
        lists = [self._vocabulary.words("street", locale) for locale in locales]
        names = pa.concat_arrays(lists)
        rows = [str(number) for number in range(1, _LONGEST_ROW + 1)]
        blocks = [
            "-".join(map(str, block)) for block in product(*(range(1, maximum + 1) for maximum in _BLOCKS))
        ]
        chinese: list[str] = []
        if self._vocabulary.engine >= 2:
            chinese = [
                form.format(number)
                for form in _CHINESE_NUMBERS.values()
                for number in range(1, _SHORT_ROW + 1)
            ]
        numbers = pa.array(rows + blocks + chinese)
        number_ranges = [_number_range(locale) for locale in locales]
        sizes = np.array([len(words) for words in lists], np.uint64)
        blank = pa.scalar(" ")
        return Streets(
            before=pa.concat_arrays(
                [_with_suffix(numbers, blank), _with_suffix(names, blank), *([names] if chinese else [])]
            ),
            after=pa.concat_arrays([names, numbers]),
            names=names,
            streets=Range(np.cumsum(sizes) - sizes, sizes),
            numbers=Range(*(np.array(column, np.uint64) for column in zip(*number_ranges, strict=True))),
            is_number_first=np.array(
                [
                    not locale.endswith(OWN) and locale.partition("_")[0] in (*_NUMBER_FIRST, *SCRIPTED)
                    for locale in locales
                ]
            ),
            has_no_space=np.array([locale in _UNSPACED for locale in locales]),
            locale_of=np.array(
                [locales.index(locale) for locale in self.countries["street_locale"].to_pylist()]
            ),
            locales=tuple(locales),
            countries=np.array(
                [self.country_row(locale.partition("_")[2].removesuffix(OWN)) for locale in locales]
            ),
        )

    @LazyProperty
    def lines(self) -> tuple[pa.StringArray, pa.StringArray]:
        """The texts before and after the postal code in an address, for each city."""
        return self._address_lines(self.city_names, self.state_names, self.countries["name"], "")

    def _address_lines(
        self, cities: pa.StringArray, names: pa.StringArray, lands: pa.StringArray, largest_first: str
    ) -> tuple[pa.StringArray, pa.StringArray]:
        """`lines` with some names of cities, subdivisions and countries. ``largest_first`` is the locale whose
        addresses have the street last; empty for the others."""
        alpha2, countries = self.countries["alpha2"].to_pylist(), lands.to_pylist()
        states, codes = [*names.to_pylist(), ""], [*self.state_codes.to_pylist(), ""]
        reversed_lines = _LARGEST_FIRST_LINES[largest_first.partition("_")[0]] if largest_first else None
        result: tuple[list[str], list[str]] = ([], [])
        columns = (
            self.country.tolist(),
            self.state.tolist(),
            self.postal.count.tolist(),
            cities.to_pylist(),
        )
        for country, state, count, city in zip(*columns, strict=True):
            line = _LINES.get(alpha2[country], _CODE_FIRST) if count else _NO_CODE
            if reversed_lines is not None:
                line = reversed_lines if count else ("", reversed_lines[1].lstrip())
            for part, texts in zip(line, result, strict=True):
                texts.append(
                    part.format(city=city, state=states[state], code=codes[state], country=countries[country])
                )
        return pa.array(result[0]), pa.array(result[1])


PHONE_FORMATS = ("e164", "international", "national")
_EMPTY_TAIL = (("start", np.uint64(0)), ("count", np.uint64(1)))


def geography_of(vocabulary: Vocabulary) -> Geography:
    """Return the geography of a vocabulary, created once per process."""
    return vocabulary.cached(("geography",), lambda: Geography(vocabulary))


def _with_names(
    texts: pa.StringArray, rows: np.ndarray, names: pa.StringArray
) -> tuple[pa.StringArray, np.ndarray]:
    """``texts`` with ``names`` in the places ``rows``, which follow one another; and which of them there are. An empty
    name keeps the text."""
    if not rows.size:
        return texts, np.zeros(0, bool)
    first, end = int(rows[0]), int(rows[-1]) + 1
    has_name = pc.not_equal(names, "")
    replaced = pc.if_else(has_name, names, texts.slice(first, end - first))
    result = pa.concat_arrays([texts.slice(0, first), replaced, texts.slice(end)])
    return result, has_name.to_numpy(zero_copy_only=False)


def _folded(texts: pa.StringArray) -> pa.StringArray:
    return pa.array([values.fold_text(text.upper()) for text in texts.to_pylist()], pa.string())


def _number_range(locale: str) -> tuple[int, int]:
    """Return the range of a locale's house numbers among those of `Geography.streets`, as (start, count)."""
    base_locale = locale.removesuffix(OWN)
    if base_locale in _CHINESE_NUMBERS and base_locale != locale:
        return _LONGEST_ROW + prod(_BLOCKS) + list(_CHINESE_NUMBERS).index(
            base_locale
        ) * _SHORT_ROW, _SHORT_ROW
    if locale.startswith("ja"):
        return _LONGEST_ROW, prod(_BLOCKS)
    return 0, _LONGEST_ROW if locale in _LONG_NUMBERS else _SHORT_ROW


def _with_suffix(texts: pa.StringArray, end: pa.Scalar) -> pa.StringArray:
    return pc.binary_join_element_wise(texts, end, "")


def _texts(table: pa.Table, name: str) -> pa.StringArray:
    return table.column(name).chunk(0)


def _signed(table: pa.Table, name: str) -> np.ndarray:
    return table.column(name).to_numpy().astype(np.int64)


def _unsigned(table: pa.Table, name: str) -> np.ndarray:
    return table.column(name).to_numpy().astype(np.uint64)
