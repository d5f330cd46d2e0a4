"""Parts of the calendar: working days, years, quarters."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp.engine.errors import SpecError
from webapp.engine.fields.base import FieldType, OptionsModel, PoolType
from webapp.engine.fields.between import Span
from webapp.engine.fields.time import Days
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Cells, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_MONDAY = 3  # 1970-01-01 was a Thursday
_YEARS = 50


class BusinessDay(Days):
    """A day from Monday to Friday. The span counts working days, so that each is as likely as the others."""

    name = "business_day"
    label = "Business day"
    description = "A day from Monday to Friday between two dates."
    aliases = ("working day", "workday", "business date", "weekday date")
    example = "2024-05-17"

    def _span(self, now: datetime) -> Span:
        whole = super()._span(now)
        low, high = _working(whole.low), _working(whole.low + whole.size)
        if low == high:
            message = "No day from Monday to Friday lies between min and max."
            raise SpecError(
                [Fault(f"{self.field.path}.options.min", "too_narrow", message, "Widen min and max.")]
            )
        return Span(low, high - low, None)

    def column(self, units: np.ndarray, cells: Cells) -> pa.Array:
        weeks, day = np.divmod(units, 5)
        days = (weeks * 7 + day - _MONDAY).astype(np.int32)
        made = pa.Array.from_buffers(pa.date32(), days.size, [None, pa.py_buffer(days)])
        return made if self._spell is None else self._spell(made)


def _working(day: int) -> int:
    """How many working days lie before ``day``, counted from the Monday before 1970."""
    weeks, rest = divmod(day + _MONDAY, 7)
    return weeks * 5 + min(rest, 5)


class Year(FieldType):
    """A year as a number."""

    name = "year"
    label = "Year"
    category = "time"
    description = "A year between two others."
    aliases: ClassVar[tuple[str, ...]] = ("calendar year", "random year", "yyyy")
    example = 2019
    dtype = pa.int64()
    span: ClassVar[int] = _YEARS
    """Years before the last one, where no first one is given."""

    class Options(OptionsModel):
        min: int | None = Field(
            None, ge=1, le=9999, description=f"First year; {_YEARS} before max if left out."
        )
        max: int | None = Field(None, ge=1, le=9999, description="Last year; that of now if left out.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if options.max is not None:
            try:
                self._span(options.max)
            except SpecError as error:
                compiler.faults.extend(error.faults)

    def prepare(self, env: Env) -> Span:
        return self._span(env.now.year if self.options.max is None else self.options.max)

    def _span(self, high: int) -> Span:
        low = max(1, high - self.span) if self.options.min is None else self.options.min
        if low > high:
            message = f"min ({low}) is later than max ({high})."
            raise SpecError([Fault(f"{self.field.path}.options.min", "min_above_max", message, "Swap them.")])
        return Span(low, high - low + 1, None)

    def fill(self, cells: Cells) -> pa.Array:
        return pa.array(cells.state.at(cells.bits()))

    def space(self) -> int:
        return 9999

    def space_in(self, state: Span) -> int:
        return state.size

    def fill_unique(self, cells: Cells) -> pa.Array:
        return pa.array(cells.permuted(cells.state.size).view(np.int64) + cells.state.low)

    def bounds(self, rows: int) -> tuple[int, int]:
        return 1, 9999

    @classmethod
    def capacity(cls) -> int:
        return _YEARS + 1


class Quarter(PoolType):
    """A quarter of a year."""

    name = "quarter"
    label = "Quarter"
    category = "time"
    description = "A quarter of a year, Q1 to Q4."
    aliases = ("quarter of year", "fiscal quarter", "calendar quarter")
    example = "Q3"

    class Options(OptionsModel):
        number: bool = Field(False, description="Writes 1 to 4 as a number.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(_NUMBERS if options.number else _NAMES)

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return (1, 4) if self.options.number else None

    @classmethod
    def capacity(cls) -> int:
        return 4


_NAMES = pa.array(["Q1", "Q2", "Q3", "Q4"])
_NUMBERS = pa.array([1, 2, 3, 4])
