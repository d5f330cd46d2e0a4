"""Ways in which an uploaded document could lead a stored secret to another server."""

from __future__ import annotations

import json

import pytest

from tests.fakes.echo_target import EchoTarget
from webapp.connectors.http import tokens

VALUE = "canary-77aa-token"


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


def document(server: str) -> bytes:
    body = {
        "content": {
            "application/json": {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}
        }
    }
    paths = {"/orders": {"post": {"requestBody": body, "responses": {"201": {"description": "created"}}}}}
    info = {"title": "T", "version": "1"}
    return json.dumps(
        {"openapi": "3.0.0", "info": info, "servers": [{"url": server}], "paths": paths}
    ).encode()


def test_another_document_does_not_lead_a_stored_secret_to_another_server(edith, good, evil):
    settings = {"auth": {"type": "bearer", "token": VALUE}}
    created = edith.post("/connections", json={"name": "O", "type": "openapi", "settings": settings}).json
    at = f"/connections/{created['id']}"
    assert edith.put(f"{at}/metadata-document", data=document(good.url("/api"))).status_code == 200
    edith.post(f"{at}/verify")
    assert any(seen.headers.get("authorization") == f"Bearer {VALUE}" for seen in good.seen)
    answer = edith.put(f"{at}/metadata-document", data=document(evil.url("/api")))
    edith.post(f"{at}/verify")
    assert answer.status_code == 422, answer.text
    assert evil.seen == []


def connected(edith, **settings) -> str:
    """A connection with a stored token; its address."""
    settings = {"auth": {"type": "bearer", "token": VALUE}, **settings}
    body = {"name": "O", "type": "openapi", "settings": settings}
    return f"/connections/{edith.post('/connections', json=body).json['id']}"


def test_removing_the_document_first_does_not_help(edith, good, evil):
    at = connected(edith)
    edith.put(f"{at}/metadata-document", data=document(good.url("/api")))
    answer = edith.delete(f"{at}/metadata-document")
    assert answer.json["settings"]["base_url"] == good.url("/api")
    assert edith.put(f"{at}/metadata-document", data=document(evil.url("/api"))).status_code == 200
    edith.post(f"{at}/verify")
    assert evil.seen == []
    assert any(seen.headers.get("authorization") == f"Bearer {VALUE}" for seen in good.seen)


def test_neither_does_a_change_that_forgets_what_is_known(edith, good, evil):
    at = connected(edith)
    edith.put(f"{at}/metadata-document", data=document(good.url("/api")))
    settings = edith.get(at).json["settings"]
    assert (
        edith.patch(at, json={"settings": {**settings, "retry": {"timeout_seconds": 5}}}).status_code == 200
    )
    assert edith.put(f"{at}/metadata-document", data=document(evil.url("/api"))).status_code == 422
    edith.post(f"{at}/verify")
    assert evil.seen == []


def test_nor_a_document_in_between_that_names_no_server(edith, good, evil):
    at = connected(edith)
    edith.put(f"{at}/metadata-document", data=document(good.url("/api")))
    assert edith.put(f"{at}/metadata-document", data=document("/api")).status_code == 422
    assert edith.put(f"{at}/metadata-document", data=document(evil.url("/api"))).status_code == 422


def test_a_document_at_an_address_is_not_replaced_by_one_that_leads_elsewhere(edith, good, evil):
    from tests.fakes.echo_target import Answer

    good.on("/doc", Answer(200, document(good.url("/api")).decode(), {"Content-Type": "application/json"}))
    at = connected(edith, document_url=good.url("/doc"))
    assert edith.put(f"{at}/metadata-document", data=document(evil.url("/api"))).status_code == 422
    assert edith.put(f"{at}/metadata-document", data=document("/api")).status_code == 200


def test_named_secrets_count_too(edith, api, cast, good, evil):
    adam = api(cast.adam)
    assert adam.put("/secrets/any", json={"value": VALUE, "allowed_hosts": None}).status_code == 201
    at = connected(edith, auth={"type": "bearer", "token": "${any}"})
    assert edith.put(f"{at}/metadata-document", data=document(good.url("/api"))).status_code == 200
    answer = edith.put(f"{at}/metadata-document", data=document(evil.url("/api")))
    assert [field["code"] for field in answer.json["error"]["details"]["fields"]] == ["needed_again"]


def test_a_newer_document_of_the_same_server_is_taken(edith, good):
    at = connected(edith)
    edith.put(f"{at}/metadata-document", data=document(good.url("/api/v1")))
    assert edith.put(f"{at}/metadata-document", data=document(good.url("/api/v2"))).status_code == 200


def test_without_a_secret_any_document_is_taken(edith, good, evil):
    at = connected(edith, auth={"type": "none"})
    edith.put(f"{at}/metadata-document", data=document(good.url("/api")))
    assert edith.put(f"{at}/metadata-document", data=document(evil.url("/api"))).status_code == 200
