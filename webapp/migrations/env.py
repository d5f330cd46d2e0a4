"""Alembic's entry: runs inside the application's context (Flask-Migrate) with our metadata."""

from typing import Any

import sqlalchemy as sa
from alembic import context
from flask import current_app

from webapp import models  # every table is registered by this import
from webapp.extensions import db

metadata = models.Base.metadata


def render(kind: str, item: Any, _autogen: Any) -> str | bool:
    """Our own column types as the plain ones they are in a database, so that old revisions import none of us."""
    if kind == "type" and isinstance(item, models.UtcTime):
        return "sa.DateTime(timezone=True)"
    if kind == "type" and isinstance(item, sa.JSON):
        return "sa.JSON(none_as_null=True)"
    return False


def run() -> None:
    """Upgrade over one connection. PostgreSQL does it in one transaction; SQLite rebuilds tables in batches."""
    with db.engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=metadata,
            render_item=render,
            **current_app.extensions["migrate"].configure_args,
        )
        with context.begin_transaction():
            context.run_migrations()


run()
