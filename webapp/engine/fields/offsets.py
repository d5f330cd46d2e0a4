"""Times that lie a length of time from another one: from a field of the row, or from the row before."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices, Field

from webapp import limits
from webapp.engine import cells as cellular
from webapp.engine import dates, durations, moments, text
from webapp.engine.durations import DAY, Duration
from webapp.engine.errors import SpecError
from webapp.engine.fields.base import FieldType, OptionsModel, pooled
from webapp.engine.fields.between import Spelled, spelling
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Cells, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_MOMENT = pa.timestamp("us", "UTC")
_MILLISECOND, _SECOND = 1000, 1_000_000
_END = (durations.LAST_DAY + 1) * DAY - 1
_BEGIN = durations.FIRST_DAY * DAY
_UNITS = {
    unit: durations.parse(f"1 {unit}")
    for unit in ("seconds", "minutes", "hours", "days", "weeks", "months", "years")
}
_LEAST_MONTH = 28 * DAY
_POOL_SECONDS, _SMALL_BLOCK = 65_536, 256
_EXAMPLES = f"Write one of {durations.EXAMPLES}."


class _Lengths(FieldType):
    """Reads lengths of time among its options."""

    category = "time"

    def _length(self, option: str, compiler: Compiler) -> Duration | None:
        """The option as a length; None where it is left out, or after a fault."""
        given = getattr(self.options, option)
        if given is None:
            return None
        try:
            return durations.parse(given)
        except durations.DurationError as error:
            compiler.fault(self.field, f"options.{option}", "bad_duration", str(error), _EXAMPLES)
            return None


def _timestamps(micros: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(_MOMENT, micros.size, [None, pa.py_buffer(micros)])


class DateRelative(_Lengths):
    """A date or time some while before or after another one of the row, fixed or random."""

    name = "date_relative"
    label = "Relative date"
    description = "A date or time some while after or before another field's."
    aliases = ("date offset", "relative date time", "date after", "date before", "offset date")
    example = "2024-05-20"

    class Options(Spelled):
        field: str = Field(
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            validation_alias=AliasChoices("field", "source", "source_field"),
            description="Name of a field of type date, datetime or another one of this kind.",
        )
        offset: str | None = Field(
            None,
            max_length=limits.MAX_NAME_CHARS,
            description=f"How far from it, such as +3d or -2h; units as in {durations.EXAMPLES}. Else min and max.",
        )
        min: str | None = Field(
            None,
            max_length=limits.MAX_NAME_CHARS,
            description="Least random offset, such as 1d; 0 if left out.",
        )
        max: str | None = Field(
            None, max_length=limits.MAX_NAME_CHARS, description="Largest random offset, such as 14d."
        )
        unit: Literal["seconds", "minutes", "hours", "days", "weeks", "months", "years"] | None = Field(
            None,
            description="Random offsets are whole numbers of it: days after a date, seconds after a time, "
            "months where min or max name months.",
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.date32()
        self.needs = (options.field,)
        self._fixed, self._unit, self._low, self._high = Duration(0, 0), _UNITS["days"], 0, 0
        source = compiler.require(field, "options.field", options.field)
        if source is not None and source.dtype not in (pa.date32(), _MOMENT):
            message = f'"{options.field}" holds no dates or times.'
            hint = "Name a field of type date or datetime; without format, which makes texts."
            compiler.fault(field, "options.field", "wrong_type", message, hint)
        elif source is not None:
            self.dtype = source.dtype
        self._read_as, self._days = self.dtype, self.dtype == pa.date32()
        self._offsets(compiler)
        self._spell = spelling(field, options.format, compiler, not self._days)
        if options.format is not None:
            self.dtype = pa.string()
            self.max_length = dates.longest(options.format) if self._spell else None

    def _offsets(self, compiler: Compiler) -> None:
        options = self.options
        if options.offset is not None:
            for option in ("min", "max", "unit"):
                if getattr(options, option) is not None:
                    message = f"offset is a fixed one; {option} is for random ones."
                    compiler.fault(
                        self.field, f"options.{option}", "conflict", message, "Give one or the other."
                    )
            self._fixed = self._length("offset", compiler) or self._fixed
            self._check_clock("offset", self._fixed, compiler)
        elif options.max is None:
            compiler.fault(
                self.field, "options.offset", "required", "Give offset, or min and max.", _EXAMPLES
            )
        else:
            self._random(compiler)

    def _check_clock(self, option: str, length: Duration, compiler: Compiler) -> None:
        if self._days and length.micros % DAY:
            message = "A date has no time of day to move."
            compiler.fault(
                self.field, f"options.{option}", "not_for_this_type", message, "Use days, or a datetime."
            )

    def _random(self, compiler: Compiler) -> None:
        least, most = self._length("min", compiler) or Duration(0, 0), self._length("max", compiler)
        if most is None:
            return
        name = self.options.unit or ("days" if self._days else "seconds")
        if self.options.unit is None and (least.months or most.months):
            name = "months"
        self._unit = _UNITS[name]
        self._check_clock("unit", self._unit, compiler)
        ends = []
        for option, length in (("min", least), ("max", most)):
            size, other = (
                (length.months, length.micros) if self._unit.months else (length.micros, length.months)
            )
            count, rest = divmod(size, self._unit.months or self._unit.micros)
            if rest or other:
                message = f"{getattr(self.options, option)} is not a whole number of {name}."
                compiler.fault(self.field, f"options.{option}", "wrong_value", message, "Set unit to fit.")
            ends.append(count)
        self._low, self._high = ends
        if self._low > self._high:
            message = f"min ({self.options.min or 0}) is larger than max ({self.options.max})."
            compiler.fault(self.field, "options.min", "min_above_max", message, "Swap them.")

    def refuses(self, name: str, fixed: pa.Array) -> str:
        return f'"{self.field.name}" moves it as a date or time.' if fixed.type != self._read_as else ""

    def fill(self, cells: Cells) -> pa.Array:
        base = text.decode(cells.column(self.options.field))
        numbers = np.frombuffer(base.buffers()[1], np.int32 if self._days else np.int64)
        numbers = numbers[base.offset : base.offset + len(base)].astype(np.int64)
        if base.null_count:
            numbers[base.is_null().to_numpy(False)] = 0
        moved = self._moved(numbers, cells)
        made = pa.array(moved.astype(np.int32)).view(pa.date32()) if self._days else _timestamps(moved)
        if self._spell is not None:
            made = self._spell(made)
        return pc.if_else(base.is_valid(), made, pa.scalar(None, made.type)) if base.null_count else made

    def _moved(self, numbers: np.ndarray, cells: Cells) -> np.ndarray:
        """Days or microseconds after the offset; none leaves the years 1 to 9999."""
        months: int | np.ndarray = self._fixed.months
        micros: int | np.ndarray = self._fixed.micros
        if self.options.offset is None:
            drawn = cellular.between(cells.bits(), self._low, self._high)
            months, micros = drawn * self._unit.months, drawn * self._unit.micros
        days, clock = (numbers, 0) if self._days else np.divmod(numbers, DAY)
        if self._fixed.months or (self.options.offset is None and self._unit.months):
            days = durations.later(days, months)
        if self._days:
            return np.clip(days + micros // DAY, durations.FIRST_DAY, durations.LAST_DAY)
        return np.clip(days * DAY + (clock + micros), _BEGIN, _END)

    def unique_hint(self) -> str:
        return "Make the field it is counted from unique instead."


class TimeSeries(_Lengths):
    """start + interval x row + jitter: strictly rising, since the jitter stays below one interval."""

    name = "time_series"
    label = "Time series"
    description = "Times that rise from row to row, a fixed interval apart, with a little jitter if you like."
    aliases = ("timeseries", "time sequence", "date sequence", "sequential datetime", "rising timestamps")
    example = "2024-05-17T08:31:04Z"

    class Options(Spelled):
        start: str = Field(
            "today", max_length=limits.MAX_NAME_CHARS, description=f"Of row 0, such as {moments.EXAMPLES}."
        )
        interval: str = Field(
            "1h",
            max_length=limits.MAX_NAME_CHARS,
            description=f"From one row to the next: {durations.EXAMPLES}. Months go by the calendar.",
        )
        jitter: str | None = Field(
            None,
            max_length=limits.MAX_NAME_CHARS,
            description="Each row is later by a random time up to this, which is less than the interval.",
            examples=["10min"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._start = self._begin(compiler)
        self._step = self._length("interval", compiler) or Duration(0, _SECOND)
        jitter = self._length("jitter", compiler) or Duration(0, 0)
        least = self._step.micros + self._step.months * _LEAST_MONTH
        if (self._step.months and self._step.micros) or least <= 0:
            message = "An interval is larger than 0: months and years, or weeks and less."
            compiler.fault(field, "options.interval", "wrong_value", message, _EXAMPLES)
        elif jitter.months or not 0 <= jitter.micros < least:
            message = f"The jitter stays below the interval ({options.interval}), so that times rise."
            compiler.fault(field, "options.jitter", "wrong_value", message, "Lower it.")
        self._jitter = jitter.micros
        whole = not (self._step.micros % _SECOND or jitter.micros % _SECOND)
        self._grain = _SECOND if whole else _MILLISECOND
        self._spell = spelling(field, options.format, compiler, True)
        self.dtype = _MOMENT if options.format is None else pa.string()
        if self._spell is not None and options.format is not None:
            self.max_length = dates.longest(options.format)

    def _begin(self, compiler: Compiler) -> moments.Moment:
        try:
            return moments.parse(self.options.start)
        except moments.MomentError as error:
            hint = f"Write one of {moments.EXAMPLES}."
            compiler.fault(self.field, "options.start", "bad_date", str(error), hint)
            return moments.parse("now")

    def prepare(self, env: Env) -> int:
        try:
            return moments.seconds(self._start.resolve(env.now)) * _SECOND
        except moments.MomentError as error:
            raise SpecError(
                [Fault(f"{self.field.path}.options.start", "out_of_range", str(error), "")]
            ) from None

    def rows_in(self, state: int) -> int:
        left = _END - self._jitter - state
        if not self._step.months:
            return left // self._step.micros + 1
        # The last months of 9999 are left out: the day of the month might not be there.
        return max(0, left // DAY // 366 * 12 // self._step.months) + 1

    def space(self) -> int | None:
        apart = self.options.format is None or (
            self._grain == _SECOND and dates.tells_apart(self.options.format, day=True, clock=True)
        )
        return limits.MAX_INTEGER if apart else None

    def space_in(self, state: int) -> int | None:
        return self.rows_in(state)

    def unique_hint(self) -> str:
        return "The format leaves a part of the value out: write all of it."

    def fill(self, cells: Cells) -> pa.Array:
        row = cells.rows.view(np.int64)
        if self._step.months:
            day, clock = divmod(cells.state, DAY)
            days = durations.later(np.full(cells.n, day), row * self._step.months)
            micros = days * DAY + clock
        else:
            micros = row * self._step.micros + cells.state
        if self._jitter:
            late = cellular.below(cells.bits(), self._jitter // self._grain + 1).view(np.int64)
            micros += late * self._grain
        made = _timestamps(micros)
        return made if self._spell is None else self._spell(made)

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)


class Length(_Lengths):
    """How long something takes, in whole seconds."""

    name = "duration"
    label = "Duration"
    description = "A length of time between two others."
    aliases = ("time span", "timespan", "interval", "elapsed time", "length of time")
    example = "PT1H31M4S"

    class Options(OptionsModel):
        min: str = Field(
            "1min", max_length=limits.MAX_NAME_CHARS, description="Least, such as 30s or 1h 30min."
        )
        max: str = Field("8h", max_length=limits.MAX_NAME_CHARS, description="Largest, in the same way.")
        format: Literal["iso", "clock", "seconds"] = Field(
            "iso", description="iso: PT1H31M4S (ISO 8601). clock: 01:31:04. seconds: the number 5464."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        before = len(compiler.faults)
        self._low, self._high = (self._seconds(option, compiler) for option in ("min", "max"))
        if self._low > self._high and len(compiler.faults) == before:
            message = f"min ({options.min}) is larger than max ({options.max})."
            compiler.fault(field, "options.min", "min_above_max", message, "Swap them.")
        self._size = self._high - self._low + 1
        self.dtype = pa.int64() if options.format == "seconds" else pa.string()
        if options.format != "seconds":
            self.max_length = len(str(self._high // 3600)) + 9

    def _seconds(self, option: str, compiler: Compiler) -> int:
        length = self._length(option, compiler) or Duration(0, 0)
        if length.months or length.micros % _SECOND or length.micros < 0:
            message = "A duration is a whole number of seconds, without months and years."
            compiler.fault(self.field, f"options.{option}", "wrong_value", message, "Write 90s, 2h or 30d.")
        return length.micros // _SECOND

    def space(self) -> int:
        return self._size

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return (self._low, self._high) if self.options.format == "seconds" else None

    def fill(self, cells: Cells) -> pa.Array:
        return self._column(cellular.below(cells.bits(), self._size))

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self._column(cells.permuted(self._size))

    def _column(self, drawn: np.ndarray) -> pa.Array:
        how = self.options.format
        if how != "seconds" and drawn.size >= _SMALL_BLOCK and self._size <= _POOL_SECONDS:
            return pooled(_pool(self._low, self._size, how), drawn)
        seconds = drawn.view(np.int64) + self._low
        return pa.array(seconds) if how == "seconds" else _spelled(seconds, how)

    @classmethod
    def capacity(cls) -> int:
        return 8 * 3600 - 59


@lru_cache(maxsize=16)
def _pool(low: int, size: int, how: str) -> pa.Array:
    return _spelled(np.arange(low, low + size), how)


def _spelled(seconds: np.ndarray, how: str) -> pa.Array:
    minutes, second = np.divmod(seconds, 60)
    hours, minute = np.divmod(minutes, 60)
    hour = pa.array(hours).cast(pa.string())
    if how == "clock":
        return pc.binary_join_element_wise(
            pc.utf8_lpad(hour, 2, "0"), _MINUTES.take(pa.array(minute)), _MINUTES.take(pa.array(second)), ""
        )
    hour = pc.if_else(pa.array(hours == 0), "", pc.binary_join_element_wise(hour, "H", ""))
    # Nothing at all is written as no seconds.
    last = np.where(seconds == 0, 60, second)
    return pc.binary_join_element_wise(
        "PT", hour, _ISO_MINUTES.take(pa.array(minute)), _ISO_SECONDS.take(pa.array(last)), ""
    )


_MINUTES = pa.array([f":{number:02d}" for number in range(60)])
_ISO_MINUTES = pa.array([f"{number}M" if number else "" for number in range(60)])
_ISO_SECONDS = pa.array([f"{number}S" if number else "" for number in range(60)] + ["0S"])
