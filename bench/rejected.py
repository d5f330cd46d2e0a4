"""Measure rows per second when a target rejects every row: PostgreSQL, MariaDB and SQLite, by the reason of
the rejection.

python bench/rejected.py [--rows 10000]

PG_TEST_URL and MYSQL_TEST_URL name the servers; servers that cannot be reached are left out. The last column
is the ratio to the same rows if all of them are accepted.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyarrow as pa

from webapp import limits
from webapp.connectors import KINDS
from webapp.connectors.base import Session, WriteSpec
from webapp.net.gate import Gate

PG = os.environ.get("PG_TEST_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
MYSQL = os.environ.get("MYSQL_TEST_URL", "mysql://root@127.0.0.1:3306/mysql")
TABLES = {
    "accepted": "CREATE TABLE accepted (id int PRIMARY KEY, name varchar(60), age int)",
    "not_null": "CREATE TABLE not_null (id int PRIMARY KEY, name varchar(60) NOT NULL, age int)",
    "check": "CREATE TABLE check_ (id int PRIMARY KEY, name varchar(60), age int CHECK (age < 0))",
    "unique": "CREATE TABLE unique_ (id int PRIMARY KEY, name varchar(60), age int UNIQUE)",
    "foreign_key": "CREATE TABLE foreign_key_ (id int PRIMARY KEY, name varchar(60), age int, "
    "FOREIGN KEY (age) REFERENCES unique_ (age))",
    "too_long": "CREATE TABLE too_long (id int PRIMARY KEY, name varchar(2), age int)",
    "trigger": "",
}
TRIGGERS = {
    "postgresql": [
        "CREATE TABLE trigger_ (id int PRIMARY KEY, name varchar(60), age int)",
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'no % here', NEW.id; END$$",
        "CREATE TRIGGER no BEFORE INSERT ON trigger_ FOR EACH ROW EXECUTE FUNCTION no()",
    ],
    "mysql": [
        "CREATE TABLE trigger_ (id int PRIMARY KEY, name varchar(60), age int)",
        "CREATE TRIGGER no BEFORE INSERT ON trigger_ FOR EACH ROW "
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not here'",
    ],
    "sqlite": [
        "CREATE TABLE trigger_ (id int PRIMARY KEY, name varchar(60), age int)",
        "CREATE TRIGGER no BEFORE INSERT ON trigger_ BEGIN SELECT RAISE(ABORT, 'not here'); END",
    ],
}


def batch(reason: str, first: int, rows: int) -> pa.RecordBatch:
    """Generate rows that a table rejects for one reason."""
    numbers = range(first, first + rows)
    age = {"unique": [5] * rows, "foreign_key": [7 + n for n in numbers]}.get(reason, [30] * rows)
    names = [None] * rows if reason == "not_null" else [f"name {number}" for number in numbers]
    return pa.RecordBatch.from_arrays(
        [pa.array(numbers, pa.int64()), pa.array(names, pa.string()), pa.array(age, pa.int64())],
        ["id", "name", "age"],
    )


@contextmanager
def session_of(kind: str, folder: str) -> Iterator[Session]:
    """A session in a separate database, which is dropped afterwards."""
    connector = KINDS[kind]
    if kind == "sqlite":
        with connector(connector.Settings(file="b.db"), Gate(), folder).open() as session:
            yield session
        return
    admin, name = PG if kind == "postgresql" else MYSQL, f"bench_{token_hex(4)}"
    own = urlsplit(admin)._replace(path=f"/{name}").geturl()
    gate = Gate(["127.0.0.0/8"])
    with connector(connector.Settings(connection_string=admin), gate).open() as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            with connector(connector.Settings(connection_string=own), gate).open() as session:
                yield session
        finally:
            server.execute(f"DROP DATABASE {name}")


def measure(session: Session, kind: str, rows: int) -> None:
    """Print one line per reason."""
    for reason, statement in TABLES.items():
        if kind == "sqlite" and reason == "too_long":
            continue  # SQLite accepts texts of any length
        for each in TRIGGERS[kind] if reason == "trigger" else [statement]:
            session.execute(each)
    base = 0.0
    for reason in TABLES:
        if kind == "sqlite" and reason == "too_long":
            continue
        table = next(name for name in (reason, f"{reason}_") if session.entity(name) is not None)
        entity = session.entity(table)
        assert entity is not None
        target = session.target(WriteSpec(entity, entity.fields))
        if reason == "unique":
            target.begin()
            target.send(batch("unique", 0, 1))
            target.commit()
        began, failed = time.perf_counter(), 0
        for first in range(1, rows + 1, limits.PUSH_CHUNK_ROWS):
            target.begin()
            found = target.send(batch(reason, first, min(limits.PUSH_CHUNK_ROWS, rows - first + 1))).failures
            failed += len(found)
            target.rollback()
        seconds = time.perf_counter() - began
        base = base or seconds
        message = "" if reason == "accepted" else f"  {base / seconds:6.3f}"
        print(f"{kind:<12}{reason:<13}{rows / seconds:>10,.0f} rows/s, {failed:,} rejected{message}")


def main() -> None:
    """Measure."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=10_000)
    rows = options.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("postgresql", "mysql", "sqlite"):
            with session_of(kind, folder) as session:
                measure(session, kind, rows)


if __name__ == "__main__":
    main()
