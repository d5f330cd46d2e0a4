"""Requests accept the words of enumerations in other spellings, and store them in their own."""

from __future__ import annotations

import pytest

from tests.views.speak import faults, make

URL = {"base_url": "http://127.0.0.1:9"}
AUTH = {
    "none": {},
    "basic": {"username": "u", "password": "p"},
    "bearer": {"token": "t"},
    "api-key": {"in": "Query", "name": "key", "value": "v"},
    "oauth2-client-credentials": {
        "token_url": "http://127.0.0.1:9/token", "client_id": "c", "client_secret": "s", "client_auth": "Basic",
    },
}  # fmt: skip


def connected(edith, **settings):
    return edith.post("/connections", json={"name": "C", "type": "REST", "settings": {**URL, **settings}})


@pytest.mark.parametrize(
    ("word", "stored"),
    [
        ("per-row", "per_row"),
        ("Per Row", "per_row"),
        ("PER_ROW", "per_row"),
        ("Batch", "batch"),
        ("BATCH", "batch"),
    ],
)
def test_a_push_mode_is_stored_as_the_contract_spells_it(edith, word, stored):
    created = connected(edith, push_mode=word)
    assert (created.status_code, created.json["settings"]["push_mode"]) == (201, stored), created.text
    url = f"/connections/{created.json['id']}"
    changed = edith.patch(url, json={"settings": {**URL, "push_mode": word.lower()}})
    assert changed.json["settings"]["push_mode"] == stored
    endpoint = {"name": "E", "method": "post", "url": "http://127.0.0.1:9/rows", "push_mode": word}
    created = edith.post("/endpoints", json=endpoint)
    assert (created.json["method"], created.json["push_mode"]) == ("POST", stored), created.text


@pytest.mark.parametrize("kind", AUTH)
@pytest.mark.parametrize(
    "spell", [str.upper, lambda word: word.replace("-", "_"), lambda word: word.replace("-", "")]
)
def test_a_kind_of_authentication_is_stored_as_the_contract_spells_it(edith, kind, spell):
    result = connected(edith, auth={"type": spell(kind), **AUTH[kind]})
    assert result.status_code == 201, result.text
    auth = result.json["settings"]["auth"]
    assert auth["type"] == kind
    assert auth.get("in", "query") == "query"
    assert auth.get("client_auth", "basic") == "basic"
    assert not {"p", "t", "v", "s"} & set(auth.values())  # secrets are masked in all spellings


@pytest.mark.parametrize(
    ("word", "stored"),
    [("SQLite", "sqlite"), ("OpenAPI", "openapi"), ("Post-Gre_SQL", "postgresql"), ("SQL Server", "mssql")],
)
def test_a_type_of_connection_is_found_in_every_spelling(edith, word, stored):
    sent = {"name": "C", "type": word, "settings": {"file": "a.db"}}
    answer = edith.post("/connections", json=sent)
    found = answer.json.get("type") if stored == "sqlite" else stored
    assert found == stored
    assert "unknown_type" not in answer.text


def test_words_of_a_push_and_of_generate(edith):
    created = make(edith)
    answer = edith.post(f"/templates/{created['id']}/generate", json={"count": 1, "format": "CSV"})
    assert answer.mimetype == "text/csv"
    sent = {"connection_id": "con_none", "mode": "Up-sert", "on_error": "STOP", "push_mode": "Per-Row"}
    assert (
        edith.post(f"/templates/{created['id']}/push", json=sent).status_code == 404
    )  # and no fault of a word
    sent["mode"] = "replace"
    assert "mode" in faults(edith.post(f"/templates/{created['id']}/push", json=sent))


FIELD_WORDS = [
    (
        {"type": "number", "options": {"distribution": "Log_Normal", "mean": 3, "stddev": 1}},
        "distribution",
        "lognormal",
    ),
    ({"type": "first_name", "options": {"sex": "FEMALE"}}, "sex", "female"),
    ({"type": "password", "options": {"classes": ["Lower", "DIGITS"]}}, "classes", ["lower", "digits"]),
    ({"type": "password_hash", "options": {"algorithm": "PBKDF2-SHA256"}}, "algorithm", "pbkdf2_sha256"),
]


@pytest.mark.parametrize(("field", "option", "stored"), FIELD_WORDS)
@pytest.mark.parametrize("nested", [False, True])
def test_words_of_field_options_are_stored_as_the_type_spells_them(edith, field, option, stored, nested):
    sent = {"name": "a", "text_case": "UPPER", **field} if option == "sex" else {"name": "a", **field}
    fields = [{"name": "o", "type": "Nested", "options": {"fields": [sent]}}] if nested else [sent]
    created = edith.post("/templates", json={"name": "t", "fields": fields})
    assert created.status_code == 201, created.text
    found = created.json["fields"][0]["options"]["fields"][0] if nested else created.json["fields"][0]
    assert found["options"][option] == stored
    assert found["text_case"] == ("upper" if option == "sex" else None)


def test_a_sign_has_no_other_spelling(edith):
    fields = [{"name": "a", "type": "mac_address", "options": {"separator": "_"}}]
    assert "fields[0].options.separator" in faults(
        edith.post("/templates", json={"name": "t", "fields": fields})
    )
