"""Dates and times: in a range, at an offset from another field or the previous row, and parts of the calendar.

Ranges have two ends, which may depend on the ``now`` of the request but never on a clock. Lengths of time are written
like 15min, 1h 30min, 3d, 2w, 1mo or 1y.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices, Field

from webapp import limits
from webapp.engine import dates, distributions, fixed_point, moments, text
from webapp.engine import random as engine_random
from webapp.engine.errors import SpecError
from webapp.engine.types.amounts import Amount
from webapp.engine.types.base import FieldType, OptionsModel, PoolType, dictionary_array
from webapp.errors import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


_PIECE = re.compile(r"\s*(\d{1,12})\s*([A-Za-z]+)\s*")
_SECOND = 1_000_000
DAY_MICROS = 86_400 * _SECOND
_MICROS = {
    **dict.fromkeys(("ms", "millisecond"), 1000),
    **dict.fromkeys(("s", "sec", "second"), _SECOND),
    **dict.fromkeys(("m", "min", "minute"), 60 * _SECOND),
    **dict.fromkeys(("h", "hr", "hour"), 3600 * _SECOND),
    **dict.fromkeys(("d", "day"), DAY_MICROS),
    **dict.fromkeys(("w", "week"), 7 * DAY_MICROS),
}
_MONTHS = {**dict.fromkeys(("mo", "M", "month"), 1), "quarter": 3, **dict.fromkeys(("y", "yr", "year"), 12)}
_LONGEST_YEARS = 1000
DURATION_EXAMPLES = "15min, 1h 30min, 3d, 2w, 1mo, 1y"

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31 in days since 1970."""


class DurationError(ValueError):
    """A length of time that cannot be read."""


@dataclass(frozen=True, slots=True)
class Duration:
    """A number of calendar months plus a number of microseconds."""

    months: int
    micros: int


@lru_cache(maxsize=1024)
def parse_duration(source: str) -> Duration:
    """Parse ``source``, which may begin with + or -. Raises `DurationError`."""
    text = source.strip()
    sign = -1 if text.startswith("-") else 1
    text = text[1:] if text[:1] in ("+", "-") else text
    months = micros = at = 0
    while at < len(text):
        match = _PIECE.match(text, at)
        unit = _unit(match.group(2)) if match else ""
        if match is None or not unit:
            raise DurationError(f'"{source}" is not a duration.')
        count = sign * int(match.group(1))
        months += count * _MONTHS.get(unit, 0)
        micros += count * _MICROS.get(unit, 0)
        at = match.end()
    if not text:
        raise DurationError("A duration must not be empty.")
    if abs(months) / 12 + abs(micros) / DAY_MICROS / 365 > _LONGEST_YEARS:
        raise DurationError(f"The duration is longer than {_LONGEST_YEARS} years.")
    return Duration(months, micros)


def _unit(name: str) -> str:
    """Return the key of a unit; empty if there is no such unit. M is a month, m a minute."""
    for key in (name, name.lower(), name.lower().removesuffix("s")):
        if key in _MICROS or key in _MONTHS:
            return key
    return ""


def add_months(days: np.ndarray, months: np.ndarray | int) -> np.ndarray:
    """``int64[n]`` of days since 1970, moved by months: a month after 31 January is the last day of February."""
    at = days.view("M8[D]")
    month = at.astype("M8[M]")
    day_of_month = (at - month.astype("M8[D]")).view(np.int64)
    target = month.view(np.int64) + months
    first = target.view("M8[M]").astype("M8[D]").view(np.int64)
    next_month = (target + 1).view("M8[M]").astype("M8[D]").view(np.int64)
    return first + np.minimum(day_of_month, next_month - first - 1)


def clip_to_calendar(days: np.ndarray) -> np.ndarray:
    """The days, none before the year 1 or beyond 9999."""
    return np.clip(days, FIRST_DAY, LAST_DAY)


DEFAULT_SPAN = "10y"
DAY_SECONDS = 86_400
_HALF_LIFE = 90
_WHEN = f"such as {moments.EXAMPLES}"
_DISTRIBUTION = (
    "Distribution of the values. With recent_bias, the number of values halves every "
    "halflife_days before max."
)


class RangeOptions(OptionsModel):
    """The range of the values."""

    min: str | None = Field(
        None,
        max_length=limits.MAX_NAME_CHARS,
        description=f"Earliest value, {_WHEN}. Default: 10 years before max.",
    )
    max: str | None = Field(
        None,
        max_length=limits.MAX_NAME_CHARS,
        description=("Latest value, in the same formats. Default: now."),
    )


class DistributionOptions(OptionsModel):
    """The distribution of values between min and max."""

    parameters: ClassVar[dict[str, dict[str, tuple[str, ...]]]] = {
        "distribution": {"recent_bias": ("halflife_days",)}
    }

    distribution: Literal["uniform", "normal", "recent_bias"] = Field("uniform", description=_DISTRIBUTION)
    halflife_days: Amount | None = Field(
        None, description=f"Half-life of recent_bias in days. Default: {_HALF_LIFE}."
    )


class FormatOptions(OptionsModel):
    """How a value is written."""

    format: str | None = Field(
        None,
        min_length=1,
        max_length=limits.MAX_AFFIX_CHARS,
        description="Format, as YYYY-MM-DD HH:mm:ss tokens or strftime's %Y-%m-%d. Default: ISO 8601.",
        examples=["DD.MM.YYYY", "%d %b %Y"],
    )


@dataclass(frozen=True, slots=True)
class Span:
    """A resolved range: ``size`` units (days or seconds since 1970) from ``low`` on, and how they are drawn."""

    low: int
    size: int
    draw: distributions.Sampler | None

    def at(self, random: np.ndarray) -> np.ndarray:
        """``int64[n]`` of units for random bits."""
        units = (
            engine_random.below(random, self.size).view(np.int64)
            if self.draw is None
            else self.draw.draw(random)
        )
        units += self.low
        return units


class RangeType(FieldType):
    """A day or a second between ``min`` and ``max``."""

    category = "time"
    unit: ClassVar[int]
    """Seconds."""
    options: RangeOptions

    def __init__(self, field: FieldSpec, options: RangeOptions, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        fault_count = len(compiler.faults)
        self._low, self._high = (self._parse_limit(name, compiler) for name in ("min", "max"))
        self._fixed_span: Span | None = None
        if isinstance(options, DistributionOptions) and options.halflife_days is not None:
            if options.distribution != "recent_bias":
                message = f"halflife_days is not available for the {options.distribution} distribution."
                hint = "It is available for recent_bias."
                compiler.fault(field, "options.halflife_days", "not_for_this_distribution", message, hint)
            elif options.halflife_days <= 0:
                message = "The half-life must be larger than 0."
                compiler.fault(field, "options.halflife_days", "wrong_value", message)
        # Only faults that do not depend on ``now``: `prepare` finds the others.
        is_absolute = self._low is not None and self._high is not None and self._low.at and self._high.at
        is_relative = not (self._low and self._low.at) and not (self._high and self._high.at)
        if (is_absolute or is_relative) and len(compiler.faults) == fault_count:
            try:
                spans = [self._resolve_span(now) for now in _SAMPLE_NOWS]
                self._fixed_span = spans[0] if is_absolute else None
            except SpecError as error:
                compiler.faults.extend(error.faults)

    def _parse_limit(self, name: str, compiler: Compiler) -> moments.Moment | None:
        source = getattr(self.options, name)
        if source is None:
            return None
        try:
            return moments.parse(source)
        except moments.MomentError as error:
            compiler.fault(
                self.field,
                f"options.{name}",
                "bad_date",
                str(error),
                f"Use a value such as {moments.EXAMPLES}.",
            )
            return _BROKEN

    def prepare(self, env: GenerationContext) -> Span:
        return self._fixed_span or self._resolve_span(env.now)

    def _resolve_span(self, now: datetime) -> Span:
        low, high = self._resolve_limits(now)
        if low > high:
            message = f"min ({self.options.min}) is later than max ({self.options.max or 'now'})."
            raise SpecError([Fault(f"{self.field.path}.options.min", "min_above_max", message, "Swap them.")])
        return Span(low, high - low + 1, self._distribution(high - low + 1))

    def _resolve_limits(self, now: datetime) -> tuple[int, int]:
        try:
            high = (self._high or _NOW).resolve(now)
            low = self._low.resolve(now) if self._low else moments.parse(f"-{DEFAULT_SPAN}").resolve(high)
        except moments.MomentError as error:
            raise SpecError(
                [Fault(f"{self.field.path}.options.min", "out_of_range", str(error), "")]
            ) from None
        last = moments.epoch_seconds(high)
        if self._high is not None and self._high.at is not None and self._high.midnight:
            last += DAY_SECONDS - 1  # a date without a time means the whole day
        return moments.epoch_seconds(low) // self.unit, last // self.unit

    def _distribution(self, size: int) -> distributions.Sampler | None:
        options = self.options
        if not isinstance(options, DistributionOptions) or options.distribution == "uniform" or size == 1:
            return None
        if options.distribution == "normal":
            return _centred(size)
        half_life = Fraction(options.halflife_days or _HALF_LIFE) * DAY_SECONDS / self.unit
        try:
            return _recent(half_life, size)
        except (distributions.TooNarrowError, distributions.TooWideError):
            return None  # within a billionth of its half-life the distribution is practically even

    def distinct_count(self) -> int | None:
        return limits.MAX_INTEGER if self._is_uniform and self._formats_differ() else None

    @property
    def _is_uniform(self) -> bool:
        """Whether each value is as likely as the others."""
        return not isinstance(self.options, DistributionOptions) or self.options.distribution == "uniform"

    def _formats_differ(self) -> bool:
        """Return whether all units are written differently."""
        return True

    def distinct_count_for(self, state: Span) -> int | None:
        return state.size

    def fill(self, context: ColumnContext) -> pa.Array:
        return self.column(context.state.at(context.bits()), context)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        span = context.state
        return self.column(context.permuted(span.size).view(np.int64) + span.low, context)

    @abstractmethod
    def column(self, units: np.ndarray, context: ColumnContext) -> pa.Array:
        """The column for ``int64[n]`` of days or seconds since 1970."""

    def unique_hint(self) -> str:
        if not self._is_uniform:
            return "Unique values are drawn evenly: remove the distribution, or remove unique."
        return "The format omits a part of the value: include all parts."


def format_function(
    field: FieldSpec, source: str | None, compiler: Compiler, has_time: bool
) -> Callable[[pa.Array], pa.Array] | None:
    """Return a function that formats dates or timestamps with the option ``format``; None if it is not set, or after a
    fault. ``has_time``: whether values have a time of day."""
    if source is None:
        return None
    try:
        formatter = dates.create_formatter(source)
        if not has_time and dates.has_time(source):
            message = "A date has no time of day."
            compiler.fault(field, "options.format", "not_for_this_type", message, "Use type datetime.")
        return formatter
    except dates.DateFormatError as error:
        compiler.fault(field, "options.format", "bad_format", str(error))
        return None


_NOW = moments.parse("now")
_BROKEN = moments.parse("now")
_SAMPLE_NOWS = (datetime(2024, 3, 31, tzinfo=UTC), datetime(2025, 7, 15, 12, tzinfo=UTC))


@lru_cache(maxsize=256)
def _centred(size: int) -> distributions.Sampler:
    """Most in the middle, the ends three standard deviations away."""
    return distributions.normal(Fraction(size - 1, 2), Fraction(size, 6)).within(0, size - 1)


class _ReversedDraw(distributions.Sampler):
    """Counts ``draw`` back from the end of ``size`` units."""

    def __init__(self, draw: distributions.Sampler, size: int) -> None:
        self._distribution, self._last = draw, size - 1

    def draw(self, random: np.ndarray) -> np.ndarray:
        return self._last - self._distribution.draw(random)


@lru_cache(maxsize=256)
def _recent(half_life: Fraction, size: int) -> distributions.Sampler:
    """The number of units back is geometric: each ``half_life`` of them halves it."""
    mean = half_life / fixed_point.ln(Fraction(2))
    return _ReversedDraw(distributions.exponential(mean, Fraction(-1, 2)).within(0, size - 1), size)


_POOL_DAYS = 65_536
_SMALL_POOL = 8192
_SMALL_BLOCK = 256


class Days(RangeType):
    """A day."""

    unit = DAY_SECONDS

    class Options(FormatOptions, RangeOptions):
        pass

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._formatter = format_function(field, options.format, compiler, has_time=False)
        self.dtype = pa.date32() if self._formatter is None else pa.string()
        if self._formatter is not None and options.format is not None:
            self.max_length = dates.max_length(options.format)

    def _formats_differ(self) -> bool:
        return self.options.format is None or dates.is_injective(self.options.format, day=True, clock=False)


class Date(Days):
    """A day, by any distribution."""

    name = "date"
    label = "Date"
    description = "A date between two dates."
    aliases = (
        "date between dates",
        "date this century",
        "date this decade",
        "date anytime",
        "date past",
        "date future",
        "date recent",
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

    class Options(DistributionOptions, Days.Options):
        pass

    options: Options

    def column(self, units: np.ndarray, context: ColumnContext) -> pa.Array:
        if self._formatter is None or self.options.format is None:
            return _date32(units)
        span = context.state
        if span.size > _POOL_DAYS or (context.n < _SMALL_BLOCK and span.size > _SMALL_POOL):
            return self._formatter(_date32(units))
        pool = _day_pool(span.low, span.size, self.options.format)
        return pa.DictionaryArray.from_arrays(pa.array((units - span.low).astype(np.int32)), pool, safe=False)


def _date32(days: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(pa.date32(), days.size, [None, pa.py_buffer(days.astype(np.int32))])


@lru_cache(maxsize=16)
def _day_pool(low: int, size: int, source: str) -> pa.Array:
    """Return the texts of ``size`` days from ``low`` on, shared by all plans and blocks with the same format."""
    return dates.format_days(low, low + size - 1, dates.parse(source))


class DateTime(RangeType):
    """A second, in UTC."""

    name = "datetime"
    label = "Date and time"
    description = "A date with a time of day, to the second, in UTC."
    aliases = (
        "date time ad",
        "date time between dates",
        "date time this century",
        "date time this decade",
        "passport dates",
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
        """Whether dates are before or after now."""

        past: bool | None = Field(
            None,
            description=(
                "true: dates up to now. false: dates from now on, up to max (default: in 10 years)."
            ),
        )

    class Options(DistributionOptions, FormatOptions, Past, RangeOptions):
        pass

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        conflicting = None if options.past is None else "max" if options.past else "min"
        if conflicting and getattr(options, conflicting) is not None:
            message = f"past and {conflicting} cannot be combined."
            compiler.fault(
                field, "options.past", "conflict", message, f"Set past or {conflicting}, not both."
            )
        self._formatter = format_function(field, options.format, compiler, has_time=True)
        self.dtype = pa.timestamp("us", "UTC") if self._formatter is None else pa.string()
        if self._formatter is not None and options.format is not None:
            self.max_length = dates.max_length(options.format)

    def _resolve_limits(self, now: datetime) -> tuple[int, int]:
        if self.options.past is not False:
            return super()._resolve_limits(now)
        high = self._high or moments.parse(f"+{DEFAULT_SPAN}")
        try:
            return moments.epoch_seconds(now), moments.epoch_seconds(high.resolve(now))
        except moments.MomentError as error:
            raise SpecError(
                [Fault(f"{self.field.path}.options.max", "out_of_range", str(error), "")]
            ) from None

    def _formats_differ(self) -> bool:
        return self.options.format is None or dates.is_injective(self.options.format, day=True, clock=True)

    def column(self, units: np.ndarray, context: ColumnContext) -> pa.Array:
        units *= dates.SECOND_MICROS
        values = pa.Array.from_buffers(pa.timestamp("us", "UTC"), units.size, [None, pa.py_buffer(units)])
        return values if self._formatter is None else self._formatter(values)


class Epoch(RangeType):
    """A point in time as a number."""

    name = "epoch"
    label = "Unix time"
    description = "Seconds or milliseconds since 1970-01-01T00:00:00Z."
    aliases = ("unix timestamp", "unix time", "epoch time", "unix", "epoch seconds", "posix time")
    example = 1715934664
    dtype = pa.int64()
    unit = 1

    class Scale(OptionsModel):
        "Unit: seconds or milliseconds."

        unit: Literal["seconds", "milliseconds"] = Field(
            "seconds", description=("Unit: seconds or milliseconds.")
        )

    class Options(Scale, RangeOptions):
        pass

    options: Options

    def _resolve_limits(self, now: datetime) -> tuple[int, int]:
        low, high = super()._resolve_limits(now)
        return (low * 1000, high * 1000 + 999) if self.options.unit == "milliseconds" else (low, high)

    def bounds(self, rows: int) -> tuple[int, int]:
        scale = 1000 if self.options.unit == "milliseconds" else 1
        return FIRST_DAY * DAY_SECONDS * scale, (LAST_DAY + 1) * DAY_SECONDS * scale

    def column(self, units: np.ndarray, context: ColumnContext) -> pa.Array:
        return pa.array(units)


class Time(FieldType):
    """A second of a day."""

    name = "time"
    label = "Time"
    category = "time"
    description = "A time of day, to the second."
    aliases = ("time object", "time of day", "clock", "clock time")
    example = "08:31:04"

    class Options(OptionsModel):
        format: str | None = Field(
            None,
            min_length=1,
            max_length=limits.MAX_AFFIX_CHARS,
            description="Format, as HH:mm:ss tokens or strftime's %H:%M:%S. Default: ISO 8601.",
            examples=["h:mm A", "%H.%M"],
        )
        min: str = Field(
            "00:00:00",
            max_length=limits.MAX_PAD_DIGITS,
            description=("Earliest time, such as 08:00 or 08:00:30."),
        )
        max: str = Field(
            "23:59:59", max_length=limits.MAX_PAD_DIGITS, description=("Latest time, in the same format.")
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        low, high = (self._parse_time(name, compiler) for name in ("min", "max"))
        if low > high:
            message = f"min ({options.min}) is later than max ({options.max})."
            compiler.fault(field, "options.min", "min_above_max", message, "Swap them.")
        self._low, self._size = low, high - low + 1
        self._parts: tuple[dates.FormatPart, ...] | None = None
        self.dtype = pa.time64("us") if options.format is None else pa.string()
        if options.format is not None:
            try:
                self._parts = dates.parse(options.format)
            except dates.DateFormatError as error:
                compiler.fault(field, "options.format", "bad_format", str(error))
                return
            if any(kind == "day" for kind, _ in self._parts):
                message = "A time of day has no date."
                compiler.fault(field, "options.format", "not_for_this_type", message, "Use type datetime.")
            self.max_length = dates.max_length(options.format)

    def _parse_time(self, name: str, compiler: Compiler) -> int:
        match = _CLOCK.fullmatch(getattr(self.options, name).strip())
        hour, minute, second = (int(part or 0) for part in match.groups()) if match else (0, 0, 0)
        if not match or hour > 23 or minute > 59 or second > 59:
            message = f'"{getattr(self.options, name)}" is not a time of day.'
            compiler.fault(
                self.field, f"options.{name}", "bad_time", message, "Use a value such as 08:00 or 08:00:30."
            )
            return 0
        return hour * 3600 + minute * 60 + second

    def distinct_count(self) -> int | None:
        is_unambiguous = self.options.format is None or dates.is_injective(
            self.options.format, day=False, clock=True
        )
        return self._size if is_unambiguous else None

    def unique_hint(self) -> str:
        return "The format omits a part of the value: include all parts."

    def fill(self, context: ColumnContext) -> pa.Array:
        return self._column(engine_random.below(context.bits(), self._size))

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self._column(context.permuted(self._size))

    def _column(self, seconds: np.ndarray) -> pa.Array:
        moment = seconds.view(np.int64)
        moment += self._low
        moment *= dates.SECOND_MICROS
        if self._parts is not None:
            return dates.format_timestamps(moment, self._parts)
        return pa.Array.from_buffers(pa.time64("us"), moment.size, [None, pa.py_buffer(moment)])


_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")


class _CalendarNameType(PoolType):
    """One of the names of a calendar."""

    category = "time"
    localised = True
    names: ClassVar[tuple[str, ...]]

    class Options(OptionsModel):
        abbr: bool = Field(False, description="Outputs the short form: the first three letters in English.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        width = "abbreviated" if options.abbr else "wide"
        locale = compiler.locale_of(field)
        local = None
        if locale is not None and not locale.startswith("en"):
            local = compiler.vocabulary.localized_names(f"{self.name}_{width}", locale)
        self.set_pool(_name_pool(self.names, options.abbr) if local is None else local)

    @classmethod
    def capacity(cls) -> int:
        return len(cls.names)


@lru_cache(maxsize=8)
def _name_pool(names: tuple[str, ...], short: bool) -> pa.Array:
    return pa.array([name[:3] if short else name for name in names])


class Month(_CalendarNameType):
    """Names of months in the language of the locale, as the Unicode CLDR has them."""

    name = "month"
    label = "Month"
    description = "The name of a month in the language of the locale."
    aliases = ("month name",)
    example = "October"
    names = dates.MONTHS


class Weekday(_CalendarNameType):
    """Names of days of the week in the language of the locale, as the Unicode CLDR has them."""

    name = "weekday"
    label = "Weekday"
    description = "The name of a day of the week in the language of the locale."
    aliases = ("day of week", "day name", "week day")
    example = "Wednesday"
    names = dates.WEEKDAYS


_MOMENT = pa.timestamp("us", "UTC")
_MILLISECOND, _SECOND = 1000, 1_000_000
_END = (LAST_DAY + 1) * DAY_MICROS - 1
_BEGIN = FIRST_DAY * DAY_MICROS
_UNITS = {
    unit: parse_duration(f"1 {unit}")
    for unit in ("seconds", "minutes", "hours", "days", "weeks", "months", "years")
}
_SHORTEST_MONTH = 28 * DAY_MICROS
_POOL_SECONDS, _SMALL_BLOCK = 65_536, 256
_EXAMPLES = f"Use a value such as {DURATION_EXAMPLES}."


class _DurationType(FieldType):
    """A type with durations among its options."""

    category = "time"

    def _duration(self, option: str, compiler: Compiler) -> Duration | None:
        """Return the option as a duration; None if it is not set, or after a fault."""
        value = getattr(self.options, option)
        if value is None:
            return None
        try:
            return parse_duration(value)
        except DurationError as error:
            compiler.fault(self.field, f"options.{option}", "bad_duration", str(error), _EXAMPLES)
            return None


def _timestamps(micros: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(_MOMENT, micros.size, [None, pa.py_buffer(micros)])


class DateRelative(_DurationType):
    """A date or time before or after another one of the row, by a fixed or random offset."""

    name = "date_relative"
    label = "Relative date"
    description = "A date or time before or after another field's value."
    aliases = ("date offset", "relative date time", "date after", "date before", "offset date")
    example = "2024-05-20"

    class Options(FormatOptions):
        field: str = Field(
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            validation_alias=AliasChoices("field", "source", "source_field"),
            description="Name of a field of type date, datetime or date_relative.",
        )
        offset: str | None = Field(
            None,
            max_length=limits.MAX_NAME_CHARS,
            description=f"Fixed offset, such as +3d or -2h; units as in {DURATION_EXAMPLES}. Or set min and max.",
        )
        min: str | None = Field(
            None,
            max_length=limits.MAX_NAME_CHARS,
            description="Minimum random offset, such as 1d. Default: 0.",
        )
        max: str | None = Field(
            None, max_length=limits.MAX_NAME_CHARS, description="Maximum random offset, such as 14d."
        )
        unit: Literal["seconds", "minutes", "hours", "days", "weeks", "months", "years"] | None = Field(
            None,
            description="Unit of random offsets. Default: days for a date, seconds for a time, months if "
            "min or max use months.",
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.date32()
        self.required_fields = (options.field,)
        self._fixed_offset, self._unit, self._low, self._high = Duration(0, 0), _UNITS["days"], 0, 0
        source = compiler.require_column(field, "options.field", options.field)
        if source is not None and source.dtype not in (pa.date32(), _MOMENT):
            message = f'"{options.field}" does not contain dates or times.'
            hint = "Choose a field of type date or datetime without format, because format creates texts."
            compiler.fault(field, "options.field", "wrong_type", message, hint)
        elif source is not None:
            self.dtype = source.dtype
        self._source_type, self._is_date = self.dtype, self.dtype == pa.date32()
        if options.offset is not None:
            for option in ("min", "max", "unit"):
                if getattr(options, option) is not None:
                    message = f"{option} is for random offsets and cannot be combined with offset."
                    compiler.fault(field, f"options.{option}", "conflict", message, "Set one or the other.")
            self._fixed_offset = self._duration("offset", compiler) or self._fixed_offset
            self._check_clock("offset", self._fixed_offset, compiler)
        elif options.max is None:
            compiler.fault(field, "options.offset", "required", "Set offset, or min and max.", _EXAMPLES)
        else:
            self._set_random_offset(compiler)
        self._formatter = format_function(field, options.format, compiler, not self._is_date)
        if options.format is not None:
            self.dtype = pa.string()
            self.max_length = dates.max_length(options.format) if self._formatter else None

    def _check_clock(self, option: str, length: Duration, compiler: Compiler) -> None:
        if self._is_date and length.micros % DAY_MICROS:
            message = "A date cannot be shifted by a time of day."
            compiler.fault(
                self.field,
                f"options.{option}",
                "not_for_this_type",
                message,
                "Use days, or a field of type datetime.",
            )

    def _set_random_offset(self, compiler: Compiler) -> None:
        minimum, maximum = self._duration("min", compiler) or Duration(0, 0), self._duration("max", compiler)
        if maximum is None:
            return
        name = self.options.unit or ("days" if self._is_date else "seconds")
        if self.options.unit is None and (minimum.months or maximum.months):
            name = "months"
        self._unit = _UNITS[name]
        self._check_clock("unit", self._unit, compiler)
        counts = []
        for option, length in (("min", minimum), ("max", maximum)):
            size, remainder = (
                (length.months, length.micros) if self._unit.months else (length.micros, length.months)
            )
            count, rest = divmod(size, self._unit.months or self._unit.micros)
            if rest or remainder:
                message = f"{getattr(self.options, option)} is not a whole number of {name}."
                compiler.fault(
                    self.field, f"options.{option}", "wrong_value", message, "Set unit to a smaller unit."
                )
            counts.append(count)
        self._low, self._high = counts
        if self._low > self._high:
            message = f"min ({self.options.min or 0}) is larger than max ({self.options.max})."
            compiler.fault(self.field, "options.min", "min_above_max", message, "Swap them.")

    def override_error(self, name: str, fixed: pa.Array) -> str:
        return (
            f'"{self.field.name}" uses this field as a date or time.'
            if fixed.type != self._source_type
            else ""
        )

    def fill(self, context: ColumnContext) -> pa.Array:
        base = text.decode_dictionary(context.column(self.options.field))
        numbers = np.frombuffer(base.buffers()[1], np.int32 if self._is_date else np.int64)
        numbers = numbers[base.offset : base.offset + len(base)].astype(np.int64)
        if base.null_count:
            numbers[base.is_null().to_numpy(False)] = 0
        months: int | np.ndarray = self._fixed_offset.months
        micros: int | np.ndarray = self._fixed_offset.micros
        if self.options.offset is None:
            offsets = engine_random.between(context.bits(), self._low, self._high)
            months, micros = offsets * self._unit.months, offsets * self._unit.micros
        days, clock = (numbers, 0) if self._is_date else np.divmod(numbers, DAY_MICROS)
        if self._fixed_offset.months or (self.options.offset is None and self._unit.months):
            days = add_months(days, months)
        # Nothing leaves the years 1 to 9999.
        if self._is_date:
            moved = np.clip(days + micros // DAY_MICROS, FIRST_DAY, LAST_DAY)
            result = pa.array(moved.astype(np.int32)).view(pa.date32())
        else:
            result = _timestamps(np.clip(days * DAY_MICROS + (clock + micros), _BEGIN, _END))
        if self._formatter is not None:
            result = self._formatter(result)
        return (
            pc.if_else(base.is_valid(), result, pa.scalar(None, result.type)) if base.null_count else result
        )

    def unique_hint(self) -> str:
        return "Make the field that it depends on unique instead."


class TimeSeries(_DurationType):
    """start + interval x row + jitter: strictly rising, since the jitter stays below one interval."""

    name = "time_series"
    label = "Time series"
    description = "Increasing timestamps at a fixed interval, with optional jitter."
    aliases = ("timeseries", "time sequence", "date sequence", "sequential datetime", "rising timestamps")
    example = "2024-05-17T08:31:04Z"

    class Options(FormatOptions):
        start: str = Field(
            "today",
            max_length=limits.MAX_NAME_CHARS,
            description=f"Timestamp of row 0, such as {moments.EXAMPLES}.",
        )
        interval: str = Field(
            "1h",
            max_length=limits.MAX_NAME_CHARS,
            description=f"Interval between rows: {DURATION_EXAMPLES}. Months are calendar months.",
        )
        jitter: str | None = Field(
            None,
            max_length=limits.MAX_NAME_CHARS,
            description="Maximum random delay of each row. Must be less than the interval.",
            examples=["10min"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        try:
            self._start = moments.parse(options.start)
        except moments.MomentError as error:
            hint = f"Use a value such as {moments.EXAMPLES}."
            compiler.fault(field, "options.start", "bad_date", str(error), hint)
            self._start = moments.parse("now")
        self._step = self._duration("interval", compiler) or Duration(0, _SECOND)
        jitter = self._duration("jitter", compiler) or Duration(0, 0)
        shortest = self._step.micros + self._step.months * _SHORTEST_MONTH
        if (self._step.months and self._step.micros) or shortest <= 0:
            message = "The interval must be larger than 0, and consist either of months and years or of smaller units."
            compiler.fault(field, "options.interval", "wrong_value", message, _EXAMPLES)
        elif jitter.months or not 0 <= jitter.micros < shortest:
            message = (
                f"The jitter must be less than the interval ({options.interval}), so that times increase."
            )
            compiler.fault(field, "options.jitter", "wrong_value", message, "Use a smaller jitter.")
        self._jitter = jitter.micros
        whole_seconds = not (self._step.micros % _SECOND or jitter.micros % _SECOND)
        self._resolution = _SECOND if whole_seconds else _MILLISECOND
        self._formatter = format_function(field, options.format, compiler, True)
        self.dtype = _MOMENT if options.format is None else pa.string()
        if self._formatter is not None and options.format is not None:
            self.max_length = dates.max_length(options.format)

    def prepare(self, env: GenerationContext) -> int:
        try:
            return moments.epoch_seconds(self._start.resolve(env.now)) * _SECOND
        except moments.MomentError as error:
            raise SpecError(
                [Fault(f"{self.field.path}.options.start", "out_of_range", str(error), "")]
            ) from None

    def available_rows(self, state: int) -> int:
        available = _END - self._jitter - state
        if not self._step.months:
            return available // self._step.micros + 1
        # The last months of 9999 are left out: the day of the month might not be there.
        return max(0, available // DAY_MICROS // 366 * 12 // self._step.months) + 1

    def distinct_count(self) -> int | None:
        is_unambiguous = self.options.format is None or (
            self._resolution == _SECOND and dates.is_injective(self.options.format, day=True, clock=True)
        )
        return limits.MAX_INTEGER if is_unambiguous else None

    def distinct_count_for(self, state: int) -> int | None:
        return self.available_rows(state)

    def unique_hint(self) -> str:
        return "The format omits a part of the value: include all parts."

    def fill(self, context: ColumnContext) -> pa.Array:
        row = context.rows.view(np.int64)
        if self._step.months:
            day, clock = divmod(context.state, DAY_MICROS)
            days = add_months(np.full(context.n, day), row * self._step.months)
            micros = days * DAY_MICROS + clock
        else:
            micros = row * self._step.micros + context.state
        if self._jitter:
            delay = engine_random.below(context.bits(), self._jitter // self._resolution + 1).view(np.int64)
            micros += delay * self._resolution
        column = _timestamps(micros)
        return column if self._formatter is None else self._formatter(column)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.fill(context)


class Length(_DurationType):
    """A duration in whole seconds."""

    name = "duration"
    label = "Duration"
    description = "A duration in a range."
    aliases = ("time delta", "time span", "timespan", "interval", "elapsed time", "length of time")
    example = "PT1H31M4S"

    class Options(OptionsModel):
        min: str = Field(
            "1min", max_length=limits.MAX_NAME_CHARS, description="Minimum, such as 30s or 1h 30min."
        )
        max: str = Field("8h", max_length=limits.MAX_NAME_CHARS, description="Maximum, in the same format.")
        format: Literal["iso", "clock", "seconds"] = Field(
            "iso", description="iso: PT1H31M4S (ISO 8601). clock: 01:31:04. seconds: the number 5464."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        fault_count = len(compiler.faults)
        self._low, self._high = (self._whole_seconds(option, compiler) for option in ("min", "max"))
        if self._low > self._high and len(compiler.faults) == fault_count:
            message = f"min ({options.min}) is larger than max ({options.max})."
            compiler.fault(field, "options.min", "min_above_max", message, "Swap them.")
        self._size = self._high - self._low + 1
        self.dtype = pa.int64() if options.format == "seconds" else pa.string()
        if options.format != "seconds":
            self.max_length = len(str(self._high // 3600)) + 9

    def _whole_seconds(self, option: str, compiler: Compiler) -> int:
        length = self._duration(option, compiler) or Duration(0, 0)
        if length.months or length.micros % _SECOND or length.micros < 0:
            message = "A duration must be a whole number of seconds, without months and years."
            compiler.fault(
                self.field, f"options.{option}", "wrong_value", message, "Use a value such as 90s, 2h or 30d."
            )
        return length.micros // _SECOND

    def distinct_count(self) -> int:
        return self._size

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return (self._low, self._high) if self.options.format == "seconds" else None

    def fill(self, context: ColumnContext) -> pa.Array:
        return self._column(engine_random.below(context.bits(), self._size))

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self._column(context.permuted(self._size))

    def _column(self, numbers: np.ndarray) -> pa.Array:
        format_ = self.options.format
        if format_ != "seconds" and numbers.size >= _SMALL_BLOCK and self._size <= _POOL_SECONDS:
            return dictionary_array(_duration_pool(self._low, self._size, format_), numbers)
        seconds = numbers.view(np.int64) + self._low
        return pa.array(seconds) if format_ == "seconds" else _duration_texts(seconds, format_)

    @classmethod
    def capacity(cls) -> int:
        return 8 * 3600 - 59


@lru_cache(maxsize=16)
def _duration_pool(low: int, size: int, format_: str) -> pa.Array:
    return _duration_texts(np.arange(low, low + size), format_)


def _duration_texts(seconds: np.ndarray, format_: str) -> pa.Array:
    minutes, second = np.divmod(seconds, 60)
    hours, minute = np.divmod(minutes, 60)
    hour = pa.array(hours).cast(pa.string())
    if format_ == "clock":
        return pc.binary_join_element_wise(
            pc.utf8_lpad(hour, 2, "0"), _MINUTES.take(pa.array(minute)), _MINUTES.take(pa.array(second)), ""
        )
    hour = pc.if_else(pa.array(hours == 0), "", pc.binary_join_element_wise(hour, "H", ""))
    # A duration of zero is written as 0S.
    last = np.where(seconds == 0, 60, second)
    return pc.binary_join_element_wise(
        "PT", hour, _ISO_MINUTES.take(pa.array(minute)), _ISO_SECONDS.take(pa.array(last)), ""
    )


_MINUTES = pa.array([f":{number:02d}" for number in range(60)])
_ISO_MINUTES = pa.array([f"{number}M" if number else "" for number in range(60)])
_ISO_SECONDS = pa.array([f"{number}S" if number else "" for number in range(60)] + ["0S"])


_MONDAY = 3  # 1970-01-01 was a Thursday
_YEARS = 50


class BusinessDay(Days):
    """A day from Monday to Friday. The span counts working days, so that each is as likely as the others."""

    name = "business_day"
    label = "Business day"
    description = "A day from Monday to Friday between two dates."
    aliases = ("working day", "workday", "business date", "weekday date")
    example = "2024-05-17"

    def _resolve_span(self, now: datetime) -> Span:
        span = super()._resolve_span(now)
        low, high = _working_days_before(span.low), _working_days_before(span.low + span.size)
        if low == high:
            message = "There is no day from Monday to Friday between min and max."
            raise SpecError(
                [Fault(f"{self.field.path}.options.min", "too_narrow", message, "Widen min and max.")]
            )
        return Span(low, high - low, None)

    def column(self, units: np.ndarray, context: ColumnContext) -> pa.Array:
        weeks, day = np.divmod(units, 5)
        days = (weeks * 7 + day - _MONDAY).astype(np.int32)
        values = pa.Array.from_buffers(pa.date32(), days.size, [None, pa.py_buffer(days)])
        return values if self._formatter is None else self._formatter(values)


def _working_days_before(day: int) -> int:
    """Return the number of working days before ``day``, counted from the Monday before 1970."""
    weeks, rest = divmod(day + _MONDAY, 7)
    return weeks * 5 + min(rest, 5)


class Year(FieldType):
    """A year as a number."""

    name = "year"
    label = "Year"
    category = "time"
    description = "A year in a range."
    aliases: ClassVar[tuple[str, ...]] = ("calendar year", "random year", "yyyy")
    example = 2019
    dtype = pa.int64()
    span: ClassVar[int] = _YEARS
    """Years before the last one, if there is no first one."""

    class Options(OptionsModel):
        min: int | None = Field(None, ge=1, le=9999, description=f"First year. Default: max - {_YEARS}.")
        max: int | None = Field(None, ge=1, le=9999, description="Last year. Default: the year of now.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if options.max is not None:
            try:
                self._span(options.max)
            except SpecError as error:
                compiler.faults.extend(error.faults)

    def prepare(self, env: GenerationContext) -> Span:
        return self._span(env.now.year if self.options.max is None else self.options.max)

    def _span(self, high: int) -> Span:
        low = max(1, high - self.span) if self.options.min is None else self.options.min
        if low > high:
            message = f"min ({low}) is later than max ({high})."
            raise SpecError([Fault(f"{self.field.path}.options.min", "min_above_max", message, "Swap them.")])
        return Span(low, high - low + 1, None)

    def fill(self, context: ColumnContext) -> pa.Array:
        return pa.array(context.state.at(context.bits()))

    def distinct_count(self) -> int:
        return 9999

    def distinct_count_for(self, state: Span) -> int:
        return state.size

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return pa.array(context.permuted(context.state.size).view(np.int64) + context.state.low)

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
        number: bool = Field(False, description="Outputs a number from 1 to 4.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.set_pool(_NUMBERS if options.number else _NAMES)

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return (1, 4) if self.options.number else None

    @classmethod
    def capacity(cls) -> int:
        return 4


_NAMES = pa.array(["Q1", "Q2", "Q3", "Q4"])
_NUMBERS = pa.array([1, 2, 3, 4])
