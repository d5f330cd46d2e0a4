"""The icon of whatever names none."""

from __future__ import annotations

from pathlib import Path

from flask import Blueprint, Response, current_app

from webapp.views.routes import route

bp = Blueprint("icon", __name__)


@route(bp, "/favicon.ico", scope="public", counted=False, hidden=True)
def show() -> Response:
    """What browsers ask for by themselves beside a block of a page, or JSON, that is opened as a page of its own."""
    found = Path(str(current_app.static_folder)) / "logo.svg"
    return Response(found.read_bytes(), mimetype="image/svg+xml")
