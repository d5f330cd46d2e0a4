"""Fields of the category time, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class BusinessDayField(Field):
    """A day from Monday to Friday between two dates.

    min: Earliest, such as 2024-01-31, 2024-01-31T08:00:00Z, now, today, -30d, +2w, -1y; 10 years before
        max.
    max: Latest, in the same ways; now.
    format: How it is written, in YYYY-MM-DD HH:mm:ss tokens or strftime's %Y-%m-%d; ISO 8601 if left out.
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


class DateField(Field):
    """A day between two dates.

    min: Earliest, such as 2024-01-31, 2024-01-31T08:00:00Z, now, today, -30d, +2w, -1y; 10 years before
        max.
    max: Latest, in the same ways; now.
    format: How it is written, in YYYY-MM-DD HH:mm:ss tokens or strftime's %Y-%m-%d; ISO 8601 if left out.
    distribution: How values are spread; recent_bias halves their number every halflife_days back from
        max.
    halflife_days: Half-life of recent_bias in days; 90.
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
    """A date or time some while after or before another field's.

    format: How it is written, in YYYY-MM-DD HH:mm:ss tokens or strftime's %Y-%m-%d; ISO 8601 if left out.
    field: Name of a field of type date, datetime or another one of this kind.
    offset: How far from it, such as +3d or -2h; units as in 15min, 1h 30min, 3d, 2w, 1mo, 1y. Else min
        and max.
    min: Least random offset, such as 1d; 0 if left out.
    max: Largest random offset, such as 14d.
    unit: Random offsets are whole numbers of it: days after a date, seconds after a time, months where
        min or max name months.
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

    min: Earliest, such as 2024-01-31, 2024-01-31T08:00:00Z, now, today, -30d, +2w, -1y; 10 years before
        max.
    max: Latest, in the same ways; now.
    past: true: up to now; false: from now on, 10 years ahead if max is not given.
    format: How it is written, in YYYY-MM-DD HH:mm:ss tokens or strftime's %Y-%m-%d; ISO 8601 if left out.
    distribution: How values are spread; recent_bias halves their number every halflife_days back from
        max.
    halflife_days: Half-life of recent_bias in days; 90.
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


class DurationField(Field):
    """A length of time between two others.

    min: Least, such as 30s or 1h 30min.
    max: Largest, in the same way.
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

    min: Earliest, such as 2024-01-31, 2024-01-31T08:00:00Z, now, today, -30d, +2w, -1y; 10 years before
        max.
    max: Latest, in the same ways; now.
    unit: What is counted.
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
    """The name of a month, in English.

    abbr: Writes the first three letters.
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

    number: Writes 1 to 4 as a number.
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

    format: How it is written, in HH:mm:ss tokens or strftime's %H:%M:%S; ISO 8601 if left out.
    min: Earliest, such as 08:00 or 08:00:30.
    max: Latest, in the same way.
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
    """Times that rise from row to row, a fixed interval apart, with a little jitter if you like.

    format: How it is written, in YYYY-MM-DD HH:mm:ss tokens or strftime's %Y-%m-%d; ISO 8601 if left out.
    start: Of row 0, such as 2024-01-31, 2024-01-31T08:00:00Z, now, today, -30d, +2w, -1y.
    interval: From one row to the next: 15min, 1h 30min, 3d, 2w, 1mo, 1y. Months go by the calendar.
    jitter: Each row is later by a random time up to this, which is less than the interval.
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
    """The name of a day of the week, in English.

    abbr: Writes the first three letters.
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
    """A year between two others.

    min: First year; 50 before max if left out.
    max: Last year; that of now if left out.
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
