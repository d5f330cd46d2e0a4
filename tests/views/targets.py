"""Databases that the tests of this folder push into: a file of SQLite, or a schema of PostgreSQL."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from flask import Flask

from jobs.pushes import push as job
from tests.cast import Cast
from webapp.access import actors
from webapp.connections.services import connections
from webapp.extensions import db

SHOP = """
CREATE TABLE customers (
    id INTEGER PRIMARY KEY, email VARCHAR(60) NOT NULL UNIQUE, first_name VARCHAR(40), age INTEGER
);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers (id), amount NUMERIC(8, 2) NOT NULL
);
"""
CUSTOMERS: list[dict[str, Any]] = [
    {"name": "id", "type": "row_number"},
    {"name": "E-Mail", "type": "email", "unique": True},
    {"name": "firstName", "type": "first_name"},
    {"name": "age", "type": "number", "options": {"min": 18, "max": 99}},
]
ORDERS: list[dict[str, Any]] = [
    {"name": "id", "type": "row_number"},
    {"name": "customer_id", "type": "number", "options": {"min": 1, "max": 10}},
    {"name": "amount", "type": "number", "options": {"min": 1, "max": 5000, "decimals": 2}},
]


class Target:
    """A database, and the connection of Acme's project Main that leads to it."""

    def __init__(self, connection_id: str, execute: Callable[[str], list[Any]]) -> None:
        self.connection_id = connection_id
        self.execute = execute

    def count(self, table: str) -> int:
        return self.execute(f"SELECT count(*) FROM {table}")[0][0]


def connection(app: Flask, cast: Cast, type: str, settings: dict[str, Any], **more: Any) -> str:
    """A new connection of the project Main, not verified."""
    with app.app_context():
        acme = actors.system_actor(cast.acme, cast.main, cast.blue)
        how = {"name": "Shop", "verifies": False, **more}
        created = connections.create(acme, type=type, settings=settings, **how).id
        db.session.remove()
    return created


def sqlite_target(app: Flask, cast: Cast, script: str = SHOP, **more: Any) -> Target:
    """A file of the project Main."""
    name = f"shop_{uuid.uuid4().hex[:8]}.db"
    connection_id = connection(app, cast, "sqlite", {"file": name}, **more)
    path = Path(app.config["SETTINGS"].data_dir) / "targets" / cast.acme / connection_id / name
    path.parent.mkdir(parents=True, exist_ok=True)

    def execute(statement: str) -> list[Any]:
        with closing(sqlite3.connect(path)) as stored, stored:
            return stored.execute(statement).fetchall()

    with closing(sqlite3.connect(path)) as stored:
        stored.executescript(script)
    return Target(connection_id, execute)


@contextmanager
def postgres_target(app: Flask, cast: Cast, url: str, script: str) -> Iterator[Target]:
    """An empty database, which the fixture `postgres_url` made."""
    with psycopg.connect(url, autocommit=True) as stored:
        stored.execute(script)

        def execute(statement: str) -> list[Any]:
            found = stored.execute(statement)
            return found.fetchall() if found.description else []

        yield Target(connection(app, cast, "postgresql", {"connection_string": url}), execute)


@pytest.fixture
def shop(app: Flask, cast: Cast) -> Target:
    """Customers and orders, empty, in a file of SQLite."""
    return sqlite_target(app, cast)


@pytest.fixture
def work(app: Flask) -> Callable[[str], None]:
    """Carry out a push as a worker would."""

    def do(push_id: str) -> None:
        with app.app_context():
            job.run(push_id)
            db.session.remove()

    return do
