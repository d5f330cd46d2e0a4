"""The web application of Rowsmith."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask
    from webapp.config import Settings

ROOT = Path(__file__).resolve().parent.parent


def create_app(settings: Settings) -> Flask:
    """The Flask application for these settings: wiring only, nothing is opened or connected yet."""
    from flask import Flask
    from webapp import extensions, views

    app = Flask(
        "webapp",
        root_path=str(ROOT / "webapp"),
        static_folder=str(ROOT / "static"),
        template_folder=str(ROOT / "templates"),
    )
    app.config.update(
        SETTINGS=settings,
        SECRET_KEY=settings.secret_key,
        SQLALCHEMY_DATABASE_URI=settings.sqlalchemy_url,
        SQLALCHEMY_ENGINE_OPTIONS=extensions.engine_options(settings.sqlalchemy_url),
        MIGRATIONS_DIR=str(ROOT / "webapp" / "migrations"),
        REDIS_URL=settings.redis_url,
    )
    extensions.init_app(app)
    views.init_app(app)
    return app
