"""What the application shares: the database handle, the Redis handle, and how SQLite is spoken to.

Nothing here connects; connections are made at first use, in the process that uses them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import redis
from flask import Flask, current_app, g, has_app_context
from flask_migrate import Migrate
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Engine, event
from sqlalchemy.engine import Connection
from sqlalchemy.orm import Session

from webapp import limits
from webapp.model_base import Base

READS: Final = "rowsmith_reads"  # execution option of a connection: this transaction only reads

# What a request has just committed is what it answers with: read again, it would begin one more transaction.
# Whoever needs the present state of a row locks it (`services.tenancy.get(lock=True)`) or uses `reading()`.
db = SQLAlchemy(model_class=Base, disable_autonaming=True, session_options={"expire_on_commit": False})
migrate = Migrate()


def redis_client() -> redis.Redis:
    """The application's Redis (bytes in and out). One pool a process, safe over threads and forks."""
    return current_app.extensions["rowsmith.redis"]


def make_redis(url: str) -> redis.Redis:
    """A client on `url` with our timeouts; connects when first used."""
    return redis.Redis.from_url(
        url,
        socket_timeout=limits.REDIS_TIMEOUT_SECONDS,
        socket_connect_timeout=limits.REDIS_TIMEOUT_SECONDS,
        max_connections=limits.REDIS_CONNECTIONS,
    )


def init_app(app: Flask) -> None:
    """Bind the extensions to one application."""
    db.init_app(app)
    migrate.init_app(app, db, directory=app.config["MIGRATIONS_DIR"], compare_type=True, render_as_batch=True)
    app.extensions["rowsmith.redis"] = make_redis(app.config["REDIS_URL"])


def engine_options(url: str) -> dict[str, Any]:
    """Pool and driver options for a database URL."""
    options: dict[str, Any] = {
        "pool_size": limits.DB_POOL,
        "max_overflow": limits.DB_POOL_OVERFLOW,
        "pool_timeout": limits.DB_POOL_WAIT_SECONDS,
    }
    if url.startswith("sqlite"):
        options["connect_args"] = {"timeout": limits.SQLITE_BUSY_MS / 1000, "check_same_thread": False}
    else:
        options["pool_pre_ping"] = True
    return options


@contextmanager
def reading() -> Iterator[Session]:
    """A short session of its own for reads beside the request's: no writers' lock, gone when the block ends."""
    with Session(db.engine, autoflush=False, expire_on_commit=False) as session:
        session.connection(execution_options={READS: True})
        yield session


@contextmanager
def writing() -> Iterator[Session]:
    """A short transaction of its own, committed when the block ends well, beside the request's session."""
    with Session(db.engine, expire_on_commit=False) as session, session.begin():
        session.connection(execution_options={READS: False})
        yield session


def after_fork(app: Flask) -> None:
    """Leave the parent's database connections to the parent. Call it first thing in a forked child."""
    with app.app_context():
        db.engine.dispose(close=False)


def only_reads() -> None:
    """Say that the rest of this request reads only.

    On SQLite its transactions then begin without the writers' lock. A transaction that would write begins
    IMMEDIATE instead, because one that reads first and writes later fails at once (SQLITE_BUSY_SNAPSHOT) when
    another writer came between, however long the busy timeout.
    """
    g.rowsmith_only_reads = True


def may_write() -> None:
    """Take `only_reads` back: transactions begun from here on may write."""
    g.rowsmith_only_reads = False


@event.listens_for(Engine, "connect")
def _sqlite_connect(dbapi: Any, _record: Any) -> None:
    if not isinstance(dbapi, sqlite3.Connection):
        return
    dbapi.isolation_level = None  # the driver leaves BEGIN to us
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",  # WAL: safe against a crash of the process; a power cut may lose the last commits
        "foreign_keys=ON",
        f"busy_timeout={limits.SQLITE_BUSY_MS}",
    ):
        dbapi.execute(f"PRAGMA {pragma}").close()


@event.listens_for(Engine, "begin")
def _sqlite_begin(connection: Connection) -> None:
    if connection.dialect.name != "sqlite":
        return
    reads = connection.get_execution_options().get(READS)
    if reads is None:
        reads = has_app_context() and g.get("rowsmith_only_reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
