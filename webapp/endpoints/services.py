"""Endpoints: saved requests that rows are sent with.

An endpoint with its own URL has a REST connection that is created for it, with the URL and the credentials. Other
endpoints use an existing connection. Further settings of an endpoint override those of the connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from sqlalchemy import select

from webapp import clock, ids, json_input, limits
from webapp.access import tenancy
from webapp.access.actors import Actor, require
from webapp.audit.services import audit_log
from webapp.connections.models import Connection, Endpoint
from webapp.connections.services import connections, secrets
from webapp.connections.services import settings as connections_settings
from webapp.connections.services.settings import MASK
from webapp.connectors import KINDS
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.generation.services import external_values, generate
from webapp.generation.services.row_makers import TemplateRows
from webapp.pushes.models import Push
from webapp.pushes.services import planning, pushes, targets
from webapp.pushes.services.mapping import RequestedMapping
from webapp.pushes.services.planning import RequestedTable
from webapp.pushes.services.targets import Destination, Places
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import GenerateInput
from webapp.versioning import services as versioning
from webapp.work.models import END_STATES

REQUEST: Final = ("method", "path", "headers", "header_encoding", "query_params", "body")
SENDING: Final = (
    "push_mode", "wrapper_key", "batch_size", "retry", "parallel", "rate_per_second", "capture", "delete_path",
    "idempotent",
)  # fmt: skip
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_NOWHERE: Final = "https://none.invalid"  # replaces an invalid URL, so that the other settings can be checked
_OWN: Final = "rest"  # the kind of a connection that is created for an endpoint


def as_json(endpoint: Endpoint) -> dict[str, Any]:
    """Return an endpoint as the API shows it, with secrets masked."""
    connection = db.session.get_one(Connection, endpoint.connection_id)
    request = endpoint.settings["request_template"]
    shown = connections_settings.shown(connection.settings, KINDS[connection.type])
    own = connection.of_endpoint
    return {
        "id": endpoint.id,
        "name": endpoint.name,
        "method": request["method"],
        "url": shown["base_url"] + request["path"] if own else None,
        "connection_id": None if own else connection.id,
        "path": None if own else request["path"],
        "headers": request.get("headers", {}),
        "header_encoding": request.get("header_encoding", "none"),
        "query_params": request.get("query_params", {}),
        "body": request.get("body"),
        "auth": shown.get("auth", {"type": "none"}) if own else None,
        **{name: endpoint.settings.get(name) for name in SENDING},
        "environment": connection.environment,
        "project_id": endpoint.project_id,
        "team_id": endpoint.team_id,
        "created_by": endpoint.created_by,
        "created_at": clock.to_text(endpoint.created_at),
        "updated_at": clock.to_text(endpoint.updated_at),
        "deleted_at": clock.to_text(endpoint.deleted_at),
    }


def create(actor: Actor, given: Mapping[str, Any]) -> Endpoint:
    """Create an endpoint, and commit. `given` has the keys of `as_json`. Errors: forbidden, not_found (the connection),
    validation_error with all errors."""
    given = _spelled(given)
    connection, settings, grants = preview(actor, given)
    secrets.allow(actor, grants)
    if given.get("url"):
        own = {"base_url": _split(given["url"])[0], "auth": given.get("auth") or {"type": "none"}}
        connection = connections.draft(
            actor, name=given["name"], type=_OWN, settings=own, environment=given.get("environment") or "dev",
            of_endpoint=True, tells=False,
        )  # fmt: skip
    endpoint = Endpoint(
        **tenancy.here(actor),
        name=given["name"],
        connection_id=connection.id,
        settings=settings,
        created_by=actor.user_id,
    )
    db.session.add(endpoint)
    db.session.flush()
    audit_log.record(actor, "endpoint.create", endpoint, join=True, name=endpoint.name)
    db.session.commit()
    return endpoint


def of_operations(
    actor: Actor, connection: Connection, requests: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> list[Endpoint]:
    """Create an endpoint for each operation of an API that has none yet, in the caller's transaction.

    `requests` are the title and the request of each operation by name."""
    mine = select(Endpoint).where(Endpoint.connection_id == connection.id, Endpoint.deleted_at.is_(None))
    there = {one.settings.get("operation") for one in db.session.scalars(mine)}
    made = []
    for operation, (title, request) in requests.items():
        if operation in there:
            continue
        endpoint = Endpoint(
            **tenancy.here(actor),
            name=(title or operation)[: limits.MAX_NAME_CHARS],
            connection_id=connection.id,
            settings={"operation": operation, "request_template": dict(request)},
            created_by=actor.user_id,
        )
        db.session.add(endpoint)
        db.session.flush()
        audit_log.record(actor, "endpoint.create", endpoint, join=True, name=endpoint.name)
        made.append(endpoint)
    return made


def change(actor: Actor, endpoint: Endpoint, changes: Mapping[str, Any]) -> Endpoint:
    """Change a locked endpoint, and commit. Masked secrets are kept on update. Errors: see `create`."""
    before, changes = as_json(endpoint), _kept(_spelled(changes))
    connection, merged, fresh, settings, grants = _changed(actor, endpoint, changes, before)
    secrets.allow(actor, grants)
    if fresh is not None:
        connections.put_in(actor, connection, {"settings": fresh, "environment": merged["environment"]})
    endpoint.name = changes.get("name", endpoint.name)
    endpoint.settings = settings
    endpoint.updated_at = clock.now()
    db.session.flush()
    changed = audit_log.between(before, as_json(endpoint), changes)
    audit_log.record(actor, "endpoint.change", endpoint, join=True, name=endpoint.name, changes=changed)
    db.session.commit()
    return endpoint


def check(actor: Actor, endpoint: Endpoint, changes: Mapping[str, Any]) -> None:
    """Check changes without saving them. Error: validation_error with all errors."""
    _changed(actor, endpoint, _kept(_spelled(changes)), as_json(endpoint))


def _changed(
    actor: Actor, endpoint: Endpoint, changes: Mapping[str, Any], before: Mapping[str, Any]
) -> tuple[Connection, dict[str, Any], dict[str, Any] | None, dict[str, Any], connections_settings.Grants]:
    """Return the connection, the changed endpoint, the connection's new settings if they change, the endpoint's
    settings, and the hosts to allow secrets for. Error: validation_error with all errors."""
    connection = db.session.get_one(Connection, endpoint.connection_id)
    own = connection.of_endpoint
    others = ("connection_id", "path") if own else ("url", "auth", "environment")
    if endpoint.settings.get("operation"):
        others = (*others, "connection_id", *REQUEST)
    faults = _FaultCollector()
    with faults:
        _same(endpoint, own, [name for name in others if changes.get(name) and changes[name] != before[name]])
    merged: dict[str, Any] = {**before, **changes}
    fresh: dict[str, Any] | None = None
    base = ""
    if own:
        with faults:
            base, merged["path"] = _split(merged["url"] or "")
    if own and {"url", "auth", "environment"} & changes.keys():
        shown = connections_settings.shown(connection.settings, KINDS[_OWN])
        fresh = {**shown, "base_url": base or shown["base_url"], "auth": merged["auth"] or {"type": "none"}}
        with faults:
            connections_settings.check(actor, connection.project_id, KINDS[_OWN], fresh, connection.settings)
    settings, grants = _settings(merged, endpoint.settings), []
    leads = connection
    if fresh is not None and not connections_settings.leads_there(connection, KINDS[_OWN], fresh):
        leads = Connection(  # not saved
            workspace_id=connection.workspace_id,
            project_id=connection.project_id,
            type=_OWN,
            settings=dict(fresh),
        )
    with faults:
        grants = _check(actor, leads, settings, endpoint.settings if leads is connection else {})
    faults.raise_all()
    return connection, merged, fresh, settings, grants


def preview(
    actor: Actor, given: Mapping[str, Any]
) -> tuple[Connection, dict[str, Any], connections_settings.Grants]:
    """Return the connection and the settings that an endpoint would have, and the hosts to allow secrets for.

    Saves nothing. Secrets in `given` are not encrypted in this connection. Errors: see `create`."""
    require(actor, "write")
    given = _spelled(given)
    faults = _FaultCollector()
    with faults:
        _one_address(given)
    connection, own = None, {"base_url": _NOWHERE, "auth": given.get("auth") or {"type": "none"}}
    path = given.get("path")
    if given.get("url"):
        with faults:
            own["base_url"], path = _split(given["url"])
    elif given.get("connection_id"):
        with faults:
            connection = _used(actor, given["connection_id"])
    if connection is None:
        with faults:
            connections_settings.check(actor, actor.project_id, KINDS[_OWN], own, {})
        connection = Connection(
            workspace_id=actor.workspace_id,
            project_id=actor.project_id,
            type=_OWN,
            settings=own,
            read_only=False,
        )
    settings, grants = _settings({**given, "path": path}, {}), []
    with faults:
        grants = _check(actor, connection, settings)
    faults.raise_all()
    return connection, settings, grants


def delete(actor: Actor, endpoint: Endpoint) -> None:
    """Soft-delete a locked endpoint, and commit. Error: in_use, with the running pushes that use it."""
    going = select(Push.id, Push.target, Push.team_id).where(
        Push.endpoint_id == endpoint.id, Push.status.not_in(END_STATES), Push.deleted_at.is_(None)
    )
    if rows := db.session.execute(going).all():
        seen = [(row, actor.role_in(row.team_id) is not None) for row in rows]
        users = [
            {"type": "push", "id": row.id if mine else None, "name": row.target if mine else None}
            for row, mine in seen
        ]
        raise ApiError("in_use", "Rows are being sent to this endpoint.", {"used_by": users})
    versioning.soft_delete(actor, endpoint)


def restore(actor: Actor, endpoint: Endpoint) -> None:
    """Restore a deleted endpoint, and commit. Error: not_found after 30 days."""
    versioning.restore(actor, endpoint)


# --- Settings


def _spelled(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input with enumerated values (`push_mode`, `auth.type`) in their stored spelling."""
    return json_input.canonical(KINDS[_OWN].Settings, given)


def _one_address(given: Mapping[str, Any]) -> None:
    if bool(given.get("url")) == bool(given.get("connection_id")):
        text = "Specify either url, or connection_id with path."
        raise validation_error([Fault("url", "missing", text)])
    faults = [
        Fault(
            name,
            "not_allowed",
            "An endpoint on a connection uses the setting of the connection.",
            "Remove it.",
        )
        for name in ("auth", "environment")
        if given.get("connection_id") and given.get(name)
    ]
    if given.get("url") and given.get("path"):
        faults.append(Fault("path", "not_allowed", "With url, the path is part of the URL.", "Remove path."))
    if faults:
        raise validation_error(faults)


def _split(url: str) -> tuple[str, str]:
    """Split a URL into its origin and the rest, which may contain `{{field}}`."""
    parts = urlsplit(url)
    if not parts.scheme or not parts.netloc or "{" in parts.netloc:
        text = "The URL must start with https:// or http:// and a host name without {{field}}."
        raise validation_error([Fault("url", "invalid", text)])
    origin = f"{parts.scheme}://{parts.netloc}"
    return origin, url[len(origin) :]


def _kept(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes without a null name or environment, which keep their values as in connections."""
    return {
        key: value
        for key, value in changes.items()
        if value is not None or key not in ("name", "environment")
    }


def _same(endpoint: Endpoint, own: bool, unfit: list[str]) -> None:
    """Raise validation_error for settings of an endpoint that cannot be changed."""
    if unfit:
        has = "its own URL" if own else "the URL and the credentials of its connection"
        if endpoint.settings.get("operation"):
            has = f"the request of the operation {endpoint.settings['operation']}"
        text = f"This endpoint has {has}."
        raise validation_error(
            [Fault(name, "not_allowed", text, "Create another endpoint.") for name in unfit]
        )


def _used(actor: Actor, connection_id: str) -> Connection:
    found = connections.get(actor, connection_id, "write")
    if found.type != _OWN:
        text = f"Endpoints need a connection of type {_OWN}; this one has the type {found.type}."
        raise validation_error([Fault("connection_id", "not_for_this_type", text)])
    return found


def _settings(given: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    request = {
        "method": given.get("method") or "POST",
        "path": given.get("path") or "",
        "headers": given.get("headers") or {},
        "header_encoding": given.get("header_encoding") or "none",
        "query_params": given.get("query_params") or {},
        "body": given.get("body"),
    }
    said = {name: given[name] for name in SENDING if given.get(name) is not None}
    kept = {"operation": before["operation"]} if before.get("operation") else {}
    return {**said, **kept, "request_template": before["request_template"] if kept else request}


def _check(
    actor: Actor, connection: Connection, settings: Mapping[str, Any], stored: Mapping[str, Any] = NOTHING
) -> connections_settings.Grants:
    told = {name: value for name, value in settings.items() if name != "operation"}
    return connections_settings.check_changed(actor, connection, KINDS[connection.type], told, stored)


class _FaultCollector:
    """Collects the errors of several checks, with the endpoint's names for settings of the connection."""

    _NAMES: Final = {"settings.base_url": "url", "settings.": "", "request_template.": ""}

    def __init__(self) -> None:
        self._fields: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, ApiError) or error.code != "validation_error":
            return False
        for fault in error.details["fields"]:
            front = next((one for one in self._NAMES if fault["path"].startswith(one)), "")
            path = self._NAMES.get(front, "") + fault["path"][len(front) :]
            self._fields.append({**fault, "path": path})
        return True

    def raise_all(self) -> None:
        """Raise validation_error if there are errors."""
        if self._fields:
            raise validation_error([Fault(**one) for one in self._fields])


# --- Dry run: the request for the first row of a template

_SEED: Final = "example"
_STAND_IN: Final = (
    "a-stored-secret"  # replaces a mask: the secret is not decrypted, and would be masked again
)


def requests(actor: Actor, given: Mapping[str, Any], template_id: str) -> list[str]:
    """Return the exact HTTP requests for a template's first row (in batch mode its first three), with secrets masked.

    `given` has the keys of `as_json`. Sends nothing. Errors: forbidden, not_found, validation_error with all errors of
    the endpoint, target_failed (reason unknown_field: the rows have no such `{{field}}`), and errors of external values
    of the template.
    """
    connection, settings, _ = preview(actor, unmasked(given))
    destination = Destination(connection, None, settings)
    template = tenancy.get(actor, Template, template_id, "read")
    found = generate.TemplateRef(template.id, template.version, template.project_id, template.team_id)
    source = generate.saved_source(found, None)
    count = limits.PREVIEW_ROWS if given.get("push_mode") == "batch" else 1
    recipe = external_values.recipe(actor, source, GenerateInput(count=count, seed=_SEED))
    entity = Places(destination).fitting(source.name)
    assert entity is not None  # any path is a place
    wanted = RequestedTable(
        source.name, entity.name, TemplateRows(recipe.bound), count, RequestedMapping({}, {}), entity
    )
    push_id = ids.new("psh")
    planned = planning.table(wanted, destination.can, push_id, 0)
    with targets.channel_of(destination) as channel:
        return pushes.preview_requests(push_id, channel, 0, planned)


def unmasked(value: Any) -> Any:
    """Replace masked secrets in the input of a form by a placeholder, so that it can be checked."""
    if isinstance(value, Mapping):
        return {name: unmasked(one) for name, one in value.items()}
    return _STAND_IN if value == MASK else value
