"""Restore a backup: to an empty installation, to another kind of database, to another storage; and migrate a database.

Everything is created next to the existing data. The restored database is complete, migrated to the revision of this
release and checked before it replaces the old one, and files that are not part of the backup are deleted last. After a
failure at any earlier point, the existing data is unchanged.

A migration to this release is atomic: PostgreSQL in one transaction, SQLite on a copy that replaces the file when it is
complete. If a migration fails, the database does not change.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

import sqlalchemy as sa
from flask import current_app
from sqlalchemy import select, update
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from webapp import clock, create_app, limits, models, storage
from webapp.access import actors
from webapp.access.models import Workspace
from webapp.audit.services import audit_log
from webapp.backup import backup, database
from webapp.backup.archive import BackupError, BackupReader, Manifest, as_backup_errors, sync_folder
from webapp.backup.backup import create_engine
from webapp.backup.database import REVISION_TABLE, Table
from webapp.config import Settings
from webapp.exports.models import Export, ExportPart
from webapp.extensions import db, read_session, write_session
from webapp.imports.models import ImportJob
from webapp.mail.models import Mail
from webapp.pushes.models import Push
from webapp.pushes.services import completion
from webapp.scenarios.models import Run, Scenario
from webapp.scenarios.services import schedules


def migrate(settings: Settings) -> None:
    """Migrate to this release's revision. Error: BackupError; the database is unchanged then."""
    try:
        if settings.is_sqlite:
            _migrate_copy(settings)
        else:
            database.migrate_to(settings)
    except BackupError:
        raise
    except Exception as error:  # a migration may raise any exception
        reason = str(getattr(error, "orig", error)).strip().partition("\n")[0]
        raise BackupError(f"The migration failed, and the database is unchanged: {reason}.") from error


def _migrate_copy(settings: Settings) -> None:
    place = SqliteTarget(settings)
    with as_backup_errors("The migration failed, and the database is unchanged", settings.data_dir):
        place.copy_current()
        try:
            database.migrate_to(database.with_database_url(settings, place.url))
            place.check_integrity()
        except BaseException:
            place.discard()
            raise
        place.replace_existing()


# --- Restoring ----------------------------------------------------------------------------------------------

SCHEMA: Final = "rowsmith_restoring"
_SIDE_FILES: Final = ("-wal", "-shm", "-journal")


class RestoreTarget(Protocol):
    """A database that is being created."""

    url: str
    """Its DATABASE_URL, for migrations."""

    def is_empty(self) -> bool:
        """Return whether the database that it will replace has no rows of our tables."""

    def create_empty(self) -> None:
        """Create the empty database, replacing the remains of an earlier attempt."""

    def load_rows(
        self, tables: Sequence[Table], rows: Iterable[tuple[Table, Iterator[bytes]]]
    ) -> dict[str, int]:
        """Load rows into empty tables, and return the number of rows by table. Error: BackupError for invalid rows."""

    def replace_existing(self) -> None:
        """Replace the existing database atomically."""

    def discard(self) -> None:
        """Remove it."""


def restore_target(settings: Settings) -> RestoreTarget:
    """Return where the database of these settings is created."""
    return SqliteTarget(settings) if settings.is_sqlite else PostgresqlTarget(settings)


def _count_rows(rows: Iterator[list[Any]], counts: dict[str, int], name: str) -> Iterator[list[Any]]:
    counts.setdefault(name, 0)
    for row in rows:
        counts[name] += 1
        yield row


def _quoted(*names: str) -> str:
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


# --- SQLite -----------------------------------------------------------------------------------------------------


class SqliteTarget:
    """A new file next to the database file."""

    def __init__(self, settings: Settings) -> None:
        self._file = Path(sa.make_url(settings.sqlalchemy_url).database or "")
        self._new_file = self._file.with_name(f".{self._file.name}.restoring")
        self.url = f"sqlite:///{self._new_file}"

    def is_empty(self) -> bool:
        """Return whether the file is missing, or has no rows."""
        return not self._file.exists() or _has_no_rows(f"sqlite:///{self._file}")

    def create_empty(self) -> None:
        """Create an empty file."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.discard()
        os.close(os.open(self._new_file, os.O_CREAT | os.O_WRONLY, 0o600))

    def copy_current(self) -> None:
        """Copy the current database to the file."""
        self.create_empty()
        with (
            closing(sqlite3.connect(self._file, timeout=limits.SQLITE_BUSY_MS / 1000)) as source,
            closing(sqlite3.connect(self._new_file)) as sink,
        ):
            source.backup(sink)

    def check_integrity(self) -> None:
        """Check the foreign keys and the integrity of the file. Error: BackupError."""
        with closing(sqlite3.connect(self._new_file)) as connection:
            self._check_connection(connection)

    def discard(self) -> None:
        """Remove the file."""
        for suffix in ("", *_SIDE_FILES):
            self._new_file.with_name(self._new_file.name + suffix).unlink(missing_ok=True)

    def load_rows(
        self, tables: Sequence[Table], rows: Iterable[tuple[Table, Iterator[bytes]]]
    ) -> dict[str, int]:
        """Load all rows in one transaction, then check the file."""
        counts = {item.name: 0 for item in tables}
        with closing(sqlite3.connect(self._new_file, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=OFF")  # the whole file is synced before it takes its place
            connection.execute("PRAGMA foreign_keys=OFF")
            connection.execute("BEGIN")
            triggers = connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall()
            for name, _ in triggers:  # the rows that triggers would add are in the backup
                connection.execute(f"DROP TRIGGER {_quoted(name)}")
            for table, lines in rows:
                placeholders = ", ".join("?" * len(table.columns))
                insert = (
                    f"INSERT INTO {_quoted(table.name)} ({_quoted(*table.columns)}) VALUES ({placeholders})"  # noqa: S608
                )
                values = _count_rows(
                    database.parse_rows(table, lines, database.INTO_SQLITE), counts, table.name
                )
                try:
                    connection.executemany(insert, values)
                except (sqlite3.IntegrityError, OverflowError) as error:
                    raise _row_error(table.name, counts[table.name], str(error)) from error
            for _, definition in triggers:
                connection.execute(definition)
            connection.execute("COMMIT")
            self._check_connection(connection)
        return counts

    @staticmethod
    def _check_connection(connection: sqlite3.Connection) -> None:
        if broken := connection.execute("PRAGMA foreign_key_check").fetchmany(3):
            message = "; ".join(f"{table} row {row} to {parent}" for table, row, parent, _ in broken)
            raise BackupError(f"Rows of the backup refer to missing rows: {message}.")
        result = connection.execute("PRAGMA integrity_check").fetchone()[0]
        if result != "ok":
            raise BackupError(f"The database could not be created: {result}.")

    def replace_existing(self) -> None:
        """Fold the WAL in, sync, and rename. The old file's WAL goes first: it must not be read into the new one."""
        checkpoint_wal(self._new_file)
        handle = os.open(self._new_file, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        if self._file.exists():
            checkpoint_wal(self._file)
        for suffix in _SIDE_FILES:
            self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
        os.replace(self._new_file, self._file)
        sync_folder(self._file.parent)


def checkpoint_wal(path: Path) -> None:
    """Write the WAL of a SQLite file back to the file. An unreadable file has no content worth keeping."""
    try:
        with closing(sqlite3.connect(path, timeout=limits.SQLITE_BUSY_MS / 1000)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            raise BackupError(f"{path} is in use: stop Rowsmith first.") from error


def _has_no_rows(url: str) -> bool:
    """Return whether no table of ours in a database has a row. An unreadable database counts as full."""
    database_engine = create_engine(url)
    try:
        with database_engine.connect() as connection:
            names = set(sa.inspect(connection).get_table_names()) & set(models.Base.metadata.tables)
            return not any(
                connection.execute(sa.select(sa.literal(1)).select_from(sa.table(name)).limit(1)).first()
                for name in sorted(names)
            )
    except DatabaseError as error:
        if isinstance(error.orig, sqlite3.DatabaseError):
            return False
        raise
    finally:
        database_engine.dispose()


def _row_error(table: str, row: int, reason: str) -> BackupError:
    return BackupError(f"Row {row:,} of {table} does not fit into this database: {reason.splitlines()[0]}.")


# --- PostgreSQL -------------------------------------------------------------------------------------------------

_FOREIGN_KEYS: Final = """
SELECT c.relname, k.conname, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
WHERE k.contype = 'f' AND c.relnamespace = current_schema()::regnamespace ORDER BY 1, 2
"""
_SERIAL_COLUMNS: Final = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = current_schema() AND (left(column_default, 8) = 'nextval(' OR is_identity = 'YES')
"""
# Our tables, and those that refer to them: of a newer release, say.
_OUR_TABLES: Final = """
WITH RECURSIVE ours AS (
    SELECT c.oid FROM pg_class c
    WHERE c.relkind = 'r' AND c.relnamespace = to_regnamespace(:schema) AND c.relname = ANY(:names)
  UNION
    SELECT k.conrelid FROM pg_constraint k JOIN ours ON k.confrelid = ours.oid
    JOIN pg_class c ON c.oid = k.conrelid
    WHERE k.contype = 'f' AND c.relnamespace = to_regnamespace(:schema)
)
SELECT c.relname FROM ours JOIN pg_class c ON c.oid = ours.oid ORDER BY 1
"""


# Functions of triggers: those of a schema, and those that tables are guarded by.
_SCHEMA_FUNCTIONS: Final = """
SELECT p.proname, pg_get_function_identity_arguments(p.oid) FROM pg_proc p
WHERE p.pronamespace = to_regnamespace(:schema) ORDER BY 1, 2
"""
_TRIGGER_FUNCTIONS: Final = """
SELECT DISTINCT p.proname, pg_get_function_identity_arguments(p.oid) FROM pg_trigger t
JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid
WHERE NOT t.tgisinternal AND c.relname = ANY(:names)
AND c.relnamespace = to_regnamespace(:schema) AND p.pronamespace = to_regnamespace(:schema)
"""


class PostgresqlTarget:
    """A new schema next to the schema of the service's tables."""

    def __init__(self, settings: Settings) -> None:
        self._service_url = settings.sqlalchemy_url
        url = sa.make_url(settings.database_url)
        options = f"{url.query.get('options', '')} -csearch_path={SCHEMA}".strip()
        self.url = url.update_query_dict({"options": options}).render_as_string(hide_password=False)
        self._schema_url = with_driver(self.url)

    def is_empty(self) -> bool:
        """Return whether the service's schema has no row of our tables."""
        return _has_no_rows(self._service_url)

    def create_empty(self) -> None:
        """Create an empty schema."""
        with self._transaction(self._service_url) as connection:
            connection.exec_driver_sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
            connection.exec_driver_sql(f"CREATE SCHEMA {SCHEMA}")

    def discard(self) -> None:
        """Remove the schema."""
        with self._transaction(self._service_url) as connection:
            connection.exec_driver_sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")

    @contextmanager
    def _transaction(self, url: str) -> Iterator[sa.Connection]:
        database_engine = create_engine(url)
        try:
            with database_engine.begin() as connection:
                yield connection
        finally:
            database_engine.dispose()

    def load_rows(
        self, tables: Sequence[Table], rows: Iterable[tuple[Table, Iterator[bytes]]]
    ) -> dict[str, int]:
        """Load all rows by COPY, in one transaction. Creating the dropped foreign keys again checks every row."""
        counts = {item.name: 0 for item in tables}
        with self._transaction(self._schema_url) as connection:
            keys = connection.exec_driver_sql(_FOREIGN_KEYS).all()
            for table, name, _ in keys:
                connection.exec_driver_sql(f"ALTER TABLE {_quoted(table)} DROP CONSTRAINT {_quoted(name)}")
            for table, lines in rows:
                self._copy(connection, table, lines, counts)
            for table, name, definition in keys:
                try:
                    connection.exec_driver_sql(
                        f"ALTER TABLE {_quoted(table)} ADD CONSTRAINT {_quoted(name)} {definition}"
                    )
                except sa.exc.IntegrityError as error:
                    reason = str(error.orig).splitlines()
                    raise BackupError(
                        f"Rows of the backup refer to missing rows: {reason[-1].strip()}"
                    ) from error
            self._continue_sequences(connection)
        return counts

    @staticmethod
    def _copy(
        connection: sa.Connection, table: Table, lines: Iterator[bytes], counts: dict[str, int]
    ) -> None:
        import psycopg

        # The rows that its triggers would add are in the backup.
        connection.exec_driver_sql(f"ALTER TABLE {_quoted(table.name)} DISABLE TRIGGER USER")
        raw: Any = connection.connection.dbapi_connection
        values = _count_rows(database.parse_rows(table, lines, database.INTO_POSTGRESQL), counts, table.name)
        statement = f"COPY {_quoted(table.name)} ({_quoted(*table.columns)}) FROM STDIN"
        try:
            with raw.cursor() as cursor, cursor.copy(statement) as copy:
                for row in values:
                    copy.write_row(row)
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            raise _row_error(table.name, counts[table.name], str(error)) from error
        connection.exec_driver_sql(f"ALTER TABLE {_quoted(table.name)} ENABLE TRIGGER USER")

    @staticmethod
    def _continue_sequences(connection: sa.Connection) -> None:
        """Continue generated numbers after the highest existing one."""
        for table, column in connection.exec_driver_sql(_SERIAL_COLUMNS).all():
            connection.exec_driver_sql(
                f"SELECT setval(pg_get_serial_sequence('{_quoted(table)}', '{column}'), "  # noqa: S608 - names of ours
                f"coalesce(max({_quoted(column)}), 1), max({_quoted(column)}) IS NOT NULL) FROM {_quoted(table)}"
            )

    def replace_existing(self) -> None:
        """Replace the old tables by the new ones in one transaction."""
        with self._transaction(self._service_url) as connection:
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{round(limits.BACKUP_CONNECT_SECONDS)}s'")
            schema = connection.exec_driver_sql("SELECT current_schema()").scalar_one()
            new_tables = self._new_table_names(connection)
            names = sorted({*models.Base.metadata.tables, *new_tables, REVISION_TABLE})
            old_tables = (
                connection.execute(sa.text(_OUR_TABLES), {"schema": schema, "names": names}).scalars().all()
            )
            trigger_functions = connection.execute(
                sa.text(_TRIGGER_FUNCTIONS), {"schema": schema, "names": list(old_tables)}
            ).all()
            if old_tables:
                qualified_names = ", ".join(f"{_quoted(schema)}.{_quoted(name)}" for name in old_tables)
                connection.exec_driver_sql(f"DROP TABLE {qualified_names} CASCADE")
            for name in new_tables:
                connection.exec_driver_sql(
                    f"ALTER TABLE {SCHEMA}.{_quoted(name)} SET SCHEMA {_quoted(schema)}"
                )
            for name, arguments in trigger_functions:
                connection.exec_driver_sql(f"DROP FUNCTION {_quoted(schema)}.{_quoted(name)}({arguments})")
            for name, arguments in connection.execute(sa.text(_SCHEMA_FUNCTIONS), {"schema": SCHEMA}).all():
                function = f"{SCHEMA}.{_quoted(name)}({arguments})"
                connection.exec_driver_sql(f"ALTER FUNCTION {function} SET SCHEMA {_quoted(schema)}")
            connection.exec_driver_sql(f"DROP SCHEMA {SCHEMA}")

    @staticmethod
    def _new_table_names(connection: sa.Connection) -> list[str]:
        return sorted(sa.inspect(connection).get_table_names(schema=SCHEMA))


def with_driver(url: str) -> str:
    """Return a DATABASE_URL in the form that SQLAlchemy needs."""
    if url.startswith("sqlite"):
        return url
    return sa.make_url(url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def read_tables(url: str) -> list[Table]:
    """Return the tables of a database that is being created."""
    database_engine = create_engine(with_driver(url))
    try:
        with database_engine.connect() as connection:
            return database.tables(connection)
    finally:
        database_engine.dispose()


_UNFINISHED: Final = ("queued", "running")
_ENDED_MESSAGES: Final = {
    Run: (
        "The service was restored from a backup that was taken while this run was running or queued. Its program may "
        "have run since; it is not repeated."
    ),
    Push: (
        "The service was restored from a backup that was taken while this push was running or queued. Rows that were "
        "not sent by then may have been sent since: check the target before you retry pending rows."
    ),
}


def end_unfinished_work(made_at: str) -> dict[str, list[str]]:
    """End, or release, unfinished work in a backup made at `made_at`.

    Return descriptions such as `psh_01J… to customers` of the `runs` and `pushes` that were ended and of the `exports`
    that workers start again. Needs the context of an application with the restored database.
    """
    now = clock.now()
    with write_session() as session:
        open_exports = select(Export.id, Export.file_name, Export.format).where(
            Export.status.in_(_UNFINISHED)
        )
        exports = [f"{row.id} {row.file_name or row.format}" for row in session.execute(open_exports)]
        for model in (Export, ExportPart, ImportJob):
            # Any worker can take it then, and its previous worker can no longer write.
            statement = update(model).where(model.status == "running")
            statement = statement.values(epoch=model.epoch + 1, lease_owner=None, lease_until=None)
            session.execute(statement.execution_options(synchronize_session=False))
        runs = _mark_ended(session, Run, now, made_at)
        pushes = _mark_ended(session, Push, now, made_at)
        for push in session.scalars(select(Push).where(Push.id.in_(pushes))):
            # Rows of the hour are counted in Redis, which no backup has: there is nothing to give back.
            push.request = {name: value for name, value in push.request.items() if name != "quota"}
        of_runs = (
            select(Run.id, Scenario.name)
            .join(Scenario, Scenario.id == Run.scenario_id)
            .where(Run.id.in_(runs))
        )
        of_pushes = select(Push.id, Push.target).where(Push.id.in_(pushes))
        ended = {
            "runs": [f"{row.id} of {row.name}" for row in session.execute(of_runs)],
            "pushes": [f"{row.id} to {row.target}" for row in session.execute(of_pushes)],
            "exports": exports,
        }
        # Times that came between the backup and now had their run then, or are over: the next one counts.
        for scenario in session.scalars(select(Scenario).where(Scenario.next_run_at <= now)):
            scenario.next_run_at = schedules.next_run(scenario.schedule, now)
        # Unsent mails may have been sent since, or are outdated. (Deliveries of webhooks are sent again: receivers
        # recognize each by its id.)
        reason = "The service was restored from a backup. It is unknown whether this e-mail was sent."
        unsent = update(Mail).where(Mail.status == "queued")
        unsent = unsent.values(status="failed", ended_at=now, claimed_until=None, sealed=None, reason=reason)
        session.execute(unsent.execution_options(synchronize_session=False))
    for push_id in pushes:
        completion.settle(push_id)
    return ended


def _mark_ended(session: Session, model: Any, now: datetime, made_at: str) -> list[str]:
    """Mark work that must not be repeated as ended. The sweeper completes the rest for runs."""
    error = {"code": "worker_lost", "message": _ENDED_MESSAGES[model], "details": {"backup": made_at}}
    statement = (
        update(model)
        .where(model.status.in_(_UNFINISHED))
        .values(
            status="failed",
            error=error,
            finished_at=now,
            epoch=model.epoch + 1,
            lease_owner=None,
            lease_until=None,
        )
        .returning(model.id)
        .execution_options(synchronize_session=False)
    )
    return list(session.scalars(statement))


PrintLine = Callable[[str], None]


@dataclass
class RestoreResult:
    """The result of a restoration. `lost_secrets`: stored secrets that no key of the ring can decrypt."""

    manifest: Manifest
    revision: str
    rows: int = 0
    files: int = 0
    lost_secrets: int = 0
    ended: dict[str, list[str]] = field(default_factory=dict)


def check_backup(reader: BackupReader) -> None:
    """Check that a backup is complete, and not of a newer release. Error: BackupError."""
    if not database.is_known_revision(reader.manifest.revision):
        raise BackupError(
            f"{reader.path} was created by a newer release of Rowsmith (revision {reader.manifest.revision}; this one "
            f"knows up to {database.newest_revision()}). Restore it with that release, or a later one."
        )
    reader.check()


def existing_data(settings: Settings) -> list[str]:
    """Return a sentence about each part of an existing installation. Needs the application's context."""
    found = []
    if not restore_target(settings).is_empty():
        found.append("the database has rows")
    if not backup.is_empty(storage.get_storage(current_app)):
        found.append("the storage has files")
    if backup.sqlite_target_files(settings.data_dir):
        found.append("the data folder has files of SQLite connections")
    return found


def restore(
    settings: Settings,
    reader: BackupReader,
    *,
    write_keys: Callable[[], None],
    print_line: PrintLine = lambda _line: None,
) -> RestoreResult:
    """Replace the installation of these settings with a verified backup. Needs the application's context. `write_keys`
    is called right before the database is replaced: it stores the keys of the backup where the service reads them.
    Error: BackupError."""
    manifest = reader.manifest
    done = RestoreResult(manifest, database.newest_revision())
    place = restore_target(settings)
    with as_backup_errors("Nothing was restored", settings.data_dir):
        place.create_empty()
        try:
            done.rows = _load(settings, reader, place)
            print_line(
                f"database: {done.rows:,} rows in {len(manifest.tables)} tables, revision {manifest.revision}"
            )
            database.migrate_to(database.with_database_url(settings, place.url))
            _prepare_database(settings, place, done)
            keys = backup.restore_files(reader, storage.get_storage(current_app))
            done.files = len(keys)
            print_line(f"files: {done.files:,}")
        except BaseException:
            place.discard()
            raise
        write_keys()
        place.replace_existing()
    with as_backup_errors(
        "The database was restored, but some files were not: run the command again", settings.data_dir
    ):
        backup.restore_targets(reader, settings.data_dir)
        backup.delete_other_files(storage.get_storage(current_app), keys)
    return done


def _load(settings: Settings, reader: BackupReader, place: RestoreTarget) -> int:
    """Create the tables of the backup's revision, load its rows, and return their number."""
    manifest = reader.manifest
    database.migrate_to(database.with_database_url(settings, place.url), manifest.revision)
    tables = [
        database.Table(name, table.columns, tuple(table.key)) for name, table in manifest.tables.items()
    ]
    database.check_same_tables(read_tables(place.url), tables)
    counts = place.load_rows(
        tables, ((table, reader.read_lines(manifest.tables[table.name].part)) for table in tables)
    )
    for name, table in manifest.tables.items():
        if counts[name] != table.rows:
            raise BackupError(f"{name} has {counts[name]:,} rows after loading instead of {table.rows:,}.")
    return sum(counts.values())


def _prepare_database(settings: Settings, place: RestoreTarget, done: RestoreResult) -> None:
    """Prepare the new database before it is used: unfinished work, the audit log, a check of the secrets."""
    app = create_app(database.with_database_url(settings, place.url), routes=False)
    with app.app_context():
        try:
            done.ended = end_unfinished_work(done.manifest.made_at)
            counts: dict[str, Any] = {kind: len(work) for kind, work in done.ended.items()}
            for workspace_id in db.session.scalars(select(Workspace.id)).all():
                actor = actors.system_actor(workspace_id)
                audit_log.record(actor, "service.restore", join=True, backup=done.manifest.made_at, **counts)
            db.session.commit()
            with read_session() as session:
                done.lost_secrets = backup.count_secrets(session.connection(), settings.vault_keys)[1]
        finally:
            audit_log.close(app)
            db.session.remove()
            db.engine.dispose()
