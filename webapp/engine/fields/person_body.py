"""What a person's body is like: blood, height, weight and the shirt that fits."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp.engine import cells as cellular
from webapp.engine.fields.base import OptionsModel, PoolType, pooled
from webapp.engine.fields.names import FEMALE, MALE
from webapp.engine.fields.person import PersonField
from webapp.engine.fields.person_group import People
from webapp.engine.text import decimals

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_BLOOD = {"O+": 38, "A+": 34, "B+": 9, "O-": 7, "A-": 6, "AB+": 3, "B-": 2, "AB-": 1}
"""Of a hundred people in the United States (American Red Cross)."""


class BloodType(PoolType):
    """One of the eight groups of ABO and Rh, as common as in the United States."""

    name = "blood_type"
    label = "Blood type"
    category = "person"
    description = "A blood group, such as O+."
    aliases = ("blood group", "abo", "bloodtype", "rh factor")
    example = "O+"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(_groups(), None if field.common.unique else cellular.Weighted(list(_BLOOD.values())))

    @classmethod
    def capacity(cls) -> int:
        return len(_BLOOD)


@cache
def _groups() -> pa.StringArray:
    return pa.array(list(_BLOOD))


_MIDDLE = {FEMALE: 1630, MALE: 1765}
"""Millimetres of the middle of grown-ups."""
_DEVIATION = {FEMALE: 66, MALE: 71}
_FOUR_PARTS = 37_837
"""Standard deviation of the sum of four numbers of 16 bits, whose mean is 131,070."""
# Hundredths of an adult's height by whole years of age, and tenths of a grown-up's body mass index.
_GROWTH = np.array([37, 45, 51, 56, 60, 64, 68, 71, 75, 78, 81, 84, 87, 91, 94, 97, 98, 99, 100], np.int64)
_MASS = np.array([68, 68, 66, 64, 62, 62, 62, 63, 64, 66, 68, 71, 74, 77, 81, 85, 89, 93, 100], np.int64)
_MIDDLE_INDEX, _INDEX_DEVIATION, _LEAST_INDEX = 252, 38, 165
_HEIGHT_SALT, _WEIGHT_SALT = 8, 9
_LOW_16 = np.uint64(0xFFFF)


def _normal(bits: np.ndarray) -> np.ndarray:
    """``int64[n]``: the sum of the four parts of 64 random bits less its mean: nearly normal, within 3.5 deviations."""
    total = bits & _LOW_16
    for shift in (16, 32, 48):
        total += bits >> np.uint64(shift) & _LOW_16
    return total.view(np.int64) - 131_070


def _of_age(people: People, table: np.ndarray) -> np.ndarray | None:
    """``int64[n]``: shares for the ages, where the group has any."""
    return None if people.born is None else table.take(np.minimum(people.age, table.size - 1))


def _millimetres(people: People) -> np.ndarray:
    """``int64[n]``: height of each person, by sex and, where the group knows it, age."""
    middle = np.array([_MIDDLE[FEMALE], _MIDDLE[MALE]]).take(people.sex)
    deviation = np.array([_DEVIATION[FEMALE], _DEVIATION[MALE]]).take(people.sex)
    height = middle + _normal(people.bits(_HEIGHT_SALT)) * deviation // _FOUR_PARTS
    share = _of_age(people, _GROWTH)
    return height if share is None else height * share // 100


def _grams(people: People) -> np.ndarray:
    """``int64[n]``: weight of each person, by height and a body mass index."""
    index = _MIDDLE_INDEX + _normal(people.bits(_WEIGHT_SALT)) * _INDEX_DEVIATION // _FOUR_PARTS
    index = np.maximum(index, _LEAST_INDEX)
    share = _of_age(people, _MASS)
    if share is not None:
        index = index * share // 100
    height = _millimetres(people)
    return index * height * height // 10_000


class _Body(PersonField):
    localised = False

    def unique_hint(self) -> str:
        return "People share it; make the username or the e-mail unique."


class Height(_Body):
    """Of grown women and men, each about their mean; of children where the group has their age."""

    name = "height"
    label = "Height"
    description = "How tall the person is, in agreement with sex and age."
    aliases = ("body height", "stature", "height cm", "person height", "height in cm")
    example = 172

    class Options(OptionsModel):
        unit: Literal["cm", "m", "in", "ft"] = Field(
            "cm", description="Centimetres, metres with two decimals, inches, or feet and inches as 5'8\"."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = {"m": pa.decimal128(38, 2), "ft": pa.string()}.get(options.unit, pa.int64())
        self.max_length = len("5'11\"") if options.unit == "ft" else None

    def fill(self, cells: Cells) -> pa.Array:
        tall = _millimetres(cells.group())
        if self.options.unit in ("cm", "m"):
            whole = (tall + 5) // 10
            return pa.array(whole) if self.options.unit == "cm" else decimals(whole, 2)
        inches = (tall * 10 + 127) // 254
        return pa.array(inches) if self.options.unit == "in" else pooled(_feet(), inches)

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return None if self.options.unit == "ft" else (0, 300)


@cache
def _feet() -> pa.StringArray:
    return pa.array([f"{inches // 12}'{inches % 12}\"" for inches in range(120)])


class Weight(_Body):
    """The height's, by a body mass index about that of grown-ups; of children where the group has their age."""

    name = "weight"
    label = "Weight"
    description = "How heavy the person is, in agreement with height, sex and age."
    aliases = ("body weight", "body mass", "weight kg", "person weight", "weight in kg")
    example = 74.5
    dtype = pa.decimal128(38, 1)

    class Options(OptionsModel):
        unit: Literal["kg", "lb"] = Field("kg", description="Kilograms or pounds, with one decimal.")

    options: Options

    def fill(self, cells: Cells) -> pa.Array:
        grams = _grams(cells.group())
        if self.options.unit == "lb":
            return decimals((grams * 100_000 + 2_267_962) // 4_535_924, 1)
        return decimals((grams + 50) // 100, 1)

    def bounds(self, rows: int) -> tuple[int, int]:
        return 0, 10_000


_SIZES = ("XS", "S", "M", "L", "XL", "2XL", "3XL")
_UP_TO = np.array([52_000, 62_000, 74_000, 87_000, 101_000, 117_000])
"""Grams to which a size fits."""


class ShirtSize(_Body):
    """By the person's weight."""

    name = "shirt_size"
    label = "Shirt size"
    description = "A clothing size from XS to 3XL, in agreement with the weight."
    aliases = ("t shirt size", "tshirt size", "clothing size", "shirt", "apparel size", "garment size")
    example = "M"
    max_length = 3

    def fill(self, cells: Cells) -> pa.Array:
        return pooled(_sizes(), np.searchsorted(_UP_TO, _grams(cells.group())))


@cache
def _sizes() -> pa.StringArray:
    return pa.array(_SIZES)
