"""Pages of connections: the form of each kind, and the tables of a target. Browser only; programs use /connections."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from flask import Blueprint, Response, current_app, g, render_template, request, url_for
from pydantic import Field

from webapp import limits
from webapp.access.actors import Actor
from webapp.connections.models import Connection
from webapp.connections.services import connections, inspection
from webapp.connections.views.connections import ConnectionChange, ConnectionIn
from webapp.connectors import KINDS
from webapp.connectors.base import Connector
from webapp.errors import ApiError
from webapp.web import snippets
from webapp.web.forms.page_form import Control, FormSpec
from webapp.web.forms.settings import SettingsForm, SettingsGroup, error_summary
from webapp.web.inputs import Query, form_values, parse
from webapp.web.responses import render_block, see_other
from webapp.web.routing import route

bp = Blueprint("connection_pages", __name__)
FORM_TEMPLATE: Final = "connections/form.html"
DESCRIPTIONS: Final = {
    "postgresql": "Port 5432, bulk load",
    "mysql": "Port 3306, MySQL and MariaDB",
    "sqlite": "A file in this workspace",
    "mongodb": "Port 27017, collections",
    "mssql": "Port 1433, Microsoft SQL Server",
    "oracle": "Port 1521, no Oracle client needed",
    "db2": "Port 50000, needs an extra package",
    "rest": "Any API that accepts JSON",
    "odata": "V2 and V4, such as SAP Gateway and CAP",
    "openapi": "Any API with an OpenAPI document",
    "ai": "OpenAI-compatible model",
}
_SECTIONS: Final = (  # key, title, whether it is folded
    ("file", "File", False),
    ("string", "Connection string", False),
    ("server", "Server", False),
    ("target", "", False),
    ("rows", "How rows are sent", False),
    ("requests", "Every request", True),
    ("tls", "Encryption", True),
    ("more", "More", True),
)
# Sections of settings that do not declare a group, in the order of the form. Required settings come first.
_SECTION_OF: Final = {
    "document_url": "target", "base_url": "target", "service_url": "target", "model": "target", "api_key": "target",
    "auth": "target", "push_path": "rows", "push_mode": "rows", "wrapper_key": "rows", "batch_size": "rows",
    "batch": "rows", "parallel": "rows", "rate_per_second": "rows", "capture": "rows", "delete_path": "rows",
    "idempotent": "rows", "default_headers": "requests", "csrf": "requests", "sap_client": "requests",
    "language": "requests", "odata_version": "requests", "verify_tls": "requests",
}  # fmt: skip
_ENTITY_NOUNS: Final = {
    "mongodb": ("collection", "collections", "keys"),
    "odata": ("entity set", "entity sets", "properties"),
    "openapi": ("operation", "operations", "properties"),
}
_OWN_SECTIONS: Final = ("request_template", "retry")  # groups that are folded under their own titles


class KindQuery(Query):
    """Which kind of connection the form is for."""

    type: Annotated[str, Field(max_length=50)] | None = None


class TablesQuery(Query):
    """Which tables to show: those whose name contains this text, from this position."""

    q: Annotated[str, Field(max_length=limits.MAX_QUERY_TEXT)] = ""
    start: Annotated[int, Field(ge=0)] = 0
    refresh: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the form: controls and groups under one title."""

    title: str
    folded: bool
    parts: list[Any]
    open: bool


def sections(kind: type[Connector], form: SettingsForm, faults: Mapping[str, str]) -> list[Section]:
    """Return the controls of a kind's settings by section of the form."""
    takes_rows = bool(kind.can.modes)
    found: dict[str, list[Any]] = {}
    for part in form.parts:
        group = None if isinstance(part, SettingsGroup) else part.group
        default = _SECTION_OF.get(part.short_name) or (
            "target" if getattr(part, "required", False) else "more"
        )
        default = "more" if default == "rows" and not takes_rows else default
        key = part.name if part.short_name in _OWN_SECTIONS else group or default
        found.setdefault(key, []).append(part)
    visible = [
        Section(title, folded, found[key], folded and _needs_attention(found[key], faults))
        for key, title, folded in _SECTIONS
        if key in found
    ]
    order = list(_SECTION_OF)
    for section in visible:  # settings without a group are in the order of _SECTION_OF
        section.parts.sort(key=lambda part: order.index(part.short_name) if part.short_name in order else -1)
    first_folded = next((index for index, section in enumerate(visible) if section.folded), len(visible))
    own_sections = [Section("", True, found[part.name], False) for part in form.parts if part.name in found]
    return visible[:first_folded] + own_sections + visible[first_folded:]


def _needs_attention(parts: Sequence[Any], faults: Mapping[str, str]) -> bool:
    """Return whether a folded section has non-default values or errors."""
    for part in parts:
        inner = part.controls() if isinstance(part, SettingsGroup) else [part]
        if any(control.name in faults for control in inner):
            return True
        if part.filled if isinstance(part, SettingsGroup) else part.data not in ("", None, [], part.default):
            return True
    return False


GENERAL_FORM: Final = FormSpec(
    ConnectionIn,
    {
        "type": Control(type="hidden"),
        "name": Control("Name", required=False, autocomplete="off"),
        "environment": Control(
            "Environment",
            choices=[
                ("dev", "Development"),
                ("test", "Test"),
                ("prod", "Production (pushes need confirmation)"),
            ],
        ),
        "read_only": Control("Read-only", hint="Rowsmith will only read from this connection."),
    },
)


def settings_from(kind: type[Connector], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in the request's form, without empty inputs."""
    return SettingsForm(kind.Settings, stored, formdata=request.form).values()


def page(
    actor: Actor,
    kind: str,
    connection: Connection | None,
    values: Mapping[str, Any],
    error: ApiError | None = None,
    tested: Mapping[str, Any] | None = None,
) -> Response:
    """Render the form of a new or existing connection, with the submitted values if there are any, and the result of a
    test of them."""
    formdata = request.form if request.method == "POST" else None
    form = SettingsForm(KINDS[kind].Settings, values.get("settings"), formdata=formdata)
    errors = error.details.get("fields", ()) if error else ()
    own_errors = [item for item in errors if item["path"] in GENERAL_FORM.controls]
    own_error = ApiError("validation_error", details={"fields": own_errors}) if own_errors else None
    own = GENERAL_FORM.render({**values, "type": kind}, sent=formdata, error=own_error)
    own["name"].render_kw["placeholder"] = KINDS[kind].title
    faults = form.error_messages(errors) | {item.name: " ".join(item.errors) for item in own.wrong}
    others = [
        item
        for item in errors
        if not form.error_messages([item]) and item["path"] not in GENERAL_FORM.controls
    ]
    texts = [] if faults or others or error is None else [error.message]
    texts += [f"{item['message']} {item.get('hint') or ''}".strip() for item in others]
    if error and "hint" in error.details:
        texts.append(error.details["hint"])
    html = render_template(
        FORM_TEMPLATE,
        kind=KINDS[kind],
        kinds=[(item, DESCRIPTIONS.get(name, "")) for name, item in KINDS.items()],
        connection=connections.as_json(connection) if connection else None,
        own=own,
        sections=sections(KINDS[kind], form, faults),
        tested=tested,
        setting_address=functools.partial(
            setting_address, {control.short_name: control.name for control in _controls(form)}
        ),
        held=_values_of_other_kinds(form, formdata),
        faults=faults,
        places=error_summary((own, form), faults),
        texts=texts,
        networks=current_app.config["SETTINGS"].reachable_networks,
    )
    return Response(html, error.status if error else 200, mimetype="text/html")


# The settings that a failing stage of a verification is about, the first that the kind has.
_STAGE_SETTINGS: Final = {
    "resolve": ("host", "base_url", "service_url", "connection_string"),
    "connect": ("port", "base_url", "service_url", "connection_string"),
    "tls": ("tls", "verify_tls", "connection_string"),
    "auth": ("username", "auth", "api_key", "connection_string"),
    "permission": ("schema", "database", "connection_string"),
    "sample": ("base_url", "service_url", "model"),
}
NETWORKS: Final = "/docs/reference/settings#target_networks"
"""Where the setting of the networks that may be reached is documented."""


def setting_address(names: Mapping[str, str], stage: Mapping[str, Any]) -> str:
    """Return the address of what a failing stage is about: a setting of the form, by id, or the setting of the server;
    "" if it is known of none. `names`: the id of each setting of the form."""
    if stage["code"] in ("target_not_allowed", "not_allowed"):
        return NETWORKS
    found = (names[name] for name in _STAGE_SETTINGS.get(stage["name"], ()) if name in names)
    return next((f"#{name}" for name in found), "")


def _controls(form: SettingsForm) -> Iterator[Any]:
    for part in form.parts:
        if isinstance(part, SettingsGroup):
            yield from part.controls()
            yield part
        else:
            yield part


def _values_of_other_kinds(form: SettingsForm, formdata: Any) -> list[tuple[str, str]]:
    """Return what was typed for settings that only other kinds have, so that it is still there when the kind changes
    back. Secrets are left out: a page shows them only in their own input."""
    if formdata is None:
        return []
    visible = {control.name for control in _controls(form)}
    values = [
        (name, value)
        for name, value in formdata.items(multi=True)
        if name.startswith("settings.") and name not in visible and value and not _SECRET_NAME.search(name)
    ]
    return values[: limits.MAX_FIELDS]


_SECRET_NAME: Final = re.compile(r"password|secret|token|key|string", re.IGNORECASE)


@route(bp, "/connections/new", scope="write", query=KindQuery, allows_api_keys=False, hidden=True)
def new(actor: Actor, query: KindQuery) -> Response:
    """Show the form of a new connection."""
    return page(actor, connections.parse_kind(query.type or "postgresql"), None, {})


@route(bp, "/connections/new", ["POST"], scope="write", allows_api_keys=False, hidden=True)
def create(actor: Actor) -> Response:
    """Create a connection from its form, or show the form with errors."""
    values = form_values(request.form)
    verb, _, chosen = request.form.get("do", "").partition(":")
    kind = connections.parse_kind(chosen if verb == "kind" else str(values.get("type", "")))
    if verb in ("draw", "kind"):
        return page(actor, kind, None, values)
    settings = settings_from(KINDS[kind], {})
    try:
        if verb == "test":
            return page(actor, kind, None, values, tested=connections.verify_unsaved(actor, kind, settings))
        body = parse(
            ConnectionIn,
            {**_general_values(values, KINDS[kind].title), "type": kind, "settings": settings},
            strict=False,
        )
        connection = connections.create(
            actor,
            name=body.name,
            type=kind,
            settings=settings,
            environment=body.environment,
            read_only=body.is_read_only,
        )
    except ApiError as error:
        return page(actor, kind, None, {**values, "settings": {}}, error)
    return see_other(url_for("connections.show", connection_id=connection.id))


@route(bp, "/connections/<connection_id>/edit", scope="write", allows_api_keys=False, hidden=True)
def edit(actor: Actor, connection_id: str) -> Response:
    """Show the form of a connection."""
    found = connections.get(actor, connection_id, "write")
    return page(actor, found.type, found, connections.as_json(found))


@route(bp, "/connections/<connection_id>/edit", ["POST"], scope="write", allows_api_keys=False, hidden=True)
def change(actor: Actor, connection_id: str) -> Response:
    """Change a connection from its form, or show the form with errors."""
    found = connections.get(actor, connection_id, "write", lock=True)
    values = form_values(request.form)
    stored = connections.as_json(found)["settings"]
    if request.form.get("do") == "draw":
        return page(actor, found.type, found, {**values, "settings": stored})
    settings = settings_from(KINDS[found.type], stored)
    try:
        if request.form.get("do") == "test":
            tested = connections.verify_unsaved(actor, found.type, settings, found)
            found = connections.get(actor, connection_id, "write")
            return page(actor, found.type, found, {**values, "settings": stored}, tested=tested)
        changes = parse(ConnectionChange, _general_values(values, found.name), strict=False).model_dump(
            by_alias=True, exclude_unset=True
        )
        if settings != stored:
            changes["settings"] = settings
        connections.change(actor, found, changes)
    except ApiError as error:
        return page(actor, found.type, found, {**values, "settings": stored}, error)
    return see_other(url_for("connections.show", connection_id=connection_id))


def _general_values(values: Mapping[str, Any], default_name: str) -> dict[str, Any]:
    """Return the input of a form except for the settings; `default_name` is the default name."""
    return {
        "name": str(values.get("name", "")).strip() or default_name,
        "environment": values.get("environment") or "dev",
        "read_only": "read_only" in values,
    }


@route(
    bp, "/connections/<connection_id>/tables", scope="read", query=TablesQuery, allows_api_keys=False, hidden=True,
    reads=False,
)  # fmt: skip
def tables(actor: Actor, connection_id: str, query: TablesQuery) -> Response:
    """Show a page of the target's tables; only the fragment for htmx."""
    found = connections.get(actor, connection_id)
    return tables_page(actor, found, query)


def tables_page(
    actor: Actor,
    found: Connection,
    query: TablesQuery,
    created_templates: Any = None,
    error: ApiError | None = None,
) -> Response:
    """Return the page of a connection's tables. `created_templates`: the templates that were just created from some of
    them."""
    known, matches = None, []
    try:
        known = inspection.metadata(actor, found, query.refresh)
    except ApiError as read_error:
        error = error or read_error
    if known is not None:
        search = query.q.strip().casefold()
        matches = [entity for entity in known.entities if search in entity.name.casefold()]
    context = {
        "connection": connections.as_json(found),
        "metadata": known,
        "total": len(matches),
        "entities": matches[query.start : query.start + limits.METADATA_PAGE],
        "after": query.start + limits.METADATA_PAGE
        if len(matches) > query.start + limits.METADATA_PAGE
        else None,
        "query": query,
        "made": created_templates,
        "error": error,
    }
    if "HX-Request" in request.headers:
        return Response(render_block("connections/tables.html", "tables", **context))
    return Response(render_template("connections/tables.html", **context), mimetype="text/html")


def short_address(connection: Mapping[str, Any]) -> str:
    """Return the short address of a connection: host, port and database, or the file."""
    settings = connection["settings"]
    for key in ("file", "connection_string", "base_url", "service_url", "document_url"):
        if settings.get(key):
            return str(settings[key])
    address = f"{settings.get('host', '')}{':' + str(settings['port']) if settings.get('port') else ''}"
    return f"{address}/{settings['database']}" if settings.get("database") else address


def api_examples(connection: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return code examples for the API."""
    url, kind = f"{snippets.origin()}/connections/{connection['id']}", KINDS[connection["type"]]
    examples = [("Verify the connection", snippets.curl("POST", f"{url}/verify"))]
    if not has_tables(connection):
        return examples
    example_entity = {"odata": "Orders", "openapi": "POST /orders"}.get(kind.kind, "customers")
    examples += [
        ("Read the metadata", snippets.curl("GET", f"{url}/metadata?refresh=true")),
        (
            f"Create templates from {entity_nouns(connection)[1]}",
            snippets.curl("POST", f"{url}/templates", {"entities": [example_entity]}),
        ),
    ]
    if getattr(kind, "reads_document", False):
        upload = snippets.curl("PUT", f"{url}/metadata-document", more="--data-binary @metadata.xml")
        examples.append(("Upload a metadata document", upload))
    return examples


def entity_nouns(connection: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the words for what a connection contains: singular, plural, and the word for columns."""
    return _ENTITY_NOUNS.get(connection["type"], ("table", "tables", "columns"))


def has_tables(connection: Mapping[str, Any]) -> bool:
    """Return whether the connection has tables to show. An API without a document has none."""
    return bool(getattr(KINDS[connection["type"]], "has_entities", True))


def reads_document(connection: Mapping[str, Any]) -> bool:
    """Return whether a metadata document can be uploaded."""
    return bool(getattr(KINDS[connection["type"]], "reads_document", False))


def stage_address(connection: Mapping[str, Any], stage: Mapping[str, Any]) -> str:
    """Return the address of the setting that a failing stage of a saved connection is about; "" if none is known."""
    fields = KINDS[connection["type"]].Settings.model_fields.items()
    names = {field.alias or name: f"settings.{field.alias or name}" for name, field in fields}
    address = setting_address(names, stage)
    if not address.startswith("#"):
        return address
    return url_for("connection_pages.edit", connection_id=connection["id"]) + address


@bp.app_context_processor
def helpers() -> dict[str, Any]:
    """Return the functions that the pages of connections use."""
    if getattr(g, "face", "") != "person":
        return {}
    return {
        "reached": short_address,
        "connection_code": api_examples,
        "words_of": entity_nouns,
        "holds": has_tables,
        "stage_address": stage_address,
        "reads_document": reads_document,
        "takes_rows": lambda connection: bool(KINDS[connection["type"]].can.modes),
        "by_http": lambda connection: KINDS[connection["type"]].can.by_row,
    }
