"""Fill every table of a database with SQL, at any revision, including edge cases of each type."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import starmap
from typing import Any

import sqlalchemy as sa

NOW = datetime(2026, 1, 31, 23, 59, 59, 123456, tzinfo=UTC)
JSONS = (
    '{"zebra": 1, "ant": {"b": 1.0, "a": [null, true, "\\u00fc \\ud83d\\ude00"]}, "big": 12345678901234567890}',
    "[]",
    '"text"',
    "17",
    "null",
)
TEXTS = ("plain", "a'b\"c\\d\te\nf\r", "ü 😀 \u202e\u0085", "", "{not json}")
MOMENTS = (
    NOW,
    NOW.replace(microsecond=0),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, tzinfo=UTC),
)


def fill(connection: sa.Connection, rows: int = 4) -> dict[str, int]:
    """Insert rows into each empty table, in the order of foreign keys; return the number of rows per table. Rows with a
    reference to their own table refer to the previous row."""
    metadata = sa.MetaData()
    metadata.reflect(connection)
    known: dict[str, list[dict[str, Any]]] = {}
    inspector = sa.inspect(connection)
    for table in order(metadata):
        checked = dict(starmap(choice, found(inspector, table.name)))
        result = [{**row_of(table, number, known), **checked} for number in range(rows)]
        known[table.name] = result
        plain = sa.table(table.name, *(sa.column(name) for name in result[0]))
        for row in result:
            connection.execute(sa.insert(plain), raw(connection, table, row))
    return {name: len(result) for name, result in known.items()}


def found(inspector: Any, table: str) -> list[tuple[str, list[str]]]:
    """Columns whose values a CHECK constraint names, with those."""
    stated = [constraint["sqltext"] for constraint in inspector.get_check_constraints(table)]
    return [(re.search(r"[a-z_]+", item)[0], re.findall(r"'(\w+)'", item)) for item in stated]


def choice(column: str, allowed: list[str]) -> tuple[str, str]:
    """One of them: of states one that has ended."""
    return column, "completed" if "completed" in allowed else allowed[-1]


def order(metadata: sa.MetaData) -> list[sa.Table]:
    """Parents first; a key that goes around is one that may be NULL, and stays so."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sa.exc.SAWarning)
        return [table for table in metadata.sorted_tables if table.name != "alembic_version"]


def row_of(table: sa.Table, number: int, known: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """One row."""
    keyed = {column.name: key for key in table.foreign_keys for column in (key.parent,)}
    return {
        column.name: referred(column, keyed[column.name], number, known)
        if column.name in keyed
        else value(table, column, number)
        for column in table.columns
    }


def referred(
    column: sa.Column, key: sa.ForeignKey, number: int, known: dict[str, list[dict[str, Any]]]
) -> Any:
    """What a foreign key names: the row of the same number."""
    target, name = key.column.table.name, key.column.name
    if target == column.table.name:
        return f"{target[:3]}_{number - 1:026}" if number else None
    if target not in known:
        assert column.nullable, f"{column} goes around and may not be NULL"
        return None
    return known[target][number][name]


def value(table: sa.Table, column: sa.Column, number: int) -> Any:
    """A value of the column's type, another one for each row where it is text."""
    kind, turn = column.type, number + len(column.name)
    if column.name in ("schedule", "next_run_at"):
        return None  # a restoration reads it
    if column.primary_key and isinstance(kind, sa.String):
        return f"{table.name[:3]}_{number:026}"
    if isinstance(kind, sa.Boolean):
        return bool(turn % 2)
    if isinstance(kind, sa.DateTime):
        return None if column.nullable and number == 3 else MOMENTS[turn % len(MOMENTS)]
    if isinstance(kind, sa.JSON):
        return None if column.nullable and number == 3 else JSONS[turn % len(JSONS)]
    if isinstance(kind, sa.LargeBinary):
        return bytes(range(256)) * number
    if isinstance(kind, sa.BigInteger) and not column.primary_key:
        return 2**62 + number
    if isinstance(kind, sa.SmallInteger):
        return 200 + number
    if isinstance(kind, sa.Integer):
        return number + 1 if column.primary_key else 2**31 - 1 - number
    return text(column, number)


def text(column: sa.Column, number: int) -> str | None:
    """A text that fits; the awkward ones where there is room."""
    if column.nullable and number == 3:
        return None
    room = column.type.length or 1_000
    return f"{number}{TEXTS[number % len(TEXTS)]}"[:room]


def raw(connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> dict[str, Any]:
    """As the driver takes it."""
    if connection.dialect.name != "sqlite":
        return row
    return {
        name: item.replace(tzinfo=None).isoformat(" ", "microseconds") if isinstance(item, datetime) else item
        for name, item in row.items()
    }


def contents(
    connection: sa.Connection, only: dict[str, list[str]] | None = None
) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables, with values normalized across databases; `only` restricts the columns."""
    metadata = sa.MetaData()
    metadata.reflect(connection)
    found = {}
    for table in metadata.tables.values():
        names = only.get(table.name, []) if only else [column.name for column in table.columns]
        if table.name == "alembic_version" or not names:
            continue
        stated = sa.select(*(plain(connection, table.c[name]) for name in sorted(names)))
        found[table.name] = sorted(
            (tuple(form(item) for item in row) for row in connection.execute(stated)), key=repr
        )
    return found


def plain(connection: sa.Connection, column: sa.Column) -> Any:
    """A column; of JSON its text."""
    if not isinstance(column.type, sa.JSON):
        return column
    if connection.dialect.name == "sqlite":
        return sa.type_coerce(column, sa.Text)
    return sa.cast(column, sa.Text)


def form(value: Any) -> Any:
    """A value in one form."""
    if isinstance(value, datetime):
        return (value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)).isoformat()
    return bytes(value) if isinstance(value, memoryview) else str(value) if isinstance(value, int) else value


def counts(found: dict[str, list[Any]]) -> dict[str, int]:
    """Rows by table."""
    return dict(sorted((name, len(rows)) for name, rows in found.items()))
