"""A generate call counts one request and its rows, exactly, and a rejected call counts no rows."""

from __future__ import annotations

import threading

import pytest

from tests.cast import Cast
from tests.views.test_rates import rate
from webapp import quotas
from webapp.access import actors
from webapp.extensions import redis_client
from webapp.rate_limiting import RateLimiter
from webapp.row_templates.services import templates

FIELDS = [{"name": "n", "type": "row_number"}]


@pytest.fixture
def template(api, cast: Cast) -> str:
    """A template whose plan, and Edith's key, this process remembers."""
    created = api(cast.edith).post("/templates", json={"name": "t", "fields": FIELDS})
    found = created.json["id"]
    assert ask(api, cast, found).status_code == 200
    return found


def ask(api, cast, template, **body):
    return api(cast.edith).post(f"/templates/{template}/generate", json={"count": 10, **body})


def used(app, cast) -> int:
    with app.app_context():
        return quotas.rows_used(cast.acme, 10**9)


@pytest.fixture
def operations(monkeypatch) -> list[str]:
    """Operations of the rate limiter, in order."""
    calls = []
    for name in ("hit", "reserve_rows"):
        own = getattr(RateLimiter, name)
        monkeypatch.setattr(
            RateLimiter,
            name,
            lambda self, *value, _own=own, _name=name: calls.append(_name) or _own(self, *value),
        )
    return calls


def test_a_generate_call_is_rate_limited_once_and_reserves_its_rows_once(api, cast, template, operations):
    answer = ask(api, cast, template)
    assert (answer.status_code, operations) == (200, ["hit", "reserve_rows"])
    assert int(answer.headers["X-RateLimit-Remaining"]) == int(answer.headers["X-RateLimit-Limit"]) - 3


def test_each_answer_counts_one_request_and_its_rows(app, api, cast, template):
    before = used(app, cast)
    left = [int(ask(api, cast, template).headers["X-RateLimit-Remaining"]) for _ in range(3)]
    assert left == [left[0], left[0] - 1, left[0] - 2]
    assert used(app, cast) - before == 30


@pytest.mark.parametrize(
    ("body", "status"), [({"count": -1}, 422), ({"strange": 1}, 422), ({"overrides": {"x": 1}}, 422)]
)
def test_an_invalid_request_counts_one_request_and_no_rows(app, api, cast, template, body, status):
    before, left = used(app, cast), int(ask(api, cast, template).headers["X-RateLimit-Remaining"])
    answer = ask(api, cast, template, **body)
    assert (answer.status_code, int(answer.headers["X-RateLimit-Remaining"])) == (status, left - 1)
    assert used(app, cast) - before == 10


def test_requests_over_the_rate_limit_are_429_before_validation(app, api, cast, template):
    rate(app, cast.acme, 3)
    assert ask(api, cast, template).status_code == 200
    before = used(app, cast)
    for body in ({}, {"count": -1}, {"overrides": {"x": 1}}):
        refused = ask(api, cast, template, **body)
        assert (refused.status_code, refused.json["error"]["code"]) == (429, "rate_limited")
        assert refused.headers["X-RateLimit-Remaining"] == "0"
    assert used(app, cast) == before


def test_a_request_over_the_row_quota_is_rejected_and_counted(app, api, cast, template, monkeypatch):
    ask(api, cast, template)
    left = int(ask(api, cast, template).headers["X-RateLimit-Remaining"])
    monkeypatch.setattr(quotas, "check_rows", lambda actor, rows: None)
    refused = ask(api, cast, template, count=10**12)
    assert refused.json["error"]["code"] == "quota_exceeded"
    assert int(refused.headers["X-RateLimit-Remaining"]) == left - 1


def test_a_revoked_key_generates_no_more_rows(app, api, cast, template):
    before = used(app, cast)
    assert api(cast.adam).delete(f"/api-keys/{cast.edith.key_id}").status_code == 200
    refused = ask(api, cast, template)
    assert (refused.status_code, refused.json["error"]["details"]["reason"]) == (401, "revoked")
    assert used(app, cast) == before


def test_changed_permissions_are_read_again_and_the_call_succeeds(app, api, cast, template, operations):
    with app.app_context():
        redis_client().set(actors.epoch_key(cast.acme), "another")
    assert ask(api, cast, template).status_code == 200
    assert operations == ["hit", "hit", "reserve_rows"]
    assert ask(api, cast, template).status_code == 200
    assert operations[3:] == ["hit", "reserve_rows"]


def test_rows_are_restored_from_the_audit_log_after_redis_was_emptied(app, api, cast, template):
    with app.app_context():
        redis_client().flushdb()
    assert ask(api, cast, template).status_code == 200
    assert used(app, cast) >= 20


def test_no_plan_is_compiled_for_a_request_over_the_rate_limit(app, api, cast, template, monkeypatch):
    rate(app, cast.acme, 3)
    assert ask(api, cast, template).status_code == 200
    monkeypatch.setattr(templates, "loader", lambda *_: pytest.fail("compiled"))
    assert ask(api, cast, template, locale="de").status_code == 429


def test_a_patch_is_seen_by_the_next_call(api, cast, template):
    fields = [{"name": "other", "type": "row_number"}]
    assert api(cast.edith).patch(f"/templates/{template}", json={"fields": fields}).status_code == 200
    assert list(ask(api, cast, template).json[0]) == ["other"]


def test_parallel_calls_get_exactly_the_rate_limit_and_its_rows(app, api, cast, template):
    rate(app, cast.acme, 27)
    assert ask(api, cast, template).status_code == 200
    before, found = used(app, cast), []

    def call():
        found.extend(ask(api, cast, template).status_code for _ in range(5))

    threads = [threading.Thread(target=call) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {200, 429}
    assert used(app, cast) - before == 10 * found.count(200)
    assert found.count(200) == 24
