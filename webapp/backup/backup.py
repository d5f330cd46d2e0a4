"""Back up the running service: database, files, vocabularies and, if requested, the encryption keys.

The keys are SECRET_KEY and the ring of the vault, plain or encrypted with a passphrase.
"""

from __future__ import annotations

import base64
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import orjson
import sqlalchemy as sa
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from flask import current_app
from sqlalchemy import select

from webapp import app_vault, clock, limits, storage
from webapp.access import actors
from webapp.access.models import Workspace
from webapp.audit.services import audit_log
from webapp.backup import database
from webapp.backup.archive import (
    BackupError,
    BackupReader,
    BackupWriter,
    Manifest,
    MissingFile,
    TablePart,
    as_backup_errors,
)
from webapp.backup.database import Table
from webapp.config import Settings
from webapp.extensions import READ_ONLY_OPTION, db
from webapp.row_templates.services import vocabularies
from webapp.security import sealing
from webapp.security.sealing import Vault, VaultError
from webapp.storage import MissingError, Storage, StoredFile
from webapp.work import batch_delete

PLAIN_KEYS_FILE: Final = "keys.env"
SEALED_KEYS_FILE: Final = "keys.sealed"
_KNOWN_TEXT: Final = "rowsmith"
_PURPOSE: Final = "rowsmith.backup.mark"
_MARK_CHARS: Final = 24


def format_keys(secret_key: str, vault_keys: Sequence[str]) -> str:
    """Return the keys in the format of a data folder's `keys.env`."""
    return f"SECRET_KEY={secret_key}\nVAULT_KEYS={','.join(vault_keys)}\n"


def parse_keys(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the SECRET_KEY and the key ring, newest first, of a `keys.env`."""
    found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    ring = found.get("VAULT_KEYS", "").split(",")
    return found.get("SECRET_KEY", ""), tuple(key.strip() for key in ring if key.strip())


def current_key_ring(settings: Settings) -> tuple[str, ...]:
    """Return the current key ring, newest first: a rotation may have added a key to the data folder since we
    started."""
    found = app_vault.read_key_ring(settings.data_dir / "keys.env")
    return tuple(found) if set(settings.vault_keys) <= set(found) else settings.vault_keys


def read_passphrase(file: Path) -> str:
    """Return the first line of a file. Error: BackupError if the file is missing or the line is too short."""
    try:
        found = file.read_text().partition("\n")[0].strip()
    except OSError as error:
        raise BackupError(f"The passphrase cannot be read: {file}: {error.strerror}.") from error
    if len(found) < limits.BACKUP_PASSPHRASE_MIN_CHARS:
        raise BackupError(
            f"The passphrase in {file} has {len(found)} characters; it must have at least "
            f"{limits.BACKUP_PASSPHRASE_MIN_CHARS}."
        )
    return found


def encrypt_keys(text: str, passphrase: str, salt: bytes) -> bytes:
    """Return the encrypted keys: JSON with the parameters for deriving the encryption key from the passphrase. `salt`
    is random."""
    cost = limits.BACKUP_SCRYPT_COST
    token = sealing.seal(_derived_key(passphrase, salt, cost), text.encode())
    return orjson.dumps(
        {"kdf": "scrypt", "cost": cost, "salt": base64.b64encode(salt).decode(), "token": token.decode()}
    )


def decrypt_keys(raw: bytes, passphrase: str) -> str:
    """Decrypt the keys. Error: BackupError for a wrong passphrase."""
    try:
        document = orjson.loads(raw)
        salt, cost, token = (
            base64.b64decode(document["salt"]),
            int(document["cost"]),
            document["token"].encode(),
        )
    except (ValueError, KeyError, AttributeError, TypeError):
        raise BackupError("The keys in the backup cannot be read.") from None
    if not 0 < cost <= limits.BACKUP_SCRYPT_MAX_COST:
        raise BackupError("The keys in the backup cannot be read: their cost parameter is out of range.")
    found = sealing.unseal(_derived_key(passphrase, salt, cost), token)
    if found is None:
        raise BackupError(
            "The passphrase is wrong: the keys of this backup were encrypted with a different one."
        )
    return found.decode()


def _derived_key(passphrase: str, salt: bytes, cost: int) -> bytes:
    return Scrypt(salt=salt, length=32, n=cost, r=8, p=1).derive(passphrase.encode())


def key_fingerprint(secret_key: str) -> str:
    """Return a value that identifies a SECRET_KEY without revealing anything about it."""
    return base64.urlsafe_b64encode(sealing.derive(secret_key, _PURPOSE)).decode()[:_MARK_CHARS]


def vault_fingerprint(ring: Sequence[str]) -> str:
    """Return a known text encrypted with the newest key of a ring; "" without one."""
    return Vault(ring).seal(_KNOWN_TEXT).decode() if ring else ""


def can_decrypt(ring: Sequence[str], encrypted_word: str) -> bool:
    """Return whether a ring can decrypt what the newest key of the backup has encrypted."""
    if not encrypted_word:
        return True
    try:
        return Vault(ring).open(encrypted_word.encode()) == _KNOWN_TEXT
    except (VaultError, ValueError):
        return False


# All columns that are encrypted by the vault, to check whether a key ring can decrypt them.

_SEALED_PREFIX = "sealed"
"""Prefix of the names of these columns in every table; checked in tests/upkeep."""


def count_secrets(connection: sa.Connection, ring: Sequence[str]) -> tuple[int, int]:
    """Return how many secrets a ring can decrypt, and how many it cannot."""
    vault, opened, lost = Vault(ring), 0, 0
    for table in database.tables(connection):
        for name, kind in table.columns.items():
            if kind != "binary" or not name.startswith(_SEALED_PREFIX):
                continue
            column = sa.column(name, sa.LargeBinary)
            statement = sa.select(column).select_from(sa.table(table.name)).where(column.is_not(None))
            for item in connection.execute(
                statement.execution_options(yield_per=limits.BACKUP_ROWS_IN_MEMORY)
            ).scalars():
                try:
                    vault.open(bytes(item))
                    opened += 1
                except VaultError:
                    lost += 1
    return opened, lost


# --- Backup -------------------------------------------------------------------------------------------------


def create_engine(url: str) -> sa.Engine:
    """Return an engine that keeps no connection. `url` as `Settings.sqlalchemy_url`."""
    if url.startswith("sqlite"):
        options = {"timeout": limits.SQLITE_BUSY_MS / 1000, "check_same_thread": False}
    else:
        options = {"connect_timeout": round(limits.BACKUP_CONNECT_SECONDS)}
    return sa.create_engine(url, poolclass=sa.NullPool, connect_args=options)


@contextmanager
def snapshot(settings: Settings) -> Iterator[sa.Connection]:
    """Open a transaction that reads the database as of its first query without blocking writers: on PostgreSQL
    REPEATABLE READ, on SQLite a reader of the WAL, which grows as long as the transaction is open."""
    database_engine = create_engine(settings.sqlalchemy_url)
    options: dict[str, Any] = {READ_ONLY_OPTION: True}
    if not settings.is_sqlite:
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    try:
        with database_engine.connect() as connection:
            connection = connection.execution_options(**options)
            with connection.begin():
                # BEGIN alone does not take the snapshot, the first query does.
                connection.exec_driver_sql(
                    "SELECT count(*) FROM sqlite_master" if settings.is_sqlite else "SELECT 1"
                )
                yield connection
    finally:
        database_engine.dispose()


# Data outside of the database: files in storage, vocabularies, and the files of SQLite connections.
#
# The content behind a storage key never changes, so files are copied while the service is running: first all that
# exist, then, with the database snapshot open, those added since. During this time, `services.holding` defers
# deletions. If a file is missing nevertheless, the backup takes a new snapshot.

LISTING_FILE: Final = "files.ndjson"
"""The part that maps each file in storage to the part that contains it: one `{key, part, size}` per line."""
TARGETS_FOLDER: Final = "targets"
"""The folder of SQLite connections in the data folder, and in a backup."""
_TEMPORARY_PREFIXES: Final = ("health/",)  # files that `Storage.is_usable` writes
_SIDE_FILES: Final = ("-wal", "-shm", "-journal")
# The columns with storage keys of files that must exist. The files of other columns are caches.
FILE_COLUMNS: Final = (
    ("connections", "document_key"),
    ("export_parts", "storage_key"),
    ("exports", "storage_key"),
    ("fetched", "storage_key"),
    ("workspace_files", "storage_key"),
)
# Files of exports whose removal has begun (`file_removed_at`) may be gone while their names are still there.
_EXPORT_ID: Final = {"exports": "id", "export_parts": "export_id"}
CACHE_FILE_COLUMNS: Final = (
    ("connections", "metadata_key"),
    ("import_jobs", "document_key"),
    ("import_jobs", "result_key"),
)


class FileCopier:
    """The files of the storage that have been copied into a backup."""

    def __init__(self, store: Storage, writer: BackupWriter) -> None:
        self._store, self._writer = store, writer
        self._copied: dict[str, tuple[str, int, str | None]] = {}
        self._number = 0

    def copy_new(self) -> None:
        """Copy the files that were not copied yet, and skip those that are deleted in the meantime."""
        for node in self._store.walk():
            copied = self._copied.get(node.key)
            if not node.key.startswith(_TEMPORARY_PREFIXES) and (copied is None or copied[2] != node.tag):
                self._copy(node)

    def copy_referenced(self, connection: sa.Connection, tables: Iterable[Table]) -> None:
        """Copy the files that rows of a snapshot refer to before the others, which are less likely to be deleted."""
        for lacking in self.missing_files(connection, tables):
            try:
                self._copy(self._store.head(lacking.key))
            except (MissingError, ValueError):  # gone, or none of our keys
                continue

    def _copy(self, one: StoredFile) -> None:
        try:
            pieces = self._store.get(one.key)
        except MissingError:
            return
        self.add(one.key, pieces, one.tag)

    def add(self, key: str, pieces: Iterable[bytes], tag: str | None = None) -> None:
        """Copy one file."""
        self._number += 1
        part = f"files/{self._number:08}"
        with self._writer.part(part) as file:
            for piece in pieces:
                file.write(piece)
            self._copied[key] = (part, file.bytes, tag)

    def __contains__(self, key: str) -> bool:
        return key in self._copied

    def missing_files(self, connection: sa.Connection, tables: Iterable[Table]) -> list[MissingFile]:
        """Return the files that rows of a snapshot refer to and that were not copied."""
        columns = {item.name: item.columns for item in tables}
        found = []
        for table, column in FILE_COLUMNS:
            if column not in columns.get(table, ()):
                continue  # of an earlier revision
            statement: sa.Select[str] = (
                sa.select(sa.column(column, sa.String))
                .select_from(sa.table(table))
                .where(sa.column(column).is_not(None))
            )
            if table in _EXPORT_ID and "file_removed_at" in columns["exports"]:
                removed = sa.table("exports", sa.column("id"), sa.column("file_removed_at"))
                removed_ids = sa.select(removed.c.id).where(removed.c.file_removed_at.is_not(None))
                statement = statement.where(sa.column(_EXPORT_ID[table]).not_in(removed_ids))
            keys = connection.execute(
                statement.distinct().execution_options(yield_per=limits.BACKUP_ROWS_IN_MEMORY)
            ).scalars()
            found += [MissingFile(table=table, key=key) for key in keys if key not in self._copied]
        return found

    def write_listing(self) -> tuple[int, int]:
        """Write which part has which file. Return the number of files and their total size in bytes."""
        with self._writer.part(LISTING_FILE) as file:
            for key, (part, size, _) in sorted(self._copied.items()):
                line = {"key": key, "part": part, "size": size}
                file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        return len(self._copied), sum(size for _, size, _ in self._copied.values())


def restore_files(reader: BackupReader, store: Storage) -> set[str]:
    """Store the files of a backup in a storage, and return their keys."""
    keys = set()
    for line in reader.read_lines(LISTING_FILE):
        entry = orjson.loads(line)
        store.put(entry["key"], reader.read_chunks(entry["part"]))
        keys.add(entry["key"])
    return keys


def is_empty(store: Storage) -> bool:
    """Return whether a storage contains only vocabularies, which are the same everywhere."""
    passing = (*_TEMPORARY_PREFIXES, f"{vocabularies.FOLDER}/")
    return all(node.key.startswith(passing) for node in store.walk())


def delete_other_files(store: Storage, keys: set[str]) -> int:
    """Remove the files of a storage that are not among `keys`, and return their number."""
    keys_to_delete = [
        node.key
        for node in store.walk()
        if node.key not in keys and not node.key.startswith(f"{vocabularies.FOLDER}/")
    ]
    for key in keys_to_delete:
        store.delete(key)
    return len(keys_to_delete)


# --- Vocabularies ---------------------------------------------------------------------------------------------


def pinned_vocabularies(connection: sa.Connection, tables: Iterable[Table]) -> set[str]:
    """Return the vocabularies that the versions of templates pin."""
    if "template_versions" not in {table.name for table in tables}:
        return set()
    vocabulary_id = sa.column("pins", sa.JSON)["vocabulary"].as_string()
    found = connection.execute(
        sa.select(vocabulary_id).select_from(sa.table("template_versions")).distinct()
    ).scalars()
    return {item for item in found if item}


def add_vocabularies(files: FileCopier, vocabulary_ids: Iterable[str]) -> list[str]:
    """Copy the vocabularies that are only on the disk of this machine; return the ids of those that are missing."""
    missing = []
    for vocabulary_id in sorted(vocabulary_ids):
        if vocabularies.key_of(vocabulary_id) in files:
            continue
        path = vocabularies.local_path(vocabulary_id)
        if path.is_file():
            files.add(vocabularies.key_of(vocabulary_id), _read_chunks(path))
        else:
            missing.append(vocabulary_id)
    return missing


def _read_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(limits.STORAGE_CHUNK_BYTES):
            yield piece


# --- Files of SQLite connections --------------------------------------------------------------------------------


def add_targets(writer: BackupWriter, data_dir: Path) -> int:
    """Copy the files of SQLite connections, each in a consistent state without blocking writers; return their
    number."""
    found, folder = sqlite_target_files(data_dir), data_dir / TARGETS_FOLDER
    for path in found:
        with tempfile.TemporaryDirectory(prefix=".rowsmith-", dir=writer.path.parent) as scratch:
            copy = Path(scratch) / "copy"
            # By SQLite's backup API: readers do not block writers in WAL mode, which we use.
            with (
                closing(
                    sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=limits.SQLITE_BUSY_MS / 1000)
                ) as source,
                closing(sqlite3.connect(copy)) as sink,
            ):
                source.backup(sink)
            with writer.part(f"{TARGETS_FOLDER}/{path.relative_to(folder).as_posix()}") as file:
                for piece in _read_chunks(copy):
                    file.write(piece)
    return len(found)


def restore_targets(reader: BackupReader, data_dir: Path) -> int:
    """Replace the files of SQLite connections in a data folder by those of a backup, and return their number."""
    names = [name for name in reader.manifest.parts if name.startswith(f"{TARGETS_FOLDER}/")]
    for name in names:
        path = data_dir / name
        if ".." in Path(name).parts:
            continue  # not written by us
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new_file = path.with_name(f".{path.name}.restoring")
        reader.extract(name, new_file)
        for suffix in _SIDE_FILES:
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        os.replace(new_file, path)
    restored = {data_dir / name for name in names}
    for path in sqlite_target_files(data_dir):
        if path not in restored and not path.name.endswith(".restoring"):
            path.unlink()
    return len(names)


def sqlite_target_files(data_dir: Path) -> list[Path]:
    """Return the files of SQLite connections in a data folder."""
    folder = data_dir / TARGETS_FOLDER
    found = sorted([*folder.glob("*/*"), *folder.glob("*/*/*")])
    return [path for path in found if path.is_file() and not path.name.endswith(_SIDE_FILES)]


PrintLine = Callable[[str], None]


def create_backup(
    settings: Settings,
    path: Path,
    *,
    replace: bool = False,
    plain_keys: bool = False,
    passphrase: str = "",
    files: bool = True,
    print_line: PrintLine = lambda _line: None,
) -> Manifest:
    """Write a backup of the service with these settings to `path`, and return its manifest. Needs the application
    context. Without `files`, it contains only the database. Error: BackupError; nothing has changed then."""
    with (
        as_backup_errors("The backup was not created", path.parent),
        BackupWriter(path, replace=replace) as writer,
    ):
        copied_files = FileCopier(storage.get_storage(current_app), writer)
        if files:
            copied_files.copy_new()  # most of them, before the snapshot begins
        with ExitStack() as stack:
            connection, tables, lacking = _open_snapshot(settings, copied_files, stack, files)
            revision = database.revision(connection)
            if revision is None:
                raise BackupError("There is nothing to back up: the database has no tables of Rowsmith.")
            print_line(f"revision {revision}, {len(tables)} tables")
            made_at = clock.to_text(clock.now())
            table_parts = {table.name: _write_table(connection, table, writer) for table in tables}
            pinned = pinned_vocabularies(connection, tables)
        ring = current_key_ring(
            settings
        )  # after the snapshot: a key rotation in the meantime has added its key in front
        missing = add_vocabularies(copied_files, pinned) if files else []
        count, size = copied_files.write_listing()
        manifest = Manifest(
            made_at=made_at or "",
            revision=revision,
            database="sqlite" if settings.is_sqlite else "postgresql",
            tables=table_parts,
            files=count,
            file_bytes=size,
            targets=add_targets(writer, settings.data_dir) if files else 0,
            vocabularies=sorted(pinned - set(missing)) if files else [],
            lacking=lacking,
            lacking_vocabularies=missing,
            keys=_write_keys(writer, format_keys(settings.secret_key, ring), plain_keys, passphrase),
            secret_key_mark=key_fingerprint(settings.secret_key),
            vault_mark=vault_fingerprint(ring),
            parts=writer.parts,
        )
        writer.finish(manifest)
    return manifest


def record_in_audit_log(manifest: Manifest) -> None:
    """Record the backup in the audit log of each workspace. Needs the application's context."""
    if manifest.revision != database.newest_revision():
        return  # older releases have different audit tables; `upgrade` creates such backups
    for workspace_id in db.session.scalars(select(Workspace.id)).all():
        audit_log.record(actors.system_actor(workspace_id), "service.backup", join=True, keys=manifest.keys)
    db.session.commit()


def _open_snapshot(
    settings: Settings, copied_files: FileCopier, stack: ExitStack, files: bool
) -> tuple[sa.Connection, list[database.Table], list[MissingFile]]:
    """Open a snapshot until the stack closes, with all of its files copied. If files are deleted in the meantime, try
    again until none are missing, the same ones are missing as before, or the attempts are used up. Report missing
    files."""
    previous: list[MissingFile] | None = None
    for last in (*[False] * limits.BACKUP_SNAPSHOT_ATTEMPTS, True):
        with batch_delete.suspend_deletion(), ExitStack() as trial:
            connection = trial.enter_context(snapshot(settings))
            tables = database.tables(connection)
            lacking: list[MissingFile] = []
            if files:
                copied_files.copy_referenced(connection, tables)
                copied_files.copy_new()
                lacking = copied_files.missing_files(connection, tables)
            if not lacking or lacking == previous or last:
                stack.push(trial.pop_all())
                break
            previous = lacking
    return connection, tables, lacking


def _write_table(connection: sa.Connection, table: database.Table, writer: BackupWriter) -> TablePart:
    part, rows = f"tables/{table.name}.ndjson", 0
    with writer.part(part) as file:
        for line in database.dump_rows(connection, table):
            file.write(line)
            rows += 1
    return TablePart(rows=rows, columns=dict(table.columns), key=list(table.key), part=part)


def _write_keys(writer: BackupWriter, text: str, plain: bool, passphrase: str) -> str:
    if passphrase:
        with writer.part(SEALED_KEYS_FILE) as file:
            file.write(encrypt_keys(text, passphrase, os.urandom(limits.BACKUP_SALT_BYTES)))
        return "sealed"
    if plain:
        with writer.part(PLAIN_KEYS_FILE) as file:
            file.write(text.encode())
        return "plain"
    return "none"


def verify(path: Path) -> Manifest:
    """Read a whole backup, and compare every part and every listed file with the manifest. Error: BackupError."""
    with BackupReader(path) as reader:
        reader.check()
        if reader.manifest.keys == "plain":
            ring = parse_keys(b"".join(reader.read_chunks(PLAIN_KEYS_FILE)).decode())[1]
            if not can_decrypt(ring, reader.manifest.vault_mark):
                raise BackupError(f"{path} contains keys that cannot decrypt its secrets.")
        return reader.manifest


def current_revision(settings: Settings) -> str:
    """Return the revision of the database. Error: BackupError for one without tables, or of a newer release."""
    with (
        as_backup_errors("The database was not checked", settings.data_dir),
        snapshot(settings) as connection,
    ):
        revision = database.revision(connection)
    if revision is None:
        raise BackupError(
            "The database has no tables yet. To create them, run ./rowsmith up or ./rowsmith migrate."
        )
    if not database.is_known_revision(revision):
        raise BackupError(
            f"The database is at revision {revision} of a newer release; this release knows up to "
            f"{database.newest_revision()}. "
            "Install the newer release again, or restore a backup of this one."
        )
    return revision
