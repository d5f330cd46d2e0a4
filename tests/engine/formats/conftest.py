from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from webapp.engine.formats import layout


@pytest.fixture(autouse=True)
def every_view_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that views never point outside of their buffer, because Arrow copies them without bounds checks."""
    copied = layout.join_views

    def checked(laid: pa.Array) -> pa.Array:
        laid.validate(full=True)
        return copied(laid)

    monkeypatch.setattr(layout, "join_views", checked)


@pytest.fixture
def postgresql() -> Iterator[Any]:
    """A connection whose work is undone."""
    psycopg = pytest.importorskip("psycopg")
    url = os.environ.get("TEST_POSTGRESQL_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
    try:
        connection = psycopg.connect(url, connect_timeout=3)
    except psycopg.OperationalError as problem:
        pytest.skip(f"no PostgreSQL at {url.rpartition('@')[2]} (TEST_POSTGRESQL_URL): {problem}")
    yield connection
    connection.close()


@pytest.fixture
def mariadb() -> Iterator[Any]:
    """A cursor in a new, empty database."""
    pymysql = pytest.importorskip("pymysql")
    host, port = (
        os.environ.get("TEST_MYSQL_HOST", "127.0.0.1"),
        int(os.environ.get("TEST_MYSQL_PORT", "3306")),
    )
    several = pymysql.constants.CLIENT.MULTI_STATEMENTS
    try:
        connection = pymysql.connect(
            host=host, port=port, user="root", connect_timeout=3, client_flag=several
        )
    except pymysql.err.OperationalError as problem:
        pytest.skip(f"no MariaDB at {host}:{port} (TEST_MYSQL_HOST, TEST_MYSQL_PORT): {problem}")
    name = f"rowsmith_formats_{uuid.uuid4().hex}"
    with connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        try:
            cursor.execute(f"USE {name}")
            yield cursor
        finally:
            cursor.execute(f"DROP DATABASE {name}")
