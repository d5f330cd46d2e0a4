"""Finer parts of a place: house number, second line of the address, geohash."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp.engine.fields import joining
from webapp.engine.fields.base import IndexedType, OptionsModel
from webapp.engine.fields.codes import text_of
from webapp.engine.fields.place import COORDINATE_PLACES, PlaceField, latitude_units, longitude_units
from webapp.engine.fields.place_group import Places

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


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
        self._pool = compiler.vocabulary.shared(
            "house numbers", lambda: streets.after.slice(len(streets.names))
        )
        self.max_length = self.longest_in("house numbers", self._pool)

    def fill(self, cells: Cells) -> pa.Array:
        places: Places = cells.group()
        return joining.chosen(self._pool, places.house)

    def unique_hint(self) -> str:
        return "Streets share their numbers; make the street address unique instead."


_DIGITS = np.frombuffer(b"0123456789bcdefghjkmnpqrstuvwxyz", np.uint8)
_HALF = 30
"""Bits of each coordinate in the longest hash."""
_SPREAD = tuple(
    (np.uint64(shift), np.uint64(mask))
    for shift, mask in (
        (16, 0x0000FFFF0000FFFF),
        (8, 0x00FF00FF00FF00FF),
        (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333),
        (1, 0x5555555555555555),
    )
)
_DEGREE = 10**COORDINATE_PLACES


class Geohash(PlaceField):
    """The cell of the row's latitude and longitude: bits of both in turn, longitude first, in base 32 (Niemeyer)."""

    name = "geohash"
    label = "Geohash"
    description = "The geohash of the row's latitude and longitude."
    aliases = ("geo hash", "location hash", "grid cell")
    example = "u05kq2320"

    class Options(OptionsModel):
        precision: int = Field(9, ge=1, le=12, description="Characters: 5 are some 5 km, 9 some 5 m.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.max_length = options.precision

    def fill(self, cells: Cells) -> pa.Array:
        places: Places = cells.group()
        latitude = _cell(latitude_units(self.geography, places.city, places.point), 90)
        longitude = _cell(longitude_units(self.geography, places.city, places.point), 180)
        bits = _spread(longitude) << np.uint64(1) | _spread(latitude)
        out = np.empty((bits.size, self.options.precision), np.uint8)
        for place in range(self.options.precision):
            out[:, place] = _DIGITS.take(bits >> np.uint64(2 * _HALF - 5 * (place + 1)) & np.uint64(31))
        return text_of(out)

    def unique_hint(self) -> str:
        return "Two places may lie in one cell; make the city unique."


def _cell(units: np.ndarray, most: int) -> np.ndarray:
    """``uint64[n]``: which of 2**30 equal parts from -``most`` to ``most`` degrees each of ``units`` lies in."""
    whole = ((units + most * _DEGREE) << _HALF) // (2 * most * _DEGREE)
    return np.clip(whole, 0, (1 << _HALF) - 1).view(np.uint64)


def _spread(bits: np.ndarray) -> np.ndarray:
    """``uint64[n]``: the lower 32 bits with a nought before each."""
    for shift, mask in _SPREAD:
        bits = (bits | bits << shift) & mask
    return bits


_WORDS: dict[str, tuple[str, ...]] = {
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
_NUMBERS = 999


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
        if language not in _WORDS:
            self._unknown(field, locale, compiler)
            language = "en"
        self._pool = _lines(language)
        self.size = len(self._pool)
        self.max_length = max(map(len, _WORDS[language])) - len("{}") + len(str(_NUMBERS))

    def _unknown(self, field: FieldSpec, locale: str | None, compiler: Compiler) -> None:
        text = f"No words for flats and floors are known for {locale}"
        if field.common.locale:
            hint = f"Known languages: {', '.join(sorted(_WORDS))}."
            compiler.fault(field, "locale", "not_for_this_type", f"{text}.", hint)
        else:
            compiler.warn(
                field, "other_language", f"{self.label}: {text}, so these are English.", "Set locale."
            )

    def at(self, index: np.ndarray, cells: Cells) -> pa.Array:
        return joining.chosen(self._pool, index)

    @classmethod
    def capacity(cls) -> int:
        return len(_WORDS["en"]) * _NUMBERS


@cache
def _lines(language: str) -> pa.StringArray:
    return pa.array([word.format(number) for number in range(1, _NUMBERS + 1) for word in _WORDS[language]])
