"""Numbers: random ones, even or by a distribution, truth values, and those that count rows."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices, Field

from webapp import limits
from webapp.engine import cells as cellular
from webapp.engine import text
from webapp.engine.fields import amounts, values
from webapp.engine.fields.base import FieldType, OptionsModel
from webapp.engine.fields.spread import Bounds, Shape, Spread

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


class Numeric(FieldType):
    """A number drawn from a `Spread`: integers without places, else exact decimals. Subclasses say how many."""

    category = "number"
    stringify = False
    places_option = "decimals"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._places = self.places
        self._spread = Spread(field, options, compiler, self._places, self.places_option)
        self.dtype = pa.string() if self.stringify else amounts.kind(self._places)
        if self.stringify and hasattr(self._spread, "low"):
            self.max_length = amounts.longest(self._spread.low, self._spread.high, self._places)

    @property
    def places(self) -> int:
        """Digits after the point."""
        return getattr(self.options, "decimals", None) or 0

    def fill(self, cells: Cells) -> pa.Array:
        return self._column(self._spread.draw(cells.bits()))

    def space(self) -> int | None:
        return self._spread.size

    def fill_unique(self, cells: Cells) -> pa.Array:
        assert self._spread.size is not None
        return self._column(self._spread.at(cells.permuted(self._spread.size)))

    def _column(self, units: np.ndarray) -> pa.Array:
        made = amounts.column(units, self._places)
        return text.to_text(made) if self.stringify else made

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return None if self.stringify else (self._spread.low, self._spread.high)

    def unique_hint(self) -> str:
        return "Unique numbers are drawn evenly: take the distribution away, or take unique away."


class Places(OptionsModel):
    """Digits after the point, and whether the number is written as text."""

    decimals: int | None = Field(
        None, ge=0, le=limits.MAX_DECIMALS, description="Digits after the point; whole numbers if left out."
    )


class AsText(OptionsModel):
    """Whether the number is written as text."""

    stringify: bool = Field(False, description="Writes the number as text.")


class Number(Numeric):
    """Whole numbers unless ``decimals`` is set; even unless ``distribution`` is."""

    name = "number"
    label = "Number"
    description = "A whole or decimal number, evenly spread or by a distribution."
    aliases = (
        "integer", "int", "bigint", "smallint", "tinyint", "long integer", "numeric", "random number", "random int",
        "pyint", "random integer", "number int", "random digit",
    )  # fmt: skip
    example = 417

    class Options(AsText, Shape, Places, Bounds):
        pass

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        self.stringify = options.stringify
        super().__init__(field, options, compiler)

    @classmethod
    def capacity(cls) -> int:
        return 1001


class Float(Numeric):
    """Decimals with a fixed number of places; exact, never binary."""

    name = "float"
    label = "Float"
    description = "A decimal number with a fixed number of digits after the point."
    aliases = (
        "decimal",
        "double",
        "real",
        "decimal number",
        "pyfloat",
        "pydecimal",
        "random float",
        "double precision",
    )
    example = 417.25
    places_option = "precision"

    class Precision(OptionsModel):
        """Digits after the point."""

        precision: Annotated[int, Field(ge=0, le=limits.MAX_DECIMALS)] = Field(
            2, validation_alias=AliasChoices("precision", "decimals"), description="Digits after the point."
        )

    class Options(Shape, Precision, Bounds):
        pass

    options: Options

    @property
    def places(self) -> int:
        return self.options.precision

    @classmethod
    def capacity(cls) -> int:
        return 100_001


class Boolean(FieldType):
    """True or false, or whatever two values stand for them."""

    name = "boolean"
    label = "Boolean"
    category = "number"
    description = "True or false, or two values of your own."
    aliases = ("bool", "bit", "flag", "true false", "yes no", "pybool", "is active")
    example = True

    class Options(OptionsModel):
        truthy: Any = Field(True, description="Written for true: any value.")
        falsy: Any = Field(False, description="Written for false: any value.")
        probability: amounts.Amount | None = Field(
            None, description="Share of true, from 0 to 1; a half if left out."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._pool = values.pool_of([options.falsy, options.truthy])
        self.dtype, self.json_text = self._pool.values.type, self._pool.json_text
        self._plain = options.truthy is True and options.falsy is False
        if pa.types.is_string(self.dtype):
            self.max_length = values.longest(self._pool)
        if options.probability is not None and not 0 <= options.probability <= 1:
            text = f"A probability is from 0 to 1, not {options.probability}."
            compiler.fault(field, "options.probability", "out_of_range", text, "Write 0.25 for a quarter.")
        elif self._pool.place[0] == self._pool.place[1]:
            compiler.fault(field, "options.falsy", "duplicate", "truthy and falsy are the same value.")
        share = Fraction(1, 2) if options.probability is None else Fraction(options.probability)
        self._share = (share.numerator, share.denominator)

    def fill(self, cells: Cells) -> pa.Array:
        return self._column(cellular.chance(cells.bits(), *self._share))

    def _column(self, true: np.ndarray) -> pa.Array:
        return pa.array(true) if self._plain else self._pool.at(true.view(np.int8))

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return None if self._plain else self._pool.bounds

    def space(self) -> int | None:
        even = self.options.probability is None
        return 2 if even and self._pool.distinct.size == 2 else None

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self._column(cells.permuted(2).astype(bool))

    def unique_hint(self) -> str:
        if self.options.probability is None:
            return "Write two values that differ in more than case and accents, neither of them null."
        return "Unique values are drawn evenly: take the probability away, or take unique away."

    @classmethod
    def capacity(cls) -> int:
        return 2


class RowNumber(FieldType):
    """1 for the first row of the template, whatever offset a request starts at."""

    name = "row_number"
    label = "Row number"
    category = "number"
    description = "Counts the rows: 1, 2, 3 ..."
    aliases = ("row", "auto increment", "autoincrement", "index", "serial")
    example = 1
    dtype = pa.int64()

    def fill(self, cells: Cells) -> pa.Array:
        return pa.array((cells.rows + np.uint64(1)).view(np.int64))

    def space(self) -> int:
        return 1 << 62

    def bounds(self, rows: int) -> tuple[int, int]:
        return 1, rows

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)


class Steps(OptionsModel):
    """Where a count begins, and how it goes on."""

    start: int = Field(1, ge=-limits.MAX_INTEGER, le=limits.MAX_INTEGER, description="First value.")
    step: int = Field(
        1, ge=-limits.MAX_INTEGER, le=limits.MAX_INTEGER, description="Added from one value to the next."
    )


class Stepped(FieldType):
    """start + step x the number of steps that a row lies from the start."""

    category = "number"
    options: Steps
    _repeat: int = 1
    _pad: int = 0

    def __init__(self, field: FieldSpec, options: Steps, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.int64()
        if options.step == 0:
            compiler.fault(
                field, "options.step", "wrong_value", "A step of 0 never moves.", "Use type constant."
            )

    def fill(self, cells: Cells) -> pa.Array:
        numbers = pa.array(self.turn(cells.rows).view(np.int64) * self.options.step + self.options.start)
        return padded(numbers, self._pad) if self._pad else numbers

    def turn(self, rows: np.ndarray) -> np.ndarray:
        """How many steps each row lies from the start."""
        return rows if self._repeat == 1 else rows // np.uint64(self._repeat)

    def rows_in(self, state: Any) -> int | None:
        return (1 << 62) // abs(self.options.step) * self._repeat

    def bounds(self, rows: int) -> tuple[int, int] | None:
        last = self.options.start + self.options.step * ((rows - 1) // self._repeat)
        return None if self._pad else (min(self.options.start, last), max(self.options.start, last))

    def space(self) -> int | None:
        return (1 << 62) // abs(self.options.step or 1) if self._repeat == 1 else None

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)


class Sequence(Stepped):
    """start + step x row, each value ``repeat`` times, with leading zeros up to ``pad`` digits."""

    name = "sequence"
    label = "Sequence"
    description = "An arithmetic sequence with a start and a step."
    aliases = ("series", "increment", "number sequence")
    example = 1

    class Options(Steps):
        repeat: int = Field(1, ge=1, le=limits.MAX_INTEGER, description="How many rows share a value.")
        pad: int = Field(
            0, ge=0, le=limits.MAX_PAD_DIGITS, description="Leading zeros up to so many digits; makes text."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._repeat, self._pad = options.repeat, options.pad
        if self._pad:
            self.dtype = pa.string()

    def unique_hint(self) -> str:
        return "Set repeat to 1."


def padded(numbers: pa.Array, width: int) -> pa.Array:
    """Integers as text with leading zeros; a minus sign stands before the zeros."""
    digits = pc.utf8_lpad(pc.abs(numbers).cast(pa.string()), width, "0")
    negative = pc.less(numbers, 0)
    if not pc.any(negative).as_py():
        return digits
    return pc.if_else(negative, pc.binary_join_element_wise("-", digits, ""), digits)
