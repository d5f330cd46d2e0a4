"""All functions of the formula language, in one visible list.

A function is declared once, by `function` over a builder in the file of its family, and named here: the catalogue,
the reference and the tests are drawn from this list.
"""

from __future__ import annotations

from webapp.engine.formulas.declarations import Function
from webapp.engine.formulas.functions import date, list, logic, number, text

FUNCTIONS: tuple[Function, ...] = (
    # logic
    logic.if_,
    logic.switch,
    logic.coalesce,
    logic.is_blank,
    logic.random,
    logic.random_int,
    logic.choose,
    # text
    text.text,
    text.upper,
    text.lower,
    text.title,
    text.trim,
    text.length,
    text.replace,
    text.left,
    text.right,
    text.mid,
    text.split_part,
    text.split,
    text.concat,
    text.pad_left,
    text.pad_right,
    text.contains,
    text.starts_with,
    text.ends_with,
    text.strip_accents,
    text.ascii_,
    text.slug,
    text.initials,
    text.reverse,
    text.repeat,
    text.regex_replace,
    text.matches,
    text.format_number,
    # number
    number.abs_,
    number.round_,
    number.floor,
    number.ceil,
    number.int_,
    number.number,
    number.min_,
    number.max_,
    number.clamp,
    number.sign,
    number.mod,
    number.power,
    number.sqrt,
    number.percent,
    number.luhn,
    # date
    date.date,
    date.today,
    date.now,
    date.date_of,
    date.to_date,
    date.format_date,
    date.add_days,
    date.add_months,
    date.add_years,
    date.add_hours,
    date.add_minutes,
    date.add_seconds,
    date.year,
    date.quarter,
    date.month,
    date.day,
    date.weekday,
    date.hour,
    date.minute,
    date.second,
    date.days_between,
    date.seconds_between,
    date.age,
    date.start_of_month,
    date.end_of_month,
    # list
    list.sum_,
    list.count,
    list.size,
    list.avg,
    list.any_,
    list.all_,
    list.first,
    list.last,
    list.join,
    list.unique_count,
)

FAMILIES = {
    "logic": "Logic and random values",
    "text": "Text",
    "number": "Numbers",
    "date": "Dates and times",
    "list": "Lists",
}

BY_NAME: dict[str, Function] = {
    name: function for function in FUNCTIONS for name in (function.name, *function.aliases)
}


def find(name: str) -> Function | None:
    """The function called ``name``; capitals do not matter."""
    return BY_NAME.get(name) or BY_NAME.get(name.lower())
