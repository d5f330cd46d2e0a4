"""Times some while from another: moved by the calendar, never blank by themselves, rising where they are a series."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import UTC, date, datetime, timedelta

import pytest

from tests.engine.types.made import NOW, bound, faults, table, values
from webapp.engine.errors import SpecError

DAY = {"name": "base", "type": "date", "options": {"min": "2024-01-01", "max": "2024-12-31"}}
MOMENT = {"name": "base", "type": "datetime", "options": {"min": "2024-01-01", "max": "2024-12-31"}}


def pairs(base: dict, count: int = 1000, **options) -> list[tuple]:
    source = bound([base, {"name": "it", "type": "date_relative", "options": {"field": "base", **options}}])
    rows = table(source, 0, count)
    return list(zip(rows["base"], rows["it"], strict=True))


def refused(base: dict, **options) -> dict[str, str]:
    try:
        pairs(base, 1, **options)
    except SpecError as error:
        return {fault.path.removeprefix("fields[1].options."): fault.code for fault in error.faults}
    return {}


@pytest.mark.parametrize(
    ("offset", "gap"),
    [("+3d", 3), ("3d", 3), ("-2w", -14), ("1 week 1 day", 8), ("0d", 0)],
)
def test_a_fixed_offset_moves_every_day_by_so_much(offset, gap):
    assert {(it - base).days for base, it in pairs(DAY, offset=offset)} == {gap}


def test_a_fixed_offset_moves_a_time_to_the_second():
    assert {it - base for base, it in pairs(MOMENT, offset="-1h 30min")} == {timedelta(minutes=-90)}
    assert {it - base for base, it in pairs(MOMENT, offset="+3d")} == {timedelta(days=3)}


def test_months_go_by_the_calendar():
    ends = dict(pairs(DAY, 3000, offset="1mo"))
    assert ends[date(2024, 1, 31)] == ends[date(2024, 1, 30)] == date(2024, 2, 29)
    assert ends[date(2024, 3, 31)] == date(2024, 4, 30)
    assert ends[date(2024, 12, 31)] == date(2025, 1, 31)
    back = dict(pairs(DAY, 3000, offset="-1y"))
    assert back[date(2024, 2, 29)] == date(2023, 2, 28)
    assert back[date(2024, 3, 1)] == date(2023, 3, 1)


def test_random_offsets_are_even_between_their_ends():
    gaps = Counter((it - base).days for base, it in pairs(DAY, 14_000, min="1d", max="14d"))
    assert set(gaps) == set(range(1, 15))
    assert sum((count - 1000) ** 2 / 1000 for count in gaps.values()) < 40


def test_random_offsets_of_a_time_are_seconds_unless_a_unit_is_given():
    gaps = [(it - base).total_seconds() for base, it in pairs(MOMENT, min="1h", max="2h")]
    assert 3600 <= min(gaps) < max(gaps) <= 7200
    assert any(gap % 60 for gap in gaps)
    hours = {
        (it - base).total_seconds() / 3600 for base, it in pairs(MOMENT, min="-1h", max="3h", unit="hours")
    }
    assert hours == {-1, 0, 1, 2, 3}


def test_random_months_keep_the_day_where_it_exists():
    for base, it in pairs(DAY, min="1mo", max="6mo"):
        assert 1 <= (it.year - base.year) * 12 + it.month - base.month <= 6
        assert it.day == base.day or (it.day < base.day and (it + timedelta(days=1)).day == 1)


def test_it_is_blank_where_the_base_is_and_nowhere_else():
    result = pairs({**MOMENT, "percent_blank": 37}, 1000, offset="+1d")
    assert sum(base is None for base, _ in result) == 370
    assert all((base is None) == (it is None) for base, it in result)


def test_a_format_writes_it_and_the_base_may_be_another_relative_one():
    fields = [
        DAY,
        {"name": "due", "type": "date_relative", "options": {"field": "base", "min": "1d", "max": "9d"}},
        {
            "name": "it",
            "type": "date_relative",
            "options": {"field": "due", "offset": "1d", "format": "DD.MM.YYYY"},
        },
    ]
    rows = table(bound(fields), 0, 100)
    assert rows["it"] == [(due + timedelta(days=1)).strftime("%d.%m.%Y") for due in rows["due"]]


def test_no_date_leaves_the_years_1_to_9999():
    base = {"name": "base", "type": "date", "options": {"min": "9999-12-30", "max": "9999-12-31"}}
    assert {it for _, it in pairs(base, 20, offset="5d")} == {date(9999, 12, 31)}


@pytest.mark.parametrize(
    ("base", "options", "expected"),
    [
        (DAY, {}, {"offset": "required"}),
        (DAY, {"min": "1d"}, {"offset": "required"}),
        (DAY, {"offset": "soon"}, {"offset": "bad_duration"}),
        (DAY, {"offset": "2001y"}, {"offset": "bad_duration"}),
        (DAY, {"offset": "2h"}, {"offset": "not_for_this_type"}),
        (DAY, {"offset": "2d", "min": "1d"}, {"min": "conflict"}),
        (DAY, {"offset": "2d", "unit": "days"}, {"unit": "conflict"}),
        (DAY, {"max": "2d", "unit": "hours"}, {"unit": "not_for_this_type"}),
        (DAY, {"min": "1d", "max": "1mo"}, {"min": "wrong_value"}),
        (MOMENT, {"max": "90min", "unit": "hours"}, {"max": "wrong_value"}),
        (DAY, {"min": "3d", "max": "1d"}, {"min": "min_above_max"}),
        (DAY, {"offset": "1d", "format": "HH:mm"}, {"format": "not_for_this_type"}),
        ({"name": "base", "type": "city"}, {"offset": "1d"}, {"field": "wrong_type"}),
        (
            {"name": "base", "type": "date", "options": {"format": "YYYY"}},
            {"offset": "1d"},
            {"field": "wrong_type"},
        ),
    ],
)
def test_impossible_offsets_are_rejected(base, options, expected):
    assert refused(base, **options) == expected


def test_a_fixed_base_is_shifted_and_an_invalid_date_is_rejected():
    fields = [DAY, {"name": "it", "type": "date_relative", "options": {"field": "base", "offset": "1d"}}]
    assert table(bound(fields, overrides={"base": "2024-02-28"}), 0, 2)["it"] == [date(2024, 2, 29)] * 2
    with pytest.raises(SpecError) as error:
        bound(fields, overrides={"base": "soon"})
    assert [fault.path for fault in error.value.faults] == ["overrides.base"]


def test_a_series_has_a_fixed_interval():
    generated = values("time_series", 100, options={"start": "2024-03-01T12:00:00Z", "interval": "15min"})
    start = datetime(2024, 3, 1, 12, tzinfo=UTC)
    assert generated == [start + timedelta(minutes=15 * row) for row in range(100)]


@pytest.mark.parametrize(
    ("interval", "jitter"), [("1h", "59min"), ("1s", "999ms"), ("2s", "1s"), ("1mo", "27d")]
)
def test_a_series_increases_strictly_with_any_jitter(interval, jitter):
    count = 5000 if interval != "1mo" else 2000
    options = {"start": "2024-01-31", "interval": interval, "jitter": jitter}
    generated = values("time_series", count, options=options)
    plain = values("time_series", count, options={**options, "jitter": None})
    assert all(before < after for before, after in itertools.pairwise(generated))
    late = [after - before for before, after in zip(plain, generated, strict=True)]
    assert min(late) >= timedelta(0)
    most = {"59min": timedelta(minutes=59), "999ms": timedelta(milliseconds=999), "1s": timedelta(seconds=1)}
    assert max(late) <= most.get(jitter, timedelta(days=27))
    assert len(set(late)) > 1


def test_a_series_of_months_goes_by_the_calendar_from_its_start():
    generated = values("time_series", 4, options={"start": "2024-01-31T08:00:00Z", "interval": "1mo"})
    assert [(day.month, day.day, day.hour) for day in generated] == [
        (1, 31, 8),
        (2, 29, 8),
        (3, 31, 8),
        (4, 30, 8),
    ]


def test_a_series_starts_relative_to_now_and_distant_rows_are_fast():
    assert values("time_series", 1, options={"start": "-1d"}) == [(NOW - timedelta(days=1)).replace(second=0)]
    far = values("time_series", 1, 10**9, options={"start": "2024-01-01", "interval": "1min"})
    assert far == [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=10**9)]


def test_a_series_ends_with_the_year_9999():
    source = bound(
        [{"name": "x", "type": "time_series", "options": {"start": "9999-12-31", "interval": "1h"}}]
    )
    source.check(0, 24)
    with pytest.raises(SpecError) as error:
        source.check(0, 25)
    assert [fault.code for fault in error.value.faults] == ["too_far"]
    assert table(source, 23, 1)["x"] == [datetime(9999, 12, 31, 23, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"interval": "0s"}, {"options.interval": "wrong_value"}),
        ({"interval": "-1h"}, {"options.interval": "wrong_value"}),
        ({"interval": "1mo 1d"}, {"options.interval": "wrong_value"}),
        ({"interval": "often"}, {"options.interval": "bad_duration"}),
        ({"interval": "1h", "jitter": "1h"}, {"options.jitter": "wrong_value"}),
        ({"interval": "1mo", "jitter": "1mo"}, {"options.jitter": "wrong_value"}),
        ({"start": "never"}, {"options.start": "bad_date"}),
        ({"format": "1"}, {"options.format": "bad_format"}),
    ],
)
def test_series_that_do_not_increase_are_rejected(options, expected):
    assert faults("time_series", options) == expected


def test_a_series_is_unique_only_where_its_format_shows_all_of_it():
    assert faults("time_series", {"format": "YYYY-MM-DD"}, unique=True) == {"unique": "not_unique"}
    assert faults("time_series", {"format": "YYYY-MM-DD HH:mm:ss", "interval": "500ms"}, unique=True) == {
        "unique": "not_unique"
    }
    assert faults("time_series", {"format": "YYYY-MM-DD HH:mm:ss"}, unique=True) == {}


@pytest.mark.parametrize(
    ("how", "expected"), [("iso", "PT1H31M4S"), ("clock", "01:31:04"), ("seconds", 5464)]
)
def test_a_duration_is_written_in_three_ways(how, expected):
    assert values("duration", 1, options={"min": "5464s", "max": "5464s", "format": how}) == [expected]


@pytest.mark.parametrize(
    ("length", "expected"), [("0s", "PT0S"), ("60s", "PT1M"), ("2h", "PT2H"), ("30d", "PT720H")]
)
def test_parts_of_a_duration_that_are_nothing_are_left_out(length, expected):
    assert values("duration", 1, options={"min": length, "max": length}) == [expected]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"min": "2h", "max": "1h"}, {"options.min": "min_above_max"}),
        ({"max": "1mo"}, {"options.max": "wrong_value"}),
        ({"min": "-1s"}, {"options.min": "wrong_value"}),
        ({"min": "long"}, {"options.min": "bad_duration"}),
    ],
)
def test_impossible_durations_are_rejected(options, expected):
    assert faults("duration", options) == expected
