"""Cars and flights: model years, identification numbers, plates, flight numbers."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices, Field

from webapp.engine import random as engine_random
from webapp.engine.text_parts import join_parts
from webapp.engine.types import plates
from webapp.engine.types.base import OptionsModel, max_text_length
from webapp.engine.types.codes import DIGITS, Check, Code, CodePart, CodeType, Gap, Pick, Run
from webapp.engine.types.papers import CountryDependentType, find_place_group
from webapp.engine.types.place import Places
from webapp.engine.types.table_group import Airline, RowField, column_texts
from webapp.engine.types.time import Year

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_YEARS = 25


class CarYear(Year):
    """A model year of the last twenty-five, or between two others."""

    name = "car_year"
    label = "Car model year"
    category = "misc"
    description = "The model year of a car."
    aliases = ("car model year", "model year", "vehicle year", "car age year")
    example = 2019
    span = _YEARS

    class Options(Year.Options):
        min: int | None = Field(None, ge=1, le=9999, description=f"First year. Default: max - {_YEARS}.")

    options: Options

    @classmethod
    def capacity(cls) -> int:
        return _YEARS + 1


# ISO 3779: neither I nor O nor Q. SAE J1044 gives makers their first three characters.
_VIN_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"
_VIN = _VIN_LETTERS + DIGITS
_MAKERS = (
    "1C4", "1FA", "1FT", "1G1", "1GC", "1HG", "1J4", "1N4", "2C3", "2FM", "2HG", "2T1", "3FA", "3N1", "3VW", "4S3",
    "4T1", "5N1", "5TD", "5YJ", "JA4", "JF1", "JHM", "JM1", "JN1", "JTD", "KMH", "KNA", "KNM", "SAL", "SAJ", "SCC",
    "TMB", "TRU", "VF1", "VF3", "VF7", "VSS", "WAU", "WBA", "WBS", "WDB", "WF0", "WP0", "WVW", "YS3", "YV1", "ZAR",
    "ZFA", "ZFF",
)  # fmt: skip
_YEAR_CODES = "ABCDEFGHJKLMNPRSTVWXY123456789"
"""Position 10: the model years from 1980 on, and over again from 2010 on (49 CFR 565.15)."""
_FIRST_YEAR, _LAST_YEAR = 1980, 2039
_VIN_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
_VIN_WORTH = dict(
    zip(
        "ABCDEFGHJKLMNPRSTUVWXYZ0123456789",
        (*range(1, 9), *range(1, 6), 7, 9, *range(2, 10), *range(10)),
        strict=True,
    )
)


class Vin(CodeType):
    """A maker's three characters, five of the model, the check digit, the model year, the plant and six digits."""

    name = "vin"
    label = "VIN"
    category = "misc"
    description = "A vehicle identification number (VIN) with a valid check digit."
    aliases = ("car vin", "vehicle identification number", "chassis number", "frame number")
    example = "1HGCM82633A004352"

    class Options(OptionsModel):
        year: int | None = Field(
            None,
            ge=_FIRST_YEAR,
            le=_LAST_YEAR,
            description="Model year in the tenth character. Default: any year from 2010 on.",
            examples=[2021],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        # The seventh character, of ``cycle``, is a digit up to 2009 and a letter after.
        years, cycle = _YEAR_CODES[:16], _VIN_LETTERS
        if options.year is not None:
            years = _YEAR_CODES[(options.year - _FIRST_YEAR) % len(_YEAR_CODES)]
            cycle = DIGITS if options.year < _FIRST_YEAR + len(_YEAR_CODES) else cycle

        def make() -> Code:
            # 49 CFR 565.15
            check = Check(
                11, lambda place, sign: _VIN_WORTH[sign] * _VIN_WEIGHTS[place], tuple("0123456789X")
            )
            head = (Pick(_MAKERS), Run(_VIN, 3), Run(cycle), Run(_VIN))
            return Code(*head, check, Run(years), Run(_VIN), Run(DIGITS, 6))

        self.use(compiler.vocabulary.cached(("vin", years, cycle), make))


_LETTERS = _VIN_LETTERS
_CYRILLIC = "ABCEHKMOPTXY"
"""Letters that Cyrillic and Latin script share."""
_PLATES: dict[str, tuple[str, str]] = {
    "AR": ("@@ ### @@", _LETTERS), "AT": ("W-##### @", _LETTERS), "AU": ("@@@-##@", _LETTERS),
    "BE": ("1-@@@-###", _LETTERS), "BG": ("CB #### @@", _CYRILLIC), "BR": ("@@@#@##", _LETTERS),
    "CA": ("@@@@ ###", _LETTERS), "CH": ("ZH ######", _LETTERS), "CL": ("@@-@@-##", "BCDFGHJKLPRSTVWXYZ"),
    "CO": ("@@@-###", _LETTERS), "CZ": ("#@# ####", _LETTERS), "DE": ("B-@@ ####", _LETTERS),
    "DK": ("@@ ## ###", _LETTERS), "EE": ("### @@@", _LETTERS), "ES": ("#### @@@", "BCDFGHJKLMNPRSTVWXYZ"),
    "FI": ("@@@-###", _LETTERS), "FR": ("@@-###-@@", "ABCDEFGHJKLMNPQRSTVWXYZ"), "GB": ("@@## @@@", _LETTERS),
    "GR": ("@@@-####", "ABEZHIKMNOPTYX"), "HR": ("ZG ####-@@", _LETTERS), "HU": ("@@ @@-###", _LETTERS),
    "IE": ("##1-D-#####", _LETTERS), "IL": ("###-##-###", _LETTERS), "IN": ("DL ## @@ ####", _LETTERS),
    "IT": ("@@ ###@@", _LETTERS), "LT": ("@@@ ###", _LETTERS), "LU": ("@@ ####", _LETTERS),
    "LV": ("@@-####", _LETTERS), "MX": ("@@@-###-@", _LETTERS), "NL": ("@@-###-@", "BDFGHJKLNPRSTVXZ"),
    "NO": ("@@ #####", _LETTERS), "NZ": ("@@@###", _LETTERS), "PL": ("WA #####", _LETTERS),
    "PT": ("@@-##-@@", _LETTERS), "RO": ("B ### @@@", _LETTERS), "RS": ("BG ####-@@", _LETTERS),
    "RU": ("@###@@77", _CYRILLIC), "SE": ("@@@ ##@", "ABCDEFGHJKLMNOPRSTUWXYZ"), "SI": ("LJ @@-###", _LETTERS),
    "SK": ("BA###@@", _LETTERS), "TR": ("34 @@@ ###", _LETTERS), "UA": ("@@####@@", _CYRILLIC),
    "US": ("#@@@###", _LETTERS), "ZA": ("@@ ## @@ GP", "BCDFGHJKLMNPRSTVWXYZ"),
}  # fmt: skip
"""How the plates of a country look, and their letters: # is a digit, @ a letter, other characters are literal (a
capital or large city where plates name a place)."""
PLATE_COUNTRIES = tuple(sorted(_PLATES))


def code_from_mask(mask: str, letters: str) -> Code:
    """Texts of a mask: # a digit, @ one of ``letters``, other characters are literal."""
    parts: list[CodePart] = []
    for piece in re.findall("#+|@+|[^#@]+", mask):
        alphabet = {"#": DIGITS, "@": letters}.get(piece[0])
        parts.append(Gap(piece) if alphabet is None else Run(alphabet, len(piece)))
    return Code(*parts)


class LicensePlate(CountryDependentType):
    """A plate as the country's present series has it, of the region of the row's place where plates name one."""

    name = "license_plate"
    label = "License plate"
    category = "misc"
    description = "A license plate in the format of a country, consistent with the row's region."
    aliases = (
        "licence plate",
        "number plate",
        "registration plate",
        "vehicle registration",
        "plate number",
        "car plate",
        "vehicle vrm",
        "vrm",
    )
    example = "7KXT482"

    class Options(OptionsModel):
        country: str | None = Field(
            None,
            validation_alias=AliasChoices("country", "countryCode", "country_code"),
            description=f"Two-letter code: {', '.join(plates.PLATE_COUNTRIES)}. Default: the locale's country.",
            examples=["DE"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        vocabulary = compiler.vocabulary
        self._states: list[tuple[str, str]] | None = None
        if vocabulary.engine < 2:

            def make(country: str) -> Code:
                return vocabulary.cached(("plate", country), lambda: code_from_mask(*_PLATES[country]))

            self.select_country(options.country, PLATE_COUNTRIES, "number plates", "US", compiler, make)
            return
        self._single_country = options.country.strip().upper() if options.country else None
        self.select_country(
            options.country, plates.PLATE_COUNTRIES, "number plates", "US", compiler, self._placeholder_code
        )
        states = vocabulary.table("states")
        self._states = list(zip(states["country"].to_pylist(), states["code"].to_pylist(), strict=True))
        self._place = find_place_group(field, compiler)
        self._shared = vocabulary.cached
        self.max_length = _LONGEST_PLATE

    def _placeholder_code(self, country: str) -> Code:
        # `take` decides the country; the texts are joined from pools, since they are not of one width.
        self._single_country = country
        return Code("-")

    def fill(self, context: ColumnContext) -> pa.Array:
        if self._states is None:
            return super().fill(context)
        n = context.n
        if self.place_group is None:
            assert self._single_country is not None
            country = np.zeros(n, np.int64)
            known = [self._single_country]
        else:
            country, known = self.country_indices(context), list(self._countries)
        if self._place is None:
            state = np.full(n, len(self._states))
        else:
            state = context.group_value(Places, *self._place).state
            state = np.where(state < 0, len(self._states), state)
        pieces, order = [], []
        for number in np.unique(country[country >= 0]).tolist():
            positions = np.flatnonzero(country == number)
            for texts, rows in self._plates_of(known[number], positions, state[positions], context):
                pieces.append(texts)
                order.append(rows)
        blank = np.flatnonzero(country < 0)
        if blank.size:
            pieces.append(pa.nulls(blank.size, pa.string()))
            order.append(blank)
        if not pieces:
            return pa.array([], pa.string())
        if len(pieces) == 1:
            return pieces[0]
        place = np.empty(n, np.int64)
        place[np.concatenate(order)] = np.arange(n)
        return pa.concat_arrays(pieces).take(pa.array(place))

    def _plates_of(
        self, country: str, rows: np.ndarray, state: np.ndarray, context: ColumnContext
    ) -> list[tuple[pa.StringArray, np.ndarray]]:
        """(texts, rows of the block) of one country, mask by mask."""
        assert self._states is not None
        format_, states = plates.PLATES[country], self._states
        if format_.region_masks:
            masks = self._shared(("plate masks", country), lambda: _masks_of(country, states))
            mask_numbers = masks[1][state]
            random_masks = context.below(len(masks[0]), _MASK_SALT)[rows].view(np.int64)
            mask_numbers = np.where(mask_numbers < 0, random_masks, mask_numbers)
            groups = [
                (masks[0][m], np.flatnonzero(mask_numbers == m)) for m in np.unique(mask_numbers).tolist()
            ]
        else:
            groups = [(format_.mask, np.arange(rows.size))]
        plates_and_rows = []
        regions = self._shared(("plate regions", country), lambda: plates.compile_regions(country, states))
        for mask, chosen in groups:
            own_rows = rows[chosen]
            parts = [
                (pool, engine_random.below(context.bits(salt)[own_rows], len(pool)))
                for salt, pool in enumerate(plates.mask_pools(mask, format_.letters))
            ]
            if regions is not None:
                bits = context.bits(_REGION_SALT)[own_rows] >> np.uint64(32)
                region = (bits * regions.count[state[chosen]] >> np.uint64(32)) + regions.start[state[chosen]]
                parts.insert(len(parts) if format_.is_region_last else 0, (regions.texts, region))
            plates_and_rows.append((join_parts(*parts), own_rows))
        return plates_and_rows

    def distinct_count(self) -> int | None:
        if self._states is None:
            return super().distinct_count()
        if self.place_group is not None or self._single_country is None:
            return None
        format_ = plates.PLATES[self._single_country]
        return math.prod(len(pool) for pool in plates.mask_pools(format_.mask, format_.letters))

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        if self._states is None:
            return super().fill_unique(context)
        space, country = self.distinct_count(), self._single_country
        assert space is not None  # else the field could not be unique
        assert country is not None
        format_, number, states = plates.PLATES[country], context.permuted(space), self._states
        parts: list[tuple[pa.StringArray, np.ndarray]] = []
        for pool in reversed(plates.mask_pools(format_.mask, format_.letters)):
            number, index = np.divmod(number, np.uint64(len(pool)))
            parts.insert(0, (pool, index))
        regions = self._shared(("plate regions", country), lambda: plates.compile_regions(country, states))
        if regions is not None:
            start, count = regions.start[-1], regions.count[-1]
            region = (context.bits(_REGION_SALT) >> np.uint64(32)) * count // np.uint64(1 << 32) + start
            parts.insert(len(parts) if format_.is_region_last else 0, (regions.texts, region))
        return join_parts(*parts)


_REGION_SALT, _MASK_SALT = 40, 41
_LONGEST_PLATE = 32


def _masks_of(country: str, states: list[tuple[str, str]]) -> tuple[list[str], np.ndarray]:
    """The masks of a country, and which of them each state of the vocabulary has (-1: none of its own)."""
    masks = plates.PLATES[country].region_masks
    distinct = list(dict.fromkeys(masks.values()))
    rows = [
        distinct.index(masks[code]) if country_code == country and code in masks else -1
        for country_code, code in states
    ]
    return distinct, np.array([*rows, -1], np.int64)


_FLIGHTS = 9999


class FlightNumber(RowField):
    """The IATA designator of the row's airline and one to four digits (IATA SSIM)."""

    name = "flight_number"
    label = "Flight number"
    category = "misc"
    description = "A flight number, such as LH454, consistent with the airline."
    aliases = ("flight", "flight no", "flight code")
    example = "LH454"
    group_kind = "airline"
    dtype = pa.string()

    class Options(OptionsModel):
        separator: str = Field(
            "", max_length=3, description="Separator between airline and number.", examples=[" "]
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._codes = column_texts(compiler.vocabulary, "airline", self.column(options))
        self._is_independent = len(compiler.fields_of_same_group(field)) == 1
        make = lambda: pc.binary_join_element_wise(self._codes.texts, options.separator, "")  # noqa: E731
        self._heads = compiler.vocabulary.cached(("designators", options.separator), make)
        self.max_length = max_text_length(self._heads) + len(str(_FLIGHTS))

    @classmethod
    def column(cls, options: Options) -> str:
        """The airline's code in the number."""
        return "iata"

    def fill(self, context: ColumnContext) -> pa.Array:
        return self._joined(self._codes.indices[context.group(np.ndarray)], context.below(_FLIGHTS))

    def _joined(self, airline: np.ndarray, number: np.ndarray) -> pa.Array:
        return join_parts((self._heads, airline), (_flights(), number))

    def distinct_count(self) -> int | None:
        return len(self._heads) * _FLIGHTS if self._is_independent else None

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        space = self.distinct_count()
        assert space is not None  # else the field could not be unique
        return self._joined(*np.divmod(context.permuted(space), np.uint64(_FLIGHTS)))

    def unique_hint(self) -> str:
        return "The value must match the airline: set a separate group for the field."

    @classmethod
    def capacity(cls) -> int:
        return Airline.count * _FLIGHTS


@cache
def _flights() -> pa.StringArray:
    return pa.array([str(number) for number in range(1, _FLIGHTS + 1)])
