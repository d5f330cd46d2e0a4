"""The bytes beside the database: the storage's files, vocabularies, and the files of SQLite connections.

What a key of the storage names never changes, so files are copied while the service writes: first all that are there,
then, under the snapshot of the database, those that have come since. Meanwhile what is replaced stays
(`services.holding`); where something went all the same, another snapshot is taken.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import orjson
import sqlalchemy as sa

from webapp import limits
from webapp.services import vocabularies
from webapp.storage import MissingError, Storage, Stored
from webapp.upkeep.archive import Lacking, Reader, Writer
from webapp.upkeep.tables import Table

LISTING: Final = "files.ndjson"
"""The part that says which file of the storage lies in which part: `{key, part, size}` a line."""
TARGETS: Final = "targets"
"""The folder of SQLite connections in the data folder, and in a backup."""
_PASSING: Final = ("health/",)  # what `Storage.usable` writes
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
CACHES: Final = (("connections", "metadata_key"),)


class Files:
    """The files of the storage that have been copied into a backup."""

    def __init__(self, store: Storage, writer: Writer) -> None:
        self._store, self._writer = store, writer
        self._held: dict[str, tuple[str, int, str | None]] = {}
        self._number = 0

    def copy_new(self) -> None:
        """Copy what is there and was not copied yet. What goes meanwhile is left out."""
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
        """What rows of a snapshot name and no copy was made of."""
        columns = {one.name: one.columns for one in there}
        found = []
        for table, column in NAMED:
            if column not in columns.get(table, ()):
                continue  # of an earlier revision
            named = sa.select(sa.column(column)).select_from(sa.table(table)).where(sa.column(column).is_not(None))
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
    """Whether a storage has nothing but vocabularies, which are the same everywhere."""
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


def pinned(connection: sa.Connection, there: Iterable[Table]) -> set[str]:
    """The vocabularies that the versions of templates pin."""
    if "template_versions" not in {one.name for one in there}:
        return set()
    which = sa.column("pins", sa.JSON)["vocabulary"].as_string()
    found = connection.execute(
        sa.select(which).select_from(sa.table("template_versions")).distinct()
    ).scalars()
    return {one for one in found if one}


def add_vocabularies(files: Files, wanted: Iterable[str]) -> list[str]:
    """Copy the vocabularies that lie on this machine's disk alone; the ids of those that are nowhere."""
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
    """Copy the files of SQLite connections, each as of one moment, beside whoever writes it; how many."""
    found, folder = targets_of(data_dir), data_dir / TARGETS
    for path in found:
        with tempfile.TemporaryDirectory(prefix=".rowsmith-", dir=writer.path.parent) as scratch:
            copy = Path(scratch) / "copy"
            _copied(path, copy)
            with writer.part(f"{TARGETS}/{path.relative_to(folder).as_posix()}") as file:
                for piece in _pieces(copy):
                    file.write(piece)
    return len(found)


def _copied(path: Path, copy: Path) -> None:
    """By SQLite's own backup: readers hold up no writer where the journal is a WAL, as ours is."""
    with (
        closing(
            sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=limits.SQLITE_BUSY_MS / 1000)
        ) as source,
        closing(sqlite3.connect(copy)) as sink,
    ):
        source.backup(sink)


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
