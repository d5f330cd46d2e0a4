"""Pages that belong to no resource: the way in, and how this browser shows things."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response, redirect, request, url_for

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
