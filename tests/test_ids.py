"""Ids are a known prefix and a ULID; times are UTC with a Z."""

from __future__ import annotations

import multiprocessing
from datetime import UTC, datetime, timedelta, timezone

import pytest

from webapp import clock, ids


def test_ulid_is_the_number_in_crockfords_letters():
    # The example of the ULID specification: 01ARYZ6S41 is 1469918176385 ms.
    assert ids.ulid(1469918176385, bytes(10)) == "01ARYZ6S41" + "0" * 16
    assert ids.ulid(2**48 - 1, b"\xff" * 10) == "7" + "Z" * 25
    assert ids.ulid(0, (2**80 - 1 - 31).to_bytes(10, "big")) == "0" * 10 + "Z" * 15 + "0"


def test_ids_sort_by_time():
    assert ids.ulid(1, b"\xff" * 10) < ids.ulid(2, bytes(10))


def test_a_new_id_has_its_form():
    result = ids.new("tpl")
    assert len(result) == 30
    assert ids.is_id(result)
    assert ids.is_id(result, "tpl")
    assert not ids.is_id(result, "exp")


@pytest.mark.parametrize(
    "text", ["", "tpl_", "tpl_01ARYZ6S41", "nope_" + "0" * 26, "tpl_" + "I" * 26, "tpl_" + "8" * 26]
)
def test_an_invalid_id_is_not_accepted_as_one(text):
    assert not ids.is_id(text)


def test_a_forked_child_draws_its_own_randomness():
    ids.new("tpl")  # randomness is drawn for several ids in advance
    with multiprocessing.get_context("fork").Pool(1) as child:
        theirs = child.apply(ids.new, ("tpl",))
    assert theirs[-16:] != ids.new("tpl")[-16:]


def test_ids_sort_in_the_order_in_which_they_were_made(monkeypatch):
    moments = [5_000_000, *[5_000_999] * 300, 4_000_000, 6_000_000]  # one of them before the others
    monkeypatch.setattr(ids.time, "time_ns", lambda: moments.pop(0) + 1_800_000_000_000_000_000)
    result = [ids.new("prj") for _ in range(303)]
    assert result == sorted(result)
    assert len(set(result)) == 303


def test_many_ids_are_all_different():
    assert len({ids.new("aud") for _ in range(1000)}) == 1000


def test_an_unknown_prefix_is_rejected():
    with pytest.raises(ValueError, match="prefix"):
        ids.new("xyz")


def test_times_are_utc_and_end_in_z():
    moment = datetime(2026, 11, 21, 5, 0, tzinfo=timezone(timedelta(hours=2)))
    assert clock.to_text(moment) == "2026-11-21T03:00:00Z"
    assert clock.to_text(datetime(2026, 1, 1, microsecond=5, tzinfo=UTC)) == "2026-01-01T00:00:00.000005Z"
    assert clock.to_text(None) is None


def test_a_time_without_zone_is_rejected():
    with pytest.raises(ValueError, match="zone"):
        clock.to_text(datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point
