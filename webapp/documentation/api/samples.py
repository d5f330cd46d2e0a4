"""A call of every operation as people copy it: curl, Python, TypeScript; and all of them as a Postman collection.

The bodies are examples, every one of them valid; tests send them. `OWN_…_ID` stands for an object of the reader's,
`…_ID` for one that the reader puts in: samples that change, delete or send name nothing of the reader's. The texts also
carry the mark `ORIGIN` in place of the address of the service. The key is only ever a variable of the environment.

A Postman collection (format 2.1) has `info` with `name` and `schema` (the URL of the format), and `item`: a list of
folders, each with a name and an `item` list of requests. A request has `method`, `url` (`raw` and its parts `host`,
`path`, `query`, `variable`), `header`, and optionally a `body` with a `mode`. Variables are written in double braces;
`:name` is a path parameter. Source: the collection format's published JSON Schema, v2.1.0.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from webapp.access import tenancy
from webapp.access.actors import PROJECT_SCOPES, Actor
from webapp.access.models import ApiKey, Membership, Team
from webapp.connections.models import Connection, Endpoint
from webapp.datasets.models import Dataset
from webapp.documentation.api.reference import JSON, Group, Operation
from webapp.exports.models import Export
from webapp.extensions import db
from webapp.files.models import WorkspaceFile
from webapp.pushes.models import Push
from webapp.row_templates.models import Template
from webapp.scenarios.models import Run, Scenario
from webapp.web import snippets

_TABLES: Final = "CREATE TABLE customers (id INT PRIMARY KEY, email VARCHAR(120) UNIQUE);"
_FIELDS: Final[list[dict[str, Any]]] = [
    {"name": "id", "type": "row_number"},
    {"name": "email", "type": "email", "unique": True},
]
_CODE: Final = 'import os\n\nprint("hello", os.environ.get("WHO", "world"))\n'
_TARGET: Final = {"connection_id": "OWN_CONNECTION_ID", "target": "customers", "create_table": True}
_DATASET_TARGET: Final = {"connection_id": "OWN_CONNECTION_ID", "create_table": True}

QUERIES: Final[dict[str, dict[str, str]]] = {"DELETE /api-keys": {"created_by": "USER_ID"}}
"""Return the required query parameters, in the order of the SDK's arguments."""

BODIES: Final[dict[str, dict[str, Any]]] = {
    "POST /api-keys": {"name": "Pipeline", "scopes": ["read", "generate"]},
    "POST /classify": {
        "table": "customers",
        "rows": [{"id": 1, "email": "ada@example.org", "born": "1985-12-10"}],
    },
    "POST /connections": {"name": "Fixtures", "type": "sqlite", "settings": {"file": "fixtures.db"}},
    "PATCH /connections/{connection_id}": {"name": "Test fixtures", "environment": "test"},
    "POST /connections/{connection_id}/fill": {"rows": 5, "tables": ["customers"], "dry_run": True},
    "POST /connections/{connection_id}/subsets": {"table": "customers", "limit": 100, "children": []},
    "POST /connections/{connection_id}/templates": {"entities": ["customers"], "quantity": 100},
    "POST /datasets": {
        "name": "Shop",
        "templates": [{"template_id": "OWN_TEMPLATE_ID", "count": 20}],
        "seed": "first",
    },
    "PATCH /datasets/{dataset_id}": {"seed": "second"},
    "PUT /datasets/{dataset_id}": {"seed": "second"},
    "POST /datasets/{dataset_id}/exports": {"format": "csv", "seed": "first"},
    "POST /datasets/{dataset_id}/preview": {"seed": "first"},
    "POST /datasets/{dataset_id}/push": {**_DATASET_TARGET, "dry_run": True},
    "POST /datasets/{dataset_id}/push/plan": _DATASET_TARGET,
    "POST /describe": {"description": "Customers of a German bank with an IBAN", "quantity": 10},
    "POST /endpoints": {"name": "Orders", "method": "POST", "url": "https://api.example.com/orders"},
    "PATCH /endpoints/{endpoint_id}": {"headers": {"X-Source": "tests"}},
    "POST /export/db": {
        "connection_id": "CONNECTION_ID",
        "table": "customers",
        "create_table": True,
        "rows": [{"id": 1, "email": "ada@example.org"}],
    },
    "POST /export/rest": {"endpoint_id": "ENDPOINT_ID", "rows": [{"id": 1, "email": "ada@example.org"}]},
    "POST /fields/suggest": {"name": "email", "sample": ["ada@example.org"]},
    "POST /generate": {"fields": _FIELDS, "count": 3, "seed": "first"},
    "POST /import": {"format": "sql", "content": _TABLES},
    "POST /invitations": {"email": "ada@example.org", "role": "viewer"},
    "POST /members": {"user_id": "USER_ID", "team_id": "TEAM_ID", "role": "editor"},
    "PATCH /members/{member_id}": {"role": "editor"},
    "POST /preview": {"fields": _FIELDS, "seed": "first"},
    "POST /projects": {"name": "Checkout", "description": "Data for the checkout tests"},
    "PATCH /projects/{project_id}": {"description": "Data for the checkout tests"},
    "POST /projects/{project_id}/move": {"objects": ["TEMPLATE_ID"], "related": "take"},
    "POST /pushes/{push_id}/retry": {"states": ["failed"]},
    "POST /pushes/{push_id}/undo": {"confirm": "Fixtures"},
    "POST /scenarios": {"name": "Hello", "code": _CODE, "timeout_seconds": 60},
    "POST /scenarios/check": {"code": _CODE},
    "PUT /scenarios/{scenario_id}": {"code": _CODE},
    "PATCH /scenarios/{scenario_id}": {"timeout_seconds": 300, "network": "api"},
    "POST /scenarios/{scenario_id}/run": {"params": {"WHO": "Ada"}, "wait": False},
    "POST /scenarios/{scenario_id}/runs/{run_id}/rerun": {"version": "newest", "params": {"WHO": "Ada"}},
    "PUT /secrets/{name}": {"value": "not shown again"},
    "POST /teams": {"name": "Payments"},
    "PATCH /teams/{team_id}": {"name": "Payments"},
    "POST /templates": {"name": "Customers", "quantity": 100, "fields": _FIELDS},
    "PATCH /templates/{template_id}": {"quantity": 1000},
    "PUT /templates/{template_id}": {"quantity": 1000},
    "POST /templates/{template_id}/answers": {"count": 3, "seed": "first"},
    "POST /templates/{template_id}/exports": {"format": "csv", "count": 1000, "seed": "first"},
    "POST /templates/{template_id}/generate": {"count": 3, "seed": "first"},
    "POST /templates/{template_id}/import": {"content": "id,email\n1,ada@example.org\n"},
    "POST /templates/{template_id}/preview": {"seed": "first"},
    "POST /templates/{template_id}/push": {**_TARGET, "count": 100, "dry_run": True},
    "POST /templates/{template_id}/push/plan": {**_TARGET, "count": 100},
    "POST /schedules": {
        "name": "Nightly customers",
        "cron": "0 2 * * *",
        "timezone": "Europe/Berlin",
        "kind": "export",
        "template_id": "TEMPLATE_ID",
        "request": {"format": "csv", "count": 1000},
        "new_seed": True,
    },
    "PATCH /schedules/{schedule_id}": {"enabled": False},
    "POST /webhooks": {
        "url": "https://ci.example.org/hooks/rowsmith",
        "events": ["export.completed", "push.*"],
        "description": "Nightly build",
    },
    "PATCH /webhooks/{webhook_id}": {"events": ["*"]},
    "PATCH /workspace": {"settings": {"redact_run_logs": True}},
    "DELETE /workspace": {"confirm": "Fixtures"},
}

PATH_VALUES: Final = {"number": "1", "name": "db_password"}
"""Values in the samples for parts of URLs that are not IDs."""
FILE_NAME: Final = "samples/customers.csv"
"""The file name in the sample of an upload."""
_WITH_CHOSEN_IDS: Final = frozenset({"POST /export/db", "POST /export/rest", "POST /pushes/{push_id}/retry"})


def example_path_value(key: str, name: str) -> str:
    """Return the example value for `{name}` in the URL of an operation."""
    if key.partition(" ")[2].startswith("/workspace/files"):
        name = "file_id"
    if name in PATH_VALUES:
        return PATH_VALUES[name]
    prefix = "" if needs_ids(key) else "OWN_"
    return f"{prefix}{name.upper()}"


def needs_ids(key: str) -> bool:
    """Return whether the samples of an operation need ids that the reader has to choose."""
    return not key.startswith(("GET ", "POST ")) or key in _WITH_CHOSEN_IDS or key.endswith("/undo")


# --- Samples ------------------------------------------------------------------------------------------------

METHODS: Final[dict[str, str]] = {
    "GET /api-keys": "api_keys.list",
    "POST /api-keys": "api_keys.create",
    "GET /api-keys/{key_id}": "api_keys.get",
    "DELETE /api-keys": "api_keys.revoke_all",
    "DELETE /api-keys/{key_id}": "api_keys.revoke",
    "GET /audit": "workspace.audit",
    "GET /audit/seals": "workspace.audit_seals",
    "POST /classify": "masking.classify",
    "GET /connections": "connections.list",
    "POST /connections": "connections.create",
    "GET /connections/{connection_id}": "connections.get",
    "PATCH /connections/{connection_id}": "connections.update",
    "DELETE /connections/{connection_id}": "connections.delete",
    "POST /connections/{connection_id}/fetched/refresh": "connections.refresh_fetched",
    "GET /connections/{connection_id}/metadata": "connections.metadata",
    "GET /connections/{connection_id}/metadata-document": "connections.metadata_document",
    "PUT /connections/{connection_id}/metadata-document": "connections.upload_metadata_document",
    "DELETE /connections/{connection_id}/metadata-document": "connections.delete_metadata_document",
    "POST /connections/{connection_id}/restore": "connections.restore",
    "POST /connections/{connection_id}/fill": "connections.fill",
    "POST /connections/{connection_id}/subsets": "connections.subset",
    "POST /connections/{connection_id}/templates": "connections.make_templates",
    "POST /connections/{connection_id}/verify": "connections.verify",
    "GET /datasets": "datasets.list",
    "POST /datasets": "datasets.create",
    "GET /datasets/{dataset_id}": "datasets.get",
    "PATCH /datasets/{dataset_id}": "datasets.update",
    "DELETE /datasets/{dataset_id}": "datasets.delete",
    "POST /datasets/{dataset_id}/exports": "datasets.export",
    "POST /datasets/{dataset_id}/preview": "datasets.preview",
    "POST /datasets/{dataset_id}/push": "datasets.push",
    "POST /datasets/{dataset_id}/push/plan": "datasets.push_plan",
    "POST /datasets/{dataset_id}/refresh-references": "datasets.refresh_references",
    "POST /datasets/{dataset_id}/restore": "datasets.restore",
    "GET /datasets/{dataset_id}/versions": "datasets.versions",
    "POST /datasets/{dataset_id}/versions/{number}/restore": "datasets.restore_version",
    "GET /datasets/{dataset_id}@v{number}": "datasets.get",
    "GET /datasets/{dataset_id}@v{number}/diff": "datasets.diff",
    "POST /describe": "fields.describe",
    "GET /endpoints": "endpoints.list",
    "POST /endpoints": "endpoints.create",
    "GET /endpoints/{endpoint_id}": "endpoints.get",
    "PATCH /endpoints/{endpoint_id}": "endpoints.update",
    "DELETE /endpoints/{endpoint_id}": "endpoints.delete",
    "POST /endpoints/{endpoint_id}/restore": "endpoints.restore",
    "POST /export/db": "pushes.to_database",
    "POST /export/rest": "pushes.to_endpoint",
    "GET /exports": "exports.list",
    "GET /exports/{export_id}": "exports.get",
    "DELETE /exports/{export_id}": "exports.cancel",
    "GET /exports/{export_id}/answers": "exports.answers",
    "GET /exports/{export_id}/download": "exports.download",
    "GET /exports/{export_id}/events": "exports.follow",
    "GET /exports/{export_id}/manifest": "exports.manifest",
    "GET /exports/{export_id}/parts/{number}": "exports.part",
    "POST /exports/{export_id}/retry": "exports.retry",
    "GET /field-types": "fields.list",
    "POST /fields/suggest": "fields.suggest",
    "POST /generate": "templates.generate",
    "GET /health/live": "service.live",
    "GET /health/ready": "service.ready",
    "POST /import": "templates.import_schema",
    "GET /imports/{import_id}": "templates.get_import",
    "DELETE /imports/{import_id}": "templates.cancel_import",
    "GET /invitations": "members.invitations",
    "POST /invitations": "members.invite",
    "DELETE /invitations/{invitation_id}": "members.withdraw",
    "POST /invitations/{invitation_id}/resend": "members.resend",
    "GET /me": "workspace.me",
    "GET /me/sessions": "workspace.sessions",
    "DELETE /me/sessions": "workspace.end_sessions",
    "DELETE /me/sessions/{session_id}": "workspace.end_session",
    "GET /masking/keys": "masking.keys",
    "POST /masking/keys/rotate": "masking.rotate",
    "GET /members": "members.list",
    "POST /members": "members.add",
    "GET /members/{member_id}": "members.get",
    "PATCH /members/{member_id}": "members.update",
    "DELETE /members/{member_id}": "members.remove",
    "GET /openapi.json": "service.openapi",
    "POST /preview": "templates.preview",
    "GET /projects": "projects.list",
    "POST /projects": "projects.create",
    "GET /projects/{project_id}": "projects.get",
    "PATCH /projects/{project_id}": "projects.update",
    "DELETE /projects/{project_id}": "projects.delete",
    "POST /projects/{project_id}/move": "projects.move",
    "POST /projects/{project_id}/restore": "projects.restore",
    "GET /pushes": "pushes.list",
    "GET /pushes/{push_id}": "pushes.get",
    "DELETE /pushes/{push_id}": "pushes.cancel",
    "GET /pushes/{push_id}/bad": "pushes.bad",
    "GET /pushes/{push_id}/events": "pushes.follow",
    "GET /pushes/{push_id}/logs": "pushes.log",
    "POST /pushes/{push_id}/retry": "pushes.retry",
    "GET /pushes/{push_id}/rows": "pushes.rows",
    "POST /pushes/{push_id}/undo": "pushes.undo",
    "GET /runs": "runs.list",
    "GET /scenarios": "scenarios.list",
    "POST /scenarios": "scenarios.create",
    "POST /scenarios/check": "scenarios.check",
    "GET /scenarios/{scenario_id}": "scenarios.get",
    "PUT /scenarios/{scenario_id}": "scenarios.replace",
    "PATCH /scenarios/{scenario_id}": "scenarios.update",
    "DELETE /scenarios/{scenario_id}": "scenarios.delete",
    "POST /scenarios/{scenario_id}/refresh-requirements": "scenarios.refresh_requirements",
    "POST /scenarios/{scenario_id}/restore": "scenarios.restore",
    "POST /scenarios/{scenario_id}/run": "runs.start",
    "GET /scenarios/{scenario_id}/runs": "runs.list",
    "GET /scenarios/{scenario_id}/runs/{run_id}": "runs.get",
    "DELETE /scenarios/{scenario_id}/runs/{run_id}": "runs.cancel",
    "GET /scenarios/{scenario_id}/runs/{run_id}/events": "runs.follow",
    "GET /scenarios/{scenario_id}/runs/{run_id}/logs": "runs.log",
    "POST /scenarios/{scenario_id}/runs/{run_id}/rerun": "runs.rerun",
    "GET /scenarios/{scenario_id}/versions": "scenarios.versions",
    "POST /scenarios/{scenario_id}/versions/{number}/restore": "scenarios.restore_version",
    "GET /scenarios/{scenario_id}@v{number}": "scenarios.get",
    "GET /scenarios/{scenario_id}@v{number}/diff": "scenarios.diff",
    "GET /schedules": "schedules.list",
    "POST /schedules": "schedules.create",
    "GET /schedules/{schedule_id}": "schedules.get",
    "PATCH /schedules/{schedule_id}": "schedules.update",
    "DELETE /schedules/{schedule_id}": "schedules.delete",
    "POST /schedules/{schedule_id}/start": "schedules.start",
    "GET /secrets": "secrets.list",
    "PUT /secrets/{name}": "secrets.put",
    "DELETE /secrets/{name}": "secrets.delete",
    "GET /teams": "teams.list",
    "POST /teams": "teams.create",
    "GET /teams/{team_id}": "teams.get",
    "PATCH /teams/{team_id}": "teams.update",
    "DELETE /teams/{team_id}": "teams.delete",
    "POST /teams/{team_id}/restore": "teams.restore",
    "GET /templates": "templates.list",
    "POST /templates": "templates.create",
    "GET /templates/{template_id}": "templates.get",
    "PATCH /templates/{template_id}": "templates.update",
    "DELETE /templates/{template_id}": "templates.delete",
    "POST /templates/{template_id}/answers": "templates.answers",
    "POST /templates/{template_id}/exports": "templates.export",
    "POST /templates/{template_id}/generate": "templates.generate",
    "POST /templates/{template_id}/import": "templates.compare_schema",
    "POST /templates/{template_id}/preview": "templates.preview",
    "POST /templates/{template_id}/push": "templates.push",
    "POST /templates/{template_id}/push/plan": "templates.push_plan",
    "POST /templates/{template_id}/refresh-references": "templates.refresh_references",
    "POST /templates/{template_id}/restore": "templates.restore",
    "GET /templates/{template_id}/versions": "templates.versions",
    "POST /templates/{template_id}/versions/{number}/restore": "templates.restore_version",
    "GET /templates/{template_id}@v{number}": "templates.get",
    "GET /templates/{template_id}@v{number}/diff": "templates.diff",
    "GET /trash": "workspace.trash",
    "GET /usage": "workspace.usage",
    "GET /used-by/{object_id}": "workspace.used_by",
    "GET /webhooks": "webhooks.list",
    "POST /webhooks": "webhooks.create",
    "GET /webhooks/{webhook_id}": "webhooks.get",
    "PATCH /webhooks/{webhook_id}": "webhooks.update",
    "DELETE /webhooks/{webhook_id}": "webhooks.delete",
    "GET /webhooks/{webhook_id}/deliveries": "webhooks.deliveries",
    "GET /webhooks/{webhook_id}/deliveries/{delivery_id}": "webhooks.delivery",
    "POST /webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": "webhooks.redeliver",
    "POST /webhooks/{webhook_id}/restore": "webhooks.restore",
    "POST /webhooks/{webhook_id}/secret": "webhooks.new_secret",
    "POST /webhooks/{webhook_id}/test": "webhooks.test",
    "GET /workspace": "workspace.get",
    "PATCH /workspace": "workspace.update",
    "DELETE /workspace": "workspace.delete",
    "GET /workspace/files": "files.list",
    "POST /workspace/files": "files.upload",
    "GET /workspace/files/{name}": "files.download",
    "DELETE /workspace/files/{name}": "files.delete",
    "POST /workspace/files/{workspace_file_id}/restore": "files.restore",
}
"""The samples call all other operations with `request`."""

STREAMED_METHODS: Final = frozenset({"exports.follow", "pushes.follow", "runs.follow"})
"""Methods whose response is iterated while it arrives."""
POSITIONAL_KEYS: Final = {
    "POST /generate": ("fields",),
    "POST /preview": ("fields",),
    "POST /templates": (),
}
"""Operations whose first argument is an object: these keys of the body, or all of it; the rest is passed by name."""


ORIGIN: Final = "http://origin.invalid"
LANGUAGES: Final = ("curl", "python", "typescript")
NAMES: Final = {"curl": "curl", "python": "Python", "typescript": "TypeScript"}
_LINE_WIDTH: Final = 88  # characters of a line
_SAVED_TO_FILE: Final = frozenset({"files.download", "exports.download", "exports.part"})
"""Methods whose response is written to a file; in TypeScript, and `exports.part` in Python, it is a stream."""
_STREAMED: Final = "exports.part"
_FILE: Final = "customers.csv"
_UPLOADED_FILE: Final = "metadata.xml"


def code_samples(operation: Operation, *, signed_in: bool) -> dict[str, str]:
    """Return the sample of each language, with the project of a signed-in user."""
    project = signed_in and operation.scope in PROJECT_SCOPES
    return {
        "curl": curl(operation, project),
        "python": python(operation, project),
        "typescript": typescript(operation, project),
    }


def example_path(operation: Operation) -> str:
    """Return the path with example values."""
    path = re.sub(r"\{(\w+)\}", lambda m: example_path_value(operation.key, m[1]), operation.path)
    query = "&".join(f"{name}={value}" for name, value in QUERIES.get(operation.key, {}).items())
    return f"{path}?{query}" if query else path


def curl(operation: Operation, project: bool) -> str:
    """Return a shell command."""
    lines = ["curl -sS"]
    if operation.method not in ("GET", "POST") or (
        operation.method == "POST" and not (operation.body_kind or BODIES.get(operation.key))
    ):
        lines[0] += f" -X {operation.method}"
    lines[0] += f" {shlex.quote(ORIGIN + example_path(operation))}"
    if operation.scope != "public":
        lines.append(f'-H "Authorization: Bearer {snippets.KEY}"')
    if project:
        lines.append("-H 'X-Project-Id: OWN_PROJECT_ID'")
    body = BODIES.get(operation.key)
    if body is not None:
        lines += [f"-H 'Content-Type: {JSON}'", f"-d {shlex.quote(_JSON_SYNTAX.formatted(body))}"]
    elif operation.body_kind == "multipart/form-data":
        lines += [f"-F 'name={FILE_NAME}'", f"-F 'file=@{_FILE}'"]
    elif operation.key in _RAW_BODY_OPERATIONS:
        lines += ["-H 'Content-Type: application/octet-stream'", f"--data-binary @{_UPLOADED_FILE}"]
    elif METHODS.get(operation.key) in _SAVED_TO_FILE:
        lines.append(f"-o {_FILE}")
    elif all(answer.kinds == ("text/event-stream",) for answer in operation.answers):
        lines[0] = lines[0].replace("curl -sS", "curl -sSN")
    return " \\\n  ".join(lines)


def python(operation: Operation, project: bool) -> str:
    """Return a program for the package `rowsmith`."""
    name = METHODS.get(operation.key)
    project_argument = ', "OWN_PROJECT_ID"' if project else ""
    lines = ["import os"]
    if operation.key in _WITH_PATH or name == _STREAMED:
        lines.append("from pathlib import Path")
    lines += ["", "import rowsmith", ""]
    lines.append(f'api = rowsmith.Api(os.environ["ROWSMITH_KEY"], "{ORIGIN}"{project_argument})')
    if name is None:
        arguments = [_quoted(operation.method), _quoted(example_path(operation))]
        body = BODIES.get(operation.key)
        call = _python_call("api.request", arguments, {} if body is None else {"json": body})
    else:
        call = _python_call(f"api.{name}", *_python_arguments(operation))
    if name == _STREAMED:
        lines.append(f'Path("{_FILE}").write_bytes({call}.read())')
    elif _is_iterated(operation):
        lines.append(f"for one in {call}:\n    print(one)")
    else:
        lines.append(f"answer = {call}\nprint(answer)")
    return "\n".join(lines)


def typescript(operation: Operation, project: bool) -> str:
    """Return a module for the package `@rowsmith/sdk`."""
    name = METHODS.get(operation.key, "request")
    project_option = ', project: "OWN_PROJECT_ID"' if project else ""
    lines = []
    if operation.key in _RAW_BODY_OPERATIONS:
        lines.append('import { readFileSync } from "node:fs";')
    if name in _SAVED_TO_FILE:
        lines.append('import { createWriteStream } from "node:fs";')
        lines.append('import { pipeline } from "node:stream/promises";')
    lines += ['import { Rowsmith } from "@rowsmith/sdk";', ""]
    lines.append(
        f'const client = new Rowsmith({{ key: process.env.ROWSMITH_KEY, url: "{ORIGIN}"{project_option} }});'
    )
    method = "client." + re.sub(r"_(\w)", lambda m: m[1].upper(), name)  # camel case
    if name in _SAVED_TO_FILE:
        stream = _ts_call(
            method.replace("download", "stream"), [_quoted(part) for part in _required_values(operation)]
        )
        lines.append(f'await pipeline(await {stream}, createWriteStream("{_FILE}"));')
        return "\n".join(lines)
    call = _ts_call(method, _ts_arguments(operation))
    if _is_iterated(operation):
        lines.append(f"for await (const one of {call}) console.log(one);")
    else:
        lines += [f"const answer = await {call};", "console.log(answer);"]
    return "\n".join(lines)


# --- Arguments --------------------------------------------------------------------------------------------------

_RAW_BODY_OPERATIONS: Final = frozenset({"PUT /connections/{connection_id}/metadata-document"})
_UPLOAD_OPERATION: Final = "POST /workspace/files"
_WITH_PATH: Final = _RAW_BODY_OPERATIONS | {_UPLOAD_OPERATION}


def _is_iterated(operation: Operation) -> bool:
    """Return whether the SDK returns an iterator over all items."""
    name = METHODS.get(operation.key)
    return name in STREAMED_METHODS or (operation.paged and name is not None)


def _required_values(operation: Operation) -> list[str]:
    """Return the example values of the path parameters and of the required query parameters."""
    parts = [example_path_value(operation.key, item) for item in re.findall(r"\{(\w+)\}", operation.path)]
    return [*parts, *QUERIES.get(operation.key, {}).values()]


def _quoted(text: str) -> str:
    """Return a string literal for all three languages; numbers are unchanged."""
    return text if text.isdigit() else json.dumps(text, ensure_ascii=False)


def _python_arguments(operation: Operation) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional arguments, as text or object, and the keyword arguments."""
    arguments = [_quoted(part) for part in _required_values(operation)]
    key, body = operation.key, dict(BODIES.get(operation.key) or {})
    if key == _UPLOAD_OPERATION:
        return [f'Path("{_FILE}")', _quoted(FILE_NAME)], {}
    if key in _RAW_BODY_OPERATIONS:
        return [*arguments, f'Path("{_UPLOADED_FILE}")'], {}
    if METHODS[key].endswith(".download"):
        return [*arguments, f'"{_FILE}"'], {}
    if key in POSITIONAL_KEYS:
        first = {name: body.pop(name) for name in POSITIONAL_KEYS[key] or tuple(body)}
        return [*arguments, first], body
    if METHODS[key] == "runs.start":
        body.pop("wait")
    return arguments, body


def _ts_arguments(operation: Operation) -> list[Any]:
    """Return the arguments, as text or object."""
    key, parts = operation.key, _required_values(operation)
    arguments, body = [_quoted(part) for part in parts], BODIES.get(operation.key)
    name = METHODS.get(key)
    if name is None:
        request_arguments = [_quoted(operation.method), _quoted(example_path(operation))]
        return [*request_arguments, {"json": body}] if body is not None else request_arguments
    if key == _UPLOAD_OPERATION:
        return [_quoted(FILE_NAME), _quoted("id,email\n1,ada@example.org\n")]
    if key in _RAW_BODY_OPERATIONS:
        return [*arguments, f'readFileSync("{_UPLOADED_FILE}")']
    if name == "secrets.put":
        return [*arguments, _quoted(str((body or {})["value"]))]
    if name == "workspace.delete":
        return [_quoted(str((body or {})["confirm"]))]
    if name == "runs.start":
        return [*arguments, (body or {})["params"]]
    if name == "runs.list" and parts:
        return [f"{{ scenario_id: {arguments[0]} }}"]
    if name.endswith(".get") and len(arguments) == 2 and operation.path.endswith("@v{number}"):
        return [arguments[0], f"{{ version: {arguments[1]} }}"]
    if key in ("POST /generate", "POST /preview"):
        rest = {k: v for k, v in (body or {}).items() if k != "fields"}
        return [{"fields": (body or {})["fields"]}, rest]
    return arguments if body is None else [*arguments, body]


# --- Text -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _LiteralSyntax:
    """The syntax of a language: the text before and after the members of an object, a key, a scalar value, the trailing
    comma, and the indentation."""

    pad: str
    key: Callable[[str], str]
    plain: Callable[[Any], str]
    last: str
    step: str

    def one_line(self, value: Any) -> str:
        """Return a value on one line."""
        if isinstance(value, dict):
            inner = ", ".join(f"{self.key(k)}: {self.one_line(v)}" for k, v in value.items())
            return f"{{{self.pad}{inner}{self.pad}}}" if inner else "{}"
        if isinstance(value, list):
            return f"[{', '.join(map(self.one_line, value))}]"
        return self.plain(value)

    def formatted(self, value: Any, indent: str = "", room: int = _LINE_WIDTH) -> str:
        """Write a value on one line if it fits into `room` characters, else each member on a separate line."""
        short = self.one_line(value)
        if len(short) <= room - len(indent) or not isinstance(value, dict | list) or not value:
            return short
        deeper = indent + self.step
        if isinstance(value, dict):
            inner = [f"{deeper}{self.key(k)}: {self.formatted(v, deeper)}" for k, v in value.items()]
        else:
            inner = [deeper + self.formatted(v, deeper) for v in value]
        begin, end = "{}" if isinstance(value, dict) else "[]"
        return f"{begin}\n" + ",\n".join(inner) + f"{self.last}\n{indent}{end}"


def _json_string(text: Any) -> str:
    return json.dumps(text, ensure_ascii=False)


def _python_scalar(value: Any) -> str:
    return _json_string(value) if isinstance(value, str) else repr(value)


def _ts_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z_]\w*", key) else _json_string(key)


_JSON_SYNTAX: Final = _LiteralSyntax("", _json_string, _json_string, "", "  ")
_PYTHON_SYNTAX: Final = _LiteralSyntax("", _json_string, _python_scalar, ",", "    ")
_TYPESCRIPT_SYNTAX: Final = _LiteralSyntax(" ", _ts_key, _json_string, ",", "  ")


def _python_call(name: str, arguments: list[Any], keywords: dict[str, Any]) -> str:
    """Return a Python call. `arguments`: texts to insert unchanged, or objects."""
    style = _PYTHON_SYNTAX

    def argument_texts(indent: str) -> list[str]:
        by_place = [
            argument if isinstance(argument, str) else style.formatted(argument, indent)
            for argument in arguments
        ]
        return by_place + [f"{key}={style.formatted(value, indent)}" for key, value in keywords.items()]

    flat = f"{name}({', '.join(argument_texts(''))})"
    if len(flat) <= _LINE_WIDTH and "\n" not in flat:
        return flat
    if len(arguments) == 1 and not keywords:  # a single object is in the brackets
        return f"{name}({argument_texts('')[0]})"
    return f"{name}(\n" + "".join(f"    {text},\n" for text in argument_texts("    ")) + ")"


def _ts_call(name: str, arguments: list[Any]) -> str:
    parts = (
        argument if isinstance(argument, str) else _TYPESCRIPT_SYNTAX.one_line(argument)
        for argument in arguments
    )
    flat = f"{name}({', '.join(parts)})"
    if len(flat) <= _LINE_WIDTH:
        return flat
    longest = max(
        (argument for argument in arguments if not isinstance(argument, str)),
        key=lambda item: len(_TYPESCRIPT_SYNTAX.one_line(item)),
        default="",
    )
    texts = [
        argument
        if isinstance(argument, str)
        else _TYPESCRIPT_SYNTAX.formatted(argument, room=0 if argument is longest else _LINE_WIDTH)
        for argument in arguments
    ]
    return f"{name}({', '.join(texts)})"


# The reader's objects that samples use: the newest one of each kind that the reader can see.

# The mark's kind -> the table, and the scope that its list requires.
ID_KINDS: Final[Mapping[str, tuple[Any, str]]] = {
    "KEY": (ApiKey, "member"),
    "CONNECTION": (Connection, "read"),
    "DATASET": (Dataset, "read"),
    "ENDPOINT": (Endpoint, "read"),
    "EXPORT": (Export, "read"),
    "FILE": (WorkspaceFile, "read"),
    "MEMBER": (Membership, "member"),
    "PUSH": (Push, "read"),
    "RUN": (Run, "read"),
    "SCENARIO": (Scenario, "read"),
    "TEAM": (Team, "member"),
    "TEMPLATE": (Template, "read"),
}


def newest_ids(actor: Actor, kinds: set[str]) -> dict[str, str]:
    """Return the ids by kind; kinds without objects, or without permission, are missing."""
    found = {"PROJECT": actor.project_id} if actor.project_id else {}
    for kind in kinds & set(ID_KINDS):
        model, scope = ID_KINDS[kind]
        if not actor.can(scope):
            continue
        listed = tenancy.listing(actor, model)
        if model is Connection:
            listed = listed.where(Connection.of_endpoint.is_(False))
        elif model is ApiKey:
            listed = listed.where(ApiKey.created_by == actor.user_id, ApiKey.run_id.is_(None))
        elif model is Run:
            scenario_ids = tenancy.listing(actor, Scenario).with_only_columns(Scenario.id)
            listed = listed.where(Run.scenario_id.in_(scenario_ids))
        newest = db.session.scalars(listed.order_by(model.id.desc()).limit(1)).first()
        if newest is not None:
            found[kind] = newest.id
    if "RUN" in found:  # a run goes with its own scenario
        found["SCENARIO"] = db.session.get_one(Run, found["RUN"]).scenario_id
    return found


# --- Postman collection -------------------------------------------------------------------------------------

FORMAT: Final = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
_OWN_ID: Final = re.compile(r"\bOWN_(\w+_ID)\b")
_VARIABLE: Final = re.compile(r"\{\{(\w+)\}\}")


def collection(groups: Mapping[str, Group], version: str, base_url: str) -> dict[str, Any]:
    """Return the whole collection. Its variables are `base_url`, `api_key`, which is empty, parts of addresses that
    share a segment with others (`dataset_id` of `/datasets/{dataset_id}@v{number}`), and the ids that requests have
    in common: a value that is set once is used in all of them, except in those that change or delete objects."""
    folders = [
        {"name": group.title, "item": [_request_item(operation) for operation in group.operations]}
        for group in groups.values()
    ]
    path_variables = {
        name
        for group in groups.values()
        for operation in group.operations
        for name in _variables_within_segments(operation)
    }
    shared = sorted(path_variables.union(_VARIABLE.findall(json.dumps(folders))) - {"base_url", "api_key"})
    return {
        "info": {
            "name": "Rowsmith",
            "description": f"Every operation of the API, version {version}. Set `api_key` to an API key and the other "
            "variables to your own IDs. For requests that change or delete an object, set the ID in the URL of the "
            "request.",
            "schema": FORMAT,
        },
        "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{api_key}}", "type": "string"}]},
        "variable": [
            {"key": "base_url", "value": base_url, "type": "string"},
            {"key": "api_key", "value": "", "type": "string"},
            *(
                {"key": name, "value": PATH_VALUES.get(name, name.upper()), "type": "string"}
                for name in shared
            ),
        ],
        "item": folders,
    }


def _request_item(operation: Operation) -> dict[str, Any]:
    headers: list[dict[str, Any]] = []
    if operation.body_kind == JSON:
        headers.append({"key": "Content-Type", "value": JSON})
    if operation.idempotent:
        headers.append({"key": "Idempotency-Key", "value": "{{$guid}}", "disabled": True})
    if operation.if_match:
        headers.append({"key": "If-Match", "value": "", "disabled": True})
    request: dict[str, Any] = {
        "method": operation.method,
        "header": headers,
        "url": _url(operation),
        "description": "\n\n".join([operation.summary + ".", *operation.description]),
    }
    body = _body(operation)
    if body is not None:
        request["body"] = body
    if operation.scope == "public":
        request["auth"] = {"type": "noauth"}
    return {"name": operation.summary, "request": request, "response": []}


def _variables_within_segments(operation: Operation) -> list[str]:
    shared = [item for item in operation.path.split("/") if not re.fullmatch(r"\{\w+\}", item)]
    return re.findall(r"\{(\w+)\}", "/".join(shared))


def _url(operation: Operation) -> dict[str, Any]:
    """Return the URL of a request. Postman knows `:name` only as a full segment, so parts inside one (`@v{number}`)
    become variables in braces."""
    segments = [
        f":{found[1]}"
        if (found := re.fullmatch(r"\{(\w+)\}", item))
        else re.sub(r"\{(\w+)\}", r"{{\1}}", item)
        for item in operation.path.removeprefix("/").split("/")
    ]
    url: dict[str, Any] = {
        "raw": "{{base_url}}/" + "/".join(segments),
        "host": ["{{base_url}}"],
        "path": segments,
    }
    query = [row for place, row in operation.parameters if place == "query"]
    if query:
        url["query"] = [
            {
                "key": row.name,
                "value": "",
                "description": " ".join(filter(None, (row.text, row.limits))),
                "disabled": True,
            }
            for row in query
        ]
    parts = [segment[1:] for segment in segments if segment.startswith(":")]
    if parts:
        url["variable"] = [
            {"key": part, "value": _replace_ids_with_variables(example_path_value(operation.key, part))}
            for part in parts
        ]
    return url


def _body(operation: Operation) -> dict[str, Any] | None:
    example = BODIES.get(operation.key)
    if example is not None:
        text = _replace_ids_with_variables(json.dumps(example, ensure_ascii=False, indent=2))
        return {"mode": "raw", "raw": text, "options": {"raw": {"language": "json"}}}
    if operation.body_kind == "multipart/form-data":
        parts: list[dict[str, Any]] = [
            {"key": row.name, "type": "file" if row.kind == "file" else "text", "description": row.text}
            for row in operation.body_rows
        ]
        values = {"name": FILE_NAME}
        for part in parts:
            part |= {"src": ""} if part["type"] == "file" else {"value": values.get(part["key"], "")}
            if part["type"] == "text" and not part["value"]:
                part["disabled"] = True
        return {"mode": "formdata", "formdata": parts}
    if operation.method == "PUT":  # the document itself
        return {"mode": "file", "file": {}}
    return None


def _replace_ids_with_variables(text: str) -> str:
    """Replace the ids of the reader's objects in a sample by variables."""
    return _OWN_ID.sub(lambda found: "{{" + found[1].lower() + "}}", text)
