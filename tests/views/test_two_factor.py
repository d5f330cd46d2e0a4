"""The second factor: set up, asked for, used once, throttled, reset."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from html import unescape

import pyotp
import pytest
import sqlalchemy as sa

from tests.cast import PASSWORD
from tests.conftest import VAULT_KEY
from webapp import app_vault, clock, limits
from webapp.access.models import BrowserSession, RecoveryCode, SecondFactor, SignInLink, User, Workspace
from webapp.accounts.services import people, sign_in, two_factor
from webapp.audit.models import AuditEntry
from webapp.extensions import db
from webapp.security.sealing import Vault

WRONG = "This code is incorrect or was already used."
PROOF = {"password": PASSWORD}


class Authenticator:
    """A user's authenticator app. `code(1)` is the code of the next time step, because each code is accepted once."""

    def __init__(self, secret):
        self.secret, self.recovery = secret, []

    def code(self, ahead=0):
        return pyotp.TOTP(self.secret).at(int(clock.epoch()) + ahead * limits.TOTP_STEP_SECONDS)


def set_up(browser, password=PASSWORD):
    """Turn it on in a signed-in browser, as a person does."""
    assert browser.submit("/me/two-factor").status_code == 303
    page = browser.get("/me/two-factor").text
    secret = re.search(r"<code>([A-Z2-7]{32})</code>", page)[1]
    result = Authenticator(secret)
    shown = browser.submit("/me/two-factor/confirm", {"password": password, "code": result.code(-1)})
    assert shown.status_code == 200, shown.text
    result.recovery = re.search(r"<code>([0-9a-z\s-]+)</code>", shown.text)[1].split()
    return result


def first_step(browser, cast, target="/"):
    """Edith's password: where she is sent."""
    form = {"email": cast.edith.email, "password": PASSWORD, "next": target}
    return browser.submit("/sign-in", form).headers["Location"]


def said(answer):
    """The error below the code."""
    return unescape(answer.text.partition('id="code-err">')[2].partition("</span>")[0])


@pytest.fixture(autouse=True)
def still(monkeypatch):
    """Stop the clock, so that the time step cannot change during a test."""
    present = clock.epoch()
    monkeypatch.setattr(clock, "source", lambda: present)


@pytest.fixture
def edith(browser, cast):
    """Edith's browser, signed in."""
    return browser(cast.edith)


@pytest.fixture
def phone(edith):
    """Edith's authenticator, which is set up."""
    return set_up(edith)


# --- Setting up ---------------------------------------------------------------------------------------------


def test_it_is_set_up_by_a_code_and_other_browsers_are_signed_out(app, browser, cast, edith):
    other = browser(cast.edith)
    phone = set_up(edith)
    assert len(set(phone.recovery)) == limits.RECOVERY_CODES
    assert edith.get("/projects").status_code == 200
    assert other.get("/projects").status_code == 303
    assert "on since" in edith.get("/me/two-factor").text.casefold()
    with app.app_context():
        found = sa.select(AuditEntry.action, AuditEntry.details).where(AuditEntry.action.like("two_factor.%"))
        assert [tuple(row) for row in db.session.execute(found)] == [("two_factor.on", {"ended": 1})]


def test_the_picture_is_an_svg_of_the_page_without_style_or_script(edith):
    edith.submit("/me/two-factor")
    page = edith.get("/me/two-factor").text
    drawn = page.partition("<svg viewBox")[2].partition("</svg>")[0]
    assert "<path" in drawn
    assert not re.search(r"style|script|data:|http", drawn)


@pytest.mark.parametrize(("form", "message"), [
    ({"password": "wrong"}, "This password is incorrect."),
    ({"code": "000000"}, "This code is incorrect."),
    ({"code": "no code"}, "This code is incorrect."),
    ({"code": ""}, "This field is required."),
])  # fmt: skip
def test_a_wrong_password_or_code_turns_nothing_on(app, edith, cast, form, message):
    edith.submit("/me/two-factor")
    secret = re.search(r"<code>([A-Z2-7]{32})</code>", edith.get("/me/two-factor").text)[1]
    good = {"password": PASSWORD, "code": pyotp.TOTP(secret).at(int(clock.epoch()))}
    answer = edith.submit("/me/two-factor/confirm", {**good, **form})
    assert answer.status_code == 422
    assert message in answer.text
    with app.app_context():
        assert not two_factor.is_enabled(cast.edith.user_id)


def test_unconfirmed_objects_are_not_requested(browser, cast, edith):
    edith.submit("/me/two-factor")
    assert first_step(browser(), cast) == "/"


def test_a_second_set_up_does_not_take_the_place_of_the_first(app, edith, phone):
    assert edith.submit("/me/two-factor").status_code == 409
    answer = edith.submit("/me/two-factor/confirm", {**PROOF, "code": phone.code()})
    assert answer.status_code == 409


# --- The second step ----------------------------------------------------------------------------------------


def test_signing_in_needs_password_and_code(app, browser, cast, phone):
    again = browser()
    assert first_step(again, cast, "/projects?q=x") == "/sign-in/code"
    assert again.get("/projects").status_code == 303
    assert "One more step" in again.get("/sign-in/code").text
    answer = again.submit("/sign-in/code", {"code": f"{phone.code()[:3]} {phone.code()[3:]}"})
    assert answer.headers["Location"] == "/projects?q=x"
    assert again.get("/projects").status_code == 200
    with app.app_context():
        newest = db.session.scalars(sa.select(BrowserSession).order_by(BrowserSession.id.desc())).first()
        assert (newest.how, newest.two_factor) == ("password", True)


def test_a_used_code_is_rejected(browser, cast, phone):
    for number, code in enumerate((phone.code(), phone.code(), phone.code(-1))):
        again = browser()
        first_step(again, cast)
        answer = again.submit("/sign-in/code", {"code": code})
        assert answer.status_code == (422 if number else 303)
    assert said(answer).startswith(WRONG)


def test_of_two_concurrent_uses_of_a_code_one_succeeds(browser, cast, phone):
    browsers, found = [browser() for _ in range(4)], []
    for item in browsers:
        first_step(item, cast)
    code = {"code": phone.code()}
    threads = [
        threading.Thread(target=lambda b=b: found.append(b.submit("/sign-in/code", code).status_code))
        for b in browsers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [303, 422, 422, 422]


def test_a_recovery_code_replaces_the_authenticator_once(browser, cast, phone):
    again = browser()
    first_step(again, cast)
    code = phone.recovery[3].upper().replace("-", " ").replace("0", "O").replace("1", "I")
    assert again.submit("/sign-in/code", {"code": code}).status_code == 303
    assert "9 are left" in again.get("/me").text
    once_more = browser()
    first_step(once_more, cast)
    assert once_more.submit("/sign-in/code", {"code": phone.recovery[3]}).status_code == 422


def test_a_one_time_link_asks_for_the_code_too(app, browser, cast, phone):
    with app.app_context():
        link = "/sign-in/" + sign_in.create_link(db.session.get_one(User, cast.edith.user_id))
    again = browser()
    assert again.submit(link).headers["Location"] == "/sign-in/code"
    assert again.get("/projects").status_code == 303
    with app.app_context():
        assert db.session.scalars(sa.select(SignInLink.used_at)).one() is not None


@pytest.mark.parametrize("away", [-1, 1])
def test_without_drift_a_code_ends_with_its_30_seconds(app, browser, cast, phone, away, monkeypatch):
    """From the step after the one that set it up, whose codes are used up."""
    later = clock.epoch() + 2 * limits.TOTP_STEP_SECONDS
    monkeypatch.setattr(clock, "source", lambda: later)
    for drift, lands in ((0, "/sign-in/code"), (1, "/")):
        app.config["SETTINGS"] = replace(app.config["SETTINGS"], code_drift=drift)
        late = browser()
        first_step(late, cast)
        answer = late.submit("/sign-in/code", {"code": phone.code(away)})
        assert (answer.status_code, answer.headers.get("Location", "/sign-in/code")) == (
            303 if drift else 422,
            lands,
        )


def test_an_expired_step_starts_again(app, browser, cast, phone):
    assert browser().get("/sign-in/code").headers["Location"] == "/sign-in"
    assert browser().submit("/sign-in/code", {"code": phone.code()}).headers["Location"] == "/sign-in"
    late = browser()
    first_step(late, cast)
    with app.app_context():
        app.extensions["rowsmith.redis"].flushdb()
    assert late.submit("/sign-in/code", {"code": phone.code()}).headers["Location"] == "/sign-in"
    assert "Start again." in late.get("/sign-in").text


def test_another_password_ends_the_steps_that_wait(browser, cast, edith, phone):
    waits = browser()
    first_step(waits, cast)
    edith.submit("/me/password", {"old_password": PASSWORD, "new_password": "entirely new words"})
    assert waits.submit("/sign-in/code", {"code": phone.code()}).headers["Location"] == "/sign-in"


def test_ten_wrong_codes_in_five_minutes_close_the_account_and_the_address(browser, cast, phone):
    for _ in range(limits.LOGIN_FAILURES):
        again = browser()
        first_step(again, cast)
        assert again.submit("/sign-in/code", {"code": "000000"}).status_code == 422
    good = again.submit("/sign-in/code", {"code": phone.code()})
    assert good.status_code == 429
    assert "Retry-After" in good.headers
    elsewhere = {"environ_base": {"REMOTE_ADDR": "127.0.0.2"}}
    assert (
        browser()
        .submit("/sign-in", {"email": cast.edith.email, "password": PASSWORD}, **elsewhere)
        .status_code
        == 429
    )
    assert browser().submit("/sign-in", {"email": cast.adam.email, "password": PASSWORD}).status_code == 429
    other = browser().submit("/sign-in", {"email": cast.adam.email, "password": PASSWORD}, **elsewhere)
    assert other.status_code == 303


def test_too_many_wrong_codes_in_a_day_lock_an_account(app, browser, cast, phone, monkeypatch):
    monkeypatch.setattr(limits, "LOGIN_FAILURES", 1_000)
    monkeypatch.setattr(limits, "CODE_FAILURES_PER_DAY", 12)
    again = browser()
    first_step(again, cast)
    found = [
        again.submit("/sign-in/code", {"code": "000000"}).status_code
        for _ in range(limits.CODE_FAILURES_PER_DAY)
    ]
    assert found == [422] * limits.CODE_FAILURES_PER_DAY
    assert again.submit("/sign-in/code", {"code": phone.code()}).status_code == 429


def test_wrong_codes_are_in_the_trail(app, browser, cast, phone):
    again = browser()
    first_step(again, cast)
    again.submit("/sign-in/code", {"code": "000000"})
    again.submit("/sign-in/code", {"code": phone.code()})
    with app.app_context():
        found = sa.select(AuditEntry.action, AuditEntry.details).where(AuditEntry.action.like("session.%"))
        result = [tuple(row) for row in db.session.execute(found.order_by(AuditEntry.id))]
    assert result[-2:] == [
        ("session.refuse", {"step": "code"}),
        ("session.start", {"how": "password", "code": "totp"}),
    ]


# --- Looking after it ---------------------------------------------------------------------------------------


def test_it_is_turned_off_by_password_and_code_and_by_nothing_less(browser, cast, edith, phone):
    assert edith.submit("/me/two-factor", {"code": phone.code()}, "DELETE").status_code == 422
    assert edith.submit("/me/two-factor", {**PROOF, "code": "000000"}, "DELETE").status_code == 422
    assert edith.submit("/me/two-factor", {**PROOF, "code": phone.code()}, "DELETE").status_code == 303
    assert first_step(browser(), cast) == "/"


def test_new_recovery_codes_take_the_place_of_the_older_ones(app, cast, edith, phone):
    shown = edith.submit("/me/two-factor/codes", {**PROOF, "code": phone.recovery[0]})
    assert shown.status_code == 200
    fresh = re.search(r"<code>([0-9a-z\s-]+)</code>", shown.text)[1].split()
    assert not set(fresh) & set(phone.recovery)
    with app.app_context():
        assert two_factor.use_code(cast.edith.user_id, phone.recovery[1]) is None
        assert two_factor.use_code(cast.edith.user_id, fresh[1]) == "recovery"


def test_a_user_without_a_password_needs_none(app, browser, cast):
    with app.app_context():
        db.session.get_one(User, cast.edith.user_id).password_hash = None
        db.session.commit()
    edith = browser(cast.edith)
    phone = set_up(edith, password="")
    assert edith.submit("/me/two-factor", {"code": phone.code()}, "DELETE").status_code == 303


def test_the_operator_resets_what_is_lost(app, browser, cast, edith, phone):
    with app.app_context():
        assert two_factor.reset(people.find_user(cast.edith.email))
        assert db.session.scalars(sa.select(RecoveryCode)).all() == []
    assert edith.get("/projects").status_code == 303
    assert first_step(browser(), cast) == "/"


def test_a_stolen_database_holds_neither_the_secret_nor_a_code(database_bytes, phone):
    stored = database_bytes()
    assert phone.secret.encode() not in stored
    for code in phone.recovery:
        assert code.encode() not in stored
        assert two_factor.normalize_code(code).encode() not in stored


def test_a_rotation_of_the_vault_encrypts_the_secret_again(app, cast, phone):
    fresh = "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXphYmNkZWY="
    with app.app_context():
        app.extensions["rowsmith.vault"] = Vault([fresh, VAULT_KEY])
        assert two_factor.reseal() == (1, 1)
        assert two_factor.reseal() == (0, 1)
        app.extensions["rowsmith.vault"] = Vault([fresh])
        assert (
            app_vault.vault().open(db.session.scalars(sa.select(SecondFactor.sealed)).one()) == phone.secret
        )
        assert two_factor.use_code(cast.edith.user_id, phone.code()) == "totp"


# --- Where a workspace requires it ----------------------------------------------------------------------------


@pytest.fixture
def required(app, api, cast):
    """Acme requires a second factor."""
    answer = api(cast.adam).patch("/workspace", json={"settings": {"require_two_factor": True}})
    assert answer.json["settings"] == {"require_two_factor": True}


def test_members_without_it_must_set_it_up_and_then_continue(edith, required):
    for path in ("/projects", "/templates", "/me", "/api-keys"):
        assert edith.get(path).headers["Location"] == "/me/two-factor"
    assert edith.submit("/teams", {"name": "X"}).headers["Location"] == "/me/two-factor"
    assert edith.get("/projects", headers={"HX-Request": "true"}).headers["HX-Redirect"] == "/me/two-factor"
    assert "Acme requires two-factor sign-in" in edith.get("/me/two-factor").text
    set_up(edith)
    assert edith.get("/projects").status_code == 200


def test_it_stays_on_where_it_is_required(edith, phone, required):
    answer = edith.submit("/me/two-factor", {**PROOF, "code": phone.code()}, "DELETE")
    assert answer.status_code == 409
    assert "Acme requires two-factor sign-in" in answer.text


def test_users_who_must_set_it_up_may_sign_out_and_api_keys_continue(api, cast, edith, required):
    assert api(cast.edith).get("/projects").status_code == 200
    assert edith.submit("/sign-out").headers["Location"] == "/sign-in"


def test_other_workspaces_do_not_care(browser, cast, required):
    assert browser(cast.mallory).get("/projects").status_code == 200


def test_admins_see_who_has_it_and_others_do_not(api, cast, phone):
    seen = {item["user_id"]: item["two_factor"] for item in api(cast.adam).get("/members").json["items"]}
    assert seen[cast.edith.user_id] is True
    assert seen[cast.adam.user_id] is False
    assert {item["two_factor"] for item in api(cast.victor).get("/members").json["items"]} == {None}
    member = api(cast.adam).get("/members?q=edith").json["items"][0]["id"]
    assert api(cast.adam).get(f"/members/{member}").json["two_factor"] is True


def test_the_switch_is_a_switch_for_admins(app, api, cast):
    patch = {"settings": {"require_two_factor": True}}
    assert api(cast.edith).patch("/workspace", json=patch).status_code == 403
    with app.app_context():
        assert db.session.get_one(Workspace, cast.acme).settings == {}
