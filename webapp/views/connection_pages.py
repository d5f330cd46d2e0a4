"""The pages of connections: the form of a kind, what a target holds. For people only; programs use /connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from flask import Blueprint, Response, current_app, g, redirect, render_template, request, url_for
from pydantic import Field

from webapp import limits
from webapp.connectors import KINDS
from webapp.connectors.base import Connector
from webapp.errors import ApiError
from webapp.forms.from_model import ModelForm, bound, keys
from webapp.models import Connection
from webapp.services import connections, table_templates
from webapp.services.actors import Actor
from webapp.views import snippets
from webapp.views.inputs import Query, form_values
from webapp.views.reply import render_block
from webapp.views.routes import route

bp = Blueprint("connection_pages", __name__)
FORM: Final = "connections/form.html"
ABOUT: Final = {
    "postgresql": "5432; sent by COPY",
    "mysql": "3306; MariaDB too",
    "sqlite": "a file of this workspace",
    "mongodb": "27017; collections",
    "mssql": "1433; SQL Server",
    "oracle": "1521; thin, no client needed",
    "db2": "50000; needs its extra",
}
_GROUPS: Final = (
    ("file", "File"),
    ("string", "Connection string"),
    ("server", "Server"),
    ("tls", "Encryption"),
    ("more", "More"),
)


class KindQuery(Query):
    """Which kind of connection the form is for."""

    type: Annotated[str, Field(max_length=50)] | None = None


class TablesQuery(Query):
    """Which tables to show: those whose name has this text, from this place on."""

    q: Annotated[str, Field(max_length=limits.MAX_QUERY_TEXT)] = ""
    start: Annotated[int, Field(ge=0)] = 0
    refresh: bool = False


def form_of(kind: type[Connector], data: Mapping[str, Any] | None = None) -> list[tuple[str, list[Any]]]:
    """The controls of a kind's settings in their groups, filled with `data`. Secrets have a box of their own kind."""
    made: ModelForm = bound(kind.Settings, data or {}, prefix="settings.")
    schema = kind.Settings.model_json_schema(by_alias=True)["properties"]
    groups: dict[str, list[Any]] = {}
    for name in keys(kind.Settings):
        told = schema.get(name, {})
        field = made[name]
        field.sealed = bool(told.get("secret"))
        groups.setdefault(told.get("group", "more"), []).append(field)
    return [(title, groups[name]) for name, title in _GROUPS if name in groups]


def settings_from(kind: type[Connector]) -> dict[str, Any]:
    """Settings as the form of this request has them; what was left empty was not given."""
    made = bound(kind.Settings, formdata=request.form, prefix="settings.").payload()
    return {key: value for key, value in made.items() if value not in ("", None)}


def page(
    actor: Actor, kind: str, connection: Connection | None, given: Mapping[str, Any], error: ApiError | None = None
) -> Response:
    """The form of a new connection, or of one that is there."""
    faults = {one["path"]: one["message"] for one in (error.details.get("fields", ()) if error else ())}
    shown = render_template(
        FORM,
        kind=KINDS[kind],
        kinds=[(one, ABOUT.get(name, "")) for name, one in KINDS.items()],
        connection=connections.as_json(connection) if connection else None,
        given=given,
        groups=form_of(KINDS[kind], given.get("settings")),
        faults=faults,
        error=error,
        networks=current_app.config["SETTINGS"].reachable_networks,
    )
    return Response(shown, error.status if error else 200, mimetype="text/html")


@route(bp, "/connections/new", scope="write", query=KindQuery, programs=False, hidden=True)
def new(actor: Actor, query: KindQuery) -> Response:
    """The form of a new connection."""
    return page(actor, connections.kind_of(query.type or "postgresql"), None, {})


@route(bp, "/connections/new", ["POST"], scope="write", programs=False, hidden=True)
def create(actor: Actor) -> Response:
    """Make a connection from its form; with faults the form again."""
    given = form_values(request.form)
    kind = connections.kind_of(str(given.get("type", "")))
    settings = settings_from(KINDS[kind])
    try:
        made = connections.create(
            actor,
            name=_name(given, KINDS[kind].title),
            type=kind,
            settings=settings,
            environment=_environment(given),
            read_only="read_only" in given,
        )
    except ApiError as error:
        return page(actor, kind, None, {**given, "settings": settings}, error)
    return redirect(url_for("connections.show", connection_id=made.id), 303)


@route(bp, "/connections/<connection_id>/edit", scope="write", programs=False, hidden=True)
def edit(actor: Actor, connection_id: str) -> Response:
    """The form of a connection."""
    found = connections.get(actor, connection_id, "write")
    return page(actor, found.type, found, connections.as_json(found))


@route(bp, "/connections/<connection_id>/edit", ["POST"], scope="write", programs=False, hidden=True)
def change(actor: Actor, connection_id: str) -> Response:
    """Change a connection from its form; with faults the form again."""
    found = connections.get(actor, connection_id, "write", lock=True)
    given = form_values(request.form)
    settings = settings_from(KINDS[found.type])
    changes = {
        "name": _name(given, found.name),
        "environment": _environment(given),
        "read_only": "read_only" in given,
    }
    if settings != connections.as_json(found)["settings"]:
        changes["settings"] = settings
    try:
        connections.change(actor, found, changes)
    except ApiError as error:
        return page(actor, found.type, found, {**given, "settings": settings}, error)
    return redirect(url_for("connections.show", connection_id=connection_id), 303)


def _name(given: Mapping[str, Any], otherwise: str) -> str:
    return str(given.get("name", "")).strip()[: limits.MAX_NAME_CHARS] or otherwise


def _environment(given: Mapping[str, Any]) -> str:
    word = str(given.get("environment", "dev"))
    return word if word in connections.ENVIRONMENTS else "dev"


@route(
    bp, "/connections/<connection_id>/tables", scope="read", query=TablesQuery, programs=False, hidden=True,
    reads=False,
)  # fmt: skip
def tables(actor: Actor, connection_id: str, query: TablesQuery) -> Response:
    """What the target holds, a page of tables at a time; by htmx the part alone."""
    found = connections.get(actor, connection_id)
    return _tables(actor, found, query)


def _tables(
    actor: Actor,
    found: Connection,
    query: TablesQuery,
    made: table_templates.Made | None = None,
    error: ApiError | None = None,
) -> Response:
    known, fit = None, []
    try:
        known = connections.metadata(actor, found, query.refresh)
    except ApiError as trouble:
        error = error or trouble
    if known is not None:
        wanted = query.q.strip().casefold()
        fit = [one for one in known.entities if wanted in one.name.casefold()]
    context = {
        "connection": connections.as_json(found),
        "metadata": known,
        "total": len(fit),
        "entities": fit[query.start : query.start + limits.METADATA_PAGE],
        "after": query.start + limits.METADATA_PAGE if len(fit) > query.start + limits.METADATA_PAGE else None,
        "query": query,
        "made": made,
        "error": error,
    }
    if "HX-Request" in request.headers:
        return Response(render_block("connections/tables.html", "tables", **context))
    return Response(render_template("connections/tables.html", **context), mimetype="text/html")


@route(
    bp, "/connections/<connection_id>/tables", ["POST"], scope="write", programs=False, hidden=True
)
def templates_of(actor: Actor, connection_id: str) -> Response:
    """Make templates of the tables that were ticked."""
    found = connections.get(actor, connection_id, "write")
    wanted = request.form.getlist("entities")
    made, error = None, None
    try:
        if wanted:
            made = table_templates.create(actor, connection_id, wanted, limits.DEFAULT_QUANTITY)
    except ApiError as trouble:
        error = trouble
    return _tables(actor, found, TablesQuery(), made, error)


def reached(connection: Mapping[str, Any]) -> str:
    """Where a connection leads, in a few words: host, port and database, or the file."""
    settings = connection["settings"]
    if text := settings.get("file") or settings.get("connection_string"):
        return str(text)
    place = f"{settings.get('host', '')}{':' + str(settings['port']) if settings.get('port') else ''}"
    return f"{place}/{settings['database']}" if settings.get("database") else place


def by_program(connection: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The same by program."""
    at = f"{snippets.origin()}/connections/{connection['id']}"
    return [
        ("Verify it", snippets.curl("POST", f"{at}/verify")),
        ("What it holds", snippets.curl("GET", f"{at}/metadata?refresh=true")),
        ("Templates of its tables", snippets.curl("POST", f"{at}/templates", {"entities": ["customers"]})),
    ]


@bp.app_context_processor
def helpers() -> dict[str, Any]:
    """What the pages of connections call."""
    return {"reached": reached, "connection_code": by_program} if getattr(g, "face", "") == "person" else {}

