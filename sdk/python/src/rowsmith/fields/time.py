"""Fields of the category time, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class AmPmField(Field):
    """The half of a day: AM or PM."""

    type_name = "am_pm"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class BusinessDayField(Field):
    """A day from Monday to Friday between two dates.

    min: Earliest value, such as 2024-01-31, 2024-01-31T08:00:00Z, now, today, -30d, +2w, -1y. Default: 10
        years before max.
    max: Latest value, in the same formats. Default: now.
    format: Format, as YYYY-MM-DD HH:mm:ss tokens or strftime's %Y-%m-%d. Default: ISO 8601.
    """

    type_name = "business_day"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: str | None = UNSET,
        max: str | None = UNSET,
        format: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max, "format": format})


class CenturyField(Field):
    """A century in Roman numerals."""

    type_name = "century"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DateField(Field):
    """A date between two dates.

    min: Earliest value, such as 2024-01-31, 2024-01-31T08:00:00Z, now, today, -30d, +2w, -1y. Default: 10
        years before max.
    max: Latest value, in the same formats. Default: now.
    format: Format, as YYYY-MM-DD HH:mm:ss tokens or strftime's %Y-%m-%d. Default: ISO 8601.
    distribution: Distribution of the values. With recent_bias, the number of values halves every
        halflife_days before max.
    halflife_days: Half-life of recent_bias in days. Default: 90.
    """

    type_name = "date"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: str | None = UNSET,
        max: str | None = UNSET,
        format: str | None = UNSET,
        distribution: Literal["uniform", "normal", "recent_bias"] = UNSET,
        halflife_days: float | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {
                "min": min,
                "max": max,
                "format": format,
                "distribution": distribution,
                "halflife_days": halflife_days,
            },
        )


class DateRelativeField(Field):
    """A date or time before or after another field's value.

    format: Format, as YYYY-MM-DD HH:mm:ss tokens or strftime's %Y-%m-%d. Default: ISO 8601.
    field: Name of a field of type date, datetime or date_relative.
    offset: Fixed offset, such as +3d or -2h; units as in 15min, 1h 30min, 3d, 2w, 1mo, 1y. Or set min and
        max.
    min: Minimum random offset, such as 1d. Default: 0.
    max: Maximum random offset, such as 14d.
    unit: Unit of random offsets. Default: days for a date, seconds for a time, months if min or max use
        months.
    """

    type_name = "date_relative"

    def __init__(
        self,
        name: str,
        field: str,
        *,
        options: Mapping[str, Any] | None = None,
        format: str | None = UNSET,
        offset: str | None = UNSET,
        min: str | None = UNSET,
        max: str | None = UNSET,
        unit: Literal["seconds", "minutes", "hours", "days", "weeks", "months", "years"] | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {"format": format, "field": field, "offset": offset, "min": min, "max": max, "unit": unit},
        )


class DatetimeField(Field):
    """A date with a time of day, to the second, in UTC.

    min: Earliest value, such as 2024-01-31, 2024-01-31T08:00:00Z, now, today, -30d, +2w, -1y. Default: 10
        years before max.
    max: Latest value, in the same formats. Default: now.
    past: true: dates up to now. false: dates from now on, up to max (default: in 10 years).
    format: Format, as YYYY-MM-DD HH:mm:ss tokens or strftime's %Y-%m-%d. Default: ISO 8601.
    distribution: Distribution of the values. With recent_bias, the number of values halves every
        halflife_days before max.
    halflife_days: Half-life of recent_bias in days. Default: 90.
    """

    type_name = "datetime"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: str | None = UNSET,
        max: str | None = UNSET,
        past: bool | None = UNSET,
        format: str | None = UNSET,
        distribution: Literal["uniform", "normal", "recent_bias"] = UNSET,
        halflife_days: float | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {
                "min": min,
                "max": max,
                "past": past,
                "format": format,
                "distribution": distribution,
                "halflife_days": halflife_days,
            },
        )


class DayOfMonthField(Field):
    """A day of the month with two digits."""

    type_name = "day_of_month"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DurationField(Field):
    """A duration in a range.

    min: Minimum, such as 30s or 1h 30min.
    max: Maximum, in the same format.
    format: iso: PT1H31M4S (ISO 8601). clock: 01:31:04. seconds: the number 5464.
    """

    type_name = "duration"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: str = UNSET,
        max: str = UNSET,
        format: Literal["iso", "clock", "seconds"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max, "format": format})


class EpochField(Field):
    """Seconds or milliseconds since 1970-01-01T00:00:00Z.

    min: Earliest value, such as 2024-01-31, 2024-01-31T08:00:00Z, now, today, -30d, +2w, -1y. Default: 10
        years before max.
    max: Latest value, in the same formats. Default: now.
    unit: Unit: seconds or milliseconds.
    """

    type_name = "epoch"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: str | None = UNSET,
        max: str | None = UNSET,
        unit: Literal["seconds", "milliseconds"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max, "unit": unit})


class MonthField(Field):
    """The name of a month in the language of the locale.

    abbr: Outputs the short form: the first three letters in English.
    """

    type_name = "month"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        abbr: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"abbr": abbr})


class QuarterField(Field):
    """A quarter of a year, Q1 to Q4.

    number: Outputs a number from 1 to 4.
    """

    type_name = "quarter"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        number: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"number": number})


class TimeField(Field):
    """A time of day, to the second.

    format: Format, as HH:mm:ss tokens or strftime's %H:%M:%S. Default: ISO 8601.
    min: Earliest time, such as 08:00 or 08:00:30.
    max: Latest time, in the same format.
    """

    type_name = "time"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: str | None = UNSET,
        min: str = UNSET,
        max: str = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"format": format, "min": min, "max": max})


class TimeSeriesField(Field):
    """Increasing timestamps at a fixed interval, with optional jitter.

    format: Format, as YYYY-MM-DD HH:mm:ss tokens or strftime's %Y-%m-%d. Default: ISO 8601.
    start: Timestamp of row 0, such as 2024-01-31, 2024-01-31T08:00:00Z, now, today, -30d, +2w, -1y.
    interval: Interval between rows: 15min, 1h 30min, 3d, 2w, 1mo, 1y. Months are calendar months.
    jitter: Maximum random delay of each row. Must be less than the interval.
    """

    type_name = "time_series"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        format: str | None = UNSET,
        start: str = UNSET,
        interval: str = UNSET,
        jitter: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name, options, common, {"format": format, "start": start, "interval": interval, "jitter": jitter}
        )


class WeekdayField(Field):
    """The name of a day of the week in the language of the locale.

    abbr: Outputs the short form: the first three letters in English.
    """

    type_name = "weekday"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        abbr: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"abbr": abbr})


class YearField(Field):
    """A year in a range.

    min: First year. Default: max - 50.
    max: Last year. Default: the year of now.
    """

    type_name = "year"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        min: int | None = UNSET,
        max: int | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"min": min, "max": max})
