"""What else is known of a place: its point, its continent, and what its country speaks and is called."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp.engine.fields import joining, nations
from webapp.engine.fields.base import OptionsModel, pooled
from webapp.engine.fields.place import COORDINATE_PLACES, PlaceField, latitude_units, longitude_units
from webapp.engine.fields.place_group import Places

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.fields.geography import Geography
    from webapp.engine.spec import FieldSpec

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

    def fill(self, cells: Cells) -> pa.Array:
        places: Places = cells.group()
        latitude = latitude_units(self.geography, places.city, places.point)
        longitude = longitude_units(self.geography, places.city, places.point)
        return joining.joined(*_degrees(latitude, _BETWEEN), *_degrees(longitude, ""))

    def unique_hint(self) -> str:
        return "Two places may share a point; make the city unique."


def _degrees(units: np.ndarray, end: str) -> tuple[joining.Part, joining.Part]:
    below = units < 0
    whole, rest = np.divmod(np.abs(units), _DEGREE)
    return (_wholes(), whole + below * 181), (_fractions(end), rest)


@cache
def _wholes() -> pa.StringArray:
    """Degrees north and east, then those south and west, of which there is a nought too."""
    return pa.array([f"{sign}{degree}." for sign in ("", "-") for degree in range(181)])


@cache
def _fractions(end: str) -> pa.StringArray:
    return pa.array([f"{rest:0{COORDINATE_PLACES}d}{end}" for rest in range(_DEGREE)])


class _OfCountry(PlaceField):
    """A type whose values hang on the country alone."""

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._known = nations.of_country(compiler.vocabulary, self.geography, self.source())
        self.max_length = self._known.longest

    @abstractmethod
    def source(self) -> Callable[[Geography], Sequence[str]]:
        """What each country's text is."""

    def fill(self, cells: Cells) -> pa.Array:
        places: Places = cells.group()
        rows = self._known.at[places.country]
        if places.complete or rows.min(initial=0) >= 0:
            return pooled(self._known.texts, rows)
        return self._known.texts.take(pa.array(rows, mask=rows < 0))

    def unique_hint(self) -> str:
        return "Countries share it; make the country unique."


class Continent(_OfCountry):
    """One of the seven, as GeoNames counts them."""

    name = "continent"
    label = "Continent"
    description = "The continent of the row's country, such as Europe."
    aliases = ("continent name", "world region")
    example = "Europe"

    def source(self) -> Callable[[Geography], Sequence[str]]:
        return nations.continents


class Language(_OfCountry):
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
        return nations.languages if self.options.format == "name" else nations.language_codes


class Nationality(_OfCountry):
    """What the people of the place's country are called in English."""

    name = "nationality"
    label = "Nationality"
    description = "The nationality of people from the row's country, such as French."
    aliases = ("citizenship", "demonym", "nationality name")
    example = "French"

    def source(self) -> Callable[[Geography], Sequence[str]]:
        return nations.nationalities
