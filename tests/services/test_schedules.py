"""When a schedule is due: cron expressions in time zones, over changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.scenarios.services import schedules

BERLIN = ZoneInfo("Europe/Berlin")  # 2026: forward on 29 March at 01:00Z, back on 25 October at 01:00Z


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def times(cron, zone, after, count):
    found, moment = [], at(after)
    for _ in range(count):
        moment = schedules.following(cron, zone, moment)
        found.append(moment.strftime("%d %H:%M"))
    return found


def test_a_time_is_that_of_the_wall_in_summer_and_winter():
    assert times("30 6 * * *", BERLIN, "2026-03-27T12:00", 3) == ["28 05:30", "29 04:30", "30 04:30"]
    assert times("30 6 * * *", BERLIN, "2026-10-23T12:00", 3) == ["24 04:30", "25 05:30", "26 05:30"]


def test_a_time_that_the_clock_skips_comes_once_at_the_change():
    assert times("30 2 * * *", BERLIN, "2026-03-27T12:00", 3) == ["28 01:30", "29 01:00", "30 00:30"]
    assert times("0,15,30 2 * * *", BERLIN, "2026-03-28T12:00", 3) == ["29 01:00", "30 00:00", "30 00:15"]


def test_a_time_that_occurs_twice_is_only_due_the_first_time():
    assert times("30 2 * * *", BERLIN, "2026-10-23T12:00", 3) == ["24 00:30", "25 00:30", "26 01:30"]
    assert times("*/30 2,3 * * *", BERLIN, "2026-10-24T12:00", 5) == [
        "25 00:00",
        "25 00:30",
        "25 02:00",
        "25 02:30",
        "26 01:00",
    ]


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
@pytest.mark.parametrize(("cron", "minutes"), [("0 * * * *", 60), ("*/15 * * * *", 15), ("* * * * *", 1)])
def test_hours_that_are_not_named_go_by_as_they_are(day, cron, minutes):
    found, moment = [], at(f"{day}T00:00") - timedelta(hours=1)
    while moment < at(f"{day}T04:00"):
        moment = schedules.following(cron, BERLIN, moment)
        found.append(moment)
    assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(minutes=minutes)}


def test_a_clock_that_moves_by_half_an_hour_is_followed():
    lord_howe = ZoneInfo("Australia/Lord_Howe")  # 2026-10-04: 02:00 becomes 02:30, at 15:30Z the day before
    assert times("15 2 * * *", lord_howe, "2026-10-02T00:00", 3) == ["02 15:45", "03 15:30", "04 15:15"]


def test_a_day_that_a_zone_leaves_out_is_made_up_for_once():
    apia = ZoneInfo("Pacific/Apia")  # 30 December 2011 was not
    found = times("0 12 * * *", apia, "2011-12-28T23:00", 4)
    assert found == ["29 22:00", "30 10:00", "30 22:00", "31 22:00"]


ZONES = (
    "Europe/Berlin",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "UTC",
    "America/Havana",
)


@given(
    st.sampled_from(ZONES),
    st.sampled_from(
        ["*/20 * * * *", "30 2 * * *", "0 0 * * *", "59 23 * * 0", "15 1-3 * * *", "5 */6 1,29 * *"]
    ),
    st.integers(0, 10 * 365 * 86_400),
)
def test_the_next_time_is_later_and_none_is_skipped(zone, cron, seconds):
    after = at("2020-01-01T00:00") + timedelta(seconds=seconds)
    found = schedules.following(cron, ZoneInfo(zone), after)
    assert found > after
    middle = after + (found - after) / 2
    assert schedules.following(cron, ZoneInfo(zone), middle) == found
    assert schedules.following(cron, ZoneInfo(zone), found - timedelta(seconds=1)) == found


@pytest.mark.parametrize("cron", ["0 0 29 2 *", "0 12 * * MON-FRI", "0 0 l * *", "*/5 8-18/2 1,15 jan-jun ?"])
def test_all_that_five_fields_can_say_is_taken(cron):
    assert schedules.cron_fault(cron) is None


@pytest.mark.parametrize(
    ("cron", "code"),
    [
        ("", "invalid"),
        ("* * * *", "invalid"),
        ("* * * * * *", "invalid"),
        ("@daily", "invalid"),
        ("60 * * * *", "invalid"),
        ("H * * * *", "invalid"),
        ("R(0-5) * * * *", "invalid"),
        ("* * * * fre", "invalid"),
        ("*/0 * * * *", "invalid"),
        ("5-1 * * foo *", "invalid"),
        ("0 0 30 2 *", "never"),
        ("1," * 60 + "1 * * * *", None),
    ],
)
def test_an_invalid_schedule_is_reported(cron, code):
    fault = schedules.cron_fault(cron)
    assert (fault.code if fault else None) == code
    if cron == "@daily":
        assert "0 0 * * *" in fault.hint


def test_a_schedule_that_is_off_is_never_due():
    schedule = {"cron": "* * * * *", "timezone": "UTC", "enabled": False, "params": {}}
    assert schedules.next_run(schedule, at("2026-01-01T00:00")) is None
    assert schedules.next_run({**schedule, "enabled": True}, at("2026-01-01T00:00")) == at("2026-01-01T00:01")
    assert schedules.next_run(None, at("2026-01-01T00:00")) is None
    assert (
        schedules.next_run({**schedule, "enabled": True, "timezone": "Gone/Zone"}, at("2026-01-01T00:00"))
        is None
    )
