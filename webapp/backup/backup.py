"""Back up the running service: database, files, vocabularies and, if requested, the encryption keys.

The keys are SECRET_KEY and the ring of the vault, plain or sealed by a passphrase.
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
from webapp.backup.archive import BackupError, Lacking, Manifest, Reader, TablePart, Writer, told
from webapp.backup.database import Table
from webapp.config import Settings
from webapp.extensions import READS, db
from webapp.row_templates.services import vocabularies
from webapp.security import sealing
from webapp.security.sealing import Vault, VaultError
from webapp.storage import MissingError, Storage, Stored
from webapp.work import batch_delete

PLAIN: Final = "keys.env"
SEALED: Final = "keys.sealed"
_WORD: Final = "rowsmith"
_PURPOSE: Final = "rowsmith.backup.mark"
_MARK_CHARS: Final = 24


def text_of(secret_key: str, vault_keys: Sequence[str]) -> str:
    """The keys as a data folder's `keys.env` has them."""
    return f"SECRET_KEY={secret_key}\nVAULT_KEYS={','.join(vault_keys)}\n"


def read_text(text: str) -> tuple[str, tuple[str, ...]]:
    """SECRET_KEY and the ring, newest first, of a `keys.env`."""
    found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    ring = found.get("VAULT_KEYS", "").split(",")
    return found.get("SECRET_KEY", ""), tuple(key.strip() for key in ring if key.strip())


def ring_now(settings: Settings) -> tuple[str, ...]:
    """Return the current key ring, newest first: a rotation may have added a key to the data folder since we
    started."""
    found = app_vault.keys_in(settings.data_dir / "keys.env")
    return tuple(found) if set(settings.vault_keys) <= set(found) else settings.vault_keys


def passphrase_of(file: Path) -> str:
    """Return the first line of a file. Error: BackupError if the file is missing or the line is too short."""
    try:
        found = file.read_text().partition("\n")[0].strip()
    except OSError as error:
        raise BackupError(f"The passphrase cannot be read: {file}: {error.strerror}.") from error
    if len(found) < limits.UPKEEP_PASSPHRASE_CHARS:
        raise BackupError(
            f"The passphrase in {file} has {len(found)} characters; it needs at least {limits.UPKEEP_PASSPHRASE_CHARS}."
        )
    return found


def sealed(text: str, passphrase: str, salt: bytes) -> bytes:
    """Return the encrypted keys: JSON with the parameters for deriving the encryption key from the passphrase. `salt`
    is random."""
    cost = limits.UPKEEP_SCRYPT_COST
    token = sealing.seal(_stretched(passphrase, salt, cost), text.encode())
    return orjson.dumps(
        {"kdf": "scrypt", "cost": cost, "salt": base64.b64encode(salt).decode(), "token": token.decode()}
    )


def opened(raw: bytes, passphrase: str) -> str:
    """Decrypt the keys. Error: BackupError for a wrong passphrase."""
    try:
        told = orjson.loads(raw)
        salt, cost, token = base64.b64decode(told["salt"]), int(told["cost"]), told["token"].encode()
    except (ValueError, KeyError, AttributeError, TypeError):
        raise BackupError("The keys in the backup cannot be read.") from None
    if not 0 < cost <= limits.UPKEEP_SCRYPT_COST_MAX:
        raise BackupError("The keys in the backup cannot be read: their cost parameter is out of range.")
    found = sealing.unseal(_stretched(passphrase, salt, cost), token)
    if found is None:
        raise BackupError("The passphrase is not the one that the keys of this backup were sealed by.")
    return found.decode()


def _stretched(passphrase: str, salt: bytes, cost: int) -> bytes:
    return Scrypt(salt=salt, length=32, n=cost, r=8, p=1).derive(passphrase.encode())


def mark(secret_key: str) -> str:
    """Return a value that identifies a SECRET_KEY without revealing anything about it."""
    return base64.urlsafe_b64encode(sealing.derive(secret_key, _PURPOSE)).decode()[:_MARK_CHARS]


def vault_mark(ring: Sequence[str]) -> str:
    """A word sealed by the newest key of a ring; "" without one."""
    return Vault(ring).seal(_WORD).decode() if ring else ""


def opens(ring: Sequence[str], told: str) -> bool:
    """Return whether a ring can decrypt what the newest key of the backup has encrypted."""
    if not told:
        return True
    try:
        return Vault(ring).open(told.encode()) == _WORD
    except (VaultError, ValueError):
        return False


# All columns that are encrypted by the vault, to check whether a key ring can decrypt them.

_BEGINS = "sealed"
"""Prefix of the names of these columns in every table; checked in tests/upkeep."""


def count(connection: sa.Connection, ring: Sequence[str]) -> tuple[int, int]:
    """Return how many secrets a ring can decrypt, and how many it cannot."""
    vault, opened, lost = Vault(ring), 0, 0
    for table in database.tables(connection):
        for name, kind in table.columns.items():
            if kind != "binary" or not name.startswith(_BEGINS):
                continue
            column = sa.column(name, sa.LargeBinary)
            read = sa.select(column).select_from(sa.table(table.name)).where(column.is_not(None))
            for one in connection.execute(read.execution_options(yield_per=limits.UPKEEP_ROWS)).scalars():
                try:
                    vault.open(bytes(one))
                    opened += 1
                except VaultError:
                    lost += 1
    return opened, lost


# --- Backup -------------------------------------------------------------------------------------------------


def engine(url: str) -> sa.Engine:
    """An engine that keeps no connection. `url` as `Settings.sqlalchemy_url`."""
    if url.startswith("sqlite"):
        options = {"timeout": limits.SQLITE_BUSY_MS / 1000, "check_same_thread": False}
    else:
        options = {"connect_timeout": round(limits.UPKEEP_CONNECT_SECONDS)}
    return sa.create_engine(url, poolclass=sa.NullPool, connect_args=options)


@contextmanager
def snapshot(settings: Settings) -> Iterator[sa.Connection]:
    """Open a transaction that reads the database as of its first query without blocking writers: on PostgreSQL
    REPEATABLE READ, on SQLite a reader of the WAL, which grows as long as the transaction is open."""
    made = engine(settings.sqlalchemy_url)
    options: dict[str, Any] = {READS: True}
    if not settings.is_sqlite:
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    try:
        with made.connect() as connection:
            connection = connection.execution_options(**options)
            with connection.begin():
                # BEGIN alone does not take the snapshot, the first query does.
                connection.exec_driver_sql(
                    "SELECT count(*) FROM sqlite_master" if settings.is_sqlite else "SELECT 1"
                )
                yield connection
    finally:
        made.dispose()


# Data outside of the database: files in storage, vocabularies, and the files of SQLite connections.
#
# The content behind a storage key never changes, so files are copied while the service is running: first all that
# exist, then, with the database snapshot open, those added since. During this time, `services.holding` defers
# deletions. If a file is missing nevertheless, the backup takes a new snapshot.

LISTING: Final = "files.ndjson"
"""The part that maps each file in storage to the part that contains it: one `{key, part, size}` per line."""
TARGETS: Final = "targets"
"""The folder of SQLite connections in the data folder, and in a backup."""
_PASSING: Final = ("health/",)  # files that `Storage.usable` writes
_BESIDE: Final = ("-wal", "-shm", "-journal")
# The columns that name bytes which must be there. What is not here is a cache.
NAMED: Final = (
    ("connections", "document_key"),
    ("export_parts", "storage_key"),
    ("exports", "storage_key"),
    ("fetched", "storage_key"),
    ("workspace_files", "storage_key"),
)
# Files of exports whose removal has begun (`file_removed_at`) may be gone while their names are still there.
_EXPORT_ID: Final = {"exports": "id", "export_parts": "export_id"}
CACHES: Final = (
    ("connections", "metadata_key"),
    ("import_jobs", "document_key"),
    ("import_jobs", "result_key"),
)


class Files:
    """The files of the storage that have been copied into a backup."""

    def __init__(self, store: Storage, writer: Writer) -> None:
        self._store, self._writer = store, writer
        self._held: dict[str, tuple[str, int, str | None]] = {}
        self._number = 0

    def copy_new(self) -> None:
        """Copy the files that were not copied yet, and skip those that are deleted in the meantime."""
        for one in self._store.walk():
            held = self._held.get(one.key)
            if not one.key.startswith(_PASSING) and (held is None or held[2] != one.tag):
                self._copy(one)

    def copy_named(self, connection: sa.Connection, there: Iterable[Table]) -> None:
        """Copy what rows of a snapshot name first: it may be gone sooner than the rest."""
        for one in self.lacking(connection, there):
            try:
                self._copy(self._store.head(one.key))
            except (MissingError, ValueError):  # gone, or none of our keys
                continue

    def _copy(self, one: Stored) -> None:
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
            self._held[key] = (part, file.bytes, tag)

    def __contains__(self, key: str) -> bool:
        return key in self._held

    def lacking(self, connection: sa.Connection, there: Iterable[Table]) -> list[Lacking]:
        """Return the files that rows of a snapshot refer to and that were not copied."""
        columns = {one.name: one.columns for one in there}
        found = []
        for table, column in NAMED:
            if column not in columns.get(table, ()):
                continue  # of an earlier revision
            named: sa.Select[str] = (
                sa.select(sa.column(column, sa.String))
                .select_from(sa.table(table))
                .where(sa.column(column).is_not(None))
            )
            if table in _EXPORT_ID and "file_removed_at" in columns["exports"]:
                removed = sa.table("exports", sa.column("id"), sa.column("file_removed_at"))
                gone = sa.select(removed.c.id).where(removed.c.file_removed_at.is_not(None))
                named = named.where(sa.column(_EXPORT_ID[table]).not_in(gone))
            keys = connection.execute(
                named.distinct().execution_options(yield_per=limits.UPKEEP_ROWS)
            ).scalars()
            found += [Lacking(table=table, key=key) for key in keys if key not in self._held]
        return found

    def write_listing(self) -> tuple[int, int]:
        """Write which part has which file. How many there are, and their bytes."""
        with self._writer.part(LISTING) as file:
            for key, (part, size, _) in sorted(self._held.items()):
                line = {"key": key, "part": part, "size": size}
                file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        return len(self._held), sum(size for _, size, _ in self._held.values())


def put_back(reader: Reader, store: Storage) -> set[str]:
    """Put the files of a backup into a storage; their keys."""
    keys = set()
    for line in reader.lines(LISTING):
        told = orjson.loads(line)
        store.put(told["key"], reader.pieces(told["part"]))
        keys.add(told["key"])
    return keys


def is_empty(store: Storage) -> bool:
    """Return whether a storage contains only vocabularies, which are the same everywhere."""
    passing = (*_PASSING, f"{vocabularies.FOLDER}/")
    return all(one.key.startswith(passing) for one in store.walk())


def keep_only(store: Storage, keys: set[str]) -> int:
    """Remove the files of a storage that are not among `keys`; how many."""
    gone = [
        one.key
        for one in store.walk()
        if one.key not in keys and not one.key.startswith(f"{vocabularies.FOLDER}/")
    ]
    for key in gone:
        store.delete(key)
    return len(gone)


# --- Vocabularies ---------------------------------------------------------------------------------------------


def pinned_vocabularies(connection: sa.Connection, there: Iterable[Table]) -> set[str]:
    """The vocabularies that the versions of templates pin."""
    if "template_versions" not in {one.name for one in there}:
        return set()
    which = sa.column("pins", sa.JSON)["vocabulary"].as_string()
    found = connection.execute(
        sa.select(which).select_from(sa.table("template_versions")).distinct()
    ).scalars()
    return {one for one in found if one}


def add_vocabularies(files: Files, wanted: Iterable[str]) -> list[str]:
    """Copy the vocabularies that are only on the disk of this machine; return the ids of those that are missing."""
    missing = []
    for one in sorted(wanted):
        if vocabularies.key_of(one) in files:
            continue
        path = vocabularies.local(one)
        if path.is_file():
            files.add(vocabularies.key_of(one), _pieces(path))
        else:
            missing.append(one)
    return missing


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(limits.STORAGE_CHUNK_BYTES):
            yield piece


# --- Files of SQLite connections --------------------------------------------------------------------------------


def add_targets(writer: Writer, data_dir: Path) -> int:
    """Copy the files of SQLite connections, each in a consistent state without blocking writers; return their
    number."""
    found, folder = targets_of(data_dir), data_dir / TARGETS
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
            with writer.part(f"{TARGETS}/{path.relative_to(folder).as_posix()}") as file:
                for piece in _pieces(copy):
                    file.write(piece)
    return len(found)


def put_targets_back(reader: Reader, data_dir: Path) -> int:
    """Put the files of SQLite connections into a data folder, in place of those that are there; how many."""
    names = [name for name in reader.manifest.parts if name.startswith(f"{TARGETS}/")]
    for name in names:
        path = data_dir / name
        if ".." in Path(name).parts:
            continue  # not written by us
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.restoring")
        reader.extract(name, beside)
        for suffix in _BESIDE:
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        os.replace(beside, path)
    kept = {data_dir / name for name in names}
    for path in targets_of(data_dir):
        if path not in kept and not path.name.endswith(".restoring"):
            path.unlink()
    return len(names)


def targets_of(data_dir: Path) -> list[Path]:
    """The files of SQLite connections in a data folder."""
    folder = data_dir / TARGETS
    found = sorted([*folder.glob("*/*"), *folder.glob("*/*/*")])
    return [path for path in found if path.is_file() and not path.name.endswith(_BESIDE)]


Tell = Callable[[str], None]


def make(
    settings: Settings,
    path: Path,
    *,
    replace: bool = False,
    plain_keys: bool = False,
    passphrase: str = "",
    files: bool = True,
    tell: Tell = lambda _line: None,
) -> Manifest:
    """Write a backup of the service with these settings to `path`, and return its manifest. Needs the application
    context. Without `files`, it contains only the database. Error: BackupError; nothing has changed then."""
    with told("The backup was not created", path.parent), Writer(path, replace=replace) as writer:
        held = Files(storage.of(current_app), writer)
        if files:
            held.copy_new()  # most of them, before the snapshot begins
        with ExitStack() as stack:
            connection, there, lacking = _moment(settings, held, stack, files)
            revision = database.revision(connection)
            if revision is None:
                raise BackupError("There is nothing to back up: the database has no tables of Rowsmith.")
            tell(f"revision {revision}, {len(there)} tables")
            made_at = clock.to_text(clock.now())
            written = {one.name: _table(connection, one, writer) for one in there}
            pinned = pinned_vocabularies(connection, there)
        ring = ring_now(
            settings
        )  # after the snapshot: a key rotation in the meantime has added its key in front
        missing = add_vocabularies(held, pinned) if files else []
        count, size = held.write_listing()
        manifest = Manifest(
            made_at=made_at or "",
            revision=revision,
            database="sqlite" if settings.is_sqlite else "postgresql",
            tables=written,
            files=count,
            file_bytes=size,
            targets=add_targets(writer, settings.data_dir) if files else 0,
            vocabularies=sorted(pinned - set(missing)) if files else [],
            lacking=lacking,
            lacking_vocabularies=missing,
            keys=_write_keys(writer, text_of(settings.secret_key, ring), plain_keys, passphrase),
            secret_key_mark=mark(settings.secret_key),
            vault_mark=vault_mark(ring),
            parts=writer.parts,
        )
        writer.finish(manifest)
    return manifest


def note(manifest: Manifest) -> None:
    """An entry in the trail of each workspace: all of its data has left. Needs the application's context."""
    if manifest.revision != database.head():
        return  # older releases have different audit tables; `upgrade` creates such backups
    for workspace_id in db.session.scalars(select(Workspace.id)).all():
        audit_log.record(actors.system(workspace_id), "service.backup", join=True, keys=manifest.keys)
    db.session.commit()


def _moment(
    settings: Settings, held: Files, stack: ExitStack, files: bool
) -> tuple[sa.Connection, list[database.Table], list[Lacking]]:
    """Open a snapshot until the stack closes, with all of its files copied. If files are deleted in the meantime, try
    again until none are missing, the same ones are missing as before, or the attempts are used up. Report missing
    files."""
    before: list[Lacking] | None = None
    for last in (*[False] * limits.UPKEEP_SNAPSHOTS, True):
        with batch_delete.holding(), ExitStack() as trial:
            connection = trial.enter_context(snapshot(settings))
            there = database.tables(connection)
            lacking: list[Lacking] = []
            if files:
                held.copy_named(connection, there)
                held.copy_new()
                lacking = held.lacking(connection, there)
            if not lacking or lacking == before or last:
                stack.push(trial.pop_all())
                break
            before = lacking
    return connection, there, lacking


def _table(connection: sa.Connection, table: database.Table, writer: Writer) -> TablePart:
    part, rows = f"tables/{table.name}.ndjson", 0
    with writer.part(part) as file:
        for line in database.lines(connection, table):
            file.write(line)
            rows += 1
    return TablePart(rows=rows, columns=dict(table.columns), key=list(table.key), part=part)


def _write_keys(writer: Writer, text: str, plain: bool, passphrase: str) -> str:
    if passphrase:
        with writer.part(SEALED) as file:
            file.write(sealed(text, passphrase, os.urandom(limits.UPKEEP_SALT_BYTES)))
        return "sealed"
    if plain:
        with writer.part(PLAIN) as file:
            file.write(text.encode())
        return "plain"
    return "none"


def verify(path: Path) -> Manifest:
    """Read a whole backup, and compare every part and every listed file with the manifest. Error: BackupError."""
    with Reader(path) as reader:
        reader.check()
        if reader.manifest.keys == "plain":
            ring = read_text(b"".join(reader.pieces(PLAIN)).decode())[1]
            if not opens(ring, reader.manifest.vault_mark):
                raise BackupError(f"{path} holds keys that do not open what it holds.")
        return reader.manifest


def found(settings: Settings) -> str:
    """The revision of the database. Error: BackupError, for one without tables, or of a newer release."""
    with told("The database was not checked", settings.data_dir), snapshot(settings) as connection:
        there = database.revision(connection)
    if there is None:
        raise BackupError(
            "The database has no tables yet. To create them, run ./rowsmith up or ./rowsmith migrate."
        )
    if not database.known(there):
        raise BackupError(
            f"The database is at revision {there}, of a newer release; this one knows up to {database.head()}. "
            "Install the newer release again, or restore a backup of this one."
        )
    return there
