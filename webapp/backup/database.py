"""The database of a backup: the revisions of its schema, and its tables as named columns of seven kinds.

Revisions are those of Alembic (Flask-Migrate). Importing Alembic takes a third of a second, so this is not among the
extensions: no server or worker migrates.

Tables are the same for SQLite and PostgreSQL. They are read from the database itself, not from our models, so that a
database of an earlier release can be backed up and restored by a later one. A row is a JSON array. Times are RFC 3339
in UTC, bytes base 64, and a JSON document is its own text: its keys keep their order and its numbers their form.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

import orjson
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from flask import Flask
from flask_migrate import Migrate

from webapp import create_app, limits
from webapp.backup.archive import BackupError
from webapp.config import Settings
from webapp.extensions import db
from webapp.paths import ROOT

MIGRATIONS_FOLDER = ROOT / "webapp" / "migrations"


def init_app(app: Flask) -> Migrate:
    """Let `flask_migrate` functions work on the database of an application. Nothing is connected yet."""
    return Migrate(app, db, directory=str(MIGRATIONS_FOLDER), compare_type=True, render_as_batch=True)


# --- Revisions ----------------------------------------------------------------------------------------------


def newest_revision() -> str:
    """Return the revision of this release."""
    found = ScriptDirectory(str(MIGRATIONS_FOLDER)).get_current_head()
    assert found
    return found


def is_known_revision(revision: str) -> bool:
    """Return whether this release knows a revision: an unknown one is from a newer release."""
    try:
        return ScriptDirectory(str(MIGRATIONS_FOLDER)).get_revision(revision) is not None
    except CommandError:
        return False


def with_database_url(settings: Settings, url: str) -> Settings:
    """Return the settings with another database."""
    return dataclasses.replace(settings, database_url=url)


def migrate_to(settings: Settings, revision: str = "head") -> None:
    """Migrate the database of these settings to a revision, from any other one. Raises the error of the migration."""
    app = create_app(settings, routes=False)
    quiet = logging.getLogger("alembic").level
    logging.getLogger("alembic").setLevel(logging.WARNING)
    try:
        with app.app_context():
            try:
                # Flask-Migrate's own function would exit the process if a migration fails.
                command.upgrade(init_app(app).get_config(str(MIGRATIONS_FOLDER)), revision)
            finally:
                db.session.remove()
                db.engine.dispose()
    finally:
        logging.getLogger("alembic").setLevel(quiet)


# --- Tables -------------------------------------------------------------------------------------------------

REVISION_TABLE: Final = "alembic_version"
"""The table with the revision of a database. Backups do not include its rows."""
_KINDS: Final[tuple[tuple[str, Any], ...]] = (
    ("boolean", sa.Boolean),
    ("time", sa.DateTime),
    ("json", sa.JSON),
    ("binary", sa.LargeBinary),
    ("integer", sa.Integer),
    ("number", sa.Numeric),
    ("text", sa.String),
)
_COLUMN_TYPES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "boolean": sa.Boolean(),
        "time": sa.DateTime(timezone=True),
        "json": sa.Text(),
        "binary": sa.LargeBinary(),
        "integer": sa.Integer(),
        "number": sa.Float(),
        "text": sa.Text(),
    }
)
_REPLACEMENT: Final = (
    "\ufffd"  # PostgreSQL's text holds no NUL: Unicode, "Specials", the character that stands for another
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns with their kinds, in order, and those of its primary key."""

    name: str
    columns: Mapping[str, str]
    key: tuple[str, ...]


def tables(connection: sa.Connection) -> list[Table]:
    """Return the tables of a database, by name. Error: BackupError for a column of an unknown type."""
    inspector = sa.inspect(connection)
    found = []
    for name in sorted(inspector.get_table_names()):
        if name != REVISION_TABLE:
            columns = {column["name"]: _kind(name, column) for column in inspector.get_columns(name)}
            key = tuple(inspector.get_pk_constraint(name)["constrained_columns"])
            found.append(Table(name, columns, key))
    return found


def _kind(table: str, column: Mapping[str, Any]) -> str:
    for kind, family in _KINDS:
        if isinstance(column["type"], family):
            return kind
    raise BackupError(f"The column {table}.{column['name']} has an unsupported type: {column['type']!r}.")


def revision(connection: sa.Connection) -> str | None:
    """Return the revision of a database; None for one without our tables."""
    if not sa.inspect(connection).has_table(REVISION_TABLE):
        return None
    version = sa.column("version_num", sa.String)
    found = connection.execute(sa.select(version).select_from(sa.table(REVISION_TABLE))).scalars().all()
    return found[0] if found else None


# --- Out of a database ----------------------------------------------------------------------------------------


def dump_rows(connection: sa.Connection, table: Table) -> Iterator[bytes]:
    """Yield the rows of a table in the order of its key, each a line of JSON. Few are in memory at a time."""
    columns: list[Any] = []
    for name, kind in table.columns.items():
        if kind == "json" and connection.dialect.name == "postgresql":
            columns.append(sa.cast(sa.column(name), sa.Text).label(name))
        else:
            columns.append(sa.column(name, _COLUMN_TYPES[kind]))
    statement = sa.select(*columns).select_from(sa.table(table.name))
    statement = statement.order_by(*(sa.column(name) for name in table.key))
    found = connection.execute(statement.execution_options(yield_per=limits.BACKUP_ROWS_IN_MEMORY))
    converters = [
        (at, _CONVERSIONS[kind]) for at, kind in enumerate(table.columns.values()) if kind in _CONVERSIONS
    ]
    for row in found:
        values = list(row)
        for at, convert in converters:
            if values[at] is not None:
                values[at] = convert(values[at])
        yield orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)


def _time_text(value: datetime) -> str:
    aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return aware.isoformat().replace("+00:00", "Z")


_CONVERSIONS: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "time": _time_text,
        # SQLite converts texts that look like numbers.
        "json": lambda value: value if isinstance(value, str) else json.dumps(value),
        "binary": lambda value: base64.b64encode(value).decode(),
    }
)


# --- Into a database ------------------------------------------------------------------------------------------


def parse_rows(
    table: Table, json_lines: Iterator[bytes], conversions: Mapping[str, Callable[[Any], Any]]
) -> Iterator[list[Any]]:
    """Yield the rows of JSON lines, with each value converted by the function for its kind."""
    converters = [
        (at, conversions[kind]) for at, kind in enumerate(table.columns.values()) if kind in conversions
    ]
    width = len(table.columns)
    for line in json_lines:
        values = orjson.loads(line)
        if len(values) != width:
            raise BackupError(
                f"A row of {table.name} in the backup has {len(values)} values instead of {width}."
            )
        for at, convert in converters:
            if values[at] is not None:
                values[at] = convert(values[at])
        yield values


INTO_SQLITE: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "time": lambda text: datetime.fromisoformat(text).replace(tzinfo=None).isoformat(" ", "microseconds"),
        "boolean": int,
        "binary": base64.b64decode,
    }
)
INTO_POSTGRESQL: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {"text": lambda text: text.replace("\0", _REPLACEMENT), "binary": base64.b64decode}
)


def check_same_tables(database_tables: Sequence[Table], backup_tables: Sequence[Table]) -> None:
    """Check that the tables of a backup match those of the database. Error: BackupError."""
    database_columns = {table.name: table.columns for table in database_tables}
    backup_columns = {table.name: table.columns for table in backup_tables}
    for name in sorted({*database_columns, *backup_columns}):
        if database_columns.get(name, {}).items() ^ backup_columns.get(name, {}).items():
            raise BackupError(
                f"The columns of table {name} in the backup do not match its revision. If the database was changed by "
                "hand, restore it with the release that created the backup."
            )
