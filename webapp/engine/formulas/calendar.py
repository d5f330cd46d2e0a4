"""Days, months and years of columns of dates, in integers (Hinnant, "chrono-compatible low-level date algorithms")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from webapp.engine.formulas import types
from webapp.engine.formulas.nodes import Node, elementwise
from webapp.engine.formulas.types import DAY_US
from webapp.engine.formulas.vectors import Vector, all_valid

_ERA_DAYS = 146_097
_SHIFT = 719_468
"""Days from 1 March of the year 0 to 1970."""

Civil = tuple[np.ndarray, np.ndarray, np.ndarray]


def civil_from_days(days: np.ndarray) -> Civil:
    """Year, month and day of days since 1970."""
    shifted = days + _SHIFT
    era, rest = np.divmod(shifted, _ERA_DAYS)
    year = (rest - rest // 1460 + rest // 36_524 - rest // 146_096) // 365
    day_of_year = rest - (365 * year + year // 4 - year // 100)
    month_index = (5 * day_of_year + 2) // 153
    month = np.where(month_index < 10, month_index + 3, month_index - 9)
    return year + era * 400 + (month <= 2), month, day_of_year - (153 * month_index + 2) // 5 + 1


def days_from_civil(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> np.ndarray:
    """Days since 1970 of a date, which need not be checked."""
    year = year - (month <= 2)
    era, rest = np.divmod(year, 400)
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    return era * _ERA_DAYS + rest * 365 + rest // 4 - rest // 100 + of_year - _SHIFT


def month_length(year: np.ndarray, month: np.ndarray) -> np.ndarray:
    """Return the number of days of a month."""
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    return np.where(month == 2, 28 + leap, 30 + ((month + month // 8) & 1))


def from_parts(year: Vector, month: Vector, day: Vector) -> Vector:
    """Return the date of three numbers; null for an invalid date."""
    y, m = np.clip(year.data, 0, 10_000), np.clip(month.data, 0, 13)
    good = (y >= 1) & (y <= 9999) & (m >= 1) & (m <= 12) & (day.data >= 1)
    good = good & (day.data <= month_length(y, np.clip(m, 1, 12)))
    day_numbers = np.where(good, days_from_civil(y, np.clip(m, 1, 12), np.clip(day.data, 1, 31)), 0)
    return Vector(day_numbers, all_valid(year.valid, month.valid, day.valid, None if good.all() else good))


def add_months(moment: Vector, count: Vector, unit: int) -> Vector:
    """Add months; in a shorter month the result is its last day; ``unit`` is the length of a day."""
    day, clock = np.divmod(moment.data, unit)
    year, month, day_of_month = civil_from_days(day)
    moved = year * 12 + month - 1 + np.clip(count.data, -200_000, 200_000)
    year, month = moved // 12, moved % 12 + 1
    good = (year >= 1) & (year <= 9999)
    year = np.where(good, year, 1970)
    moments = (
        days_from_civil(year, month, np.minimum(day_of_month, month_length(year, month))) * np.int64(unit)
        + clock
    )
    return Vector(
        np.where(good, moments, 0), all_valid(moment.valid, count.valid, None if good.all() else good)
    )


def day_of(node: Node) -> Node:
    """The day of a date or point in time."""
    if node.element_kind.name == "date":
        return node
    return elementwise(
        [node], types.DATE, lambda n, value: Vector(value.data // DAY_US, value.valid), node.position
    )


def date_part_kernel(pick: Callable[[np.ndarray], np.ndarray]) -> Callable[[int, Vector], Vector]:
    """A kernel of one date from a function of days."""
    return lambda n, value: Vector(np.asarray(pick(value.data)), value.valid)
