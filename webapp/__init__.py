"""The web application of Rowsmith."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from webapp.paths import ROOT, static_folder

if TYPE_CHECKING:
    from flask import Flask

    from webapp.config import Settings


def create_app(settings: Settings, *, routes: bool = True) -> Flask:
    """Create the Flask application for these settings. Connections are opened at first use.

    Without `routes` it serves no requests, for commands that only call services.
    """
    from flask import Flask

    from webapp import extensions, limits, models, storage
    from webapp.objects.services import FINDERS
    from webapp.versioning import services as versioning

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
    extensions.init_app(app)
    storage.init_app(app, settings)
    versioning.init_app(app, FINDERS)
    if routes:
        from webapp import blueprints

        blueprints.init_app(app, settings)
    return app
