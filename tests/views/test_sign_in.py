"""Signing in: throttled, the same for everybody, by links that are used once, into sessions that can be ended.

Promise 14 of docs/promises.md.
"""

from __future__ import annotations

import re
import threading
from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.cast import PASSWORD
from webapp import clock, limits
from webapp.access.models import BrowserSession, SignInLink, User
from webapp.accounts.services import sign_in
from webapp.audit.models import AuditEntry
from webapp.extensions import db
from webapp.net import addresses
from webapp.security import passwords


def sign_in_as(browser, email, password=PASSWORD, **how):
    return browser.submit("/sign-in", {"email": email, "password": password}, **how)


def token_of(browser):
    with browser.client.session_transaction() as cookie:
        return cookie.get("sid")


@pytest.fixture
def link(app, cast):
    """A one-time link of Edith's."""
    with app.app_context():
        return "/sign-in/" + sign_in.create_link(db.session.get_one(User, cast.edith.user_id))


def test_the_right_password_opens_the_door(browser, cast):
    edith = browser()
    assert edith.get("/projects").status_code == 303
    answer = sign_in_as(edith, "  Edith@Example.org ")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")
    assert edith.get("/projects").status_code == 200


def test_after_signing_in_one_is_where_one_wanted_to_be(browser, cast):
    answer = browser().submit(
        "/sign-in", {"email": cast.edith.email, "password": PASSWORD, "next": "/projects?q=x"}
    )
    assert answer.headers["Location"] == "/projects?q=x"


@pytest.mark.parametrize(
    "target",
    ["//evil.example.org", "https://evil.example.org", "/\\evil", "javascript:alert(1)", "x", "/a\nb"],
)
def test_sign_in_does_not_redirect_to_other_sites(browser, cast, target):
    answer = browser().submit("/sign-in", {"email": cast.edith.email, "password": PASSWORD, "next": target})
    assert answer.headers["Location"] == "/"


@pytest.mark.parametrize("email", ["edith@example.org", "nobody@example.org", "no address"])
def test_unknown_account_and_wrong_password_get_the_same_response(browser, email):
    answer = sign_in_as(browser(), email, "not the password")
    assert answer.status_code == 422
    assert "The e-mail address or the password is incorrect." in answer.text


def test_an_unknown_account_costs_one_password_check_like_a_known_one(browser, monkeypatch):
    checked = []
    real = passwords.verify

    def spy(password, stored):
        checked.append(stored or passwords._unknown_user_hash())
        return real(password, stored)

    monkeypatch.setattr(passwords, "verify", spy)
    for email in ("edith@example.org", "nobody@example.org", "nora@example.org"):
        sign_in_as(browser(), email, "not the password")
    assert len(checked) == 3
    # The same parameters, so the same time.
    assert len({stored.rsplit("$", 2)[0] for stored in checked}) == 1


def test_the_eleventh_failure_on_an_account_is_429_even_with_the_right_password(browser, cast):
    for _ in range(limits.LOGIN_FAILURES):
        assert sign_in_as(browser(), cast.edith.email, "wrong password").status_code == 422
    refused = sign_in_as(browser(), cast.edith.email)
    assert refused.status_code == 429
    assert 290 <= int(refused.headers["Retry-After"]) <= 301


def test_accounts_that_do_not_exist_get_the_same_response(browser, app):
    for _ in range(limits.LOGIN_FAILURES):
        sign_in_as(browser(), "nobody@example.org", "wrong password")
    assert sign_in_as(browser(), "nobody@example.org").status_code == 429


def test_an_address_that_fails_on_many_accounts_is_closed_and_others_are_not(browser, cast):
    for number in range(limits.LOGIN_FAILURES):
        sign_in_as(browser(), f"guess{number}@example.org", "wrong password")
    assert sign_in_as(browser(), cast.adam.email).status_code == 429
    other = sign_in_as(browser(), cast.adam.email, environ_base={"REMOTE_ADDR": "127.0.0.2"})
    assert other.status_code == 303


def test_the_program_of_a_run_does_not_lock_sign_in_for_others(browser, cast):
    from_a_run = {"environ_base": {"REMOTE_ADDR": addresses.SCENARIO_RUN_ADDRESS}}
    for _ in range(limits.LOGIN_FAILURES + 1):
        assert sign_in_as(browser(), cast.edith.email, "wrong password", **from_a_run).status_code == 403
    assert sign_in_as(browser(), cast.edith.email, **from_a_run).status_code == 403
    assert sign_in_as(browser(), cast.edith.email).status_code == 303


def test_a_good_sign_in_does_not_count_as_a_failure(browser, cast):
    for _ in range(limits.LOGIN_FAILURES + 2):
        assert sign_in_as(browser(), cast.edith.email).status_code == 303


def test_failures_at_the_same_time_do_not_slip_through(browser, cast):
    found = []
    browsers = [browser() for _ in range(14)]

    def attempt(mine):
        found.append(sign_in_as(mine, cast.edith.email, "wrong password").status_code)

    threads = [threading.Thread(target=attempt, args=(b,)) for b in browsers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [422] * 10 + [429] * 4


def test_the_session_changes_at_sign_in_and_nothing_is_carried_over(browser, cast):
    edith = browser()
    edith.get("/sign-in")
    with edith.client.session_transaction() as cookie:
        cookie["planted"] = "by somebody else"
        before = cookie.get("csrf_token")
    sign_in_as(edith, cast.edith.email)
    first = token_of(edith)
    with edith.client.session_transaction() as cookie:
        assert "planted" not in cookie
        assert cookie.get("csrf_token") != before or before is None
    sign_in_as(edith, cast.edith.email)
    assert token_of(edith) != first


def test_signing_out_ends_the_session_on_the_server(app, browser, cast):
    edith = browser(cast.edith)
    stolen = token_of(edith)
    assert edith.submit("/sign-out").status_code == 303
    thief = browser()
    with thief.client.session_transaction() as cookie:
        cookie["sid"] = stolen
    assert thief.get("/projects").status_code == 303


def test_a_session_ended_elsewhere_is_invalid_immediately(app, browser, cast):
    here, there = browser(cast.edith), browser(cast.edith)
    with app.app_context():
        found = db.session.scalars(sa.select(BrowserSession).order_by(BrowserSession.id)).all()
        ended = found[-1].id
    assert here.submit(f"/me/sessions/{ended}", method="DELETE").status_code == 303
    assert there.get("/projects").status_code == 303
    assert here.get("/projects").status_code == 200


def test_users_cannot_end_sessions_of_others(app, browser, cast):
    adam = browser(cast.adam)
    browser(cast.edith)
    with app.app_context():
        ediths = db.session.scalar(
            sa.select(BrowserSession.id).where(BrowserSession.user_id == cast.edith.user_id)
        )
    assert adam.submit(f"/me/sessions/{ediths}", method="DELETE").status_code == 404


@pytest.mark.parametrize("change", ["expires_at", "last_seen_at", "ended_at", "disabled"])
def test_expired_idle_ended_and_disabled_sessions_are_rejected(app, browser, cast, change):
    edith = browser(cast.edith)
    with app.app_context():
        row = db.session.scalars(sa.select(BrowserSession)).one()
        past = clock.now() - timedelta(hours=limits.SESSION_IDLE_HOURS, seconds=1)
        if change == "disabled":
            db.session.get_one(User, cast.edith.user_id).disabled_at = past
        else:
            setattr(row, change, past)
        db.session.commit()
    assert edith.get("/projects").status_code == 303


def test_a_link_signs_in_once(browser, link):
    edith = browser()
    page = edith.get(link)
    assert page.status_code == 200
    assert edith.get("/projects").status_code == 303  # looking at it did not use it
    assert edith.submit(link).headers["Location"] == "/"
    assert edith.get("/projects").status_code == 200
    assert browser().submit(link).status_code == 404


def test_of_many_concurrent_uses_of_a_link_one_succeeds(browser, link):
    browsers, found = [browser() for _ in range(6)], []
    threads = [
        threading.Thread(target=lambda b=b: found.append(b.submit(link).status_code)) for b in browsers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [303] + [404] * 5


def test_an_expired_or_unknown_link_is_404(app, browser, link):
    with app.app_context():
        db.session.scalars(sa.select(SignInLink)).one().expires_at = clock.now()
        db.session.commit()
    assert browser().submit(link).status_code == 404
    assert browser().submit("/sign-in/unknown").status_code == 404


def test_a_new_password_needs_the_old_one_and_ends_other_sessions(app, browser, cast):
    here, there = browser(cast.edith), browser(cast.edith)
    wrong = here.submit("/me/password", {"old_password": "wrong", "new_password": "entirely new words"})
    assert wrong.status_code == 422
    good = here.submit("/me/password", {"old_password": PASSWORD, "new_password": "entirely new words"})
    assert good.status_code == 303
    assert here.get("/projects").status_code == 200
    assert there.get("/projects").status_code == 303
    assert sign_in_as(browser(), cast.edith.email).status_code == 422
    assert sign_in_as(browser(), cast.edith.email, "entirely new words").status_code == 303


@pytest.mark.parametrize("password", ["short", "aaaaaaaaaaaa", "x" * 257])
def test_a_weak_or_endless_new_password_is_422(browser, cast, password):
    answer = browser(cast.edith).submit("/me/password", {"old_password": PASSWORD, "new_password": password})
    assert answer.status_code == 422


@pytest.mark.parametrize("password", ["Password123", "letmein123", "rowsmith2026!", "Edith.example.26"])
def test_a_common_password_is_rejected_and_the_old_one_stays(browser, cast, password):
    here = browser(cast.edith)
    answer = here.submit("/me/password", {"old_password": PASSWORD, "new_password": password})
    assert answer.status_code == 422
    assert re.search("(a few unrelated|several random) words", answer.text)
    assert sign_in_as(browser(), cast.edith.email, password).status_code == 422
    assert sign_in_as(browser(), cast.edith.email).status_code == 303


@pytest.mark.parametrize("password", ["1q2w3e4r5t", "Example.Example1"])
def test_an_invitation_takes_no_password_that_is_tried_first(api, browser, cast, password):
    url = api(cast.adam).post("/invitations", json={"email": "New@Example.org", "role": "viewer"}).json["url"]
    path = url.removeprefix("http://localhost")
    answer = browser().submit(path, {"name": "New", "password": password})
    assert answer.status_code == 422
    assert re.search("(a few unrelated|several random) words", answer.text)
    assert browser().submit(path, {"name": "New", "password": "entirely new words"}).status_code == 303


def test_an_invitation_makes_an_account_and_a_member(app, api, browser, cast):
    url = api(cast.adam).post("/invitations", json={"email": "New@Example.org", "role": "viewer"}).json["url"]
    path = url.removeprefix("http://localhost")
    guest = browser()
    assert "new@example.org" in guest.get(path).text
    assert guest.submit(path, {"name": "New", "password": "entirely new words"}).status_code == 303
    assert guest.get("/projects").status_code == 200
    member = api(cast.adam).get("/members?q=new@").json["items"][0]
    assert (member["role"], member["name"]) == ("viewer", "New")
    assert browser().get(path).status_code == 404


def test_an_invitation_for_an_existing_account_needs_its_password(api, browser, cast):
    path = (
        api(cast.adam)
        .post("/invitations", json={"email": cast.nora.email})
        .json["url"]
        .removeprefix("http://localhost")
    )
    assert browser().submit(path, {"password": "a wrong password"}).status_code == 422
    assert browser().submit(path, {"password": PASSWORD}).status_code == 303


def test_a_revoked_invitation_is_closed(api, browser, cast):
    created = api(cast.adam).post("/invitations", json={"email": "new@example.org"}).json
    assert api(cast.adam).delete(f"/invitations/{created['id']}").status_code == 200
    assert browser().get(created["url"].removeprefix("http://localhost")).status_code == 404


def test_sign_ins_and_failures_are_in_the_trail(app, browser, cast):
    sign_in_as(browser(), cast.edith.email)
    sign_in_as(browser(), cast.edith.email, "wrong password")
    with app.app_context():
        entries = db.session.scalars(sa.select(AuditEntry).where(AuditEntry.action.like("session.%"))).all()
    assert [(e.action, e.address) for e in entries] == [
        ("session.start", "127.0.0.1"),
        ("session.refuse", "127.0.0.1"),
    ]


# --- Forms of other sites ------------------------------------------------------------------------------------


def test_a_form_without_the_csrf_token_is_403(app, browser, cast):
    adam = browser(cast.adam)
    answer = adam.client.post("/teams", data={"name": "X"}, headers={"Accept": adam.ACCEPT})
    assert answer.status_code == 403


def test_a_form_with_anothers_csrf_token_is_403(browser, cast):
    adam, mallory = browser(cast.adam), browser(cast.mallory)
    adam.csrf()
    stolen = {"name": "X", "csrf_token": mallory.csrf()}
    answer = adam.client.post("/teams", data=stolen, headers={"Accept": adam.ACCEPT})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example.org"},
        {"Origin": "null"},
        {"Origin": "http://localhost:81"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_of_another_origin_is_403_even_with_the_token(api, browser, cast, headers):
    adam = browser(cast.adam)
    assert adam.submit("/teams", {"name": "X"}, headers=headers).status_code == 403
    assert api(cast.adam).get("/teams?q=X").json["total"] == 0


def test_a_sign_in_form_of_another_site_is_403(browser, cast):
    answer = sign_in_as(browser(), cast.edith.email, headers={"Origin": "https://evil.example.org"})
    assert answer.status_code == 403


def test_the_method_a_form_means_counts_only_for_forms(api, cast):
    answer = api(cast.adam).post(f"/projects/{cast.side}?_method=DELETE", json={})
    assert answer.status_code == 405


def test_switching_the_project_only_affects_this_browser(api, browser, cast):
    here, there = browser(cast.edith), browser(cast.edith)
    assert here.submit("/session/project", {"project_id": cast.side}).status_code == 303
    from webapp.accounts.services import identity

    with here.app.app_context():
        assert identity.authenticate_session(token_of(here), "", "").project_id == cast.side
        assert identity.authenticate_session(token_of(there), "", "").project_id == cast.main
    assert here.submit("/session/project", {"project_id": cast.mallorys}).status_code == 404


@pytest.fixture
def without_password(app, cast):
    """Edith's account as the one-time link of a new service finds it."""
    with app.app_context():
        db.session.get_one(User, cast.edith.user_id).password_hash = None
        db.session.commit()


def test_the_first_sign_in_asks_for_a_password(browser, cast, link, without_password):
    edith = browser()
    where = edith.submit(link).headers["Location"]
    assert where == "/welcome"
    assert "Choose a password" in edith.get(where).text
    assert edith.submit(where, {"name": "Edith", "new_password": "short"}).status_code == 422
    chosen = "a stable full of horses"
    answer = edith.submit(where, {"name": "Edith the first", "new_password": chosen})
    assert answer.headers["Location"] == "/"
    assert edith.get("/welcome").status_code == 303
    assert sign_in_as(browser(), cast.edith.email, chosen).status_code == 303


def test_the_password_can_be_set_later(browser, link, without_password):
    edith = browser()
    edith.submit(link)
    assert edith.get("/").status_code == 200
