"""Rows per hour: never exceeded, given back, remembered when Redis is emptied."""

from __future__ import annotations

import dataclasses
import threading

import pytest

from webapp import limits, quotas
from webapp.access import actors
from webapp.audit.services import audit_log
from webapp.errors import ApiError
from webapp.extensions import redis_client
from webapp.limits import PlanLimits


@pytest.fixture
def actor(app, cast):
    """Edith, under a small plan."""
    with app.app_context():
        found = actors.system_actor(cast.acme, cast.main, cast.blue)
        yield dataclasses.replace(found, limits=PlanLimits(60, 10_000, 100_000), user_id=cast.edith.user_id)


def refusal(actor, rows):
    with pytest.raises(ApiError) as caught:
        quotas.reserve_rows(actor, rows)
    return caught.value


def test_rows_of_the_hour_are_never_exceeded(actor):
    quotas.reserve_rows(actor, 9_999)
    error = refusal(actor, 2)
    assert (error.status, error.code) == (429, "quota_exceeded")
    assert error.details["used"] == 9_999
    assert error.headers["Retry-After"] == str(error.details["retry_after"])
    assert 3_590 <= error.details["retry_after"] <= 3_602
    quotas.reserve_rows(actor, 1)


def test_more_rows_than_one_call_may_ask_for_is_422_and_costs_nothing(actor):
    error = refusal(actor, 100_001)
    assert (error.status, error.code) == (422, "row_limit_exceeded")
    assert error.details == {"limit": 100_000, "requested": 100_001}
    assert quotas.rows_used(actor.workspace_id, 10_000) == 0


def test_a_cut_stream_gives_its_rows_back(actor):
    taken = quotas.reserve_rows(actor, 10_000)
    left = quotas.return_rows(taken, 9_000)
    assert left.rows == 1_000
    assert quotas.rows_used(actor.workspace_id, 10_000) == 1_000
    assert quotas.return_rows(left, 5_000).rows == 0
    assert quotas.rows_used(actor.workspace_id, 10_000) == 0


def test_threads_together_get_the_limit_and_not_a_row_more(app, actor):
    taken = []

    def take():
        with app.app_context():
            for _ in range(10):
                try:
                    taken.append(quotas.reserve_rows(actor, 130).rows)
                except ApiError:
                    pass

    threads = [threading.Thread(target=take) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 9_880  # 76 times 130


def test_an_emptied_redis_forgets_no_rows(actor):
    quotas.reserve_rows(actor, 4_000)
    audit_log.record(actor, "template.generate", ("template", "tpl_x"), rows=4_000)
    redis_client().flushdb()
    assert quotas.rows_used(actor.workspace_id, 10_000) == 4_000
    assert refusal(actor, 6_001).code == "quota_exceeded"


def test_rows_of_more_than_an_hour_ago_are_not_counted_again(actor, monkeypatch):
    from webapp import clock

    before = clock.epoch() - limits.ROWS_WINDOW_SECONDS - 5
    with monkeypatch.context() as patch:
        patch.setattr(clock, "source", lambda: before)
        audit_log.record(actor, "template.generate", ("template", "tpl_x"), rows=4_000)
    assert quotas.rows_used(actor.workspace_id, 10_000) == 0


def test_one_workspace_does_not_spend_anothers_rows(actor, cast):
    quotas.reserve_rows(actor, 10_000)
    other = dataclasses.replace(actor, workspace_id=cast.mallory_inc)
    assert quotas.reserve_rows(other, 10_000).rows == 10_000
