"""Points in time as users write them: ISO 8601, or relative to the ``now`` of a request.

Relative ones are ``now`` or ``today`` (midnight), followed by any of ``+2w``, ``-30d``, ``-1y6mo``, ``-2 hours``. Units
are y, mo (or M), w, d, h, min (or m), s and their English names. Years and months follow the calendar: a month before
31 March is the last day of February. Everything is in UTC; a time without a time zone is treated as UTC.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

_STEP = re.compile(r"\s*([+-]?)\s*(\d{1,9})\s*([A-Za-z]+)\s*")
_ANCHOR = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.I)
_ANCHOR_DAYS = {"today": 0, "tomorrow": 1, "yesterday": -1}
_UNITS = {
    "y": "years", "yr": "years", "year": "years", "years": "years",
    "mo": "months", "M": "months", "month": "months", "months": "months",
    "w": "weeks", "week": "weeks", "weeks": "weeks",
    "d": "days", "day": "days", "days": "days",
    "h": "hours", "hr": "hours", "hour": "hours", "hours": "hours",
    "m": "minutes", "min": "minutes", "minute": "minutes", "minutes": "minutes",
    "s": "seconds", "sec": "seconds", "second": "seconds", "seconds": "seconds",
}  # fmt: skip
_DATE_ONLY = re.compile(r"\d{4}-\d\d-\d\d")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_YEARS = 1000
EXAMPLES = "2024-01-31, 2024-01-31T08:00:00Z, now, today, -30d, +2w, -1y"


class MomentError(ValueError):
    """A point in time is not valid, or is outside the years 1 to 9999."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A parsed point in time. Exactly one of ``at`` (absolute, aware) and ``steps`` is set."""

    at: datetime | None
    midnight: bool = False
    """Absolute: written as a date without a time. Relative: counted from midnight."""
    steps: tuple[tuple[str, int], ...] = ()

    def resolve(self, now: datetime) -> datetime:
        """The point itself, in UTC. Raises `MomentError`."""
        if self.at is not None:
            return self.at
        found = now.astimezone(UTC)
        if self.midnight:
            found = found.replace(hour=0, minute=0, second=0, microsecond=0)
        try:
            for unit, count in self.steps:
                if unit not in ("years", "months"):
                    found += timedelta(**{unit: count})
                    continue
                month = found.year * 12 + found.month - 1 + count * (12 if unit == "years" else 1)
                year, month = month // 12, month % 12 + 1
                day = min(found.day, monthrange(year, month)[1])
                found = found.replace(year=year, month=month, day=day)
        except (OverflowError, ValueError):
            raise MomentError("The date must be in the years 1 to 9999.") from None
        return found


@lru_cache(maxsize=1024)  # called in each request, for the few texts in templates
def parse(source: str) -> Moment:
    """Reads ``source``. Raises `MomentError`."""
    source = source.strip()
    if source[:4].isdigit() and len(source) >= 8:
        try:
            if _DATE_ONLY.fullmatch(source):
                day = date.fromisoformat(source)
                return Moment(datetime(day.year, day.month, day.day, tzinfo=UTC), midnight=True)
            point = datetime.fromisoformat(source)
            return Moment(point.replace(tzinfo=UTC) if point.tzinfo is None else point.astimezone(UTC))
        except (ValueError, OverflowError):
            raise MomentError(f'"{source}" is not a date or time.') from None
    anchor = _ANCHOR.match(source)
    at, steps, midnight = 0, [], False
    if anchor:
        at = anchor.end()
        days = _ANCHOR_DAYS.get(anchor.group(1).lower())
        midnight = days is not None
        if days:
            steps.append(("days", days))
    sign = 0
    while at < len(source):
        match = _STEP.match(source, at)
        unit = (_UNITS.get(match.group(3)) or _UNITS.get(match.group(3).lower())) if match else None
        if match is None or unit is None or (not match.group(1) and not sign):
            raise MomentError(f'"{source}" is not a date or time.')
        sign = {"+": 1, "-": -1}.get(match.group(1), sign)
        steps.append((unit, sign * int(match.group(2))))
        at = match.end()
    if not anchor and not steps:
        raise MomentError("A date or time must not be empty.")
    if sum(abs(count) * _YEARS[unit] for unit, count in steps) > _MAX_YEARS:
        raise MomentError(f"The date is more than {_MAX_YEARS} years away.")
    return Moment(None, midnight, tuple(steps))


_YEARS = {
    "years": 1,
    "months": 1 / 12,
    "weeks": 1 / 52,
    "days": 1 / 365,
    "hours": 1 / 8760,
    "minutes": 1 / 525_600,
    "seconds": 1 / 31_536_000,
}


def epoch_seconds(point: datetime) -> int:
    """Whole seconds since 1970-01-01T00:00:00Z, rounded down."""
    gap = point - _EPOCH
    return gap.days * 86_400 + gap.seconds
