"""One moment of the database, read while others write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from webapp import limits
from webapp.config import Settings
from webapp.extensions import READS


def engine(url: str) -> sa.Engine:
    """An engine that keeps no connection. `url` as `Settings.sqlalchemy_url`."""
    if url.startswith("sqlite"):
        options = {"timeout": limits.SQLITE_BUSY_MS / 1000, "check_same_thread": False}
    else:
        options = {"connect_timeout": round(limits.UPKEEP_CONNECT_SECONDS)}
    return sa.create_engine(url, poolclass=sa.NullPool, connect_args=options)


@contextmanager
def snapshot(settings: Settings) -> Iterator[sa.Connection]:
    """A transaction that reads the database as it is at its first query, and keeps nobody from writing: on PostgreSQL
    REPEATABLE READ, on SQLite a reader of the WAL, which grows as long as it reads."""
    made = engine(settings.sqlalchemy_url)
    options = {READS: True}
    if not settings.is_sqlite:
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    try:
        with made.connect() as connection:
            connection = connection.execution_options(**options)
            with connection.begin():
                # Only a query takes the snapshot: BEGIN alone waits for one.
                connection.exec_driver_sql(
                    "SELECT count(*) FROM sqlite_master" if settings.is_sqlite else "SELECT 1"
                )
                yield connection
    finally:
        made.dispose()
