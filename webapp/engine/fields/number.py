"""Numbers that count rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp import limits
from webapp.engine.fields.base import FieldType, Options

if TYPE_CHECKING:
    from webapp.engine.block import Cells


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

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)


class Sequence(FieldType):
    """start + step x row, each value ``repeat`` times, with leading zeros up to ``pad`` digits."""

    name = "sequence"
    label = "Sequence"
    category = "number"
    description = "An arithmetic sequence with a start and a step."
    aliases = ("series", "increment", "number sequence")
    example = 1

    class Options(Options):
        start: int = Field(1, ge=-limits.MAX_INTEGER, le=limits.MAX_INTEGER, description="First value.")
        step: int = Field(1, ge=-limits.MAX_INTEGER, le=limits.MAX_INTEGER, description="Added from one value to the next.")
        repeat: int = Field(1, ge=1, le=limits.MAX_INTEGER, description="How many rows share a value.")
        pad: int = Field(0, ge=0, le=limits.MAX_PAD_DIGITS, description="Leading zeros up to so many digits; makes text.")

    def __init__(self, field, options, compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.string() if options.pad else pa.int64()
        if options.step == 0:
            compiler.fault(field, "options.step", "wrong_value", "A step of 0 never moves.", "Use type constant.")

    def fill(self, cells: Cells) -> pa.Array:
        turn = (cells.rows // np.uint64(self.options.repeat)).view(np.int64)
        numbers = pa.array(turn * self.options.step + self.options.start)
        return padded(numbers, self.options.pad) if self.options.pad else numbers

    def space(self) -> int | None:
        return (1 << 62) // abs(self.options.step or 1) if self.options.repeat == 1 else None

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)

    def unique_hint(self) -> str:
        return "Set repeat to 1."


def padded(numbers: pa.Array, width: int) -> pa.Array:
    """Integers as text with leading zeros; a minus sign stands before the zeros."""
    digits = pc.utf8_lpad(pc.abs(numbers).cast(pa.string()), width, "0")
    negative = pc.less(numbers, 0)
    if not pc.any(negative).as_py():
        return digits
    return pc.if_else(negative, pc.binary_join_element_wise("-", digits, ""), digits)
