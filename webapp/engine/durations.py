"""Lengths of time as a person writes them, such as 15min, 1h 30min, 3d, 2w, 1mo, 1y; and moves by the calendar."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

_PIECE = re.compile(r"\s*(\d{1,12})\s*([A-Za-z]+)\s*")
_SECOND = 1_000_000
DAY = 86_400 * _SECOND
_MICROS = {
    **dict.fromkeys(("ms", "millisecond"), 1000),
    **dict.fromkeys(("s", "sec", "second"), _SECOND),
    **dict.fromkeys(("m", "min", "minute"), 60 * _SECOND),
    **dict.fromkeys(("h", "hr", "hour"), 3600 * _SECOND),
    **dict.fromkeys(("d", "day"), DAY),
    **dict.fromkeys(("w", "week"), 7 * DAY),
}
_MONTHS = {**dict.fromkeys(("mo", "M", "month"), 1), "quarter": 3, **dict.fromkeys(("y", "yr", "year"), 12)}
_LONGEST_YEARS = 1000
EXAMPLES = "15min, 1h 30min, 3d, 2w, 1mo, 1y"

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31 in days since 1970."""


class DurationError(ValueError):
    """A length of time that cannot be read."""


@dataclass(frozen=True, slots=True)
class Duration:
    """So many months of the calendar, and so many microseconds."""

    months: int
    micros: int


@lru_cache(maxsize=1024)
def parse(source: str) -> Duration:
    """Reads ``source``, which may begin with + or -. Raises `DurationError`."""
    text = source.strip()
    sign = -1 if text.startswith("-") else 1
    text = text[1:] if text[:1] in ("+", "-") else text
    months = micros = at = 0
    while at < len(text):
        match = _PIECE.match(text, at)
        unit = _unit(match.group(2)) if match else ""
        if match is None or not unit:
            raise DurationError(f'"{source}" is not a length of time.')
        count = sign * int(match.group(1))
        months += count * _MONTHS.get(unit, 0)
        micros += count * _MICROS.get(unit, 0)
        at = match.end()
    if not text:
        raise DurationError("An empty text is no length of time.")
    if abs(months) / 12 + abs(micros) / DAY / 365 > _LONGEST_YEARS:
        raise DurationError(f"It is longer than {_LONGEST_YEARS} years.")
    return Duration(months, micros)


def _unit(name: str) -> str:
    """The unit as the tables call it; empty where there is none. M is a month, m a minute."""
    for spelled in (name, name.lower(), name.lower().removesuffix("s")):
        if spelled in _MICROS or spelled in _MONTHS:
            return spelled
    return ""


def later(days: np.ndarray, months: np.ndarray | int) -> np.ndarray:
    """``int64[n]`` of days since 1970, moved by months: a month after 31 January is the last day of February."""
    at = days.view("M8[D]")
    month = at.astype("M8[M]")
    place = (at - month.astype("M8[D]")).view(np.int64)
    there = month.view(np.int64) + months
    first = there.view("M8[M]").astype("M8[D]").view(np.int64)
    after = (there + 1).view("M8[M]").astype("M8[D]").view(np.int64)
    return first + np.minimum(place, after - first - 1)


def in_calendar(days: np.ndarray) -> np.ndarray:
    """The days, none before the year 1 or beyond 9999."""
    return np.clip(days, FIRST_DAY, LAST_DAY)
