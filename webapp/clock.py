"""The time: aware UTC datetimes internally, RFC 3339 ending in `Z` in input and output.

Only `now` and `epoch` read the clock of the machine. Code that needs another time takes it as an argument, and tests
replace `source`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

source: Callable[[], float] = time.time


def now() -> datetime:
    """Return the current time as an aware UTC datetime with microseconds."""
    return datetime.fromtimestamp(source(), UTC)


def epoch() -> float:
    """Return the seconds since 1970."""
    return source()


def to_text(moment: datetime | None) -> str | None:
    """Return a time as RFC 3339 in UTC with `Z`, such as `2026-11-21T03:20:00.123456Z`; without microseconds if 0."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError("a time without a zone")
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
