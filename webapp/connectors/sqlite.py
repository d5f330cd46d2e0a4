"""SQLite: one file in the workspace's own folder, through Python's own module.

Queries of users run in a process of their own (`sqlite_reader`), those of a push in this one. The file system is closed
to both: no other database is attached, and no file is written but this one, up to `limits.SQLITE_FILE_BYTES`.
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
from webapp.connectors.sqlite_session import SqliteSession, translated
from webapp.connectors.stages import Step, staged

_URL: Final = re.compile(r"sqlite:(?:///)?")
OWN_ENDINGS: Final = ("-journal", "-wal", "-shm")  # files that SQLite keeps beside a database


class SqliteSettings(Settings):
    """`file` is a plain name; `connection_string` may say it as `sqlite:///name`."""

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
    def _is_a_plain_name(self) -> Self:
        name = self.name
        if not name:
            raise ValueError("give the name of a file")
        plain = name.isprintable() and not any(sign in name for sign in '/\\:*?"<>|')
        if not plain or name.startswith((".", "-")) or name.endswith(OWN_ENDINGS) or name != name.strip():
            raise ValueError(
                f"{name!r} is no plain file name: no folders, no signs like / \\ : *, no dot in front"
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
    growth: Callable[[], int] = staticmethod(lambda: limits.SQLITE_FILE_BYTES)
    """How many bytes the next transaction may add to the file; asked before each."""

    @classmethod
    def driver(cls) -> ModuleType:
        """See `Connector.driver`."""
        return sqlite3

    def _path(self) -> Path:
        """The file, which lies in the folder itself, whatever links there may be."""
        folder = Path(os.path.realpath(self.folder))
        path = folder / self.settings.name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise ConnectorError(
                f"{self.settings.name} is not a plain file.", reason="bad_settings", hint="Take another name."
            )
        return path

    def open(self, timeout: float | None = None) -> SqliteSession:
        """See `Connector.open`. Makes the folder and the file where they are missing."""
        path = self._path()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                path,
                timeout=timeout or limits.TARGET_CONNECT_SECONDS,
                isolation_level=None,
                check_same_thread=False,  # `cancel` comes from another thread
                cached_statements=0,  # so that every statement is judged anew
            )
        except (OSError, sqlite3.Error) as error:
            raise ConnectorError(f"{path.name} cannot be opened: {error}", hint="Ask the operator.") from None
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
        except sqlite3.Error as error:
            connection.close()
            raise translated(error) from None
        return SqliteSession(connection, path, self.read_only, self.growth)

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`: the name, the file, the right to write, the first table."""
        session: list[SqliteSession] = []

        def enter() -> str:
            session.append(self.open())
            return f"Opened {self.settings.name}."

        steps: tuple[tuple[str, Step], ...] = (
            ("resolve", lambda: f"{self._path().name} lies in the workspace's folder."),
            ("connect", enter),
            ("permission", lambda: session[0].permitted()),
            ("sample", lambda: session[0].sampled()),
        )
        try:
            yield from staged(steps)
        finally:
            for one in session:
                one.close()
