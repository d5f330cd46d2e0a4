"""The `kind` fixture: every kind of target that is there, one after the other. See `kinds`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.connectors.kind_mongodb import MongodbKind
from tests.connectors.kind_mssql import MssqlKind
from tests.connectors.kind_mysql import MysqlKind
from tests.connectors.kind_postgresql import PostgresqlKind
from tests.connectors.kind_sqlite import SqliteKind
from tests.connectors.kinds import ABILITIES, Kind
from webapp.connectors.base import Session

# Every kind that the suite runs over; one line for each.
ALL: tuple[type[Kind], ...] = (
    PostgresqlKind,
    SqliteKind,
    MysqlKind,
    MongodbKind,
    MssqlKind,
)  # fmt: skip


@cache
def missing(kind: type[Kind]) -> str | None:
    return kind.unavailable()


@pytest.fixture(params=ALL, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kind]:
    """A kind with an empty database. Tests marked `needs(...)` are skipped where it lacks that."""
    if reason := missing(request.param):
        pytest.skip(reason)
    for marker in request.node.iter_markers("needs"):
        for ability in marker.args:
            if ability in request.param.lacks:
                pytest.skip(f"{request.param.name} {ABILITIES[ability]}")
    result = request.param(tmp_path)
    result.start()
    try:
        yield result
    finally:
        result.stop()


@pytest.fixture
def session(kind: Kind) -> Iterator[Session]:
    """A session of the kind's connector."""
    with kind.connector().open() as found:
        yield found


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*abilities): skipped for kinds whose target lacks one of them")
