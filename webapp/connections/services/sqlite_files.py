"""The files of SQLite connections: which folder one is in, how many there may be, and how large they may grow together.

They are in the data folder, `targets/<workspace id>/<folder>/<name>`. Connections of one project that name the same
file share it; a file of that name in another project is another file. Connections from before files belonged to
projects have no folder: their files are in `targets/<workspace id>/` itself.
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
from webapp.connections.models import Connection
from webapp.connectors.sqlite import OWN_ENDINGS, SqliteSettings
from webapp.errors import ApiError
from webapp.extensions import db, reading
from webapp.files.services import file_store

KIND: Final = "sqlite"

File = tuple[str | None, str]
"""A folder and a name in it."""


def root(workspace_id: str) -> Path:
    """The folder of a workspace's files."""
    return current_app.config["SETTINGS"].data_dir / "targets" / workspace_id


def folder_of(connection: Connection) -> Path:
    """The folder that a connection's file is in."""
    own = root(connection.workspace_id)
    return own / connection.file_folder if connection.file_folder else own


def name_of(connection: Connection) -> str:
    """The name of a connection's file as its settings say it; "" where they do not fit."""
    try:
        return SqliteSettings.model_validate(connection.settings).name
    except ValidationError:
        return ""


def place(connection: Connection) -> None:
    """Choose the folder of a new connection, or of one whose file was changed: that of the connections of its project
    that name the same file, else one of its own. Joins the caller's transaction.

    Error: quota_exceeded, when the workspace has as many files as it may have.
    """
    file_store.lock(connection.workspace_id)
    folder = beside(connection)
    connection.file_folder = connection.id if folder is _NONE else folder
    db.session.flush()
    check_number(connection)


_NONE: Final = "-"


def beside(connection: Connection) -> str | None:
    """The folder of the file that the other connections of the project share under this name; `_NONE` for a name that
    none of them has."""
    name = name_of(connection)
    others = select(Connection).where(
        Connection.project_id == connection.project_id,
        Connection.type == KIND,
        Connection.id != connection.id,
    )
    # A live one rather than a deleted one, whose file may have been removed.
    for other in db.session.scalars(others.order_by(Connection.deleted_at.is_not(None), Connection.id)):
        if name and name_of(other) == name:
            return other.file_folder
    return _NONE


@contextlib.contextmanager
def trial(connection: Connection) -> Iterator[str]:
    """The folder to try a connection in that is not saved: that of the file which its project has under this name, else
    a temporary one."""
    found = beside(connection)
    if found is not _NONE:
        connection.file_folder = found
        yield str(folder_of(connection))
        return
    with tempfile.TemporaryDirectory(prefix="rowsmith-") as folder:
        yield folder


def check_number(connection: Connection) -> None:
    """Error: quota_exceeded, when the files of the workspace's live connections, this one among them, are too many.
    Files that no live connection uses are removed where there is no room for a new one next to them."""
    live = [one for one in _live(connection.workspace_id) if one.id != connection.id]
    number = len({_file(one) for one in (*live, connection)})
    if number > limits.MAX_SQLITE_FILES:
        text = (
            f"A workspace may have {limits.MAX_SQLITE_FILES} SQLite files. Delete a SQLite connection that you no "
            "longer need, or use a file that another connection of the project uses."
        )
        raise ApiError("quota_exceeded", text, {"limit_files": limits.MAX_SQLITE_FILES, "files": number - 1})
    unused = _unused(connection.workspace_id, [*live, connection])
    for path in unused[: max(0, number + len(unused) - limits.MAX_SQLITE_FILES)]:
        remove(path)


def _live(workspace_id: str) -> list[Connection]:
    mine = (Connection.workspace_id == workspace_id, Connection.type == KIND, Connection.deleted_at.is_(None))
    with reading() as session:
        return list(session.scalars(select(Connection).where(*mine)))


def _file(connection: Connection) -> File:
    return connection.file_folder, name_of(connection)


def _unused(workspace_id: str, connections: list[Connection]) -> list[Path]:
    """The files of a workspace that none of the connections uses, the one that was changed longest ago first."""
    named: dict[str | None, set[str]] = {}
    for connection in connections:
        named.setdefault(connection.file_folder, set()).add(name_of(connection))
    found = []
    for path in files(workspace_id):
        folder = path.parent.name if path.parent != root(workspace_id) else None
        names = named.get(folder, set())
        if path.name not in names and not any(
            "${" in name for name in names
        ):  # it may have its name from a secret
            found.append(path)
    return sorted(found, key=_changed)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def files(workspace_id: str) -> list[Path]:
    """The database files of a workspace, without those that SQLite keeps next to them."""
    own = root(workspace_id)
    found = [*own.glob("*"), *own.glob("*/*")]
    return sorted(path for path in found if path.is_file() and not path.name.endswith(OWN_ENDINGS))


def remove(path: Path) -> None:
    """Remove a database file with what SQLite keeps next to it, and its folder where it was the last one in it."""
    for ending in ("", *OWN_ENDINGS):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    if path.parent.parent.name != "targets":
        with contextlib.suppress(OSError):  # there are others in it
            path.parent.rmdir()


def used(workspace_id: str) -> tuple[int, int]:
    """The bytes of a workspace's SQLite files, journals included, and how many files there are."""
    return sum(_sizes(root(workspace_id))), len(files(workspace_id))


def _sizes(folder: Path) -> Iterator[int]:
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        with contextlib.suppress(OSError):  # a journal that has just gone
            if path.is_file():
                yield path.stat().st_size


def allowance(workspace_id: str) -> Callable[[], int]:
    """How many bytes the next transaction may add to a file of the workspace, as a connector asks it before each.

    Each may add SQLITE_GROWTH_BYTES, and none once only so much is left that one transaction in each file could take
    it. So all of them together never exceed SQLITE_WORKSPACE_BYTES, whatever is written at the same time. Journals are
    counted; those of transactions in progress come on top.
    """
    own, reserve = root(workspace_id), limits.MAX_SQLITE_FILES * limits.SQLITE_GROWTH_BYTES

    def left() -> int:
        fits = sum(_sizes(own)) + reserve <= limits.SQLITE_WORKSPACE_BYTES
        return limits.SQLITE_GROWTH_BYTES if fits else 0

    return left


def make_room(workspace_id: str) -> None:
    """Remove files that no live connection uses, where the workspace's files can grow no further otherwise."""
    left = allowance(workspace_id)
    if left():
        return
    for path in _unused(workspace_id, _live(workspace_id)):
        remove(path)
        if left():
            return


def sweep() -> int:
    """Remove the files that no connection names any more, not even a deleted one that can be restored; the number of
    them. Files in the workspaces' own folders stay: they may be from before files belonged to projects."""
    folder: Path = current_app.config["SETTINGS"].data_dir / "targets"
    done = 0
    for own in folder.glob("*/*/"):
        with reading() as session:
            named = list(session.scalars(select(Connection).where(Connection.file_folder == own.name)))
        for path in _unused(own.parent.name, named) if own.is_dir() else []:
            if path.parent == own:
                remove(path)
                done += 1
    return done
