"""What every answer carries: request id, version, rates, safety headers; and how the service says it is well."""

from __future__ import annotations

import dataclasses

import pytest

from tests.conftest import close_app
from tests.views.speak import code_of
from webapp import clock, create_app
from webapp.extensions import redis_client
from webapp.monitoring import health

RATE_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")


def test_the_callers_request_id_is_kept_where_well_formed(api):
    assert api().get("/health/live", headers={"X-Request-Id": "my-id.7"}).headers["X-Request-Id"] == "my-id.7"


@pytest.mark.parametrize("sent", ["", "a b", "x" * 129, "<script>", "ä"])
def test_another_request_id_is_replaced_by_ours(api, sent):
    found = api().get("/health/live", headers={"X-Request-Id": sent}).headers["X-Request-Id"]
    assert found.startswith("req_")


def test_the_api_version_is_echoed(api, cast):
    answer = api(cast.edith).get("/me", headers={"Api-Version": "2026-11-21"})
    assert answer.headers["Api-Version"] == "2026-11-21"
    assert api(cast.edith).get("/me").headers["Api-Version"] == "2026-11-21"


def test_an_unknown_api_version_is_400(api, cast):
    answer = api(cast.edith).get("/me", headers={"Api-Version": "2020-01-01"})
    assert (answer.status_code, answer.json["error"]["code"]) == (400, "unsupported_version")
    assert answer.json["error"]["details"]["known"] == ["2026-11-21"]


# --- Headers of every answer --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "who"),
    [("/me", "edith"), ("/projects?limit=0", "edith"), ("/nope", "edith"), ("/me", ""), ("/health/live", "")],
)
def test_every_answer_has_rate_and_safety_headers(api, cast, path, who):
    answer = api(cast.people[who] if who else "").get(path)
    for name in (*RATE_HEADERS, "X-Request-Id", "Api-Version"):
        assert len(answer.headers.getlist(name)) == 1, name
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_answers_to_a_key_are_not_stored_by_shared_caches(api, cast):
    assert api(cast.edith).get("/me").headers["Cache-Control"] == "private, no-cache"


# --- Health -------------------------------------------------------------------------------------------------


def test_readiness_names_what_is_missing(api, cast):
    answer = api(cast.adam).get("/health/ready")
    assert code_of(answer) == (503, "unavailable")
    details = answer.json["error"]["details"]
    assert (details["database"], details["redis"], details["storage"], details["worker"]) == (
        True,
        True,
        True,
        False,
    )
    assert details["request_id"] == answer.headers["X-Request-Id"]


def test_readiness_is_good_once_a_worker_was_heard(api, app, cast):
    with app.app_context():
        health.record_heartbeat(redis_client(), health.WORKER, "host:1", clock.epoch())
        health.record_heartbeat(redis_client(), health.RUNNER, "host:2", clock.epoch())
        health.report_value(redis_client(), health.RUNNER, "host:2", "bubblewrap")
    result = api(cast.adam).get("/health/ready").json
    more = ("version", "engine", "parts", "queues", "oldest_lease_seconds")  # tests/views/test_operation.py
    assert {name: value for name, value in result.items() if name not in more} == {
        "status": "ok",
        "database": True,
        "redis": True,
        "storage": True,
        "worker": True,
        "runner": True,
        "sandbox": "bubblewrap",
    }


class TestWithoutRedis:
    """Redis is away: what must be counted is refused, the process lives."""

    @pytest.fixture
    def app(self, settings):
        created = create_app(dataclasses.replace(settings, redis_url="redis://127.0.0.1:1/0"))
        yield created
        close_app(created)

    def test_the_process_lives(self, api):
        assert api().get("/health/live").status_code == 200

    def test_a_key_is_503_with_retry_after(self, api, cast):
        answer = api(cast.edith).get("/me")
        assert code_of(answer) == (503, "unavailable")
        assert answer.headers["Retry-After"] == "2"
        assert answer.json["error"]["details"]["request_id"] == answer.headers["X-Request-Id"]

    def test_public_pages_still_answer(self, api):
        assert api().get("/openapi.json").status_code == 200

    def test_it_is_not_ready(self, api, cast):
        for caller in (api(), api(cast.adam)):  # whose key cannot be checked
            assert code_of(caller.get("/health/ready")) == (503, "unavailable")
