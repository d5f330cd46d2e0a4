"""Places: country, city, street, postal code, point, time zone and telephone, which agree within a group."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp import limits
from webapp.engine.fields import joining
from webapp.engine.fields.base import FieldType, OptionsModel, longest
from webapp.engine.fields.geography import Geography, geography_of
from webapp.engine.fields.place_group import (
    ANCHORS,
    Places,
    anchor_of_group,
    anchored,
    country_of_group,
)
from webapp.engine.text import decimals

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

COORDINATE_PLACES = 5
"""Five decimals of a degree are about a metre."""
_SPREAD = 500
"""Places of a city lie within so many units (about 550 m) of its centre."""
_LOW_32 = np.uint64(0xFFFFFFFF)
_U32 = np.uint64(32)


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
        self.members = compiler.group_of(field)
        self.country = country_of_group(self.members, compiler)
        self._anchor_size = None
        if field.common.unique and anchored(self.members) is field:
            self._anchor_size = anchor_of_group(self.members, field, compiler).parts.count.size

    def space(self) -> int | None:
        return self._anchor_size

    def fill_unique(self, cells: Cells) -> pa.Array:
        # The group draws its places by the values of this column; each occurs once.
        return self.fill(cells)

    def unique_hint(self) -> str:
        other = anchored(self.members)
        if self.name in ANCHORS and other is not None:
            return f'Places of this group are drawn by "{other.name}", which is unique; one field of a group can be.'
        return "Of a place, one of city, state and country can be unique; or take a group of its own."

    def longest_in(self, pool_name: str, pool: pa.Array) -> int:
        """Longest text of a pool that belongs to the vocabulary, measured once."""
        return self._vocabulary.shared(("longest", pool_name), lambda: longest(pool))


class _Column(PlaceField):
    """A type whose values are a column of one of the tables."""

    vector: ClassVar[Literal["city", "country", "state", "time_zone"]]

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = self.pool()
        self.max_length = self.longest_in(self.key(), self._pool)

    @abstractmethod
    def pool(self) -> pa.Array:
        """The column."""

    def key(self) -> str:
        """Names the column among those of the vocabulary."""
        return self.name

    def fill(self, cells: Cells) -> pa.Array:
        places: Places = cells.group()
        rows = getattr(places, self.vector)
        if places.complete or self.vector != "state":
            return joining.chosen(self._pool, rows)
        return self._pool.take(pa.array(rows, mask=rows < 0))


class City(_Column):
    """A city of 15,000 people or more."""

    name = "city"
    label = "City"
    description = "A city, such as Lyon, in agreement with country, state, postal code and time zone."
    aliases = ("town", "city name", "locality", "municipality")
    example = "Lyon"
    vector = "city"

    def pool(self) -> pa.Array:
        return self.geography.city_names


class Country(_Column):
    """A country by its English name."""

    name = "country"
    label = "Country"
    description = "A country by its English name, such as France."
    aliases = ("country name", "nation", "land", "current country")
    example = "France"
    vector = "country"

    def pool(self) -> pa.Array:
        return self.geography.countries["name"]


class CountryCode(_Column):
    """A country by its ISO 3166-1 code."""

    name = "country_code"
    label = "Country code"
    description = "A country by its ISO 3166-1 code, such as FR."
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


class State(_Column):
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

    def pool(self) -> pa.Array:
        return self.geography.state_names


class StateAbbr(_Column):
    """The part of a subdivision's ISO 3166-2 code that follows the country's."""

    name = "state_abbr"
    label = "State code"
    description = "A state, province or region by its ISO 3166-2 code, such as CA."
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
    aliases = ("tz", "timezone name", "iana time zone")
    example = "Europe/Paris"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = self.longest_in("zones", self.geography.zone_names)

    def fill(self, cells: Cells) -> pa.Array:
        return joining.chosen(self.geography.zone_names, self.geography.time_zone[cells.group().city])


class _Coordinate(PlaceField):
    """Degrees with five decimals, within some hundred metres of the city's centre."""

    dtype = pa.decimal128(38, COORDINATE_PLACES)

    @abstractmethod
    def units(self, city: np.ndarray, bits: np.ndarray) -> np.ndarray:
        """``int64[n]`` of 1e-5 degrees."""

    def bounds(self, rows: int) -> tuple[int, int]:
        half = 180 * 10**COORDINATE_PLACES
        return -half, half

    def fill(self, cells: Cells) -> pa.Array:
        places: Places = cells.group()
        return decimals(self.units(places.city, places.point), COORDINATE_PLACES)

    def unique_hint(self) -> str:
        return "Two places may share a degree; make the city unique, or use a number."


def _apart(random32: np.ndarray) -> np.ndarray:
    """``int64[n]`` of -_SPREAD .. _SPREAD."""
    return (random32 * np.uint64(2 * _SPREAD + 1) >> _U32).view(np.int64) - _SPREAD


def latitude_units(geography: Geography, city: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """``int64[n]`` of 1e-5 degrees north: somewhere in each city, by random bits."""
    return geography.latitude[city] + _apart(bits >> _U32)


def longitude_units(geography: Geography, city: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """``int64[n]`` of 1e-5 degrees east."""
    return geography.longitude[city] + _apart(bits & _LOW_32)


class Latitude(_Coordinate):
    """Degrees north of the equator."""

    name = "latitude"
    label = "Latitude"
    description = "Degrees north of the equator, in the row's city."
    aliases = ("lat", "geo latitude")
    example = 45.74846

    def units(self, city: np.ndarray, bits: np.ndarray) -> np.ndarray:
        return latitude_units(self.geography, city, bits)


class Longitude(_Coordinate):
    """Degrees east of Greenwich."""

    name = "longitude"
    label = "Longitude"
    description = "Degrees east of Greenwich, in the row's city."
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
    aliases = ("zip", "zipcode", "postcode", "post code", "postal", "plz", "pin code", "postal zip")
    example = "69003"

    class Options(OptionsModel):
        format: str | None = Field(
            None,
            min_length=1,
            max_length=limits.MAX_AFFIX_CHARS,
            pattern="#",
            examples=["#####", "#####-####", "##-###"],
            description=(
                "A pattern in which each # is a random digit, instead of the place's own code; "
                "#####-#### adds four digits to a code of the United States."
            ),
        )

    options: Options

    PLUS_FOUR: ClassVar[str] = "#####-####"

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        own = self.longest_in("postal heads", self.geography.postal_heads)
        own += self.longest_in("postal tails", self.geography.postal_tails)
        self.max_length = max(own + len("-0000"), len(options.format or ""))
        own_codes = options.format == self.PLUS_FOUR and self.country == "US"
        self._pattern = None if own_codes else options.format

    def fill(self, cells: Cells) -> pa.Array:
        if self._pattern is not None:
            return joining.patterned(self._pattern, cells)
        places: Places = cells.group()
        tables = self.geography
        head, tail = places.postal
        if self.options.format:
            return joining.joined(
                (tables.postal_heads, head), (joining.digit_table(4, "-"), cells.below(10_000))
            )
        if self.country == "US" and places.complete:
            return joining.taken(tables.postal_heads, head)
        code = joining.joined((tables.postal_heads, head), (tables.postal_tails, tail))
        return (
            code
            if places.complete
            else pc.if_else(pa.array(places.has_postal), code, pa.scalar(None, pa.string()))
        )

    def space(self) -> int | None:
        return None if self._pattern is None else joining.pattern_space(self._pattern)

    def fill_unique(self, cells: Cells) -> pa.Array:
        space = self.space()
        assert self._pattern is not None  # else the field could not be unique
        assert space is not None
        return joining.pattern_at(self._pattern, cells.permuted(space))

    def unique_hint(self) -> str:
        return (
            "Codes belong to cities, and cities have few; make the city unique, or use a regular expression."
        )
