"""What a city has beside streets: the airports that serve it, and the parts it is made of."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp.engine.fields import joining
from webapp.engine.fields.airport_tables import airports_of
from webapp.engine.fields.base import OptionsModel
from webapp.engine.fields.geography import Geography, Range, geography_of
from webapp.engine.fields.place import PlaceField
from webapp.engine.fields.place_group import AIRPORT_SALT, DISTRICT_SALT, Places

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec

_U32 = np.uint64(32)


class _AirportField(PlaceField):
    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._airports = airports_of(compiler.vocabulary)
        self._pool = self.pool()
        self.max_length = self.longest_in(f"airport {self.key()}", self._pool)

    @abstractmethod
    def pool(self) -> pa.Array:
        """The column of the table of airports."""

    @abstractmethod
    def key(self) -> str:
        """Its name."""

    def fill(self, cells: Cells) -> pa.Array:
        places: Places = cells.group()
        rows = self._airports.pick(places.city, places.bits(AIRPORT_SALT) >> _U32)
        if rows.min(initial=0) >= 0:
            return joining.chosen(self._pool, rows)
        return self._pool.take(pa.array(rows, mask=rows < 0))

    def unique_hint(self) -> str:
        return "Cities share airports; make the city unique, or use a regular expression."


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
    def part(cls, options: Options) -> str:
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
    """Parts of towns of every language; ``of`` are ranges by the locale of `Streets.locale_of`."""

    names: pa.StringArray
    of: Range


def _districts(vocabulary: Vocabulary, geography: Geography) -> _Districts:
    lists = [vocabulary.words("district", locale) for locale in geography.streets.locales]
    counts = np.array([len(words) for words in lists], np.uint64)
    return _Districts(pa.concat_arrays(lists), Range(np.cumsum(counts) - counts, counts))


class District(PlaceField):
    """A part of the row's city, called as parts of towns are in its country's language wherever they lie."""

    name = "district"
    label = "District"
    category = "place"
    description = "A part of a city in its country's language, such as Vieille Ville."
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

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        geography = geography_of(compiler.vocabulary)
        self._parts = compiler.vocabulary.shared(
            "districts", lambda: _districts(compiler.vocabulary, geography)
        )
        self.max_length = self.longest_in("districts", self._parts.names)

    def fill(self, cells: Cells) -> pa.Array:
        places: Places = cells.group()
        rows = self._parts.of.pick(places.street_locale, places.bits(DISTRICT_SALT) >> _U32)
        return joining.chosen(self._parts.names, rows.view(np.int64))

    def unique_hint(self) -> str:
        return "Cities share the names of their parts; make the city unique."
