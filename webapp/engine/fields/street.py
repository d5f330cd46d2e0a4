"""Streets and whole addresses, in the words and the order of the row's country."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pydantic import AliasChoices, Field

from webapp.engine.fields import joining
from webapp.engine.fields.base import OptionsModel
from webapp.engine.fields.place import PlaceField
from webapp.engine.fields.place_group import Places, spoken_of_group

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


class StreetName(PlaceField):
    """A street in the words of the country."""

    name = "street_name"
    label = "Street name"
    description = "A street in the words of the row's country, such as rue Lesage."
    aliases = ("street", "street suffix")
    example = "rue Lesage"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = self.longest_in("streets", self.geography.streets.names)

    def fill(self, cells: Cells) -> pa.Array:
        return joining.chosen(self.geography.streets.names, cells.group().street)

    def unique_hint(self) -> str:
        return "Streets repeat from town to town; make the street address unique instead."


class _StreetLine(PlaceField):
    """Street and number, in the order and the words of the country."""

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        streets = self.geography.streets
        self.max_length = self.longest_in("street lines", streets.names) + len(" 10000")
        self._single = None
        if field.common.unique and self.country is not None:
            country = self.geography.country_row(self.country)
            locale = int(streets.spoken_in(np.array([country]), spoken_of_group(self.members, compiler))[0])
            self._single = tuple(
                int(n)
                for range_ in (streets.streets, streets.numbers)
                for n in (range_.start[locale], range_.count[locale])
            )

    def space(self) -> int | None:
        return None if self._single is None else self._single[1] * self._single[3]

    def unique_hint(self) -> str:
        return "Set a locale: streets of one country can be told apart, those of all the world cannot."

    def line(self, cells: Cells, unique: bool) -> list[tuple[pa.Array, np.ndarray]]:
        """The two parts of street and number."""
        places: Places = cells.group()
        streets = self.geography.streets
        if unique:
            space = self.space()
            assert self._single is not None  # else the field could not be unique
            assert space is not None
            first_street, _, first_number, numbers = self._single
            street, house = np.divmod(cells.permuted(space), np.uint64(numbers))
            street, house = street + np.uint64(first_street), house + np.uint64(first_number)
        else:
            street, house = places.street, places.house
        before, after = streets.lines(places.street_locale, street, house)
        return [(streets.before, before), (streets.after, after)]

    def made(self, cells: Cells, unique: bool) -> pa.Array:
        """The column."""
        return joining.joined(*self.line(cells, unique))

    def fill(self, cells: Cells) -> pa.Array:
        return self.made(cells, unique=False)

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.made(cells, unique=True)


class StreetAddress(_StreetLine):
    """Street and number."""

    name = "street_address"
    label = "Street address"
    description = "Street and number, such as 12 rue Lesage."
    aliases = ("address line", "address line 1", "address1", "street and number", "streetaddress1")
    example = "12 rue Lesage"


class Address(_StreetLine):
    """A whole address in one line, or only street and number."""

    name = "address"
    label = "Address"
    description = "A whole postal address in one line, as the row's country writes it."
    aliases = ("full address", "postal address", "mailing address", "location")
    example = "12 rue Lesage, 69003 Lyon, France"

    class Options(OptionsModel):
        use_full_address: bool = Field(
            True,
            alias="useFullAddress",
            validation_alias=AliasChoices("useFullAddress", "use_full_address", "full"),
            description="With postal code, city and country; otherwise street and number only.",
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if options.use_full_address:
            tables = self.geography
            before, after = tables.lines
            assert self.max_length is not None  # a street's is known
            self.max_length += self.longest_in("lines before", before) + self.longest_in("lines after", after)
            self.max_length += self.longest_in("postal heads", tables.postal_heads)
            self.max_length += self.longest_in("postal tails", tables.postal_tails)

    def made(self, cells: Cells, unique: bool) -> pa.Array:
        line = self.line(cells, unique)
        if not self.options.use_full_address:
            return joining.joined(*line)
        places: Places = cells.group()
        tables = self.geography
        head, tail = places.postal
        before, after = tables.lines
        code = ((tables.postal_heads, head), (tables.postal_tails, tail))
        return joining.joined(*line, (before, places.city), *code, (after, places.city))
