"""The form of settings: what was filled in is the JSON that the model takes, and faults find their inputs."""

from __future__ import annotations

import pytest
from werkzeug.datastructures import MultiDict

from webapp.connectors import KINDS
from webapp.web.forms.settings import SettingsForm, SettingsGroup

REST, ODATA = KINDS["rest"].Settings, KINDS["odata"].Settings
URL = {"base_url": "https://api.example.org"}
FULL = [
    (REST, {**URL, "auth": {"type": "api-key", "in": "header", "name": "X-Key", "value": "********"}}),
    (REST, {**URL, "auth": {"type": "basic", "username": "u", "password": "********"}, "verify_tls": True}),
    (
        REST,
        {
            **URL,
            "retry": {"timeout_seconds": 2.5, "retries": 0, "backoff_seconds": [0.5, 1], "retry_on": [500]},
        },
    ),
    (REST, {**URL, "default_headers": {"Accept": "text/x: y", "X-B": "b"}, "capture": {"id": "$.id"}}),
    (REST, {**URL, "request_template": {"query_params": {"a:b": "1"}, "body": {"x": ["{{y}}", 1, None]}}}),
    (REST, {**URL, "push_mode": "batch", "batch_size": 7, "rate_per_second": 0.5, "idempotent": True}),
    (ODATA, {"service_url": "https://erp.example.org", "csrf": "off", "capture": ["Number", "Total"]}),
    (
        ODATA,
        {"service_url": "https://erp.example.org", "csrf": {"fetch_path": "/csrf"}, "odata_version": "auto"},
    ),
]


def sent(form: SettingsForm) -> MultiDict:
    """What a browser sends of it."""
    found = MultiDict()
    for part in form.controls():
        if isinstance(part, SettingsGroup):
            if part.choice:
                found[part.choice] = next(value for value, _, on in part.options if on)
        elif part.type == "Switch":
            if part.data:
                found[part.name] = "y"
        else:
            found[part.name] = part.data
    return found


@pytest.mark.parametrize(("model", "data"), FULL)
def test_an_unchanged_form_sends_the_existing_values(model, data):
    again = SettingsForm(model, data, formdata=sent(SettingsForm(model, data))).values()
    assert again == data
    model.model_validate(again)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_from_its_own_settings(kind):
    model = KINDS[kind].Settings
    drawn = {part.short_name for part in SettingsForm(model).parts}
    assert drawn == {info.alias or name for name, info in model.model_fields.items()}


def test_an_empty_form_says_nothing():
    sent_empty = MultiDict({"settings.auth.type": "none", "settings.verify_tls": "y"})
    assert SettingsForm(REST, formdata=sent_empty).values() == {}


def test_another_kind_of_authentication_has_its_own_fields_and_no_old_secret():
    stored = {**URL, "auth": {"type": "bearer", "token": "********"}}
    value = sent(SettingsForm(REST, stored))
    value["settings.auth.type"] = "basic"
    form = SettingsForm(REST, stored, formdata=value)
    names = {part.name for part in form.controls()}
    assert {"settings.auth.username", "settings.auth.password"} <= names
    assert "settings.auth.token" not in names
    assert form.values()["auth"] == {"type": "basic"}


@pytest.mark.parametrize("text", ["nonsense", "{broken"])
def test_an_invalid_list_of_names_and_values_is_passed_on_and_reported(text):
    form = SettingsForm(REST, formdata=MultiDict({"settings.default_headers": text}))
    assert form.values()["default_headers"] == text
    reported = form.error_messages(
        [{"path": "settings.default_headers", "code": "wrong_type", "message": "Input should be …"}]
    )
    assert reported == {"settings.default_headers": "Enter one per line, as name: value."}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("settings.auth.bearer.token", "settings.auth.token"),
        ("settings.auth.token", "settings.auth.token"),
        ("settings.auth", "settings.auth"),
        ("settings.retry.retry_on[0]", "settings.retry.retry_on"),
        ("settings.default_headers.Bad Name", "settings.default_headers"),
        ("settings.capture.id", "settings.capture"),
    ],
)
def test_an_error_is_assigned_to_its_input(path, name):
    form = SettingsForm(REST, {"auth": {"type": "bearer"}})
    assert list(form.error_messages([{"path": path, "code": "invalid", "message": "no"}])) == [name]


def test_a_general_error_belongs_to_no_input():
    assert SettingsForm(REST).error_messages([{"path": "settings", "code": "invalid", "message": "no"}]) == {}


def test_defaults_are_shown_and_not_sent():
    normal = {"push_mode": "batch", "parallel": 3, "retry": {"retries": 7}}
    form = SettingsForm(REST, name="how", names=["push_mode", "parallel", "retry"], defaults=normal)
    parts = {part.name: part for part in form.controls()}
    assert parts["how.push_mode"].choices[0].label == "multiple rows per request"
    assert parts["how.parallel"].render_kw["placeholder"] == "3"
    assert parts["how.retry.retries"].render_kw["placeholder"] == "7"
    assert form.values() == {}
