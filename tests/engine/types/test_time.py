"""Dates and times are within their bounds, relative to the request's now, and formatted as requested."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.test_random import chi_square
from tests.engine.types.made import NOW, assert_unique, bound, faults, table, values
from webapp.engine import groups
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse

TODAY = NOW.date()


def at(now: datetime, kind: str, options: dict, count: int = 500) -> list:
    plan = compile_plan(
        groups.assign(parse([{"name": "x", "type": kind, "options": options}])), vocabulary.open_default()
    )
    return table(BoundPlan(plan, GenerationContext("a seed", now)), 0, count)["x"]


def test_a_date_is_within_the_last_ten_years_by_default():
    found = values("date", 40_000)
    assert min(found) == date(2016, 1, 31)
    assert max(found) == TODAY


def test_relative_bounds_depend_only_on_now():
    options = {"min": "-3d", "max": "+2d"}
    assert set(at(NOW, "date", options)) == {TODAY + timedelta(days) for days in range(-3, 3)}
    later = NOW + timedelta(days=1000)
    assert set(at(later, "date", options)) == {later.date() + timedelta(days) for days in range(-3, 3)}
    fixed = {"min": "2020-01-01", "max": "2020-12-31"}
    assert at(NOW, "date", fixed) == at(later, "date", fixed)


@settings(max_examples=50, deadline=None)
@given(st.dates(date(1, 1, 1), date(9999, 12, 31)), st.integers(0, 100_000))
def test_dates_stay_between_their_ends(low, width):
    high = min(low.toordinal() + width, date.max.toordinal())
    options = {"min": low.isoformat(), "max": date.fromordinal(high).isoformat()}
    found = values("date", 100, options=options)
    assert low <= min(found) <= max(found) <= date.fromordinal(high)


def test_every_day_is_as_likely():
    found = values("date", 60_000, options={"min": "2023-12-30", "max": "2024-03-02"})
    counts = np.unique(np.array(found), return_counts=True)[1]
    assert counts.size == 64
    assert abs(chi_square(counts, 60_000 / 64)) < 4


def test_recent_bias_halves_every_half_life():
    options = {"distribution": "recent_bias", "halflife_days": 10, "min": "-200d", "max": "today"}
    back = np.array([(TODAY - day).days for day in values("date", 60_000, options=options)])
    assert 0 == back.min() < back.max() <= 200
    expected = 0.5 ** (np.arange(201) / 10)
    expected *= 60_000 / expected.sum()
    often = expected > 20
    assert abs(chi_square(np.bincount(back, minlength=201)[often], expected[often])) < 4


@pytest.mark.parametrize("half_life", [0.0001, 1e6, 1e10, 2**53 - 1])
def test_any_half_life_is_carried(half_life):
    options = {"distribution": "recent_bias", "halflife_days": half_life, "min": "-9d", "max": "today"}
    found = set(values("date", 500, options=options))
    assert found == ({TODAY} if half_life < 1 else {TODAY - timedelta(days) for days in range(10)})


def test_normal_dates_are_mostly_in_the_middle():
    options = {"distribution": "normal", "min": "2020-01-01", "max": "2022-12-31"}
    found = np.array([day.toordinal() for day in values("date", 20_000, options=options)])
    low, high = date(2020, 1, 1).toordinal(), date(2022, 12, 31).toordinal()
    assert abs(found.mean() - (low + high) / 2) < 4 * found.std() / math.sqrt(20_000)
    assert abs(found.std() / ((high - low + 1) / 6) - 0.986) < 0.02  # cut at three deviations
    assert low <= found.min() <= found.max() <= high


@pytest.mark.parametrize("source", ["DD.MM.YYYY", "%d.%m.%Y"])
@pytest.mark.parametrize("low", ["2020-01-01", "1700-01-01"])
def test_a_date_is_written_in_either_spelling_of_a_format(source, low):
    plain = values("date", 300, options={"min": low, "max": "2026-01-01"})
    spelled = values("date", 300, options={"min": low, "max": "2026-01-01", "format": source})
    assert spelled == [day.strftime("%d.%m.") + f"{day.year:04d}" for day in plain]
    few = values("date", 5, start=100, options={"min": low, "max": "2026-01-01", "format": source})
    assert few == spelled[100:105]


def test_a_written_date_knows_its_length():
    source = bound([{"name": "x", "type": "date", "options": {"format": "dddd, D MMMM YYYY"}}])
    longest = int(source.schema.field("x").metadata[b"max_length"])
    assert max(map(len, table(source, 0, 5000)["x"])) <= longest


def test_unique_dates_fill_their_span():
    assert_unique({"name": "x", "type": "date", "options": {"min": "-99d", "max": "today"}}, 100)
    source = bound([{"name": "x", "type": "date", "options": {"min": "2026-01-01"}, "unique": True}])
    source.check(0, 31)
    with pytest.raises(SpecError) as error:
        source.check(0, 32)
    assert "31 exist" in error.value.faults[0].message


@pytest.mark.parametrize(
    ("kind", "source", "refused"),
    [
        ("date", "YYYY-MM", True),
        ("date", "YYYYMD", True),
        ("date", "YY-MM-DD", True),
        ("date", "D/M/YYYY", False),
        ("date", "MMM D, YYYY", False),
        ("date", "YYYY-DDDD", False),
        ("datetime", "YYYY-MM-DD HH:mm", True),
        ("datetime", "YYYY-MM-DD hh:mm:ss", True),
        ("datetime", "YYYY-MM-DD hh:mm:ss A", False),
        ("datetime", "X", False),
        ("time", "HH:mm", True),
        ("time", "h:mm:ss a", False),
    ],
)
def test_a_format_that_leaves_something_out_cannot_be_unique(kind, source, refused):
    expected = {"unique": "not_unique"} if refused else {}
    assert faults(kind, {"format": source}, unique=True) == expected


def test_a_datetime_is_a_second_in_utc():
    assert bound([{"name": "x", "type": "datetime"}]).schema.field("x").type == pa.timestamp("us", "UTC")
    found = values("datetime", 20_000)
    assert datetime(2016, 1, 31, 23, 59, tzinfo=UTC) <= min(found) < max(found) <= NOW
    assert {moment.microsecond for moment in found} == {0}
    assert {moment.second for moment in found} == set(range(60))


def test_an_end_date_without_a_time_includes_the_whole_day():
    found = values("datetime", 5000, options={"min": "2024-02-29", "max": "2024-02-29"})
    assert min(found) < datetime(2024, 2, 29, 0, 1, tzinfo=UTC)
    assert datetime(2024, 2, 29, 23, 58, tzinfo=UTC) < max(found) < datetime(2024, 3, 1, tzinfo=UTC)


def test_past_sets_the_side_of_now():
    assert max(values("datetime", 2000, options={"past": True})) <= NOW
    assert min(values("datetime", 2000, options={"past": False})) >= NOW
    near = values("datetime", 2000, options={"past": False, "max": "+1h"})
    assert NOW <= min(near) <= max(near) <= NOW + timedelta(hours=1)
    assert faults("datetime", {"past": True, "max": "-1d"}) == {"options.past": "conflict"}
    assert faults("datetime", {"past": False, "min": "-1d"}) == {"options.past": "conflict"}


def test_offsets_of_a_time_are_counted():
    options = {"min": "2024-01-01T02:00:00+02:00", "max": "2024-01-01T00:00:00Z"}
    assert set(values("datetime", 10, options=options)) == {datetime(2024, 1, 1, tzinfo=UTC)}


def test_a_datetime_has_the_requested_format():
    plain = values("datetime", 300)
    spelled = values("datetime", 300, options={"format": "%Y-%m-%d %I:%M:%S %p"})
    assert spelled == [moment.strftime("%Y-%m-%d %I:%M:%S %p") for moment in plain]


def test_a_time_keeps_to_its_hours():
    found = values("time", 5000, options={"min": "08:30", "max": "17:00:05"})
    assert time(8, 30) <= min(found) <= max(found) <= time(17, 0, 5)
    assert set(values("time", 50, options={"min": "7:00", "max": "07:00:00"})) == {time(7)}
    spelled = values("time", 300, options={"format": "h:mm A"})
    assert spelled == [moment.strftime("%I:%M %p").removeprefix("0") for moment in values("time", 300)]


def test_an_epoch_counts_seconds_or_milliseconds():
    options = {"min": "2024-01-01", "max": "2024-01-01T00:00:01Z"}
    start = 1_704_067_200
    assert set(values("epoch", 100, options=options)) == {start, start + 1}
    found = values("epoch", 5000, options={**options, "unit": "milliseconds"})
    assert 1000 * start <= min(found) <= max(found) < 1000 * (start + 2)
    assert len(set(found)) > 1500
    assert_unique({"name": "x", "type": "epoch", "options": {**options, "unit": "milliseconds"}}, 2000)


def test_months_and_weekdays_have_english_names():
    assert len(set(values("month"))) == 12
    assert set(values("weekday", options={"abbr": True})) == {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
    assert_unique({"name": "x", "type": "month"}, 12)


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("date", {"min": "2024-05-05", "max": "2024-05-01"}, {"options.min": "min_above_max"}),
        ("date", {"min": "+1d", "max": "-1d"}, {"options.min": "min_above_max"}),
        ("date", {"min": "+1d"}, {"options.min": "min_above_max"}),
        ("date", {"min": "2030-01-01", "max": "now"}, {"options.min": "min_above_max"}),
        (
            "date",
            {"min": "soon", "max": "2024-02-30"},
            {"options.min": "bad_date", "options.max": "bad_date"},
        ),
        ("date", {"max": "-5000y"}, {"options.max": "bad_date"}),
        ("date", {"format": "HH:mm"}, {"options.format": "not_for_this_type"}),
        ("date", {"format": "nothing here"}, {"options.format": "not_for_this_type"}),
        ("date", {"format": "xx"}, {"options.format": "bad_format"}),
        ("date", {"format": "%Q"}, {"options.format": "bad_format"}),
        ("date", {"halflife_days": 3}, {"options.halflife_days": "not_for_this_distribution"}),
        (
            "date",
            {"distribution": "recent_bias", "halflife_days": 0, "format": "xx"},
            {"options.halflife_days": "wrong_value", "options.format": "bad_format"},
        ),
        ("date", {"distribution": "zipf"}, {"options.distribution": "literal_error"}),
        ("time", {"min": "18:00", "max": "17:00"}, {"options.min": "min_above_max"}),
        ("time", {"min": "25:00"}, {"options.min": "bad_time"}),
        ("time", {"format": "YYYY"}, {"options.format": "not_for_this_type"}),
        ("epoch", {"unit": "days"}, {"options.unit": "literal_error"}),
        ("datetime", {"min": "now+1h"}, {"options.min": "min_above_max"}),
    ],
)
def test_meaningless_options_are_rejected_with_their_path(kind, options, expected):
    assert faults(kind, options) == expected


def test_a_distribution_of_dates_cannot_be_unique():
    assert faults("date", {"distribution": "recent_bias"}, unique=True) == {"unique": "not_unique"}
