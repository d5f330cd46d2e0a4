"""A person's own sessions: seen and ended, in the browser and by a key that is all its maker is."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from webapp import clock
from webapp.extensions import db
from webapp.models import AuditEntry, BrowserSession
from webapp.services import actors, api_keys


def code(answer):
    return answer.status_code, answer.json["error"]["code"]


@pytest.fixture
def two(browser, cast):
    """Edith in two browsers."""
    return browser(cast.edith), browser(cast.edith)


def test_a_key_lists_its_makers_sessions_and_nobody_elses(api, browser, cast, two):
    browser(cast.adam)
    found = api(cast.edith).get("/me/sessions").json
    assert (found["total"], found["next_cursor"]) == (2, None)
    assert sorted(found["items"][0]) == [
        "address", "created_at", "current", "expires_at", "how", "id", "last_seen_at", "two_factor", "user_agent",
    ]  # fmt: skip
    assert [one["current"] for one in found["items"]] == [False, False]


def test_a_key_ends_one_session_and_then_all(api, cast, two):
    edith = api(cast.edith)
    newest = edith.get("/me/sessions").json["items"][0]["id"]
    assert edith.delete(f"/me/sessions/{newest}").json["id"] == newest
    assert [one.get("/projects").status_code for one in two] == [200, 303]
    assert edith.delete("/me/sessions").json == {"ended": 1}
    assert two[0].get("/projects").status_code == 303
    assert edith.delete("/me/sessions").json == {"ended": 0}


def test_the_browser_that_asks_stays(app, two):
    here, there = two
    assert here.submit("/me/sessions", method="DELETE").status_code == 303
    assert "1 other session ended." in here.get("/me").text
    assert there.get("/projects").status_code == 303
    with app.app_context():
        found = db.session.scalars(
            sa.select(AuditEntry).where(AuditEntry.action == "session.end_others")
        ).one()
        assert found.details == {"ended": 1}


@pytest.mark.parametrize("scopes", [["read"], ["read", "write", "admin", "secrets"]])
def test_a_key_with_scopes_sees_and_ends_none(app, api, cast, two, scopes):
    with app.app_context():
        here = actors.system(cast.acme, cast.main, cast.blue)
        made = {"api_version": "2026-11-21", "scopes": scopes, "user_id": cast.edith.user_id}
        narrow = api(api_keys.create(here, "narrow", **made)[1])
        some = db.session.scalar(sa.select(BrowserSession.id))
    assert code(narrow.get("/me/sessions")) == (403, "forbidden")
    assert code(narrow.delete("/me/sessions")) == (403, "forbidden")
    assert code(narrow.delete(f"/me/sessions/{some}")) == (403, "forbidden")
    assert [one.get("/projects").status_code for one in two] == [200, 200]


def test_nobody_ends_anothers_session_by_key(app, api, cast, two):
    with app.app_context():
        some = db.session.scalar(sa.select(BrowserSession.id))
    for other in (cast.adam, cast.olivia, cast.mallory):
        assert code(api(other).delete(f"/me/sessions/{some}")) == (404, "not_found")
        assert api(other).get("/me/sessions").json["total"] == 0


def test_sessions_that_ended_expired_or_idled_out_are_not_listed(app, api, cast, two):
    with app.app_context():
        first, second = db.session.scalars(sa.select(BrowserSession).order_by(BrowserSession.id))
        first.expires_at = clock.now()
        second.last_seen_at = clock.now().replace(year=2020)
        db.session.commit()
    assert api(cast.edith).get("/me/sessions").json["total"] == 0
