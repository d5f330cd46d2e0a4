"""Pages that belong to no resource: the way in, documents, status, trash, and how this browser shows things."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Any, Final

import orjson
from flask import Blueprint, Response, redirect, request, url_for
from pydantic import Field

from webapp import limits
from webapp.engine.fields import find
from webapp.errors import CODES, ApiError
from webapp.extensions import db
from webapp.forms import schema_text
from webapp.forms.from_model import label_of
from webapp.models import Connection, Dataset, Endpoint, Project, Scenario, Template, WorkspaceFile
from webapp.services import catalogue, generate, tenancy
from webapp.services.actors import Actor
from webapp.services.row_requests import DraftInput
from webapp.views import health, rows_shown, snippets
from webapp.views.inputs import Query
from webapp.views.reply import reply
from webapp.views.routes import route
from webapp.views.session import safe_next

bp = Blueprint("pages", __name__)
THEMES: Final = ("", "light", "dark")
_YEAR: Final = 31_536_000  # seconds a browser keeps how it shows things
_TYPE_ROWS: Final = 3


@route(bp, "/", scope="self", hidden=True, programs=False)
def home() -> Response:
    """Where one begins."""
    return redirect(url_for("templates.index"), 303)  # type: ignore[return-value]


@route(bp, "/session/preferences", ["POST"], scope="self", reads=True, hidden=True, programs=False)
def preferences() -> Response:
    """Theme and single keys, kept by this browser alone."""
    response: Response = redirect(safe_next(request.form.get("back", "/")), 303)  # type: ignore[assignment]
    theme, keys = request.form.get("theme"), request.form.get("keys")
    if theme in THEMES:
        response.set_cookie("theme", theme, max_age=_YEAR, samesite="Lax", secure=request.is_secure)
    if keys in ("on", "off"):
        response.set_cookie("keys", keys, max_age=_YEAR, samesite="Lax", secure=request.is_secure)
    return response


@route(bp, "/status", scope="member", hidden=True, programs=False)
def status() -> Response:
    """Whether the service's parts are there."""
    found = health.parts()
    return reply(template="status.html", found=found, ready=all(found.values()))


_TRASHED: Final[dict[str, tuple[Any, str]]] = {
    "template": (Template, "write"),
    "dataset": (Dataset, "write"),
    "scenario": (Scenario, "write"),
    "connection": (Connection, "write"),
    "endpoint": (Endpoint, "write"),
    "workspace_file": (WorkspaceFile, "write"),
    "project": (Project, "admin"),
}


@route(bp, "/trash", scope="read", hidden=True, programs=False)
def trash(actor: Actor) -> Response:
    """What was deleted and can be had back."""
    found = []
    for kind, (model, scope) in _TRASHED.items():
        listed = tenancy.listing(actor, model, project=model is not Project, deleted=True)
        gone = listed.where(model.deleted_at.is_not(None)).order_by(model.deleted_at.desc())
        if model is Connection:
            gone = gone.where(Connection.of_endpoint.is_(False))
        found += [(kind, one, actor.can(scope)) for one in db.session.scalars(gone.limit(limits.PAGE_LIMIT_MAX))]
    keep = timedelta(days=limits.RESTORE_DAYS)
    return reply(template="trash.html", found=found, days=limits.RESTORE_DAYS, keep=keep)


# --- Documents --------------------------------------------------------------------------------------------


@route(bp, "/docs", scope="public", hidden=True)
def docs(actor: Actor | None) -> Response:
    """Quick start."""
    plans = [
        (
            name.capitalize(),
            f"{p.requests_per_minute:,}",
            f"{p.rows_per_hour:,}",
            f"{p.rows_per_generation:,}",
        )
        for name, p in limits.PLANS.items()
    ]
    codes = [(code, code_status, text) for code, (code_status, text) in CODES.items()]
    return _document("docs/index.html", use=snippets.quick_start(snippets.origin()), plans=plans, codes=codes)


class TypesQuery(Query):
    """`q` searches names, labels and aliases."""

    q: Annotated[str, Field(max_length=limits.MAX_QUERY_TEXT)] = ""


@route(bp, "/docs/field-types", scope="public", query=TypesQuery, hidden=True)
def field_types(query: TypesQuery) -> Response:
    """Every field type, by family or best fit first."""
    found: list[dict[str, Any]] = families()
    if query.q.strip():
        types = catalogue.search(query.q)
        found = [{"label": "Best fit first", "types": types}] if types else []
    total = sum(len(family["types"]) for family in found)
    return _document("docs/field_types.html", found=found, q=query.q, total=total, index=True)


@route(bp, "/docs/field-types/<name>", scope="public", hidden=True)
def family(name: str) -> Response:
    """The field types of one family, with their options and rows made just now."""
    found = next((one for one in families() if one["name"] == name), None)
    if found is None:
        raise ApiError("not_found", "There is no such family of field types.", {"id": name[:100]})
    types = [
        {**one, "options": _options(one["name"]), "rows": _rows_of(one["name"])} for one in found["types"]
    ]
    return _document("docs/family.html", family={**found, "types": types})


def _document(template: str, **context: Any) -> Response:
    from flask import g

    g.face = "person"  # documents are for people, whoever asks
    return reply(template=template, families=families(), **context)


@lru_cache(maxsize=1)
def families() -> list[dict[str, Any]]:
    """The catalogue by family, in the registry's order. Shared: do not change it."""
    found: dict[str, dict[str, Any]] = {}
    for one in catalogue.entries():
        name = one["category"]
        made = found.setdefault(name, {"name": name, "label": label_of(name), "types": []})
        words = [one["name"], one["label"], *one["aliases"], one["description"], name]
        made["types"].append({**one, "find": " ".join(words).lower()})
    return list(found.values())


@lru_cache(maxsize=1024)
def _options(name: str) -> list[dict[str, str]]:
    kind = find(name)
    return schema_text.options(kind.Options) if kind else []


@lru_cache(maxsize=1024)
def _rows_of(name: str) -> list[str]:
    """A few values that the type makes with default options; none where it needs options or other fields."""
    ask = DraftInput(fields=[{"name": "value", "type": name}], seed="docs", count=_TYPE_ROWS)
    try:
        made = orjson.loads(generate.preview_draft(None, ask).rows)
    except ApiError:
        return []
    return [rows_shown.cell(row.get("value"))["text"] for row in made]
