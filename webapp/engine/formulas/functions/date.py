"""Functions of dates and points in time, all in UTC. Outside the years 1 to 9999 there is no value."""

# ruff: noqa: D103 - the declaration above each function says what it does

from __future__ import annotations

import re
from datetime import UTC

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import dates
from webapp.engine.formulas import calendar, operators, text_kernels, vectors
from webapp.engine.formulas import types as formulas_types
from webapp.engine.formulas.declarations import Call, function
from webapp.engine.formulas.nodes import Frame, Node, convert_node
from webapp.engine.formulas.types import DAY_US
from webapp.engine.formulas.vectors import Vector, all_valid

_SECOND = 1_000_000
_FIELDS = re.compile(r"YYYY|MM|DD")


@function(
    "date(year, month, day)",
    "The date with the given year, month and day; blank if it does not exist.",
    "date(2026, 2, 28)",
    "2026-02-28",
)
def date(call: Call) -> Node:
    parts = [call.integer(place) for place in range(3)]
    return call.apply(formulas_types.DATE, lambda n, y, m, d: calendar.from_parts(y, m, d), *parts)


@function("today()", "The date of `now`.", "today() == date_of(now())", True)
def today(call: Call) -> Node:
    return Node(
        formulas_types.DATE,
        lambda frame: vectors.constant(formulas_types.DATE, _now(frame) // DAY_US),
        call.position,
    )


@function(
    "now()",
    "The time of the request; the name now without parentheses is the same.",
    "year(now()) > 999",
    True,
)
def now(call: Call) -> Node:
    return present(call.position)


def present(at: int) -> Node:
    "The time `now` of the request."
    return Node(
        formulas_types.TIMESTAMP, lambda frame: vectors.constant(formulas_types.TIMESTAMP, _now(frame)), at
    )


def _now(frame: Frame) -> int:
    point = frame.context.env.now.astimezone(UTC)
    clock = (point.hour * 3600 + point.minute * 60 + point.second) * _SECOND + point.microsecond
    return vectors.days_of(point) * DAY_US + clock


@function("date_of(moment)", "The date of a time.", 'date_of("2026-01-31T08:30:00Z")', "2026-01-31")
def date_of(call: Call) -> Node:
    return call.day(0)


@function(
    "add_days(date, count)", "The date `count` days later.", "add_days(date(2026, 2, 28), 1)", "2026-03-01"
)
def add_days(call: Call) -> Node:
    return operators.add_days(call.moment(0), call.integer(1), 1, call.position)


@function(
    "add_months(date, count)",
    "The date `count` months later, at most the last day of the month.",
    "add_months(date(2026, 1, 31), 1)",
    "2026-02-28",
)
def add_months(call: Call) -> Node:
    return _months(call, 1)


@function(
    "add_years(date, count)",
    "The date `count` years later; 28 February if there is no 29th.",
    "add_years(date(2024, 2, 29), 1)",
    "2025-02-28",
)
def add_years(call: Call) -> Node:
    return _months(call, 12)


def _months(call: Call, factor: int) -> Node:
    moment, count = call.moment(0), call.integer(1)
    unit = 1 if moment.element_kind.name == "date" else DAY_US

    def kernel(n: int, value: Vector, by: Vector) -> Vector:
        months = Vector(np.clip(by.data, -20_000, 20_000) * factor, by.valid)
        return calendar.add_months(value, months if factor > 1 else by, unit)

    return call.apply(moment.element_kind, kernel, moment, count)


@function(
    "add_hours(moment, count)",
    "The time `count` hours later.",
    'format_date(add_hours("2026-01-31", 25), "DD.MM. HH:mm")',
    "01.02. 01:00",
)
def add_hours(call: Call) -> Node:
    return _clock(call, 3600 * _SECOND)


@function(
    "add_minutes(moment, count)",
    "The time `count` minutes later.",
    'format_date(add_minutes("2026-01-31", 90), "HH:mm")',
    "01:30",
)
def add_minutes(call: Call) -> Node:
    return _clock(call, 60 * _SECOND)


@function(
    "add_seconds(moment, count)",
    "The time `count` seconds later.",
    'format_date(add_seconds("2026-01-31", 5), "HH:mm:ss")',
    "00:00:05",
)
def add_seconds(call: Call) -> Node:
    return _clock(call, _SECOND)


def _clock(call: Call, step: int) -> Node:
    moment = convert_node(call.moment(0), formulas_types.TIMESTAMP)
    return call.apply(
        moment.element_kind,
        lambda n, x, y: operators.shift_moments(x, y, step, DAY_US),
        moment,
        call.integer(1),
    )


@function("year(date)", "The year.", "year(date(2026, 11, 21))", 2026)
def year(call: Call) -> Node:
    return call.apply(
        formulas_types.number(0, 1, 9999),
        calendar.date_part_kernel(lambda d: calendar.civil_from_days(d)[0]),
        call.day(0),
    )


@function("quarter(date)", "The quarter, 1 to 4.", "quarter(date(2026, 11, 21))", 4)
def quarter(call: Call) -> Node:
    kernel = calendar.date_part_kernel(lambda d: (calendar.civil_from_days(d)[1] + 2) // 3)
    return call.apply(formulas_types.number(0, 1, 4), kernel, call.day(0))


@function("month(date)", "The month, 1 to 12.", "month(date(2026, 11, 21))", 11)
def month(call: Call) -> Node:
    return call.apply(
        formulas_types.number(0, 1, 12),
        calendar.date_part_kernel(lambda d: calendar.civil_from_days(d)[1]),
        call.day(0),
    )


@function("day(date)", "The day of the month.", "day(date(2026, 11, 21))", 21)
def day(call: Call) -> Node:
    return call.apply(
        formulas_types.number(0, 1, 31),
        calendar.date_part_kernel(lambda d: calendar.civil_from_days(d)[2]),
        call.day(0),
    )


@function("weekday(date)", "The day of the week: 1 is Monday, 7 Sunday.", "weekday(date(2026, 11, 21))", 6)
def weekday(call: Call) -> Node:
    return call.apply(
        formulas_types.number(0, 1, 7), calendar.date_part_kernel(lambda d: (d + 3) % 7 + 1), call.day(0)
    )


def _of_day(call: Call, unit: int, size: int) -> Node:
    moment = convert_node(call.moment(0), formulas_types.TIMESTAMP)
    return call.apply(
        formulas_types.number(0, 0, size - 1), calendar.date_part_kernel(lambda us: us // unit % size), moment
    )


@function("hour(moment)", "The hour, 0 to 23.", 'hour("2026-01-31T08:30:00Z")', 8)
def hour(call: Call) -> Node:
    return _of_day(call, 3600 * _SECOND, 24)


@function("minute(moment)", "The minute, 0 to 59.", 'minute("2026-01-31T08:30:00Z")', 30)
def minute(call: Call) -> Node:
    return _of_day(call, 60 * _SECOND, 60)


@function("second(moment)", "The second, 0 to 59.", 'second("2026-01-31T08:30:05Z")', 5)
def second(call: Call) -> Node:
    return _of_day(call, _SECOND, 60)


@function(
    "days_between(from, to)",
    "Number of days from one date to another.",
    'days_between("2026-01-01", "2026-03-01")',
    59,
)
def days_between(call: Call) -> Node:
    return operators.subtract(call.day(1), call.day(0), call.position)


@function(
    "seconds_between(from, to)",
    "Number of whole seconds from one time to another.",
    'seconds_between("2026-01-01", "2026-01-02")',
    86400,
)
def seconds_between(call: Call) -> Node:
    ends = [convert_node(call.moment(place), formulas_types.TIMESTAMP) for place in (0, 1)]

    def kernel(n: int, start: Vector, end: Vector) -> Vector:
        return Vector((end.data - start.data) // _SECOND, all_valid(start.valid, end.valid))

    return call.apply(formulas_types.number(0, -(10**12), 10**12), kernel, *ends)


@function(
    "age(birth, at = today())", "Whole years from one date to another.", 'age("2000-02-29", "2026-02-28")', 25
)
def age(call: Call) -> Node:
    until = call.day(1) if call.has(1) else today.build(call)

    def kernel(n: int, birth: Vector, at: Vector) -> Vector:
        (y1, m1, d1), (y2, m2, d2) = calendar.civil_from_days(birth.data), calendar.civil_from_days(at.data)
        before = (m2 < m1) | ((m2 == m1) & (d2 < d1))
        return Vector(y2 - y1 - before, all_valid(birth.valid, at.valid))

    return call.apply(formulas_types.number(0, -9999, 9999), kernel, call.day(0), until)


@function(
    "start_of_month(date)", "The first day of the month.", "start_of_month(date(2026, 2, 17))", "2026-02-01"
)
def start_of_month(call: Call) -> Node:
    return call.apply(
        formulas_types.DATE,
        calendar.date_part_kernel(lambda d: d - calendar.civil_from_days(d)[2] + 1),
        call.day(0),
    )


@function("end_of_month(date)", "The last day of the month.", "end_of_month(date(2026, 2, 17))", "2026-02-28")
def end_of_month(call: Call) -> Node:
    def last(d: np.ndarray) -> np.ndarray:
        y, m, of_month = calendar.civil_from_days(d)
        return d - of_month + calendar.month_length(y, m)

    return call.apply(formulas_types.DATE, calendar.date_part_kernel(last), call.day(0))


@function(
    "format_date(date, format)",
    "A date as text, formatted with YYYY-MM-DD tokens or strftime's %Y-%m-%d.",
    'format_date(date(2026, 2, 3), "DD.MM.YYYY")',
    "03.02.2026",
)
def format_date(call: Call) -> Node:
    moment, source = call.moment(0), call.fixed_text(1)
    try:
        spell = dates.create_formatter(source)
    except dates.DateFormatError as error:
        raise call.error(1, "bad_format", str(error)) from None
    kind = moment.element_kind

    def kernel(n: int, value: Vector) -> Vector:
        return Vector(spell(vectors.store(kind, value, n)))

    return call.apply_text(dates.max_length(source), kernel, moment)


@function(
    "to_date(text, format = 'YYYY-MM-DD')",
    "A text parsed as a date; blank if it is not a date. The format consists of YYYY, MM and DD.",
    'to_date("28.02.2026", "DD.MM.YYYY")',
    "2026-02-28",
)
def to_date(call: Call) -> Node:
    if call.args[0].element_kind.name in ("date", "timestamp"):
        return call.day(0)
    source = call.fixed_text(1, "YYYY-MM-DD")
    spans = {match[0]: match.span() for match in _FIELDS.finditer(source)}
    if len(spans) < 3 or len(_FIELDS.findall(source)) > 3:
        raise call.error(1, "bad_format", "The format must contain YYYY, MM and DD once each.")
    pieces, at = [], 0
    for match in _FIELDS.finditer(source):
        pieces += [re.escape(source[at : match.start()]), f"[0-9]{{{len(match[0])}}}"]
        at = match.end()
    pattern = "".join(["^", *pieces, re.escape(source[at:]), "$"])

    def kernel(n: int, value: Vector) -> Vector:
        texts = vectors.broadcast_text(value, n)
        good = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
        readable = pc.if_else(
            good, texts, pa.scalar(source.replace("YYYY", "2000").replace("MM", "01").replace("DD", "01"))
        )
        y, m, d = (
            text_kernels.to_vector(pc.utf8_slice_codeunits(readable, *spans[name]).cast(pa.int64()))
            for name in ("YYYY", "MM", "DD")
        )
        mask = good.to_numpy(zero_copy_only=False)
        dates = calendar.from_parts(y, m, d)
        return Vector(dates.data, all_valid(dates.valid, None if mask.all() else mask))

    return call.apply(formulas_types.DATE, kernel, call.text(0))
