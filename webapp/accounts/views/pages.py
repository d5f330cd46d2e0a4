"""Pages that belong to no resource: the way in, and how this browser shows things."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response, request, url_for

from webapp.accounts.views.session import PREFERENCES, PreferencesForm, profile_again, safe_next
from webapp.web.responses import see_other
from webapp.web.routing import route

bp = Blueprint("pages", __name__)
_YEAR: Final = 31_536_000  # seconds a browser keeps how it shows things


@route(bp, "/profile", scope="self", hidden=True, programs=False)
def profile() -> Response:
    """Redirect to the user's profile."""
    return see_other(url_for("session.me"))


@route(bp, "/settings", scope="self", hidden=True, programs=False)
def settings() -> Response:
    """Redirect to the first page of the settings."""
    return see_other(url_for("session.me"))


@route(bp, "/files", scope="self", hidden=True, programs=False)
def files() -> Response:
    """Redirect to the workspace's files."""
    return see_other(url_for("workspace_files.index"))


@route(
    bp,
    "/session/preferences",
    ["POST"],
    scope="self",
    body=PreferencesForm,
    reads=True,
    hidden=True,
    programs=False,
    on_fault=profile_again(PREFERENCES),
)
def preferences(body: PreferencesForm) -> Response:
    """Theme, keyboard shortcuts and width of the sidebar, saved in this browser."""
    response = see_other(safe_next(body.back))
    for name, value in (("theme", body.theme), ("keys", body.keys), ("rail", body.rail)):
        if value is not None:
            response.set_cookie(name, value, max_age=_YEAR, samesite="Lax", secure=request.is_secure)
    return response
