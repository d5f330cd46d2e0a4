"""Dates are written as Python's strftime writes them, and points in time are read as people write them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp.engine import dates, moments

DIRECTIVES = "YymdjVBbAaHIMSpf"
TOKENS = {
    "YYYY": "%Y", "YY": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%-m", "DDDD": "%j", "DD": "%d", "D": "%-d",
    "dddd": "%A", "ddd": "%a", "WW": "%V", "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M", "m": "%-M",
    "ss": "%S", "s": "%-S", "SSSSSS": "%f", "A": "%p",
}  # fmt: skip
FIRST, LAST, EPOCH = (datetime.fromisoformat(day) for day in ("1000-01-01", "9999-12-31", "1970-01-01"))
MOMENTS = st.datetimes(FIRST, LAST)


def spelled(source: str, moment: datetime) -> str:
    return dates.create_formatter(source)(pa.array([moment], pa.timestamp("us")))[0].as_py()


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([*DIRECTIVES, "-m", "-d", "-H", "-I", "-M", "-S"]), min_size=1, max_size=5),
    MOMENTS,
)
def test_directives_are_those_of_strftime(directives, moment):
    source = "é ".join(f"%{directive}" for directive in directives) + "%%"
    assert spelled(source, moment) == moment.strftime(source)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(sorted(TOKENS)), min_size=1, max_size=5), MOMENTS)
def test_tokens_mean_their_directives(tokens, moment):
    source = "[at] ".join(token + "-" for token in tokens)
    expected = "at ".join(TOKENS[token] + "-" for token in tokens)
    assert spelled(source, moment) == moment.strftime(expected)


@given(MOMENTS)
def test_directives_unknown_to_strftime_are_supported(moment):
    assert spelled("Q", moment) == str((moment.month + 2) // 3)
    assert spelled("SSS", moment) == f"{moment.microsecond // 1000:03d}"
    assert spelled("X", moment) == str((moment - EPOCH) // timedelta(seconds=1))
    assert spelled("h a Z", moment) == f"{moment:%-I} {'am' if moment.hour < 12 else 'pm'} +0000"


@given(st.lists(st.one_of(st.none(), st.dates()), max_size=20))
def test_columns_keep_their_blanks(days):
    found = dates.create_formatter("%Y-%m-%d")(pa.array(days, pa.date32())).to_pylist()
    assert found == [day and day.isoformat() for day in days]


def test_every_kind_of_column_is_read():
    day = date(2024, 2, 29)
    spell = dates.create_formatter("DD.MM.YYYY")
    for column in (
        pa.array([day, None]),
        pa.array([day, None]).dictionary_encode(),
        pa.array(["2024-02-29", None]),
        pa.array([datetime(2024, 2, 29, 23, 59, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        pa.array([datetime.fromisoformat("2024-02-29"), None], pa.timestamp("s")),
        pa.array([day, day, None]).slice(1),
    ):
        assert spell(column).to_pylist() == ["29.02.2024", None]


@pytest.mark.parametrize("source", ["", "xx", "%Q", "%Y-%", "[YYYY]"])
def test_a_format_without_a_date_is_rejected(source):
    with pytest.raises(dates.DateFormatError):
        dates.create_formatter(source)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(["YYYY", "YY", "MM", "M", "MMM", "DD", "D", "DDDD", "-", " ", "dddd"]),
        min_size=1,
        max_size=6,
    ),
    st.dates(date(1800, 1, 1), date(2200, 1, 1)),
    st.dates(date(1800, 1, 1), date(2200, 1, 1)),
)
def test_a_format_that_distinguishes_days_is_unique(tokens, one, other):
    source = "".join(tokens)
    try:
        apart = dates.is_injective(source, day=True, clock=False)
    except dates.DateFormatError:
        return
    texts = dates.create_formatter(source)(pa.array([one, other])).to_pylist()
    assert max(map(len, texts)) <= dates.max_length(source)
    assert not apart or (texts[0] == texts[1]) == (one == other)


NOW = datetime(2026, 3, 31, 12, 30, 15, 500, tzinfo=UTC)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("now", NOW),
        ("today", datetime(2026, 3, 31, tzinfo=UTC)),
        ("Tomorrow", datetime(2026, 4, 1, tzinfo=UTC)),
        ("yesterday", datetime(2026, 3, 30, tzinfo=UTC)),
        ("-30d", NOW - timedelta(30)),
        ("+2w", NOW + timedelta(14)),
        ("-1y", NOW.replace(year=2025)),
        ("-1mo", datetime(2026, 2, 28, 12, 30, 15, 500, tzinfo=UTC)),
        ("-1M", datetime(2026, 2, 28, 12, 30, 15, 500, tzinfo=UTC)),
        ("-1m", NOW - timedelta(minutes=1)),
        ("now - 2 hours", NOW - timedelta(hours=2)),
        ("today+1d 3h", datetime(2026, 4, 1, 3, tzinfo=UTC)),
        ("-1y6mo", datetime(2024, 9, 30, 12, 30, 15, 500, tzinfo=UTC)),
        ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
        ("2024-02-29T08:00", datetime(2024, 2, 29, 8, tzinfo=UTC)),
        ("2024-01-01T08:00:00+02:00", datetime(2024, 1, 1, 6, tzinfo=UTC)),
    ],
)
def test_points_in_time_are_read_as_people_write_them(source, expected):
    assert moments.parse(source).resolve(NOW) == expected


@pytest.mark.parametrize(
    "source", ["", "30d", "-5x", "-2000y", "next week", "2024-02-30", "12:30", "-", "now now", "+d"]
)
def test_an_invalid_moment_is_rejected(source):
    with pytest.raises(moments.MomentError):
        moments.parse(source)


def test_a_moment_beyond_the_calendar_is_rejected():
    with pytest.raises(moments.MomentError):
        moments.parse("-30y").resolve(datetime(20, 1, 1, tzinfo=UTC))


@given(st.datetimes(timezones=st.just(UTC)))
def test_seconds_are_counted_from_1970(moment):
    assert moments.epoch_seconds(moment) == (moment - EPOCH.replace(tzinfo=UTC)) // timedelta(seconds=1)
