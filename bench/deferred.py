"""Measure rows per second of pushes whose foreign key is checked only at the commit, next to one checked immediately.

python bench/deferred.py [--rows 20000] [--every 20]

One row in `--every` refers to a row that does not exist. The key refers to another table, or to the table itself. Each
is a complete push with its ledger into PostgreSQL and SQLite. The ratio is to the same push whose constraint is not
deferred. PG_TEST_URL names the server; a server that cannot be reached is left out.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from secrets import token_hex
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psycopg

from bench.push_job import Service, service
from webapp.connections.models import Connection
from webapp.connections.services import sqlite_files
from webapp.extensions import db

PG = os.environ.get("PG_TEST_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
PARENTS = {"another table": "parents", "the table itself": ""}


def fields(every: int) -> list[dict[str, object]]:
    """A template whose column `parent` is the number of the row before, or of a row that does not exist."""
    formula = f"if(mod(id, {every}) == 0, 1000000000 + id, max(1, id - 1 - if(mod(id, {every}) == 1, 1, 0)))"
    return [
        {"name": "id", "type": "row_number", "options": {}},
        {"name": "parent", "type": "formula", "options": {"expression": formula}},
    ]


@contextmanager
def postgresql(every: int) -> Iterator[tuple[Service, Callable[[str], None]]]:
    """A service with a connection to a separate database, and a function that executes statements there."""
    name = f"bench_{token_hex(4)}"
    with psycopg.connect(PG, autocommit=True, connect_timeout=3) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            url = urlsplit(PG)._replace(path=f"/{name}").geturl()
            with (
                psycopg.connect(url, autocommit=True) as other,
                service("postgresql", {"connection_string": url}, fields(every)) as result,
            ):
                yield result, lambda statement: other.execute(statement)
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def sqlite(every: int) -> Iterator[tuple[Service, Callable[[str], None]]]:
    """The same with a file."""
    with service("sqlite", {"file": "bench.db"}, fields(every)) as result:
        folder = sqlite_files.folder_of(db.session.get_one(Connection, result.connection))
        folder.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(folder / "bench.db", isolation_level=None)) as file:
            yield result, lambda statement: file.execute(statement)


def measure(made: Service, execute: Callable[[str], None], kind: str, rows: int, every: int) -> None:
    """Print one line for each constraint."""
    execute("CREATE TABLE parents (id int PRIMARY KEY)")
    execute(
        "INSERT INTO parents WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
        f"WHERE i < {rows}) SELECT i FROM n"
    )
    for what, parents in PARENTS.items():
        base = 0.0
        for when in ("", "DEFERRABLE INITIALLY DEFERRED"):
            table = f"t_{token_hex(4)}"
            execute(
                f"CREATE TABLE {table} (id int PRIMARY KEY, parent int REFERENCES {parents or table} (id) {when})"
            )
            seconds, failed = made.push(table, rows)
            base = base or seconds
            label = f"{what}, {'deferred' if when else 'immediate'}"
            print(
                f"{kind:<12}{label:<28}{rows / seconds:>10,.0f} rows/s, {failed:,} rejected  {base / seconds:6.3f}"
            )


def main() -> None:
    """Measure."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=20_000)
    options.add_argument("--every", type=int, default=20)
    request = options.parse_args()
    for kind, opened in (("postgresql", postgresql), ("sqlite", sqlite)):
        try:
            with opened(request.every) as (result, execute):
                measure(result, execute, kind, request.rows, request.every)
        except psycopg.OperationalError as error:
            print(f"{kind}: not measured: {error}".strip())


if __name__ == "__main__":
    main()
