"""Endpoints: requests that rows are sent with, kept under a name.

One with an address of its own has a REST connection made for it, which holds the address and the credentials; the
others use a connection that is there. What else an endpoint says stands in for the connection's own settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from sqlalchemy import select

from webapp import clock, ids, limits, pagination, spelling
from webapp.accounts.actors import Actor, require
from webapp.accounts.services import tenancy
from webapp.audit.services import audit_log
from webapp.connections.models import Connection
from webapp.connections.services import connections, secrets
from webapp.connections.services import settings as connections_settings
from webapp.connections.services.settings import MASK
from webapp.connectors import KINDS
from webapp.endpoints.models import Endpoint
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.generation.services import external_values, generate
from webapp.generation.services.row_makers import TemplateRows
from webapp.operations.models import END_STATES
from webapp.pushes.models import Push
from webapp.pushes.services import planning, request_checks, targets
from webapp.pushes.services.mapping import Asked
from webapp.pushes.services.planning import Wanted
from webapp.pushes.services.targets import Destination, Places
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import GenerateInput

REQUEST: Final = ("method", "path", "headers", "header_encoding", "query_params", "body")
SENDING: Final = (
    "push_mode", "wrapper_key", "batch_size", "retry", "parallel", "rate_per_second", "capture", "delete_path",
    "idempotent",
)  # fmt: skip
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_NOWHERE: Final = (
    "https://none.invalid"  # stands for an address that is not right, so that the rest can be checked
)
_OWN: Final = "rest"  # the kind of a connection that is made for an endpoint


def as_json(endpoint: Endpoint) -> dict[str, Any]:
    """An endpoint as the API shows it; what is secret is masked."""
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


def get(actor: Actor, endpoint_id: str, scope: str = "read", **how: bool) -> Endpoint:
    """One endpoint. Errors: not_found, forbidden."""
    return tenancy.get(actor, Endpoint, endpoint_id, scope, **how)


def listing(
    actor: Actor,
    *,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    q: str | None = None,
    connection_id: str | None = None,
) -> pagination.Page[Endpoint]:
    """A page of the project's endpoints, newest first. `q` searches names."""
    statement = tenancy.listing(actor, Endpoint)
    if connection_id is not None:
        statement = statement.where(Endpoint.connection_id == connection_id)
    return pagination.page(
        statement,
        name="endpoints",
        identity=Endpoint.id,
        cursor=cursor,
        limit=limit,
        search=(q, Endpoint.name),
        context=f"{actor.project_id} {connection_id}",
        sizes=(Endpoint.settings,),
    )


def create(actor: Actor, given: Mapping[str, Any]) -> Endpoint:
    """An endpoint; commits. `given` are the words of `as_json`. Errors: forbidden, not_found (the connection),
    validation_error with every fault."""
    given = _spelled(given)
    connection, settings, grants = thought_of(actor, given)
    secrets.allow(actor, grants)
    if given.get("url"):
        connection = _made(actor, given)
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
    """An endpoint for each operation of an API that has none yet, by its name: what people call it, and its request;
    joins the caller's transaction."""
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
    """Change a locked endpoint; commits. A masked secret is kept, as in connections. Errors: as `create`."""
    before, changes = as_json(endpoint), _spelled(changes)
    connection = db.session.get_one(Connection, endpoint.connection_id)
    own = connection.of_endpoint
    others = ("connection_id", "path") if own else ("url", "auth", "environment")
    if endpoint.settings.get("operation"):
        others = (*others, "connection_id", *REQUEST)
    told = _Told()
    with told:
        _same(endpoint, own, [name for name in others if changes.get(name) and changes[name] != before[name]])
    merged, fresh = {**before, **changes}, None
    base = ""
    if own:
        with told:
            base, merged["path"] = _split(merged["url"] or "")
    if base and {"url", "auth", "environment"} & changes.keys():
        shown = connections_settings.shown(connection.settings, KINDS[_OWN])
        fresh = {**shown, "base_url": base, "auth": merged["auth"] or {"type": "none"}}
        with told:
            connections_settings.check(actor, connection.project_id, KINDS[_OWN], fresh, connection.settings)
    settings, grants = _settings(merged, endpoint.settings), []
    leads = connection
    if fresh is not None and not connections_settings.leads_there(connection, KINDS[_OWN], fresh):
        leads = _thought(connection, fresh)
    with told:
        grants = _check(actor, leads, settings, endpoint.settings if leads is connection else {})
    told.all()
    secrets.allow(actor, grants)
    if fresh is not None:
        connections.put_in(actor, connection, {"settings": fresh, "environment": merged["environment"]})
    endpoint.name = changes.get("name", endpoint.name)
    endpoint.settings = settings
    endpoint.updated_at = clock.now()
    db.session.flush()
    told = audit_log.between(before, as_json(endpoint), changes)
    audit_log.record(actor, "endpoint.change", endpoint, join=True, name=endpoint.name, changes=told)
    db.session.commit()
    return endpoint


def thought_of(
    actor: Actor, given: Mapping[str, Any]
) -> tuple[Connection, dict[str, Any], connections_settings.Grants]:
    """The connection and the settings that an endpoint would have, and the hosts that secrets are to be allowed for;
    nothing is saved. Secrets of `given` stand in the connection as they are. Errors: as `create`."""
    require(actor, "write")
    given = _spelled(given)
    told = _Told()
    with told:
        _one_address(given)
    connection, own = None, {"base_url": _NOWHERE, "auth": given.get("auth") or {"type": "none"}}
    path = given.get("path")
    if given.get("url"):
        with told:
            own["base_url"], path = _split(given["url"])
    elif given.get("connection_id"):
        with told:
            connection = _used(actor, given["connection_id"])
    if connection is None:
        with told:
            connections_settings.check(actor, actor.project_id, KINDS[_OWN], own, {})
        connection = Connection(
            workspace_id=actor.workspace_id,
            project_id=actor.project_id,
            type=_OWN,
            settings=own,
            read_only=False,
        )
    settings, grants = _settings({**given, "path": path}, {}), []
    with told:
        grants = _check(actor, connection, settings)
    told.all()
    return connection, settings, grants


def delete(actor: Actor, endpoint: Endpoint) -> None:
    """Soft-delete a locked endpoint; commits. Error: in_use, with the pushes that go there."""
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
    tenancy.soft_delete(actor, endpoint)


def restore(actor: Actor, endpoint: Endpoint) -> None:
    """Take a deletion back; commits. Error: not_found after 30 days."""
    tenancy.restore(actor, endpoint)


# --- What it is made of -------------------------------------------------------------------------------------


def _spelled(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given with the words of a connection's settings (`push_mode`, `auth.type`) as they are stored."""
    return spelling.canonical(KINDS[_OWN].Settings, given)


def _one_address(given: Mapping[str, Any]) -> None:
    if bool(given.get("url")) == bool(given.get("connection_id")):
        text = "An endpoint has a url, or a connection_id with a path; not both."
        raise validation_error([Fault("url", "missing", text)])
    faults = [
        Fault(name, "not_allowed", "An endpoint on a connection uses the connection's.", "Leave it out.")
        for name in ("auth", "environment")
        if given.get("connection_id") and given.get(name)
    ]
    if given.get("url") and given.get("path"):
        faults.append(Fault("path", "not_allowed", "The path is part of the url.", "Leave it out."))
    if faults:
        raise validation_error(faults)


def _split(url: str) -> tuple[str, str]:
    """The origin of an address, and the rest of it, which may hold `{{field}}`."""
    parts = urlsplit(url)
    if not parts.scheme or not parts.netloc or "{" in parts.netloc:
        text = "A url begins with https:// or http:// and names its host in full."
        raise validation_error([Fault("url", "invalid", text)])
    origin = f"{parts.scheme}://{parts.netloc}"
    return origin, url[len(origin) :]


def _same(endpoint: Endpoint, own: bool, unfit: list[str]) -> None:
    """Refuse what cannot be changed about an endpoint."""
    if unfit:
        has = "an address of its own" if own else "its connection's address and credentials"
        if endpoint.settings.get("operation"):
            has = f"the request of the operation {endpoint.settings['operation']}"
        text = f"This endpoint has {has}."
        raise validation_error([Fault(name, "not_allowed", text, "Make another endpoint.") for name in unfit])


def _made(actor: Actor, given: Mapping[str, Any]) -> Connection:
    """The connection of an endpoint with an address of its own. Joins the caller's transaction."""
    settings = {"base_url": _split(given["url"])[0], "auth": given.get("auth") or {"type": "none"}}
    return connections.draft(
        actor, name=given["name"], type=_OWN, settings=settings, environment=given.get("environment") or "dev",
        of_endpoint=True, tells=False,
    )  # fmt: skip


def _used(actor: Actor, connection_id: str) -> Connection:
    found = connections.get(actor, connection_id, "write")
    if found.type != _OWN:
        text = f"Endpoints use connections of type {_OWN}; this one is of type {found.type}."
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


def _thought(connection: Connection, settings: Mapping[str, Any]) -> Connection:
    """A connection as it will be, in no session."""
    return Connection(
        workspace_id=connection.workspace_id,
        project_id=connection.project_id,
        type=_OWN,
        settings=dict(settings),
    )


class _Told:
    """Faults of several checks, all told at once, those of settings under the names that an endpoint has for them."""

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

    def all(self) -> None:
        """Error: validation_error, where there were any."""
        if self._fields:
            raise validation_error([Fault(**one) for one in self._fields])


# What an endpoint would send for the first row of a template, before it is saved. Nothing is sent.

_SEED: Final = "example"
_STAND_IN: Final = (
    "a-stored-secret"  # of a mask: the secret itself is not read, and would be shown as its mask
)


def requests(actor: Actor, given: Mapping[str, Any], template_id: str) -> list[str]:
    """The exact HTTP of a template's first row, credentials masked; in batch mode of its first three. `given` are the
    words of `endpoints.as_json`.

    Errors: forbidden, not_found, validation_error with every fault of the endpoint, target_failed (reason
    unknown_field: a `{{field}}` that the rows have not), what the template's own values from outside raise.
    """
    connection, settings, _ = thought_of(actor, unmasked(given))
    destination = Destination(connection, None, settings)
    template = tenancy.get(actor, Template, template_id, "read")
    found = generate.Head(template.id, template.version, template.project_id, template.team_id)
    source = generate.saved_source(found, None)
    count = limits.PREVIEW_ROWS if given.get("push_mode") == "batch" else 1
    recipe = external_values.recipe(actor, source, GenerateInput(count=count, seed=_SEED))
    entity = Places(destination).fitting(source.name)
    assert entity is not None  # any path is a place
    wanted = Wanted(source.name, entity.name, TemplateRows(recipe.bound), count, Asked({}, {}), entity)
    push_id = ids.new("psh")
    planned = planning.table(wanted, destination.can, push_id, 0)
    with targets.channel_of(destination) as channel:
        return request_checks.requests(push_id, channel, 0, planned)


def unmasked(value: Any) -> Any:
    """What a form says, with a stand-in where a secret is masked: it can be checked like one that was typed."""
    if isinstance(value, Mapping):
        return {name: unmasked(one) for name, one in value.items()}
    return _STAND_IN if value == MASK else value
