"""Requests a minute: exact, by workspace, told in every answer."""

from __future__ import annotations

import threading
import time

import pytest

from webapp import limits
from webapp.access import actors
from webapp.access.models import Membership
from webapp.accounts.services import workspaces
from webapp.extensions import write_session


def rate(app, workspace_id, number):
    with app.app_context():
        workspaces.change_workspace(
            actors.system_actor(workspace_id),
            {"plan": "enterprise", "own_limits": {"requests_per_minute": number}},
        )


def test_the_61st_request_of_a_minute_on_free_is_429_with_retry_after(api, cast):
    mallory = api(cast.mallory)
    for left in range(59, -1, -1):
        answer = mallory.get("/me")
        assert answer.status_code == 200
        assert answer.headers["X-RateLimit-Remaining"] == str(left)
    refused = mallory.get("/me")
    assert (refused.status_code, refused.json["error"]["code"]) == (429, "rate_limited")
    assert 55 <= int(refused.headers["Retry-After"]) <= 61
    assert refused.headers["X-RateLimit-Limit"] == "60"
    assert refused.headers["X-RateLimit-Remaining"] == "0"
    assert 55 <= int(refused.headers["X-RateLimit-Reset"]) - time.time() <= 62


def test_one_workspace_does_not_spend_anothers_requests(app, api, cast):
    rate(app, cast.acme, 1)
    assert [api(cast.edith).get("/me").status_code for _ in range(2)] == [200, 429]
    assert api(cast.mallory).get("/me").status_code == 200


def test_all_keys_and_sessions_of_a_workspace_share_its_requests(app, api, browser, cast):
    rate(app, cast.acme, 3)
    signed_in = browser(cast.adam)
    assert api(cast.edith).get("/me").status_code == 200
    assert api(cast.victor).get("/nope").status_code == 404
    assert signed_in.get("/projects").status_code == 200
    assert signed_in.get("/projects").status_code == 429
    assert api(cast.olivia).get("/me").status_code == 429


def test_errors_spend_a_request_too(app, api, cast):
    rate(app, cast.acme, 2)
    for path in ("/nope", "/projects?limit=0"):
        assert api(cast.edith).get(path).status_code in (400, 404)
    assert api(cast.edith).get("/me").status_code == 429


def test_those_without_a_credential_share_their_addresss_requests(app, api, monkeypatch):
    monkeypatch.setattr(limits, "ADDRESS_REQUESTS_PER_MINUTE", 2)
    assert api().get("/me").status_code == 401
    assert api("rws_wrong").get("/me").status_code == 401
    refused = api().get("/me")
    assert (refused.status_code, refused.json["error"]["code"]) == (429, "rate_limited")
    assert "Retry-After" in refused.headers


def test_a_good_key_is_not_held_up_by_its_addresss_failures(app, api, cast, monkeypatch):
    monkeypatch.setattr(limits, "ADDRESS_REQUESTS_PER_MINUTE", 1)
    assert [api().get("/me").status_code for _ in range(2)] == [401, 429]
    assert api(cast.edith).get("/me").status_code == 200


def test_a_removed_members_key_does_not_use_up_the_workspaces_requests(app, api, cast, monkeypatch):
    """Each of its requests counts for its address, as those of a revoked key do."""
    edith, olivia = api(cast.edith), api(cast.olivia)
    assert edith.get("/me").status_code == 200
    [whole] = olivia.get(f"/members?user_id={cast.edith.user_id}").json["items"]
    assert olivia.delete(f"/members/{whole['id']}?everywhere=true").status_code == 200
    rate(app, cast.acme, 12)
    for _ in range(40):
        assert edith.get("/templates").status_code == 403
    last = edith.get("/templates")
    assert last.headers["X-RateLimit-Limit"] == str(limits.ADDRESS_REQUESTS_PER_MINUTE)
    assert olivia.get("/templates").status_code == 200
    monkeypatch.setattr(limits, "ADDRESS_REQUESTS_PER_MINUTE", 10)
    assert edith.get("/templates").status_code == 429


def test_a_member_who_comes_back_uses_the_workspaces_requests_again(app, api, cast):
    edith, olivia = api(cast.edith), api(cast.olivia)
    [whole] = olivia.get(f"/members?user_id={cast.edith.user_id}").json["items"]
    olivia.delete(f"/members/{whole['id']}?everywhere=true")
    assert edith.get("/templates").status_code == 403
    with app.app_context(), write_session() as session:
        session.add(Membership(workspace_id=cast.acme, user_id=cast.edith.user_id, role="editor"))
    before = int(edith.get("/templates").headers["X-RateLimit-Remaining"])
    assert int(edith.get("/templates").headers["X-RateLimit-Remaining"]) == before - 1
    assert edith.get("/templates").headers["X-RateLimit-Limit"] == "6000"


def test_health_spends_nothing(api, monkeypatch):
    monkeypatch.setattr(limits, "ADDRESS_REQUESTS_PER_MINUTE", 1)
    assert {api().get("/health/live").status_code for _ in range(5)} == {200}


def test_many_concurrent_threads_get_exactly_the_limit(app, api, cast):
    rate(app, cast.acme, 25)
    found = []

    def call():
        mine = api(cast.edith)
        found.extend(mine.get("/me").status_code for _ in range(5))

    threads = [threading.Thread(target=call) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [200] * 25 + [429] * 55


def test_a_changed_plan_holds_from_the_next_request_on(api, cast):
    assert api(cast.olivia).get("/me").headers["X-RateLimit-Limit"] == "6000"
    assert api(cast.olivia).patch("/workspace", json={"plan": "free"}).status_code == 200
    assert api(cast.olivia).get("/me").headers["X-RateLimit-Limit"] == "60"


@pytest.mark.parametrize("path", ["/health/live", "/openapi.json"])
def test_public_answers_tell_the_addresss_rate(api, path):
    assert api().get(path).headers["X-RateLimit-Limit"] == str(limits.ADDRESS_REQUESTS_PER_MINUTE)
