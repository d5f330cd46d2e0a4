"""Times in requests: RFC 3339, converted to aware UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

from webapp import clock, limits

_TIME_FORMAT: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")

PRESENT: Final = "present"


def parse(value: Any) -> datetime:
    """Parse an RFC 3339 date-time as aware UTC with microseconds. Raises ValueError, also for a naive time."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if not isinstance(value, str) or not _TIME_FORMAT.fullmatch(value):
        raise ValueError("must be a time with a time zone, such as 2026-11-21T12:00:00Z")
    try:
        moment = datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("this time does not exist") from None
    first, last = limits.NOW_YEARS
    if not first <= moment.year <= last:
        raise ValueError(f"the year must be from {first} to {last}")
    return moment


Timestamp = Annotated[
    datetime,
    BeforeValidator(parse, json_schema_input_type=str),
    Field(json_schema_extra={"format": "date-time"}),
]


def _parse_or_present(value: Any) -> datetime:
    """Parse a time, or `present` as the current time in whole seconds, which is stored instead of the word."""
    return clock.now().replace(microsecond=0) if value == PRESENT else parse(value)


TimestampOrPresent = Annotated[
    datetime,
    BeforeValidator(_parse_or_present),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "enum": [PRESENT]}]}
    ),
]
"""The time that relative dates depend on, as a request sends it."""
