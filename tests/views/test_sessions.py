"""A person's own sessions: seen and ended, in the browser and by a key that is all its maker is."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.cast import PASSWORD
from webapp import clock, limits
from webapp.access import actors
from webapp.access.models import BrowserSession, User
from webapp.accounts.services import api_keys
from webapp.audit.models import AuditEntry
from webapp.extensions import db


def code(answer):
    return answer.status_code, answer.json["error"]["code"]


@pytest.fixture
def two(browser, cast):
    """Edith in two browsers."""
    return browser(cast.edith), browser(cast.edith)


def test_a_key_lists_only_the_sessions_of_its_user(api, browser, cast, two):
    browser(cast.adam)
    found = api(cast.edith).get("/me/sessions").json
    assert (found["total"], found["next_cursor"]) == (2, None)
    assert sorted(found["items"][0]) == [
        "address", "created_at", "current", "expires_at", "how", "id", "last_seen_at", "two_factor", "user_agent",
    ]  # fmt: skip
    assert [item["current"] for item in found["items"]] == [False, False]


def test_a_key_ends_one_session_and_then_all(api, cast, two):
    edith = api(cast.edith)
    newest = edith.get("/me/sessions").json["items"][0]["id"]
    assert edith.delete(f"/me/sessions/{newest}").json["id"] == newest
    assert [item.get("/projects").status_code for item in two] == [200, 303]
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
def test_a_key_with_scopes_cannot_list_or_end_sessions(app, api, cast, two, scopes):
    with app.app_context():
        here = actors.system_actor(cast.acme, cast.main, cast.blue)
        result = {"api_version": "2026-11-21", "scopes": scopes, "user_id": cast.edith.user_id}
        narrow = api(api_keys.create(here, "narrow", **result)[1])
        some = db.session.scalar(sa.select(BrowserSession.id))
    assert code(narrow.get("/me/sessions")) == (403, "forbidden")
    assert code(narrow.delete("/me/sessions")) == (403, "forbidden")
    assert code(narrow.delete(f"/me/sessions/{some}")) == (403, "forbidden")
    assert [item.get("/projects").status_code for item in two] == [200, 200]


def test_keys_cannot_end_sessions_of_others(app, api, cast, two):
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


# --- Once more, who it is


@pytest.fixture
def left_open(app, two, cast):
    """Edith's two browsers, of which the first signed in half an hour ago; and the address of the second session."""
    with app.app_context():
        found = db.session.scalars(sa.select(BrowserSession).order_by(BrowserSession.id)).all()
        for session in found:
            session.created_at = clock.now() - timedelta(minutes=2 * limits.FRESH_SIGN_IN_MINUTES)
        db.session.commit()
        return f"/me/sessions/{found[-1].id}"


def without_password(app, person):
    with app.app_context():
        db.session.get_one(User, person.user_id).password_hash = None
        db.session.commit()


@pytest.mark.parametrize("everything", [True, False])
def test_an_open_session_cannot_sign_others_out_without_the_password(two, left_open, everything):
    here, there = two
    address = "/me/sessions" if everything else left_open
    assert 'name="password"' in here.get("/me").text
    for data, result in (
        ({}, "This field is required."),
        ({"password": "not the one"}, "This password is incorrect."),
    ):
        answer = here.submit(address, data, method="DELETE")
        assert answer.status_code == 422
        assert result in answer.text
        assert 'id="sessions"' in answer.text
    assert there.get("/projects").status_code == 200
    assert here.submit(address, {"password": PASSWORD}, method="DELETE").status_code == 303
    assert there.get("/projects").status_code == 303
    assert here.get("/projects").status_code == 200


def test_a_recent_sign_in_needs_no_password(two):
    here, _ = two
    assert "Sign out there" not in here.get("/me").text


@pytest.mark.parametrize("way", ["end", "password"])
def test_without_a_password_it_takes_a_sign_in_of_just_now(app, cast, two, left_open, way):
    here, there = two
    without_password(app, cast.edith)
    fresh = {"new_password": "a long one, and mine alone"}
    act = {
        "end": lambda: here.submit(left_open, method="DELETE"),
        "password": lambda: here.submit("/me/password", fresh),
    }[way]
    assert "sign in again here first" in here.get("/me").text
    answer = act()
    assert answer.status_code == 403
    assert "a sign-in in the last 15 minutes" in answer.text
    assert there.get("/projects").status_code == 200
    with app.app_context():
        db.session.execute(sa.update(BrowserSession).values(created_at=clock.now()))
        db.session.commit()
    assert act().status_code == 303
    assert there.get("/projects").status_code == 303


def test_wrong_passwords_close_this_door_too(two, left_open):
    here, _ = two
    for _ in range(limits.LOGIN_FAILURES):
        assert here.submit(left_open, {"password": "wrong"}, method="DELETE").status_code == 422
    answer = here.submit(left_open, {"password": PASSWORD}, method="DELETE")
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0
