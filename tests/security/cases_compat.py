"""Who may do what over the wire of the hosted service's clients: what they may do over the API proper."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp.access import actors
from webapp.compat import services as compat
from webapp.compat.views.plans import Spec
from webapp.extensions import db
from webapp.scenarios.services import scenarios

OBJECTS = {
    "set": {"description": None, "row_count": 0, "locked": False},
    "custom_data_type": {"field_config": {"type": "Number"}},
    "masking_policy": {
        "description": None, "fields": [], "consistent": True, "reversible": False, "key_map_name": None,
    },
    "plan": {"spec": Spec().model_dump(by_alias=True, exclude_none=True)},
    "template_folder": {"is_database": False},
    "endpoint_folder": {"is_database": False},
}  # fmt: skip


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    created = scenarios.create(acme, name="Of a client", code="print(1)\n")
    objects = {
        f"compat_{kind}": compat.create(acme, kind, "Of a client", document).id
        for kind, document in OBJECTS.items()
    }
    compat.put_entries(acme, "of_a_client", "Material", {"a": "b"})
    db.session.remove()
    return {"compat_scenario": created["id"], "blue": cast.blue, **objects}


FIELDS = [{"name": "id", "type": "row_number", "active": True}]
TEMPLATE = {"name": "New", "fields": FIELDS, "projectId": "", "teamId": ""}
CONNECTION = {"name": "New", "type": "sqlite", "connectionString": "compat.db"}
TRIED = {"type": "sqlite", "connectionString": "compat.db"}
ENDPOINT = {"name": "New", "method": "POST", "url": "http://127.0.0.1:9/new"}
NAME = {"name": "New"}
# The test application has no worker and no target: users with permission get an error about them.
NOT_PLAIN = {"connectionId": "{connection}", "query": " "}
NO_ROWS = {"endpointId": "{endpoint}"}
FILE = {"name": "compat.txt", "content": "YQ==", "scenarioId": "{compat_scenario}", "teamId": "t", "size": 1}
BY_KEY = "/compat/workspace-files/by-key"
OF, KEYS = "/compat/scenarios/<scenario_id>", "/compat/apiKeys/<key_id>"
SCENARIO, THE_KEY = "/compat/scenarios/{compat_scenario}", "/compat/apiKeys/{victors_key}"


def _kept(
    kind: str, plural: str, made: dict[str, Any], changed: dict[str, Any], created: int = 200
) -> list[Case]:
    rule, url = f"/compat/{plural}/<{kind}_id>", f"/compat/{plural}/{{{kind}}}"
    return [
        Case("GET", f"/compat/{plural}", "viewer", scope="read"),
        Case("POST", f"/compat/{plural}", "editor", body=made, ok=created, scope="write"),
        Case("GET", rule, "viewer", url=url, scope="read"),
        Case("PUT", rule, "editor", url=url, body=changed, scope="write"),
        Case("DELETE", rule, "editor", url=url, scope="write"),
    ]


def _objects(
    kind: str,
    part: str,
    plural: str,
    change: str,
    *,
    shown: bool = True,
    create: str = "",
    created: int = 200,
) -> list[Case]:
    """The calls of an object that only these clients have."""
    rule, url = f"/compat/{plural}/<{part}>", f"/compat/{plural}/{{compat_{kind}}}"
    body = {"title": "New"} if kind == "plan" else NAME
    cases = [
        Case("GET", f"/compat/{plural}", "viewer", scope="read"),
        Case("POST", f"/compat/{plural}{create}", "editor", body=body, ok=created, scope="write"),
        Case(change, rule, "editor", url=url, body=body, scope="write"),
        Case("DELETE", rule, "editor", url=url, scope="write"),
    ]
    return [*cases, *([Case("GET", rule, "viewer", url=url, scope="read")] if shown else [])]


IN_MAP = {"mapName": "of_a_client", "object": "Material"}
MAP = "/compat/keymaps/<path:map_name>"

CASES = [
    *_kept("template", "templates", TEMPLATE, NAME),
    *_kept("connection", "connections", CONNECTION, NAME, created=201),
    *_kept("endpoint", "endpoints", ENDPOINT, NAME),
    Case("POST", "/compat/datamaker", "editor", body={"fields": FIELDS, "quantity": 2}, scope="generate"),
    Case("POST", "/compat/connections/test", "editor", body=TRIED, scope="write"),
    Case("GET", "/compat/connections/tables", "viewer", scope="read"),
    Case("POST", "/compat/export/db", "editor", body=NOT_PLAIN, ok=422, scope="push"),
    Case("POST", "/compat/export/rest", "editor", body={}, ok=422, scope="push"),
    # Files: of the workspace, by a scenario of the project
    Case("GET", "/compat/scenarios", "viewer", scope="read"),
    Case("GET", OF, "viewer", url=SCENARIO, scope="read"),
    Case("GET", f"{OF}/files", "viewer", url=f"{SCENARIO}/files", scope="read"),
    Case("GET", f"{OF}/storage", "viewer", url=f"{SCENARIO}/storage", scope="read"),
    Case("GET", f"{OF}/files/<file_id>", "viewer", url=f"{SCENARIO}/files/{{file}}", scope="read"),
    Case("DELETE", f"{OF}/files/<file_id>", "editor", url=f"{SCENARIO}/files/{{file}}", scope="write"),
    Case("GET", BY_KEY, "viewer", url=f"{BY_KEY}?key={{file}}", scope="read"),
    Case("POST", "/compat/scenario-files", "editor", body=FILE, scope="write"),
    # No case uploads a file: users with permission get an error about the missing file.
    Case("POST", f"{OF}/files/upload", "editor", url=f"{SCENARIO}/files/upload", ok=415, scope="write"),
    Case("GET", "/compat/files/<token>", "public", url="/compat/files/unsigned", ok=404),
    # Places and people
    Case("GET", "/compat/projects", "viewer", scope="read"),
    Case("POST", "/compat/projects", "admin", body=NAME, scope="admin"),
    Case("GET", "/compat/projects/<project_id>", "viewer", url="/compat/projects/{project}", scope="read"),
    Case("PUT", "/compat/projects/<project_id>", "admin", url="/compat/projects/{project}", body=NAME, scope="admin"),
    Case("DELETE", "/compat/projects/<project_id>", "admin", url="/compat/projects/{project}", scope="admin"),
    Case("GET", "/compat/teams", "viewer", scope="read"),
    Case("POST", "/compat/teams", "admin", body=NAME, scope="admin"),
    Case("PUT", "/compat/teams/<team_id>", "admin", url="/compat/teams/{team}", body=NAME, scope="admin"),
    Case("POST", "/compat/setup/teams", "admin", body=NAME, scope="admin"),
    Case("GET", "/compat/users", "viewer", scope="read"),
    Case("GET", "/compat/users/me", "anyone"),
    Case("PUT", "/compat/users/<user_id>", "anyone", url="/compat/users/me", body={"firstName": "New"}),
    Case("PATCH", "/compat/users/<user_id>", "anyone", url="/compat/users/me", body={"firstName": "New"}),
    Case("GET", "/compat/teamMembers", "viewer", scope="read"),
    Case("POST", "/compat/teamMembers", "admin", body={"userId": "usr_unknown"}, ok=404, scope="admin"),
    Case(
        "POST", "/compat/teamMembers/invite", "admin", body={"email": "new@example.org", "teamId": "{team}"}, ok=201,
        scope="admin",
    ),
    Case(
        "PUT", "/compat/teamMembers/<member_id>", "admin", url="/compat/teamMembers/{member}",
        body={"role": "VIEWER"}, scope="admin",
    ),
    Case("DELETE", "/compat/teamMembers/<member_id>", "admin", url="/compat/teamMembers/{member}", scope="admin"),
    # Keys: everybody their own, admins all
    Case("GET", "/compat/apiKeys", "viewer", scope="admin"),
    Case("POST", "/compat/apiKeys", "viewer", body=NAME, scope="admin"),
    Case("PUT", KEYS, "viewer", url=THE_KEY, body=NAME, expect={"edith": 404}),
    Case("DELETE", KEYS, "viewer", url=THE_KEY, expect={"edith": 404}),
    Case("GET", "/compat/validate/apiKey", "anyone"),
    # What only these clients have
    *_objects("set", "set_id", "sets", "PATCH"),
    *_objects("custom_data_type", "type_id", "customDataTypes", "PUT", shown=False),
    *_objects("masking_policy", "policy_id", "masking-policies", "PATCH"),
    *_objects("plan", "plan_id", "plans", "PATCH", create="/save"),
    *_objects("template_folder", "folder_id", "templateFolders", "PUT", shown=False),
    *_objects("endpoint_folder", "folder_id", "endpointFolders", "PUT", shown=False, created=201),
    Case("GET", "/compat/keymaps", "viewer", scope="read"),
    Case(
        "POST", "/compat/keymaps/entries", "editor", body={**IN_MAP, "entries": [{"oldKey": "a", "newKey": "b"}]},
        scope="write",
    ),
    Case("POST", "/compat/keymaps/lookup", "viewer", body={**IN_MAP, "oldKeys": ["a"]}, scope="read"),
    # A map has no id: all members read and delete those of their own project.
    Case("GET", f"{MAP}/entries", "viewer", url="/compat/keymaps/of_a_client/entries", scope="read"),
    Case("DELETE", MAP, "editor", url="/compat/keymaps/of_a_client", scope="write"),
    # What there is not
    *(
        Case(method, rule, "anyone", ok=404)
        for rule in ("/compat", "/compat/")
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
    ),
    *(
        Case(method, "/compat/<path:rest>", "anyone", url="/compat/shortcuts", ok=404)
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
    ),
]  # fmt: skip
