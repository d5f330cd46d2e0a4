"""Promise 14. Login: 10 failures in 5 min per account and per address; same answer and time for unknown user and wrong
password; session id changes at login. (`tests/soak/test_login_time.py` measures the time.)"""

from __future__ import annotations

import re

import pytest
from argon2 import PasswordHasher

from tests.cast import PASSWORD
from webapp import limits
from webapp.access.models import User
from webapp.accounts.services import sign_in
from webapp.extensions import db
from webapp.security import passwords

HERE, THERE = ({"environ_base": {"REMOTE_ADDR": address}} for address in ("127.0.0.1", "127.0.0.2"))


def login(browser, email, password="wrong password", where=HERE):
    return browser().submit("/sign-in", {"email": email, "password": password}, **where)


def test_the_promised_numbers_are_the_limits():
    assert (limits.LOGIN_FAILURES, limits.LOGIN_WINDOW_SECONDS) == (10, 300)


@pytest.mark.parametrize("email", ["edith@example.org", "nobody@example.org"])
def test_login_10_failures_in_5_min_per_account(browser, email):
    ways = [HERE, THERE] * 5
    assert [login(browser, email, where=where).status_code for where in ways] == [422] * 10
    elsewhere = {"environ_base": {"REMOTE_ADDR": "127.0.0.3"}}
    assert login(browser, email, PASSWORD, elsewhere).status_code == 429


def test_login_10_failures_in_5_min_per_address(browser, cast):
    found = [login(browser, f"guess{number}@example.org").status_code for number in range(10)]
    assert found == [422] * 10
    assert login(browser, cast.adam.email, PASSWORD).status_code == 429
    assert login(browser, cast.adam.email, PASSWORD, THERE).status_code == 303


def test_login_failures_are_forgotten_after_5_min(app, browser, cast):
    for _ in range(limits.LOGIN_FAILURES):
        login(browser, cast.edith.email)
    client = app.extensions["rowsmith.redis"]
    for log in list(client.scan_iter("rowsmith:sign-in:*")):
        older = [int(at) - limits.LOGIN_WINDOW_SECONDS * 1_000_000 for at in client.lrange(log, 0, -1)]
        client.delete(log)
        client.rpush(log, *older)
    assert login(browser, cast.edith.email, PASSWORD).status_code == 303


def test_same_answer_for_unknown_user_and_wrong_password(browser):
    answers = [
        login(browser, email) for email in ("edith@example.org", "nobody@example.org", "nora@example.org")
    ]
    assert [answer.status_code for answer in answers] == [422] * 3
    texts = {
        re.sub(r'value="[^"]*"', "", answer.text) for answer in answers
    }  # the address as typed, the form's token
    assert len(texts) == 1
    assert len({tuple(sorted({name for name, _ in answer.headers})) for answer in answers}) == 1


def test_same_work_for_unknown_user_and_wrong_password(app, browser, cast, monkeypatch):
    """Argon2 runs once with the same parameters for all users: a known, an unknown, a closed account, one without a
    password, one with a second factor."""
    with app.app_context():
        db.session.get_one(User, cast.victor.user_id).disabled_at = db.session.get_one(
            User, cast.adam.user_id
        ).created_at
        db.session.get_one(User, cast.tessa.user_id).password_hash = None
        db.session.commit()
    work = []

    class Watched(PasswordHasher):
        def verify(self, stored, password):
            work.append(stored.rsplit("$", 2)[0])
            return super().verify(stored, password)

    result = Watched(
        time_cost=limits.ARGON2_PASSES, memory_cost=limits.ARGON2_MEMORY_KIB, parallelism=limits.ARGON2_LANES
    )
    monkeypatch.setattr(passwords, "_hasher", result)
    passwords._unknown_user_hash.cache_clear()
    people = (
        "edith@example.org",
        "nobody@example.org",
        "victor@example.org",
        "tessa@example.org",
        "no address",
    )
    for email in people:
        assert login(browser, email).status_code == 422
    assert len(work) == len(people)
    assert len(set(work)) == 1


def test_session_id_changes_at_login(app, browser, cast):
    """By password and by link; the one before has ended, so it is of no use to who planted or stole it."""
    with app.app_context():
        link = "/sign-in/" + sign_in.create_link(db.session.get_one(User, cast.edith.user_id))
    edith = browser()
    edith.get("/sign-in")
    seen = []
    form = {"email": cast.edith.email, "password": PASSWORD}
    for path, sent in (("/sign-in", form), ("/sign-in", form), (link, {})):
        with edith.client.session_transaction() as cookie:
            cookie["planted"] = "by another user"
        assert edith.submit(path, sent).status_code == 303
        with edith.client.session_transaction() as cookie:
            assert "planted" not in cookie
            seen.append(cookie["sid"])
    assert len(set(seen)) == 3
    for number, token in enumerate(seen):
        thief = browser()
        with thief.client.session_transaction() as cookie:
            cookie["sid"] = token
        assert thief.get("/projects").status_code == (200 if number == 2 else 303)


def test_a_session_id_of_a_visitor_is_never_used(browser, cast):
    edith = browser()
    with edith.client.session_transaction() as cookie:
        cookie["sid"] = "A" * 43
    edith.submit("/sign-in", {"email": cast.edith.email, "password": PASSWORD})
    with edith.client.session_transaction() as cookie:
        assert cookie["sid"] != "A" * 43
