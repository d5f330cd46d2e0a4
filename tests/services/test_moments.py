"""Times that callers send are RFC 3339, with a zone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from webapp import timestamps


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-21T12:00:00Z", datetime(2026, 11, 21, 12, tzinfo=UTC)),
        ("2026-11-21t12:00:00z", datetime(2026, 11, 21, 12, tzinfo=UTC)),
        ("2026-11-21 12:00:00.25+02:00", datetime(2026, 11, 21, 10, 0, 0, 250_000, tzinfo=UTC)),
    ],
)
def test_a_time_with_a_zone_is_read_as_utc(text, moment):
    assert timestamps.parse(text) == moment
    assert timestamps.parse(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21",
        "2026-11-21T12:00:00",
        "20261121T120000Z",
        "2026-02-30T00:00:00Z",
        "2026-11-21T25:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "0999-12-31T00:00:00Z",
        "9999-12-31T00:00:00Z",
        "now",
        "",
        1_700_000_000,
        None,
        datetime(2026, 1, 1),  # noqa: DTZ001 - naive on purpose
    ],
)
def test_anything_else_is_rejected(text):
    with pytest.raises(ValueError, match=r"time|year"):
        timestamps.parse(text)
