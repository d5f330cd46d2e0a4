"""Pages that belong to no resource: the way in, status, trash, and how this browser shows things."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from flask import Blueprint, Response, redirect, request, url_for

from webapp import limits
from webapp.extensions import db
from webapp.models import Connection, Dataset, Endpoint, Project, Scenario, Template, WorkspaceFile
from webapp.services import tenancy
from webapp.services.actors import Actor
from webapp.views import health
from webapp.views.reply import reply
from webapp.views.routes import route
from webapp.views.session import safe_next

bp = Blueprint("pages", __name__)
THEMES: Final = ("", "light", "dark")
_YEAR: Final = 31_536_000  # seconds a browser keeps how it shows things


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
        found += [
            (kind, one, actor.can(scope)) for one in db.session.scalars(gone.limit(limits.PAGE_LIMIT_MAX))
        ]
    keep = timedelta(days=limits.RESTORE_DAYS)
    return reply(template="trash.html", found=found, days=limits.RESTORE_DAYS, keep=keep)
