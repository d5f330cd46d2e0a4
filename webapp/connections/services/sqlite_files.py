"""Files of SQLite connections: their folders, their maximum number, and their maximum total size.

They are in the data folder, `targets/<workspace id>/<folder>/<name>`. Connections of one project that name the same
file share it; a file with that name in another project is a different file. Connections that were created before
files belonged to projects have no folder: their files are in `targets/<workspace id>/` itself.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from flask import current_app
from pydantic import ValidationError
from sqlalchemy import select

from webapp import limits
from webapp.config import Settings
from webapp.connections.models import Connection
from webapp.connectors.sqlite.connector import JOURNAL_SUFFIXES, SqliteSettings
from webapp.errors import ApiError
from webapp.extensions import db, read_session
from webapp.files import services as files_services

KIND: Final = "sqlite"

File = tuple[str | None, str]
"""A folder and a name in it."""


def root(workspace_id: str) -> Path:
    """Return the folder of a workspace's files."""
    settings: Settings = current_app.config["SETTINGS"]
    return settings.data_dir / "targets" / workspace_id


def folder_of(connection: Connection) -> Path:
    """Return the folder of a connection's file."""
    workspace_folder = root(connection.workspace_id)
    return workspace_folder / connection.file_folder if connection.file_folder else workspace_folder


def name_of(connection: Connection) -> str:
    """Return the file name in a connection's settings, or "" if they are invalid."""
    try:
        return SqliteSettings.model_validate(connection.settings).name
    except ValidationError:
        return ""


def assign_folder(connection: Connection) -> None:
    """Choose the folder of a new connection, or of one whose file was changed: the folder of the same file in its
    project, otherwise a new one. Joins the caller's transaction.

    Error: quota_exceeded, if the workspace has the maximum number of files.
    """
    files_services.lock(connection.workspace_id)
    folder = shared_folder(connection)
    connection.file_folder = connection.id if folder is _NO_FOLDER else folder
    db.session.flush()
    check_file_quota(connection)


_NO_FOLDER: Final = "-"


def shared_folder(connection: Connection) -> str | None:
    """Return the folder of the file that other connections of the project use under this name, or `_NO_FOLDER`."""
    name = name_of(connection)
    others = select(Connection).where(
        Connection.project_id == connection.project_id,
        Connection.type == KIND,
        Connection.id != connection.id,
    )
    # Prefer a live connection: the file of a deleted one may have been removed.
    for other in db.session.scalars(others.order_by(Connection.deleted_at.is_not(None), Connection.id)):
        if name and name_of(other) == name:
            return other.file_folder
    return _NO_FOLDER


@contextlib.contextmanager
def trial_folder(connection: Connection) -> Iterator[str]:
    """Yield the folder to test an unsaved connection in: that of the project's file with this name, otherwise a
    temporary one."""
    found = shared_folder(connection)
    if found is not _NO_FOLDER:
        connection.file_folder = found
        yield str(folder_of(connection))
        return
    with tempfile.TemporaryDirectory(prefix="rowsmith-") as folder:
        yield folder


def check_file_quota(connection: Connection) -> None:
    """Raise quota_exceeded if the live connections of the workspace, including this one, use too many files. Removes
    files that no live connection uses to free space for a new one."""
    live = [other for other in _live_connections(connection.workspace_id) if other.id != connection.id]
    number = len({(other.file_folder, name_of(other)) for other in (*live, connection)})
    if number > limits.MAX_SQLITE_FILES:
        text = (
            f"A workspace can have at most {limits.MAX_SQLITE_FILES} SQLite files. Delete a SQLite connection that you "
            "no longer need, or use a file that another connection of the project uses."
        )
        raise ApiError("quota_exceeded", text, {"limit_files": limits.MAX_SQLITE_FILES, "files": number - 1})
    unused = _unused_files(connection.workspace_id, [*live, connection])
    for path in unused[: max(0, number + len(unused) - limits.MAX_SQLITE_FILES)]:
        remove(path)


def _live_connections(workspace_id: str) -> list[Connection]:
    conditions = (
        Connection.workspace_id == workspace_id,
        Connection.type == KIND,
        Connection.deleted_at.is_(None),
    )
    with read_session() as session:
        return list(session.scalars(select(Connection).where(*conditions)))


def _unused_files(workspace_id: str, connections: list[Connection]) -> list[Path]:
    """Return the files of a workspace that none of the connections uses, the least recently changed first."""
    names_by_folder: dict[str | None, set[str]] = {}
    for connection in connections:
        names_by_folder.setdefault(connection.file_folder, set()).add(name_of(connection))
    found = []
    for path in files(workspace_id):
        folder = path.parent.name if path.parent != root(workspace_id) else None
        names = names_by_folder.get(folder, set())
        if path.name not in names and not any(
            "${" in name for name in names
        ):  # the name may come from a secret
            found.append(path)
    return sorted(found, key=_modified_at)


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def files(workspace_id: str) -> list[Path]:
    """Return the database files of a workspace, without the journals next to them."""
    workspace_folder = root(workspace_id)
    found = [*workspace_folder.glob("*"), *workspace_folder.glob("*/*")]
    return sorted(path for path in found if path.is_file() and not path.name.endswith(JOURNAL_SUFFIXES))


def remove(path: Path) -> None:
    """Remove a database file with its journals, and its folder if that is empty afterwards."""
    for ending in ("", *JOURNAL_SUFFIXES):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    if path.parent.parent.name != "targets":
        with contextlib.suppress(OSError):  # not empty
            path.parent.rmdir()


def usage(workspace_id: str) -> tuple[int, int]:
    """Return the total bytes of a workspace's SQLite files including journals, and the number of files."""
    return sum(_sizes(root(workspace_id))), len(files(workspace_id))


def _sizes(folder: Path) -> Iterator[int]:
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        with contextlib.suppress(OSError):  # a journal that was just removed
            if path.is_file():
                yield path.stat().st_size


def growth_allowance(workspace_id: str) -> Callable[[], int]:
    """Return a function that says how many bytes the next transaction may add to a file of the workspace.

    Each transaction may add SQLITE_GROWTH_BYTES, unless one transaction in each file could use up the rest. The files
    together therefore never exceed SQLITE_WORKSPACE_BYTES, regardless of parallel writers. Journals count, except for
    those of transactions in progress.
    """
    workspace_folder, reserve = root(workspace_id), limits.MAX_SQLITE_FILES * limits.SQLITE_GROWTH_BYTES

    def left() -> int:
        has_room = sum(_sizes(workspace_folder)) + reserve <= limits.SQLITE_WORKSPACE_BYTES
        return limits.SQLITE_GROWTH_BYTES if has_room else 0

    return left


def make_room(workspace_id: str) -> None:
    """Remove files that no live connection uses, if the workspace's files could not grow otherwise."""
    left = growth_allowance(workspace_id)
    if left():
        return
    for path in _unused_files(workspace_id, _live_connections(workspace_id)):
        remove(path)
        if left():
            return


def delete_unused() -> int:
    """Remove files that no connection uses, not even a deleted one that can be restored, and return their number.

    Files directly in a workspace's folder are kept: they may have been created before files belonged to projects."""
    folder: Path = current_app.config["SETTINGS"].data_dir / "targets"
    removed = 0
    for connection_folder in folder.glob("*/*/"):
        with read_session() as session:
            connections = list(
                session.scalars(select(Connection).where(Connection.file_folder == connection_folder.name))
            )
        for path in (
            _unused_files(connection_folder.parent.name, connections) if connection_folder.is_dir() else []
        ):
            if path.parent == connection_folder:
                remove(path)
                removed += 1
    return removed
