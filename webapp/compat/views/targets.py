"""Connections with their test and their tables, and endpoints."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from flask import Response

from webapp import json_input, limits
from webapp.access.actors import Actor
from webapp.audit.services import audit_log
from webapp.compat.views.objects import ENDPOINTS, Folders
from webapp.compat.views.routing import (
    ROOT,
    PassThroughInput,
    ProjectQuery,
    actor_from_body,
    actor_in_project,
    call,
    camelize_keys,
    list_all,
    parse_native,
)
from webapp.connections.models import Connection
from webapp.connections.services import access, connections, inspection, sqlite_files
from webapp.connections.services import settings as connections_settings
from webapp.connections.views.connections import ConnectionChange, ConnectionIn
from webapp.connectors import KINDS, driver_process
from webapp.endpoints import services as endpoints
from webapp.endpoints.views.endpoints import EndpointChange, EndpointIn
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.web.responses import check_if_match, reply

CONNECTION = f"{ROOT}/connections/<connection_id>"
ENDPOINT = f"{ROOT}/endpoints/<endpoint_id>"


class TablesQuery(ProjectQuery):
    """The connection whose tables are listed; without it, those of every database of the project."""

    connectionId: str | None = None  # noqa: N815 - the wire's own name


# --- Connections --------------------------------------------------------------------------------------------


def connection_out(connection: Connection, folders: Folders | None = None) -> dict[str, Any]:
    """Return a connection in the compatible format, with secrets masked. `folders`: the folders of its project, if they
    were loaded already."""
    folders = folders or Folders(ENDPOINTS, connection.project_id)
    data = connections.as_json(connection)
    text = data["settings"].get("connection_string")
    return {**camelize_keys(data), "connectionString": text, **folders.client_names(connection.name)}


@call(f"{ROOT}/connections", scope="read")
def connections_list(actor: Actor, query: ProjectQuery) -> Response:
    """List the connections of the project."""
    project_actor = actor_in_project(actor, "read", query.projectId)
    folders = Folders(ENDPOINTS, project_actor.project_id or "")
    return reply(
        [connection_out(connection, folders) for connection in list_all(connections.listing, project_actor)]
    )


@call(f"{ROOT}/connections", ["POST"], scope="write", body=PassThroughInput, status=201, idempotent=True)
def connection_create(actor: Actor, body: PassThroughInput) -> Response:
    """Create a connection and verify it."""
    values = body.native_values()
    project_actor = actor_from_body(actor, "write", values)
    Folders(ENDPOINTS, project_actor.project_id or "").set_full_name(values, body)
    parsed = parse_native(ConnectionIn, values)
    connection = connections.create(
        project_actor,
        name=parsed.name,
        type=_requested_connection_type(parsed),
        settings=parsed.values(),
        environment=parsed.environment,
        read_only=parsed.is_read_only,
    )
    return reply(connection_out(connection), status=201)


def _requested_connection_type(values: ConnectionIn) -> str:
    kind = values.type or values.connection_type
    if not kind:
        raise validation_error(
            [Fault("type", "missing", "This field is required: the kind of target, such as postgresql.")]
        )
    return kind


@call(CONNECTION, scope="read")
def connection_show(actor: Actor, connection_id: str) -> Response:
    """Get a connection."""
    return reply(connection_out(connections.get(actor, connection_id)), send_etag=True)


@call(CONNECTION, ["PUT"], scope="write", body=PassThroughInput)
def connection_change(actor: Actor, connection_id: str, body: PassThroughInput) -> Response:
    """Change a connection. If a masked connection string is sent back, the stored values are kept."""
    found = connections.get(actor, connection_id, "write", lock=True)
    values = body.native_values()
    kind = values.pop("type", None) or values.pop("connection_type", None)
    if isinstance(kind, str) and connections.parse_kind(kind) != found.type:
        text = f"The type of a connection ({found.type}) cannot be changed."
        raise validation_error([Fault("type", "not_allowed", text, "Create a new connection.")])
    Folders(ENDPOINTS, found.project_id).set_full_name(values, body, found.name)
    changes = parse_native(ConnectionChange, values).model_dump(exclude_unset=True, by_alias=True)
    string = changes.pop("connection_string", None)
    if string is not None:
        changes["settings"] = {**(changes.get("settings") or {}), "connection_string": string}
    changes = {key: value for key, value in changes.items() if value is not None}
    return reply(connection_out(connections.change(actor, found, changes)))


@call(CONNECTION, ["DELETE"], scope="write")
def connection_delete(actor: Actor, connection_id: str) -> Response:
    """Delete a connection."""
    found = connections.get(actor, connection_id, "write", lock=True)
    connections.delete(actor, found)
    return reply({"message": f"Connection {found.name} deleted"})


@call(f"{ROOT}/connections/test", ["POST"], scope="write", body=PassThroughInput)
def connection_test(actor: Actor, body: PassThroughInput) -> Response:
    """Test settings without saving them. A target that does not respond is `target_failed`."""
    values = body.native_values()
    project_actor = actor_from_body(actor, "write", values)
    parsed = parse_native(ConnectionIn, {"name": "test", **values})
    kind = connections.parse_kind(_requested_connection_type(parsed))
    settings = json_input.canonicalize_enums(KINDS[kind].Settings, parsed.values())
    connections_settings.check(project_actor, project_actor.project_id, KINDS[kind], settings, {})
    # It is in no session, so it is never saved, and its secrets are not encrypted.
    connection = Connection(
        workspace_id=project_actor.workspace_id,
        project_id=project_actor.project_id,
        type=kind,
        settings=settings,
        read_only=True,
    )
    audit_log.record(project_actor, "connection.test", join=True, connection_type=kind)
    db.session.commit()
    with sqlite_files.trial_folder(connection) if kind == sqlite_files.KIND else nullcontext() as folder:
        connector, redact = access.create_connector_and_redactor(connection)
        connector.folder = folder or connector.folder
        stages = [
            {"name": stage["name"], "ok": stage["ok"], "code": stage["code"], "message": redact(stage["message"]),
             "hint": stage["hint"], "ms": stage["ms"]}
            for stage in driver_process.stages(connector, limits.VERIFY_SECONDS)
        ]  # fmt: skip
    bad = next((stage for stage in stages if not stage["ok"]), None)
    if bad is not None or not stages:
        text = bad["message"] if bad else "The target did not respond."
        raise ApiError("target_failed", text, {"stages": stages, "hint": bad["hint"] if bad else ""})
    return reply({"success": True, "message": "The connection works.", "stages": stages})


@call(f"{ROOT}/connections/tables", scope="read", query=TablesQuery, reads=False)
def tables(actor: Actor, query: TablesQuery) -> Response:
    """The tables of one connection, or of all databases of the project that respond."""
    if query.connectionId:
        return reply(_tables_json(actor, connections.get(actor, query.connectionId)))
    project_actor = actor_in_project(actor, "read", query.projectId)
    found: list[dict[str, Any]] = []
    candidates = [
        connection
        for connection in list_all(connections.listing, project_actor)
        if KINDS[connection.type].can.sql
    ]
    for candidate in candidates[: limits.COMPAT_TABLE_CONNECTIONS]:
        try:
            found += _tables_json(project_actor, candidate)
        except ApiError:  # one that is down says nothing of the others
            db.session.rollback()
    return reply(found)


def _tables_json(actor: Actor, connection: Connection) -> list[dict[str, Any]]:
    entities = inspection.metadata_json(actor, connection)["entities"]
    inbound: dict[str, list[dict[str, str]]] = {}
    for entity in entities:
        for relation in entity.get("relations", []):
            for column, referenced in zip(relation["columns"], relation["entity_columns"], strict=False):
                dependency = {
                    "dependent_table": entity["name"], "dependent_column": column, "referenced_column": referenced
                }  # fmt: skip
                inbound.setdefault(relation["entity"], []).append(dependency)
    return [
        {
            "table_name": entity["name"],
            "columns": [
                {"column_name": column["name"], "data_type": column.get("declared") or column["type"]}
                for column in entity["fields"]
            ],
            "rows": [],
            "dependencies": inbound.get(entity["name"], []),
            "connectionId": connection.id,
        }
        for entity in entities
    ]


# --- Endpoints ----------------------------------------------------------------------------------------------


@call(f"{ROOT}/endpoints", scope="read")
def endpoints_list(actor: Actor, query: ProjectQuery) -> Response:
    """List the endpoints of the project."""
    project_actor = actor_in_project(actor, "read", query.projectId)
    folders = Folders(ENDPOINTS, project_actor.project_id or "")
    found = list_all(connections.list_endpoints, project_actor)
    return reply([endpoint_out(endpoints.as_json(endpoint), folders) for endpoint in found])


def endpoint_out(data: dict[str, Any], folders: Folders | None = None) -> dict[str, Any]:
    """Return an endpoint in the compatible format: null for missing headers, parameters or authentication, and a path
    as its address if it uses the host of a connection."""
    folders = folders or Folders(ENDPOINTS, data["project_id"])
    return {
        **camelize_keys(data),
        "url": data["url"] or data["path"],
        "headers": data["headers"] or None,
        "queryParams": data["query_params"] or None,
        "auth": None if (data["auth"] or {}).get("type", "none") == "none" else data["auth"],
        **folders.client_names(data["name"]),
    }


@call(f"{ROOT}/endpoints", ["POST"], scope="write", body=PassThroughInput, idempotent=True)
def endpoint_create(actor: Actor, body: PassThroughInput) -> Response:
    """Create an endpoint."""
    values = body.native_values()
    project_actor = actor_from_body(actor, "write", values)
    Folders(ENDPOINTS, project_actor.project_id or "").set_full_name(values, body)
    endpoint = endpoints.create(project_actor, parse_native(EndpointIn, values).values())
    return reply(endpoint_out(endpoints.as_json(endpoint)))


@call(ENDPOINT, scope="read")
def endpoint_show(actor: Actor, endpoint_id: str) -> Response:
    """Get an endpoint."""
    return reply(
        endpoint_out(endpoints.as_json(connections.get_endpoint(actor, endpoint_id))), send_etag=True
    )


@call(ENDPOINT, ["PUT"], scope="write", body=PassThroughInput)
def endpoint_change(actor: Actor, endpoint_id: str, body: PassThroughInput) -> Response:
    """Change an endpoint. A secret that is sent back masked is kept."""
    found = connections.get_endpoint(actor, endpoint_id, "write", lock=True)
    check_if_match(endpoint_out(endpoints.as_json(found)))
    values = {
        key: value for key, value in body.native_values().items() if key not in ("project_id", "team_id")
    }
    if found.connection_id and values.get("url") == values.get("path"):
        values.pop(
            "url", None
        )  # of an endpoint on a connection the clients are shown the path as its address
    Folders(ENDPOINTS, found.project_id).set_full_name(values, body, found.name)
    changed = endpoints.change(actor, found, parse_native(EndpointChange, values).values())
    return reply(endpoint_out(endpoints.as_json(changed)))


@call(ENDPOINT, ["DELETE"], scope="write")
def endpoint_delete(actor: Actor, endpoint_id: str) -> Response:
    """Delete an endpoint."""
    found = connections.get_endpoint(actor, endpoint_id, "write", lock=True)
    endpoints.delete(actor, found)
    return reply({"message": f"Endpoint {found.name} deleted"})
