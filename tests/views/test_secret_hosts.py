"""An editor cannot send a named secret to a host under their control, or use a secret without permission."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from tests.fakes.echo_target import Answer, EchoTarget
from tests.views.speak import make
from webapp.audit.models import AuditEntry
from webapp.connections.models import Secret
from webapp.connectors.http import tokens
from webapp.extensions import db
from webapp.scenarios.services import environment_variables

VALUE = "canary-5f2c-token"


@pytest.fixture
def good():
    with EchoTarget() as target:
        yield target


@pytest.fixture
def evil():
    tokens.tokens.clear()
    with EchoTarget(host="127.0.0.2") as target:
        yield target
    for seen in target.seen:
        assert VALUE not in str((seen.path, seen.query, seen.headers, seen.body)), "the secret has leaked"


@pytest.fixture
def adam(api, cast):
    return api(cast.adam)


@pytest.fixture
def token(adam):
    """A secret that may be sent to 127.0.0.1."""
    assert (
        adam.put("/secrets/token", json={"value": VALUE, "allowed_hosts": ["127.0.0.1"]}).status_code == 201
    )


def rest(base: str, **more) -> dict:
    settings = {"base_url": base, "auth": {"type": "bearer", "token": "${token}"}, **more}
    return {"name": "C", "type": "rest", "settings": settings}


def codes(answer) -> list[str]:
    assert answer.status_code == 422, answer.text
    return [field["code"] for field in answer.json["error"]["details"]["fields"]]


def test_an_editor_uses_a_secret_at_its_hosts(edith, token, good):
    created = edith.post("/connections", json=rest(good.url()))
    assert created.json["verification"]["status"] == "verified"
    assert any(seen.headers.get("authorization") == f"Bearer {VALUE}" for seen in good.seen)


WAYS = {
    "bearer": {},
    "basic": {"auth": {"type": "basic", "username": "u", "password": "${token}"}},
    "header": {"auth": {"type": "api-key", "in": "header", "name": "X-Key", "value": "${token}"}},
    "header name": {"auth": {"type": "api-key", "in": "header", "name": "${token}", "value": "x"}},
    "query": {"auth": {"type": "api-key", "in": "query", "name": "k", "value": "${token}"}},
    "default header": {"auth": {"type": "none"}, "default_headers": {"X-Key": "a ${token} b"}},
    "default header name": {"auth": {"type": "none"}, "default_headers": {"X-${token}": "x"}},
    "path": {"auth": {"type": "none"}, "push_path": "/x/${token}"},
    "template": {"auth": {"type": "none"}, "request_template": {"path": "/", "headers": {"X": "${token}"}}},
    "spaces": {"auth": {"type": "bearer", "token": "${ token }"}},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_is_sent_to_no_other_host(edith, token, evil, way):
    answer = edith.post("/connections", json=rest(evil.url(), **WAYS[way]))
    assert codes(answer)[0] == ("invalid" if way == "default header name" else "host_not_allowed")
    assert VALUE not in answer.text
    assert evil.seen == []


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:80@127.0.0.2:{port}/", "http://${{token}}@127.0.0.2:{port}/",
        "http://127.0.0.2:{port}/${{token}}",
        "http://${{token}}.localhost:{port}/", "http://127.0.0.1.localhost:{port}/", "http://2130706434:{port}/",
        "http://0x7f.0.0.2:{port}/", "http://127.2:{port}/", "http://localhost.:{port}/", "http://LOCALHOST:{port}/",
        "http://[::ffff:127.0.0.2]:{port}/", "http://127.0.0.1\\@127.0.0.2:{port}/",
        "http://127.0.0.1%2f@127.0.0.2:{port}/",
        "${{token}}", "//127.0.0.2:{port}/", "http:127.0.0.2:{port}",
    ],
)  # fmt: skip
def test_no_spelling_of_a_url_leads_a_secret_elsewhere(edith, token, evil, url):
    answer = edith.post("/connections", json=rest(url.format(port=evil.port)))
    assert answer.status_code == 422, answer.text
    assert VALUE not in answer.text
    assert evil.seen == []


def test_oauth_sends_a_client_secret_to_no_other_host(edith, token, good, evil):
    auth = {
        "type": "oauth2-client-credentials", "token_url": evil.url("/token"), "client_id": "c",
        "client_secret": "${token}",
    }  # fmt: skip
    assert "host_not_allowed" in codes(edith.post("/connections", json=rest(good.url(), auth=auth)))


def test_a_host_that_is_only_known_at_run_time_is_rejected_when_used(app, adam, edith, token, good, evil):
    """The list is changed after the connection was saved."""
    created = edith.post("/connections", json=rest(good.url())).json["id"]
    adam.put("/secrets/token", json={"allowed_hosts": ["api.example.com"]})
    good.clear()
    answer = edith.post(f"/connections/{created}/verify").json
    assert answer["status"] == "failed"
    assert answer["stages"][0]["code"] == "secret_host"
    assert 'The secret "token" must not be sent to 127.0.0.1.' in answer["stages"][0]["message"]
    assert good.seen == []


def test_a_redirect_to_another_host_does_not_carry_the_secret(edith, token, good, evil):
    good.on("/*", Answer(302, "", {"Location": evil.url("/stolen?k=1")}))
    good.on("/", Answer(302, "", {"Location": evil.url("/stolen?k=1")}))
    created = edith.post(
        "/connections",
        json=rest(good.url(), auth={"type": "api-key", "in": "query", "name": "k", "value": "${token}"}),
    )
    assert created.status_code == 201
    assert evil.seen, "a redirect is followed, without anything of the connection's"


def test_an_openapi_document_does_not_lead_a_secret_elsewhere(edith, token, good, evil):
    document = {
        "openapi": "3.0.0", "info": {"title": "T", "version": "1"}, "servers": [{"url": evil.url("/api")}],
        "paths": {"/rows": {"post": {
            "operationId": "rows", "responses": {"200": {"description": "ok"}},
            "requestBody": {"content": {"application/json": {"schema": {
                "type": "object", "properties": {"a": {"type": "string"}}}}}},
        }}},
    }  # fmt: skip
    import json

    good.on("/doc", Answer(200, json.dumps(document), {"Content-Type": "application/json"}))
    settings = {"document_url": good.url("/doc"), "auth": {"type": "bearer", "token": "${token}"}}
    created = edith.post("/connections", json={"name": "O", "type": "openapi", "settings": settings}).json
    assert created["verification"]["status"] == "failed"
    assert evil.seen == []


def test_a_changed_connection_is_checked_again(edith, token, good, evil):
    created = edith.post("/connections", json=rest(good.url())).json
    changed = {**created["settings"], "base_url": evil.url()}
    answer = edith.patch(f"/connections/{created['id']}", json={"settings": changed})
    assert "host_not_allowed" in codes(answer)


@pytest.mark.parametrize("where", ["headers", "query_params", "body", "url", "auth"])
def test_endpoints_are_checked_too(edith, token, evil, where):
    more = {
        "headers": {"headers": {"X": "${token}"}}, "query_params": {"query_params": {"k": "${token}"}},
        "body": {"body": {"k": "${token}"}}, "url": {"url": evil.url("/${token}")},
        "auth": {"auth": {"type": "bearer", "token": "${token}"}},
    }[where]  # fmt: skip
    answer = edith.post("/endpoints", json={"name": "E", "method": "POST", "url": evil.url("/x"), **more})
    assert "host_not_allowed" in codes(answer)


def test_an_endpoint_does_not_follow_its_connection_elsewhere(edith, token, good, evil):
    plain = {"name": "C", "type": "rest", "settings": {"base_url": good.url()}}
    created = edith.post("/connections", json=plain).json["id"]
    endpoint = {
        "name": "E",
        "connection_id": created,
        "method": "POST",
        "path": "/x",
        "headers": {"X": "${token}"},
    }
    assert edith.post("/endpoints", json=endpoint).status_code == 201
    answer = edith.patch(f"/connections/{created}", json={"settings": {"base_url": evil.url()}})
    assert "host_not_allowed" in codes(answer)


def test_a_push_cannot_contain_its_own_secret(edith, token, evil):
    plain = {"name": "C", "type": "rest", "settings": {"base_url": evil.url()}}
    created = edith.post("/connections", json=plain).json["id"]
    template = make(edith)["id"]
    evil.clear()
    body = {
        "connection_id": created,
        "target": "/rows",
        "count": 1,
        "request_template": {"path": "/", "headers": {"X": "${token}"}},
    }
    answer = edith.post(f"/templates/{template}/push", json=body)
    assert answer.status_code == 422
    assert evil.seen == []


@pytest.mark.parametrize(
    "inputs",
    [
        {"host": "127.0.0.2", "username": "u", "password": "${token}"},
        {"host": "127.0.0.2", "username": "${token}"},
        {"connection_string": "postgresql://u:${token}@127.0.0.2:5432/x"},
        {"connection_string": "host=127.0.0.2 user=u password=${token}"},
        {"host": "${token}", "username": "u"},
    ],
)
def test_databases_are_checked_too(edith, token, inputs):
    answer = edith.post("/connections", json={"name": "D", "type": "postgresql", "settings": inputs})
    assert "host_not_allowed" in codes(answer)


def test_a_restricted_secret_is_no_name_of_a_file(edith, token):
    answer = edith.post(
        "/connections", json={"name": "S", "type": "sqlite", "settings": {"file": "${token}"}}
    )
    assert answer.status_code == 422 or answer.json["verification"]["status"] == "failed"
    assert VALUE not in answer.text


def test_an_ai_endpoint_is_checked_too(edith, token, evil):
    settings = {"base_url": evil.url("/v1"), "model": "m", "api_key": "${token}"}
    assert "host_not_allowed" in codes(
        edith.post("/connections", json={"name": "A", "type": "ai", "settings": settings})
    )


def test_secrets_in_secrets_are_not_filled_in(adam, edith, token, good, evil):
    adam.put("/secrets/outer", json={"value": "a-${token}", "allowed_hosts": ["127.0.0.2"]})
    auth = {"type": "api-key", "in": "header", "name": "X-Key", "value": "${outer}"}
    assert edith.post("/connections", json=rest(evil.url(), auth=auth)).status_code == 201
    assert any(seen.headers.get("x-key") == "a-${token}" for seen in evil.seen)


def test_the_connection_test_of_the_compatibility_layer_is_checked_too(edith, token, evil):
    answer = edith.post("/compat/connections/test", json=rest(evil.url()))
    assert answer.status_code == 422
    assert evil.seen == []


# --- New secrets, and who may use which -----------------------------------------------------------------------


def test_a_new_secret_can_be_sent_nowhere_until_an_admin_uses_it(app, adam, edith, good, evil):
    outcome = adam.put("/secrets/token", json={"value": VALUE}).json
    assert (outcome["allowed_hosts"], outcome["project_id"]) == ([], None)
    assert "host_not_allowed" in codes(edith.post("/connections", json=rest(good.url())))
    assert adam.post("/connections", json=rest(good.url())).json["verification"]["status"] == "verified"
    (result,) = adam.get("/secrets").json["items"]
    assert result["allowed_hosts"] == ["127.0.0.1"]
    assert edith.post("/connections", json=rest(good.url())).status_code == 201
    assert "host_not_allowed" in codes(edith.post("/connections", json=rest(evil.url())))
    with app.app_context():
        found = db.session.scalars(sa.select(AuditEntry).where(AuditEntry.action == "secret.change")).one()
        assert found.details["changes"]["allowed_hosts"] == {"from": [], "to": ["127.0.0.1"]}
        db.session.remove()


def test_secrets_from_before_can_be_sent_to_any_host(app, adam, edith, token, evil, good):
    with app.app_context():
        db.session.execute(sa.update(Secret).values(allowed_hosts=None))
        db.session.commit()
        db.session.remove()
    assert adam.get("/secrets").json["items"][0]["allowed_hosts"] is None
    assert edith.post("/connections", json=rest(good.url())).status_code == 201


def test_a_new_value_keeps_the_hosts_and_hosts_keep_the_value(app, adam, edith, token, good):
    assert adam.put("/secrets/token", json={"value": VALUE + "2"}).json["allowed_hosts"] == ["127.0.0.1"]
    edith.post("/connections", json=rest(good.url()))
    adam.put("/secrets/token", json={"allowed_hosts": ["127.0.0.1", "LOCALHOST."]})
    assert adam.get("/secrets").json["items"][0]["allowed_hosts"] == ["127.0.0.1", "localhost"]
    good.clear()
    edith.post("/connections", json=rest(good.url()))
    assert any(seen.headers.get("authorization") == f"Bearer {VALUE}2" for seen in good.seen)
    assert adam.put("/secrets/other", json={"allowed_hosts": []}).status_code == 422
    assert adam.put("/secrets/token", json={"allowed_hosts": ["https://x.example/"]}).status_code == 422
    assert adam.put("/secrets/token", json={"project_id": "prj_x"}).status_code == 422
    assert edith.put("/secrets/token", json={"allowed_hosts": None}).status_code == 403


def test_team_members_cannot_use_secrets_of_the_workspace(adam, tessa, rita, token, good):
    for item in (tessa, rita):
        answer = item.post("/connections", json=rest(good.url()))
        assert codes(answer) == ["unknown_secret"]
        assert answer.json == item.post("/connections", json=rest(good.url())).json
    missing = {**rest(good.url())}
    missing["settings"] = {**missing["settings"], "auth": {"type": "bearer", "token": "${nothing}"}}
    result, there = (
        tessa.post("/connections", json=missing),
        tessa.post("/connections", json=rest(good.url())),
    )
    assert result.text.replace("nothing", "token") == there.text, "whether it exists is not told"


def test_a_secret_of_a_project_is_used_there_and_nowhere_else(adam, cast, edith, tessa, rita, token, good):
    adam.put("/secrets/token", json={"project_id": cast.main})
    created = tessa.post("/connections", json=rest(good.url()))
    assert created.json["verification"]["status"] == "verified"
    assert codes(rita.post("/connections", json=rest(good.url()))) == ["unknown_secret"]
    other = {"X-Project-Id": cast.side}
    assert codes(edith.post("/connections", json=rest(good.url()), headers=other)) == ["unknown_secret"]
    moved = edith.post(f"/projects/{cast.side}/move", json={"objects": [created.json["id"]]})
    assert moved.status_code == 200
    good.clear()
    edith.post(f"/connections/{created.json['id']}/verify")
    assert not any(VALUE in str(seen.headers) for seen in good.seen)


def test_team_members_cannot_redirect_a_connection_of_an_admin(app, adam, tessa, token, good, evil):
    with app.app_context():
        db.session.execute(sa.update(Secret).values(allowed_hosts=None))
        db.session.commit()
        db.session.remove()
    created = adam.post("/connections", json=rest(good.url())).json
    stored = {**created["settings"], "parallel": 2}
    assert tessa.patch(f"/connections/{created['id']}", json={"settings": stored}).status_code == 200
    moved = {**created["settings"], "base_url": evil.url()}
    assert codes(tessa.patch(f"/connections/{created['id']}", json={"settings": moved})) == ["unknown_secret"]


def test_a_team_pushes_through_an_endpoint_of_an_admin_and_cannot_lead_it_elsewhere(
    adam, tessa, token, good, evil
):
    plain = adam.post(
        "/connections", json={"name": "C", "type": "rest", "settings": {"base_url": good.url()}}
    ).json["id"]
    body = {"name": "E", "connection_id": plain, "method": "POST", "path": "/x", "headers": {"X": "${token}"}}
    endpoint = adam.post("/endpoints", json=body).json["id"]
    template = make(tessa)["id"]
    pushed = tessa.post(
        f"/templates/{template}/push", json={"endpoint_id": endpoint, "count": 1, "dry_run": True}
    )
    assert pushed.status_code == 200, pushed.text
    assert tessa.patch(f"/endpoints/{endpoint}", json={"name": "Renamed"}).status_code == 200
    answer = tessa.patch(f"/connections/{plain}", json={"settings": {"base_url": evil.url()}})
    assert codes(answer) == ["unknown_secret"]


def test_a_scenario_only_gets_secrets_of_its_project(app, adam, cast, token):
    adam.put("/secrets/token", json={"project_id": cast.side})
    body = {"name": "S", "code": "print(1)\n", "secrets": ["token"]}
    assert codes(adam.post("/scenarios", json=body)) == ["unknown_secret"]
    assert adam.post("/scenarios", json=body, headers={"X-Project-Id": cast.side}).status_code == 201
    with app.app_context():
        assert environment_variables.granted_secrets(cast.acme, cast.side, ["token"]) == {"token": VALUE}
        with pytest.raises(environment_variables.UnknownSecretError):
            environment_variables.granted_secrets(cast.acme, cast.main, ["token"])


def test_the_page_shows_and_sets_hosts(browser, cast, adam, token):
    page = browser(cast.adam)
    adam.put("/secrets/free", json={"value": "x", "allowed_hosts": None})
    text = page.get("/secrets").text
    assert "Any host" in text
    assert "127.0.0.1" in text
    assert VALUE not in text
    text = page.get("/secrets?edit=token").text
    assert "Leave empty to keep the value" in text
    assert VALUE not in text
    sent = {
        "name": "token",
        "value": "",
        "allowed_hosts": "127.0.0.1\na.example, *.b.example",
        "project_id": cast.main,
    }
    assert page.submit("/secrets", sent).status_code == 303
    result = next(item for item in adam.get("/secrets").json["items"] if item["name"] == "token")
    assert result["allowed_hosts"] == ["127.0.0.1", "a.example", "*.b.example"]
    assert result["project_id"] == cast.main
    wrong = page.submit("/secrets", {**sent, "allowed_hosts": "https://x/"})
    assert wrong.status_code == 422
    assert "Enter only the host" in wrong.text
