"""Time, in one form: aware UTC datetimes inside, RFC 3339 ending in `Z` outside.

`now` is the only place that asks the machine; what needs another time takes one as an argument, and tests
replace `source`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

source: Callable[[], float] = time.time


def now() -> datetime:
    """The present, aware, UTC, microseconds."""
    return datetime.fromtimestamp(source(), UTC)


def epoch() -> float:
    """Seconds since 1970."""
    return source()


def to_text(moment: datetime | None) -> str | None:
    """RFC 3339 in UTC with `Z`: `2026-11-21T03:20:00.123456Z`; microseconds only where there are any."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError("a time without a zone")
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
