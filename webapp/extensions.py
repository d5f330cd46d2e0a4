"""Shared extensions: the database handle, the Redis handle, and the SQLite configuration.

Nothing here connects; connections are opened at first use, in the process that uses them.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary

import redis
from flask import Flask, current_app, g, has_app_context
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import CursorResult, Engine, Result, event
from sqlalchemy.engine import Connection
from sqlalchemy.orm import Session

from webapp import limits
from webapp.model_base import Base

READ_ONLY_OPTION: Final = "rowsmith_reads"  # execution option of a connection: this transaction only reads

# A response uses the objects that were just committed; reading them again would start another transaction.
# To get the current state of a row, lock it (`tenancy.get(lock=True)`) or use `read_session()`.
db = SQLAlchemy(model_class=Base, disable_autonaming=True, session_options={"expire_on_commit": False})


def application() -> Flask:
    """Return the application itself, for a thread or a stream that continues after the request."""
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]  # documented; not in Flask's types
    return app


def redis_client() -> redis.Redis:
    """Return the Redis client of the application, for bytes. One pool per process, safe for threads and forks."""
    client: redis.Redis = current_app.extensions["rowsmith.redis"]
    return client


def create_redis_client(url: str) -> redis.Redis:
    """Return a Redis client for `url` with the timeouts of the service. It connects at first use."""
    return redis.Redis.from_url(
        url,
        socket_timeout=limits.REDIS_TIMEOUT_SECONDS,
        socket_connect_timeout=limits.REDIS_TIMEOUT_SECONDS,
        max_connections=limits.REDIS_CONNECTIONS,
    )


def init_app(app: Flask) -> None:
    """Bind the extensions to one application."""
    db.init_app(app)
    with app.app_context():
        limit_idle_transactions(db.engine)
    app.extensions["rowsmith.redis"] = create_redis_client(app.config["REDIS_URL"])


def engine_options(url: str) -> dict[str, Any]:
    """Return the pool and driver options for a database URL."""
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


def limit_idle_transactions(engine: Engine) -> None:
    """Let PostgreSQL end the transaction of a process that is frozen, or whose host has failed, and with it the locks
    for which the process that takes over its work waits."""

    # Not a startup parameter: PgBouncer rejects unknown ones.
    def set_timeout(dbapi: Any, _record: Any) -> None:
        milliseconds = limits.DB_IDLE_TRANSACTION_SECONDS * 1_000
        dbapi.execute(f"SET idle_in_transaction_session_timeout = {milliseconds}")
        dbapi.commit()

    if engine.dialect.name == "postgresql":
        event.listen(engine, "connect", set_timeout)


@contextmanager
def read_session() -> Iterator[Session]:
    """Open a short read session, separate from that of the request, without the writers' lock."""
    with Session(db.engine, autoflush=False, expire_on_commit=False) as session:
        session.connection(execution_options={READ_ONLY_OPTION: True})
        yield session


@contextmanager
def write_session() -> Iterator[Session]:
    """Open a short transaction, separate from that of the request, and commit it if the block succeeds."""
    with Session(db.engine, expire_on_commit=False) as session, session.begin():
        session.connection(execution_options={READ_ONLY_OPTION: False})
        yield session


def affected_row_count(result: Result[*tuple[Any, ...]]) -> int:
    """Return how many rows an INSERT, UPDATE or DELETE changed."""
    assert isinstance(result, CursorResult)  # what such a statement gives
    return result.rowcount


def after_fork(app: Flask) -> None:
    """Detach from the parent's database connections. Call this first in a forked child."""
    with app.app_context():
        db.engine.dispose(close=False)


def set_read_only() -> None:
    """Declare that the rest of this request only reads.

    On SQLite its transactions then begin without the writers' lock. A transaction that would write begins
    IMMEDIATE instead, because one that reads first and writes later fails immediately (SQLITE_BUSY_SNAPSHOT) when
    another writer has committed in between, regardless of the busy timeout.
    """
    g.rowsmith_only_reads = True


def allow_writes() -> None:
    """Undo `set_read_only`: transactions that begin from now on may write."""
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
    reads = connection.get_execution_options().get(READ_ONLY_OPTION)
    if reads is None:
        reads = has_app_context() and g.get("rowsmith_only_reads", False)
    if reads:
        connection.exec_driver_sql("BEGIN")
        return
    with write_queue(connection.engine).wait_for_turn():
        connection.exec_driver_sql("BEGIN IMMEDIATE")


class WriteQueue:
    """A fair queue for the threads of a process that wait for SQLite's write lock.

    SQLite itself waits by retrying with growing pauses: the newest waiter has the best chance, and under load some
    waiters time out. With this class, one thread of a process retries, and all others queue behind it in order. A
    thread leaves the queue when it has acquired the lock, not when it releases it.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._taken = False
        self._queue: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        """Number of threads in the queue."""
        return len(self._queue)

    @contextmanager
    def wait_for_turn(self) -> Iterator[None]:
        """Wait for this thread's turn, at most as long as SQLite waits for its lock; then continue without it."""
        has_turn = self._enter()
        try:
            yield
        finally:
            if has_turn:
                self._leave()

    def _enter(self) -> bool:
        turn = threading.Lock()
        with self._mutex:
            if not self._taken:
                self._taken = True
                return True
            turn.acquire()
            self._queue.append(turn)
        if turn.acquire(timeout=limits.SQLITE_BUSY_MS / 1000):
            return True
        with self._mutex:
            if turn in self._queue:
                self._queue.remove(turn)
                return False
        return True  # the turn came after the timeout

    def _leave(self) -> None:
        with self._mutex:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._taken = False


_write_queues: WeakKeyDictionary[Engine, WriteQueue] = WeakKeyDictionary()


def write_queue(engine: Engine) -> WriteQueue:
    """Return the write queue of an engine."""
    queue = _write_queues.get(engine)
    return queue if queue is not None else _write_queues.setdefault(engine, WriteQueue())


# A forked child has none of the threads in the queues.
os.register_at_fork(after_in_child=_write_queues.clear)
