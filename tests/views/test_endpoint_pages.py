"""The pages of endpoints: list, create and edit them, with the exact request shown next to the form."""

from __future__ import annotations

import html

import pytest

from tests.fakes.echo_target import EchoTarget
from tests.views.forms import form_in
from tests.views.speak import make
from tests.views.targets import CUSTOMERS, connection

HX = {"HX-Request": "true"}


@pytest.fixture
def target():
    with EchoTarget() as made:
        yield made


@pytest.fixture
def page(browser, cast):
    return browser(cast.edith)


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def template(edith):
    return make(edith, name="Customers", fields=CUSTOMERS)["id"]


@pytest.fixture
def form(page, template, target):
    """The form of a new endpoint, filled in."""
    drawn = form_in(page.get("/endpoints/new").text, "endpoint-form")
    body = {
        "name": "People",
        "url": target.url("/people/{{id}}"),
        "method": "PUT",
        "body": '{"mail": "{{E-Mail}}"}',
    }
    return {**drawn, **body}


def example(page, form, **more):
    answer = page.submit("/endpoints/example", {**form, **more}, headers=HX)
    assert answer.status_code == 200
    return html.unescape(answer.text)


def made(page, form, **more):
    answer = page.submit("/endpoints/new", {**form, **more})
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"]


def test_without_endpoints_the_page_explains_their_purpose(page):
    text = page.get("/endpoints").text
    assert "An endpoint is a saved request" in text
    assert 'href="/endpoints/new"' in text


def test_the_exact_request_of_the_first_row_is_shown_and_nothing_is_sent(page, form, target, edith):
    secret = {"auth.type": "api-key", "auth.name": "X-Key", "auth.value": "very-secret-key"}
    text = example(page, form, headers="X-Age: {{age}}", **secret)
    assert f"PUT {target.url('/people/1')}" in text
    assert "X-Age: " in text
    assert '{"mail":"' in text
    assert "X-Key: ********" in text
    assert "very-secret-key" not in text
    assert "{{firstName}}" in text  # the fields that may be named
    assert target.calls() == []
    assert edith.get("/endpoints").json["total"] == edith.get("/connections").json["total"] == 0


def test_a_batch_is_shown_with_several_rows(page, form):
    text = example(
        page, form, push_mode="batch", wrapper_key="items", url=form["url"].replace("{{id}}", "all")
    )
    assert text.count('"mail"') == 3
    assert '{"items":[' in text


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"body": '{"x": "{{nowhere}}"}'}, 'The request uses "nowhere"'),
        ({"body": "{x"}, "body"),
        ({"url": ""}, "Enter a URL"),
        ({"url": "people"}, "must start with https:"),
        ({"url": "http://127.0.0.1:9/{{id"}, "path"),
    ],
)
def test_an_impossible_request_has_a_reason(page, form, wrong, expected):
    assert expected in example(page, form, **wrong)


def test_an_endpoint_is_created_by_its_form_and_shown(page, form, edith, target):
    where = made(
        page, form, **{"retry.retries": "1", "auth.type": "bearer", "auth.token": "very-secret-token"}
    )
    saved = edith.get(where).json
    assert (saved["method"], saved["url"], saved["body"]) == ("PUT", form["url"], {"mail": "{{E-Mail}}"})
    assert (saved["retry"], saved["auth"]) == ({"retries": 1}, {"type": "bearer", "token": "********"})
    text = html.unescape(page.get(where).text)
    assert f"PUT {form['url']}" in text
    assert "very-secret-token" not in text
    assert "People" in page.get("/endpoints").text


def test_errors_are_shown_next_to_their_inputs(page, form):
    wrong = {"name": "", "body": "{x", "headers": "nonsense", "retry.retries": "many"}
    answer = page.submit("/endpoints/new", {**form, **wrong})
    assert answer.status_code == 422
    for name in ("name", "body", "headers"):
        assert f'id="{name}-err"' in answer.text
    assert form_in(answer.text, "endpoint-form")["body"] == "{x"


def test_errors_of_settings_are_shown_next_to_their_inputs(page, form):
    answer = page.submit("/endpoints/new", {**form, "retry.retries": "99", "capture": "id: $.[["})
    assert answer.status_code == 422
    assert 'id="retry.retries-err"' in answer.text
    assert 'id="capture-err"' in answer.text


def test_all_problems_are_reported_together(page, form, edith):
    wrong = {
        "name": "", "url": "people", "headers": "X-A: {{no", "body": "{x", "retry.retries": "99",
        "auth.type": "api-key", "auth.value": "",
    }  # fmt: skip
    answer = page.submit("/endpoints/new", {**form, **wrong})
    assert answer.status_code == 422
    for name in ("name", "url", "headers", "body", "retry.retries", "auth.value"):
        assert f'id="{name}-err"' in answer.text, name
    where = made(page, form)
    drawn = form_in(page.get(f"{where}/edit").text, "endpoint-form")
    again = page.submit(f"{where}/edit", {**drawn, "name": "", "url": "people", "parallel": "0"})
    assert again.status_code == 422
    for name in ("name", "url", "parallel"):
        assert f'id="{name}-err"' in again.text, name
    assert edith.get(where).json["name"] == "People"


def test_a_secret_is_kept_when_an_unchanged_form_is_saved(page, form, edith, target):
    where = made(
        page, form, **{"auth.type": "bearer", "auth.token": "very-secret-token", "capture": "id: $.id"}
    )
    drawn = form_in(page.get(f"{where}/edit").text, "endpoint-form")
    assert drawn["auth.token"] == "********"
    answer = page.submit(f"{where}/edit", {**drawn, "name": "Renamed", "capture": "", "body": ""})
    assert answer.status_code == 303, answer.text
    saved = edith.get(where).json
    assert (saved["name"], saved["body"], saved["capture"]) == ("Renamed", None, None)
    assert saved["auth"] == {"type": "bearer", "token": "********"}
    assert "Authorization: Bearer ********" in example(page, drawn)
    moved = page.submit(f"{where}/edit", {**drawn, "url": "http://other.example/x"})
    assert moved.status_code == 422
    assert 'id="auth.token-err"' in moved.text


def test_authentication_can_be_taken_away(page, form, edith):
    where = made(page, form, **{"auth.type": "bearer", "auth.token": "very-secret-token"})
    drawn = form_in(page.get(f"{where}/edit").text, "endpoint-form")
    assert page.submit(f"{where}/edit", {**drawn, "auth.type": "none"}).status_code == 303
    assert edith.get(where).json["auth"] == {"type": "none"}


def test_on_a_connection_it_has_a_path_and_its_credentials(page, app, cast, form, edith, target):
    auth = {"type": "bearer", "token": "very-secret-token"}
    stored = connection(app, cast, "rest", {"base_url": target.url("/api"), "auth": auth})
    drawn = form_in(
        page.submit("/endpoints/new", {**form, "connection_id": stored, "do": "draw"}).text, "endpoint-form"
    )
    assert "path" in drawn
    assert "url" not in drawn
    assert "auth.type" not in drawn
    filled = {**drawn, "path": "/people/{{id}}"}
    text = example(page, filled)
    assert f"PUT {target.url('/api/people/1')}" in text
    assert "Authorization: Bearer ********" in text
    where = made(page, filled)
    assert edith.get(where).json["connection_id"] == stored
    again = form_in(page.get(f"{where}/edit").text, "endpoint-form")
    assert page.submit(f"{where}/edit", {**again, "path": "/others"}).status_code == 303
    assert edith.get(where).json["path"] == "/others"
    assert where in page.get(f"/connections/{stored}").text  # where it is used


def test_a_deletion_can_be_taken_back(page, form, edith):
    where = made(page, form)
    assert page.submit(f"{where}?_method=DELETE").status_code == 303
    assert f'action="{where}/restore"' in page.get("/endpoints").text
    assert page.submit(f"{where}/restore").status_code == 303
    assert edith.get("/endpoints").json["total"] == 1
