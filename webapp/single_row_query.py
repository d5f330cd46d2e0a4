"""One row by one statement, without a session: for the one question that every call of generate asks.

A session costs ten times what the question does. The statement is written once with SQLAlchemy, compiled once an
engine, and then given to the driver as it is; so its columns must be of types that need no conversion (text and
integers).
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, Select

from webapp.extensions import db


class Quick:
    """A select that is asked often. Parameters are bound by name."""

    def __init__(self, statement: Select[Any]) -> None:
        self._statement = statement
        self._compiled: WeakKeyDictionary[Engine, tuple[str, tuple[str, ...] | None]] = WeakKeyDictionary()

    def row(self, **parameters: str | int) -> tuple[Any, ...] | None:
        """The first row, or None."""
        engine = db.engine
        found = self._compiled.get(engine)
        if found is None:
            made = self._statement.compile(engine)
            names = tuple(made.positiontup) if made.positional and made.positiontup else None
            found = self._compiled[engine] = (str(made), names)
        text, names = found
        connection = engine.raw_connection()
        try:
            cursor = connection.cursor()
            try:
                cursor.execute(text, [parameters[name] for name in names] if names else parameters)
                return cursor.fetchone()
            finally:
                cursor.close()  # an open one would hold SQLite's snapshot
        finally:
            connection.close()
