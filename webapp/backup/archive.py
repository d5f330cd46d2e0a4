"""A backup's file: a zip (ZIP64) of parts, the last of which is the manifest with the SHA-256 of all others.

The file is written next to its destination under a name that begins with a dot, synced, and then renamed. An unfinished
file of a killed or failed backup is never mistaken for a backup, and the next backup to the same file overwrites it.

Errors of backup, restore and upgrade are `BackupError`.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Final

import orjson
from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import DatabaseError

from webapp import limits, storage
from webapp.errors import pydantic_message


class BackupError(Exception):
    """The command cannot continue. The message is for users: one or two sentences about the cause and the remedy."""


@contextmanager
def as_backup_errors(failure: str, folder: Path) -> Iterator[None]:
    """Convert exceptions of disks, storages and databases to `BackupError`. `failure`: "The backup was not created";
    `folder`: where it writes."""
    try:
        yield
    except storage.StorageError as error:
        raise BackupError(
            f"{failure}: the storage does not respond: {str(error).partition(chr(10))[0]}."
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise BackupError(
                f"{failure}: the disk of {folder} is full. Free some space, then try again."
            ) from error
        raise BackupError(f"{failure}: {error.strerror or error} ({error.filename or folder}).") from error
    except DatabaseError as error:
        message = str(error.orig).partition("\n")[0]
        if "is full" in message:
            message = f"the disk of {folder} is full"
        raise BackupError(f"{failure}: the database returned an error: {message}.") from error


# --- The file -----------------------------------------------------------------------------------------------

FORMAT: Final = "rowsmith-backup"
FORMAT_VERSION: Final = 1
MANIFEST: Final = "manifest.json"
_BROKEN_FILE_ERRORS: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)


class ArchivePart(BaseModel):
    """One part: its bytes before they were packed, and their SHA-256."""

    bytes: int
    sha256: str


class TablePart(BaseModel):
    """A table: its rows, its columns with their kinds, the columns of its key, and the part that has it."""

    rows: int
    columns: dict[str, str]
    key: list[str]
    part: str


class MissingFile(BaseModel):
    """A missing file: the table of the row that refers to it, and its key."""

    table: str
    key: str


class Manifest(BaseModel):
    """Contents of a backup."""

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    made_at: str
    revision: str
    database: str
    """sqlite or postgresql; it can be restored to either."""
    tables: dict[str, TablePart]
    files: int
    file_bytes: int
    targets: int
    """Files of SQLite connections."""
    vocabularies: list[str]
    lacking: list[MissingFile]
    lacking_vocabularies: list[str]
    keys: str
    """none, plain or sealed (encrypted with a passphrase)."""
    secret_key_mark: str
    """A value that identifies a SECRET_KEY without revealing anything about it."""
    vault_mark: str
    """A known text encrypted with the newest key of the vault; "" without one."""
    parts: dict[str, ArchivePart]


class BackupWriter:
    """Writes a backup to `path`: parts, then `finish`. Without `finish`, no file is created. Used as a context."""

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        if path.exists() and not replace:
            raise BackupError(f"{path} already exists. Specify another file, or use --replace.")
        if not path.parent.is_dir():
            raise BackupError(f"There is no folder {path.parent}.")
        self.path, self.parts = path, dict[str, ArchivePart]()
        self._partial = path.with_name(f".{path.name}.partial")
        self._finished = False

    def __enter__(self) -> BackupWriter:
        handle = os.open(self._partial, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise BackupError(f"Another backup to {self.path} is in progress.") from None
        self._file = os.fdopen(handle, "r+b")
        self._file.truncate(0)  # of one that was killed
        self._zip = zipfile.ZipFile(
            self._file,
            "w",
            zipfile.ZIP_DEFLATED,
            compresslevel=limits.BACKUP_COMPRESSION_LEVEL,
            allowZip64=True,
        )
        return self

    @contextmanager
    def part(self, name: str) -> Iterator[_ArchivePartWriter]:
        """Open a part for writing; one at a time."""
        with self._zip.open(name, "w", force_zip64=True) as file:
            part_writer = _ArchivePartWriter(file)
            yield part_writer
        self.parts[name] = ArchivePart(bytes=part_writer.bytes, sha256=part_writer.sha256)

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest and move the file to its destination."""
        with self.part(MANIFEST) as file:
            file.write(orjson.dumps(manifest.model_dump(), option=orjson.OPT_INDENT_2))
        self._zip.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        os.replace(self._partial, self.path)
        self._finished = True
        sync_folder(self.path.parent)

    def __exit__(
        self, _kind: type[BaseException] | None, _value: object, _trace: TracebackType | None
    ) -> None:
        try:
            if not self._finished:
                self._partial.unlink(missing_ok=True)
        finally:
            if not self._finished:
                self._zip.fp = None  # closed, it would write its directory
            self._file.close()


class _ArchivePartWriter:
    """A part that is being written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._hash, self.bytes = file, hashlib.sha256(), 0

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._file.write(data)
        self._hash.update(data)
        self.bytes += len(data)

    @property
    def sha256(self) -> str:
        """The digest of the bytes written so far."""
        return self._hash.hexdigest()


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that a rename in it survives a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class BackupReader:
    """Context manager that reads a backup. Error: BackupError for a file that is not a complete backup."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
            raw = orjson.loads(self._zip.read(MANIFEST))
        except FileNotFoundError:
            raise BackupError(f"There is no file {path}.") from None
        except KeyError:
            raise BackupError(f"{path} is not a Rowsmith backup: it has no manifest.") from None
        except (*_BROKEN_FILE_ERRORS, orjson.JSONDecodeError) as error:
            raise BackupError(f"{path} is not a backup, or is incomplete: {error}.") from None
        if not isinstance(raw, dict) or raw.get("format") != FORMAT:
            raise BackupError(f"{path} is not a Rowsmith backup.")
        if raw.get("format_version") != FORMAT_VERSION:
            raise BackupError(
                f"{path} was created by a newer release of Rowsmith. Restore it with that release."
            )
        try:
            self.manifest = Manifest.model_validate(raw)
        except ValidationError as error:
            raise BackupError(
                f"{path} has a manifest that cannot be read: {pydantic_message(dict(error.errors()[0]))}"
            ) from None

    def __enter__(self) -> BackupReader:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._zip.close()

    def check(self) -> None:
        """Read every part and compare its SHA-256. Error: BackupError with the first part that differs."""
        members, listed = set(self._zip.namelist()) - {MANIFEST}, set(self.manifest.parts)
        if differing := sorted(members ^ listed):
            raise BackupError(
                f"{self.path} was changed: {differing[0]} "
                f"{'is missing' if differing[0] in listed else 'is not in the manifest'}."
            )
        for name, part in self.manifest.parts.items():
            digest = hashlib.sha256()
            for piece in self.read_chunks(name):
                digest.update(piece)
            if digest.hexdigest() != part.sha256:
                raise BackupError(
                    f"{self.path} is damaged: the checksum of {name} does not match. Create another backup."
                )
        for name, table in self.manifest.tables.items():
            if (found := sum(1 for _ in self.read_lines(table.part))) != table.rows:
                raise BackupError(
                    f"{self.path} is damaged: {name} has {found:,} rows instead of {table.rows:,}."
                )

    def read_chunks(self, name: str) -> Iterator[bytes]:
        """Yield a part's bytes. Error: BackupError."""
        try:
            with self._zip.open(name) as file:
                while piece := file.read(limits.STORAGE_CHUNK_BYTES):
                    yield piece
        except KeyError:
            raise BackupError(f"{self.path} is incomplete: {name} is missing.") from None
        except _BROKEN_FILE_ERRORS as error:
            raise BackupError(f"{self.path} is damaged at {name}: {error}. Create another backup.") from None

    def read_lines(self, name: str) -> Iterator[bytes]:
        """Yield a part's lines. Error: BackupError."""
        rest = b""
        for piece in self.read_chunks(name):
            *complete, rest = (rest + piece).split(b"\n")
            yield from complete
        if rest:
            yield rest

    def extract(self, name: str, path: Path) -> None:
        """Write a part to a file."""
        with path.open("wb") as file:
            for piece in self.read_chunks(name):
                file.write(piece)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.path.stat().st_size


def free_bytes(folder: Path) -> int:
    """Return the free bytes of the disk that contains a folder."""
    return shutil.disk_usage(folder).free
