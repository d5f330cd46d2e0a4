"""Migrations of the database's schema (Flask-Migrate), for the commands that need them.

Not among the extensions: importing Alembic takes a third of a second, and no server or worker migrates.
"""

from __future__ import annotations

from flask import Flask
from flask_migrate import Migrate

from webapp.extensions import db
from webapp.paths import ROOT

FOLDER = ROOT / "webapp" / "migrations"


def init_app(app: Flask) -> Migrate:
    """Let `flask_migrate` functions work on the database of an application. Nothing is connected yet."""
    return Migrate(app, db, directory=str(FOLDER), compare_type=True, render_as_batch=True)
