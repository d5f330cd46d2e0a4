"""Every form of sign-in, the profile, the settings and the workspace: what a rejected one looks like.

Each error is below its own field and belongs to it for a screen reader, what was typed is kept (but passwords and
codes), the first wrong field has the focus, and a summary links to the fields when there are several.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyotp
import pytest
from flask import Flask
from lxml import html

from tests.cast import PASSWORD, Browser, Cast
from webapp import clock, limits
from webapp.access import actors
from webapp.access.models import Workspace
from webapp.accounts.services import people
from webapp.extensions import db
from webapp.web.forms.page_form import REQUIRED

NONE_CHOSEN = "Select at least one option."
LONG_NAME = "n" * (limits.MAX_NAME_CHARS + 1)
TOO_LONG = f"Enter at most {limits.MAX_NAME_CHARS} characters. You entered {limits.MAX_NAME_CHARS + 1}."
NOT_LISTED = "Select one of the listed options."
NO_NUMBER = "Enter a whole number."


@dataclass(frozen=True)
class Form:
    """A form of a page, and values that it does not take: the field's message by the field's name.

    `empty`: what is said of a form that is sent with nothing filled in; none where everything may be empty.
    """

    address: str
    empty: Mapping[str, str] = field(default_factory=dict)
    wrong: tuple[tuple[str, str, str], ...] = ()
    """Names of fields with a value and what is said of it."""
    others: Mapping[str, str] = field(default_factory=dict)
    """The other values that are sent, which are right."""
    method: str = "POST"
    who: str = "olivia"
    page: str = ""
    id: str = ""
    """What the ids of the controls begin with, on the page with errors."""
    boxes: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()


FORMS = {
    "sign-in": Form(
        "/sign-in",
        {"email": REQUIRED, "password": REQUIRED},
        (
            ("email", "a" * 321, "Enter at most 320 characters. You entered 321."),
            ("password", "p" * 10_001, "Enter at most 10,000 characters. You entered 10,001."),
            ("password", "wrong", "The e-mail address or the password is incorrect."),
        ),
        {"email": "edith@example.org"},
        who="",
        secret=("password",),
    ),
    "code": Form(
        "/sign-in/code",
        {"code": REQUIRED},
        (
            ("code", "1" * 101, "Enter at most 100 characters. You entered 101."),
            ("code", "000000", "This code is incorrect or was already used."),
        ),
        who="code",
        secret=("code",),
    ),
    "recovery code": Form(
        "/sign-in/code",
        {"code": REQUIRED},
        (("code", "not one", "This code is incorrect or was already used."),),
        {"recovery": "true"},
        who="code",
        id="recovery-",
        secret=("code",),
    ),
    "invitation": Form(
        "/invitations/accept/{token}",
        {"password": REQUIRED},
        (
            ("name", LONG_NAME, TOO_LONG),
            ("password", "short", "A password must have at least 10 characters."),
        ),
        {"name": "New", "password": "a long enough password"},
        who="",
        secret=("password",),
    ),
    "profile": Form("/me", {}, (("name", LONG_NAME, TOO_LONG),), method="PATCH"),
    "appearance": Form(
        "/session/preferences", {}, (("theme", "pink", NOT_LISTED), ("keys", "some", NOT_LISTED)), page="/me"
    ),
    "notices": Form(
        "/me/notices",
        {"mail": REQUIRED, "minutes": REQUIRED},
        (
            ("mail", "sometimes", NOT_LISTED),
            ("minutes", "five", NO_NUMBER),
            ("minutes", "1441", "Enter a number from 0 to 1,440."),
        ),
        {"mail": "always", "minutes": "5"},
        page="/me",
    ),
    "password": Form(
        "/me/password",
        {"old_password": REQUIRED, "new_password": REQUIRED},
        (
            ("old_password", "not mine", "This password is incorrect."),
            ("new_password", "short", "A password must have at least 10 characters."),
            ("new_password", "p" * 257, "Enter at most 256 characters. You entered 257."),
        ),
        {"old_password": PASSWORD, "new_password": "a quite different horse"},
        page="/me",
        secret=("old_password", "new_password"),
    ),
    "sign others out": Form(
        "/me/sessions",
        {"password": REQUIRED},
        (("password", "not mine", "This password is incorrect."),),
        method="DELETE",
        page="/me",
        who="stale",
        id="again-",
        secret=("password",),
    ),
    "second factor": Form(
        "/me/two-factor/confirm",
        {"code": REQUIRED, "password": REQUIRED},
        (
            ("password", "not mine", "This password is incorrect."),
            ("code", "000000", "This code is incorrect. Check the clock of your device."),
            ("code", "1" * 101, "Enter at most 100 characters. You entered 101."),
        ),
        {"password": PASSWORD, "code": "000000"},
        page="/me/two-factor",
        who="pending",
        secret=("password", "code"),
    ),
    "new recovery codes": Form(
        "/me/two-factor/codes",
        {"code": REQUIRED, "password": REQUIRED},
        (("password", "not mine", "This password is incorrect."),),
        {"password": PASSWORD, "code": "000000"},
        page="/me/two-factor",
        who="protected",
        id="codes-",
        secret=("password", "code"),
    ),
    "second factor off": Form(
        "/me/two-factor",
        {"code": REQUIRED, "password": REQUIRED},
        (("code", "1" * 101, "Enter at most 100 characters. You entered 101."),),
        {"password": PASSWORD, "code": "000000"},
        method="DELETE",
        who="protected",
        id="off-",
        secret=("password", "code"),
    ),
    "key": Form(
        "/api-keys",
        {"name": REQUIRED},
        (
            ("name", LONG_NAME, TOO_LONG),
            ("scopes", "everything", NOT_LISTED),
            ("expires_at", "tomorrow", NOT_LISTED),
            ("project_id", "prj_unknown", NOT_LISTED),
        ),
        {"name": "Nightly"},
        boxes=("scopes",),
    ),
    "secret": Form(
        "/secrets",
        {"name": REQUIRED, "value": "Enter a value for the new secret."},
        (
            ("name", "no blanks", "The name of a secret must start with a letter or _"),
            ("name", "n" * 101, "The name of a secret must start with a letter or _"),
            ("value", "", "Enter a value for the new secret."),
            ("value", "v" * 10_001, "A secret must have 1 to 10,000 characters."),
            ("allowed_hosts", "https://example.org/path", "Enter only the host"),
            ("any_host", "perhaps", "Must be true or false."),
            ("project_id", "prj_unknown", NOT_LISTED),
        ),
        {"name": "token", "value": "t0ps3cret"},
        boxes=("any_host",),
        secret=("value",),
    ),
    "project": Form(
        "/projects",
        {"name": REQUIRED},
        (
            ("name", LONG_NAME, TOO_LONG),
            ("description", "d" * 10_001, "Enter at most 10,000 characters. You entered 10,001."),
            ("team_id", "team_unknown", NOT_LISTED),
        ),
        {"name": "Shop", "description": "What it is for"},
    ),
    "change a project": Form(
        "/projects/{main}",
        {"name": REQUIRED},
        (("name", LONG_NAME, TOO_LONG), ("team_id", "team_unknown", NOT_LISTED)),
        {"name": "Main shop", "description": "Kept"},
        method="PATCH",
        page="/projects",
        id="changed-",
    ),
    "team": Form("/teams", {"name": REQUIRED}, (("name", LONG_NAME, TOO_LONG), ("name", "  ", REQUIRED))),
    "rename a team": Form(
        "/teams/{blue}",
        {"name": REQUIRED},
        (("name", LONG_NAME, TOO_LONG),),
        method="PATCH",
        page="/teams",
        id="changed-",
    ),
    "role": Form(
        "/members/{member}",
        {"role": REQUIRED},
        (("role", "king", NOT_LISTED),),
        method="PATCH",
        page="/members",
        id="new-",
    ),
    "add a role": Form(
        "/members",
        {},
        (("role", "king", NOT_LISTED), ("team_id", "team_unknown", NOT_LISTED)),
        {"user_id": "{edith}", "team_id": "{blue}"},
        id="new-",
    ),
    "invite": Form(
        "/invitations",
        {"email": REQUIRED},
        (
            ("email", "nobody", "Enter an e-mail address, such as name@example.org."),
            ("email", f"{'a' * 320}@b", "Enter at most 320 characters. You entered 322."),
            ("email", "edith@example.org", "This user is already a member."),
            ("role", "king", NOT_LISTED),
            ("team_id", "team_unknown", NOT_LISTED),
        ),
        {"email": "someone@example.org", "role": "viewer"},
    ),
    "webhook": Form(
        "/webhooks",
        {"url": REQUIRED, "events": NONE_CHOSEN},
        (
            ("url", "ftp://example.org", "A URL must start with https"),
            (
                "url",
                f"https://example.org/{'a' * 8_000}",
                "Enter at most 8,000 characters. You entered 8,020.",
            ),
            ("events", "breakfast", NOT_LISTED),
            ("description", LONG_NAME, TOO_LONG),
            ("scope", "world", NOT_LISTED),
        ),
        {"url": "https://example.org/hook", "events": "push.*", "description": "Build"},
        boxes=("events",),
    ),
    "change a webhook": Form(
        "/webhooks/{webhook}",
        {"url": REQUIRED, "events": NONE_CHOSEN},
        (
            ("url", "https://[", "URL"),
            ("events", "breakfast", NOT_LISTED),
            ("description", LONG_NAME, TOO_LONG),
        ),
        {"url": "https://example.org/other", "events": "run.*", "description": "Typed"},
        method="PATCH",
        id="settings-",
        boxes=("events",),
    ),
    "workspace name": Form(
        "/workspace", {"name": REQUIRED}, (("name", LONG_NAME, TOO_LONG),), method="PATCH"
    ),
    "plan": Form("/workspace", {"plan": REQUIRED}, (("plan", "gold", NOT_LISTED),), method="PATCH"),
    "limits": Form(
        "/workspace",
        {},
        (
            ("limits.requests_per_minute", "many", NO_NUMBER),
            (
                "limits.rows_per_hour",
                "0",
                f"Enter a number from 1 to {limits.ENTERPRISE_MAX.rows_per_hour:,}.",
            ),
        ),
        {"limits.rows_per_generation": "1000"},
        method="PATCH",
    ),
    "logs": Form("/workspace", {}, (("settings.redact_run_logs", "perhaps", NOT_LISTED),), method="PATCH"),
    "required factor": Form(
        "/workspace", {}, (("settings.require_two_factor", "perhaps", NOT_LISTED),), method="PATCH"
    ),
    "retention": Form(
        "/workspace",
        {},
        (
            ("settings.audit_retention_days", "long", NO_NUMBER),
            ("settings.audit_retention_days", "3651", "Enter a number from 1 to 3,650."),
            ("settings.audit_retention_days", "7", "keeps the audit log for 30 to 3,650 days"),
        ),
        method="PATCH",
    ),
    "end of the workspace": Form(
        "/workspace",
        {"confirm": REQUIRED},
        (("confirm", "another name", "This is not the workspace's name."), ("confirm", LONG_NAME, TOO_LONG)),
        method="DELETE",
    ),
}
WRONG = [
    pytest.param(name, *value, id=f"{name}: {value[0]}={value[1][:12]}")
    for name, form in FORMS.items()
    for value in form.wrong
]


class Sender:
    """Sends a form of `FORMS` as the person whose form it is."""

    def __init__(self, app: Flask, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
        self.app, self.cast, self._monkeypatch = app, cast, monkeypatch

    def browser(self, who: str) -> Browser:
        """A browser in the state that the form needs, signed in as a user or anonymous."""
        if not who:
            return Browser(self.app)
        browser = Browser(self.app, self.cast.people.get(who, self.cast.olivia))
        if who == "stale":  # signed in too long ago to go without the password
            self._monkeypatch.setattr(limits, "FRESH_SIGN_IN_MINUTES", 0)
        if who in ("pending", "protected", "code"):
            browser.submit("/me/two-factor")
        if who in ("protected", "code"):
            page = browser.get("/me/two-factor").text
            totp = pyotp.TOTP(re.search(r"<code>([A-Z2-7]{32})</code>", page)[1])
            proof = {"password": PASSWORD, "code": totp.at(int(clock.epoch()))}
            assert browser.submit("/me/two-factor/confirm", proof).status_code == 200
        if who == "code":
            browser = Browser(self.app)
            browser.submit("/sign-in", {"email": self.cast.olivia.email, "password": PASSWORD})
        return browser

    def place(self) -> dict[str, str]:
        """The ids that addresses and values name."""
        program = self.app.test_client(use_cookies=False)
        stored = {"Authorization": f"Bearer {self.cast.olivia.key}"}
        mine = program.get(f"/members?user_id={self.cast.edith.user_id}", headers=stored).json["items"][0][
            "id"
        ]
        hook = {"url": "https://example.org/hook", "events": ["*"], "description": "Old"}
        created = program.post("/webhooks", json=hook, headers=stored).json["id"]
        with self.app.app_context():
            _, token = people.invite(actors.system_actor(self.cast.acme), "fresh@example.org", "viewer")
            db.session.remove()
        return {
            "main": self.cast.main,
            "blue": self.cast.blue,
            "edith": self.cast.edith.user_id,
            "member": mine,
            "webhook": created,
            "token": token,
        }

    def send(self, name: str, values: Mapping[str, Any], **how: Any) -> Any:
        """The response to a form with these values; those that begin with `{` are ids."""
        form, ids = FORMS[name], self.place()
        data = {key: value.format(**ids) if value.startswith("{") else value for key, value in values.items()}
        return self.browser(form.who).submit(form.address.format(**ids), data, form.method, **how)


@pytest.fixture
def sender(app, cast, monkeypatch):
    """A sender of forms to a service that has a mail server."""
    monkeypatch.setattr("webapp.mail.services.is_configured", lambda: True)
    return Sender(app, cast, monkeypatch)


def control_of(page: Any, form: Form, name: str) -> Any:
    """The control of a field, or its group of options."""
    id = form.id + name.rpartition(".")[2]
    found = page.xpath("//*[@id=$id]", id=id) or page.xpath("//*[@id=$id]", id=f"{id}-0")
    assert len(found) == 1, f"{id} is not on the page"
    return found[0]


def error_at(page: Any, form: Form, name: str) -> str:
    """What is said of a field: inside its own block, and tied to its control for a screen reader."""
    id = form.id + name.rpartition(".")[2]
    control = control_of(page, form, name)
    block = next(
        iterancestor
        for iterancestor in control.iterancestors()
        if "field" in iterancestor.get("class", "").split()
    )
    errors = block.xpath(".//*[contains(concat(' ', @class, ' '), ' err ')]")
    if not errors:
        assert control.get("aria-invalid") is None
        return ""
    assert [error.get("id") for error in errors] == [f"{id}-err"]
    described = block if block.tag == "fieldset" else control
    assert f"{id}-err" in described.get("aria-describedby").split()
    invalid = block if block.get("role") == "radiogroup" else control
    assert invalid.get("aria-invalid") == "true"
    return str(errors[0].text_content())


def focused(page: Any) -> list[str]:
    return [item.get("id") for item in page.xpath("//*[@autofocus]")]


@pytest.mark.parametrize("name", [name for name, form in FORMS.items() if form.empty])
def test_an_empty_form_shows_the_required_fields(sender, name):
    form = FORMS[name]
    sent = {
        field: "" for field in [*form.empty, *(key for key, _, _ in form.wrong)] if field not in form.boxes
    }
    stored = {key: value for key, value in form.others.items() if key == "recovery" or value.startswith("{")}
    response = sender.send(name, {**sent, **stored})
    assert response.status_code == 422
    page = html.fromstring(response.text)
    for field_name, message in form.empty.items():
        assert error_at(page, form, field_name) == message
    summary = page.xpath("//*[contains(@class, 'problems')]")
    wrong = page.xpath("//*[contains(concat(' ', @class, ' '), ' err ')]")
    if len(wrong) > 1:
        links = summary[0].xpath(".//a/@href")
        assert len(links) == len(wrong)
        assert all(len(page.xpath("//*[@id=$id]", id=link[1:])) == 1 for link in links)
        assert focused(page) == [links[0][1:]]
        assert summary[0].get("role") == "alert"
    else:
        assert summary == []


@pytest.mark.parametrize(
    "name", [name for name, form in FORMS.items() if not form.empty and name != "add a role"]
)
def test_a_form_without_required_fields_takes_an_empty_one(sender, name):
    sent = {key: "" for key, _, _ in FORMS[name].wrong}
    assert sender.send(name, {**sent, **FORMS[name].others}).status_code == 303


@pytest.mark.parametrize(("name", "field_name", "value", "message"), WRONG)
def test_an_invalid_value_is_reported_at_its_field_and_the_input_is_kept(
    sender, name, field_name, value, message
):
    form = FORMS[name]
    response = sender.send(name, {**form.others, field_name: value})
    assert response.status_code in (422, 409, 404)
    page = html.fromstring(response.text)
    assert message in error_at(page, form, field_name)
    control = control_of(page, form, field_name)
    assert focused(page) == [control.get("id")]
    shown = {**form.others, field_name: value}
    for key, typed in shown.items():
        if key in form.secret:
            assert control_of(page, form, key).get("value") in (None, "")
        elif control_of_text(page, form, key) is not None:
            assert control_of_text(page, form, key) == typed


def control_of_text(page: Any, form: Form, name: str) -> str | None:
    """What a text control holds; None for others, and for a control that the page does not have."""
    id = form.id + name.rpartition(".")[2]
    for control in page.xpath("//*[@id=$id]", id=id):
        if control.tag == "textarea":
            return str(control.text or "").removeprefix("\r\n").removeprefix("\n")
        if control.tag == "input" and control.get("type") not in ("checkbox", "radio", "hidden"):
            return str(control.get("value"))
    return None


def test_ticked_boxes_and_chosen_options_are_kept(sender):
    values = {"name": "", "scopes": ["read", "run"], "project_id": sender.cast.side}
    page = html.fromstring(sender.browser("olivia").submit("/api-keys", values).text)
    assert page.xpath("//input[@name='scopes'][@checked]/@value") == ["read", "run"]
    assert page.xpath("//select[@name='project_id']/option[@selected]/@value") == [sender.cast.side]


def test_the_chosen_expiry_of_a_key_is_kept(sender):
    olivia = sender.browser("olivia")
    listed = html.fromstring(olivia.get("/api-keys").text)
    chosen = listed.xpath("//select[@name='expires_at']/option[text()='In 30 days']/@value")[0]
    page = html.fromstring(olivia.submit("/api-keys", {"name": "", "expires_at": chosen}).text)
    assert page.xpath("//select[@name='expires_at']/option[@selected]/text()") == ["In 30 days"]


def test_both_passwords_are_answered_in_one_response(sender):
    response = sender.send("password", {"old_password": "not mine", "new_password": "short"})
    page, form = html.fromstring(response.text), FORMS["password"]
    assert error_at(page, form, "old_password") == "This password is incorrect."
    assert error_at(page, form, "new_password") == "A password must have at least 10 characters."


def test_an_error_in_the_url_is_reported_together_with_missing_events(sender):
    page, form = html.fromstring(sender.send("webhook", {"url": "ftp://example.org"}).text), FORMS["webhook"]
    assert error_at(page, form, "url") == "A URL must start with https:// or http://."
    assert error_at(page, form, "events") == NONE_CHOSEN


def test_a_page_of_the_settings_stays_marked_in_the_list_of_pages(sender):
    page = html.fromstring(sender.send("rename a team", {"name": ""}).text)
    assert page.xpath("//nav[@aria-label='Settings']/a[@aria-current]/text()") == ["Teams"]


def test_an_emptied_retention_is_that_of_the_plan_again(app, sender):
    olivia = sender.browser("olivia")
    for typed, stored in (("100", 100), ("", None)):
        assert (
            olivia.submit("/workspace", {"settings.audit_retention_days": typed}, "PATCH").status_code == 303
        )
        with app.app_context():
            workspace = db.session.get_one(Workspace, sender.cast.acme)
            assert workspace.settings.get("audit_retention_days") == stored
            db.session.remove()


@pytest.mark.parametrize("name", FORMS)
def test_a_form_without_a_csrf_token_is_rejected(sender, name):
    filled = {key: value for key, value, _ in FORMS[name].wrong}
    response = sender.send(name, {**filled, **FORMS[name].others, "csrf_token": "forged"})
    assert response.status_code == 403
    assert "The form has expired." in response.text


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        (
            "/sign-in",
            "email",
            {"autocomplete": "username", "type": "email", "maxlength": "320", "required": ""},
        ),
        ("/sign-in", "password", {"autocomplete": "current-password", "type": "password", "required": ""}),
        ("/me", "old_password", {"autocomplete": "current-password"}),
        ("/me", "new_password", {"autocomplete": "new-password", "aria-describedby": "new_password-hint"}),
        (
            "/me",
            "minutes",
            {"type": "number", "min": "0", "max": "1440", "inputmode": "numeric", "required": ""},
        ),
        ("/api-keys", "name", {"maxlength": "200", "required": ""}),
        ("/secrets", "name", {"maxlength": "100", "required": ""}),
        ("/secrets", "value", {"autocomplete": "new-password", "type": "password"}),
        ("/projects", "description", {"maxlength": "10000"}),
        ("/invitations", "email", {"type": "email", "maxlength": "320", "required": ""}),
        ("/webhooks", "url", {"inputmode": "url", "maxlength": "8000", "required": ""}),
        ("/workspace", "confirm", {"maxlength": "200", "autocomplete": "off", "required": ""}),
    ],
)
def test_a_browser_knows_what_a_field_takes(sender, path, name, expected: Mapping[str, str]):
    page = html.fromstring(sender.browser("" if path == "/sign-in" else "olivia").get(path).text)
    control = page.get_element_by_id(name)
    assert {key: control.get(key) for key in expected} == expected


@pytest.mark.parametrize("kind", ["password"])
def test_a_password_that_is_pasted_is_never_cut_off(sender, kind):
    for path in ("/sign-in", "/me", "/secrets"):
        page = html.fromstring(sender.browser("" if path == "/sign-in" else "olivia").get(path).text)
        boxes = page.xpath("//input[@type=$kind]", kind=kind)
        assert boxes
        assert not any(box.get("maxlength") for box in boxes)


def test_a_code_is_offered_by_the_phone(sender):
    page = html.fromstring(sender.browser("code").get("/sign-in/code").text)
    code = page.get_element_by_id("code")
    assert (code.get("autocomplete"), code.get("inputmode")) == ("one-time-code", "numeric")


@pytest.mark.parametrize("path", ["/projects", "/teams", "/members", "/invitations", "/workspace"])
def test_users_without_permission_get_an_error_instead_of_the_form(browser, cast, path):
    method = "PATCH" if path == "/workspace" else "POST"
    response = browser(cast.victor).submit(path, {"name": ""}, method)
    assert response.status_code == 403
    assert "err" not in re.findall(r'class="([^"]*)"', response.text)
