"""The pages of pushes over HTTP: paths and entity sets, exact requests, statuses, reasons in words."""

from __future__ import annotations

import html

import pytest

from tests.connectors.odata_documents import V2
from tests.fakes.echo_target import Answer, EchoTarget
from tests.views.forms import form_in
from tests.views.speak import make
from tests.views.targets import CUSTOMERS, connection, sqlite_target, work  # noqa: F401
from webapp.pushes.views import presentation

HX = {"HX-Request": "true"}
QUICK = {"backoff_seconds": [0, 0, 0]}


@pytest.fixture
def target():
    with EchoTarget() as result:
        yield result


@pytest.fixture
def page(browser, cast):
    return browser(cast.edith)


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def template(edith):
    return f"/templates/{make(edith, name='Customers', fields=CUSTOMERS)['id']}"


@pytest.fixture
def rest(app, cast, target):
    settings = {
        "base_url": target.url("/api"), "push_path": "/people", "retry": {**QUICK, "retries": 1}, "parallel": 1,
        "auth": {"type": "bearer", "token": "very-secret-token"},
    }  # fmt: skip
    return connection(app, cast, "rest", settings, name="API")


@pytest.fixture
def form(page, template, rest):
    return form_of(page.get(f"{template}/push?connection_id={rest}").text)


def form_of(text):
    return form_in(text, "push-form")


def press(page, template, form, verb, **how):
    return page.submit(f"{template}/push/form", {**form, "do": verb}, **how)


def sent(page, template, form, work, **more):
    answer = press(page, template, {**form, "count": "4", **more}, "send")
    assert answer.status_code == 303, answer.text
    work(answer.headers["Location"].rsplit("/", 1)[1])
    return answer.headers["Location"]


def test_the_path_of_the_connection_is_filled_in_and_what_is_for_databases_is_not_there(
    page, template, form, rest
):
    assert form["target"] == "/people"
    assert {"how.push_mode", "how.parallel", "how.retry.retries"} <= form.keys()
    text = page.get(f"{template}/push?connection_id={rest}").text
    assert 'type="checkbox" id="create"' not in text
    assert 'name="before_sql"' not in text
    assert "@location" not in text


def test_a_dry_run_shows_each_request_and_sends_none(page, template, form, target):
    text = html.unescape(press(page, template, form, "dry", headers=HX).text)
    assert text.count(f"POST {target.url('/api/people')}") == 3
    assert text.count("Authorization: Bearer ********") == 3
    assert "very-secret-token" not in text
    assert "none sent" in text
    assert target.calls() == []


def test_the_forms_settings_for_sending_only_affect_this_push(
    page, template, form, target, work, edith, rest
):
    more = {
        "target": "/others",
        "how.push_mode": "batch",
        "how.wrapper_key": "rows",
        "how.retry.retries": "0",
    }
    where = sent(page, template, form, work, **more)
    assert [(call.path, list(call.json)) for call in target.calls()] == [("/api/others", ["rows"])]
    request = edith.get(where).json["request"]
    assert (request["push_mode"], request["retry"]) == ("batch", {"retries": 0})
    assert edith.get(f"/connections/{rest}").json["settings"]["push_path"] == "/people"


def test_the_request_of_a_single_push_can_be_changed_in_the_form(
    page, template, form, target, work, edith, rest
):
    assert (form["request_template.method"], form["request_template.body"]) == (
        "",
        "",
    )  # POST is the usual one
    more = {
        "target": "/people/{{id}}",
        "request_template.method": "PUT",
        "request_template.headers": "X-Mail: {{E-Mail | upper}}",
        "request_template.body": '{"person": {"mail": "{{E-Mail}}", "age": "{{age}}"}}',
    }
    dry = html.unescape(press(page, template, {**form, **more}, "dry", headers=HX).text)
    assert f"PUT {target.url('/api/people/1')}" in dry
    assert '{"person":{"mail":"' in dry
    where = sent(page, template, form, work, **more)
    assert {call.method for call in target.calls()} == {"PUT"}
    assert all(call.headers["x-mail"] == call.json["person"]["mail"].upper() for call in target.calls())
    assert isinstance(target.calls()[0].json["person"]["age"], int)
    assert edith.get(where).json["request"]["request_template"]["method"] == "PUT"
    assert "request_template" not in edith.get(f"/connections/{rest}").json["settings"]


def test_a_request_that_is_left_as_it_was_is_the_connections(page, app, cast, template, target, work, edith):
    shape = {"method": "PUT", "path": "/kept/{{id}}", "body": {"mail": "{{E-Mail}}"}}
    stored = connection(
        app, cast, "rest", {"base_url": target.url(), "request_template": shape}, name="Shaped"
    )
    drawn = form_of(page.get(f"{template}/push?connection_id={stored}").text)
    assert (drawn["request_template.method"], drawn["target"]) == ("PUT", "/kept/{{id}}")
    assert '"{{E-Mail}}"' in html.unescape(drawn["request_template.body"])
    where = sent(page, template, drawn, work)
    assert edith.get(where).json["request"].get("request_template") is None
    assert {tuple(call.json) for call in target.calls()} == {("mail",)}
    plain = sent(page, template, {**drawn, "request_template.body": ""}, work)
    assert edith.get(plain).json["request"]["request_template"]["body"] is None
    assert len(target.calls()[-1].json) > 1


def test_an_endpoints_request_is_changed_for_one_push_and_keeps_its_path(page, template, edith, target, work):
    value = {
        "name": "Put them",
        "method": "PUT",
        "url": target.url("/p/{{id}}"),
        "body": {"mail": "{{E-Mail}}"},
    }
    endpoint = edith.post("/endpoints", json=value).json["id"]
    drawn = form_of(page.get(f"{template}/push?connection_id={endpoint}").text)
    sent(page, template, {**drawn, "request_template.method": "PATCH"}, work)
    assert {call.method for call in target.calls()} == {"PATCH"}
    assert sorted(call.path for call in target.calls()) == [f"/p/{n}" for n in range(1, 5)]
    assert {tuple(call.json) for call in target.calls()} == {("mail",)}


def test_input_for_another_target_is_not_kept(page, app, cast, template, form, target):
    other = connection(app, cast, "rest", {"base_url": target.url("/other")}, name="Other")
    typed = {**form, "request_template.method": "PUT", "connection_id": other}
    assert form_of(press(page, template, typed, "plan").text)["request_template.method"] == ""


def test_errors_of_the_request_are_shown_next_to_their_inputs(page, template, form):
    wrong = {
        "request_template.body": "{x",
        "request_template.headers": "Authorization: Bearer abc",
        "request_template.query_params": "since: {{no",
    }
    answer = press(page, template, {**form, **wrong}, "send")
    assert answer.status_code == 422
    for name in wrong:
        assert f'id="{name}-err"' in answer.text, name
    assert form_of(answer.text)["request_template.body"] == "{x"


def test_an_invalid_number_is_reported_next_to_its_input(page, template, form):
    answer = press(page, template, {**form, "how.retry.retries": "99", "how.parallel": "0"}, "send")
    assert answer.status_code == 422
    assert 'id="how.retry.retries-err"' in answer.text
    assert 'id="how.parallel-err"' in answer.text
    assert form_of(answer.text)["how.retry.retries"] == "99"


def test_another_connection_uses_its_own_terms(page, app, cast, template, form):
    shop = sqlite_target(app, cast).connection_id
    text = press(page, template, {**form, "connection_id": shop}, "plan").text
    assert "Column of customers" in text
    assert "how.push_mode" not in text
    assert '<input id="create_table" name="create_table" type="checkbox"' in text.replace("checked ", "")
    back = form_of(
        press(page, template, {**form_of(text), "connection_id": form["connection_id"]}, "plan").text
    )
    assert back["target"] == "/people"


def test_an_endpoint_is_chosen_and_sent_to(page, template, edith, target, work):
    value = {
        "name": "Put them",
        "method": "PUT",
        "url": target.url("/p/{{id}}"),
        "body": {"mail": "{{E-Mail}}"},
    }
    endpoint = edith.post("/endpoints", json=value).json["id"]
    text = html.unescape(page.get(f"{template}/push?connection_id={endpoint}").text)
    assert "Put them (endpoint)" in text
    assert "/p/{{id}}" in text
    where = sent(page, template, form_of(text), work)
    assert sorted(call.path for call in target.calls()) == [f"/p/{n}" for n in range(1, 5)]
    assert edith.get(where).json["endpoint_id"] == endpoint
    assert f'to the endpoint <a href="/endpoints/{endpoint}">Put them</a>' in page.get(where).text


def test_entity_sets_are_picked_and_their_properties_mapped(page, app, cast, template, edith):
    stored = connection(app, cast, "odata", {"service_url": "http://127.0.0.1:9/erp"}, name="ERP")
    edith.put(f"/connections/{stored}/metadata-document", data=V2)
    text = page.get(f"{template}/push?connection_id={stored}&target=CustomerSet").text
    assert "Property of CustomerSet" in text
    drawn = form_of(text)
    assert drawn["target"] == "CustomerSet"
    assert "how.push_mode" not in drawn
    dry = html.unescape(press(page, template, drawn, "dry", headers=HX).text)
    assert dry.count("POST /erp/CustomerSet HTTP/1.1") == 3


def test_statuses_attempts_and_reasons_are_reported(page, template, form, target, work):
    answers = [Answer(422, "no such country"), Answer(503), Answer(503), Answer(403, "no role"), Answer(201)]
    target.on("/api/people", *answers)
    text = html.unescape(page.get(sent(page, template, form, work)).text)
    assert '<td class="right num">422</td>' in text
    assert '<td class="right num">503</td>' in text
    for reason in ("rejected", "unavailable", "forbidden"):
        assert presentation.explain(reason).next in text
    assert presentation.explain("csrf").next not in text
    assert "Idempotency-Key" not in text


def test_unknown_rows_say_how_to_find_their_outcome(page, template, form, target, work):
    target.on("/api/people", Answer(cut="read"))
    where = sent(page, template, form, work)
    text = html.unescape(page.get(where).text)
    assert "4 rows are <b>unknown</b>" in text
    assert f"Idempotency-Key: {where.rsplit('/', 1)[1]}-" in text
    assert presentation.explain("reset").meaning in text


def test_a_push_without_a_token_says_what_to_check(page, app, cast, template, target, work):
    auth = {
        "type": "oauth2-client-credentials", "token_url": target.url("/token"), "client_id": "c", "client_secret": "s3",
    }  # fmt: skip
    target.on("/token", Answer(400, {"error": "invalid_client"}))
    stored = connection(
        app, cast, "rest", {"base_url": target.url("/api"), "auth": auth, "retry": {"retries": 0}}
    )
    drawn = form_of(page.get(f"{template}/push?connection_id={stored}").text)
    text = html.unescape(page.get(sent(page, template, drawn, work)).text)
    assert presentation.explain("no_token").next in text


@pytest.mark.parametrize("reason", sorted(presentation.EXPLAINED_REASONS))
def test_every_reason_has_a_sentence_and_a_next_step(reason):
    found = presentation.explain(reason)
    assert found.meaning.endswith(".")
    assert found.next.endswith(".")
