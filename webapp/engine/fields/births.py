"""Days of birth and the ages they make: both follow from one draw, and from the ``now`` of the request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from webapp import limits

if TYPE_CHECKING:
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

AGES = (18, 80)
"""Whole years at the least and at the most, where no field says otherwise."""
BORN = ("age", "date_of_birth", "marital_status")
"""Types that need a day of birth."""

_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, eq=False)
class Born:
    """Days of birth to choose from: ``size`` days since 1970-01-01 from ``low`` on."""

    low: int
    size: int
    latest: np.ndarray
    """``int64[k]``, rising: the last day on which somebody of k, k - 1, ... 1 years or more was born."""

    def ages(self, days: np.ndarray) -> np.ndarray:
        """``int64[n]``: whole years of those who were born on ``days``."""
        return self.latest.size - np.searchsorted(self.latest, days)


def asked_ages(fields: Sequence[FieldSpec], compiler: Compiler) -> tuple[int, int] | None:
    """(least, most) whole years of a group's people; None where no field of it needs them. Reports fields that say
    different things."""
    if not any(field.type.name in BORN for field in fields):
        return None
    found: dict[str, int] = {}
    for field in fields:
        if field.type.name not in BORN[:2]:
            continue
        for option in field.options.model_fields_set & {"min", "max"}:
            value = getattr(field.options, option)
            if found.setdefault(option, value) != value:
                text = f"Fields that share one person have one {option} age."
                compiler.fault(
                    field, f"options.{option}", "conflict", text, "Give one of them a group of its own."
                )
    low, high = found.get("min", AGES[0]), found.get("max", AGES[1])
    if low > high and len(found) == 1:
        low, high = (low, limits.MAX_AGE) if "min" in found else (0, high)
    if low > high:
        blamed = next(field for field in fields if "min" in field.options.model_fields_set)
        compiler.fault(
            blamed, "options.min", "min_above_max", f"min ({low}) is above max ({high}).", "Swap them."
        )
        return AGES
    return low, high


def born(
    ages: tuple[int, int] | None, now: datetime, fixed: dict[str, Any], fields: Sequence[FieldSpec]
) -> tuple[Born | None, list[str]]:
    """The days of birth that ages and overrides leave, and the names of overrides that no day fits."""
    if ages is None:
        return None, []
    low, high = _days_of(now.date(), *ages)
    unmet, first = [], True
    for field in fields:
        if field.type.name not in BORN[:2] or fixed.get(field.name) is None:
            continue
        days = _fixed(field.type.name, fixed[field.name], now.date())
        # What one field says stands even outside of the ages asked for; two must say the same.
        if days is None or (not first and (days[1] < low or days[0] > high)):
            unmet.append(field.name)
        else:
            low, high = days if first else (max(low, days[0]), min(high, days[1]))
            first = False
    return Born(low, high - low + 1, _latest(now.date())), unmet


def _fixed(kind: str, value: Any, today: date) -> tuple[int, int] | None:
    if kind == "age":
        return _days_of(today, value, value) if 0 <= value <= limits.MAX_AGE else None
    try:
        day = value if isinstance(value, date) else date.fromisoformat(str(value).strip())
    except ValueError:
        return None
    number = (day - _EPOCH).days
    return (number, number) if day <= today else None


def _days_of(today: date, least: int, most: int) -> tuple[int, int]:
    """First and last day of birth of people of ``least`` to ``most`` whole years."""
    return _number(_before(today, most + 1)) + 1, _number(_before(today, least))


def _before(today: date, years: int) -> date:
    """The last day on which somebody of ``years`` years or more was born."""
    try:
        return today.replace(year=today.year - years)
    except ValueError:
        # Who was born on 29 February has no birthday in other years before 1 March.
        return date(today.year - years, 3, 1) - timedelta(days=1)


def _number(day: date) -> int:
    return (day - _EPOCH).days


@lru_cache(maxsize=64)
def _latest(today: date) -> np.ndarray:
    return np.array([_number(_before(today, years)) for years in range(limits.MAX_AGE + 1, 0, -1)], np.int64)
