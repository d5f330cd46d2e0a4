"""The web application of Rowsmith."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask

    from webapp.config import Settings

ROOT = Path(__file__).resolve().parent.parent
# Where the launcher puts static/ with the browser code when the clone itself cannot be written.
STATIC_COPY = Path(sys.prefix) / "share" / "rowsmith" / "static"


def static_folder() -> Path:
    """static/ of the clone, or the launcher's copy where only that has the browser code."""
    own = ROOT / "static"
    return STATIC_COPY if STATIC_COPY.is_dir() and not (own / "vendor").is_dir() else own


def create_app(settings: Settings, *, routes: bool = True) -> Flask:
    """The Flask application for these settings: wiring only, nothing is opened or connected yet. Without `routes` it
    answers nobody: for commands that only call services, and need not load all that draws pages."""
    from flask import Flask

    from webapp import extensions, limits, models, storage

    assert models  # every table is registered by this import

    app = Flask(
        "webapp",
        root_path=str(ROOT / "webapp"),
        static_folder=str(static_folder()),
        template_folder=str(ROOT / "templates"),
    )
    app.config.update(
        SETTINGS=settings,
        SECRET_KEY=settings.secret_key,
        SQLALCHEMY_DATABASE_URI=settings.sqlalchemy_url,
        SQLALCHEMY_ENGINE_OPTIONS=extensions.engine_options(settings.sqlalchemy_url),
        MIGRATIONS_DIR=str(ROOT / "webapp" / "migrations"),
        REDIS_URL=settings.redis_url,
        MAX_CONTENT_LENGTH=limits.MAX_UPLOAD_BYTES + limits.MB,  # each route narrows it; see views.inputs
        MAX_FORM_MEMORY_SIZE=limits.MAX_BODY_BYTES,
        MAX_FORM_PARTS=limits.MAX_FORM_PARTS,
        # `__Host-` ties the cookie to this very host; browsers take it only with Secure, so only with https.
        SESSION_COOKIE_NAME="__Host-rowsmith" if settings.is_https else "rowsmith",
        SESSION_COOKIE_SECURE=settings.is_https,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_PATH="/",
        SESSION_REFRESH_EACH_REQUEST=False,
        PERMANENT_SESSION_LIFETIME=timedelta(days=limits.SESSION_DAYS),
        WTF_CSRF_CHECK_DEFAULT=False,
        WTF_CSRF_TIME_LIMIT=None,  # as long as the session
    )
    app.ensure_sync = lambda function: function  # type: ignore[method-assign]  # no view is async: ask no further
    extensions.init_app(app)
    storage.init_app(app, settings)
    if routes:
        from webapp import blueprints

        blueprints.init_app(app, settings)
    return app
