"""Revisions of the database's schema: which there are, and bringing a database to one."""

from __future__ import annotations

import dataclasses
import logging

from alembic import command
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from webapp import create_app
from webapp.config import Settings
from webapp.extensions import db
from webapp.schema_migrations import FOLDER, init_app


def head() -> str:
    """The revision of this release."""
    found = ScriptDirectory(str(FOLDER)).get_current_head()
    assert found
    return found


def known(revision: str) -> bool:
    """Return whether this release knows a revision: an unknown one is from a newer release."""
    try:
        return ScriptDirectory(str(FOLDER)).get_revision(revision) is not None
    except CommandError:
        return False


def on(settings: Settings, url: str) -> Settings:
    """The settings with another database."""
    return dataclasses.replace(settings, database_url=url)


def bring(settings: Settings, revision: str = "head") -> None:
    """Migrate the database of these settings to a revision, from any other one. Raises the error of the migration."""
    app = create_app(settings, routes=False)
    quiet = logging.getLogger("alembic").level
    logging.getLogger("alembic").setLevel(logging.WARNING)
    try:
        with app.app_context():
            try:
                # Flask-Migrate's own function would exit the process if a migration fails.
                command.upgrade(init_app(app).get_config(str(FOLDER)), revision)
            finally:
                db.session.remove()
                db.engine.dispose()
    finally:
        logging.getLogger("alembic").setLevel(quiet)
