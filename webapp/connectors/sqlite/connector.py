"""SQLite: one file in the workspace's folder, through Python's sqlite3 module.

Users' queries run in a separate process (`reader`), those of a push in this one. Neither can access the file
system otherwise: attaching databases is disabled, and only this file is written, up to
`limits.SQLITE_FILE_BYTES`.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import ClassVar, Final, Self

from pydantic import Field, model_validator

from webapp import limits
from webapp.connectors.base import Capabilities, Connector, ConnectorError, Settings, Stage
from webapp.connectors.sqlite.session import SqliteSession, convert_error
from webapp.connectors.verification import Step, run_stages

_URL: Final = re.compile(r"sqlite:(?:///)?")
JOURNAL_SUFFIXES: Final = ("-journal", "-wal", "-shm")  # files that SQLite creates next to a database


class SqliteSettings(Settings):
    """`file` is a plain file name. `connection_string` may contain it as `sqlite:///name`."""

    file: str | None = Field(
        None,
        min_length=1,
        max_length=limits.SQLITE_NAME_CHARS,
        json_schema_extra={"group": "file", "order": 1},
    )
    connection_string: str | None = Field(
        None, max_length=300, json_schema_extra={"group": "file", "order": 2}
    )

    @model_validator(mode="after")
    def _check_name(self) -> Self:
        name = self.name
        if not name:
            raise ValueError("enter a file name")
        is_plain = name.isprintable() and not any(char in name for char in '/\\:*?"<>|')
        if (
            not is_plain
            or name.startswith((".", "-"))
            or name.endswith(JOURNAL_SUFFIXES)
            or name != name.strip()
        ):
            raise ValueError(
                f"{name!r} is not a plain file name: folders, characters such as / \\ : * and a leading dot are not"
                " allowed"
            )
        return self

    @property
    def name(self) -> str:
        """The file's name in the workspace's folder."""
        return self.file or _URL.sub("", self.connection_string or "", count=1)


class SqliteConnector(Connector):
    """See `Connector`."""

    kind: ClassVar[str] = "sqlite"
    title: ClassVar[str] = "SQLite"
    can: ClassVar[Capabilities] = Capabilities(schemas=False, name_chars=128)
    Settings: ClassVar[type[Settings]] = SqliteSettings
    settings: SqliteSettings
    growth_allowance: Callable[[], int] = staticmethod(lambda: limits.SQLITE_FILE_BYTES)
    """Returns how many bytes the next transaction may add to the file. Called before each transaction."""

    @classmethod
    def driver(cls) -> ModuleType:
        """See `Connector.driver`."""
        return sqlite3

    def _path(self) -> Path:
        """Return the path of the file, which must be in the folder itself, with links resolved."""
        folder = Path(os.path.realpath(self.folder))
        path = folder / self.settings.name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise ConnectorError(
                f"{self.settings.name} is not a plain file.",
                reason="bad_settings",
                hint="Choose another name.",
            )
        return path

    def open(self, timeout: float | None = None) -> SqliteSession:
        """See `Connector.open`. Creates the folder and the file if they do not exist."""
        path = self._path()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                path,
                timeout=timeout or limits.TARGET_CONNECT_SECONDS,
                isolation_level=None,
                check_same_thread=False,  # `cancel` is called from another thread
                cached_statements=0,  # so that the authorizer checks every statement again
            )
        except (OSError, sqlite3.Error) as error:
            raise ConnectorError(
                f"{path.name} could not be opened: {error}", hint="Ask your administrator."
            ) from None
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
        except sqlite3.Error as error:
            connection.close()
            raise convert_error(error) from None
        return SqliteSession(connection, path, self.read_only, self.growth_allowance)

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`: the file name, opening it, write permission, and the first table."""
        sessions: list[SqliteSession] = []

        def enter() -> str:
            sessions.append(self.open())
            return f"Opened {self.settings.name}."

        steps: tuple[tuple[str, Step], ...] = (
            ("resolve", lambda: f"{self._path().name} is in the workspace's folder."),
            ("connect", enter),
            ("permission", lambda: sessions[0].check_permission()),
            ("sample", lambda: sessions[0].check_sample()),
        )
        try:
            yield from run_stages(steps)
        finally:
            for session in sessions:
                session.close()
