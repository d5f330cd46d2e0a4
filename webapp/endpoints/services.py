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
from webapp.access.actors import Actor, require_scope
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
from webapp.pushes.services.targets import Destination, PathCatalogue
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import GenerateInput
from webapp.versioning import services as versioning
from webapp.work.models import END_STATES

REQUEST_KEYS: Final = ("method", "path", "headers", "header_encoding", "query_params", "body")
SENDING_KEYS: Final = (
    "push_mode", "wrapper_key", "batch_size", "retry", "parallel", "rate_per_second", "capture", "delete_path",
    "idempotent",
)  # fmt: skip
EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
_PLACEHOLDER_URL: Final = (
    "https://none.invalid"  # replaces an invalid URL, so that the other settings can be checked
)
_OWN_KIND: Final = "rest"  # the kind of a connection that is created for an endpoint


def as_json(endpoint: Endpoint) -> dict[str, Any]:
    """Return an endpoint as the API shows it, with secrets masked."""
    connection = db.session.get_one(Connection, endpoint.connection_id)
    request = endpoint.settings["request_template"]
    settings = connections_settings.masked_settings(connection.settings, KINDS[connection.type])
    has_own_connection = connection.of_endpoint
    return {
        "id": endpoint.id,
        "name": endpoint.name,
        "method": request["method"],
        "url": settings["base_url"] + request["path"] if has_own_connection else None,
        "connection_id": None if has_own_connection else connection.id,
        "path": None if has_own_connection else request["path"],
        "headers": request.get("headers", {}),
        "header_encoding": request.get("header_encoding", "none"),
        "query_params": request.get("query_params", {}),
        "body": request.get("body"),
        "auth": settings.get("auth", {"type": "none"}) if has_own_connection else None,
        **{name: endpoint.settings.get(name) for name in SENDING_KEYS},
        "environment": connection.environment,
        "project_id": endpoint.project_id,
        "team_id": endpoint.team_id,
        "created_by": endpoint.created_by,
        "created_at": clock.to_text(endpoint.created_at),
        "updated_at": clock.to_text(endpoint.updated_at),
        "deleted_at": clock.to_text(endpoint.deleted_at),
    }


def create(actor: Actor, values: Mapping[str, Any]) -> Endpoint:
    """Create an endpoint, and commit. `values` has the keys of `as_json`. Errors: forbidden, not_found (the
    connection), validation_error with all errors."""
    values = _canonical(values)
    connection, settings, grants = prepare(actor, values)
    secrets.allow_hosts(actor, grants)
    if values.get("url"):
        own_settings = {
            "base_url": _split_url(values["url"])[0],
            "auth": values.get("auth") or {"type": "none"},
        }
        connection = connections.draft(
            actor, name=values["name"], type=_OWN_KIND, settings=own_settings,
            environment=values.get("environment") or "dev", of_endpoint=True, tells=False,
        )  # fmt: skip
    endpoint = Endpoint(
        **tenancy.current_scope(actor),
        name=values["name"],
        connection_id=connection.id,
        settings=settings,
        created_by=actor.user_id,
    )
    db.session.add(endpoint)
    db.session.flush()
    audit_log.record(actor, "endpoint.create", endpoint, join=True, name=endpoint.name)
    db.session.commit()
    return endpoint


def create_for_operations(
    actor: Actor, connection: Connection, requests: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> list[Endpoint]:
    """Create an endpoint for each operation of an API that has none yet, in the caller's transaction.

    `requests` are the title and the request of each operation by name."""
    statement = select(Endpoint).where(Endpoint.connection_id == connection.id, Endpoint.deleted_at.is_(None))
    existing = {item.settings.get("operation") for item in db.session.scalars(statement)}
    created = []
    for operation, (title, request) in requests.items():
        if operation in existing:
            continue
        endpoint = Endpoint(
            **tenancy.current_scope(actor),
            name=(title or operation)[: limits.MAX_NAME_CHARS],
            connection_id=connection.id,
            settings={"operation": operation, "request_template": dict(request)},
            created_by=actor.user_id,
        )
        db.session.add(endpoint)
        db.session.flush()
        audit_log.record(actor, "endpoint.create", endpoint, join=True, name=endpoint.name)
        created.append(endpoint)
    return created


def change(actor: Actor, endpoint: Endpoint, changes: Mapping[str, Any]) -> Endpoint:
    """Change a locked endpoint, and commit. Masked secrets are kept on update. Errors: see `create`."""
    before, changes = as_json(endpoint), _without_nulls(_canonical(changes))
    connection, merged, new_connection_settings, settings, grants = _prepare_change(
        actor, endpoint, changes, before
    )
    secrets.allow_hosts(actor, grants)
    if new_connection_settings is not None:
        connections.apply_changes(
            actor, connection, {"settings": new_connection_settings, "environment": merged["environment"]}
        )
    endpoint.name = changes.get("name", endpoint.name)
    endpoint.settings = settings
    endpoint.updated_at = clock.now()
    db.session.flush()
    changed = audit_log.changes_between(before, as_json(endpoint), changes)
    audit_log.record(actor, "endpoint.change", endpoint, join=True, name=endpoint.name, changes=changed)
    db.session.commit()
    return endpoint


def check(actor: Actor, endpoint: Endpoint, changes: Mapping[str, Any]) -> None:
    """Check changes without saving them. Error: validation_error with all errors."""
    _prepare_change(actor, endpoint, _without_nulls(_canonical(changes)), as_json(endpoint))


def _prepare_change(
    actor: Actor, endpoint: Endpoint, changes: Mapping[str, Any], before: Mapping[str, Any]
) -> tuple[Connection, dict[str, Any], dict[str, Any] | None, dict[str, Any], connections_settings.Grants]:
    """Return the connection, the changed endpoint, the connection's new settings if they change, the endpoint's
    settings, and the hosts to allow secrets for. Error: validation_error with all errors."""
    connection = db.session.get_one(Connection, endpoint.connection_id)
    has_own_connection = connection.of_endpoint
    fixed = ("connection_id", "path") if has_own_connection else ("url", "auth", "environment")
    if endpoint.settings.get("operation"):
        fixed = (*fixed, "connection_id", *REQUEST_KEYS)
    faults = _FaultCollector()
    with faults:
        _check_unchangeable(
            endpoint,
            has_own_connection,
            [name for name in fixed if changes.get(name) and changes[name] != before[name]],
        )
    merged: dict[str, Any] = {**before, **changes}
    new_settings: dict[str, Any] | None = None
    base = ""
    if has_own_connection:
        with faults:
            base, merged["path"] = _split_url(merged["url"] or "")
    if has_own_connection and {"url", "auth", "environment"} & changes.keys():
        current = connections_settings.masked_settings(connection.settings, KINDS[_OWN_KIND])
        new_settings = {
            **current,
            "base_url": base or current["base_url"],
            "auth": merged["auth"] or {"type": "none"},
        }
        with faults:
            connections_settings.check(
                actor, connection.project_id, KINDS[_OWN_KIND], new_settings, connection.settings
            )
    settings, grants = _build_settings(merged, endpoint.settings), []
    checked = connection
    if new_settings is not None and not connections_settings.same_hosts(
        connection, KINDS[_OWN_KIND], new_settings
    ):
        checked = Connection(  # not saved
            workspace_id=connection.workspace_id,
            project_id=connection.project_id,
            type=_OWN_KIND,
            settings=dict(new_settings),
        )
    with faults:
        grants = _check_settings(actor, checked, settings, endpoint.settings if checked is connection else {})
    faults.raise_all()
    return connection, merged, new_settings, settings, grants


def prepare(
    actor: Actor, values: Mapping[str, Any]
) -> tuple[Connection, dict[str, Any], connections_settings.Grants]:
    """Return the connection and the settings that an endpoint would have, and the hosts to allow secrets for.

    Saves nothing. Secrets in `values` are not encrypted in this connection. Errors: see `create`."""
    require_scope(actor, "write")
    values = _canonical(values)
    faults = _FaultCollector()
    with faults:
        _check_address(values)
    connection, own_settings = (
        None,
        {"base_url": _PLACEHOLDER_URL, "auth": values.get("auth") or {"type": "none"}},
    )
    path = values.get("path")
    if values.get("url"):
        with faults:
            own_settings["base_url"], path = _split_url(values["url"])
    elif values.get("connection_id"):
        with faults:
            connection = _rest_connection(actor, values["connection_id"])
    if connection is None:
        with faults:
            connections_settings.check(actor, actor.project_id, KINDS[_OWN_KIND], own_settings, {})
        connection = Connection(
            workspace_id=actor.workspace_id,
            project_id=actor.project_id,
            type=_OWN_KIND,
            settings=own_settings,
            read_only=False,
        )
    settings, grants = _build_settings({**values, "path": path}, {}), []
    with faults:
        grants = _check_settings(actor, connection, settings)
    faults.raise_all()
    return connection, settings, grants


def delete(actor: Actor, endpoint: Endpoint) -> None:
    """Soft-delete a locked endpoint, and commit. Error: in_use, with the running pushes that use it."""
    unfinished = select(Push.id, Push.target, Push.team_id).where(
        Push.endpoint_id == endpoint.id, Push.status.not_in(END_STATES), Push.deleted_at.is_(None)
    )
    if rows := db.session.execute(unfinished).all():
        visible = [(row, actor.role_in(row.team_id) is not None) for row in rows]
        users = [
            {"type": "push", "id": row.id if can_see else None, "name": row.target if can_see else None}
            for row, can_see in visible
        ]
        raise ApiError("in_use", "Rows are being sent to this endpoint.", {"used_by": users})
    versioning.soft_delete(actor, endpoint)


def restore(actor: Actor, endpoint: Endpoint) -> None:
    """Restore a deleted endpoint, and commit. Error: not_found after 30 days."""
    versioning.restore(actor, endpoint)


# --- Settings


def _canonical(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input with enumerated values (`push_mode`, `auth.type`) in their stored spelling."""
    return json_input.canonicalize_enums(KINDS[_OWN_KIND].Settings, values)


def _check_address(values: Mapping[str, Any]) -> None:
    if bool(values.get("url")) == bool(values.get("connection_id")):
        text = "Specify either url, or connection_id with path."
        raise validation_error([Fault("url", "missing", text)])
    faults = [
        Fault(
            name,
            "not_allowed",
            "An endpoint with connection_id uses this setting of the connection.",
            "Remove it.",
        )
        for name in ("auth", "environment")
        if values.get("connection_id") and values.get(name)
    ]
    if values.get("url") and values.get("path"):
        faults.append(
            Fault("path", "not_allowed", "If url is given, it must include the path.", "Remove path.")
        )
    if faults:
        raise validation_error(faults)


def _split_url(url: str) -> tuple[str, str]:
    """Split a URL into its origin and the rest, which may contain `{{field}}`."""
    parts = urlsplit(url)
    if not parts.scheme or not parts.netloc or "{" in parts.netloc:
        text = "The URL must start with https:// or http:// and a host name without {{field}}."
        raise validation_error([Fault("url", "invalid", text)])
    origin = f"{parts.scheme}://{parts.netloc}"
    return origin, url[len(origin) :]


def _without_nulls(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes without a null name or environment, which keep their values as in connections."""
    return {
        key: value
        for key, value in changes.items()
        if value is not None or key not in ("name", "environment")
    }


def _check_unchangeable(endpoint: Endpoint, has_own_connection: bool, rejected: list[str]) -> None:
    """Raise validation_error for settings of an endpoint that cannot be changed."""
    if rejected:
        subject = "its own URL" if has_own_connection else "the URL and the credentials of its connection"
        if endpoint.settings.get("operation"):
            subject = f"the request of the operation {endpoint.settings['operation']}"
        text = f"This endpoint uses {subject}, so this setting cannot be changed."
        raise validation_error(
            [Fault(name, "not_allowed", text, "Create another endpoint.") for name in rejected]
        )


def _rest_connection(actor: Actor, connection_id: str) -> Connection:
    found = connections.get(actor, connection_id, "write")
    if found.type != _OWN_KIND:
        text = f"Endpoints need a connection of type {_OWN_KIND}; this one is of type {found.type}."
        raise validation_error([Fault("connection_id", "not_for_this_type", text)])
    return found


def _build_settings(values: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    request = {
        "method": values.get("method") or "POST",
        "path": values.get("path") or "",
        "headers": values.get("headers") or {},
        "header_encoding": values.get("header_encoding") or "none",
        "query_params": values.get("query_params") or {},
        "body": values.get("body"),
    }
    sending = {name: values[name] for name in SENDING_KEYS if values.get(name) is not None}
    operation = {"operation": before["operation"]} if before.get("operation") else {}
    return {**sending, **operation, "request_template": before["request_template"] if operation else request}


def _check_settings(
    actor: Actor, connection: Connection, settings: Mapping[str, Any], stored: Mapping[str, Any] = EMPTY
) -> connections_settings.Grants:
    checked = {name: value for name, value in settings.items() if name != "operation"}
    return connections_settings.check_changed(actor, connection, KINDS[connection.type], checked, stored)


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
            prefix = next((name for name in self._NAMES if fault["path"].startswith(name)), "")
            path = self._NAMES.get(prefix, "") + fault["path"][len(prefix) :]
            self._fields.append({**fault, "path": path})
        return True

    def raise_all(self) -> None:
        """Raise validation_error if there are errors."""
        if self._fields:
            raise validation_error([Fault(**field) for field in self._fields])


# --- Dry run: the request for the first row of a template

_SEED: Final = "example"
_MASK_REPLACEMENT: Final = (
    "a-stored-secret"  # replaces a mask: the secret is not decrypted, and would be masked again
)


def preview_requests(actor: Actor, values: Mapping[str, Any], template_id: str) -> list[str]:
    """Return the exact HTTP requests for a template's first row (in batch mode its first three), with secrets masked.

    `values` has the keys of `as_json`. Sends nothing. Errors: forbidden, not_found, validation_error with all errors of
    the endpoint, target_failed (reason unknown_field: the rows have no such `{{field}}`), and errors of external values
    of the template.
    """
    connection, settings, _ = prepare(actor, replace_masks(values))
    destination = Destination(connection, None, settings)
    template = tenancy.get(actor, Template, template_id, "read")
    found = generate.TemplateRef(template.id, template.version, template.project_id, template.team_id)
    source = generate.saved_source(found, None)
    count = limits.PREVIEW_ROWS if values.get("push_mode") == "batch" else 1
    recipe = external_values.build_recipe(actor, source, GenerateInput(count=count, seed=_SEED))
    entity = PathCatalogue(destination).find_by_name(source.name)
    assert entity is not None  # any path is a place
    requested = RequestedTable(
        source.name, entity.name, TemplateRows(recipe.bound), count, RequestedMapping({}, {}), entity
    )
    push_id = ids.new("psh")
    planned = planning.plan_table(requested, destination.can, push_id, 0)
    with targets.open_channel(destination) as channel:
        return pushes.preview_requests(push_id, channel, 0, planned)


def replace_masks(value: Any) -> Any:
    """Replace masked secrets in the input of a form by a placeholder, so that it can be checked."""
    if isinstance(value, Mapping):
        return {name: replace_masks(item) for name, item in value.items()}
    return _MASK_REPLACEMENT if value == MASK else value
