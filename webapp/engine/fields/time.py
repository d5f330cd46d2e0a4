"""Dates and times between two points, which may hang on the ``now`` of the request but never on a clock."""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp import limits
from webapp.engine import cells as cellular
from webapp.engine import dates, durations, moments
from webapp.engine.errors import SpecError
from webapp.engine.fields.base import FieldType, OptionsModel, PoolType
from webapp.engine.fields.between import DAY_SECONDS, DEFAULT_SPAN, Between, Lying, Point, Spelled, spelling
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_POOL_DAYS = 65_536
_SMALL_POOL = 8192
_SMALL_BLOCK = 256


class Days(Point):
    """A day."""

    unit = DAY_SECONDS

    class Options(Spelled, Between):
        pass

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._spell = spelling(field, options.format, compiler, clock=False)
        self.dtype = pa.date32() if self._spell is None else pa.string()
        if self._spell is not None and options.format is not None:
            self.max_length = dates.longest(options.format)

    def _tells_apart(self) -> bool:
        return self.options.format is None or dates.tells_apart(self.options.format, day=True, clock=False)


class Date(Days):
    """A day, by any distribution."""

    name = "date"
    label = "Date"
    description = "A day between two dates."
    aliases = (
        "day",
        "date between",
        "random date",
        "calendar date",
        "past date",
        "date object",
        "date this year",
        "date this month",
        "future date",
    )
    example = "2024-05-17"

    class Options(Lying, Days.Options):
        pass

    options: Options

    def column(self, units: np.ndarray, cells: Cells) -> pa.Array:
        if self._spell is None or self.options.format is None:
            return _date32(units)
        span = cells.state
        if span.size > _POOL_DAYS or (cells.n < _SMALL_BLOCK and span.size > _SMALL_POOL):
            return self._spell(_date32(units))
        pool = _day_pool(span.low, span.size, self.options.format)
        return pa.DictionaryArray.from_arrays(pa.array((units - span.low).astype(np.int32)), pool, safe=False)


def _date32(days: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(pa.date32(), days.size, [None, pa.py_buffer(days.astype(np.int32))])


@lru_cache(maxsize=16)
def _day_pool(low: int, size: int, source: str) -> pa.Array:
    """The texts of ``size`` days from ``low`` on: one pool for every plan and block that writes them so."""
    return dates.day_table(low, low + size - 1, dates.parse(source))


class DateTime(Point):
    """A second, in UTC."""

    name = "datetime"
    label = "Date and time"
    description = "A date with a time of day, to the second, in UTC."
    aliases = (
        "timestamp",
        "date time",
        "datetime between",
        "timestamptz",
        "datetimeoffset",
        "iso datetime",
        "instant",
        "date time this month",
        "date time this year",
        "future datetime",
        "past datetime",
        "iso8601",
        "created at",
        "updated at",
        "modified at",
        "last login",
    )
    example = "2024-05-17T08:31:04Z"
    unit = 1

    class Past(OptionsModel):
        """Which side of now."""

        past: bool | None = Field(
            None, description="true: up to now; false: from now on, 10 years ahead if max is not given."
        )

    class Options(Lying, Spelled, Past, Between):
        pass

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        fixed = None if options.past is None else "max" if options.past else "min"
        if fixed and getattr(options, fixed) is not None:
            message = f"past says what {fixed} is."
            compiler.fault(field, "options.past", "conflict", message, f"Give past or {fixed}, not both.")
        self._spell = spelling(field, options.format, compiler, clock=True)
        self.dtype = pa.timestamp("us", "UTC") if self._spell is None else pa.string()
        if self._spell is not None and options.format is not None:
            self.max_length = dates.longest(options.format)

    def _ends(self, now: datetime) -> tuple[int, int]:
        if self.options.past is not False:
            return super()._ends(now)
        ahead = self._high or moments.parse(f"+{DEFAULT_SPAN}")
        try:
            return moments.seconds(now), moments.seconds(ahead.resolve(now))
        except moments.MomentError as error:
            raise SpecError(
                [Fault(f"{self.field.path}.options.max", "out_of_range", str(error), "")]
            ) from None

    def _tells_apart(self) -> bool:
        return self.options.format is None or dates.tells_apart(self.options.format, day=True, clock=True)

    def column(self, units: np.ndarray, cells: Cells) -> pa.Array:
        units *= dates.SECOND
        made = pa.Array.from_buffers(pa.timestamp("us", "UTC"), units.size, [None, pa.py_buffer(units)])
        return made if self._spell is None else self._spell(made)


class Epoch(Point):
    """A point in time as a number."""

    name = "epoch"
    label = "Unix time"
    description = "Seconds or milliseconds since 1970-01-01T00:00:00Z."
    aliases = ("unix timestamp", "unix time", "epoch time", "unix", "epoch seconds", "posix time")
    example = 1715934664
    dtype = pa.int64()
    unit = 1

    class Scale(OptionsModel):
        """What is counted."""

        unit: Literal["seconds", "milliseconds"] = Field("seconds", description="What is counted.")

    class Options(Scale, Between):
        pass

    options: Options

    def _ends(self, now: datetime) -> tuple[int, int]:
        low, high = super()._ends(now)
        return (low * 1000, high * 1000 + 999) if self.options.unit == "milliseconds" else (low, high)

    def bounds(self, rows: int) -> tuple[int, int]:
        scale = 1000 if self.options.unit == "milliseconds" else 1
        return durations.FIRST_DAY * DAY_SECONDS * scale, (durations.LAST_DAY + 1) * DAY_SECONDS * scale

    def column(self, units: np.ndarray, cells: Cells) -> pa.Array:
        return pa.array(units)


class Time(FieldType):
    """A second of a day."""

    name = "time"
    label = "Time"
    category = "time"
    description = "A time of day, to the second."
    aliases = ("time of day", "clock", "clock time")
    example = "08:31:04"

    class Options(OptionsModel):
        format: str | None = Field(
            None,
            min_length=1,
            max_length=limits.MAX_AFFIX_CHARS,
            description="How it is written, in HH:mm:ss tokens or strftime's %H:%M:%S; ISO 8601 if left out.",
            examples=["h:mm A", "%H.%M"],
        )
        min: str = Field(
            "00:00:00", max_length=limits.MAX_PAD_DIGITS, description="Earliest, such as 08:00 or 08:00:30."
        )
        max: str = Field("23:59:59", max_length=limits.MAX_PAD_DIGITS, description="Latest, in the same way.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        low, high = (self._second(name, compiler) for name in ("min", "max"))
        if low > high:
            message = f"min ({options.min}) is later than max ({options.max})."
            compiler.fault(field, "options.min", "min_above_max", message, "Swap them.")
        self._low, self._size = low, high - low + 1
        self._parts = None if options.format is None else self._checked(options.format, compiler)
        self.dtype = pa.time64("us") if options.format is None else pa.string()
        if self._parts is not None and options.format is not None:
            self.max_length = dates.longest(options.format)

    def _second(self, name: str, compiler: Compiler) -> int:
        match = _CLOCK.fullmatch(getattr(self.options, name).strip())
        hour, minute, second = (int(part or 0) for part in match.groups()) if match else (0, 0, 0)
        if not match or hour > 23 or minute > 59 or second > 59:
            message = f'"{getattr(self.options, name)}" is not a time of day.'
            compiler.fault(self.field, f"options.{name}", "bad_time", message, "Write 08:00 or 08:00:30.")
            return 0
        return hour * 3600 + minute * 60 + second

    def _checked(self, source: str, compiler: Compiler) -> tuple[dates.Part, ...] | None:
        try:
            parts = dates.parse(source)
        except dates.DateFormatError as error:
            compiler.fault(self.field, "options.format", "bad_format", str(error))
            return None
        if any(kind == "day" for kind, _ in parts):
            message = "A time of day has no date to write."
            compiler.fault(self.field, "options.format", "not_for_this_type", message, "Use type datetime.")
        return parts

    def space(self) -> int | None:
        apart = self.options.format is None or dates.tells_apart(self.options.format, day=False, clock=True)
        return self._size if apart else None

    def unique_hint(self) -> str:
        return "The format leaves a part of the value out: write all of it."

    def fill(self, cells: Cells) -> pa.Array:
        return self._column(cellular.below(cells.bits(), self._size))

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self._column(cells.permuted(self._size))

    def _column(self, seconds: np.ndarray) -> pa.Array:
        moment = seconds.view(np.int64)
        moment += self._low
        moment *= dates.SECOND
        if self._parts is not None:
            return dates.spell_moments(moment, self._parts)
        return pa.Array.from_buffers(pa.time64("us"), moment.size, [None, pa.py_buffer(moment)])


_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")


class _Named(PoolType):
    """One of the names of a calendar."""

    category = "time"
    names: ClassVar[tuple[str, ...]]

    class Options(OptionsModel):
        abbr: bool = Field(False, description="Writes the first three letters.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.use(_names(self.names, options.abbr))

    @classmethod
    def capacity(cls) -> int:
        return len(cls.names)


@lru_cache(maxsize=8)
def _names(names: tuple[str, ...], short: bool) -> pa.Array:
    return pa.array([name[:3] if short else name for name in names])


class Month(_Named):
    """English names of months."""

    name = "month"
    label = "Month"
    description = "The name of a month, in English."
    aliases = ("month name",)
    example = "October"
    names = dates.MONTHS


class Weekday(_Named):
    """English names of days of the week."""

    name = "weekday"
    label = "Weekday"
    description = "The name of a day of the week, in English."
    aliases = ("day of week", "day name", "week day")
    example = "Wednesday"
    names = dates.WEEKDAYS
