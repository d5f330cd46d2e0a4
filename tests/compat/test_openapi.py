"""Answers fit the OpenAPI document that the npm package carries, for every operation of it that is there."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.cast import Cast, Person, Program
from tests.views.targets import shop  # noqa: F401
from webapp.compat.views.routing import _NONE

ROOT = "/compat"
ROWS = ("POST", "/datamaker")
"""Answered with the bare array of rows that its clients read; the document describes another object."""
OPEN = {"headers", "queryParams", "auth"}
"""JSON of an endpoint that the document types as null. An endpoint that has none is answered with null."""
FIELDS = [{"name": "first_name", "type": "First Name", "active": True}]
SPEC = {
    "entities": [{"name": "Customers", "template": "T", "volume": 3, "key": "customers"}],
    "gaps": [{"type": "gap", "title": "No orders"}],
    "flow": [
        {
            "phase": "load",
            "steps": [{"from": "A", "to": "B", "msg": "m", "iface": "i", "kind": "k", "status": "mapped"}],
        }
    ],
    "mappings": [{"targetField": "name"}],
    "coverageConfig": {},
    "capabilities": [{"key": "k", "name": "n"}],
    "tasks": [{"phase": "one", "tasks": [{"title": "t"}]}],
}
HISTORY = [{"status": "approved", "when": "2026-11-21T12:00:00Z", "by": "me"}]


@pytest.fixture(scope="session")
def document(modules: Path) -> dict[str, Any]:
    """The document in the published package."""
    path = modules / "node_modules" / "@automators" / "datamaker" / "spec" / "openapi.json"
    return json.loads(path.read_text("utf-8"))


def shape(path: str) -> str:
    """An address without the names of its parts: `/sets/{id}` -> `/sets/{}`."""
    return re.sub(r"\{[^}]*\}|<[^>]*>", "{}", path)


class Documented:
    """The operations of the document that the application has; checks answers of them."""

    def __init__(self, document: Mapping[str, Any], app: Flask) -> None:
        self.components = document["components"]
        ours = {
            (method, shape(rule.rule.removeprefix(ROOT)))
            for rule in app.url_map.iter_rules()
            if rule.endpoint.startswith("compat.") and rule.endpoint not in _NONE
            for method in rule.methods - {"HEAD", "OPTIONS"}
        }
        self.operations = {
            (method.upper(), path): operation["responses"]
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
            if (method.upper(), shape(path)) in ours
        }
        self.described = {
            name
            for name, responses in self.operations.items()
            if any(status[0] == "2" and "content" in response for status, response in responses.items())
        }
        self.checked: set[tuple[str, str]] = set()

    def operation(self, method: str, path: str) -> tuple[str, str]:
        """The operation that an address is of; one without parts there comes first (`/plans/save`)."""
        found = [
            (path_.count("{"), (method_, path_))
            for method_, path_ in self.operations
            if method_ == method and re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", path_), path)
        ]
        assert found, f"{method} {path} is not in the document"
        return min(found)[1]

    def check(self, method: str, path: str, answer: TestResponse) -> Any:
        """The body of an answer, which is of a documented status and fits the schema of it."""
        name = self.operation(method, path.partition("?")[0])
        responses = self.operations[name]
        assert str(answer.status_code) in responses, (name, answer.status_code, answer.text)
        schema = responses[str(answer.status_code)]["content"]["application/json"]["schema"]
        validator = jsonschema_rs.Draft202012Validator({**schema, "components": self.components})
        faults = [f"{error.instance_path}: {error.message}" for error in validator.iter_errors(answer.json)]
        assert not faults, (name, answer.status_code, faults, answer.text[:2000])
        if answer.status_code < 300:
            self.checked.add(name)
        return answer.json


@pytest.fixture
def documented(document: dict[str, Any], app: Flask) -> Documented:
    return Documented(document, app)


class Client:
    """A program that calls by `fetch`, as the npm package does; every answer is checked."""

    def __init__(self, app: Flask, person: Person, documented: Documented) -> None:
        headers = {"X-API-Key": person.key, "User-Agent": "node"}
        self.program, self.documented = Program(app, "", **headers), documented

    def __call__(self, method: str, path: str, body: Any = None, **how: Any) -> Any:
        sent = {"json": body} if body is not None else {}
        answer = self.program.open(method, ROOT + path, **sent, **how)
        assert answer.status_code < 300, (method, path, answer.text)
        return self.documented.check(method, path, answer)


@pytest.fixture
def dm(app: Flask, cast: Cast, documented: Documented) -> Client:
    return Client(app, cast.adam, documented)


def test_every_answer_fits_the_document_of_the_npm_package(dm, documented, app, api, cast, shop, worker):
    place = {"projectId": cast.main, "teamId": cast.blue}
    mine = {**place, "createdBy": "me"}
    in_project = f"?projectId={cast.main}"

    # Templates and their folders
    folder = dm("POST", "/templateFolders", {"name": "HR", "isDatabase": False, **mine})
    dm("GET", "/templateFolders")
    template = dm(
        "POST", "/templates", {"name": "T", "fields": FIELDS, "templateFolderId": folder["id"], **place}
    )
    assert (template["name"], template["templateFolderId"]) == ("T", folder["id"])
    dm("GET", f"/templates{in_project}")
    dm("GET", f"/templates/{template['id']}")
    dm("PUT", f"/templates/{template['id']}", {**template, "name": "U"})
    dm("PUT", f"/templateFolders/{folder['id']}", {"name": "People"})
    dm("DELETE", f"/templates/{template['id']}")
    dm("DELETE", f"/templateFolders/{folder['id']}")

    # Sets
    rows = {"name": "golden", "data": [{"id": 1}], "description": "of a test", **place}
    rows = dm("POST", "/sets", {key: value for key, value in rows.items() if key != "teamId"})
    dm("GET", f"/sets{in_project}")
    assert dm("GET", f"/sets/{rows['id']}")["createdByName"] == "Adam"
    dm("PATCH", f"/sets/{rows['id']}", {"data": [{"id": 1}, {"id": 2}], "description": None})
    dm("DELETE", f"/sets/{rows['id']}")

    # Key maps
    entries = [{"oldKey": "a", "newKey": "b"}]
    dm(
        "POST",
        "/keymaps/entries",
        {"mapName": "m", "object": "o", "entries": entries, "projectId": cast.main},
    )
    dm("GET", "/keymaps")
    dm("POST", "/keymaps/lookup", {"mapName": "m", "object": "o", "oldKeys": ["a", "c"]})
    dm("GET", "/keymaps/m/entries?page=1&pageSize=10")
    dm("DELETE", "/keymaps/m?object=o")

    # Masking policies and custom data types
    rule = {"field": "first_name", "strategy": "faker-replace", "note": "names"}
    policy = dm("POST", "/masking-policies", {"name": "GDPR", "fields": [rule], "projectId": cast.main})
    dm("GET", "/masking-policies")
    dm("GET", f"/masking-policies/{policy['id']}")
    dm("PATCH", f"/masking-policies/{policy['id']}", {"keyMapName": "m", "description": None})
    dm("DELETE", f"/masking-policies/{policy['id']}")
    kind = dm("POST", "/customDataTypes", {"name": "Grade", "fieldConfig": {"type": "Number"}, **mine})
    dm("GET", f"/customDataTypes{in_project}")
    dm("PUT", f"/customDataTypes/{kind['id']}", {**kind, "name": "Mark"})
    dm("DELETE", f"/customDataTypes/{kind['id']}")

    # Plans
    plan = dm("POST", "/plans/save", {"title": "Load", "spec": SPEC, "history": HISTORY, "targets": ["SAP"]})
    dm("POST", "/plans/save", {"title": "Empty"})
    dm("GET", "/plans")
    dm("GET", f"/plans/{plan['id']}")
    dm("PATCH", f"/plans/{plan['id']}", {"status": "approved", "spec": {}, "summary": "s"})
    dm("DELETE", f"/plans/{plan['id']}")

    # Endpoints, their folders, and rows to a database
    folder = dm("POST", "/endpointFolders", {"name": "Shop", **place})
    dm("GET", "/endpointFolders")
    endpoint = {"name": "E", "method": "POST", "url": "http://127.0.0.1:9/rows", **mine}
    endpoint = dm("POST", "/endpoints", {**endpoint, "endpointFolderId": folder["id"]})
    dm("GET", "/endpoints")
    dm("GET", f"/endpoints/{endpoint['id']}")
    dm("PUT", f"/endpoints/{endpoint['id']}", {**endpoint, "name": "F"})
    dm("PUT", f"/endpointFolders/{folder['id']}", {"name": "Store"})
    dm("DELETE", f"/endpoints/{endpoint['id']}")
    dm("DELETE", f"/endpointFolders/{folder['id']}")
    dm("GET", "/connections/tables")
    sent = {"connectionId": shop.connection_id}
    dm("POST", "/export/db", {**sent, "query": "INSERT INTO customers (email) VALUES ('a@example.org')"})
    dm("POST", "/export/db", {**sent, "query": "SELECT * FROM customers"})

    # Scenarios and their files
    created = api(cast.adam).post("/scenarios", json={"name": "S", "code": "print(1)\n"}).json["id"]
    dm("GET", f"/scenarios{in_project}")
    dm("GET", f"/scenarios/{created}")
    dm("GET", f"/scenarios/{created}/storage")
    file = {"name": "a.txt", "content": "YQ==", "scenarioId": created, "teamId": cast.blue, "size": 1}
    dm("POST", "/scenario-files", file)
    form = {"folder": "outputs", "file": (io.BytesIO(b"b"), "b.txt")}
    file = dm("POST", f"/scenarios/{created}/files/upload", data=form)["file"]
    dm("GET", f"/scenarios/{created}/files")
    dm("GET", f"/scenarios/{created}/files/{file['id']}")
    dm("GET", f"/workspace-files/by-key?key={file['key']}")
    dm("DELETE", f"/scenarios/{created}/files/{file['id']}")

    # Projects, teams, people, keys
    project = dm("POST", "/projects", {"name": "P", "teamId": cast.blue})
    dm("GET", "/projects")
    dm("GET", f"/projects/{project['id']}")
    dm("PUT", f"/projects/{project['id']}", {"name": "Q", "teamId": cast.blue})
    dm("DELETE", f"/projects/{project['id']}")
    team = dm("POST", "/teams", {"name": "Green"})
    dm("GET", "/teams")
    dm("PUT", f"/teams/{team['id']}", {"name": "Grey"})
    dm("POST", "/setup/teams", {"name": "New"})
    dm("GET", "/users")
    me = dm("GET", "/users/me")
    dm("PUT", f"/users/{me['id']}", {"firstName": "Ada"})
    dm("PATCH", f"/users/{me['id']}", {"lastName": "Smith"})
    member = dm("POST", "/teamMembers", {"userId": cast.victor.user_id, "teamId": cast.red, "role": "MEMBER"})
    dm("GET", "/teamMembers")
    dm("PUT", f"/teamMembers/{member['id']}", {"role": "ADMIN"})
    dm("DELETE", f"/teamMembers/{member['id']}")
    dm("POST", "/teamMembers/invite", {"email": "new@example.org", "teamId": cast.blue})
    key = dm("POST", "/apiKeys", {"key": "ignored", "scope": "READ", "name": "CI"})
    dm("GET", "/apiKeys")
    dm("PUT", f"/apiKeys/{key['id']}", {"key": "ignored", "name": "CD"})
    dm("DELETE", f"/apiKeys/{key['id']}")
    dm("GET", "/validate/apiKey")

    assert documented.described - documented.checked == {ROWS}


def test_generated_rows_are_the_array_that_the_clients_read(dm):
    answer = dm.program.post("/compat/datamaker", json={"fields": FIELDS, "quantity": 3})
    assert [list(row) for row in answer.json] == [["first_name"]] * 3


def test_an_endpoint_differs_from_the_document_only_in_its_headers(dm, documented, cast):
    sent = {"name": "E", "method": "POST", "url": "http://127.0.0.1:9/rows", "headers": {"X-A": "b"}}
    answer = dm.program.post("/compat/endpoints", json=sent)
    assert answer.json["headers"] == {"X-A": "b"}
    schema = {"$ref": "#/components/schemas/Endpoint", "components": documented.components}
    validator = jsonschema_rs.Draft202012Validator(schema)
    paths = {error.instance_path[0] for error in validator.iter_errors(answer.json)}
    assert paths == {"headers"} < OPEN


def test_every_documented_failure_fits_the_document(documented, app, cast):
    stranger = Program(app, "", **{"User-Agent": "node"})
    viewer = Program(app, "", **{"X-API-Key": cast.victor.key, "User-Agent": "node"})
    seen = set()
    for method, path in documented.operations:
        address = re.sub(r"\{[^}]*\}", "x_unknown", path)
        for program in (stranger, viewer):
            how = {} if method in ("GET", "DELETE") else {"json": {"surprise": 1}}
            answer = program.open(method, ROOT + address, **how)
            if str(answer.status_code) in documented.operations[method, path] and answer.status_code >= 400:
                documented.check(method, address, answer)
                seen.add(answer.status_code)
    assert {401, 403, 404} <= seen
