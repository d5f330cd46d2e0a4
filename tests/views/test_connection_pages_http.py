"""The pages of connections that speak HTTP: nested settings, what was answered, metadata documents."""

from __future__ import annotations

import html
import io

import pytest

from tests.connectors.odata_documents import V2
from tests.fakes.echo_target import Answer, EchoTarget
from tests.views.forms import form_in
from tests.views.targets import connection


@pytest.fixture
def target():
    with EchoTarget() as result:
        yield result


@pytest.fixture
def page(browser, cast):
    return browser(cast.edith)


@pytest.fixture
def service(app, cast):
    """An OData service that is not there, but for its document."""
    return "/connections/" + connection(app, cast, "odata", {"service_url": "http://127.0.0.1:9/erp"})


def rest(target, **more):
    return {
        "type": "rest",
        "name": "API",
        "settings.base_url": target.url("/api"),
        "settings.verify_tls": "y",
        **more,
    }


def form_of(text):
    return form_in(text, "connection-form")


def shown(page, where):
    return html.unescape(page.get(where).text)


def test_a_kind_of_authentication_shows_its_fields_and_nothing_is_saved(page, target, api, cast):
    form = {
        **rest(target),
        "settings.push_path": "/people",
        "settings.auth.type": "oauth2-client-credentials",
    }
    text = page.submit("/connections/new", {**form, "do": "draw"}).text
    drawn = form_of(text)
    assert {"settings.auth.token_url", "settings.auth.client_secret", "settings.auth.scope"} <= drawn.keys()
    assert drawn["settings.push_path"] == "/people"
    assert api(cast.edith).get("/connections").json["total"] == 0


def test_nested_settings_are_saved_as_json_has_them(page, target, api, cast):
    form = {
        "settings.auth.type": "bearer", "settings.auth.token": "very-secret-token",
        "settings.retry.retries": "1", "settings.retry.backoff_seconds": "0.5, 2",
        "settings.default_headers": "Accept: text/plain\nX-Kind: a: b",
        "settings.request_template.method": "PUT", "settings.request_template.body": '{"mail": "{{email}}"}',
    }  # fmt: skip
    answer = page.submit("/connections/new", rest(target, **form))
    assert answer.status_code == 303, answer.text
    result = api(cast.edith).get(answer.headers["Location"]).json["settings"]
    assert result == {
        "base_url": target.url("/api"),
        "auth": {"type": "bearer", "token": "********"},
        "retry": {"retries": 1, "backoff_seconds": [0.5, 2]},
        "default_headers": {"Accept": "text/plain", "X-Kind": "a: b"},
        "request_template": {"method": "PUT", "body": {"mail": "{{email}}"}},
    }


@pytest.mark.parametrize(
    "auth",
    [
        {"type": "api-key", "in": "header", "name": "X-Key", "value": "very-secret-key"},
        {"type": "oauth2-client-credentials", "token_url": "http://127.0.0.1:9/t", "client_id": "c",
         "client_secret": "very-secret", "client_auth": "post"},
    ],
)  # fmt: skip
def test_saving_an_unchanged_form_keeps_secrets_and_settings(page, target, app, cast, api, auth):
    settings = {"base_url": target.url("/api"), "auth": auth, "verify_tls": True, "push_mode": "per_row"}
    where = f"/connections/{connection(app, cast, 'rest', settings)}"
    before = api(cast.edith).get(where).json["settings"]
    form = form_of(page.get(f"{where}/edit").text)
    assert "very-secret" not in str(form)
    again = page.submit(f"{where}/edit", {**form, "name": "Renamed", "settings.push_path": "/x"})
    assert again.status_code == 303, again.text
    assert api(cast.edith).get(where).json["settings"] == {**before, "push_path": "/x"}


def test_errors_are_shown_next_to_their_inputs(page, target):
    form = {
        "settings.auth.type": "bearer", "settings.auth.token": "", "settings.retry.retries": "99",
        "settings.default_headers": "nonsense", "settings.request_template.body": "{x",
    }  # fmt: skip
    answer = page.submit("/connections/new", rest(target, **form))
    assert answer.status_code == 422
    for name in ("auth.token", "retry.retries", "default_headers", "request_template.body"):
        assert f'id="settings.{name}-err"' in answer.text
    drawn = form_of(answer.text)
    assert (drawn["settings.retry.retries"], drawn["settings.request_template.body"]) == ("99", "{x")
    assert "Correct these 4 fields:" in answer.text


def test_the_response_to_the_test_is_shown(page, target):
    target.on("/api", Answer(405), method="HEAD")
    target.on("/api", Answer(405), method="OPTIONS")
    target.on("/api", Answer(401, "who are <you>?", {"Content-Type": "text/plain"}), method="GET")
    text = page.get(page.submit("/connections/new", rest(target)).headers["Location"]).text
    assert "Response: 401" in text
    assert f"GET {target.url('/api')}" in text
    assert "who are &lt;you&gt;?" in text
    assert "text/plain" in text


def test_a_document_is_uploaded_looked_into_and_removed(page, service):
    file = {"document": (io.BytesIO(V2), "metadata.xml")}
    answer = page.submit(f"{service}/metadata-document", file)
    assert answer.status_code == 303, answer.text
    assert "uses the uploaded document" in shown(page, service)
    assert page.get(f"{service}/metadata-document").data == V2
    text = shown(page, f"{service}/tables")
    assert "4 entity sets" in text
    assert "rows of <b>ItemSet</b>" in text
    assert "navigation, sent within its row" in text
    result = page.submit(f"{service}/tables", {"entities": ["CustomerSet", "ItemSet"]}).text
    assert "2 linked templates" in result
    assert page.submit(f"{service}/metadata-document?_method=DELETE", {}).status_code == 303
    assert "uses the uploaded document" not in shown(page, service)


@pytest.mark.parametrize("document", [b"", b"<html>sign in</html>"])
def test_an_invalid_document_is_reported_on_the_page(page, service, document):
    answer = page.submit(f"{service}/metadata-document", {"document": (io.BytesIO(document), "x.xml")})
    assert answer.status_code == 422
    assert "Metadata document" in answer.text
    assert 'role="alert"' in answer.text


def test_an_api_without_a_list_says_where_rows_go(page, target):
    text = page.get(
        page.submit("/connections/new", rest(target, **{"settings.push_path": "/in"})).headers["Location"]
    ).text
    assert "Send rows" in text
    assert "<h2>Tables</h2>" not in text
