"""Masking over HTTP: personal columns of samples, versions of the key, and the field key itself."""

from __future__ import annotations

import pytest

from tests.views.speak import faults, make, refused
from tests.views.targets import shop  # noqa: F401
from tests.views.uploading import send

ROWS = [
    {"id": 1, "mail": "anna@mail.org", "name": "Anna Schmidt", "total": 1.5, "tags": ["a"]},
    {"id": 2, "mail": "bob@mail.org", "name": "Bob Miller", "total": None},
]


def kinds(answer):
    assert answer.status_code == 200, answer.json
    return {column["name"]: column["kind"] for column in answer.json["columns"]}


def test_rows_are_classified_by_names_and_values(edith):
    answer = edith.post("/classify", json={"rows": ROWS, "table": "customers"})
    assert kinds(answer) == {"id": None, "mail": "email", "name": "name", "total": None, "tags": None}
    (mail,) = [column for column in answer.json["columns"] if column["name"] == "mail"]
    assert mail["sensitive"]
    assert mail["confidence"] > 0.5
    assert mail["masking"] == {"strategy": "replace"}
    assert "anna" not in answer.text.lower().replace("anna schmidt", "")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("people.csv", b"mail,total\nanna@mail.org,1\nbob@mail.org,2\n"),
        ("people.ndjson", b'{"mail": "anna@mail.org", "total": 1}\n'),
        ("people.json", b'[{"mail": "anna@mail.org", "total": 1}]'),
    ],
)
def test_the_head_of_a_workspace_file_is_classified(edith, name, content):
    assert send(edith, name, content).status_code == 201
    assert kinds(edith.post("/classify", json={"file": name})) == {"mail": "email", "total": None}


def test_missing_files_and_files_without_rows_are_rejected(edith):
    assert edith.post("/classify", json={"file": "none.csv"}).status_code == 404
    send(edith, "x.bin", b"x")
    assert faults(edith.post("/classify", json={"file": "x.bin"})) == {"source.file": "not_readable"}


def test_the_table_of_a_connection_is_classified(edith, shop):
    answer = edith.post("/classify", json={"connection_id": shop.connection_id, "table": "customers"})
    assert answer.status_code == 200, answer.json
    assert faults(
        edith.post("/classify", json={"connection_id": shop.connection_id, "table": "custmers"})
    ) == {"table": "unknown_table"}


@pytest.mark.parametrize(
    "body",
    [
        {}, {"rows": []}, {"rows": ROWS, "file": "x.csv"}, {"connection_id": "con_1"}, {"rows": ROWS, "sheet": "s"},
        {"rows": [{f"c{at}": 1 for at in range(501)}]}, {"rows": [1]}, {"rows": ROWS * 501},
    ],
)  # fmt: skip
def test_one_sample_and_no_more_than_it_may_hold(edith, body):
    refused(edith.post("/classify", json=body), 422, "validation_error")


def test_the_key_is_rotated_and_never_shown(api, cast):
    adam = api(cast.adam)
    assert adam.get("/masking/keys").json == {"items": []}
    created = adam.post("/masking/keys/rotate")
    assert (created.status_code, created.json["version"]) == (201, 1)
    assert adam.post("/masking/keys/rotate").json["version"] == 2
    items = adam.get("/masking/keys").json["items"]
    assert [item["version"] for item in items] == [2, 1]
    assert set(items[0]) == {"version", "created_by", "created_at"}


def test_a_template_keeps_its_masking_and_rejects_unsupported_settings(edith):
    requests = {"strategy": "tokenize", "domain": "customers"}
    created = make(edith, fields=[{"name": "email", "type": "email", "masking": requests}])
    (field,) = edith.get(f"/templates/{created['id']}").json["fields"]
    assert (field["sensitive"], field["masking"]) == (True, requests)
    body = {
        "name": "Bad",
        "fields": [{"name": "x", "type": "words", "masking": {"strategy": "shift", "person": "y"}}],
    }
    assert faults(edith.post("/templates", json=body)) == {
        "fields[0].masking.strategy": "not_for_this_type",
        "fields[0].masking.person": "unknown_field",
    }


def test_generated_values_are_already_synthetic(edith):
    plain = {"name": "email", "type": "email"}
    ask = {"count": 3, "seed": "s"}
    created = [
        edith.post("/generate", json={"fields": [{**plain, **more}], **ask}).json
        for more in ({}, {"sensitive": True}, {"masking": {"strategy": "hash"}})
    ]
    assert created[0] == created[1] == created[2]


def test_the_schema_of_a_field_describes_masking(edith):
    schema = edith.get("/openapi.json").json
    result = str(schema)
    assert "format_preserve" in result
    assert "#/$defs/" not in result
