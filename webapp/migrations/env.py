"""Alembic's entry: runs inside the application's context (Flask-Migrate) with our metadata."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import sqlalchemy as sa
from alembic import context
from flask import current_app

from webapp import models  # every table is registered by this import
from webapp.extensions import db

metadata = models.Base.metadata


def render(kind: str, item: Any, _autogen: Any) -> str | Literal[False]:
    """Our own column types as the plain ones they are in a database, so that old revisions import none of us."""
    if kind == "type" and isinstance(item, models.UtcTime):
        return "sa.DateTime(timezone=True)"
    if kind == "type" and isinstance(item, sa.JSON):
        return "sa.JSON(none_as_null=True)"
    return False


@contextmanager
def unlinked(connection: sa.Connection) -> Iterator[None]:
    """Disable foreign keys during migrations and check them afterwards: SQLite rebuilds tables by dropping them, which
    would otherwise delete the rows that refer to them."""
    if connection.dialect.name != "sqlite":
        yield
        return
    raw: Any = connection.connection.dbapi_connection
    raw.execute("PRAGMA foreign_keys=OFF").close()
    try:
        yield
        broken = raw.execute("PRAGMA foreign_key_check").fetchall()
        if broken:
            raise RuntimeError(f"rows refer to others that are gone: {broken[:5]}")
    finally:
        raw.execute("PRAGMA foreign_keys=ON").close()


def run() -> None:
    """Upgrade over one connection. PostgreSQL does it in one transaction; SQLite rebuilds tables in batches."""
    with db.engine.connect() as connection, unlinked(connection):
        context.configure(
            connection=connection,
            target_metadata=metadata,
            render_item=render,
            **current_app.extensions["migrate"].configure_args,
        )
        with context.begin_transaction():
            context.run_migrations()


run()
