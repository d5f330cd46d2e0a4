"""Who imports here, and the databases that rows are loaded into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.cast import Cast, Program
from tests.connectors.kind_mysql import URL, MysqlKind
from tests.connectors.kinds import GATE
from webapp.connectors.mysql.connector import MysqlConnector


@pytest.fixture
def edith(api: Callable[..., Program], cast: Cast) -> Program:
    """A program of Edith's, an editor."""
    return api(cast.edith)


class Loaded:
    """A database: `load` carries out a script, `ask` a query."""

    def __init__(
        self, load: Callable[[str], None], ask: Callable[[str], list[Any]], quote: str, keys: str
    ) -> None:
        self.load, self.ask, self._quote, self._keys = load, ask, quote, keys

    def name(self, text: str) -> str:
        return f"{self._quote}{text}{self._quote}"

    def foreign_keys(self) -> int:
        """How many the database itself checks."""
        return self.ask(self._keys)[0][0]


@pytest.fixture
def postgresql(postgres_url: str) -> Iterator[Loaded]:
    with psycopg.connect(postgres_url, autocommit=True) as stored:
        yield Loaded(
            lambda script: stored.execute(script) and None,
            lambda query: stored.execute(query).fetchall(),
            '"',
            "SELECT count(*) FROM pg_constraint WHERE contype = 'f'",
        )


@pytest.fixture
def mysql(tmp_path: Any) -> Iterator[Loaded]:
    import pymysql

    if (reason := MysqlKind.unavailable()) is not None:
        pytest.skip(reason)
    kind = MysqlKind(tmp_path)
    kind.start()
    settings = MysqlConnector.Settings(connection_string=URL, database=kind.place)
    there = MysqlConnector(settings, GATE).connect_options()
    stored = pymysql.connect(
        host=there.host, port=there.port, user=there.username, password=there.password, database=kind.place,
        charset="utf8mb4", client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS,
    )  # fmt: skip

    def load(script: str) -> None:
        with stored.cursor() as cursor:
            cursor.execute(script)
            while cursor.nextset():
                continue
        stored.commit()

    def ask(query: str) -> list[Any]:
        with stored.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    counted = "SELECT count(*) FROM information_schema.referential_constraints"
    counted += f" WHERE constraint_schema = '{kind.place}'"
    try:
        yield Loaded(load, ask, "`", counted)
    finally:
        stored.close()
        kind.stop()
