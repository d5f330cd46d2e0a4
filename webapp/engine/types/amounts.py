"""Numbers in options: exact decimals on the way in, plain JSON numbers on the way out, whole units inside."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from webapp import limits
from webapp.engine import text

if TYPE_CHECKING:
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number is required, not true or false")
    return value


Amount = Annotated[
    Decimal,
    Field(ge=-limits.MAX_INTEGER, le=limits.MAX_INTEGER),
    BeforeValidator(_no_boolean),
    PlainSerializer(
        lambda value: int(value) if value == int(value) else float(value), return_type=int | float
    ),
    WithJsonSchema({"type": "number", "minimum": -limits.MAX_INTEGER, "maximum": limits.MAX_INTEGER}),
]
"""A JSON number as an option, held exactly: 0.1 is a tenth."""


def decimal_places(value: Decimal) -> int:
    """Digits after the point that ``value`` needs."""
    exponent = value.normalize().as_tuple().exponent
    assert isinstance(exponent, int)  # an option is never NaN or infinite
    return max(0, -exponent)


def integer_weights(weights: Sequence[Decimal]) -> list[int]:
    """The same proportions in whole numbers."""
    exact = [Fraction(weight) for weight in weights]
    scale = lcm(*(weight.denominator for weight in exact))
    numbers = [int(weight * scale) for weight in exact]
    common = gcd(*numbers)
    return [number // common for number in numbers]


class UnitConverter:
    """Reads amounts as whole units of the last decimal, and reports amounts that do not fit."""

    def __init__(self, field: FieldSpec, compiler: Compiler, places: int, option: str) -> None:
        self._field, self._compiler = field, compiler
        self.places, self._option = places, option

    def convert(self, option: str, value: Decimal | None) -> int | None:
        """``value`` in units; None (after a fault, if there is a value) where it has none."""
        if value is None:
            return None
        needed = decimal_places(value)
        if needed > self.places:
            message = f"{value} has {needed} decimal places, but the values have {self.places}."
            hint = (
                f"Set {self._option} to {needed}."
                if needed <= limits.MAX_DECIMALS
                else "Use fewer decimal places."
            )
            self._compiler.fault(self._field, f"options.{option}", "too_fine", message, hint)
            return None
        units = int(value.scaleb(self.places))
        if abs(units) > limits.MAX_UNITS:
            message = f"{value} with {self.places} decimal places has more digits than fit in 64 bits."
            self._compiler.fault(
                self._field, f"options.{option}", "out_of_range", message, f"Lower {self._option}."
            )
            return None
        return units

    def to_fraction(self, value: Decimal) -> Fraction:
        """``value`` in units, whole or not."""
        return Fraction(value) * 10**self.places


def to_column(units: np.ndarray, places: int) -> pa.Array:
    """``int64[n]`` of units as integers, or as decimals where there are places."""
    return text.decimal_array(units, places) if places else pa.array(units)


def arrow_type(places: int) -> pa.DataType:
    """The Arrow type of `to_column`."""
    return pa.decimal128(38, places) if places else pa.int64()


def max_number_length(low: int, high: int, places: int) -> int:
    """Characters of the longest number from ``low`` to ``high`` units."""
    return max(_length(low, places), _length(high, places))


def _length(units: int, places: int) -> int:
    digits = len(str(abs(units)))
    return (max(digits, places + 1) + 1 if places else digits) + (units < 0)
